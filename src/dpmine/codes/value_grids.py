"""The values of a numeric attribute as whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpmine.codes.domain import Grid

LARGEST_VALUE = 2**30  # one row's value in units; times fewer than 2^31 rows, every exact sum stays below 2^61


def largest_fits(largest: int | Fraction) -> bool:
    """Whether sums of numbers up to this one stay inside 64 bits, whatever the rows."""
    return largest < LARGEST_VALUE


@dataclass(frozen=True)
class ValueGrid:
    """The values of a numeric attribute as integers: code c stands for (first + step * c) * unit + centre."""

    first: int
    step: int
    size: int
    unit: Fraction
    centre: Fraction

    @classmethod
    def of(cls, grid: Grid, *, centred: bool) -> ValueGrid:
        low, step = grid.low, grid.step
        unit = Fraction(
            math.gcd(low.numerator * step.denominator, step.numerator * low.denominator), low.denominator * step.denominator
        )
        first, width = int(low / unit), int(step / unit) if grid.size > 1 else 0
        middle = first + width * ((grid.size - 1) // 2) if centred else 0
        return cls(first - middle, width, grid.size, unit, middle * unit)

    @property
    def last(self) -> int:
        return self.first + self.step * (self.size - 1)

    @property
    def largest(self) -> int:
        """The largest absolute value; 1 where all are 0."""
        return max(abs(self.first), abs(self.last), 1)
