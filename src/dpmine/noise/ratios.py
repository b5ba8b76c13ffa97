"""Intervals for ratios of noisy sums: means, variances and covariances as shares of a range, by turning tests around.

A value is left out where a test rejects it: a sum of the noisy numbers, with coefficients that follow from the value, has
mean 0 if the value is the true one, and its noise is a contrast (`dpmine.noise.contrasts`). So an interval holds the true
value with at least its confidence whatever the rows are, also where hardly any are there and the ratio itself has no useful
law. Values are tested by stretches: one is left out only if no value in it could pass, so nothing rests on how tests vary
in between.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpmine.noise.confidence import check_confidence
from dpmine.noise.contrasts import EXACT_UP_TO, Doubles, at_least, upper_tail, values_of

Interval = tuple[float, float]
Test = Callable[[float, float], float]
"""(from, to) -> a bound on the p-value of every value in between."""

_NUISANCE = 1 / 20  # of the chance to be wrong: what is spent on means that only help to tell a variance
_CELLS = 16  # in which such a mean is looked through; two of them in the square of half as many
_FINEST = 1 / 2000  # of a noise's reach: closer than this an end is not looked for
_FARTHEST = 8.0  # of a noise's reach: beyond, a first guess supposes that nothing passes
_MOST_TRIES = 1_000  # of an end; one that is found no sooner stays where it is, which only widens the interval
_FAINTEST = 1e-12  # p-values below say that something else than noise is at work
_ROUNDING = 2.0**-48  # relative: of sums of a few products


def mean_interval(a: float, b: float, scale: Fraction | float, confidence: float, *, allowance: float = 0.0) -> Interval:
    """Where the mean of x lies, as a share of its range, given a = sum(x) + Z1 and b = sum(range - x) + Z2.

    (1 - m) a - m b has mean 0 for the true share m (Fieller 1954). `allowance` says by how much else it may be off, for sums
    that were rounded before. (0, 1) says that nothing is excluded.
    """
    check_confidence(confidence)
    t, total = float(scale), a + b
    test = _exact_test(a, b, t, allowance) if t <= EXACT_UP_TO else _mean_test(a, total, t, lambda m: (1 - m, m), allowance)
    return _passing(test, (0.0, 1.0), a, total, t, 1 - confidence)


def variance_interval(p: float, q: float, r: float, scale: Fraction | float, confidence: float) -> Interval:
    """Where the variance lies, as a share of the squared range w^2: within [0, 1/4].

    Given are sum(x^2), sum(2 x (w - x)) and sum((w - x)^2), each with noise of that scale. For the true mean m and variance
    s, p ((1 - m)^2 - s) - q (m (1 - m) + s) + r (m^2 - s) has mean 0. m is known to an interval that is wrong for a
    twentieth of the chance that this one may be; a variance stays if it passes with any m there that it can go with, s <= m
    (1 - m).
    """
    check_confidence(confidence)
    t, total, alpha = float(scale), p + q + r, 1 - confidence
    mean_test = _mean_test(p + q / 2, total, t, lambda m: (1 - m, 0.5 - m, m))
    means = np.linspace(*_passing(mean_test, (0.0, 1.0), p + q / 2, total, t, alpha * _NUISANCE), _CELLS + 1)
    ends = np.stack([means[:-1], means[1:]])  # of each cell
    squares = total * ends**2 - (2 * p + q) * ends + p
    lowest, highest = squares.min(axis=0), squares.max(axis=0)
    if total:
        turn = (p + q / 2) / total
        there = (ends[0] < turn) & (turn < ends[1])
        value = total * turn**2 - (2 * p + q) * turn + p
        lowest, highest = (
            np.where(there, np.minimum(lowest, value), lowest),
            np.where(there, np.maximum(highest, value), highest),
        )
    most = np.where((ends[0] < 0.5) & (ends[1] > 0.5), 0.25, (ends * (1 - ends)).max(axis=0))
    off = _ROUNDING * (abs(p) + abs(q) + abs(r))

    def test(low: float, high: float) -> float:
        sizes = np.stack([_largest((1 - ends) ** 2, low, high), most + high, _largest(ends**2, low, high)], axis=-1)
        return _worst(sizes, t, (lowest - off, highest + off), (low * total, high * total), low <= most)

    estimate = p + q / 2 if not total else p - (p + q / 2) ** 2 / total
    return _passing(test, (0.0, 0.25), estimate, total, t, alpha * (1 - _NUISANCE))


def covariance_interval(
    both: float, first: float, second: float, neither: float, scale: Fraction | float, confidence: float
) -> Interval:
    """Where the covariance of x in [0, v] and y in [0, w] lies, as a share of v w: within [-1/4, 1/4].

    Given are sum(x y), sum(x (w - y)), sum((v - x) y) and sum((v - x)(w - y)), each with noise of that scale. As for the
    variance, with two means that are known to intervals; a share c can go with means f and g if -min(f g, (1 - f)(1 - g))
    <= c <= min(f (1 - g), (1 - f) g).
    """
    check_confidence(confidence)
    t, total, alpha = float(scale), both + first + second + neither, 1 - confidence
    of_x, of_y = both + first, both + second

    def means(sum_of: float) -> Doubles:
        mean_test = _mean_test(sum_of, total, t, lambda m: (1 - m, 1 - m, m, m))
        found = _passing(mean_test, (0.0, 1.0), sum_of, total, t, alpha * _NUISANCE / 2)
        edges = np.linspace(*found, _CELLS // 2 + 1)
        return np.stack([edges[:-1], edges[1:]])

    f, g = means(of_x), means(of_y)
    x, y = np.repeat(f[[0, 0, 1, 1]], f.shape[1], axis=1), np.tile(g[[0, 1, 0, 1]], f.shape[1])  # four corners of each cell
    products = both - x * of_y - y * of_x + x * y * total
    off = _ROUNDING * (abs(both) + abs(first) + abs(second) + abs(neither))
    lowest, highest = products.min(axis=0) - off, products.max(axis=0) + off
    most = np.minimum((x * (1 - y)).max(axis=0), ((1 - x) * y).max(axis=0))
    least = -np.minimum((x * y).max(axis=0), ((1 - x) * (1 - y)).max(axis=0))

    def test(low: float, high: float) -> float:
        weights = ((1 - x) * (1 - y), -(1 - x) * y, -x * (1 - y), x * y)
        sizes = np.stack([_largest(weight, low, high) for weight in weights], axis=-1)
        return _worst(sizes, t, (lowest, highest), (low * total, high * total), (low <= most) & (high >= least))

    estimate = both - of_x * of_y / total if total else 0.0
    return _passing(test, (-0.25, 0.25), estimate, total, t, alpha * (1 - _NUISANCE))


# -- tests of all values in a stretch -----------------------------------------------------------------------------------


def _mean_test(
    first: float, total: float, t: float, coefficients: Callable[[float], tuple[float, ...]], allowance: float = 0.0
) -> Test:
    """Of first - m total, whose noise has these coefficients, each largest at an end of a stretch."""

    def test(low: float, high: float) -> float:
        ends = first - low * total, first - high * total
        if ends[0] * ends[1] <= 0:
            return 1.0
        reached = min(map(abs, ends)) - allowance - _ROUNDING * (abs(first) + abs(total))
        pairs = zip(coefficients(low), coefficients(high), strict=True)
        sizes = np.array([max(abs(one), abs(other)) for one, other in pairs])
        return float(upper_tail(sizes, t, np.array(reached)))

    return test


def _exact_test(a: float, b: float, t: float, allowance: float) -> Test:
    """Of (1 - m) a - m b, by the law of both noises: what reaches as far for any m of a stretch, value by value.

    For (1 - m) a > m b the noises reach as far if Z1 >= a + (Z2 - b) m / (1 - m), which is loosest at an end of the
    stretch. Where m is large, the part of Z1 is taken by -Z2.
    """
    values, chances = values_of(t)

    def test(low: float, high: float) -> float:
        ends = a - low * (a + b), a - high * (a + b)
        if ends[0] * ends[1] <= 0 or high - low > 0.5:
            return 1.0
        one, other = (a, b) if ends[0] > 0 else (-a, -b)
        if low + high > 1:
            one, other, low, high = -other, -one, 1 - high, 1 - low
        off = (allowance + _ROUNDING * (abs(a) + abs(b)) + 1e-9) / (1 - high)
        beyond = values - other
        needed = one - off + np.minimum(beyond * (low / (1 - low)), beyond * (high / (1 - high)))
        return min(1.0, 2 * float(chances @ at_least(needed, t)))

    return test


def _largest(weights: Doubles, low: float, high: float) -> Doubles:
    """The largest |weight - s| for weights between the given ones of each cell and s from low to high."""
    largest: Doubles = np.maximum(weights.max(axis=0) - low, high - weights.min(axis=0))
    return largest


def _worst(sizes: Doubles, t: float, told: tuple[Doubles, Doubles], shares: Interval, possible: np.ndarray) -> float:
    """The largest p-value over the cells that are possible, where the numbers differ from the value's share by least."""
    reached = np.maximum(told[0] - max(shares), min(shares) - told[1])
    return float(np.max(np.where(possible, upper_tail(sizes, t, reached), 0.0)))


# -- what passes --------------------------------------------------------------------------------------------------------


def _passing(test: Test, allowed: Interval, share: float, total: float, t: float, alpha: float) -> Interval:
    """All allowed values that pass, and what lies between them.

    If none does, which is rarer than the interval's being wrong, the test is made milder until some do: the values that the
    numbers speak against least.
    """
    low, high = allowed
    reach = t / max(abs(total), t)
    guess = min(max(share / total, low), high) if total > 0 else (low + high) / 2
    while alpha > _FAINTEST:
        left = _end(test, low, high, guess - _FARTHEST * reach, reach, alpha)
        if left < high:
            return left, max(left, _end(test, high, low, guess + _FARTHEST * reach, reach, alpha))
        alpha /= 10
    return allowed


def _end(test: Test, start: float, last: float, guess: float, reach: float, alpha: float) -> float:
    """How far all values are left out, from the start on: by stretches that are halved where one may pass."""
    at, sign = start, 1.0 if last > start else -1.0
    step, passed = max((guess - start) * sign, reach), 0
    for _ in range(_MOST_TRIES):
        after = min(at + step, last) if sign > 0 else max(at - step, last)
        if test(min(at, after), max(at, after)) > alpha:
            step, passed = step / 2, 0
        else:
            at, passed = after, passed + 1
            step = min(step, _FARTHEST * reach) if passed == 1 else 2 * step
        if at == last or step < _FINEST * reach:
            break
    return at
