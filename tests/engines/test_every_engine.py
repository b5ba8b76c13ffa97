"""What every engine is held to: the integers of an engine that looks at one row at a time, for every question."""

from __future__ import annotations

import itertools
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_reference import Reference, RoundedKey
from engine_strategies import (
    Asked,
    AskedSums,
    Small,
    keys,
    rule_trees,
    small_tables,
    tables_of_persons,
    tables_with_questions,
    tables_with_sums,
)
from engines_under_test import (
    GAPS,
    KEPT,
    SPLIT_KEY,
    assert_counts,
    assert_occupied,
    assert_sums,
    every_engine,
    of_table,
    over,
    resolved,
)
from hypothesis import strategies as st
from support.twins import few_and_many

import dpmine as dm
from dpmine.codes.rows import Cells, InValues, Keep, RecodeValues
from dpmine.engines import registry
from dpmine.engines.encoding import encode
from dpmine.engines.opened import OpenedTable
from dpmine.engines.registry import ENGINES
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.keys import AttributeKey, Bins, Group, Groups, Key, Part, Test
from dpmine.language.parsing import parse_predicate
from dpmine.language.resolver import resolve_cells
from dpmine.language.views import LEAF, Cell, Rules, Split, Where


def test_every_engine_is_under_test() -> None:
    assert set(KEPT) == set(ENGINES)
    assert {gap.engine for gap in GAPS} <= set(ENGINES)


def test_every_gap_is_shown_by_a_test() -> None:
    tests = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    assert [gap.capability for gap in GAPS if f'@every_engine("{gap.capability}")' not in tests] == []


def test_another_engine_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it answers is what miners get, and what it holds is let go."""
    closed = []

    def open_nothing(table: Any, schema: Schema, memory_limit: str | None) -> OpenedTable:
        class Three:
            def ready(self) -> None: ...

            def counts(self, cells: Any, groups: Any) -> Any:
                return [np.full((1, *(key.size for key in group)), 3, dtype=np.int64) for group in groups]

        return OpenedTable(schema, "toy", lambda split_key: Three(), lambda: closed.append(table))  # type: ignore[arg-type]

    monkeypatch.setattr(registry, "ENGINES", {**ENGINES, "toy": open_nothing})
    schema = Schema("toy", (Nominal("x", ("a", "b"), "a", missing="a"),), 10)
    with dm.open("somewhere", schema=schema, ledger=None, cap=2000, engine="toy") as data:
        assert data.grant("alice", epsilon=2000).histogram("x", epsilon=1000).counts.tolist() == [3, 3]
    assert closed == ["somewhere"]
    with pytest.raises(dm.RequestError, match=r"must be 'memory' or 'duckdb' or 'toy'\. Got 'spark'"):
        dm.open("somewhere", schema=schema, ledger=None, cap=1, engine="spark")


def test_a_table_that_is_encoded_already_is_for_the_memory_engine_alone() -> None:
    schema = Schema("frame", (Nominal("x", ("a", "b"), "a", missing="a"),), 10)
    table = encode(open_source({"x": ["a", "b"]}), schema)
    for engine in set(ENGINES) - {"memory"}:
        with pytest.raises(dm.RequestError, match="reads files"):
            dm.open(table, schema=schema, cap=1, engine=engine)
    other = Schema("frame", (Nominal("x", ("a",), "a", missing="a"),), 10)
    with pytest.raises(dm.RequestError, match="encoded under another schema"):
        dm.open(table, schema=other, cap=1)


# -- counts ------------------------------------------------------------------------------------------------------------


@every_engine()
@few_and_many(tables_with_questions, few=10, many=150)
def test_every_count_is_what_looking_at_each_row_gives(engine: str, drawn: tuple[Small, list[Asked]]) -> None:
    small, questions = drawn
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    with over(engine, small) as made:
        for question in questions:
            assert_counts(made, reference, question)
        for question in reversed(questions):  # now from a warm cache, and in another order
            assert_counts(made, reference, question)


@every_engine()
@few_and_many(small_tables(most_rows=1), st.data(), few=5, many=100)
def test_tables_of_no_row_and_of_one_row_are_counted(engine: str, small: Small, data: st.DataObject) -> None:
    question = Asked((), data.draw(rule_trees(small.schema)), ((data.draw(keys(small.schema)),), ()))
    empty = Small(small.schema, {name: [] for name in small.table})
    one = Small(small.schema, {name: values[:1] for name, values in small.table.items()})
    for table in (empty, one):
        with over(engine, table) as made:
            assert_counts(made, Reference(table.table, table.schema, SPLIT_KEY), question)


@every_engine()
@pytest.mark.parametrize("size", [2, 100, 200, 255, 256, 257, 300])
def test_no_code_is_too_large_to_be_counted_from_any_cell_on(engine: str, size: int) -> None:
    """In 8 bits, code + first cell fails for large codes: whether one row is there would show as an error."""
    schema = Schema(
        "wide",
        (
            Nominal("zip", tuple(f"z{number}" for number in range(size)), "z0", missing="z0"),
            Nominal("ill", tuple(f"i{number}" for number in range(4)), "i0", missing="i0"),
        ),
        10_000,
    )
    table = {"zip": [f"z{row * 7 % size}" for row in range(1000)], "ill": [f"i{row % 4}" for row in range(1000)]}
    reference = Reference(table, schema, SPLIT_KEY)
    by_zip = Split(AttributeKey("zip"), (LEAF,) * size)
    every_other = Groups("zip", (Group("even", tuple(f"z{number}" for number in range(0, size, 2))),))
    with over(engine, Small(schema, table)) as made:
        assert_counts(made, reference, Asked((), Split(AttributeKey("ill"), (by_zip,) * 4), ((),)))
        assert_counts(made, reference, Asked((), LEAF, ((every_other,), (every_other, AttributeKey("ill")))))


@every_engine()
def test_rows_beyond_what_one_person_may_own_count_nowhere(engine: str) -> None:
    """All rows of a person are alike here, so that it does not matter which of them stay; nobody's rows go."""
    schema = Schema("visits", (Numeric("x", Decimal(0), Decimal(39), Decimal(1), Decimal(0)),), 1000, unit=Unit("who", 3))
    owned = [(f"person {person}", person, 1 + person % 6) for person in range(40)] + [(None, 7, 5)]
    table: dict[str, list[Any]] = {"x": [], "who": []}
    for name, x, rows in owned:
        table["x"] += [float(x)] * rows
        table["who"] += [name] * rows
    kept = {"x": [float(x) for name, x, rows in owned if name is not None for _ in range(min(rows, 3))]}
    with over(engine, Small(schema, table)) as made:
        assert_counts(made, Reference(kept, schema, SPLIT_KEY), Asked((), LEAF, ((AttributeKey("x"),), ())))


@every_engine()
@few_and_many(tables_of_persons, few=15, many=120)
def test_the_rows_of_a_person_that_count_are_those_of_the_smallest_hashes(engine: str, small: Small) -> None:
    """Which rows stay is told by every column: by values and gaps, so that rows that share all codes differ."""
    singles = [attribute for attribute in small.schema.attributes if not isinstance(attribute, ItemList)]
    of_values = [
        RoundedKey(one.name, one.values - 1) if isinstance(one, Numeric) else AttributeKey(one.name) for one in singles
    ]
    with over(engine, small) as made:
        reference = Reference(small.table, small.schema, SPLIT_KEY)
        assert_occupied(made, reference, Asked((), LEAF, (tuple(of_values),)))
        assert_counts(made, reference, Asked((Cell(Part("p", (1, 1)), 1),), LEAF, ((),)))


@every_engine()
def test_rows_that_hash_alike_are_taken_in_the_order_of_their_columns(engine: str) -> None:
    """The hash of a list does not see the order of its items; the first list in which two rows differ decides."""
    schema = Schema("lists", (ItemList("one", ("a", "b"), 2), ItemList("two", ("a", "b"), 2)), 10, unit=Unit("who", 1))
    table = {"one": ["b|a", "a|b", "a|b"], "two": ["a|b", "b|a", "b|a"], "who": ["ann", "ann", "bob"]}
    question = Asked((), LEAF, ((Part("p", (1,) * 64),),))
    kept = Reference({"one": ["a|b"] * 2, "two": ["b|a"] * 2}, schema, SPLIT_KEY)  # two copies, so in two parts
    for rows in (table, {name: values[::-1] for name, values in table.items()}):
        with over(engine, Small(schema, rows)) as made:
            assert_counts(made, kept, question)


@every_engine("frames")
def test_a_frame_is_opened_as_it_is(engine: str) -> None:
    schema = Schema("frame", (Nominal("x", ("a", "b"), "a", missing="a"),), 10)
    with of_table(engine, pa.table({"x": ["a", "b", "b"]}), schema) as make:
        assert make(SPLIT_KEY).counts(resolve_cells((), LEAF, schema), [resolved((AttributeKey("x"),), schema)])[
            0
        ].tolist() == [[1, 2]]


@every_engine()
def test_moments_are_categories_by_their_texts(engine: str, tmp_path: Any) -> None:
    schema = Schema("moments", (Nominal("x", ("1970-01-01", "1970-01-02"), "1970-01-02", missing="1970-01-02"),), 10)
    pq.write_table(pa.table({"x": pa.array([0, 0, 86_400 * 10**6], pa.timestamp("us"))}), tmp_path / "moments.parquet")
    with of_table(engine, tmp_path / "moments.parquet", schema) as make:
        assert make(SPLIT_KEY).counts(resolve_cells((), LEAF, schema), [resolved((AttributeKey("x"),), schema)])[
            0
        ].tolist() == [[2, 1]]


# -- occupied combinations ---------------------------------------------------------------------------------------------


def with_repeated_keys(questions: list[Asked]) -> list[Asked]:
    return [Asked(one.steps, one.rules, (*one.groups, *((*group, *group[:1]) for group in one.groups))) for one in questions]


@every_engine()
@few_and_many(tables_with_questions, few=5, many=40)
def test_occupied_combinations_are_those_that_looking_at_each_row_finds(
    engine: str, drawn: tuple[Small, list[Asked]]
) -> None:
    small, questions = drawn
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    with over(engine, small) as made:
        for question in with_repeated_keys(questions[:1]):
            assert_occupied(made, reference, question)


SCHEMA = Schema(
    "shops",
    (
        Nominal("colour", ("red", "blue", "grey", "black"), "red", missing="red"),
        Numeric("size", Decimal(0), Decimal(9), Decimal(1), Decimal(0)),
        Nominal("ill", ("no", "yes"), "no", missing="no"),
    ),
    1000,
    class_attribute="ill",
)
COLOUR, SIZE, ILL = AttributeKey("colour"), AttributeKey("size"), AttributeKey("ill")
EMPTY = Small(SCHEMA, {"colour": [], "size": [], "ill": []})
RANDOM = np.random.default_rng(3)
ROWS = Small(
    SCHEMA,
    {
        "colour": RANDOM.choice(["red", "blue", "grey", "black"], 60).tolist(),
        "size": RANDOM.integers(0, 10, 60).tolist(),
        "ill": RANDOM.choice(["no", "yes"], 60).tolist(),
    },
)
CUTS: dict[str, Key] = {
    "plain": COLOUR,
    "bins": Bins("size", ("3", "7")),
    "groups": Groups("colour", (Group("dull", ("grey", "black")), Group("red", ("red",)))),
    "groups out of order": Groups("colour", (Group("ends", ("red", "black")),)),
    "a plain number": SIZE,
}


def split_by(key: Key) -> Rules:
    return Split(key, (LEAF,) * len(key.labels(SCHEMA)))


@every_engine()
def test_an_empty_table_and_an_empty_view_occupy_nothing(engine: str) -> None:
    nowhere = (Where(parse_predicate("size > 100")),)
    for small, view in ((EMPTY, ()), (ROWS, nowhere)):
        with over(engine, small) as made:
            for rules in (LEAF, split_by(SIZE)):
                numbers, counts = made.occupied(resolve_cells(view, rules, SCHEMA), resolved((COLOUR,), SCHEMA))
                assert numbers.size == counts.size == 0
                assert numbers.dtype == counts.dtype == np.int64


@every_engine()
def test_more_combinations_than_memory_could_hold(engine: str) -> None:
    """Six keys of a thousand points each: 10^18 combinations."""
    names = [f"n{place}" for place in range(6)]
    schema = Schema("wide", tuple(Numeric(name, Decimal(0), Decimal(999), Decimal(1), Decimal(0)) for name in names), 100)
    codes = np.random.default_rng(1).integers(0, 1000, (40, 6))
    codes[20:] = codes[:20]
    table = {name: codes[:, place].tolist() for place, name in enumerate(names)}
    with over(engine, Small(schema, table)) as made:
        assert_occupied(made, Reference(table, schema, SPLIT_KEY), Asked((), LEAF, (tuple(map(AttributeKey, names)),)))


@every_engine()
@pytest.mark.parametrize("values", [254, 255, 256, 65_534, 65_535, 65_536])
def test_ranges_and_runs_of_values_may_end_with_the_gap(engine: str, values: int) -> None:
    """The end of all values is one more than a gap's, and the type that just holds a gap does not hold it."""
    attribute = Numeric("x", Decimal(0), Decimal(values - 1), Decimal(values - 1), "own", Decimal(1))
    schema = Schema("ends", (attribute,), 10)
    numbers = [0.0, 1.0, values - 2.0, values - 1.0, None]
    tails = [((first, values + 1),) for first in (0, 1, values - 1, values)]
    ranges = [*tails, ((0, 1), (2, values))]
    key = RecodeValues("x", ((0, 0), (1, 1), (values, 2)), 3)
    with over(engine, Small(schema, {"x": numbers})) as made:
        found = [made.counts(Cells((Keep(InValues("x", one)),), None), [(key,)])[0].tolist() for one in ranges]
    assert found == [[[1, 3, 1]], [[0, 3, 1]], [[0, 1, 1]], [[0, 0, 1]], [[1, 2, 0]]]


# -- sums --------------------------------------------------------------------------------------------------------------


@every_engine()
@few_and_many(tables_with_sums, few=15, many=150)
def test_sums_are_what_looking_at_each_row_gives(engine: str, drawn: tuple[Small, AskedSums]) -> None:
    small, question = drawn
    with over(engine, small) as made:
        assert_sums(made, Reference(small.table, small.schema, SPLIT_KEY), question)


LONG = Numeric("x", Decimal(0), Decimal(2**30), Decimal(2**20), "own", Decimal(1))
WHOLE = Numeric("whole", Decimal(0), Decimal(2**30), Decimal(2**20), Decimal(0), Decimal(1))
SHORT = Numeric("y", Decimal(-1), Decimal(2**15 - 1), Decimal(2**8), "drop", Decimal(1))
LIMITS = Schema("limits", (LONG, WHOLE, SHORT, Nominal("half", ("left", "right"), None)), 10_000)
AT_THE_LIMITS = {
    "x": [2.0**30, 2.0**40, None, 0.0, 1.0, 2.0**30 - 1] * 50,
    "whole": [2.0**30, -1.0, 3e9, None] * 75,
    "y": [2.0**15, None, -5.0, 2.0**15 - 1, 2.0**15 - 2] * 60,
    "half": ["left", "right", None] * 100,
}


@every_engine()
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(
    ("amounts", "powers"),
    [
        ((("x", 2**30),), ((0,), (1,))),
        ((("x", 2**30),), ((1,),)),
        ((("whole", 2**30),), ((0,), (1,))),
        ((("x", 2**15),), ((0,), (1,), (2,))),
        ((("whole", 2**15),), ((2,),)),
        ((("y", 2**15),), ((0,), (1,), (2,))),
        ((("x", 2**15), ("y", 2**15)), ((0, 0), (1, 0), (0, 1), (1, 1))),
        ((("x", 255), ("whole", 255)), ((1, 1), (2, 2))),
        ((("x", 254),), ((2,),)),
        ((("x", 65_534),), ((1,), (0,))),
    ],
)
def test_no_sum_leaves_its_integers(engine: str, amounts: Any, powers: Any, split: bool) -> None:
    """Rows at the upper bounds: in a type that just holds an amount its square, or the sum of two, would wrap."""
    rules = Split(AttributeKey("half"), (LEAF, Split(AttributeKey("half"), (LEAF,) * 3), LEAF)) if split else LEAF
    with over(engine, Small(LIMITS, AT_THE_LIMITS)) as made:
        assert_sums(made, Reference(AT_THE_LIMITS, LIMITS, SPLIT_KEY), AskedSums((), rules, amounts, powers))


@every_engine()
def test_sums_of_no_rows_and_of_gaps_alone_are_nothing(engine: str) -> None:
    nowhere = (Where(parse_predicate("y is missing and y is not missing")),)
    for table, view in (
        ({name: [] for name in AT_THE_LIMITS}, ()),
        (AT_THE_LIMITS, nowhere),
        (dict.fromkeys(AT_THE_LIMITS, [None] * 9), ()),
    ):
        with over(engine, Small(LIMITS, table)) as made:
            for rules in (LEAF, Split(AttributeKey("half"), (LEAF,) * 3)):
                asked_of = AskedSums(view, rules, (("x", 2**30), ("y", 2**15)), ((0, 0), (1, 0)))
                assert_sums(made, Reference(table, LIMITS, SPLIT_KEY), asked_of)


# -- counts in the values of one attribute, from the counts of all rows ------------------------------------------------


@every_engine()
@pytest.mark.parametrize("cut", CUTS)
def test_every_engine_derives_what_it_would_count(engine: str, cut: str) -> None:
    rules = split_by(CUTS[cut])
    large = (Where(parse_predicate("size >= 2")),)
    attribute = COLOUR if cut in ("plain", "groups", "groups out of order") else SIZE
    asked = [
        (ILL, attribute),
        (attribute,),
        (attribute, ILL, attribute),
        (ILL, SIZE, COLOUR),
        (ILL, Test(large[0].predicate)),
    ]
    reference = Reference(ROWS.table, SCHEMA, SPLIT_KEY)
    with over(engine, ROWS) as made:
        for view in ((), large):
            cells = resolve_cells(view, rules, SCHEMA)
            groups = [resolved(group, SCHEMA) for group in asked]
            direct: list[np.ndarray] = made._count(cells, groups)  # type: ignore[attr-defined]
            for derived, counted in zip(made.counts(cells, groups), direct, strict=True):
                assert derived.dtype == np.int64
                np.testing.assert_array_equal(derived, counted)
            assert_counts(made, reference, Asked(view, rules, tuple(asked)))


# -- models of the checks themselves -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mistake", ["one row too many", "cells in another order", "keys in another order"])
def test_a_planted_mistake_in_any_engine_is_caught(mistake: str) -> None:
    reference = Reference(ROWS.table, SCHEMA, SPLIT_KEY)
    question = Asked((), split_by(ILL), ((COLOUR, COLOUR), (COLOUR, SIZE)))

    class Wrong:
        def __init__(self, engine: Any) -> None:
            self._engine = engine

        def counts(self, cells: Any, groups: Any) -> Any:
            found = [counts.copy() for counts in self._engine.counts(cells, groups)]
            if mistake == "one row too many":
                found[1][0, 0, 0] += 1
            if mistake == "cells in another order":
                found = [counts[::-1] for counts in found]
            if mistake == "keys in another order":
                found[0][0, 0, 1], found[0][0, 1, 0] = 1, 1
            return found

    for name, wrong in itertools.product(ENGINES, (False, True)):
        with over(name, ROWS) as made:
            if not wrong:
                assert_counts(made, reference, question)
                continue
            with pytest.raises(AssertionError):
                assert_counts(Wrong(made), reference, question)  # type: ignore[arg-type]
