"""A fitted release holds public facts and noisy numbers: no table, no engine, no number of rows, whatever is looked at."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from support.mined_tables import schema_of, table_of, without_class
from support.opening import fitted, opened, recorded
from support.reachable import leaks
from support.releases import every, form_of, shown_groups, with_tree

from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.release.diffgen import Specialising
from dpmine.release.tree_release import TreeRelease

ROWS = 9973  # a number that nothing else has
SCHEMA = schema_of(lists=True, rows_at_most=100_000)
TABLE = table_of(SCHEMA, ROWS, 1)


@pytest.mark.parametrize("handed", ["private", "rows"])
@pytest.mark.parametrize("number", range(5))
def test_nothing_of_the_table_can_be_reached_from_a_release(number: int, handed: str) -> None:
    """A noisy number of rows is kept where the plan follows from it, and is the true one with a chance of at most 1 in 40.

    So a release may be made anew up to five times: what is true would be there each time. False alarms: 1e-8.
    """
    for _ in range(5):
        model = with_tree("0.5")[number]
        if handed == "private":
            fitted(model, TABLE, SCHEMA)
        else:
            model.fit(without_class(TABLE), TABLE["class"], schema=SCHEMA)
        found = leaks(model, ROWS, Specialising)
        if not found:
            break
    assert found == []
    own = "_root" if isinstance(model, TreeRelease) else "cuts_"
    assert set(vars(model)) - set(model.get_params()) == {
        *("released_", "schema_", "plan_", "cost_", "charged_", own, "_fitted_with"),
    }


def test_the_walk_finds_what_is_hidden() -> None:
    model: Any = fitted(every("0.5")[0], TABLE, SCHEMA)
    with opened(TABLE, SCHEMA) as private:
        for hidden in (private, private._executor, np.zeros(ROWS)[:5], {"deep": [{"count": ROWS}]}, lambda: private):
            model.hidden_ = hidden
            assert leaks(model, ROWS, Specialising)
    del model.hidden_


@pytest.mark.parametrize("number", range(5))
def test_a_pickle_holds_the_release_and_nothing_else(number: int) -> None:
    model = fitted(with_tree("0.5")[number], TABLE, SCHEMA)
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


@pytest.mark.parametrize("number", range(5))
def test_neighbouring_tables_can_give_the_same_release(number: int) -> None:
    """Whatever one table answers, its neighbour could have answered too.

    Two counts at epsilon 0.5 to 1, or none at all where the noisy total is not positive: several outcomes have chances of
    0.1 and more under both tables, so 60 releases of each without one in common have a chance below 1e-6.
    """
    attributes = (Nominal("flag", ("no", "yes"), "no", missing="no"), Nominal("class", ("no",), "no", missing="no"))
    schema = Schema("small", attributes, 10, "class")

    def releases(table: Any) -> set[str]:
        return {str(shown_groups(fitted(with_tree(1)[number], table, schema))) for _ in range(60)}

    assert releases({"flag": ["no", "yes"], "class": ["no", "no"]}) & releases({"flag": ["no"], "class": ["no"]})
