"""Nearest centres, bands of distance and sums of clipped offsets: every engine has the integers that Python's have."""

from __future__ import annotations

import itertools
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_reference import Reference
from engine_strategies import Small, banded_keys, nearest_keys, numbers_of, small_tables, steps
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine_duckdb import Engines, engines, write_parquet

from dpmine.engines import memory
from dpmine.engines.duckdb import DuckDBEngine, DuckDBTable
from dpmine.engines.encoding import encode
from dpmine.engines.memory import MemoryEngine
from dpmine.engines.persons import capped
from dpmine.engines.sql import CountQuery
from dpmine.expression_text import parse_predicate
from dpmine.expressions import Bins, Key
from dpmine.frames import FileSource, open_source
from dpmine.model_keys import (
    LARGEST_DISTANCE,
    LARGEST_POSITION,
    MOST_CENTRES,
    MOST_DIMENSIONS,
    Nearest,
    NearestBands,
)
from dpmine.plans import Cells, ClippedSums, NearestCentre
from dpmine.queries import LEAF, Cell, Rules, Split, Step, Where
from dpmine.resolution import resolve_cells, resolve_key
from dpmine.schema import Nominal, Numeric, Schema, Unit

SPLIT_KEY = bytes(range(32))


def number(name: str, points: int) -> Numeric:
    return Numeric(name, Decimal(0), Decimal(points - 1), Decimal(1), Decimal(0))


SCHEMA = Schema("plane", (number("x", 40), number("y", 10), Nominal("colour", ("red", "blue"), "red")), 10_000)
ROWS = 160
RANDOM = np.random.default_rng(7)
TABLE: dict[str, list[Any]] = {
    "x": RANDOM.integers(-3, 45, ROWS).astype(float).tolist(),  # some are clamped
    "y": RANDOM.integers(0, 10, ROWS).astype(float).tolist(),
    "colour": RANDOM.choice(["red", "blue"], ROWS).tolist(),
}
CORNERS = Nearest(("x", "y"), (3, 7), ((0, 0), (117, 0), (0, 63), (117, 63), (58, 31)))
TIED = Nearest(("y", "x"), (2, 1), ((4, 6), (4, 6), (8, 10), (0, 2), (4, 14)))
ONE = Nearest(("x",), (1,), ((17,),))
KEYS: dict[str, Key] = {
    "five centres": CORNERS,
    "ties": TIED,
    "one centre": ONE,
    "many centres": Nearest(("x", "y"), (1, 1), tuple((place * 7 % 40, place * 3 % 10) for place in range(300))),
    "bands": NearestBands(CORNERS, (1, 50, 400, 401, 1000)),
    "bands of ties": NearestBands(TIED, (0, 1, 2, 5)),
    "bands around one centre": NearestBands(ONE, (1, 4, 9, 16, 529)),
    "bands that nobody reaches": NearestBands(ONE, (LARGEST_DISTANCE - 1, LARGEST_DISTANCE)),
}


def expected(reference: Reference, view: tuple[Step, ...], rules: Rules, keys: tuple[Key, ...], leaves: int) -> np.ndarray:
    counts = np.zeros((leaves, *(reference.size(key) for key in keys)), dtype=np.int64)
    for place, count in reference.counts(view, rules, keys).items():
        counts[place] = count
    return counts


def clipped(nearest: Nearest, schema: Schema, origins: Any, radii: Any) -> ClippedSums:
    resolved = resolve_key(nearest, schema)
    assert isinstance(resolved, NearestCentre)
    return ClippedSums(resolved, tuple(map(tuple, origins)), tuple(radii))


@pytest.fixture(scope="module")
def pair() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plane.parquet"
        write_parquet(Small(SCHEMA, TABLE), path)
        yield engines(path, SCHEMA)


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference(TABLE, SCHEMA, SPLIT_KEY)


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KEYS)
def test_every_row_has_the_label_that_whole_numbers_give_it(pair: Engines, reference: Reference, name: str) -> None:
    """In a histogram, as a view's step, as a split of the rule tree."""
    key = KEYS[name]
    labels = reference.size(key)
    low = Bins("x", ("11",))
    asked: list[tuple[tuple[Step, ...], Rules, tuple[Key, ...], int]] = [
        ((), LEAF, (key, low), 1),
        ((Cell(key, labels - 1), Where(parse_predicate("colour == red"))), LEAF, (low,), 1),
        ((), Split(low, (LEAF, Split(key, (LEAF,) * labels))), (low,), labels + 1),
    ]
    for view, rules, keys, leaves in asked:
        wanted = expected(reference, view, rules, keys, leaves)
        for engine in pair:
            found = engine.counts(resolve_cells(view, rules, SCHEMA), [tuple(resolve_key(one, SCHEMA) for one in keys)])[0]
            np.testing.assert_array_equal(found, wanted)


def test_the_examples_use_the_whole_range_of_labels(reference: Reference) -> None:
    for name, key in KEYS.items():
        seen = {reference.label(key, place) for place in range(ROWS)}
        assert len(seen) > 2 or name in ("one centre", "bands that nobody reaches"), name
    assert {reference.label(TIED, place) for place in range(ROWS)} == {0, 2, 3, 4}  # of two equal centres the first
    ties = [reference.squared_distances(TIED, place) for place in range(ROWS)]
    assert sum(min(one[2:]) == one[0] for one in ties) > 5


def test_a_cluster_and_its_bands_are_counted_together(pair: Engines, reference: Reference) -> None:
    """Both read the same distances; two kinds of bands of one clustering, and of two, share nothing by mistake."""
    keys = (CORNERS, NearestBands(CORNERS, (100, 300)), NearestBands(CORNERS, (200,)), NearestBands(ONE, (200,)))
    groups = [keys, (keys[1],), (keys[0], keys[3])]
    resolved = [tuple(resolve_key(key, SCHEMA) for key in group) for group in groups]
    for engine in pair:
        for group, counts in zip(groups, engine.counts(resolve_cells((), LEAF, SCHEMA), resolved), strict=True):
            np.testing.assert_array_equal(counts, expected(reference, (), LEAF, group, 1))


def test_the_sql_grows_with_the_number_of_centres_and_bands_and_not_with_their_product() -> None:
    def length(centres: int, bands: int) -> int:
        key = NearestBands(
            Nearest(("x", "y"), (1, 1), tuple((place % 40, place % 10) for place in range(centres))), tuple(range(bands))
        )
        query, _ = CountQuery(SCHEMA, SPLIT_KEY).counts(resolve_cells((), LEAF, SCHEMA), [(resolve_key(key, SCHEMA),)])
        return len(query.sql(dialect="duckdb"))

    assert length(100, 100) < 1.2 * (length(100, 1) + length(1, 100))


# -- the limits --------------------------------------------------------------------------------------------------------

WIDE = Schema("wide", tuple(number(f"n{place}", 2) for place in range(MOST_DIMENSIONS)), 1000)
NAMES = tuple(attribute.name for attribute in WIDE.attributes)
WIDE_TABLE = {
    name: [0.0, 1.0, *(float(bits >> (place % 8) & 1) for bits in range(20)), *([float(place == 0)] * 3)]
    for place, name in enumerate(NAMES)
}
ALL = (LARGEST_POSITION,) * MOST_DIMENSIONS
NONE = (0,) * MOST_DIMENSIONS
ONE_LESS = (*ALL[1:], LARGEST_POSITION - 1)


@pytest.fixture(scope="module")
def wide_pair() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wide.parquet"
        write_parquet(Small(WIDE, WIDE_TABLE), path)
        yield engines(path, WIDE)


def test_the_largest_positions_in_32_dimensions_are_told_apart_by_one(wide_pair: Engines) -> None:
    """Squared distances up to 2^51, and centres that differ by one position."""
    reference = Reference(WIDE_TABLE, WIDE, SPLIT_KEY)
    far = Nearest(NAMES, ALL, (ONE_LESS, ALL, (1, *NONE[1:])))
    alone = Nearest(NAMES, ALL, (NONE,))
    edges = (1, 2**46, 2**46 + 1, 5 * 2**46, LARGEST_DISTANCE - 1, LARGEST_DISTANCE)
    for keys in ((far,), (NearestBands(far, (1, 2, 2**46 - 1, 2**46)),), (NearestBands(alone, edges),)):
        wanted = expected(reference, (), LEAF, keys, 1)
        for engine in wide_pair:
            found = engine.counts(resolve_cells((), LEAF, WIDE), [tuple(resolve_key(key, WIDE) for key in keys)])[0]
            np.testing.assert_array_equal(found, wanted)
    distances = [min(reference.squared_distances(alone, place)) for place in range(len(reference.rows))]
    assert max(distances) == LARGEST_DISTANCE == 2**51
    assert min(distances) == 0
    assert {reference.label(far, place) for place in range(len(reference.rows))} == {0, 1, 2}


def test_the_largest_offsets_and_radii_in_32_dimensions(wide_pair: Engines) -> None:
    reference = Reference(WIDE_TABLE, WIDE, SPLIT_KEY)
    nearest = Nearest(NAMES, ALL, (ALL, NONE))
    below = (-LARGEST_POSITION,) * MOST_DIMENSIONS
    largest = LARGEST_POSITION * MOST_DIMENSIONS
    for radii, origins in (
        ((largest, largest), (below, below)),
        ((largest - 1, 1), (NONE, ALL)),
        ((12_345_677, 2**23 + 1), (NONE, below)),
    ):
        wanted = reference.clipped_sums((), nearest, origins, radii)
        for engine in wide_pair:
            found = engine.clipped_sums(resolve_cells((), LEAF, WIDE), clipped(nearest, WIDE, origins, radii))
            assert found.dtype == np.int64
            assert found.tolist() == wanted
    offsets = [x - o for x, o in zip(reference.position(nearest, 1), below, strict=True)]
    assert set(offsets) == {2**24}


# -- sums of clipped offsets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [memory.CHUNK, 7])
@pytest.mark.parametrize("name", ["five centres", "ties", "one centre"])
def test_sums_of_clipped_offsets(
    pair: Engines, reference: Reference, name: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Radii that no offset, some offsets and all offsets exceed; in the whole table, a view, a part of the clusters."""
    monkeypatch.setattr(memory, "CHUNK", chunk)
    monkeypatch.setattr(memory, "NEAREST_AT_ONCE", 3)
    nearest = KEYS[name]
    assert isinstance(nearest, Nearest)
    draw = np.random.default_rng(3)
    clusters, dimensions = len(nearest.centres), len(nearest.attributes)
    views: list[tuple[Step, ...]] = [(), (Where(parse_predicate("colour == blue and x >= 9")),), (Cell(CORNERS, 2),)]
    for view, radii in itertools.product(
        views, ([10**6] * clusters, draw.integers(1, 40, clusters).tolist(), [1] * clusters)
    ):
        origins = draw.integers(-20, 60, (clusters, dimensions)).tolist()
        wanted = reference.clipped_sums(view, nearest, origins, radii)
        for engine in pair:
            found = engine.clipped_sums(resolve_cells(view, LEAF, SCHEMA), clipped(nearest, SCHEMA, origins, radii))
            assert found.tolist() == wanted


def test_offsets_are_shortened_towards_0_on_both_sides(pair: Engines) -> None:
    """(7, -4) shortened to 5 is (35/11, -20/11): 3 and -1, not -2."""
    schema = Schema("two", (number("x", 12), number("y", 12)), 10)
    nearest = Nearest(("x", "y"), (1, 1), ((0, 0),))
    table = {"x": [11.0], "y": [0.0]}
    with tempfile.TemporaryDirectory() as folder:
        write_parquet(Small(schema, table), Path(folder) / "two.parquet")
        for engine in engines(Path(folder) / "two.parquet", schema):
            for origin, wanted in (((4, 4), [3, -1]), ((11, 4), [0, -4]), ((18, -4), [-3, 1]), ((11, 0), [0, 0])):
                assert engine.clipped_sums(Cells((), None), clipped(nearest, schema, [origin], [5])).tolist() == [wanted]


@pytest.mark.parametrize("name", KEYS)
def test_an_empty_table_has_no_rows_and_no_sums(name: str, tmp_path: Path) -> None:
    write_parquet(Small(SCHEMA, {column: [] for column in TABLE}), tmp_path / "empty.parquet")
    key = KEYS[name]
    resolved = resolve_key(key, SCHEMA)
    for engine in engines(tmp_path / "empty.parquet", SCHEMA):
        (counts,) = engine.counts(resolve_cells((), LEAF, SCHEMA), [(resolved,)])
        assert counts.tolist() == [[0] * resolved.size]
        if isinstance(key, Nearest):
            zeros = [[0] * len(key.attributes)] * resolved.size
            sums = engine.clipped_sums(resolve_cells((), LEAF, SCHEMA), clipped(key, SCHEMA, zeros, [1] * resolved.size))
            assert sums.tolist() == zeros


@pytest.mark.parametrize(("centres", "engine"), [(MOST_CENTRES, 0), (300, 1)])
def test_many_centres_with_rows_in_one_of_them(pair: Engines, centres: int, engine: int) -> None:
    nearest = Nearest(("x", "y"), (1, 1), (*((LARGEST_POSITION, place) for place in range(centres - 1)), (20, 5)))
    question = clipped(nearest, SCHEMA, [(20, 5)] * centres, [9] * centres)
    found = pair[engine].clipped_sums(resolve_cells((), LEAF, SCHEMA), question)
    alone = clipped(Nearest(("x", "y"), (1, 1), ((20, 5),)), SCHEMA, [(20, 5)], [9])
    assert found[-1].tolist() == pair[engine].clipped_sums(resolve_cells((), LEAF, SCHEMA), alone)[0].tolist()
    assert not found[:-1].any()
    assert found[-1].any()


def test_rows_beyond_what_one_person_may_own_count_nowhere(tmp_path: Path) -> None:
    """All rows of a person are alike here, so that it does not matter which of them stay."""
    at_most = 3
    schema = Schema("visits", (number("x", 40), number("y", 10)), 1000, unit=Unit("who", at_most))
    owned = [1 + person % 6 for person in range(40)]
    table: dict[str, list[Any]] = {"x": [], "y": [], "who": []}
    kept: dict[str, list[Any]] = {"x": [], "y": []}
    for person, rows in enumerate(owned):
        values = {"x": float(person), "y": float(person * 3 % 10)}
        for name, value in values.items():
            table[name] += [value] * rows
            kept[name] += [value] * min(rows, at_most)
        table["who"] += [f"person {person}"] * rows
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table(table), path)
    reference = Reference(kept, schema, SPLIT_KEY)
    in_memory = MemoryEngine(capped(encode(open_source(path), schema), SPLIT_KEY), SPLIT_KEY)
    in_files = DuckDBEngine(DuckDBTable(schema, FileSource(path, keep_in_files=True)), SPLIT_KEY)
    question = clipped(CORNERS, schema, [(5, 5)] * 5, [20, 1, 300, 7, 50])
    keys = (CORNERS, NearestBands(CORNERS, (100, 900)))
    for engine in (in_memory, in_files):
        assert engine.clipped_sums(Cells((), None), question).tolist() == reference.clipped_sums(
            (), CORNERS, question.origins, question.radii
        )
        (counts,) = engine.counts(Cells((), None), [tuple(resolve_key(key, schema) for key in keys)])
        np.testing.assert_array_equal(counts, expected(reference, (), LEAF, keys, 1))


@st.composite
def tables_with_centres(draw: st.DrawFn) -> tuple[Small, Nearest, tuple[Any, ...], tuple[Step, ...]]:
    small = draw(small_tables().filter(lambda small: bool(numbers_of(small.schema))))
    nearest = draw(nearest_keys(small.schema))
    places = st.integers(-5, 20) | st.sampled_from([-LARGEST_POSITION, 0, LARGEST_POSITION])
    radii = st.integers(1, 20) | st.sampled_from([1, LARGEST_POSITION, LARGEST_POSITION * MOST_DIMENSIONS])
    origins = tuple(draw(st.tuples(*[places] * len(nearest.attributes))) for _ in nearest.centres)
    view = tuple(draw(st.lists(steps(small.schema), max_size=1)))
    return small, nearest, (origins, tuple(draw(radii) for _ in nearest.centres)), view


@given(tables_with_centres(), st.data())
@settings(max_examples=20)
def test_any_centres_on_any_small_table(drawn: Any, data: st.DataObject) -> None:
    small, nearest, (origins, radii), view = drawn
    keys = (nearest, data.draw(banded_keys(small.schema)))
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    wanted = expected(reference, view, LEAF, keys, 1)
    sums = reference.clipped_sums(view, nearest, origins, radii)
    cells = resolve_cells(view, LEAF, small.schema)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.parquet"
        write_parquet(small, path)
        for engine in engines(path, small.schema):
            found = engine.counts(cells, [tuple(resolve_key(key, small.schema) for key in keys)])[0]
            np.testing.assert_array_equal(found, wanted)
            assert engine.clipped_sums(cells, clipped(nearest, small.schema, origins, radii)).tolist() == sums


# -- planted mistakes --------------------------------------------------------------------------------------------------


def test_planted_mistakes_in_distances_are_caught(reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equally near goes to the last centre; bands hold their upper edge; distances in 32-bit floats; floor instead of
    towards 0; clipped per coordinate."""
    wide_reference = Reference(WIDE_TABLE, WIDE, SPLIT_KEY)
    far = Nearest(NAMES, ALL, (ONE_LESS, ALL, (1, *NONE[1:])))
    origins, radii = [(9, 30)] * 5, [20] * 5

    def labels_right(key: Key, table: Any, schema: Schema, truth: Reference) -> bool:
        engine = MemoryEngine(encode(open_source(table), schema), SPLIT_KEY)
        found = engine.counts(Cells((), None), [(resolve_key(key, schema),)])[0]
        return bool((found == expected(truth, (), LEAF, (key,), 1)).all())

    def ties_right() -> bool:
        return labels_right(TIED, TABLE, SCHEMA, reference)

    def bands_right() -> bool:
        return labels_right(KEYS["bands of ties"], TABLE, SCHEMA, reference)

    def far_right() -> bool:
        return labels_right(far, WIDE_TABLE, WIDE, wide_reference)

    def sums_right() -> bool:
        engine = MemoryEngine(encode(open_source(TABLE), SCHEMA), SPLIT_KEY)
        found = engine.clipped_sums(Cells((), None), clipped(CORNERS, SCHEMA, origins, radii))
        return bool(found.tolist() == reference.clipped_sums((), CORNERS, origins, radii))

    assert ties_right()
    assert bands_right()
    assert far_right()
    assert sums_right()
    argmin, searchsorted = np.argmin, np.searchsorted
    with monkeypatch.context() as patched:
        patched.setattr(np, "argmin", lambda sums, axis: sums.shape[1] - 1 - argmin(sums[:, ::-1], axis=axis))
        assert not ties_right()
    with monkeypatch.context() as patched:
        patched.setattr(np, "searchsorted", lambda edges, values, side="left": searchsorted(edges, values, side="left"))
        assert not bands_right()
    with monkeypatch.context() as patched:
        patched.setattr(np, "argmin", lambda sums, axis: argmin(sums.astype(np.float32), axis=axis))
        assert not far_right()

    def floored(offsets: Any, limits: Any) -> Any:
        lengths = np.maximum(np.abs(offsets).sum(axis=0), limits)
        return offsets * limits // np.maximum(lengths, 1)

    def each_alone(offsets: Any, limits: Any) -> Any:
        return np.clip(offsets, -limits, limits)

    for planted in (floored, each_alone):
        with monkeypatch.context() as patched:
            patched.setattr(memory, "_shortened", planted)
            assert not sums_right()
