"""A fitted release holds public facts and noisy numbers: no table, no engine, no number of rows, whatever is looked at."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from mining_worlds import opened, recorded, schema_of, table_of, without_class
from release_worlds import every, fitted, form_of, shown_groups

from dpmine.dataset import DataSet, LocalExecutor
from dpmine.engines.encoding import EncodedTable
from dpmine.frames import FrameSource
from dpmine.kernel.door import Kernel
from dpmine.kernel.ledger import Ledger
from dpmine.release.diffgen import Specialising
from dpmine.schema import Nominal, Schema
from dpmine.tables import PrivateTable

ROWS = 9973  # a number that nothing else has
SCHEMA = schema_of(lists=True, rows_at_most=100_000)
TABLE = table_of(SCHEMA, ROWS, 1)
SECRETS = (PrivateTable, LocalExecutor, Kernel, Ledger, EncodedTable, FrameSource, DataSet, Specialising)


def reached_from(thing: Any) -> Iterator[tuple[str, Any]]:
    """Everything that can be reached by attributes and items, with the path to it."""
    waiting, seen = [("model", thing)], set()
    while waiting:
        path, found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield path, found
        if isinstance(found, dict):
            waiting += [(f"{path}[{key!r}]", item) for key, item in found.items()]
        elif isinstance(found, list | tuple | set | frozenset):
            waiting += [(f"{path}[{place}]", item) for place, item in enumerate(found)]
        elif isinstance(found, np.ndarray):
            waiting += [(f"{path}.base", found.base)]
        if not isinstance(found, type):
            waiting += [(f"{path}.{name}", item) for name, item in getattr(found, "__dict__", {}).items()]
            slots = [name for cls in type(found).__mro__ for name in getattr(cls, "__slots__", ())]
            waiting += [(f"{path}.{name}", getattr(found, name)) for name in slots if hasattr(found, name)]
        if getattr(found, "__closure__", None):
            waiting += [(f"{path} closes over {place}", cell.cell_contents) for place, cell in enumerate(found.__closure__)]


def leaks(model: Any) -> list[str]:
    """Paths to what no release may hold."""
    found = []
    for path, thing in reached_from(model):
        long = isinstance(thing, np.ndarray | list | tuple | dict) and len(thing) >= ROWS
        if isinstance(thing, SECRETS) or long or type(thing).__module__.startswith(("dpmine.kernel", "dpmine.engines")):
            found.append(path)
        if isinstance(thing, int) and not isinstance(thing, bool) and thing == ROWS:
            found.append(path)
    return found


@pytest.mark.parametrize("handed", ["private", "rows"])
@pytest.mark.parametrize("number", range(4))
def test_nothing_of_the_table_can_be_reached_from_a_release(number: int, handed: str) -> None:
    model = every("0.5")[number]
    if handed == "private":
        fitted(model, TABLE, SCHEMA)
    else:
        model.fit(without_class(TABLE), TABLE["class"], schema=SCHEMA)
    assert leaks(model) == []
    names = set(vars(model)) - {"epsilon", "specialisations", "score", "calibration", "points", "leftover", "threshold"}
    assert names - {"total_share", "frequency_share", "schema", "bins"} == {
        *("released_", "schema_", "plan_", "cost_", "charged_", "cuts_", "_fitted_with"),
    }


def test_the_walk_finds_what_is_hidden() -> None:
    model: Any = fitted(every("0.5")[0], TABLE, SCHEMA)
    with opened(TABLE, SCHEMA) as private:
        for hidden in (private, private._executor, np.zeros(ROWS)[:5], {"deep": [{"count": ROWS}]}, lambda: private):
            model.hidden_ = hidden
            assert leaks(model)
    del model.hidden_


@pytest.mark.parametrize("number", range(4))
def test_a_pickle_holds_the_release_and_nothing_else(number: int) -> None:
    model = fitted(every("0.5")[number], TABLE, SCHEMA)
    text = pickle.dumps(model)
    again = pickle.loads(text)  # noqa: S301 (our own)
    assert form_of(again.release()) == form_of(model.release()) == form_of(copy.deepcopy(model).release())
    assert again.transform(TABLE) == model.transform(TABLE)
    assert len(text) < 200_000 + 20 * model.release().groups.nbytes


@pytest.mark.parametrize("number", range(4))
def test_all_numbers_of_a_release_were_answered(number: int) -> None:
    """Counts come from the last answer, and where they are made to add up they add up to the first one."""
    with recorded(TABLE, SCHEMA, 1) as (private, recorder):
        model = every(1)[number].fit(private)
    (numbers,) = recorder.asked[-1][1].answer.numbers
    answered = sorted((numbers or ())[1::2])
    counts = model.release().counts
    if number in (1, 2):
        (total,) = recorder.asked[0][1].answer.numbers[0] or ()
        assert int(counts.sum()) == total
    else:
        assert sorted(counts[counts > 0].tolist()) == answered


@pytest.mark.parametrize("number", range(4))
def test_neighbouring_tables_can_give_the_same_release(number: int) -> None:
    """Whatever one table answers, its neighbour could have answered too.

    Two counts at epsilon 0.5 to 1, or none at all where the noisy total is not positive: several outcomes have chances of
    0.1 and more under both tables, so 60 releases of each without one in common have a chance below 1e-6.
    """
    attributes = (Nominal("flag", ("no", "yes"), "no"), Nominal("class", ("no",), "no"))
    schema = Schema("small", attributes, 10, "class")

    def releases(table: Any) -> set[str]:
        return {str(shown_groups(fitted(every(1)[number], table, schema))) for _ in range(60)}

    assert releases({"flag": ["no", "yes"], "class": ["no", "no"]}) & releases({"flag": ["no"], "class": ["no"]})
