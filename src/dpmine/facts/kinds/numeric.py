"""Numeric attributes: values at a public resolution within public bounds, and a coarser public grid."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ulp
from typing import Any, ClassVar

from dpmine.base.decimals import parse_decimal, plain
from dpmine.base.errors import ExpressionError, SchemaError
from dpmine.codes.domain import Column, Values
from dpmine.facts.kinds.kind import DROP, MISSING, OWN, Measured
from dpmine.facts.moments import MomentRule

MOST_GRID_POINTS = 4096
MOST_STEPS = 2**30
"""Of the resolution between the bounds: no sum of values, over as many rows as there can be, leaves 64 bits."""
FEWEST_ULPS = 4
"""Between two values: then rounding to the nearest, which rounds doubles three times on the way, finds every value again."""
LOG = "log"
DECADE = tuple(map(Decimal, ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")))
"""Where the cells of a logarithmic grid begin, between a power of ten and the next."""


_EXACT = Context(prec=60)  # numbers have at most 27 digits, values at most 10: nothing here is ever rounded


@dataclass(frozen=True, eq=False)
class Numeric(Measured):
    """A numeric attribute: clamped to low and high, and rounded to the nearest of low, low + resolution, and so on.

    That value is what sums, means, quantiles and comparisons are about, and what makes two rows the same. The grid is what
    histograms, splits and models see: each of its cells holds the values from its edge on up to the next. The edges are
    low, low + step, ...; or those listed; or with scale "log" ten in every power of ten.

    step        of an even grid; None where there are edges or a scale
    missing     what nulls, NaN and text that is no number become: "own", "drop", or a number
    resolution  None: 1 where bounds and edges are whole, else the power of ten that writes them (and None where it is that)
    days_between  two columns of dates or moments: the number is the days from the first to the second, of the moments as
                they stand there, before anything is clamped; missing where either is
    rule        how these two are read
    """

    kind: ClassVar[str] = "numeric"

    low: Decimal
    high: Decimal
    step: Decimal | None
    missing: Decimal | str = OWN
    resolution: Decimal | None = None
    edges: tuple[Decimal, ...] = ()
    scale: str | None = None
    days_between: tuple[str, ...] = ()
    rule: MomentRule = MomentRule()  # noqa: RUF009 (frozen)

    def __post_init__(self) -> None:
        where = f"Attribute {self.name!r}"
        if isinstance(self.missing, str) and self.missing not in (OWN, DROP):
            raise SchemaError(f'{where}: \'missing\' must be "own", "drop" or a number. Got {self.missing!r} instead.')
        listed = [(f"{what!r}", getattr(self, what)) for what in ("low", "high", "step", "missing", "resolution")]
        for what, number in [*listed, *(("an edge", edge) for edge in self.edges)]:
            if number is not None and not isinstance(number, str):
                parse_decimal(str(number), f"{where}: {what}", SchemaError)
        if sum((self.step is not None, bool(self.edges), self.scale is not None)) != 1:
            raise SchemaError(f"{where}: the grid needs one of 'step', 'edges' or 'scale'.")
        if self.scale not in (None, LOG):
            raise SchemaError(f"{where}: 'scale' must be \"log\". Got {self.scale!r} instead.")
        if self.high <= self.low or any(size is not None and size <= 0 for size in (self.step, self.resolution)):
            raise SchemaError(f"{where}: needs low < high, and a positive step and resolution.")
        if not isinstance(self.missing, str) and not self.low <= self.missing <= self.high:
            raise SchemaError(f'{where}: \'missing\' must lie within its bounds, or be "own" or "drop".')
        if len(self.days_between) not in (0, 2):
            raise SchemaError(f"{where}: 'days_between' names two columns, the first one first.")
        if not self.days_between and self.rule != MomentRule():
            raise SchemaError(f"{where}: 'format' and 'zone' say how the columns of 'days_between' are read.")
        if self.resolution == self._written_resolution:
            object.__setattr__(self, "resolution", None)  # attributes that mean the same are equal
        self._check_values(where)
        self._check_edges(where)

    def __eq__(self, other: object) -> bool:
        """By what they mean: a resolution that is left out equals the one that is then taken, as files have it."""
        return isinstance(other, Numeric) and self._meaning == other._meaning

    def __hash__(self) -> int:
        return hash(self._meaning)

    @cached_property
    def _meaning(self) -> tuple[Any, ...]:
        grid = self.finest, self.step, self.edges, self.scale
        return self.name, self.low, self.high, *grid, self.missing, self.days_between, self.rule

    def _check_values(self, where: str) -> None:
        if self.values < 2:
            raise SchemaError(f"{where}: a resolution of {plain(self.finest)} leaves one value between its bounds.")
        if self.values - 1 > MOST_STEPS:
            raise SchemaError(
                f"{where}: a resolution of {plain(self.finest)} makes more than 2^30 values. Set a coarser 'resolution'."
            )
        if float(self.finest) < FEWEST_ULPS * ulp(max(abs(float(self.low)), abs(float(self.high)))):
            raise SchemaError(f"{where}: the resolution of {plain(self.finest)} is too fine for numbers of this size.")

    def _check_edges(self, where: str) -> None:
        if self.step is not None and self._steps(self.high, self.step) >= MOST_GRID_POINTS:
            raise SchemaError(
                f'{where} has more than {MOST_GRID_POINTS} grid points. Use a larger step, closer bounds, or scale = "log".'
            )
        if len(self.edges) >= MOST_GRID_POINTS or any(low >= high for low, high in pairwise((self.low, *self.edges))):
            raise SchemaError(f"{where}: edges rise from above low on, at most {MOST_GRID_POINTS - 1} of them.")
        if self.edges and self.edges[-1] > self.high:
            raise SchemaError(f"{where}: no edge lies above high.")
        if self.scale is None and len(self.starts) < len(self._edges) + 1:
            raise SchemaError(f"{where}: two edges have no value between them. Set a finer 'resolution' or fewer edges.")

    # -- values ---------------------------------------------------------------------------------------------------------

    @cached_property
    def finest(self) -> Decimal:
        """The resolution: how far two neighbouring values are apart."""
        return self._written_resolution if self.resolution is None else self.resolution

    @property
    def _written_resolution(self) -> Decimal:
        written = (self.low, self.high, *self.edges, *(() if self.step is None else (self.step,)))
        exponents = (_EXACT.normalize(number).as_tuple().exponent for number in written)
        return Decimal(1).scaleb(min(0, *(exponent for exponent in exponents if isinstance(exponent, int))))

    @cached_property
    def values(self) -> int:
        return self._steps(self.high, self.finest) + 1

    def _steps(self, number: Decimal, step: Decimal) -> int:
        """How many whole steps a number of at least `low` lies above it."""
        return int(_EXACT.divide_int(_EXACT.subtract(number, self.low), step))

    @cached_property
    def numbers(self) -> Values:
        return Values(Fraction(self.low), Fraction(self.finest), self.values)

    def value_point(self, value: int) -> Decimal:
        return _EXACT.fma(self.finest, Decimal(value), self.low)

    def first_value_at_least(self, number: Decimal) -> int:
        if number <= self.low:
            return 0
        if number > self.high:
            return self.values
        value = min(self._steps(number, self.finest), self.values)
        return value if value == self.values or self.value_point(value) == number else value + 1

    def nearest_value(self, number: Decimal) -> int:
        """The value of a number between the bounds: halves are rounded up."""
        halves = _EXACT.divide_int(_EXACT.multiply(_EXACT.subtract(number, self.low), Decimal(2)), self.finest)
        return min((int(halves) + 1) // 2, self.values - 1)

    # -- the grid -------------------------------------------------------------------------------------------------------

    @cached_property
    def _edges(self) -> tuple[Decimal, ...]:
        """Where cells begin, but for the first."""
        if self.step is not None:
            return tuple(
                _EXACT.fma(self.step, Decimal(place), self.low) for place in range(1, self._steps(self.high, self.step) + 1)
            )
        return self.edges or _logarithmic(self.low, self.high, self.finest)

    @cached_property
    def starts(self) -> Sequence[int]:
        """The first value of every cell: an edge between two values belongs to the higher one."""
        found = {0, *map(self.first_value_at_least, self._edges)}
        return tuple(sorted(found - {self.values}))

    @cached_property
    def cells(self) -> int:
        return len(self.starts)

    @property
    def gap(self) -> str | None:
        return self.missing if isinstance(self.missing, str) else None

    @property
    def missing_value(self) -> int:
        """The value of rows without one: behind all others, or that of the number that the schema states."""
        return self.values if isinstance(self.missing, str) else self.nearest_value(self.missing)

    def code_of_value(self, value: int) -> int:
        return self.cells if value == self.values else bisect_right(self.starts, value) - 1

    @cached_property
    def column(self) -> Column:
        return super().column

    def middle(self, code: int) -> Decimal:
        """The middle of the values of a cell."""
        after = self.starts[code + 1] if code + 1 < self.cells else self.values
        return _EXACT.divide(_EXACT.add(self.value_point(self.starts[code]), self.value_point(after - 1)), Decimal(2))

    # -- requests -------------------------------------------------------------------------------------------------------

    def parsed(self, text: str) -> Decimal:
        return parse_decimal(text, f"a value of {self.name!r}", ExpressionError)

    def written(self, number: Decimal) -> str:
        return plain(number) if number.is_finite() else MISSING

    @property
    def reads(self) -> tuple[str, ...]:
        return self.days_between or (self.name,)

    def describe(self) -> str:
        return (
            f"values of {self.name!r} are clamped to {plain(self.low)} to {plain(self.value_point(self.values - 1))}, and "
            f"rounded to multiples of {plain(self.finest)}"
        )

    def form(self) -> dict[str, Any]:
        form: dict[str, Any] = {"kind": self.kind, "low": self.low, "high": self.high}
        if self.resolution is not None:
            form["resolution"] = self.resolution
        if self.step is not None:
            form["step"] = self.step
        elif self.scale is not None:
            form["scale"] = self.scale
        else:
            form["edges"] = list(self.edges)
        if self.days_between:
            form |= {"days_between": list(self.days_between)} | self.rule.form()
        return form | {"missing": self.missing}


def _logarithmic(low: Decimal, high: Decimal, resolution: Decimal) -> tuple[Decimal, ...]:
    """Ten edges in each power of ten, on both sides of 0, from the resolution on up to the bounds."""
    first, last = resolution.adjusted(), max(abs(low), abs(high)).adjusted()
    sizes = [number.scaleb(power) for power in range(first, last + 1) for number in DECADE]
    sizes = [size for size in sizes if size >= resolution]
    edges = [*(-size for size in reversed(sizes)), Decimal(0), *sizes]
    return tuple(edges[bisect_right(edges, low) : bisect_left(edges, high) + 1])
