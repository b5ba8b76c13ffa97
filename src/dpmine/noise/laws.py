"""Laws: what noise does to an answer, as public values that question and price decide. Every answer carries its own.

A law says by which numbers noise is drawn; how far off an answer is by it, and how far its noise reaches, is read from it by
`dpmine.noise.spread`. Nobody but the kernel and this package turns epsilon into noise.
"""

from fractions import Fraction
from functools import cached_property

from dpmine.base.epsilon import UNITS, Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.noise.finite_tables import FiniteTable, exact_number

LARGEST_SCALE = 2**50  # noise of larger ones may not fit 64 bits
TOO_SMALL = "Epsilon is too small for this question: the noise would not fit 64 bits."


class Law:
    """How far off an answer may be, from public facts alone."""


class NoiseLaw(Law):
    """The law of the noise in a number: symmetric around 0, in the number's own unit."""


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


def laplace(sensitivity: int | Fraction, epsilon: Epsilon) -> DiscreteLaplace:
    """The noise that an amount of epsilon pays for. Refused where it would not fit 64 bits."""
    if epsilon.units < 1 or sensitivity * UNITS > epsilon.units * LARGEST_SCALE:
        raise RequestError(TOO_SMALL)
    return DiscreteLaplace(str(Fraction(sensitivity) / epsilon.fraction))


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
            raise RequestError(f"The inner widths of a staircase are at least 0 and below its lengths: {self.lengths}.")
        if not 0 <= self.place < len(self.lengths) or self.epsilon.units < 1:
            raise RequestError("Staircase noise has a positive epsilon, and this place is one of its numbers.")


def staircase(lengths: tuple[int, ...], inner: tuple[int, ...], epsilon: Epsilon) -> tuple[BoxStaircase, ...]:
    """The laws of all coordinates. Refused where the noise would not fit 64 bits."""
    if max(lengths) * UNITS > epsilon.units * LARGEST_SCALE:
        raise RequestError(TOO_SMALL)
    return tuple(BoxStaircase(lengths, inner, epsilon, place) for place in range(len(lengths)))


@value("finite-law")
class FiniteLaw(Law):
    """One of finitely many answers, drawn by a table: row by the true value, column by the answer."""

    table: FiniteTable


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


@value("noisy-comparisons")
class NoisyComparisons(Law):
    """The noise in each comparison of a private tree, and the rows that every further level costs a node."""

    noise: DiscreteLaplace
    decay: int
