"""Occupied combinations, and counts in cells that follow from counts of all rows: held to looking at one row at a time."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_reference import Reference
from engine_strategies import Asked, Small, keys, recodings, small_tables, steps, tables_with_questions
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine_duckdb import engines, write_parquet
from test_engine_memory import SPLIT_KEY, assert_equal, encoded

from dpmine.datasets import patients, patients_schema
from dpmine.engines import cache, memory
from dpmine.engines.encoding import encode
from dpmine.engines.memory import MemoryEngine
from dpmine.expression_text import parse_predicate
from dpmine.expressions import AttributeKey, Bins, Group, Groups, Key, Test
from dpmine.frames import open_source
from dpmine.plans import Cells, Recode, RowKey
from dpmine.queries import LEAF, Rules, Split, Where, leaf_paths
from dpmine.resolution import resolve_cells, resolve_key
from dpmine.schema import ItemList, Nominal, Numeric, Schema


def assert_occupied(engine: Any, reference: Reference, question: Asked) -> None:
    schema = reference.schema
    cells = resolve_cells(question.steps, question.rules, schema)
    for group in question.groups:
        sizes = [reference.size(key) for key in group]
        expected = {}
        for place, count in reference.counts(question.steps, question.rules, group).items():
            number = 0
            for digit, size in zip(place, [1, *sizes], strict=True):
                number = number * size + digit
            expected[number] = count
        numbers, counts = engine.occupied(cells, tuple(resolve_key(key, schema) for key in group))
        assert numbers.dtype == counts.dtype == np.int64
        assert numbers.tolist() == sorted(expected)
        assert counts.tolist() == [expected[number] for number in sorted(expected)]


def with_repeated_keys(questions: Sequence[Asked]) -> list[Asked]:
    return [Asked(one.steps, one.rules, (*one.groups, *((*group, *group[:1]) for group in one.groups))) for one in questions]


@given(tables_with_questions)
@settings(max_examples=30)
def test_the_memory_engine_finds_what_looking_at_each_row_finds(drawn: tuple[Small, list[Asked]]) -> None:
    """Counted in an array or sorted, in one chunk or in many."""
    small, questions = drawn
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    with pytest.MonkeyPatch.context() as patched:
        for counted_densely, chunk in itertools.product((0, 2**20), (5, 65_536)):
            patched.setattr(memory, "DENSE", counted_densely)
            patched.setattr(memory, "CHUNK", chunk)
            patched.setattr(memory, "LONG_CHUNK", chunk)
            engine = MemoryEngine(encoded(small), SPLIT_KEY)
            for question in with_repeated_keys(questions):
                assert_occupied(engine, reference, question)


@given(tables_with_questions)
@settings(max_examples=6)
def test_the_duckdb_engine_finds_what_looking_at_each_row_finds(drawn: tuple[Small, list[Asked]]) -> None:
    small, questions = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.parquet"
        write_parquet(small, path)
        engine = engines(path, small.schema)[1]
        reference = Reference(small.table, small.schema, SPLIT_KEY)
        for question in with_repeated_keys(questions[:1]):
            assert_occupied(engine, reference, question)


SCHEMA = Schema(
    "shops",
    (
        Nominal("colour", ("red", "blue", "grey", "black"), "red"),
        Numeric("size", Decimal(0), Decimal(9), Decimal(1), Decimal(0)),
        Nominal("ill", ("no", "yes"), "no"),
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


@pytest.mark.parametrize("densely", [0, 2**20])
def test_an_empty_table_and_an_empty_view_occupy_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, densely: int
) -> None:
    monkeypatch.setattr(memory, "DENSE", densely)
    nowhere = (Where(parse_predicate("size > 100")),)
    write_parquet(EMPTY, tmp_path / "empty.parquet")
    write_parquet(ROWS, tmp_path / "rows.parquet")
    for small, view, path in ((EMPTY, (), "empty.parquet"), (ROWS, nowhere, "rows.parquet")):
        for engine in (MemoryEngine(encoded(small), SPLIT_KEY), engines(tmp_path / path, SCHEMA)[1]):
            for rules in (LEAF, split_by(SIZE)):
                cells = resolve_cells(view, rules, SCHEMA)
                numbers, counts = engine.occupied(cells, (resolve_key(COLOUR, SCHEMA),))
                assert numbers.size == counts.size == 0
                assert numbers.dtype == counts.dtype == np.int64


def test_more_combinations_than_memory_could_hold() -> None:
    """Nine keys of a thousand points each: 10^27 would not fit, 10^18 do."""
    names = [f"n{place}" for place in range(6)]
    schema = Schema("wide", tuple(Numeric(name, Decimal(0), Decimal(999), Decimal(1), Decimal(0)) for name in names), 100)
    codes = np.random.default_rng(1).integers(0, 1000, (40, 6))
    codes[20:] = codes[:20]
    engine = MemoryEngine(
        encode(open_source({name: codes[:, place].tolist() for place, name in enumerate(names)}), schema), SPLIT_KEY
    )
    numbers, counts = engine.occupied(
        resolve_cells((), LEAF, schema), tuple(resolve_key(AttributeKey(name), schema) for name in names)
    )
    expected = sorted({sum(int(code) * 1000 ** (5 - place) for place, code in enumerate(row)) for row in codes})
    assert numbers.tolist() == expected
    assert counts.tolist() == [2] * len(expected)


def test_tests_can_make_the_chunks_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or they would never see rows that cross a boundary."""
    monkeypatch.setattr(memory, "CHUNK", 7)
    assert [part.stop - part.start for part in MemoryEngine(encoded(ROWS), SPLIT_KEY)._chunks()] == [7] * 8 + [4]


# -- counts in the values of one attribute, from the counts of all rows ------------------------------------------------


class Passes:
    """How often an engine reads its rows, and in which cells."""

    def __init__(self, engine: Any) -> None:
        self.made: list[tuple[Cells, list[tuple[RowKey, ...]]]] = []
        real = engine._count

        def counted(cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> Any:
            self.made.append((cells, list(groups)))
            return real(cells, groups)

        engine._count = counted


def derivable(schema: Schema) -> list[Nominal | Numeric]:
    return [attribute for attribute in schema.attributes if not isinstance(attribute, ItemList)]


@st.composite
def cells_of_one_attribute(draw: st.DrawFn) -> tuple[Small, Asked]:
    """Cells that are the values, bins or groups of an attribute; some groups count that attribute, some do not."""
    small = draw(small_tables().filter(lambda small: bool(derivable(small.schema))))
    attribute = draw(st.sampled_from(derivable(small.schema)))
    plain = AttributeKey(attribute.name)
    by = plain if draw(st.booleans()) else draw(recodings(attribute))
    view = tuple(draw(st.lists(steps(small.schema), max_size=2)))
    groups = draw(st.lists(st.lists(keys(small.schema), max_size=2).map(tuple), max_size=2))
    for more in draw(st.lists(st.lists(keys(small.schema), max_size=2), min_size=1, max_size=2)):
        place = draw(st.integers(0, len(more)))
        groups.append((*more[:place], plain, *more[place:]))
    groups = draw(st.permutations(groups))
    return small, Asked(view, Split(by, (LEAF,) * len(by.labels(small.schema))), tuple(groups))


@given(cells_of_one_attribute())
@settings(max_examples=50)
def test_counts_in_an_attributes_values_are_what_looking_at_each_row_gives(drawn: tuple[Small, Asked]) -> None:
    small, question = drawn
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    engine = MemoryEngine(encoded(small), SPLIT_KEY)
    passes = Passes(engine)
    assert_equal(engine, reference, question)
    assert any(cells.rules is None for cells, _ in passes.made)  # it was derived
    assert_equal(engine, reference, question)


@pytest.mark.parametrize("cut", CUTS)
def test_both_engines_derive_what_they_would_count(tmp_path: Path, cut: str) -> None:
    write_parquet(ROWS, tmp_path / "rows.parquet")
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
    groups = [tuple(resolve_key(key, SCHEMA) for key in group) for group in asked]
    for view, engine in itertools.product(((), large), engines(tmp_path / "rows.parquet", SCHEMA)):
        cells = resolve_cells(view, rules, SCHEMA)
        direct = engine._count(cells, groups)
        for derived, counted in zip(engine.counts(cells, groups), direct, strict=True):
            assert derived.dtype == np.int64
            np.testing.assert_array_equal(derived, counted)


def test_cells_of_one_attribute_need_no_pass_of_their_own() -> None:
    """One pass over all rows answers every cut of an attribute; groups that do not hold it are counted once."""
    engine = MemoryEngine(encoded(ROWS), SPLIT_KEY)
    passes = Passes(engine)
    groups = [(resolve_key(ILL, SCHEMA), resolve_key(key, SCHEMA)) for key in (COLOUR, SIZE)]
    engine.counts(resolve_cells((), LEAF, SCHEMA), groups)
    assert len(passes.made) == 1
    for cut in CUTS.values():
        attribute = getattr(cut, "attribute")  # noqa: B009
        engine.counts(resolve_cells((), split_by(cut), SCHEMA), [groups[0] if attribute == "colour" else groups[1]])
    assert len(passes.made) == 1
    engine.counts(resolve_cells((), split_by(CUTS["bins"]), SCHEMA), groups)
    assert len(passes.made) == 2
    assert passes.made[1][1] == [groups[0]]  # only the one that the bins of size do not decide
    engine.counts(resolve_cells((), split_by(CUTS["bins"]), SCHEMA), groups)
    assert len(passes.made) == 2


def test_finer_cells_and_other_keys_are_counted_row_by_row() -> None:
    engine = MemoryEngine(encoded(ROWS), SPLIT_KEY)
    passes = Passes(engine)
    finer = Split(COLOUR, (split_by(ILL), LEAF, LEAF, LEAF))
    by_test = Split(Test(parse_predicate("size >= 2")), (LEAF, LEAF))
    reference = Reference(ROWS.table, SCHEMA, SPLIT_KEY)
    for rules in (finer, by_test, split_by(CUTS["bins"])):
        group = (CUTS["bins"],) if rules == split_by(CUTS["bins"]) else (ILL, COLOUR, SIZE)
        assert_equal(engine, reference, Asked((), rules, (group,)))
        assert passes.made[-1][0].rules is not None
    assert len(passes.made) == 3


@pytest.mark.parametrize("mistake", ["the wrong cell", "every cell", "the place of another key"])
def test_the_check_of_derived_counts_catches(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    real = cache._into_cells

    def wrong(by: Recode, group: tuple[RowKey, ...], counts: np.ndarray) -> np.ndarray:
        if mistake == "the wrong cell":
            return np.roll(real(by, group, counts), 1, axis=0)
        if mistake == "every cell":
            return np.broadcast_to(counts, (by.size, *counts.shape)).astype(np.int64)
        return real(by, group[::-1], counts)

    engine = MemoryEngine(encoded(ROWS), SPLIT_KEY)
    reference = Reference(ROWS.table, SCHEMA, SPLIT_KEY)
    asked = Asked((), split_by(CUTS["groups"]), ((COLOUR, Bins("size", ("2", "4", "6"))),))
    assert_equal(engine, reference, asked)
    monkeypatch.setattr(cache, "_into_cells", wrong)
    with pytest.raises(AssertionError):
        assert_equal(engine, reference, asked)


def all_recodes() -> Iterator[tuple[Key, int]]:
    for key in CUTS.values():
        yield key, 10 if "size" in str(key) else 4


def test_the_table_of_a_recoding_has_an_entry_for_every_code() -> None:
    reference = Reference(ROWS.table, SCHEMA, SPLIT_KEY)
    for key, codes in all_recodes():
        recode = resolve_key(key, SCHEMA)
        assert isinstance(recode, Recode)
        table = recode.table(codes)
        assert len(table) == codes
        plain = AttributeKey(recode.attribute)
        for place in range(60):
            assert table[reference.label(plain, place)] == reference.label(key, place)


def test_a_large_table_is_counted_the_same_in_cells_of_one_attribute() -> None:
    """Several chunks of the patients, and all cuts of a numeric attribute with many points."""
    schema = patients_schema()
    table = encode(open_source(patients(70_000)), schema)
    engine, again = MemoryEngine(table, SPLIT_KEY), MemoryEngine(table, SPLIT_KEY)
    age, ward = AttributeKey("age"), AttributeKey("ward")
    for cut in (Bins("age", ("18", "65")), ward):
        rules = Split(cut, (LEAF,) * len(cut.labels(schema)))
        cells = resolve_cells((), rules, schema)
        group = (resolve_key(ward, schema), resolve_key(age, schema))
        np.testing.assert_array_equal(engine.counts(cells, [group])[0], again._count(cells, [group])[0])
        numbers, counts = engine.occupied(cells, group)
        dense = np.zeros(math.prod((len(list(leaf_paths(rules))), *(key.size for key in group))), dtype=np.int64)
        dense[numbers] = counts
        np.testing.assert_array_equal(dense, again._count(cells, [group])[0].ravel())
