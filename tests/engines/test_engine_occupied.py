"""Inside the memory engine: occupied combinations however they are counted, counts in cells from counts of all rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from engine_reference import Reference
from engine_strategies import Asked, Small, keys, recodings, small_tables, steps, tables_with_questions
from engines_under_test import SPLIT_KEY, assert_counts, assert_occupied
from hypothesis import strategies as st
from support.twins import few_and_many
from test_engine_memory import encoded
from test_every_engine import COLOUR, CUTS, ILL, ROWS, SCHEMA, SIZE, split_by, with_repeated_keys

from dpmine.codes.rows import Cells, Recode, RowKey
from dpmine.codes.runs import labels_by_code
from dpmine.datasets import patients, patients_schema
from dpmine.engines import cache
from dpmine.engines.encoding import encode
from dpmine.engines.memory import MemoryEngine, sizes
from dpmine.engines.memory.rows import Rows
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.keys import AttributeKey, Bins, Key, Test
from dpmine.language.parsing import parse_predicate
from dpmine.language.resolver import resolve_cells
from dpmine.language.resolving_keys import resolve_key
from dpmine.language.rule_trees import leaf_paths
from dpmine.language.views import LEAF, Split


@few_and_many(tables_with_questions, few=6, many=40)
def test_combinations_are_the_same_in_an_array_or_sorted_and_in_one_chunk_or_in_many(
    drawn: tuple[Small, list[Asked]],
) -> None:
    small, questions = drawn
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    with pytest.MonkeyPatch.context() as patched:
        for counted_densely, chunk in itertools.product((0, 2**20), (5, 65_536)):
            patched.setattr(sizes, "DENSE", counted_densely)
            patched.setattr(sizes, "CHUNK", chunk)
            patched.setattr(sizes, "LONG_CHUNK", chunk)
            engine = MemoryEngine(encoded(small), SPLIT_KEY)
            for question in with_repeated_keys(questions):
                assert_occupied(engine, reference, question)


def test_tests_can_make_the_chunks_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or they would never see rows that cross a boundary."""
    monkeypatch.setattr(sizes, "CHUNK", 7)
    assert [part.stop - part.start for part in Rows(encoded(ROWS), SPLIT_KEY).chunks()] == [7] * 8 + [4]


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


@few_and_many(cells_of_one_attribute(), few=15, many=100)
def test_counts_in_an_attributes_values_are_what_looking_at_each_row_gives(drawn: tuple[Small, Asked]) -> None:
    small, question = drawn
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    engine = MemoryEngine(encoded(small), SPLIT_KEY)
    passes = Passes(engine)
    assert_counts(engine, reference, question)
    assert isinstance(question.rules, Split)
    of_codes = isinstance(resolve_key(question.rules.key, small.schema), Recode)  # cuts between codes need the rows
    assert any(cells.rules is None for cells, _ in passes.made) == of_codes  # it was derived
    assert_counts(engine, reference, question)


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
        assert_counts(engine, reference, Asked((), rules, (group,)))
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
    assert_counts(engine, reference, asked)
    monkeypatch.setattr(cache, "_into_cells", wrong)
    with pytest.raises(AssertionError):
        assert_counts(engine, reference, asked)


def all_recodes() -> Iterator[tuple[Key, int]]:
    for key in CUTS.values():
        yield key, 10 if "size" in str(key) else 4


def test_the_table_of_a_recoding_has_an_entry_for_every_code() -> None:
    reference = Reference(ROWS.table, SCHEMA, SPLIT_KEY)
    for key, codes in all_recodes():
        recode = resolve_key(key, SCHEMA)
        assert isinstance(recode, Recode)
        table = labels_by_code(recode, codes)
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
