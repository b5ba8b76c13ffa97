"""Intervals of means, variances and covariances: they hold the truth as often as they say, no wider than need be."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import median

import numpy as np
import pytest
from scipy.stats import binom

from dpmine.base.errors import RequestError
from dpmine.noise.contrasts import half_width
from dpmine.noise.laplace import noise_deviation, noise_half_width
from dpmine.noise.ratios import covariance_interval, mean_interval, variance_interval

ALARM = 1e-6
Interval = tuple[float, float]
Inverted = Callable[..., Interval]
CONFIDENCE = 0.9


def told(exact: np.ndarray, scale: float, times: int, seed: int) -> np.ndarray:
    """The exact sums, so many times, each time with other noise."""
    random, share = np.random.default_rng(seed), -math.expm1(-1 / scale)
    size = (times, exact.size)
    return exact + random.geometric(share, size) - random.geometric(share, size)


def found(
    inverted: Inverted, exact: np.ndarray, scale: float, times: int = 400, confidence: float = CONFIDENCE
) -> list[Interval]:
    return [inverted(*numbers, scale, confidence) for numbers in told(exact, scale, times, seed=11)]


def too_seldom(intervals: list[Interval], truth: float, confidence: float = CONFIDENCE) -> bool:
    """Whether so few hold the truth as happens once in a million times at this confidence."""
    held = sum(low - 1e-9 <= truth <= high + 1e-9 for low, high in intervals)
    return bool(binom.cdf(held, len(intervals), confidence) < ALARM)


def width(intervals: list[Interval]) -> float:
    return median(high - low for low, high in intervals)


# -- means -------------------------------------------------------------------------------------------------------------

MEANS = [
    *[(rows, share, scale) for rows in (0, 1, 3, 1000) for share in (0.0, 0.5, 2 / 3, 1.0) for scale in (1.0, 10.0)],
    (1000, 0.001, 3.0),
    (1000, 0.999, 0.2),
    (10**6, 0.3, 30.0),
    (10**6, 0.3, 40.0),
    (10**9, 0.77, 10.0**6),
    (10**15, 0.01, 10.0**12),
]


def sums(rows: int, share: float) -> np.ndarray:
    first = round(rows * share)
    return np.array([first, rows - first], dtype=np.float64)


@pytest.mark.parametrize(("total", "share", "scale"), MEANS)
def test_intervals_of_means_hold_the_mean(total: int, share: float, scale: float) -> None:
    exact = sums(total, share)
    truth = exact[0] / total if total else share
    intervals = found(mean_interval, exact, scale)
    assert not too_seldom(intervals, truth)
    assert all(0 <= low <= high <= 1 for low, high in intervals)


@pytest.mark.parametrize("scale", [1.0, 10.0, 30.0, 40.0, 10.0**5])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9])
def test_intervals_of_means_are_no_wider_than_the_exact_law(share: float, scale: float) -> None:
    total = 10_000 * scale
    exact = np.array([round(total * share), total - round(total * share)])
    intervals = found(mean_interval, exact, scale, 60)
    truth = exact[0] / total
    assert width(intervals) <= 1.05 * 2 * half_width([1 - truth, truth], scale, CONFIDENCE) / total


def by_union(a: float, b: float, scale: float, confidence: float) -> Interval:
    """Planted mistake: both sums held at once, each with half the chance to be wrong."""
    reach = noise_half_width(Fraction(scale), 1 - (1 - confidence) / 2)
    return (a - reach) / (a + b), (a + reach) / (a + b + 0.0)


def without_the_total(a: float, b: float, scale: float, confidence: float) -> Interval:
    """Planted mistake: the total taken for exact and for free, so that only the noise of one sum is left."""
    m = a / (a + b)
    reach = half_width([min(m, 1 - m)], scale, confidence) / (a + b)
    return m - reach, m + reach


def as_if_independent(a: float, b: float, scale: float, confidence: float) -> Interval:
    """Planted mistake: sum and total as if their noises had nothing to do with each other."""
    m = a / (a + b)
    reach = half_width([1.0, m, m], scale, confidence) / (a + b)
    return m - reach, m + reach


def as_if_normal(a: float, b: float, scale: float, confidence: float) -> Interval:
    """Planted mistake: 2.58 standard deviations for 99 per cent."""
    m = a / (a + b)
    reach = 2.5758 * noise_deviation(Fraction(scale)) * math.hypot(1 - m, m) / (a + b)
    return m - reach, m + reach


@pytest.mark.parametrize("mistake", [by_union, as_if_independent])
def test_the_check_of_widths_catches(mistake: Inverted) -> None:
    intervals = found(mistake, np.array([300_000.0, 700_000.0]), 10.0, 60)
    assert width(intervals) > 1.05 * 2 * half_width([0.7, 0.3], 10.0, CONFIDENCE) / 10**6


@pytest.mark.parametrize(("mistake", "confidence", "times"), [(without_the_total, 0.9, 400), (as_if_normal, 0.99, 4000)])
def test_the_check_of_coverage_catches(mistake: Inverted, confidence: float, times: int) -> None:
    assert too_seldom(found(mistake, np.array([10_000.0, 990_000.0]), 10.0, times, confidence), 0.01, confidence)


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_every_mean_that_passes_by_brute_force_is_kept(scale: float) -> None:
    """The p-values of all fractions of small denominators, over all pairs of noises: they jump where many pairs meet."""
    values = np.arange(-60, 61)
    chances = np.exp(-np.abs(values) / scale)
    together = np.outer(chances, chances) / chances.sum() ** 2
    shares = sorted({Fraction(part, whole) for whole in range(1, 25) for part in range(whole + 1)})
    for a, b in [(3, 2), (7, -1), (12, 12), (20, 5), (-3, 9), (0, 0), (1, 30), (-4, -2), (0, 25)]:
        low, high = mean_interval(a, b, scale, 0.9)
        for share in shares:
            p, q = share.numerator, share.denominator
            reach = np.abs((q - p) * values[:, None] - p * values[None, :])
            passes = together[reach >= abs((q - p) * a - p * b)].sum() > 0.1
            assert not passes or low - 1e-12 <= share <= high + 1e-12


def test_an_allowance_widens_an_interval_by_itself() -> None:
    low, high = mean_interval(300_000, 700_000, 1.0, 0.9)
    wider = mean_interval(300_000, 700_000, 1.0, 0.9, allowance=50.0)
    assert wider == pytest.approx((low - 50e-6, high + 50e-6), abs=2e-6)


def test_nothing_known_is_the_whole_range() -> None:
    assert mean_interval(0, 0, 10, 0.95) == mean_interval(-(10**9), 10**9, 10, 0.95) == (0, 1)
    assert variance_interval(0, 0, 0, 10, 0.95) == (0, 0.25)
    assert covariance_interval(0, 0, 0, 0, 10, 0.95) == (-0.25, 0.25)


def test_numbers_that_hardly_any_mean_explains_give_the_nearest() -> None:
    low, high = mean_interval(-80, 10_000, 10, 0.9)
    assert low == 0
    assert 0 <= high < 0.01
    assert mean_interval(10_000, -80, 10, 0.9) == pytest.approx((1 - high, 1), abs=1e-5)


def test_confidence_is_between_0_and_1() -> None:
    for asked in (lambda: mean_interval(1, 1, 1, 1.0), lambda: variance_interval(1, 1, 1, 1, 0.0)):
        with pytest.raises(RequestError, match="confidence"):
            asked()


# -- variances and covariances ----------------------------------------------------------------------------------------


def rows_of(rows: int, share: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Two columns that have to do with each other, each about so far up its range."""
    random = np.random.default_rng(5)
    x = random.binomial(steps, share, rows).astype(np.float64)
    return x, np.where(random.random(rows) < 0.6, x, steps - x)


TABLES = [
    (0, 0.3, 1, 1.0),
    (1, 0.5, 1, 1.0),
    (3, 0.5, 10, 200.0),
    (200, 0.02, 1, 1.0),
    (200, 0.5, 1, 10.0),
    (3000, 0.98, 30, 3000.0),
    (20_000, 0.3, 100, 10.0**5),
]


def squares(x: np.ndarray, steps: int) -> np.ndarray:
    return np.array([(x * x).sum(), (2 * x * (steps - x)).sum(), ((steps - x) ** 2).sum()])


def products(x: np.ndarray, y: np.ndarray, steps: int) -> np.ndarray:
    u, v = steps - x, steps - y
    return np.array([(x * y).sum(), (x * v).sum(), (u * y).sum(), (u * v).sum()])


@pytest.mark.parametrize(("rows", "share", "steps", "scale"), TABLES)
def test_intervals_of_variances_hold_the_variance(rows: int, share: float, steps: int, scale: float) -> None:
    x, _ = rows_of(rows, share, steps)
    intervals = found(variance_interval, squares(x, steps), scale, 200)
    truth = float(np.var(x)) / steps**2 if rows else 0.1
    assert not too_seldom(intervals, truth)
    assert all(0 <= low <= high <= 0.25 for low, high in intervals)


@pytest.mark.parametrize(("rows", "share", "steps", "scale"), TABLES)
def test_intervals_of_covariances_hold_the_covariance(rows: int, share: float, steps: int, scale: float) -> None:
    x, y = rows_of(rows, share, steps)
    intervals = found(covariance_interval, products(x, y, steps), scale, 150)
    truth = float(np.mean(x * y) - np.mean(x) * np.mean(y)) / steps**2 if rows else 0.1
    assert not too_seldom(intervals, truth)
    assert all(-0.25 <= low <= high <= 0.25 for low, high in intervals)


def test_intervals_of_variances_and_covariances_are_hardly_wider_than_with_means_that_are_known() -> None:
    steps, scale, rows = 100, 20_000.0, 50_000
    x, y = rows_of(rows, 0.3, steps)
    m, n, s = x.mean() / steps, y.mean() / steps, x.var() / steps**2
    c = np.mean(x * y) / steps**2 - m * n
    total = rows * steps**2
    known = half_width([(1 - m) ** 2 - s, -m * (1 - m) - s, m * m - s], scale, CONFIDENCE)
    assert width(found(variance_interval, squares(x, steps), scale, 40)) <= 1.05 * 2 * known / total
    known = half_width([(1 - m) * (1 - n) - c, -(1 - m) * n - c, -m * (1 - n) - c, m * n - c], scale, CONFIDENCE)
    assert width(found(covariance_interval, products(x, y, steps), scale, 40)) <= 1.05 * 2 * known / total


def without_noise_in_the_middle(p: float, q: float, r: float, scale: float, confidence: float) -> Interval:
    """Planted mistake: the sum of the mixed products taken for exact."""
    n = p + q + r
    m = (p + q / 2) / n
    s = p / n - m * m
    reach = half_width([(1 - m) ** 2 - s, m * m - s], scale, confidence) / n
    return s - reach, s + reach


def with_noise_in_the_squares_alone(p: float, q: float, r: float, scale: float, confidence: float) -> Interval:
    """Planted mistake: of three noises one."""
    n = p + q + r
    m = (p + q / 2) / n
    reach = half_width([(1 - m) ** 2], scale, confidence) / n
    return p / n - m * m - reach, p / n - m * m + reach


@pytest.mark.parametrize(
    ("mistake", "rows", "share", "scale"),
    [(without_noise_in_the_middle, 3000, 0.5, 10.0), (with_noise_in_the_squares_alone, 3000, 0.8, 10.0)],
)
def test_the_check_of_variances_catches(mistake: Inverted, rows: int, share: float, scale: float) -> None:
    x, _ = rows_of(rows, share, 1)
    exact, truth = squares(x, 1), float(np.var(x))
    assert too_seldom(found(mistake, exact, scale, 1000), truth)
    assert not too_seldom(found(variance_interval, exact, scale, 200), truth)
