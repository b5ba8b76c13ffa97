"""Noise that was designed beforehand, as whole numbers: a table on a finite grid, or levels on a lattice.

Row i of a `FiniteTable` is the law of what is released when the true value is the i-th point of a public grid. Its
entries are whole numbers over one common total, so the kernel draws from it without rounding, and whether it keeps
epsilon-DP is decided by comparing whole numbers with exp(-epsilon), never by comparing doubles. What a designer asks of
such a table besides (losses, posteriors, colluders) is `dpmine.design.finite_mechanisms`.
"""

import itertools
import math
import re
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.exponentials import exp_bounds
from dpmine.base.wire_values import value

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

MOST_POINTS = 401  # of the inputs, and of the outputs
LARGEST_TOTAL = 2**62  # of a row's weights: sums and maxima stay inside 64 bits
LONGEST_NUMBER = 60  # characters of a grid point's text
LATTICE_KINDS = ("geometric", "staircase")

_NUMBER = re.compile(r"-?[0-9]+(/[1-9][0-9]*)?")


def exact_number(text: str, name: str) -> Fraction:
    """Read a whole number or a fraction in lowest terms: one text for each number."""
    if type(text) is not str or len(text) > LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise RequestError(
            f'{name} must be the text of a whole number or a fraction such as "-10" or "1/3". Got {text!r:.60}.'
        )
    number = Fraction(text)
    if exact_text(number) != text:
        raise RequestError(f"{name} must be written in lowest terms: {exact_text(number)}. Got {text}.")
    return number


def exact_text(number: Fraction | int) -> str:
    return str(Fraction(number))


def grid_steps(sensitivity: Fraction, step: Fraction) -> int:
    """By how many grid points a number rounded to the grid can move when the number moves by the sensitivity."""
    if sensitivity < 0:
        raise RequestError(f"A sensitivity is not negative. Got {sensitivity}.")
    return math.ceil(sensitivity / step)


@value("lattice-noise")
class LatticeNoise:
    """Noise for an answer without bounds, on the lattice of whole multiples of `step`.

    kind    "geometric" (discrete Laplace) or "staircase"
    inner   of a staircase: how many lattice steps its innermost level reaches to either side; 0 for geometric noise
    """

    step: str
    kind: str
    inner: int

    def __post_init__(self) -> None:
        if exact_number(self.step, "The step of a lattice") <= 0:
            raise RequestError(f"The step of a lattice is positive. Got {self.step}.")
        if self.kind not in LATTICE_KINDS:
            raise RequestError(f"Noise on a lattice is one of {', '.join(LATTICE_KINDS)}. Got {self.kind!r}.")
        if type(self.inner) is not int or not 0 <= self.inner < LARGEST_TOTAL or (self.inner and self.kind == "geometric"):
            raise RequestError(
                f"The inner steps of a staircase are a whole number from 0; geometric has 0. Got {self.inner!r}."
            )


@value("finite-mechanism")
class FiniteTable:
    """A mechanism on a finite grid: row i is the law of what is released when the true value is the i-th grid point.

    low, step   of the input grid, exact text
    outputs     what is released, exact text, rising
    weights     [inputs][outputs]: whole numbers from 0; all rows add up to the same total
    """

    low: str
    step: str
    outputs: tuple[str, ...]
    weights: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not all(type(part) is tuple for part in (self.outputs, self.weights, *self.weights)):
            raise RequestError("The outputs and the rows of weights of a finite mechanism are tuples.")
        exact_number(self.low, "The lowest input")
        if exact_number(self.step, "The step of the inputs") <= 0:
            raise RequestError(f"The step of the inputs is positive. Got {self.step}.")
        if not (1 <= len(self.weights) <= MOST_POINTS and 1 <= len(self.outputs) <= MOST_POINTS):
            raise RequestError(f"A finite mechanism has 1 to {MOST_POINTS} inputs, and as many outputs at most.")
        released = [exact_number(text, "An output") for text in self.outputs]
        if any(left >= right for left, right in itertools.pairwise(released)):
            raise RequestError("The outputs of a finite mechanism rise strictly.")
        self._check_weights()

    def _check_weights(self) -> None:
        if any(len(row) != len(self.outputs) for row in self.weights):
            raise RequestError("Every row of a finite mechanism has a weight for every output.")
        if any(set(map(type, row)) != {int} or min(row) < 0 for row in self.weights):
            raise RequestError("The weights of a finite mechanism are whole numbers from 0.")
        totals = {sum(row) for row in self.weights}
        if len(totals) != 1 or not 0 < max(totals) < LARGEST_TOTAL:
            raise RequestError("All rows of a finite mechanism add up to the same total, which is positive and below 2^62.")

    def input_of(self, x: Fraction) -> int:
        """The number of the grid point that stands for x: floor((x - low) / step + 1/2), clamped to the grid.

        Halves always go up. Rounding them away from zero, or to even numbers, would send two values within the
        sensitivity farther apart than the check below covers.
        """
        place = math.floor((x - Fraction(self.low)) / Fraction(self.step) + Fraction(1, 2))
        return max(0, min(place, len(self.weights) - 1))

    def steps(self, sensitivity: Fraction) -> int:
        """By how many grid points the input can move when the true value moves by at most the sensitivity."""
        return min(grid_steps(sensitivity, Fraction(self.step)), len(self.weights) - 1)

    def keeps(self, epsilon: Epsilon, sensitivity: Fraction) -> bool:
        """Whether the mechanism is epsilon-DP for a value of this sensitivity: exact, with no tolerance.

        Every weight is compared with the largest in its column whose input lies within the sensitivity. exp(-epsilon) is
        irrational for a positive rational epsilon, so enclosures that get narrower decide in the end; where a weight is 0
        those within reach have to be 0 too.
        """
        weights = np.array(self.weights, dtype=object)  # Python's integers: nothing is rounded, nothing overflows
        largest = window_maxima(weights, self.steps(sensitivity))
        if bool(np.any((weights == 0) & (largest > 0))):
            return False
        bits = 128
        while True:
            low, high = exp_bounds(epsilon.fraction, bits)
            if bool(np.all(weights << bits >= largest * high)):
                return True
            if bool(np.any(weights << bits < largest * low)):
                return False
            bits *= 2


Numbers = TypeVar("Numbers", Whole, Floats)


def window_maxima(columns: Numbers, steps: int) -> Numbers:
    """For each entry, the largest in its column at most `steps` rows away."""
    length = len(columns)
    reach, largest = 0, columns.copy()
    while reach < steps:
        # Windows that far apart and their own make a wider one. A longer shift would leave a gap near the ends, where one
        # of the three is missing: its points have to be in the middle one.
        shift = min(reach + 1, steps - reach)
        wider = largest.copy()
        wider[shift:] = np.maximum(wider[shift:], largest[: length - shift])
        wider[: length - shift] = np.maximum(wider[: length - shift], largest[shift:])
        largest, reach = wider, reach + shift
    return largest
