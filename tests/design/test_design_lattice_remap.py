"""Noise on a fine lattice, and what bounds and a prior make of it afterwards."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.datasets import patients, patients_schema
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.lattice_remap import KnownRange, known_range
from dpmine.design.priors import prior
from dpmine.design.statistic_noise import design
from dpmine.noise.finite_tables import LatticeNoise

SCHEMA = patients_schema()
NOISES = {"geometric": LatticeNoise("1", "geometric", 0), "staircase": LatticeNoise("1", "staircase", 1)}


def law(noise: LatticeNoise, steps: int, epsilon: float, distance: int) -> float:
    """Not normalised: proportional to the probability of noise so large."""
    if noise.kind == "geometric":
        return float(np.exp(-epsilon * distance / steps))
    level = 0
    while distance > noise.inner + level * steps:
        level += 1
    return float(np.exp(-epsilon * level))


def known(kind: str, loss: str, epsilon: str = "0.7", steps: int = 3) -> KnownRange:
    found = known_range(
        NOISES[kind], steps, Epsilon.parse(epsilon), Fraction(-4), Fraction(6), prior("normal:1:2", loss=loss)
    )
    assert found is not None
    assert found.remap
    return found


@pytest.mark.parametrize("loss", ["absolute", "squared", "miss"])
@pytest.mark.parametrize("kind", list(NOISES))
def test_the_best_guess_and_its_loss_are_those_of_writing_everything_out(kind: str, loss: str) -> None:
    found = known(kind, loss)
    points = list(range(-4, 7))
    chances = np.exp(-((np.array(points) - 1.0) ** 2) / 8)
    chances /= chances.sum()
    reach = 400
    weights = [law(NOISES[kind], 3, 0.7, abs(z)) for z in range(-reach, reach + 1)]
    mass = sum(weights)
    lost = {"absolute": abs, "squared": lambda z: z * z, "miss": lambda z: float(z != 0)}[loss]
    total = 0.0
    for answer in range(-4 - 200, 6 + 201):
        joint = [p * law(NOISES[kind], 3, 0.7, abs(answer - x)) / mass for p, x in zip(chances, points, strict=True)]
        costs = [sum(j * lost(x - guess) for j, x in zip(joint, points, strict=True)) for guess in points]
        total += min(costs)
        assert costs[points.index(found.told(answer))] <= min(costs) * (1 + 1e-9)
        np.testing.assert_allclose(found.posterior(answer), np.array(joint) / sum(joint), atol=1e-12)
    assert found.expected_loss() == pytest.approx(total, rel=1e-6)


def test_answers_far_outside_are_brought_within_the_bounds() -> None:
    for kind, loss in itertools.product(NOISES, ("absolute", "squared", "miss")):
        for answer in (-(2**61), 2**61):
            assert -4 <= known(kind, loss).told(answer) <= 6


def test_without_a_remap_the_loss_is_that_of_clamped_noise() -> None:
    wide = known_range(NOISES["geometric"], 2, Epsilon.parse("0.5"), Fraction(0), Fraction(5000), prior("flat"))
    assert wide is not None
    assert not wide.remap
    noise = np.arange(-200, 201)
    weights = np.exp(-0.25 * np.abs(noise))
    weights /= weights.sum()
    places = np.concatenate([np.arange(150), [2500], np.arange(4851, 5001)])
    exact = {x: float(weights @ np.abs(np.clip(x + noise, 0, 5000) - x)) for x in places.tolist()}
    inner = exact[2500]
    total = sum(exact.values()) + inner * (5001 - len(places))
    assert wide.expected_loss() == pytest.approx(total / 5001, rel=1e-6)
    assert wide.told(-7) == 0
    assert wide.told(17) == 17


@pytest.mark.parametrize("epsilon", ["0.1", "5", *(pytest.param(text, marks=pytest.mark.slow) for text in ("0.5", "1"))])
@pytest.mark.parametrize("text", ["flat", "normal:500:5", "normal:500:50", "laplace:100:20"])
@pytest.mark.parametrize("high", [200, 1000, 20_000])
def test_a_count_is_never_worse_than_plain_noise_whatever_its_range(high: int, text: str, epsilon: str) -> None:
    """Where a grid of 201 points would be too coarse, noise goes on whole numbers."""
    made = design(SCHEMA, "count", None, epsilon=Epsilon.parse(epsilon), mechanism=dm.prior(text, low=0, high=high))
    assert made.prior_loss is not None
    assert made.expected_loss <= min(1 / float(epsilon), made.prior_loss) * (1 + 1e-6)
    assert text != "flat" or isinstance(made.noise, FiniteMechanism) == (high == 200)


def test_a_coarse_grid_is_still_taken_where_it_is_better() -> None:
    """A sum whose noise is as wide as what is known of it: the optimum on 201 points beats noise and a remap."""
    made, by_name = (
        design(SCHEMA, "sum", "age", epsilon=Epsilon.parse("0.1"), mechanism=dm.prior("flat", low=0, high=1000, by=by))
        for by in ("auto", "staircase")
    )
    assert isinstance(made.noise, FiniteMechanism)
    assert isinstance(by_name.noise, LatticeNoise)
    assert made.expected_loss < by_name.expected_loss


def test_an_answer_is_within_its_bounds_and_says_under_which_prior() -> None:
    table = patients(300)
    with dm.open(table, schema=SCHEMA, cap=20) as data:
        private = data.grant("miner", epsilon=20)
        answer = private.count(epsilon=1, design=dm.prior("normal:300:40", low=0, high=1500))
        assert answer.mechanism == "geometric + remap"
        assert 270 < answer.value < 330
        interval = answer.interval()
        assert interval.low <= answer.value <= interval.high
        assert "normal:300:40" in str(answer)
        wide = private.count(epsilon=1, design=dm.prior("flat", low=0, high=100_000))
        assert wide.mechanism == "geometric, clamped"
        narrow = private.count(epsilon=1, design=dm.prior("normal:300:40", low=0, high=100_000))
        assert narrow.mechanism == "geometric + remap"
        assert private.count(epsilon=1, design=dm.prior("flat", low=0, high=10**9)).mechanism == "geometric"
