"""Nearest centres, bands of distance and sums of clipped offsets: every engine has the integers that Python's have."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from engine_reference import Reference
from engine_strategies import Asked, Small, banded_keys, nearest_keys, numbers_of, small_tables, steps
from engines_under_test import (
    SPLIT_KEY,
    assert_clipped_sums,
    assert_counts,
    every_engine,
    expected,
    nearest_of,
    over,
)
from hypothesis import strategies as st
from support.attributes import number
from support.twins import few_and_many

from dpmine.codes.aggregates import Engine
from dpmine.codes.rows import LARGEST_DISTANCE, LARGEST_POSITION, MOST_DIMENSIONS, Cells, NearestCentre
from dpmine.engines.encoding import encode
from dpmine.engines.memory import MemoryEngine, offsets, sizes
from dpmine.engines.registry import ENGINES
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.kind import DROP, OWN
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.keys import Bins, Key
from dpmine.language.model_keys import MOST_CENTRES, Nearest, NearestBands
from dpmine.language.parsing import parse_predicate
from dpmine.language.resolving_keys import resolve_key
from dpmine.language.views import LEAF, Cell, Rules, Split, Step, Where

SCHEMA = Schema(
    "plane", (number("x", 40), number("y", 10), Nominal("colour", ("red", "blue"), "red", missing="red")), 10_000
)
ROWS = 160
RANDOM = np.random.default_rng(7)
TABLE: dict[str, list[Any]] = {
    "x": RANDOM.integers(-3, 45, ROWS).astype(float).tolist(),  # some are clamped
    "y": RANDOM.integers(0, 10, ROWS).astype(float).tolist(),
    "colour": RANDOM.choice(["red", "blue"], ROWS).tolist(),
}
CORNERS = Nearest(("x", "y"), (39, 9), (3, 7), ((0, 0), (117, 0), (0, 63), (117, 63), (58, 31)))
TIED = Nearest(("y", "x"), (9, 39), (2, 1), ((4, 6), (4, 6), (8, 10), (0, 2), (4, 14)))
ONE = Nearest(("x",), (39,), (1,), ((17,),))
KEYS: dict[str, Key] = {
    "five centres": CORNERS,
    "ties": TIED,
    "one centre": ONE,
    "many centres": Nearest(("x", "y"), (39, 9), (1, 1), tuple((place * 7 % 40, place * 3 % 10) for place in range(300))),
    "bands": NearestBands(CORNERS, (1, 50, 400, 401, 1000)),
    "bands of ties": NearestBands(TIED, (0, 1, 2, 5)),
    "bands around one centre": NearestBands(ONE, (1, 4, 9, 16, 529)),
    "bands that nobody reaches": NearestBands(ONE, (LARGEST_DISTANCE - 1, LARGEST_DISTANCE)),
}


@pytest.fixture(scope="module")
def opened() -> Iterator[Mapping[str, Engine]]:
    """Every engine over the same rows."""
    with ExitStack() as open_ones:
        yield {name: open_ones.enter_context(over(name, Small(SCHEMA, TABLE))) for name in ENGINES}


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference(TABLE, SCHEMA, SPLIT_KEY)


# -- keys --------------------------------------------------------------------------------------------------------------


@every_engine()
@pytest.mark.parametrize("name", KEYS)
def test_every_row_has_the_label_that_whole_numbers_give_it(
    opened: Mapping[str, Engine], reference: Reference, name: str, engine: str
) -> None:
    """In a histogram, as a view's step, as a split of the rule tree."""
    key = KEYS[name]
    labels = reference.size(key)
    low = Bins("x", ("11",))
    asked: list[tuple[tuple[Step, ...], Rules, tuple[Key, ...]]] = [
        ((), LEAF, (key, low)),
        ((Cell(key, labels - 1), Where(parse_predicate("colour == red"))), LEAF, (low,)),
        ((), Split(low, (LEAF, Split(key, (LEAF,) * labels))), (low,)),
    ]
    for view, rules, keys in asked:
        assert_counts(opened[engine], reference, Asked(view, rules, (keys,)))


def test_the_examples_use_the_whole_range_of_labels(reference: Reference) -> None:
    for name, key in KEYS.items():
        seen = {reference.label(key, place) for place in range(ROWS)}
        assert len(seen) > 2 or name in ("one centre", "bands that nobody reaches"), name
    assert {reference.label(TIED, place) for place in range(ROWS)} == {0, 2, 3, 4}  # of two equal centres the first
    ties = [reference.squared_distances(TIED, place) for place in range(ROWS)]
    assert sum(min(one[2:]) == one[0] for one in ties) > 5


@every_engine()
def test_a_cluster_and_its_bands_are_counted_together(
    opened: Mapping[str, Engine], reference: Reference, engine: str
) -> None:
    """Both read the same distances; two kinds of bands of one clustering, and of two, share nothing by mistake."""
    keys = (CORNERS, NearestBands(CORNERS, (100, 300)), NearestBands(CORNERS, (200,)), NearestBands(ONE, (200,)))
    assert_counts(opened[engine], reference, Asked((), LEAF, (keys, (keys[1],), (keys[0], keys[3]))))


# -- the limits --------------------------------------------------------------------------------------------------------

WIDE = Schema("wide", tuple(number(f"n{place}", 2) for place in range(MOST_DIMENSIONS)), 1000)
NAMES = tuple(attribute.name for attribute in WIDE.attributes)
WIDE_TABLE = {
    name: [0.0, 1.0, *(float(bits >> (place % 8) & 1) for bits in range(20)), *([float(place == 0)] * 3)]
    for place, name in enumerate(NAMES)
}
ALL = (LARGEST_POSITION,) * MOST_DIMENSIONS
NONE = (0,) * MOST_DIMENSIONS
ONES = (1,) * MOST_DIMENSIONS
ONE_LESS = (*ALL[1:], LARGEST_POSITION - 1)


@every_engine()
def test_the_largest_positions_in_32_dimensions_are_told_apart_by_one(engine: str) -> None:
    """Squared distances up to 2^51, and centres that differ by one position."""
    reference = Reference(WIDE_TABLE, WIDE, SPLIT_KEY)
    far = Nearest(NAMES, ONES, ALL, (ONE_LESS, ALL, (1, *NONE[1:])))
    alone = Nearest(NAMES, ONES, ALL, (NONE,))
    edges = (1, 2**46, 2**46 + 1, 5 * 2**46, LARGEST_DISTANCE - 1, LARGEST_DISTANCE)
    with over(engine, Small(WIDE, WIDE_TABLE)) as made:
        for key in (far, NearestBands(far, (1, 2, 2**46 - 1, 2**46)), NearestBands(alone, edges)):
            assert_counts(made, reference, Asked((), LEAF, ((key,),)))
    distances = [min(reference.squared_distances(alone, place)) for place in range(len(reference.rows))]
    assert max(distances) == LARGEST_DISTANCE == 2**51
    assert min(distances) == 0
    assert {reference.label(far, place) for place in range(len(reference.rows))} == {0, 1, 2}


@every_engine()
def test_the_largest_offsets_and_radii_in_32_dimensions(engine: str) -> None:
    reference = Reference(WIDE_TABLE, WIDE, SPLIT_KEY)
    nearest = Nearest(NAMES, ONES, ALL, (ALL, NONE))
    below = (-LARGEST_POSITION,) * MOST_DIMENSIONS
    largest = LARGEST_POSITION * MOST_DIMENSIONS
    with over(engine, Small(WIDE, WIDE_TABLE)) as made:
        for radii, origins in (
            ((largest, largest), (below, below)),
            ((largest - 1, 1), (NONE, ALL)),
            ((12_345_677, 2**23 + 1), (NONE, below)),
        ):
            assert_clipped_sums(made, reference, (), nearest, origins, radii)
    offsets = [x - o for x, o in zip(reference.position(nearest, 1), below, strict=True)]
    assert set(offsets) == {2**24}


# -- values that are rounded, and gaps ---------------------------------------------------------------------------------

FINE = Schema(
    "fine",
    (
        Numeric("cost", Decimal(0), Decimal(1_000_000), None, OWN, Decimal("0.01"), scale="log"),
        Numeric("size", Decimal(-5), Decimal(5), Decimal("0.5"), DROP, Decimal("0.001")),
        Numeric("age", Decimal(0), Decimal(10), None, OWN, edges=(Decimal(2), Decimal(7))),
    ),
    1000,
)
LASTS = (10**8, 10**4, 10)
FINE_STEPS = (LARGEST_POSITION, 4099, 10)
"""Of the first as many as there can be, of the second not a divisor of its values, of the third all of them."""
FINE_SCALES = (1, 2000, 800_000)


def fine_values() -> list[tuple[int | None, ...]]:
    """Where halves are rounded, one value before and behind, both ends, gaps."""
    draw = np.random.default_rng(11)
    rows: list[tuple[int | None, ...]] = [(0, 0, 0), LASTS, (None, None, None)]
    for _ in range(150):
        row: list[int | None] = []
        for last, count in zip(LASTS, FINE_STEPS, strict=True):
            half = (2 * int(draw.integers(0, count)) + 1) * last // (2 * count)
            near = min(max(half + int(draw.integers(-1, 2)), 0), last)
            row.append([None, near, near, int(draw.integers(0, last + 1))][int(draw.integers(0, 4))])
        rows.append(tuple(row))
    return rows


def fine_positions(rows: list[tuple[int | None, ...]]) -> list[list[int]]:
    """In Python's integers: rounded to the nearest step, halves up; without a value in the middle."""
    places = list(zip(LASTS, FINE_STEPS, FINE_SCALES, strict=True))
    return [
        [
            (count // 2 if value is None else (2 * value * count + last) // (2 * last)) * scale
            for value, (last, count, scale) in zip(row, places, strict=True)
        ]
        for row in rows
    ]


@every_engine()
def test_positions_are_of_rounded_values_whatever_the_grid_and_of_gaps_in_the_middle(engine: str) -> None:
    """Each row alone in its centre, which lies on it: all rows where they are told apart by one position."""
    rows = fine_values()
    points = {"cost": Decimal("0.01"), "size": Decimal("0.001"), "age": Decimal(1)}
    lows = [attribute.low for attribute in FINE.attributes if isinstance(attribute, Numeric)]
    table: dict[str, list[Any]] = {
        name: [None if row[place] is None else float(lows[place] + finest * row[place]) for row in rows]  # type: ignore[operator]
        for place, (name, finest) in enumerate(points.items())
    }
    positions = fine_positions(rows)
    centres = tuple(dict.fromkeys(tuple(position) for position in positions))
    names = tuple(points)
    nearest = Nearest(names, FINE_STEPS, FINE_SCALES, centres)
    wanted = np.bincount([centres.index(tuple(position)) for position in positions], minlength=len(centres))
    with over(engine, Small(FINE, table)) as made:
        (counts,) = made.counts(Cells((), None), [(resolve_key(nearest, FINE),)])
        assert counts.tolist() == [wanted.tolist()]
        (bands,) = made.counts(Cells((), None), [(resolve_key(NearestBands(nearest, (1,)), FINE),)])
        assert bands.tolist() == [[len(rows), 0]]
        alone = nearest_of(Nearest(names, FINE_STEPS, FINE_SCALES, (centres[0],)), FINE)
        found = made.clipped_sums(Cells((), None), alone, [(5, 6, 7)], [LARGEST_POSITION * 3])
        assert found.tolist() == [
            [sum(along) - len(rows) * less for along, less in zip(zip(*positions, strict=True), (5, 6, 7), strict=True)]
        ]


# -- sums of clipped offsets -------------------------------------------------------------------------------------------


def assert_sums_of_clipped_offsets(engine: Engine, reference: Reference, name: str) -> None:
    """Radii that no offset, some offsets and all offsets exceed; in the whole table, a view, a part of the clusters."""
    nearest = KEYS[name]
    assert isinstance(nearest, Nearest)
    draw = np.random.default_rng(3)
    clusters, dimensions = len(nearest.centres), len(nearest.attributes)
    views: list[tuple[Step, ...]] = [(), (Where(parse_predicate("colour == blue and x >= 9")),), (Cell(CORNERS, 2),)]
    for view, radii in itertools.product(
        views, ([10**6] * clusters, draw.integers(1, 40, clusters).tolist(), [1] * clusters)
    ):
        origins = draw.integers(-20, 60, (clusters, dimensions)).tolist()
        assert_clipped_sums(engine, reference, view, nearest, origins, radii)


CLUSTERINGS = ["five centres", "ties", "one centre"]


@every_engine()
@pytest.mark.parametrize("name", CLUSTERINGS)
def test_sums_of_clipped_offsets(opened: Mapping[str, Engine], reference: Reference, name: str, engine: str) -> None:
    assert_sums_of_clipped_offsets(opened[engine], reference, name)


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_sums_of_clipped_offsets_over_many_chunks(reference: Reference, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "CHUNK", 7)
    monkeypatch.setattr(sizes, "NEAREST_AT_ONCE", 3)
    with over("memory", Small(SCHEMA, TABLE)) as made:
        assert_sums_of_clipped_offsets(made, reference, name)


@every_engine()
def test_offsets_are_shortened_towards_0_on_both_sides(engine: str) -> None:
    """(7, -4) shortened to 5 is (35/11, -20/11): 3 and -1, not -2."""
    schema = Schema("two", (number("x", 12), number("y", 12)), 10)
    nearest = nearest_of(Nearest(("x", "y"), (11, 11), (1, 1), ((0, 0),)), schema)
    with over(engine, Small(schema, {"x": [11.0], "y": [0.0]})) as made:
        for origin, wanted in (((4, 4), [3, -1]), ((11, 4), [0, -4]), ((18, -4), [-3, 1]), ((11, 0), [0, 0])):
            assert made.clipped_sums(Cells((), None), nearest, [origin], [5]).tolist() == [wanted]


@every_engine()
@pytest.mark.parametrize("name", KEYS)
def test_an_empty_table_has_no_rows_and_no_sums(name: str, engine: str) -> None:
    key = KEYS[name]
    resolved = resolve_key(key, SCHEMA)
    with over(engine, Small(SCHEMA, {column: [] for column in TABLE})) as made:
        (counts,) = made.counts(Cells((), None), [(resolved,)])
        assert counts.tolist() == [[0] * resolved.size]
        if isinstance(resolved, NearestCentre):
            zeros = [[0] * len(resolved.places)] * resolved.size
            assert made.clipped_sums(Cells((), None), resolved, zeros, [1] * resolved.size).tolist() == zeros


def assert_rows_in_the_last_centre(engine: Engine, centres: int) -> None:
    places = (*((LARGEST_POSITION, place) for place in range(centres - 1)), (20, 5))
    nearest = nearest_of(Nearest(("x", "y"), (39, 9), (1, 1), places), SCHEMA)
    alone = nearest_of(Nearest(("x", "y"), (39, 9), (1, 1), ((20, 5),)), SCHEMA)
    found = engine.clipped_sums(Cells((), None), nearest, [(20, 5)] * centres, [9] * centres)
    assert found[-1].tolist() == engine.clipped_sums(Cells((), None), alone, [(20, 5)], [9])[0].tolist()
    assert not found[:-1].any()
    assert found[-1].any()


@every_engine()
def test_hundreds_of_centres_with_rows_in_one_of_them(opened: Mapping[str, Engine], engine: str) -> None:
    assert_rows_in_the_last_centre(opened[engine], 300)


@every_engine("a thousand centres")
def test_a_thousand_centres_with_rows_in_one_of_them(opened: Mapping[str, Engine], engine: str) -> None:
    assert_rows_in_the_last_centre(opened[engine], MOST_CENTRES)


@every_engine()
def test_rows_beyond_what_one_person_may_own_are_in_no_cluster(engine: str) -> None:
    """All rows of a person are alike here, so that it does not matter which of them stay."""
    at_most = 3
    schema = Schema("visits", (number("x", 40), number("y", 10)), 1000, unit=Unit("who", at_most))
    table: dict[str, list[Any]] = {"x": [], "y": [], "who": []}
    kept: dict[str, list[Any]] = {"x": [], "y": []}
    for person in range(40):
        rows = 1 + person % 6
        for name, value in {"x": float(person), "y": float(person * 3 % 10)}.items():
            table[name] += [value] * rows
            kept[name] += [value] * min(rows, at_most)
        table["who"] += [f"person {person}"] * rows
    reference = Reference(kept, replace(schema, unit=Unit()), SPLIT_KEY)
    with over(engine, Small(schema, table)) as made:
        assert_clipped_sums(made, reference, (), CORNERS, [(5, 5)] * 5, [20, 1, 300, 7, 50])
        assert_counts(made, reference, Asked((), LEAF, ((CORNERS, NearestBands(CORNERS, (100, 900))),)))


@st.composite
def tables_with_centres(draw: st.DrawFn) -> tuple[Small, Nearest, tuple[Any, ...], tuple[Step, ...]]:
    small = draw(small_tables().filter(lambda small: bool(numbers_of(small.schema))))
    nearest = draw(nearest_keys(small.schema))
    places = st.integers(-5, 20) | st.sampled_from([-LARGEST_POSITION, 0, LARGEST_POSITION])
    radii = st.integers(1, 20) | st.sampled_from([1, LARGEST_POSITION, LARGEST_POSITION * MOST_DIMENSIONS])
    origins = tuple(draw(st.tuples(*[places] * len(nearest.attributes))) for _ in nearest.centres)
    view = tuple(draw(st.lists(steps(small.schema), max_size=1)))
    return small, nearest, (origins, tuple(draw(radii) for _ in nearest.centres)), view


@every_engine()
@few_and_many(tables_with_centres(), st.data(), few=8, many=60)
def test_any_centres_on_any_small_table(engine: str, drawn: Any, data: st.DataObject) -> None:
    small, nearest, (origins, radii), view = drawn
    keys = (nearest, data.draw(banded_keys(small.schema)))
    reference = Reference(small.table, small.schema, SPLIT_KEY)
    with over(engine, small) as made:
        assert_counts(made, reference, Asked(view, LEAF, (keys,)))
        assert_clipped_sums(made, reference, view, nearest, origins, radii)


# -- planted mistakes --------------------------------------------------------------------------------------------------


def test_planted_mistakes_in_distances_are_caught(reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equally near goes to the last centre; bands hold their upper edge; distances in 32-bit floats; floor instead of
    towards 0; clipped per coordinate."""
    wide_reference = Reference(WIDE_TABLE, WIDE, SPLIT_KEY)
    far = Nearest(NAMES, ONES, ALL, (ONE_LESS, ALL, (1, *NONE[1:])))
    origins, radii = [(9, 30)] * 5, [20] * 5

    def labels_right(key: Key, table: Any, schema: Schema, truth: Reference) -> bool:
        engine = MemoryEngine(encode(open_source(table), schema), SPLIT_KEY)
        found = engine.counts(Cells((), None), [(resolve_key(key, schema),)])[0]
        return bool((found == expected(truth, (), LEAF, (key,))).all())

    def ties_right() -> bool:
        return labels_right(TIED, TABLE, SCHEMA, reference)

    def bands_right() -> bool:
        return labels_right(KEYS["bands of ties"], TABLE, SCHEMA, reference)

    def far_right() -> bool:
        return labels_right(far, WIDE_TABLE, WIDE, wide_reference)

    def sums_right() -> bool:
        engine = MemoryEngine(encode(open_source(TABLE), SCHEMA), SPLIT_KEY)
        found = engine.clipped_sums(Cells((), None), nearest_of(CORNERS, SCHEMA), origins, radii)
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
            patched.setattr(offsets, "shortened", planted)
            assert not sums_right()
