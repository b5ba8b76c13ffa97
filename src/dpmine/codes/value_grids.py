"""The values of a numeric attribute as whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpmine.codes.domain import Values

LARGEST_VALUE = 2**30  # of one row, in units or as a product of steps; times fewer than 2^31 rows, sums stay below 2^61


def largest_fits(largest: int | Fraction) -> bool:
    """Whether sums of numbers up to this one stay inside 64 bits, whatever the rows."""
    return largest <= LARGEST_VALUE


@dataclass(frozen=True)
class ValueGrid:
    """The values of a numeric attribute as integers: value v stands for (first + step * v) * unit + centre."""

    first: int
    step: int
    size: int
    unit: Fraction
    centre: Fraction

    @classmethod
    def of(cls, numbers: Values, *, centred: bool) -> ValueGrid:
        low, step = numbers.low, numbers.step
        unit = Fraction(
            math.gcd(low.numerator * step.denominator, step.numerator * low.denominator), low.denominator * step.denominator
        )
        if centred:  # from the middle every value is so many steps away
            unit = step
            middle = (numbers.size - 1) // 2
            return cls(-middle, 1, numbers.size, unit, low + middle * step)
        return cls(int(low / unit), int(step / unit), numbers.size, unit, Fraction(0))

    @property
    def last(self) -> int:
        return self.first + self.step * (self.size - 1)

    @property
    def largest(self) -> int:
        """The largest absolute value; 1 where all are 0."""
        return max(abs(self.first), abs(self.last), 1)

    def total(self, rows: int, steps: int) -> int:
        """The sum of so many values that are so many steps, together, above the lowest."""
        return self.first * rows + self.step * steps
