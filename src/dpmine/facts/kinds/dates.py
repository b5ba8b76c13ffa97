"""Dates, moments and times of day: values at a public resolution within public bounds, cells at edges of the calendar."""

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from dpmine.base.errors import ExpressionError, SchemaError
from dpmine.codes.domain import Values
from dpmine.facts.calendar import DAY, HOUR, SHORTEST, UNITS, beginnings, days_of
from dpmine.facts.kinds.kind import DROP, MISSING, OWN, Measured
from dpmine.facts.kinds.numeric import MOST_GRID_POINTS, MOST_STEPS
from dpmine.facts.moments import BILLION, ISO_CLOCK, MomentRule, clock_text, date_text, zone_of, zone_text

EPOCH = dt.datetime(1970, 1, 1)
FIRST, AFTER_LAST = days_of(1, 1, 1) * DAY, days_of(10_000, 1, 1) * DAY
"""Bounds lie in years that Python's dates have, so that an answer can be one."""
SECONDS_IN = {"s": 1, "min": 60, "h": HOUR, "d": DAY}
RESOLUTIONS = ("1s", "1min", "1h")
"""By default the first of them that makes at most 2^30 steps."""


@dataclass(frozen=True)
class Dated(Measured):
    """An attribute of the calendar: clamped to low and high, and to the last of low, low + resolution, ... before it.

    So a value is the day, or the second, that a moment lies in. Numbers of a kind like this are seconds since 1970. The grid
    is what histograms, splits and models see: each of its cells is a unit of the calendar, the first from low on.

    low, high   as ISO 8601, or as Python's dates
    grid        day, week, month, year, ...; "": the first from the kind's own on that makes at most 4,096 cells
    missing     what nulls and texts that are no date become: "own", "drop", or a date
    format      of texts, such as "%d.%m.%Y"; "": ISO 8601
    zone        the offset, such as "+01:00", that values with a time zone are converted to; "": UTC
    resolution  how far two values are apart, such as "1s" or "5min"; "": 1 s, or where that is too many values 1 min or 1 h
    """

    finest_grid: ClassVar[str]
    units: ClassVar[tuple[str, ...]]
    """What grids may be of."""
    example: ClassVar[str]
    needs: ClassVar[tuple[str, str]]
    """Fields of a format, one of which it must have, and what they are called."""

    low: str
    high: str
    grid: str = ""
    missing: str = OWN
    format: str = ""
    zone: str = ""
    resolution: str = ""

    def __post_init__(self) -> None:
        where = f"Attribute {self.name!r}"
        for field in ("low", "high", "missing"):
            self._settle(field, iso_text(getattr(self, field)))
        minutes = zone_of(self.zone, where) if self.zone else 0
        self._settle("zone", zone_text(minutes) if minutes else "")
        if self.format and not {*self.rule.patterns[0].fields} & {*self.needs[0]}:
            raise SchemaError(f"{where}: the format {self.format!r} of a {self.kind} has no {self.needs[1]}.")
        first, last = (self._bound(text, what, where) for what, text in (("low", self.low), ("high", self.high)))
        step = self._settled_resolution(first, last, where)
        if self._takes_whole_days and ":" not in self.high:
            last += DAY - step  # a day is a bound with all of its moments
        if first % step:
            raise SchemaError(f"{where}: 'low' must be at a whole multiple of the resolution of {self.resolution}.")
        if last - first < step:
            raise SchemaError(f"{where}: needs low < high, with two values between them.")
        if (last - first) // step > MOST_STEPS:
            raise SchemaError(f"{where}: a resolution of {self.resolution} makes more than 2^30 values. Set a coarser one.")
        self._settle("low", self._text(Fraction(first)))
        self._settle("high", self._text(Fraction(first + (last - first) // step * step)))
        self._settle_grid(first, last, step, where)
        if self.missing not in (OWN, DROP):
            stated = self._bound(self.missing, "missing", where)
            if not first <= stated <= last:
                raise SchemaError(f'{where}: \'missing\' must lie within its bounds, or be "own" or "drop".')
            self._settle("missing", self._text(Fraction(first + (stated - first) // step * step)))

    def _settle(self, field: str, text: str) -> None:
        """One text for each meaning, so that what means the same is the same."""
        object.__setattr__(self, field, text)

    def _bound(self, text: str, what: str, where: str) -> int:
        try:
            second = math.floor(self._read(text))
        except ExpressionError:
            example = f"{self.kind} such as {self.example}"
            raise SchemaError(f"{where}: {what!r} must be a {example}. Got {text!r} instead.") from None
        if not FIRST <= second < AFTER_LAST:
            raise SchemaError(f"{where}: {what!r} must lie in the years 1 to 9999. Got {text!r} instead.")
        return second

    def _settled_resolution(self, first: int, last: int, where: str) -> int:
        fitting = [text for text in RESOLUTIONS if (last + DAY - first) // seconds_in(text) <= MOST_STEPS]
        stated = self.resolution or fitting[0]
        step = seconds_in(stated)
        if step == 0 or not (HOUR % step == 0 or (step % HOUR == 0 and DAY % step == 0)):
            raise SchemaError(
                f"{where}: 'resolution' must be a part of an hour, or whole hours that make a day, "
                f'such as "1s", "5min" or "6h". Got {stated!r} instead.'
            )
        unit = next(unit for unit in reversed(SECONDS_IN) if step % SECONDS_IN[unit] == 0)
        self._settle("resolution", f"{step // SECONDS_IN[unit]}{unit}")
        return step

    def _settle_grid(self, first: int, last: int, step: int, where: str) -> None:
        possible = [unit for unit in self.units if SHORTEST[unit] >= step]
        if self.grid and self.grid not in possible:
            raise SchemaError(f"{where}: 'grid' must be one of {', '.join(possible)}. Got {self.grid!r} instead.")
        finest = self.finest_grid if self.finest_grid in possible else possible[0]
        coarser = possible[possible.index(self.grid or finest) :]
        fitting = [unit for unit in coarser if _count(unit, first, last) <= MOST_GRID_POINTS]
        if not fitting or (self.grid and fitting[0] != self.grid):
            instead = f", or a grid of {fitting[0]}s" if fitting else ""
            raise SchemaError(
                f"{where}: a grid of {self.grid or coarser[-1]}s has more than {MOST_GRID_POINTS} cells. "
                f"Set closer bounds{instead}."
            )
        self._settle("grid", fitting[0])

    @property
    def _takes_whole_days(self) -> bool:
        return False

    # -- values ---------------------------------------------------------------------------------------------------------

    @cached_property
    def rule(self) -> MomentRule:
        """How values are read."""
        return MomentRule(self.format, zone_of(self.zone, self.name) if self.zone else 0, self._is_clock)

    @property
    def _is_clock(self) -> bool:
        return False

    @cached_property
    def step(self) -> int:
        """The seconds from one value to the next."""
        return seconds_in(self.resolution)

    @cached_property
    def first(self) -> int:
        """The second of the first value."""
        return int(self._read(self.low))

    @cached_property
    def last(self) -> int:
        """The second of the last value."""
        return int(self._read(self.high))

    @cached_property
    def values(self) -> int:
        return (self.last - self.first) // self.step + 1

    @cached_property
    def numbers(self) -> Values:
        return Values(Fraction(self.first), Fraction(self.step), self.values)

    def value_point(self, value: int) -> Decimal:
        return Decimal(self.first + value * self.step)

    def first_value_at_least(self, number: Decimal) -> int:
        return min(max(math.ceil((Fraction(number) - self.first) / self.step), 0), self.values)

    @cached_property
    def starts(self) -> Sequence[int]:
        edges = list(beginnings(self.grid, self.first, self.last))[1:]
        return tuple(sorted({0, *(-((self.first - edge) // self.step) for edge in edges)} - {self.values}))

    @cached_property
    def cells(self) -> int:
        return len(self.starts)

    @property
    def gap(self) -> str | None:
        return self.missing if self.missing in (OWN, DROP) else None

    @property
    def missing_value(self) -> int:
        """The value of rows without one: behind all others, or the one that the schema states."""
        return self.values if self.gap is not None else (int(self._read(self.missing)) - self.first) // self.step

    # -- texts ----------------------------------------------------------------------------------------------------------

    def _read(self, text: str) -> Fraction:
        """A value named by a schema or a request: always as ISO 8601."""
        found = self._named(text) if isinstance(text, str) else None
        if found is None:
            raise ExpressionError(
                f"A value of {self.name!r} must be a {self.kind} such as {self.example}. Got {text!r:.40}."
            )
        return found[0] + Fraction(found[1], BILLION)

    def _named(self, text: str) -> tuple[int, int] | None:
        return self.rule.of_stored.moment(text)

    def _text(self, number: Fraction) -> str:
        """The one text of a second; broken seconds with as many digits as they have."""
        raise NotImplementedError

    def told(self, number: Fraction) -> dt.date | dt.time:
        """What an answer says of a number between the bounds, to the second."""
        raise NotImplementedError

    def parsed(self, text: str) -> Decimal:
        number = self._read(text)
        return Decimal(f"{number.numerator * (BILLION // number.denominator)}E-9")

    def written(self, number: Decimal) -> str:
        return self._text(Fraction(number)) if number.is_finite() else MISSING

    def describe(self) -> str:
        return f"values of {self.name!r} are clamped to {self.low} to {self.high}"

    def form(self) -> dict[str, Any]:
        form = {"kind": self.kind, "low": self.low, "high": self.high, "grid": self.grid, "missing": self.missing}
        return form | self.rule.form()


@dataclass(frozen=True)
class Date(Dated):
    """Days. A moment counts as the day that it lies in."""

    kind: ClassVar[str] = "date"
    finest_grid: ClassVar[str] = "day"
    units: ClassVar[tuple[str, ...]] = ("day", "week", "month", "year")
    example: ClassVar[str] = "2013-01-31"
    needs: ClassVar[tuple[str, str]] = ("Yy", "year (%Y or %y)")

    def _settled_resolution(self, first: int, last: int, where: str) -> int:
        if self.resolution not in ("", "1d"):
            raise SchemaError(f"{where}: the resolution of a date is a day.")
        self._settle("resolution", "1d")
        return DAY

    def _named(self, text: str) -> tuple[int, int] | None:
        """Days alone: an hour of a day lies between two values."""
        found = super()._named(text)
        return found if found is not None and found[0] % DAY == found[1] == 0 else None

    def _text(self, number: Fraction) -> str:
        return date_text(int(number))

    def told(self, number: Fraction) -> dt.date:
        return (EPOCH + dt.timedelta(seconds=math.floor(number))).date()


@dataclass(frozen=True)
class DateTime(Dated):
    """Moments. A day as `high` takes in all of its moments."""

    kind: ClassVar[str] = "datetime"
    finest_grid: ClassVar[str] = "hour"
    units: ClassVar[tuple[str, ...]] = UNITS
    example: ClassVar[str] = '"2013-01-31 12:30"'
    needs: ClassVar[tuple[str, str]] = ("Yy", "year (%Y or %y)")

    @property
    def _takes_whole_days(self) -> bool:
        return True

    def _text(self, number: Fraction) -> str:
        return f"{date_text(math.floor(number))} {_clock(number)}"

    def told(self, number: Fraction) -> dt.datetime:
        return EPOCH + dt.timedelta(seconds=math.floor(number))

    def form(self) -> dict[str, Any]:
        return super().form() | {"resolution": self.resolution}


@dataclass(frozen=True)
class Time(Dated):
    """Times of day. A moment counts as its time of day."""

    kind: ClassVar[str] = "time"
    finest_grid: ClassVar[str] = "hour"
    units: ClassVar[tuple[str, ...]] = ("minute", "hour")
    example: ClassVar[str] = '"12:30"'
    needs: ClassVar[tuple[str, str]] = ("HI", "hour (%H or %I)")

    low: str = "00:00"
    high: str = "23:59:59"

    @property
    def _is_clock(self) -> bool:
        return True

    def _named(self, text: str) -> tuple[int, int] | None:
        """A time alone, without a date."""
        found = super()._named(text) if ISO_CLOCK.compiled.fullmatch(text) else None
        return None if found is None else (found[0] % DAY, found[1])

    def _text(self, number: Fraction) -> str:
        return _clock(number)

    def told(self, number: Fraction) -> dt.time:
        return (EPOCH + dt.timedelta(seconds=math.floor(number))).time()

    def form(self) -> dict[str, Any]:
        return super().form() | {"resolution": self.resolution}


def iso_text(item: Any) -> Any:
    """A date, datetime or time of Python's or TOML's as text; all else as it is."""
    if isinstance(item, dt.datetime):
        return item.isoformat(" ")
    return item.isoformat() if isinstance(item, (dt.date, dt.time)) else item


def seconds_in(resolution: str) -> int:
    """Of a text such as "5min"; 0 of what is none."""
    match = re.fullmatch(r"([0-9]{1,5}) ?(s|min|h|d)", resolution, re.ASCII)
    return 0 if match is None else int(match[1]) * SECONDS_IN[match[2]]


def _clock(number: Fraction) -> str:
    """A time of day, with the digits that broken seconds have."""
    whole = math.floor(number)
    if whole == number:
        return clock_text(whole)
    digits = f"{int((number - whole) * BILLION):09d}".rstrip("0")
    return f"{clock_text(whole)}{'' if whole % 60 else ':00'}.{digits}"


def _count(unit: str, first: int, last: int) -> int:
    """How many cells a grid has; counting stops beyond the most."""
    return sum(1 for _ in islice(beginnings(unit, first, last), MOST_GRID_POINTS + 1))
