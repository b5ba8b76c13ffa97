"""Numeric attributes: clamped to public bounds and floored to a public grid."""

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmine.base.decimals import parse_decimal, plain
from dpmine.base.errors import ExpressionError, SchemaError
from dpmine.codes.domain import Column, Grid
from dpmine.facts.kinds.kind import Ordered

MOST_GRID_POINTS = 4096


_EXACT = Context(prec=60)  # numbers have at most 27 digits, codes at most 4: nothing on a grid is ever rounded


@dataclass(frozen=True)
class Numeric(Ordered):
    """A numeric attribute on the public grid low, low + step, ... up to high.

    Values are floored to the grid, clamped to its ends; nulls, NaN and text that is no number become `missing`.
    """

    kind: ClassVar[str] = "numeric"

    low: Decimal
    high: Decimal
    step: Decimal
    missing: Decimal

    def __post_init__(self) -> None:
        for what in ("low", "high", "step", "missing"):
            parse_decimal(str(getattr(self, what)), f"Attribute {self.name!r}: {what!r}", SchemaError)
        if self.step <= 0 or self.high <= self.low:
            raise SchemaError(f"Attribute {self.name!r}: needs low < high and a positive step.")
        if self.size > MOST_GRID_POINTS:
            raise SchemaError(
                f"Attribute {self.name!r} has more than {MOST_GRID_POINTS} grid points. Use a larger step or closer bounds."
            )
        if np.any(np.diff(self.edges) <= 0):
            raise SchemaError(f"Attribute {self.name!r}: the step is too fine for numbers of this size.")

    @cached_property
    def size(self) -> int:
        return self._steps(self.high) + 1

    def _steps(self, number: Decimal) -> int:
        """How many whole steps a number of at least `low` lies above it."""
        return int(_EXACT.divide_int(_EXACT.subtract(number, self.low), self.step))

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """The grid points as the doubles nearest to them, so that encoding a value only ever compares."""
        return np.array([float(self.point(code)) for code in range(self.size)], dtype=np.float64)

    @cached_property
    def grid(self) -> Grid:
        return Grid(Fraction(self.low), Fraction(self.step), self.size)

    @property
    def column(self) -> Column:
        return Column(self.size, self.grid)

    def point(self, code: int) -> Decimal:
        return _EXACT.fma(self.step, Decimal(code), self.low)

    @property
    def other_code(self) -> int:
        return self.floor_code(self.missing)

    def first_code_at_least(self, number: Decimal) -> int:
        if number <= self.low:
            return 0
        code = min(self._steps(number), self.size)
        return code if code == self.size or self.point(code) == number else code + 1

    def number(self, text: str) -> Decimal:
        return parse_decimal(text, f"a value of {self.name!r}", ExpressionError)

    def written(self, number: Decimal) -> str:
        return plain(number)

    def describe(self) -> str:
        return (
            f"values of {self.name!r} are rounded down to the schema's grid from {self.label(0)} to "
            f"{self.label(self.size - 1)} in steps of {plain(self.step)}, and clamped to its ends"
        )

    def form(self) -> dict[str, Any]:
        return {"kind": self.kind, "low": self.low, "high": self.high, "step": self.step, "missing": self.missing}
