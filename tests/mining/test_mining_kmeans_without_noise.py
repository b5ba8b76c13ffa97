"""Without noise private clustering is ordinary clustering: Lloyd steps, exact counts, leaves that part the rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.cluster
from support.opening import HUGE, silent
from support.points import BLOBS, Points, blobs, box_schema, columns, cube, fitted_silently

import dpmine as dm
from dpmine.codes.answers import Reply
from dpmine.codes.private_tree import CutNode, ResolvedCutRule
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.queries import Query
from dpmine.mining.clustering import synopsis
from dpmine.mining.clustering.space import Space
from dpmine.mining.clustering.synopsis import grid_sides, grid_starts
from dpmine.questions.histogram import Histogram, NoisyHistogram
from dpmine.questions.offset_sums import OffsetSums
from dpmine.questions.private_tree import PrivateTree, tree_of
from dpmine.tables.private_table import PrivateTable


def only(asked: Sequence[tuple[Query, Reply]], kind: type) -> list[tuple[Any, Any]]:
    """The questions of one kind, with the numbers that were answered for the whole view."""
    return [(query.question, reply.answer.numbers[0]) for query, reply in asked if isinstance(query.question, kind)]


# -- DPLloyd is Lloyd --------------------------------------------------------------------------------------------------


def whole_positions(points: Points, space: Space) -> list[tuple[int, ...]]:
    """Rows as positions, worked out here in fractions: numbers at the attributes' resolution, rounded to steps."""

    def position(number: float, attribute: Numeric, steps: int, scale: int) -> int:
        low, high = attribute.numbers.low, attribute.numbers.high
        return math.floor((Fraction(str(number)) - low) / (high - low) * steps + Fraction(1, 2)) * scale

    places = list(zip(space.attributes, space.steps, space.scales, strict=True))
    return [tuple(position(number, *place) for number, place in zip(row, places, strict=True)) for row in points.tolist()]


def lloyd_step(
    rows: list[tuple[int, ...]], centres: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[tuple[Fraction, ...] | None]]:
    """Sizes and exact means of the rows nearest to each centre (of equal ones the first); None without rows."""
    members: list[list[tuple[int, ...]]] = [[] for _ in centres]
    for row in rows:
        away = [sum((a - b) ** 2 for a, b in zip(row, centre, strict=True)) for centre in centres]
        members[away.index(min(away))].append(row)
    means = [
        tuple(Fraction(sum(along), len(mine)) for along in zip(*mine, strict=True)) if mine else None for mine in members
    ]
    return [len(mine) for mine in members], means


def is_lloyd(model: dm.DPLloyd, points: Points, schema: Schema) -> bool:
    """Whether every step without noise counts the nearest rows and moves each centre to their mean, rounded to positions."""
    found, asked = fitted_silently(model, points, schema)
    space = model.space(schema)
    rows = whole_positions(points, space)
    sizes, sums = only(asked, Histogram), only(asked, OffsetSums)
    centres = [question.keys[0].centres for question, _ in sizes]
    if [question.nearest.centres for question, _ in sums] != centres or len(centres) != model.turns(schema, space):
        return False
    starts = space.nearest(model._starts(space)).centres
    order = np.argsort(-np.array(sizes[-1][1]), kind="stable")
    last = tuple(tuple(map(int, found.positions_[place])) for place in np.argsort(order))
    if centres[0] != starts or found.cluster_sizes_.tolist() != np.array(sizes[-1][1])[order].tolist():
        return False
    for (_, counted), before, after in zip(sizes, centres, [*centres[1:], last], strict=True):
        exact_sizes, means = lloyd_step(rows, before)
        if list(counted) != exact_sizes:
            return False
        for mean, old, new in zip(means, before, after, strict=True):
            wanted = old if mean is None else mean
            if any(abs(a - b) > Fraction(1, 2) + Fraction(1, 10**6) for a, b in zip(wanted, new, strict=True)):
                return False
    return True


@pytest.mark.parametrize("options", [{}, {"starts": "spread", "shares": "optimal"}, {"scaling": "bounds", "iterations": 4}])
@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_dplloyd_without_noise_is_lloyd_step_by_step(dimensions: int, options: dict[str, Any]) -> None:
    schema = box_schema(dimensions)
    for seed in range(3):
        points = np.clip(np.rint(np.random.default_rng(seed).normal(55, 25, (60, dimensions))), 0, 100)
        assert is_lloyd(dm.DPLloyd(4, HUGE, seed=seed, **options), points, schema)


@pytest.mark.parametrize("finest", ["0.1", "0.001", "0.00001"])
def test_dplloyd_is_lloyd_on_values_finer_than_the_grid(finest: str) -> None:
    """Ten thousand values are as they are, ten million are rounded to steps; codes of five would be another table."""
    high = Decimal(1000) if finest == "0.1" else Decimal(100)
    attributes = tuple(Numeric(f"x{place}", Decimal(0), high, Decimal(5), Decimal(0), Decimal(finest)) for place in range(2))
    schema = Schema("fine", attributes, 1000)
    points = np.random.default_rng(4).uniform(0, float(high), (50, 2)).round(-Decimal(finest).adjusted())
    for scaling in ("none", "bounds"):
        assert is_lloyd(dm.DPLloyd(3, HUGE, 4, seed=2, scaling=scaling), points, schema)


def test_dplloyd_without_noise_is_lloyd_from_starts_that_leave_clusters_empty() -> None:
    """Many centres and few rows: centres without rows stay, and still count as clusters."""
    points = np.array([[3.0, 4.0], [97.0, 90.0], [96.0, 91.0]])
    model = dm.DPLloyd(12, HUGE, seed=5)
    assert is_lloyd(model, points, box_schema(2))
    assert (model.cluster_sizes_ == 0).sum() >= 9
    assert len(model.cluster_centers_) == 12


def test_clipping_to_the_radius_of_one_coordinate_is_not_lloyd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the slide's |Dom| for d > 1. The door clips to what noise was asked for, so means come out wrong."""
    honest = PrivateTable.offset_sums

    def of_one_coordinate(self: PrivateTable, nearest: Any, origins: Any, radii: Any, **named: Any) -> Any:
        return honest(self, nearest, origins, [radius // len(nearest.attributes) for radius in radii], **named)

    corners = np.array([[0.0] * 5, [100.0] * 5, [0.0, 100.0] * 2 + [0.0]] * 5)
    assert is_lloyd(dm.DPLloyd(2, HUGE, 3, seed=1), corners, box_schema(5))
    monkeypatch.setattr(PrivateTable, "offset_sums", of_one_coordinate)
    assert not is_lloyd(dm.DPLloyd(2, HUGE, 3, seed=1), corners, box_schema(5))


def test_dropping_empty_clusters_is_not_lloyd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a centre without rows is sent to the middle of the box instead of staying."""
    monkeypatch.setattr(NoisyHistogram, "standard_deviation", property(lambda counted: -1.0))
    assert not is_lloyd(dm.DPLloyd(12, HUGE, seed=5), np.array([[3.0, 4.0], [97.0, 90.0]]), box_schema(2))


@pytest.mark.parametrize("seed", range(3))
def test_dplloyd_at_a_huge_epsilon_ends_where_scikit_learn_does(seed: int) -> None:
    """With the real noise: of scale d r T / (epsilon / 2), here 1/5000 of the box for a sum of some 30 rows."""
    schema, points = box_schema(2), blobs(40, seed)
    model = dm.DPLloyd(3, HUGE, 8, starts="spread", seed=seed).fit(columns(points), schema=schema)
    space = model.space(schema)
    plain = sklearn.cluster.KMeans(3, init=space.values(model._starts(space)), n_init=1, max_iter=8, tol=0).fit(points)
    order = np.lexsort(model.cluster_centers_.T)
    wanted = plain.cluster_centers_[np.lexsort(plain.cluster_centers_.T)]
    assert np.abs(model.cluster_centers_[order] - wanted).max() < 0.05


def test_dplloyd_comes_closer_to_lloyd_as_epsilon_grows() -> None:
    """Noise shrinks by 1000. That a mean of 18 or more draws falls by less than 30 has a chance far below 1e-6."""
    schema, points = box_schema(2), blobs(40, 1)
    exact, _ = fitted_silently(dm.DPLloyd(1, HUGE, 1, seed=1), points, schema)

    def off(epsilon: int) -> float:
        fits = [dm.DPLloyd(1, epsilon, 1, seed=1).fit(columns(points), schema=schema) for _ in range(18)]
        return float(np.mean([np.abs(fit.cluster_centers_ - exact.cluster_centers_) for fit in fits]))

    assert off(10_000) < off(10) / 30


# -- a grid counts exactly ---------------------------------------------------------------------------------------------


def counts_cells_exactly(dimensions: int, scaling: str) -> bool:
    """Whether the answers for a grid are what numpy counts in the same cells."""
    attributes = [
        Numeric("a", Decimal(-5), Decimal(45), Decimal("0.5"), Decimal(-5)),
        Numeric("b", Decimal(0), Decimal(200), Decimal(5), Decimal(0)),
        Numeric("c", Decimal(1000), Decimal(1100), Decimal(1), Decimal(1000)),
    ][:dimensions]
    schema = Schema("points", tuple(attributes), 1000)
    draw = np.random.default_rng(dimensions)
    codes = [draw.integers(0, a.size, 300) for a in attributes]
    table = {a.name: [float(a.point(int(code))) for code in column] for a, column in zip(attributes, codes, strict=True)}
    model = dm.KMeans(4, 10, scaling=scaling, seed=1)
    with silent(table, schema, 10) as (private, recorder, _):
        model.fit(private)
    (_, rows), (_, counted) = only(recorder.asked, Histogram)
    space = model.space(schema)
    sides = grid_sides(space, 4, 300, model.budget_for(schema).grid.epsilon)
    edges = [np.append(grid_starts(a.size, side), a.size) for a, side in zip(space.attributes, sides, strict=True)]
    wanted, _ = np.histogramdd(np.stack(codes, axis=1), bins=edges)
    kept = model.synopsis_.weights.sum()
    assert 0 < kept <= 300
    assert model.cluster_sizes_.sum() == pytest.approx(kept)
    return rows == (300,) and counted == tuple(wanted.astype(int).ravel().tolist())


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("scaling", ["none", "bounds"])
def test_the_cells_of_a_grid_are_counted_exactly(dimensions: int, scaling: str) -> None:
    assert counts_cells_exactly(dimensions, scaling)


def test_cells_that_begin_one_code_late_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(attribute: Numeric, side: int) -> Any:
        assert side < attribute.size
        cuts = grid_starts(attribute.size, side)[1:] + 1
        return synopsis.bins_of(attribute, cuts[cuts < attribute.size].tolist())

    assert counts_cells_exactly(2, "bounds")
    monkeypatch.setattr(synopsis, "grid_key", late)
    assert not counts_cells_exactly(2, "bounds")


def test_a_grid_without_noise_finds_the_means_up_to_its_cells() -> None:
    schema, points = box_schema(2), blobs(300, 3)
    model, _ = fitted_silently(dm.KMeans(3, HUGE, seed=1), points, schema)
    means = np.array([points[np.linalg.norm(points - blob, axis=1) < 25].mean(axis=0) for blob in BLOBS])
    assert np.abs(model.cluster_centers_ - means).max() < 1.5  # blobs are ordered by size, as centres are
    assert np.round(model.cluster_sizes_).tolist() == [300, 298, 296]


# -- the leaves of a tree part the rows --------------------------------------------------------------------------------


def grown_root(asked: Sequence[tuple[Query, Reply]], schema: Schema) -> CutNode:
    ((question, bits),) = only(asked, PrivateTree)
    rules = [
        ResolvedCutRule(rule.attribute, schema.single(rule.attribute).size, rule.edges, rule.scores, rule.cuts, rule.inside)
        for rule in question.rules
    ]
    return tree_of(bits, rules)


@pytest.mark.parametrize(("epsilon", "dimensions"), [(1, 4), (20, 4), (HUGE, 2), (5, 10)])
def test_the_leaves_of_a_tree_part_the_rows_and_are_counted_exactly(epsilon: int, dimensions: int) -> None:
    schema, points = box_schema(dimensions), cube(200, 1, dimensions)
    model, asked = fitted_silently(dm.KMeans(3, epsilon, method="tree", seed=1), points, schema)
    leaves = list(grown_root(asked, schema).leaves())
    assert len(leaves) > 1
    counted = [reply.answer.numbers for query, reply in asked if query.question == Histogram(())]
    assert len(counted) == 1
    lows, highs = (np.array([getattr(leaf.box, side) for leaf in leaves]) for side in ("lows", "highs"))
    inside = ((points[:, None, :] >= lows) & (points[:, None, :] < highs)).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert [numbers[0] for numbers in counted[0]] == inside.sum(axis=0).tolist()
    volumes = np.prod((highs - lows).astype(object), axis=1)
    assert volumes.sum() == 101**dimensions  # and disjoint, below: they cover the whole box
    for one, other in itertools.combinations(range(min(len(leaves), 60)), 2):
        assert (np.minimum(highs[one], highs[other]) <= np.maximum(lows[one], lows[other])).any()
    assert len(model.synopsis_.points) == len(leaves)
    assert (model.synopsis_.points >= lows * np.array(model.space_.scales) - 1e-6).all()
    assert (model.synopsis_.points <= (highs - 1) * np.array(model.space_.scales) + 1e-6).all()


def test_a_tree_without_noise_finds_the_means() -> None:
    """Lloyd steps on offsets that are clipped a little: within 1 of 100."""
    schema, points = box_schema(4), cube(300, 2)
    model, _ = fitted_silently(dm.KMeans(3, 1000, seed=1), points, schema)
    means = np.array([points[:300].mean(axis=0), points[300:598].mean(axis=0), points[598:].mean(axis=0)])
    assert np.abs(model.cluster_centers_ - means).max() < 1
    assert model.cluster_sizes_.sum() == pytest.approx(894, abs=20)


# -- engines -----------------------------------------------------------------------------------------------------------

MODELS = {
    "grid": (2, lambda: dm.KMeans(3, 5, seed=1)),
    "tree": (4, lambda: dm.KMeans(3, 5, seed=1)),
    "automatic": (2, lambda: dm.KMeans("auto", 5, max_clusters=4, seed=1)),
    "dplloyd": (4, lambda: dm.DPLloyd(3, 5, seed=1, shares="optimal", scaling="bounds")),
}


@pytest.mark.parametrize("name", MODELS)
def test_duckdb_and_memory_give_the_same_answers(name: str, tmp_path: Path) -> None:
    dimensions, make = MODELS[name]
    schema, points = box_schema(dimensions), cube(60, 4, dimensions)
    file = tmp_path / "points.csv"
    names = list(columns(points))
    file.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in points.tolist())]) + "\n")
    found = []
    for engine in ("memory", "duckdb"):
        model: Any = make()
        with silent(file, schema, model.budget, engine=engine) as (private, recorder, _):
            model.fit(private)
        answers = [(query, reply.answer.numbers) for query, reply in recorder.asked]
        found.append((answers, model.cluster_centers_.tolist(), model.cluster_sizes_.tolist()))
    assert found[0] == found[1]
