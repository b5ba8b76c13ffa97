"""What is the memory engine's own (chunks, caches, trees that grow, ids of cells), held to looking at one row at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pytest
from engine_reference import Reference
from engine_strategies import Asked, Small, keys, rule_trees, small_tables, tables_with_questions
from engines_under_test import SPLIT_KEY, assert_counts
from hypothesis import given
from hypothesis import strategies as st
from support.twins import few_and_many

from dpmine.base.errors import RequestError
from dpmine.codes.rows import Cells
from dpmine.datasets import patients, patients_schema
from dpmine.engines.cache import Cache
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.memory import MemoryEngine, sizes
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.keys import AttributeKey, Key, Part, Test
from dpmine.language.parsing import parse_predicate
from dpmine.language.resolver import resolve_cells
from dpmine.language.resolving_keys import resolve_key, rounded
from dpmine.language.rule_trees import leaf_paths, split_leaf
from dpmine.language.views import LEAF, Rules, Split, Where


def encoded(small: Small) -> EncodedTable:
    return encode(open_source(small.table), small.schema)


@pytest.fixture
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "CHUNK", 7)


@few_and_many(tables_with_questions, few=12, many=80)
def test_rows_that_cross_the_chunk_boundary_are_counted_once(drawn: tuple[Small, list[Asked]]) -> None:
    small, questions = drawn
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    with pytest.MonkeyPatch.context() as patched:
        for chunk in (1, 7, max(small.rows, 1), small.rows + 1):
            patched.setattr(sizes, "CHUNK", chunk)
            engine = MemoryEngine(encoded(small), SPLIT_KEY)
            for question in questions:
                assert_counts(engine, reference, question)


@few_and_many(tables_with_questions, few=10, many=60)
def test_a_cache_that_forgets_changes_no_count(drawn: tuple[Small, list[Asked]]) -> None:
    small, questions = drawn
    table = encoded(small)
    table.cache = Cache(most_bytes=small.rows)
    engine = MemoryEngine(table, SPLIT_KEY)
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    for question in [*questions, *questions]:
        assert_counts(engine, reference, question)


def levels(rules: Rules, depth: int) -> Rules:
    """The rule tree down to a depth."""
    if depth == 0 or not isinstance(rules, Split):
        return LEAF
    return Split(rules.key, tuple(levels(child, depth - 1) for child in rules.children))


@few_and_many(
    small_tables().flatmap(lambda small: st.tuples(st.just(small), rule_trees(small.schema), keys(small.schema))),
    few=20,
    many=150,
)
def test_a_tree_that_grows_level_by_level_counts_like_one_asked_at_once(drawn: tuple[Small, Rules, Key]) -> None:
    small, rules, key = drawn
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    engine = MemoryEngine(encoded(small), SPLIT_KEY)
    for depth in range(4):
        assert_counts(engine, reference, Asked((), levels(rules, depth), ((key,), ())))
    assert_counts(MemoryEngine(encoded(small), SPLIT_KEY), reference, Asked((), rules, ((key,), ())))


@few_and_many(
    small_tables().flatmap(lambda small: st.tuples(st.just(small), st.lists(keys(small.schema), min_size=1, max_size=3))),
    few=20,
    many=100,
)
def test_a_tree_that_grows_leaf_by_leaf_counts_like_one_asked_at_once(drawn: tuple[Small, list[Key]]) -> None:
    small, drawn_keys = drawn
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    engine = MemoryEngine(encoded(small), SPLIT_KEY)
    rules: Rules = LEAF
    for number, key in enumerate(drawn_keys):
        leaves = sum(1 for _ in leaf_paths(rules))
        rules = split_leaf(rules, (number * 7) % leaves, key, len(key.labels(small.schema)))
        assert_counts(engine, reference, Asked((), rules, ((),)))


def test_two_engines_share_one_encoded_table_and_its_cache() -> None:
    small = Small(patients_schema(), {name: values for name, values in patients(500).items() if name != "patient_id"})
    table = encoded(small)
    question = Asked((), Split(Part("s", (1, 1)), (LEAF, LEAF)), ((AttributeKey("ward"),), ()))
    for split_key in (bytes(32), bytes(range(32)), bytes(32)):
        assert_counts(MemoryEngine(table, split_key), Reference(small.table, small.schema, split_key), question)


@pytest.mark.usefixtures("_small_chunks")
def test_patients_are_counted_like_row_by_row_over_a_deep_tree() -> None:
    small = Small(patients_schema(), {name: values for name, values in patients(300).items() if name != "patient_id"})
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    engine = MemoryEngine(encoded(small), SPLIT_KEY)
    rules: Rules = LEAF
    order: Iterator[Key] = itertools.cycle(
        [AttributeKey("blood_pressure"), AttributeKey("ward"), Test(parse_predicate("age >= 40")), Part("s", (4, 1))]
    )
    for number in range(30):
        leaves = sum(1 for _ in leaf_paths(rules))
        key = next(order)
        rules = split_leaf(rules, (number * 13) % leaves, key, len(key.labels(small.schema)))
        view = (Where(parse_predicate("not history contains flu")),)
        assert_counts(engine, reference, Asked(view, rules, ((AttributeKey("diagnosis"), AttributeKey("cough")), ())))


@pytest.mark.parametrize(("wide", "narrow"), [(86, 3), (43, 6), (128, 2), (300, 300), (4000, 17)])
def test_ids_of_cells_that_outgrow_one_byte_or_two_stay_apart(wide: int, narrow: int) -> None:
    schema = Schema(
        "wide",
        (
            Numeric("x", Decimal(0), Decimal(wide - 1), Decimal(1), Decimal(0)),
            Numeric("y", Decimal(0), Decimal(narrow - 1), Decimal(1), Decimal(0)),
        ),
        10_000,
    )
    table = {"x": [number % wide for number in range(9000)], "y": [number * 7 % narrow for number in range(9000)]}
    engine = MemoryEngine(encode(open_source(table), schema), SPLIT_KEY)
    x, y = AttributeKey("x"), AttributeKey("y")
    rules = Split(x, (Split(y, (LEAF,) * narrow),) * wide)
    (counts,) = engine.counts(resolve_cells((), rules, schema), [()])
    expected = np.zeros((wide, narrow), dtype=np.int64)
    for left, right in zip(table["x"], table["y"], strict=True):
        expected[left, right] += 1
    np.testing.assert_array_equal(counts.reshape(wide, narrow), expected)
    row_keys = (resolve_key(x, schema), resolve_key(y, schema))
    np.testing.assert_array_equal(engine.counts(resolve_cells((), LEAF, schema), [row_keys])[0][0], expected)


def test_hundreds_of_cells_of_narrow_keys_are_counted_like_the_histogram_by_those_keys() -> None:
    schema = patients_schema()
    names = ["blood_pressure", "weight", "temperature", "cough", "ward", "diagnosis"]
    table = encode(open_source(patients(3000)), schema)
    row_keys = tuple(resolve_key(AttributeKey(name), schema) for name in names)
    (histogram,) = MemoryEngine(table, SPLIT_KEY).counts(resolve_cells((), LEAF, schema), [row_keys])
    rules: Rules = LEAF
    for name in reversed(names):
        key = AttributeKey(name)
        rules = Split(key, (rules,) * len(key.labels(schema)))
        table.cache.clear()
        (counts,) = MemoryEngine(table, SPLIT_KEY).counts(resolve_cells((), rules, schema), [()])
        own = names[names.index(name) :]
        summed = histogram[0].sum(axis=tuple(range(len(names) - len(own))))
        np.testing.assert_array_equal(counts.ravel(), summed.ravel())


# -- rule trees --------------------------------------------------------------------------------------------------------


def test_a_leaf_that_is_not_there_cannot_be_split() -> None:
    rules = split_leaf(LEAF, 0, AttributeKey("a"), 2)
    assert split_leaf(rules, 1, AttributeKey("b"), 3) == Split(
        AttributeKey("a"), (LEAF, Split(AttributeKey("b"), (LEAF, LEAF, LEAF)))
    )
    for number in (2, 10):
        with pytest.raises(RequestError, match="has 2 leaves"):
            split_leaf(rules, number, AttributeKey("b"), 2)


# -- the cache ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)), max_size=40))
def test_the_cache_stays_within_its_bytes_and_forgets_the_least_recently_used(puts: list[tuple[int, int]]) -> None:
    cache = Cache(most_bytes=100)
    order: list[int] = []
    sizes: dict[int, int] = {}
    for name, size in puts:
        cache.put(bytes([name]), (name, size), size)
        sizes[name] = size
        order = [other for other in order if other != name] + [name]
        while sum(sizes[other] for other in order) > 100 and len(order) > 1:
            order.pop(0)
        for other in range(6):
            if other not in order:
                assert cache.get(bytes([other])) is None
        for other in order:
            assert cache.get(bytes([other])) == (other, sizes[other])
    cache.clear()
    assert all(cache.get(bytes([name])) is None for name in range(6))


# -- sums --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [253, 254, 255, 65_533, 65_534, 65_535, 2**30])
@pytest.mark.parametrize("missing", ["own", None])
def test_a_chunk_of_the_largest_amounts_and_of_gaps_is_summed_exactly(steps: int, missing: str | None) -> None:
    """Chunks are summed in 32 bits where these hold a chunk of gaps, and in no case where they do not."""
    chunk = sizes.CHUNK
    attribute = Numeric("x", Decimal(0), Decimal(steps), Decimal(steps), missing or Decimal(steps), Decimal(1))
    schema = Schema("largest", (attribute,), 10 * chunk)
    numbers = np.concatenate((np.full(chunk, np.nan), np.full(chunk, steps), np.full(10, steps), np.full(10, np.nan)))
    engine = MemoryEngine(encode(open_source({"x": numbers}), schema), SPLIT_KEY)
    amount = rounded(attribute, steps)
    rows = chunk + 10 if missing else 2 * chunk + 20
    assert engine.sums(Cells((), None), (amount,), ((0,), (1,))).tolist() == [[rows, rows * steps]]
