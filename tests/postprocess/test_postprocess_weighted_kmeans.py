"""Ordinary k-means on weighted points: as good as scikit-learn's, never worse than its own start, the same by seed."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.cluster
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmine.base.public_random import public_generator
from dpmine.postprocess.weighted_kmeans import LONG, Clustering, _Search, weighted_kmeans

Points = NDArray[np.float64]


def cost_of(points: Points, weights: Points, centres: Points) -> float:
    """Brute force."""
    away = np.sum((points[:, None, :] - centres) ** 2, axis=2)
    return float(np.sum(weights * away.min(axis=1)))


def crowds(k: int, seed: int, *, each: int = 30, dimensions: int = 2) -> tuple[Points, Points]:
    draw = np.random.default_rng(seed)
    centres = draw.uniform(0, 1000, (k, dimensions))
    points = np.vstack([draw.normal(centre, 15, (each, dimensions)) for centre in centres])
    return points, draw.integers(1, 20, len(points)).astype(float)


@pytest.mark.parametrize(("k", "dimensions"), [(1, 2), (3, 1), (5, 2), (15, 2), (8, 6)])
def test_the_cost_is_scikit_learn_s_best_of_ten_within_a_hundredth(k: int, dimensions: int) -> None:
    for seed in range(3):
        points, weights = crowds(k, seed, dimensions=dimensions)
        best = sklearn.cluster.KMeans(k, n_init=10, random_state=seed).fit(points, sample_weight=weights).inertia_
        found = weighted_kmeans(points, weights, k, seed=seed)
        assert found.cost <= 1.01 * best
        assert found.centres.shape == (k, dimensions)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 3), st.sampled_from([1e-6, 1.0, 2.0**23]))
def test_the_cost_is_what_brute_force_finds_and_centres_are_means(seed: int, k: int, dimensions: int, unit: float) -> None:
    draw = np.random.default_rng(seed)
    points = draw.integers(0, 50, (25, dimensions)) * unit
    weights = draw.integers(0, 4, 25).astype(float) + (np.arange(25) == 0)
    found = weighted_kmeans(points, weights, k, seed=seed)
    assert found.cost == pytest.approx(cost_of(points, weights, found.centres), rel=1e-6, abs=1e-6 * unit**2)
    labels = np.sum((points[:, None, :] - found.centres) ** 2, axis=2).argmin(axis=1)
    assert ((found.centres >= -1e-6 * unit) & (found.centres <= (50 + 1e-6) * unit)).all()
    used = weights > 0
    if len(np.unique(points[used], axis=0)) > k:
        moved = np.array(
            [
                np.average(points[mine], axis=0, weights=weights[mine]) if weights[mine].sum() > 0 else centre
                for number, centre in enumerate(found.centres)
                for mine in [labels == number]
            ]
        )
        assert cost_of(points, weights, moved) >= found.cost * (1 - 1e-6)  # another Lloyd step brings nothing


@pytest.mark.parametrize("seed", range(8))
def test_it_is_never_worse_than_its_own_kmeans_plus_plus(seed: int) -> None:
    """Its first start, and what Lloyd's algorithm alone makes of it, on points without structure."""
    draw = np.random.default_rng(seed)
    points, weights = draw.uniform(-1, 1, (150, 3)), draw.uniform(0.1, 1, 150)
    search = _Search(points, weights, 10, public_generator(seed))
    start = search.plus_plus()
    _, alone = search.lloyd(start, LONG)
    found = weighted_kmeans(points, weights, 10, seed=seed)
    assert found.cost <= alone * (1 + 1e-9)
    assert alone <= cost_of(points, weights, start) * (1 + 1e-9)
    others = [search.lloyd(search.plus_plus(), LONG)[1] for _ in range(5)]
    assert found.cost <= np.median(others)


def test_swaps_leave_optima_that_a_bad_start_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a start with all centres in one crowd. Lloyd's algorithm alone stays far from the best cost."""
    points, weights = crowds(12, 4)
    best = weighted_kmeans(points, weights, 12, seed=1).cost
    monkeypatch.setattr(_Search, "plus_plus", lambda self: self.points[:12].copy())
    assert weighted_kmeans(points, weights, 12, seed=1).cost <= 1.05 * best
    monkeypatch.setattr("dpmine.postprocess.weighted_kmeans.SWAPS", 0)
    assert weighted_kmeans(points, weights, 12, seed=1).cost > 2 * best


def test_points_without_weight_do_not_count() -> None:
    points, weights = crowds(3, 1)
    far = np.array([[1e7, 1e7], [-1e7, 0.0]])
    with_far = weighted_kmeans(np.vstack([far, points]), np.concatenate([[0.0, 0.0], weights]), 3, seed=5)
    without = weighted_kmeans(points, weights, 3, seed=5)
    assert (with_far.centres == without.centres).all()
    assert with_far.cost == without.cost
    negative = weighted_kmeans(np.vstack([far, points]), np.concatenate([[-3.0, -1.0], weights]), 3, seed=5)
    assert (negative.centres == without.centres).all()


def test_nothing_with_a_weight_is_an_error() -> None:
    with pytest.raises(ValueError, match="no point with a weight"):
        weighted_kmeans(np.zeros((3, 2)), np.zeros(3), 2)
    with pytest.raises(ValueError, match="no point with a weight"):
        weighted_kmeans(np.zeros((0, 2)), np.zeros(0), 2)


@pytest.mark.parametrize(("used", "k"), [(1, 1), (1, 5), (3, 3), (3, 8)])
def test_fewer_points_than_centres_are_all_centres(used: int, k: int) -> None:
    points = np.array([[1.0, 2.0], [5.0, 5.0], [9.0, 0.0], [4.0, 4.0]])
    weights = np.array([1.0] * used + [0.0] * (4 - used))
    found = weighted_kmeans(points, weights, k, seed=1)
    assert found.centres.shape == (k, 2)
    assert found.cost == 0
    assert {tuple(centre) for centre in found.centres.tolist()} == {tuple(point) for point in points[:used].tolist()}


def test_fewer_places_than_centres() -> None:
    """Many points, but only two places: every place has a centre, and nothing is divided by 0."""
    points = np.array([[0.0], [8.0]] * 10)
    found = weighted_kmeans(points, np.ones(20), 5, seed=1)
    assert found.cost == pytest.approx(0, abs=1e-12)
    assert found.centres.shape == (5, 1)
    assert {0.0, 8.0} <= {round(float(centre), 9) for centre in found.centres[:, 0]}
    same = weighted_kmeans(np.full((20, 2), 7.0), np.ones(20), 3, seed=1)
    assert np.allclose(same.centres, 7)


def test_a_seed_decides_and_no_seed_does_not() -> None:
    draw = np.random.default_rng(1)
    points, weights = draw.uniform(0, 1, (200, 2)), np.ones(200)
    first, again = (weighted_kmeans(points, weights, 9, seed=3) for _ in range(2))
    assert (first.centres == again.centres).all()
    assert first.cost == again.cost
    costs = {weighted_kmeans(points, weights, 9, seed=None).cost for _ in range(4)}
    costs |= {weighted_kmeans(points, weights, 9, seed=seed).cost for seed in range(4)}
    assert len(costs) > 1


@pytest.mark.parametrize("seed", range(4))
def test_weights_are_repeated_points(seed: int) -> None:
    """On clear crowds, where both find the best centres whatever is drawn."""
    points, weights = crowds(4, seed, each=12)
    weights = np.ceil(weights / 4)
    weighted = weighted_kmeans(points, weights, 4, seed=seed)
    repeated = weighted_kmeans(np.repeat(points, weights.astype(int), axis=0), np.ones(int(weights.sum())), 4, seed=seed)
    assert weighted.cost == pytest.approx(repeated.cost)
    order, order_repeated = (np.lexsort(found.centres.T) for found in (weighted, repeated))
    assert np.allclose(weighted.centres[order], repeated.centres[order_repeated])


def test_the_cost_scales_with_weights_and_does_not_move_with_points() -> None:
    points, weights = crowds(3, 2)
    plain = weighted_kmeans(points, weights, 3, seed=1)
    heavier = weighted_kmeans(points, 7 * weights, 3, seed=1)
    moved = weighted_kmeans(points + 1e6, weights, 3, seed=1)
    assert heavier.cost == pytest.approx(7 * plain.cost)
    assert moved.cost == pytest.approx(plain.cost, rel=1e-6)
    assert np.allclose(np.sort(moved.centres - 1e6, axis=0), np.sort(plain.centres, axis=0), atol=1e-6)
    assert isinstance(plain, Clustering)


def test_blocks_of_distances_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    points, weights = crowds(5, 3)
    whole = weighted_kmeans(points, weights, 5, seed=2)
    monkeypatch.setattr("dpmine.postprocess.weighted_kmeans.BLOCK", 64)
    assert np.allclose(weighted_kmeans(points, weights, 5, seed=2).centres, whole.centres)
