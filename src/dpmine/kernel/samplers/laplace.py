"""Integer noise: the discrete Laplace distribution for any rational scale, exact and vectorised.

Canonne, Kamath and Steinke (2020) define the distribution and a rejection sampler. We draw from the same law without
rejection: the sign (or zero) is one exact three-way coin, what lies above one is geometric, and the binary digits of a
geometric variable are independent, so each digit is one exact coin. But for about one draw in a hundred million, the work
done does not depend on the noise drawn.
See docs/decisions/0002-noise-by-independent-digits.md and docs/proofs.md#discrete-laplace.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.base.exponentials import exp_bounds
from dpmine.kernel.samplers.coins import Bounds, coin_exp, interval_of, uniform_is_below
from dpmine.kernel.samplers.entropy import Entropy

Integers = NDArray[np.int64]

WORD = 32
MOST_DIGITS = 60
LIMIT = 2**61  # answers are clipped here: post-processing that keeps every sum inside 64 bits
_SATURATED = 2**62


class NoiseSource(Protocol):
    """Where integer noise comes from. `ExactNoise` is ours; `OpenDPNoise` is the optional other provider."""

    def actual_scale(self, scale: Fraction) -> Fraction:
        """The scale of the noise that is drawn where this one is asked for: never smaller."""

    def discrete_laplace(self, scale: Fraction, size: int) -> Integers:
        """`size` independent draws Z with P(Z = z) proportional to exp(-abs(z) / scale)."""


class ExactNoise:
    """Discrete Laplace noise from exact coins.

    Claim        adding a draw of scale t to an integer of L1 sensitivity S is (S/t)-DP, for adding or removing one unit.
    Sensitivity  L1, declared by the query, not by this class.
    Proof        P(Z = z) / P(Z = z + s) <= exp(abs(s) / t), and independent coordinates multiply. docs/proofs.md.
    Assumes      integer input; fair bits from `Entropy`.
    Not covered  memory access patterns; extra turns for draws that need more than 32 bits a digit, about 1 in 1e8.
    Reference    Ghosh, Roughgarden, Sundararajan 2009; Canonne, Kamath, Steinke 2020, Definition 12.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def actual_scale(self, scale: Fraction) -> Fraction:
        return scale

    def discrete_laplace(self, scale: Fraction, size: int) -> Integers:
        rate = 1 / scale
        noise = _signs(self._entropy, rate, size)
        noise *= np.minimum(geometric(self._entropy, rate, size) + 1, _SATURATED)  # drawn also where the sign is 0
        return noise


def _signs(entropy: Entropy, rate: Fraction, size: int) -> Integers:
    """`size` independent draws of -1, 0 or 1: either sign with probability a / (1 + a), a = exp(-rate).

    One uniform real u decides: plus if u < p, minus if u >= 1 - p. As p is below one half, these do not meet.
    """
    low, high = _digit_probability(rate)(WORD)
    words = entropy.words(size)
    plus, minus = words < low, words >= (1 << WORD) - low
    signs = plus.astype(np.int64) - minus
    unsure = ((words < high) & ~plus) | ((words >= (1 << WORD) - high) & ~minus)
    for place in np.flatnonzero(unsure):
        signs[place] = _exact_sign(entropy, int(words[place]), _digit_probability(rate))
    return signs


def _exact_sign(entropy: Entropy, drawn: int, bounds: Bounds) -> int:
    """The sign for a uniform real that begins with the 32 bits `drawn`."""

    def ends(bits: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        (low, high), whole = bounds(bits), 1 << bits
        return (0, low, whole - high, whole), (0, high, whole - low, whole)

    return (1, 0, -1)[interval_of(entropy, drawn, WORD, ends)]


def geometric(entropy: Entropy, rate: Fraction, size: int) -> Integers:
    """`size` independent draws G >= 0 with P(G = g) proportional to exp(-rate g), cut at 2^62.

    With a = exp(-rate), the digit of weight 2^k is one with probability a^(2^k) / (1 + a^(2^k)), independently for
    every k, because the product of (1 + a^(2^k) x^(2^k)) is the generating function of the geometric law. Digits
    from 2^K on are drawn together: that part is 2^K times a geometric variable of rate 2^K rate.
    """
    digits = _digit_bounds(rate)
    drawn = np.zeros(size, dtype=np.int64)
    for k, (low, high) in enumerate(digits):
        words = entropy.words(size)
        drawn += (words < low).astype(np.int64) << k
        for place in np.flatnonzero((words >= low) & (words < high)):
            if uniform_is_below(entropy, int(words[place]), WORD, _digit_probability(rate * 2**k)):
                drawn[place] += 1 << k
    tail = rate * 2 ** len(digits)
    words = entropy.words(size)
    for place in np.flatnonzero(words < exp_bounds(tail, WORD)[1]):
        if uniform_is_below(entropy, int(words[place]), WORD, lambda bits: exp_bounds(tail, bits)):
            drawn[place] = min(int(drawn[place]) + (_one_more(entropy, tail) << len(digits)), _SATURATED)
    return drawn


def _one_more(entropy: Entropy, rate: Fraction) -> int:
    """One plus a geometric draw, by counting coins: used where a first success was astronomically unlikely."""
    count = 1
    while coin_exp(entropy, rate):
        count += 1
    return count


def _digit_probability(x: Fraction) -> Bounds:
    """Enclosures of q / (1 + q) for q = exp(-x)."""

    def bounds(bits: int) -> tuple[int, int]:
        low, high = exp_bounds(x, bits + 2)
        one = 1 << (bits + 2)
        return (low << bits) // (one + low), -((-high << bits) // (one + high))

    return bounds


@lru_cache(maxsize=4096)
def _digit_bounds(rate: Fraction) -> tuple[tuple[int, int], ...]:
    """For each digit drawn on its own, the 32-bit enclosure of its probability; until the tail is below 2^-32."""
    if rate <= 0:
        raise RequestError("The noise scale must be positive.")
    digits = 0
    while rate * 2**digits < 23:  # 23 > 32 ln 2
        digits += 1
    if digits > MOST_DIGITS:
        raise RequestError("Epsilon is too small for this question: the noise would not fit 64 bits.")
    return tuple(_digit_probability(rate * 2**k)(WORD) for k in range(digits))


def add_noise(exact_counts: Integers, source: NoiseSource, scale: Fraction) -> Integers:
    """Exact integers plus independent noise, clipped to +-2^61. No sum wraps, even if a source saturates at 64 bits."""
    noise = np.clip(source.discrete_laplace(scale, exact_counts.size), -_SATURATED, _SATURATED)
    noisy: Integers = exact_counts + noise.reshape(exact_counts.shape)
    return np.clip(noisy, -LIMIT, LIMIT)


def clipped(noisy_number: int) -> int:
    """As `add_noise` clips: post-processing that keeps every answer inside 64 bits."""
    return max(-LIMIT, min(noisy_number, LIMIT))
