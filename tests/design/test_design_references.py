"""Reference values: truncated geometric noise, staircases, the heuristic and the optimum, colluders."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpmine.base.epsilon import Epsilon
from dpmine.design.candidates import LAPLACE, PRIOR_ALONE, candidates
from dpmine.design.constructions import heuristic, staircase_matrix, truncated_geometric
from dpmine.design.linear_programs import bayesian_optimum, risk_averse_optimum
from dpmine.design.priors import prior
from dpmine.design.setting import Setting
from dpmine.design.staircase_costs import (
    best_inner,
    best_share,
    geometric_loss,
    laplace_cost,
    least_cost,
    staircase_loss,
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMINE_CACHE", str(tmp_path))


def setting(low: int, high: int, sensitivity: int, epsilon: str = "1") -> Setting:
    return Setting(Fraction(low), Fraction(high), Fraction(1), Fraction(sensitivity), Epsilon.parse(epsilon))


def test_truncated_geometric_and_the_worst_case_optimum() -> None:
    facts = setting(0, 5, 1)
    assert truncated_geometric(facts).worst_loss("absolute") == pytest.approx(0.772, abs=5e-4)
    best = risk_averse_optimum(facts)
    assert best.mechanism.worst_loss("absolute") == pytest.approx(0.684, abs=5e-4)
    assert best.loss == pytest.approx(best.bound, rel=1e-6)


def test_truncated_geometric_is_its_formula() -> None:
    matrix, a = truncated_geometric(setting(0, 5, 1)).matrix(), math.exp(-1)
    for i in range(6):
        inner = [(1 - a) / (1 + a) * a ** abs(i - j) for j in range(1, 5)]
        assert matrix[i] == pytest.approx([a**i / (1 + a), *inner, a ** (5 - i) / (1 + a)], abs=1e-12)


def test_geometric_noise_without_bounds() -> None:
    one = Epsilon.parse("1")
    assert geometric_loss(1, one) == pytest.approx(0.851, abs=5e-4)
    assert geometric_loss(1, one, "squared") == pytest.approx(1.841, abs=5e-4)


@pytest.mark.parametrize(("epsilon", "absolute", "variance"), [(1, 0.9595, 1.918), (2, 0.4255, 0.4227), (5, 0.0826, 0.0297)])
def test_staircase_costs(epsilon: int, absolute: float, variance: float) -> None:
    assert least_cost(epsilon) == pytest.approx(absolute, abs=5e-5)
    assert least_cost(epsilon, "squared") == pytest.approx(variance, abs=10 ** -(3 if variance > 1 else 4) / 2)
    assert least_cost(epsilon) < laplace_cost(epsilon)
    amount = Epsilon.parse(epsilon)
    for loss, power in (("absolute", 1), ("squared", 2)):  # a fine lattice comes near the real numbers
        inner = best_inner(2000, amount, loss)
        assert staircase_loss(2000, inner, amount, loss) / 2000**power == pytest.approx(least_cost(epsilon, loss), rel=2e-3)
        assert inner / 2000 == pytest.approx(best_share(epsilon, loss), abs=2e-3)


@pytest.mark.parametrize("loss", ["absolute", "squared", "miss"])
@pytest.mark.parametrize(("steps", "inner", "epsilon"), [(1, 0, "1"), (5, 2, "0.5"), (7, 0, "3"), (4, 3, "2")])
def test_lattice_sums_are_those_of_a_long_series(loss: str, steps: int, inner: int, epsilon: str) -> None:
    amount = Epsilon.parse(epsilon)
    distances = np.arange(1, steps * 120)
    chances = np.exp(-float(amount) * np.maximum(-((inner - distances) // steps), 0))
    cost = {"absolute": distances, "squared": distances**2, "miss": np.ones(len(distances))}[loss]
    expected = 2 * (chances @ cost) / (1 + 2 * chances.sum())
    assert staircase_loss(steps, inner, amount, loss) == pytest.approx(expected, rel=1e-10)


def test_clamped_staircase_is_the_clamped_series() -> None:
    facts = setting(0, 9, 4)
    matrix = staircase_matrix(facts, 1)
    noise = np.arange(-4000, 4001)
    chances = np.exp(-np.maximum(-((1 - np.abs(noise)) // 4), 0).astype(float))
    chances /= chances.sum()
    for true in range(10):
        released = np.clip(true + noise, 0, 9)
        assert matrix[true] == pytest.approx(np.bincount(released, weights=chances, minlength=10), abs=1e-12)


TABLE = [
    (1, "1", 5.72, 0.73, 6.30, 0.73, 0.68),
    (1, "4", 1.06, 0.73, 2.45, 0.73, 0.13),
    (3, "2", 3.92, 2.31, 4.19, 2.37, 1.64),
    (6, "1", 5.94, 3.74, 5.86, 4.07, 3.53),
]


@pytest.mark.parametrize(("deviation", "epsilon", "plain", "remap", "laplace", "alone", "best"), TABLE)
def test_the_table_of_the_heuristic_and_the_optimum(
    deviation: int, epsilon: str, plain: float, remap: float, laplace: float, alone: float, best: float
) -> None:
    found = {each.name: each for each in candidates(setting(-10, 10, 10, epsilon), prior(f"normal:0:{deviation}"))}
    names = ("heuristic", "heuristic + remap", LAPLACE, PRIOR_ALONE, "optimal")
    got = [found[name].expected_loss for name in names]
    assert got == pytest.approx([plain, remap, laplace, alone, best], abs=0.005 + 1e-9)
    assert found["heuristic"].note == "loses to answering the prior alone"
    assert min(got) == found["optimal"].expected_loss


COLLUSION = [(1, 6.3, 6.2), (5, 4.0, 4.0), (20, 2.3, 2.0), (100, 2.1, 0.8), (400, 2.1, 0.3)]


@pytest.mark.parametrize(("k", "rounding", "geometric"), COLLUSION)
def test_the_series_of_colluders(k: int, rounding: float, geometric: float) -> None:
    """Means of 40,000 errors with deviation below 6: off by 0.16 less often than once in 1e6 (5 sigma)."""
    facts = setting(-10, 10, 10)
    probabilities = prior("normal:0:3").probabilities(facts.grid)
    plain = truncated_geometric(facts).colluders_error(k, probabilities, runs=40_000, seed=k)
    assert plain == pytest.approx(geometric, abs=0.05 + 0.16)
    rounded = heuristic(facts).colluders_error(k, probabilities, runs=40_000, seed=k)
    assert rounded == pytest.approx(rounding, abs=0.05 + 0.16)


@pytest.mark.parametrize("last", [2, 5, 8])
@pytest.mark.parametrize("loss", ["absolute", "squared", "miss"])
def test_geometric_noise_and_a_remap_are_optimal_for_every_prior(last: int, loss: str) -> None:
    facts = setting(0, last, 1)
    generator = np.random.default_rng(last)
    for probabilities in (*generator.dirichlet(np.ones(last + 1), size=3), np.ones(last + 1) / (last + 1)):
        remapped = truncated_geometric(facts).remapped(probabilities, loss).expected_loss(probabilities, loss)
        assert remapped == pytest.approx(bayesian_optimum(facts, probabilities, loss).loss, abs=1e-9)
