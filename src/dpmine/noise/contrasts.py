"""How far sums of several discrete Laplace noises reach, each times a number of its own: |c_1 Z_1 + ... + c_k Z_k|.

One noise, and two of small scale, have their exact law. Else a law stands above it, which no scale makes wrong. With U
uniform in [-1/2, 1/2], Z + U has a density that falls in steps, and P(|Z + U| > y) <= exp(-y / s) for s = 1 / (2 tanh(1 /
(2 scale))): on the step around a whole number k it is exp(-k / scale) (1 - (y - k) / s), and 1 - x <= exp(-x), scale <= s.
Independent, symmetric and unimodal variables keep this order when they are added (Birnbaum 1948): sum c_i (Z_i + U_i)
reaches no farther than the same sum of Laplace noises of scale s, and sum c_i Z_i at most sum |c_i| / 2 farther. s exceeds
the scale by a share 1 / (12 scale^2), so from a scale of 32 on little is given away but that half step.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpmine.noise.confidence import check_confidence

Doubles = NDArray[np.float64]

EXACT_UP_TO = 32.0  # two noises up to this scale are added up value by value
_APART = {1: 0.0, 2: 1e-5, 3: 1e-4, 4: 6e-4}  # the least relative distance of scales, by their number; see `upper_tail`
_LOST = 55  # scales away from 0, what is left of a noise is 1e-24
_SLACK = 1e-12  # numbers that doubles put on either side of a whole number count as that number


def tail(coefficients: Sequence[float], scale: Fraction | float, threshold: float) -> float:
    """P(|sum c_i Z_i| >= threshold), or a little more: exact for one noise, and for two up to a scale of `EXACT_UP_TO`."""
    sizes = sorted((abs(coefficient) for coefficient in coefficients if coefficient), reverse=True)
    if threshold <= 0:
        return 1.0
    if not sizes:
        return 0.0
    steps = threshold / sizes[0]
    if len(sizes) == 1:
        return min(1.0, 2 * float(at_least(np.array([steps * (1 - _SLACK)]), float(scale))[0]))
    if len(sizes) == 2 and scale <= EXACT_UP_TO:
        values, chances = values_of(float(scale))
        beyond = steps - sizes[1] / sizes[0] * values - _SLACK * (1 + steps)
        return min(1.0, 2 * float(chances @ at_least(beyond, float(scale))))
    return float(upper_tail(np.array(sizes), float(scale), np.array(threshold)))


def half_width(coefficients: Sequence[float], scale: Fraction | float, confidence: float) -> float:
    """A t with P(|sum c_i Z_i| <= t) >= confidence; the smallest, to within a billionth, where `tail` is exact."""
    check_confidence(confidence)
    largest = max(map(abs, coefficients), default=0.0)
    low, high = 0.0, largest * (float(scale) + 1)
    while largest and tail(coefficients, scale, high) > 1 - confidence:
        low, high = high, 2 * high
    while high - low > 1e-9 * max(high, largest):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(coefficients, scale, middle) > 1 - confidence else (low, middle)
    return high


def upper_tail(sizes: Doubles, scale: float, threshold: Doubles) -> Doubles:
    """A bound on P(|sum c_i Z_i| >= threshold) for |c_i| <= sizes[..., i], at any scale. It rises with every size.

    Laplace noises of different scales b_i add up to P(|T| > x) = sum w_i exp(-x / b_i), w_i = product of b_i^2 / (b_i^2 -
    b_j^2). Scales that are equal or nearly so are moved apart, upwards, which only adds; the most that rounding can have
    taken off is added too.
    """
    steps = threshold - sizes.sum(axis=-1) / 2
    number = sizes.shape[-1]
    largest = np.max(sizes, axis=-1, keepdims=True)
    scales = np.sort(np.maximum(sizes, 1e-6 * largest + 1e-200), axis=-1) / (2 * math.tanh(1 / (2 * scale)))
    for place in range(1, number):
        scales[..., place] = np.maximum(scales[..., place], scales[..., place - 1] * (1 + _APART[number]))
    total = lost = np.zeros(steps.shape)
    for place in range(number):
        own, share = scales[..., place], np.ones(steps.shape)
        for other in range(number):
            if other != place:
                share = share / ((1 - scales[..., other] / own) * (1 + scales[..., other] / own))
        part = share * np.exp(-np.maximum(steps, 0) / own)
        total, lost = total + part, lost + np.abs(part)
    # each factor of a part is off by two roundings over the distance, its exponent by 2^-52 of at most 745
    bound = total + lost * (16 / (_APART[number] or 1) * 2.0**-52 + 2.0**-42)
    return np.where(steps <= 0, 1.0, np.minimum(bound, 1.0))


def at_least(numbers: Doubles, scale: float) -> Doubles:
    """P(Z >= number): a^k / (1 + a) for the whole number k from there on, if that is above 0; a = exp(-1 / scale)."""
    rate, first = 1 / scale, np.ceil(numbers)
    far: Doubles = np.exp(-rate * np.where(first > 0, first, 1 - first)) / (1 + math.exp(-rate))
    return np.where(first > 0, far, 1 - far)


def values_of(scale: float) -> tuple[Doubles, Doubles]:
    """The values that matter of a noise of small scale, and their chances; the last ones take what lies beyond them."""
    last = math.ceil(_LOST * scale) + 1
    values = np.arange(-last, last + 1, dtype=np.float64)
    chances = math.tanh(1 / (2 * scale)) * np.exp(-np.abs(values) / scale)
    chances[[0, -1]] = at_least(np.array([float(last)]), scale)
    return values, chances
