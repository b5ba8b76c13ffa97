"""What an untrusted analyst with JSON queries might try. Each attack worked once, or has a twin that shows it would."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmine as dm
from dpmine.engines.encoding import encode
from dpmine.engines.memory import MemoryEngine
from dpmine.epsilon import Epsilon
from dpmine.expressions import AttributeKey, Bins, Compare, Groups, Part, Test
from dpmine.frames import open_source
from dpmine.queries import LEAF, MOST_CELLS, MOST_KEYS, Count, Histogram, Multiway, Query, Rules, Split, View, Where
from dpmine.resolution import resolve_cells
from dpmine.schema import Nominal, Numeric, Schema
from dpmine.tables import PrivateTable

SCHEMA = Schema(
    "attacked",
    (
        Numeric("fine", Decimal(0), Decimal(4095), Decimal(1), Decimal(0)),
        Numeric("age", Decimal(0), Decimal(255), Decimal(1), Decimal(0)),
        Nominal("ill", ("no", "yes"), "no"),
    ),
    rows_at_most=1000,
    class_attribute="ill",
)
ROWS = 300


def columns() -> dict[str, list[Any]]:
    draw = np.random.default_rng(5)
    return {
        "fine": draw.integers(0, 4096, ROWS).tolist(),
        "age": draw.integers(0, 256, ROWS).tolist(),
        "ill": draw.choice(["no", "yes"], ROWS).tolist(),
    }


@pytest.fixture
def private() -> Iterator[PrivateTable]:
    with dm.open(columns(), schema=SCHEMA, cap=10) as data:
        yield data.grant("mallory", epsilon=10)


def split_last_child(children: int) -> tuple[Rules, int]:
    """A first level with that many labels, whose last child is split in three by a recoding key; and its leaves."""
    first = Bins("fine", tuple(str(4096 - children + 1 + place) for place in range(children - 1)))
    below = Split(Bins("age", ("100", "200")), (LEAF, LEAF, LEAF))
    return Split(first, (*(LEAF,) * (children - 1), below)), children + 2


@pytest.mark.parametrize("children", [2, 253, 254, 255, 256, 257, 300, 1000])
def test_a_row_is_in_the_one_cell_that_its_values_name_however_many_cells_there_are(children: int) -> None:
    """A cell number that wraps around in 8 or 16 bits would let one price buy the same rows again and again."""
    table = encode(open_source(columns()), SCHEMA)
    rules, leaves = split_last_child(children)
    found = MemoryEngine(table, b"k" * 32).cell_ids(resolve_cells((), rules, SCHEMA))
    start = 4096 - children + 1
    for fine, age, cell in zip(columns()["fine"], columns()["age"], np.asarray(found.ids).tolist(), strict=True):
        first = min(max(fine - start + 1, 0), children - 1)
        assert cell == (first if first < children - 1 else first + (age >= 100) + (age >= 200))
    assert found.cells == leaves


def test_one_price_does_not_buy_the_same_rows_through_many_rule_trees(private: PrivateTable) -> None:
    """The attack that the wrap-around allowed: cell i of a tree with 256 + i + 1 leaves, epsilon there alone."""
    first = Bins("fine", tuple(str(4096 - 255 + place) for place in range(255)))
    spent = 0
    for cell in range(40):
        cuts = tuple(str(place + 1) for place in range(cell + 1))
        below = Split(Bins("age", cuts), (LEAF,) * (cell + 2))
        rules = Split(first, (*(LEAF,) * 255, below))
        epsilons: list[Any] = [0] * (255 + cell + 2)
        epsilons[cell] = "0.01"
        (answer,) = [count for count in private.cells(rules).count_cells(epsilon=epsilons) if count is not None]
        assert abs(answer.value) < 10_000
        spent = 10_000_000_000 - private.remaining().units
    assert spent == 10_000_000  # all of these are cells of one partition that hold different rows


def too_large() -> dict[str, Query]:
    one = (Epsilon.parse(1),)

    def ask(rules: Rules = LEAF, question: Any = Count(), epsilon: tuple[Epsilon, ...] = one) -> Query:  # noqa: B008
        return Query(View(), rules, question, epsilon)

    fine, age = AttributeKey("fine"), AttributeKey("age")
    cells = Part("p", (1,) * 2_000)
    many_tests = tuple(Multiway(Test(Compare("fine", "==", str(place)))) for place in range(MOST_KEYS + 1))
    return {
        "many numbers": ask(question=Histogram((fine, fine))),
        "many histogram keys": ask(question=Histogram((Groups("ill", ()),) * 70)),
        "many cells": ask(Split(Part("p", (1,) * (MOST_CELLS + 1)), (LEAF,) * (MOST_CELLS + 1))),
        "many epsilons": ask(Split(cells, (LEAF,) * 2_000), epsilon=tuple(Epsilon(10**9 + place) for place in range(2_000))),
        "many families": ask(question=dm.tables.ChooseSplit((many_tests,), "gini", "exponential", "monotone")),
        "many counts": ask(
            Split(Part("p", (1,) * 9_000), (LEAF,) * 9_000),
            dm.tables.ChooseSplit(((Multiway(fine), Multiway(age)),), "gini", "exponential", "monotone"),
        ),
    }


@pytest.mark.parametrize("name", sorted(too_large()))
def test_what_would_not_fit_is_refused_before_anything_is_charged(private: PrivateTable, name: str) -> None:
    with pytest.raises(dm.RequestError):
        private._executor.answer(too_large()[name])
    assert private.remaining() == Epsilon.parse(10)


def test_an_answer_of_millions_of_numbers_that_was_paid_can_be_read() -> None:
    with dm.open(columns(), schema=SCHEMA, cap=1) as data:
        wide = data.grant("mallory", epsilon=1).histogram("fine", "age", epsilon="0.000000001")
    assert wide.counts.shape == (4096, 256)
    assert len(str(wide.counts.tolist())) > 5_000_000


@pytest.mark.parametrize("text", ["sNaN", "NaN", "-sNaN123", "Infinity", "1e999999999", "9" * 5000, "\ud800", "\x00"])
def test_no_constant_makes_the_door_raise_anything_but_a_sentence(private: PrivateTable, text: str) -> None:
    for view in (View((Where(Compare("age", ">=", text)),)), View((Where(Compare("ill", "==", text)),))):
        with pytest.raises(dm.RequestError):
            private._executor.answer(Query(view, LEAF, Count(), (Epsilon.parse(1),)))
    with pytest.raises(dm.RequestError):
        private.histogram(Bins("age", (text,)), epsilon=1)
    assert private.remaining() == Epsilon.parse(10)


@pytest.mark.parametrize("key", ["", "\ud800", "\x00", "x" * 201, "plan:abc"])
def test_request_keys_that_cannot_be_stored_are_refused(private: PrivateTable, key: str) -> None:
    with pytest.raises(dm.RequestError):
        private.count(epsilon=1, request_key=key)
    assert private.remaining() == Epsilon.parse(10)


def test_rows_read_another_way_are_another_root(tmp_path: Path) -> None:
    """Text "1.0" in a CSV file is a float in a frame: the same row, another cell. Roots add, so both are charged."""
    import pandas as pd

    schema = Schema("texts", (Nominal("a", ("1", "1.0", "other"), "other"),), 100)
    path = tmp_path / "texts.csv"
    path.write_text("a\n" + "1.0\n" * 50)
    ledger = tmp_path / "ledger.db"
    with dm.open(path, schema=schema, ledger=ledger, cap=4) as data:
        in_file = data.grant("mallory", epsilon=4).partition("a")["1.0"].count(epsilon=1)
    with dm.open(pd.read_csv(path), schema=schema, ledger=ledger, cap=4) as data:
        private = data.private("mallory")
        in_frame = private.partition("a")["1"].count(epsilon=1)
        assert private.remaining() == Epsilon.parse(2)
    assert int(in_file) > 20
    assert int(in_frame) > 20


def test_a_draft_that_was_in_use_stays_in_the_statement(tmp_path: Path) -> None:
    drafted = dataclasses.replace(SCHEMA, drafted=True)
    ledger = tmp_path / "ledger.db"
    with dm.open(columns(), schema=drafted, ledger=ledger, cap=4) as data:
        data.grant("alice", epsilon=1).count(epsilon=1)
    with dm.open(columns(), schema=SCHEMA, ledger=ledger, cap=4) as data:
        assert "drafted" in data.private("alice").statement().guarantee
        assert "drafted" in data.statement().guarantee
        bob = data.grant("bob", epsilon=1)
        bob.count(epsilon=1)
        assert "drafted" not in bob.statement().guarantee


def test_another_size_bound_is_another_choice_and_not_a_cached_one(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    for bound, left in ((1000, 3), (100_000, 2)):
        schema = dataclasses.replace(SCHEMA, rows_at_most=bound)
        with dm.open(columns(), schema=schema, ledger=ledger, cap=4) as data:
            private = data.grant("alice", epsilon=4)
            private.choose(["age"], score="infogain", epsilon=1)
            assert private.remaining() == Epsilon.parse(left)


def test_a_cache_is_usable_in_a_child_forked_while_a_thread_counts() -> None:
    table = encode(open_source(columns()), SCHEMA)
    table.cache.put(b"warm", 1, 1)
    child = os.fork()
    if child == 0:
        os._exit(0 if table.cache.get(b"warm") == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
