"""How far sums of noises reach: against brute force, against draws, and bounds that stay above at every scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpmine.noise import contrasts
from dpmine.noise.contrasts import half_width, tail, upper_tail
from dpmine.noise.laplace import noise_half_width

Tail = Callable[[Sequence[float], float, float], float]


def law_of(weights: Sequence[int], scale: float) -> np.ndarray:
    """P(sum weights[i] Z_i = k) for k from -last to last: value by value."""
    rate, whole = 1 / scale, np.ones(1)
    for weight in weights:
        last = math.ceil(45 * scale) + 1
        chances = math.tanh(rate / 2) * np.exp(-rate * np.abs(np.arange(-last, last + 1.0)))
        spread = np.zeros(2 * last * weight + 1)
        spread[::weight] = chances
        size = whole.size + spread.size - 1
        whole = np.maximum(np.fft.irfft(np.fft.rfft(whole, size) * np.fft.rfft(spread, size), size), 0)
    return whole


def tails_of(weights: Sequence[int], scale: float) -> np.ndarray:
    """P(|sum weights[i] Z_i| >= k) for k from 0 on."""
    law = law_of(weights, scale)
    middle = law.size // 2
    return np.concatenate(([1.0], 2 * np.cumsum(law[middle + 1 :][::-1])[::-1]))


SMALL = [0.1, 1 / 3, 1.0, 2.5, 7.0]
WEIGHTS = [
    (1,),
    (3,),
    (1, 1),
    (1, 2),
    (3, 7),
    (1, 19),
    (10, 10),
    (1, 1, 1),
    (5, 3, 2),
    (1, 9, 4),
    (2, 2, 2, 2),
    (9, 3, 3, 1),
]


@pytest.mark.parametrize("scale", SMALL)
@pytest.mark.parametrize("weights", [weights for weights in WEIGHTS if len(weights) < 3], ids=str)
def test_one_and_two_noises_of_small_scale_have_their_exact_tail(weights: tuple[int, ...], scale: float) -> None:
    for reach, chance in enumerate(tails_of(weights, scale)[:400]):
        assert tail(weights, scale, reach) == pytest.approx(chance, abs=1e-13)
        assert tail([-weight / 20 for weight in weights], scale, reach / 20) == pytest.approx(chance, abs=1e-13)


def shortfall(bound: Tail, weights: tuple[int, ...], scale: float) -> float:
    """By how much the bound is below the true tail where it is most: never, that is 0."""
    true = tails_of(weights, scale)
    places = [
        place for place in range(1, true.size, max(1, true.size // 300)) if true[place] > 1e-9
    ]  # the transform is off by 1e-15
    return max(max(0.0, 1 - bound(weights, scale, place) / true[place]) for place in places)


def continuous(weights: Sequence[float], scale: float, threshold: float) -> float:
    """Planted mistake: whole-numbered noise taken for continuous noise of the same scale."""
    tilted = [weight * (1 + 1e-4 * place) for place, weight in enumerate(weights)]
    parts = [
        math.exp(-threshold / (one * scale)) / math.prod(1 - (other / one) ** 2 for other in tilted if other != one)
        for one in tilted
    ]
    return sum(parts)


def above(weights: Sequence[float], scale: float, threshold: float) -> float:
    return float(upper_tail(np.array(weights, dtype=np.float64), scale, np.array(float(threshold))))


@pytest.mark.parametrize("scale", [*SMALL, 31.9, 64.0])
@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_the_bound_is_above_the_true_tail_at_every_scale(weights: tuple[int, ...], scale: float) -> None:
    assert shortfall(tail, weights, scale) < 1e-5
    assert shortfall(above, weights, scale) < 1e-5


def test_the_bound_check_catches_noise_taken_for_continuous() -> None:
    assert all(shortfall(continuous, weights, 2.5) > 0.01 for weights in [(1, 1), (1, 1, 1), (5, 3, 2), (9, 3, 3, 1)])
    assert all(shortfall(continuous, weights, 7.0) > 0.005 for weights in [(1, 1), (1, 1, 1), (5, 3, 2), (9, 3, 3, 1)])


@pytest.mark.parametrize("weights", [weights for weights in WEIGHTS if len(weights) > 1], ids=str)
def test_the_bound_gives_little_away_at_large_scales(weights: tuple[int, ...]) -> None:
    scale = 64.0
    true = tails_of(weights, scale)
    for confidence in (0.5, 0.9, 0.95, 0.99, 1 - 1e-6):
        exact = int(np.argmax(true <= 1 - confidence))
        allowed = sum(weights) / 2 + 0.003 * exact + 1
        assert exact - 1 <= half_width(weights, scale, confidence) <= exact + allowed


@pytest.mark.parametrize("number", [2, 3, 4])
def test_scales_that_are_nearly_equal_change_little(number: int) -> None:
    """Down to the last bits, where the formula with its differences would divide by nothing."""
    equal = half_width([0.5] * number, 10**6, 0.95)
    for apart in (1e-3, 1e-6, 1e-9, 1e-12, 1e-15):
        coefficients = [0.5 * (1 + apart * place) for place in range(number)]
        assert half_width(coefficients, 10**6, 0.95) == pytest.approx(equal, rel=3e-3)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(32), Fraction(10**9)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_one_noise_reaches_as_far_as_it_says_elsewhere(scale: Fraction, confidence: float) -> None:
    assert half_width([1.0], scale, confidence) == pytest.approx(noise_half_width(scale, confidence), rel=1e-8, abs=1e-8)
    assert half_width([0.0, 1.0, 0.0], scale, confidence) == half_width([1.0], scale, confidence)


def test_what_weighs_nothing_adds_nothing() -> None:
    assert tail([0.0, 0.0], 10, 1e-9) == 0
    assert tail([0.0, 0.0], 10, 0) == tail([1.0, 2.0, 3.0], 10, -1) == 1
    assert half_width([0.0, 0.0], 10, 0.99) == 0
    assert tail([1.0, 1e-12, 1e-12], 1000, 3000) == pytest.approx(tail([1.0], 1000, 3000), rel=2e-3)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
    st.floats(1e-3, 1e12),
    st.floats(0, 100),
    st.integers(0, 3),
    st.floats(0, 1),
)
def test_a_bound_rises_with_every_size_and_falls_with_the_threshold(
    sizes: list[float], scale: float, reach: float, which: int, more: float
) -> None:
    """What tests of whole stretches rest on."""
    larger = list(sizes)
    larger[which % len(sizes)] += more
    threshold = reach * scale
    assert 0 <= above(sizes, scale, threshold) <= above(larger, scale, threshold) * (1 + 1e-2) + 1e-12
    assert above(sizes, scale, threshold * 1.01) <= above(sizes, scale, threshold) * (1 + 1e-2) + 1e-12


@pytest.mark.parametrize(
    ("coefficients", "scale"),
    [
        ((0.5, 0.5), 1.0),
        ((0.3, 0.7), 3.0),
        ((0.999, 0.001), 10.0),
        ((0.3, 0.7), 200.0),
        ((0.25,) * 4, 100.0),
        ((0.5, 0.2, 0.1), 1e6),
    ],
)
def test_half_widths_cover_draws(coefficients: tuple[float, ...], scale: float) -> None:
    """400,000 draws; a miss by chance, and where the law is near exact a surplus of 0.3 per cent more, below 1e-6 each."""
    random, share = np.random.default_rng(7), -math.expm1(-1 / scale)
    noise = random.geometric(share, (400_000, len(coefficients))) - random.geometric(share, (400_000, len(coefficients)))
    sums = np.abs(noise @ np.array(coefficients))
    for confidence in (0.8, 0.95, 0.99):
        held = int((sums <= half_width(coefficients, scale, confidence)).sum())
        assert binom.cdf(held, sums.size, confidence) > 1e-6
        if scale > contrasts.EXACT_UP_TO:
            assert binom.sf(held, sums.size, min(confidence + 0.006, 0.998)) > 1e-6
