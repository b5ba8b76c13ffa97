"""Laws: what noise does to an answer, as public values that question and price decide. Every answer carries its own.

A law knows how far off a number is expected to be and how far its noise reaches. Whoever reads an answer asks its law;
nobody but the kernel and this package turns epsilon into noise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

from dpmine.base.epsilon import UNITS, Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.noise.boxes import BoxNoise
from dpmine.noise.confidence import check_confidence
from dpmine.noise.finite_tables import FiniteTable, exact_number
from dpmine.noise.laplace import noise_deviation, noise_half_width

LARGEST_SCALE = 2**50  # noise of larger ones may not fit 64 bits
TOO_SMALL = "Epsilon is too small for this question: the noise would not fit 64 bits."


class Law:
    """How far off an answer may be, from public facts alone."""


class NoiseLaw(Law):
    """The law of the noise in a number: symmetric around 0, in the number's own unit."""

    def deviation(self) -> float:
        """The standard deviation."""
        raise NotImplementedError

    def half_width(self, confidence: float) -> int:
        """The smallest t with P(abs(noise) <= t) >= confidence."""
        raise NotImplementedError


@value("discrete-laplace")
class DiscreteLaplace(NoiseLaw):
    """P(z) proportional to exp(-abs(z) / scale) for whole z. The scale is the exact text of a fraction."""

    scale: str

    def __post_init__(self) -> None:
        if exact_number(self.scale, "The scale of noise") <= 0:
            raise RequestError(f"The scale of noise is positive. Got {self.scale}.")

    @cached_property
    def fraction(self) -> Fraction:
        return Fraction(self.scale)

    def deviation(self) -> float:
        return noise_deviation(self.fraction)

    def half_width(self, confidence: float) -> int:
        return noise_half_width(self.fraction, confidence)

    def log_tail(self, threshold: int) -> float:
        """The logarithm of P(noise >= threshold), for a threshold from 1 on: a^threshold / (1 + a), a = exp(-1 / scale)."""
        rate = float(1 / self.fraction)
        return -rate * threshold - math.log1p(math.exp(-rate))

    def __str__(self) -> str:
        return f"discrete Laplace noise of scale {float(self.fraction):.6g}"


def laplace(sensitivity: int | Fraction, epsilon: Epsilon) -> DiscreteLaplace:
    """The noise that an amount of epsilon pays for. Refused where it would not fit 64 bits."""
    if epsilon.units < 1 or sensitivity * UNITS > epsilon.units * LARGEST_SCALE:
        raise RequestError(TOO_SMALL)
    return DiscreteLaplace(str(Fraction(sensitivity) / epsilon.fraction))


def of_counts(epsilon: Epsilon) -> DiscreteLaplace:
    """The noise in each count of a histogram at this price: for plans, before anything is asked."""
    return laplace(1, epsilon)


@value("box-staircase")
class BoxStaircase(NoiseLaw):
    """One coordinate of staircase noise over the boxes |z_j| <= k lengths[j] + inner[j]; one box: the staircase itself."""

    lengths: tuple[int, ...]
    inner: tuple[int, ...]
    epsilon: Epsilon
    place: int

    def __post_init__(self) -> None:
        pairs = zip(self.lengths, self.inner, strict=False)
        if len(self.lengths) != len(self.inner) or any(not 0 <= inner < length for length, inner in pairs):
            raise RequestError("Inner widths of boxes are at least 0 and below their lengths.")
        if not 0 <= self.place < len(self.lengths) or self.epsilon.units < 1:
            raise RequestError("Staircase noise has a positive epsilon, and this place is one of its numbers.")

    @property
    def box(self) -> BoxNoise:
        return BoxNoise(self.lengths, self.inner, self.epsilon)

    def deviation(self) -> float:
        return self.box.deviation(self.place)

    def half_width(self, confidence: float) -> int:
        return self.box.half_width(confidence, self.place)

    def __str__(self) -> str:
        return "staircase noise" if len(self.lengths) == 1 else "staircase noise over boxes"


def staircase(lengths: tuple[int, ...], inner: tuple[int, ...], epsilon: Epsilon) -> tuple[BoxStaircase, ...]:
    """The laws of all coordinates. Refused where the noise would not fit 64 bits."""
    if max(lengths) * UNITS > epsilon.units * LARGEST_SCALE:
        raise RequestError(TOO_SMALL)
    return tuple(BoxStaircase(lengths, inner, epsilon, place) for place in range(len(lengths)))


@value("finite-law")
class FiniteLaw(Law):
    """One of finitely many answers, drawn by a table: row by the true value, column by the answer."""

    table: FiniteTable

    def __str__(self) -> str:
        return f"a finite mechanism of {len(self.table.weights)} points and {len(self.table.outputs)} answers"


@value("choice-loss")
class ChoiceLoss(Law):
    """By how much less than the best a choice may score: P(loss > t) <= candidates exp(-epsilon t / range).

    The range is how far one unit can move one candidate against another, in units of the score; exact text of a fraction.
    """

    candidates: int
    range: str
    epsilon: Epsilon

    def __post_init__(self) -> None:
        if exact_number(self.range, "The range of a score") <= 0 or self.candidates < 1 or self.epsilon.units < 1:
            raise RequestError("A choice has candidates, a range and an epsilon, all positive.")

    def bound(self, confidence: float) -> float:
        """The loss is at most this with the stated confidence."""
        check_confidence(confidence)
        rate = float(self.epsilon) / float(Fraction(self.range))
        return (math.log(self.candidates) - math.log1p(-confidence)) / rate

    def __str__(self) -> str:
        return f"a private choice among {self.candidates} candidates"


@value("noisy-comparisons")
class NoisyComparisons(Law):
    """The noise in each comparison of a private tree, and the rows that every further level costs a node."""

    noise: DiscreteLaplace
    decay: int

    def __str__(self) -> str:
        return f"comparisons with {self.noise}"
