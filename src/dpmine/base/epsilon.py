"""Privacy budget as integers: one unit is a billionth of epsilon.

Text or numbers are rounded *down* to whole units once, on the way in. Price and noise both use that integer, so ten
queries at 0.1 cost exactly 1 and no query is ever noised for more epsilon than it paid.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from fractions import Fraction
from numbers import Real

from dpmine.base.errors import EpsilonError

UNITS = 10**9


_UNIT = Decimal("1e-9")


LARGEST = 10**6  # beyond this "epsilon" promises nothing, and integers stay small


@dataclass(frozen=True, order=True)
class Epsilon:
    """An amount of pure epsilon in whole units of 1e-9."""

    units: int

    @classmethod
    def parse(cls, amount: Epsilon | str | int | float | Decimal, *, name: str = "epsilon") -> Epsilon:
        """Read a positive amount; floats are read by their shortest decimal text, so 0.1 means one tenth."""
        epsilon = cls._read(amount, name)
        if epsilon.units <= 0:
            raise EpsilonError(f"{name} must be positive and at least 1e-9. Got {str(amount).strip()} instead.")
        return epsilon

    @classmethod
    def _read(cls, amount: Epsilon | str | int | float | Decimal, name: str) -> Epsilon:
        if isinstance(amount, Epsilon):
            return amount
        if isinstance(amount, bool) or not isinstance(amount, (str, Real, Decimal)):
            raise EpsilonError(f"{name} must be a number or its decimal text. Got {type(amount).__name__} instead.")
        try:
            text = str(amount).strip()
        except ValueError:  # Python does not write out integers of thousands of digits
            text = "9" * 65
        if len(text) > 64:
            raise EpsilonError(f"{name} must be a number of at most 64 characters.")
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise EpsilonError(f"{name} must be a number such as 0.1. Got {text!r} instead.") from None
        if not number.is_finite():
            raise EpsilonError(f"{name} must be a finite number. Got {text} instead.")
        if number > LARGEST:
            raise EpsilonError(f"{name} must be at most {LARGEST}. Got {text} instead.")
        if number < 0:
            return cls(-1)
        return cls(int(number.quantize(_UNIT, ROUND_FLOOR).scaleb(9)))

    @classmethod
    def parse_or_zero(cls, amount: Epsilon | str | int | float | Decimal, *, name: str = "epsilon") -> Epsilon:
        """Like parse, but 0 is allowed: in a query over cells it means that the cell is not asked."""
        epsilon = cls._read(amount, name)
        if epsilon.units < 0:
            raise EpsilonError(f"{name} must not be negative. Got {str(amount).strip()} instead.")
        return epsilon

    @property
    def fraction(self) -> Fraction:
        return Fraction(self.units, UNITS)

    def __float__(self) -> float:
        return self.units / UNITS

    def __str__(self) -> str:
        return format_units(self.units)


def format_units(units: int) -> str:
    """Write units as the shortest exact decimal: 100000000 is '0.1'."""
    sign, units = ("-", -units) if units < 0 else ("", units)
    whole, rest = divmod(units, UNITS)
    return f"{sign}{whole}" + (f".{rest:09d}".rstrip("0") if rest else "")


def shares(units: int, parts: int) -> tuple[int, ...]:
    """Whole units as evenly as possible, adding up exactly."""
    return tuple(units // parts + (place < units % parts) for place in range(parts))
