"""Dates, moments and times of day as whole numbers: how each value is read, by one public rule and by nothing else.

A moment is its whole seconds since 1970-01-01 00:00:00 and the nanoseconds after them; a time of day is one of that day. By
default texts are read as ISO 8601:

    2013-01-05    2013-01-05 12:30    2013-01-05T12:30:15.25Z    2013-01-05 12:30:15+01:00    of times of day also 12:30:15

or by the format that a schema states, such as "%d.%m.%Y". What is stored as a date, a moment or a time of day is taken as
it is, whatever the format. A moment with a time zone is converted to UTC, or to the fixed offset that the schema states; one
without stands as it is. There are no leap seconds and no 24:00. Everything else is no moment: it is missing.

`dpmine.facts.sources.moments_in_sql` says the same in SQL.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import SchemaError
from dpmine.facts.calendar import DAY, HOUR, date_of, days_in, days_of
from dpmine.facts.value_texts import PARTS_OF_A_SECOND, text_of_value

BILLION: Final = 10**9
FURTHEST: Final = 3 * 10**14
"""Seconds on either side of 1970, more than nine million years: what lies further away is no moment."""
MONTHS: Final = "janfebmaraprmayjunjulaugsepoctnovdec"
MONTH_NAMES: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
TURN_OF_CENTURY: Final = 69
"""Of two digits of a year: 69 to 99 are in the 20th century, as POSIX has it."""

_SPACE = r"[ \t]*"
_ZONE = r"(Z|z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)"
_DATE = r"([+-]?[0-9]{4,7})-([0-9]{2})-([0-9]{2})"
_CLOCK = rf"([0-9]{{2}}):([0-9]{{2}})(?::([0-9]{{2}})(?:[.,]([0-9]+))?)?{_SPACE}{_ZONE}?"


class StoredMoment(str):
    """The text of what was stored as a moment: no format of a schema reads it otherwise."""

    __slots__ = ()


@dataclass(frozen=True)
class Pattern:
    """A regular expression that Python and RE2 read alike, for the whole of a text, and what each of its groups is."""

    text: str
    fields: str
    """One letter for each group: Y y m b d H I p M S f z, as in formats."""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.text, re.ASCII)


ISO_MOMENT = Pattern(f"{_SPACE}{_DATE}(?:[Tt ]{_CLOCK})?{_SPACE}", "YmdHMSfz")
ISO_CLOCK = Pattern(f"{_SPACE}{_CLOCK}{_SPACE}", "HMSfz")


def _any_case(word: str) -> str:
    return "".join(f"[{letter.upper()}{letter}]" for letter in word)


_DIRECTIVES = {
    "Y": "([0-9]{4})",
    "y": "([0-9]{2})",
    "b": f"({'|'.join(_any_case(name[:3]) for name in MONTH_NAMES)})",
    "B": f"({'|'.join(map(_any_case, MONTH_NAMES))})",
    "f": "([0-9]+)",
    "p": "([Aa][Mm]|[Pp][Mm])",
    "z": _ZONE,
}
_ONE_OR_TWO_DIGITS = "mdHIMS"
LONGEST_FORMAT = 60
_PART = re.compile(r"%(.)|([^%])", re.DOTALL)


@dataclass(frozen=True)
class MomentRule:
    """How the values of a column are read as moments.

    format  of texts; "" is ISO 8601
    zone    minutes east of UTC, to which values with a time zone are converted
    clock   whether a text may be a time of day alone: it is one of 1970-01-01
    """

    format: str = ""
    zone: int = 0
    clock: bool = False

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """What a text may look like, tried in turn."""
        if self.format:
            return (pattern_of(self.format),)
        return (ISO_MOMENT, ISO_CLOCK) if self.clock else (ISO_MOMENT,)

    @cached_property
    def of_stored(self) -> MomentRule:
        """How the canonical text of what is stored as a moment is read."""
        return MomentRule("", self.zone, self.clock)

    def moment(self, text: str) -> tuple[int, int] | None:
        """Seconds since 1970 and nanoseconds after them; None of what is no moment."""
        for pattern in self.patterns:
            match = pattern.compiled.fullmatch(text)
            if match is not None:
                return _moment(dict(zip(pattern.fields, match.groups(""), strict=True)), self.zone)
        return None

    def moment_of_value(self, item: Any) -> tuple[int, int] | None:
        """Of any value: what is stored as a date, moment or time of day as it is, all else by its text."""
        if isinstance(item, (float, np.floating)) and not float(item).is_integer():
            return None  # digits of a whole number may be a date; those of others never are
        text = item if type(item) is str else text_of_value(item)
        if text is None:
            return None
        stored = isinstance(item, (dt.date, dt.time, np.datetime64, StoredMoment))
        return (self.of_stored if stored else self).moment(text)

    def moments(self, values: Iterable[Any]) -> Moments:
        """Each value by itself; equal texts are read once."""
        known: dict[str, tuple[int, int] | None] = {}
        found: list[tuple[int, int] | None] = []
        for item in values:
            if type(item) is not str:
                found.append(self.moment_of_value(item))
                continue
            if item not in known:
                known[item] = self.moment(item)
            found.append(known[item])
        pairs = [(0, 0) if moment is None else moment for moment in found]
        seconds, parts = (np.array([pair[place] for pair in pairs], dtype=np.int64) for place in (0, 1))
        return Moments(seconds, parts, np.array([moment is not None for moment in found], dtype=bool))

    def moments_of_array(self, array: NDArray[np.datetime64], *, zoned: bool) -> Moments:
        """An array of numpy's moments, which are in UTC where the column has a time zone."""
        known = ~np.isnat(array)
        unit, step = np.datetime_data(array.dtype)
        if unit not in PARTS_OF_A_SECOND or step != 1:
            array = array.astype("datetime64[s]")
            unit = "s"
        places = PARTS_OF_A_SECOND[unit]
        seconds, parts = np.divmod(np.where(known, array.astype(np.int64), 0), 10**places)
        parts = parts * 10 ** (9 - places) if places <= 9 else parts // 10 ** (places - 9)
        seconds += 60 * self.zone * zoned
        known &= np.abs(seconds) <= FURTHEST
        return Moments(np.where(known, seconds, 0), np.where(known, parts, 0), known)

    def form(self) -> dict[str, str]:
        """What a schema file states of it: nothing where it is as by default."""
        return ({"format": self.format} if self.format else {}) | ({"zone": zone_text(self.zone)} if self.zone else {})


@dataclass(frozen=True, eq=False, repr=False)
class Moments:
    """A moment for each row; where it is not known, zeros."""

    seconds: NDArray[np.int64]
    nanoseconds: NDArray[np.int64]
    known: NDArray[np.bool_]


def pattern_of(form: str) -> Pattern:
    """The regular expression of a format. Refuses what it does not know; which parts a kind needs is the kind's to say."""
    if len(form) > LONGEST_FORMAT:
        raise SchemaError(f"A format has at most {LONGEST_FORMAT} letters.")
    parts = [match.groups() for match in _PART.finditer(form)]
    if sum(len(letter or "") + 2 * len(directive or "") for directive, letter in parts) != len(form):
        raise SchemaError(f"The format {form!r} ends in the middle: write %% for a percent sign.")
    text, fields = "", ""
    for place, (directive, letter) in enumerate(parts):
        if directive is None or directive == "%":
            text += _literal(letter or "%")
            continue
        if directive in _ONE_OR_TWO_DIGITS:
            beside = [parts[other][0] for other in (place - 1, place + 1) if 0 <= other < len(parts)]
            text += "([0-9]{2})" if any(other not in (None, "%") for other in beside) else "([0-9]{1,2})"
        elif directive in _DIRECTIVES:
            text += _DIRECTIVES[directive]
        else:
            known = " ".join(f"%{each}" for each in sorted((*_DIRECTIVES, *_ONE_OR_TWO_DIGITS)))
            raise SchemaError(f"The format {form!r} has an unknown part %{directive}. Known are {known}.")
        fields += "b" if directive == "B" else directive
    if len(set(fields)) != len(fields) or any({*pair} <= {*fields} for pair in ("Yy", "mb", "HI")):
        raise SchemaError(f"The format {form!r} says one thing twice.")
    if ("I" in fields) != ("p" in fields):
        raise SchemaError(f"The format {form!r} needs both %I and %p, or %H.")
    return Pattern(f"{_SPACE}{text}{_SPACE}", fields)


def _literal(letter: str) -> str:
    """A letter of a format, where Python and RE2 agree on how it is escaped."""
    return letter if not letter.isascii() or letter.isalnum() else f"\\x{ord(letter):02x}"


def _moment(fields: dict[str, str], zone: int) -> tuple[int, int] | None:
    """A moment from its parts, as digits; None where there is none such, as on February 30."""
    number = {name: int(text) for name, text in fields.items() if text and name not in "bpfz"}
    year, month, day = number.get("Y", 1970), number.get("m", 1), number.get("d", 1)
    if "y" in number:
        year = number["y"] + (1900 if number["y"] >= TURN_OF_CENTURY else 2000)
    if "b" in fields:
        month = MONTHS.index(fields["b"][:3].lower()) // 3 + 1
    if not (1 <= month <= 12 and 1 <= day <= days_in(year, month)):
        return None
    hour, minute, second = number.get("H", 0), number.get("M", 0), number.get("S", 0)
    if "I" in number:
        if not 1 <= number["I"] <= 12:
            return None
        hour = number["I"] % 12 + 12 * (fields["p"].lower() == "pm")
    if hour > 23 or minute > 59 or second > 59:
        return None
    seconds = days_of(year, month, day) * DAY + hour * HOUR + minute * 60 + second
    if fields.get("z"):
        offset = offset_of(fields["z"])
        if offset is None:
            return None
        seconds += 60 * (zone - offset)
    if abs(seconds) > FURTHEST:
        return None
    return seconds, int(fields.get("f", "")[:9].ljust(9, "0"))


def offset_of(text: str) -> int | None:
    """Minutes east of UTC of Z, UTC, +01, +0130 or +01:30; None where there is no such offset."""
    if text in ("Z", "z", "UTC"):
        return 0
    hours, minutes = int(text[1:3]), int(text[3:].removeprefix(":") or 0)
    return None if hours > 23 or minutes > 59 else (60 * hours + minutes) * (-1 if text[0] == "-" else 1)


def zone_of(text: str, where: str) -> int:
    """Minutes east of UTC of a zone that a schema states."""
    offset = offset_of(text) if re.fullmatch(_ZONE, text, re.ASCII) else None
    if offset is None:
        raise SchemaError(
            f"{where}: 'zone' must be a fixed offset from UTC such as \"+01:00\". Got {text!r} instead. Named zones change "
            "their offset by tables that differ from one computer to another."
        )
    return offset


def zone_text(zone: int) -> str:
    return f"{'-' if zone < 0 else '+'}{abs(zone) // 60:02d}:{abs(zone) % 60:02d}"


def date_text(seconds: int) -> str:
    return "{:04d}-{:02d}-{:02d}".format(*date_of(seconds // DAY))


def clock_text(seconds: int) -> str:
    """A time of day; seconds only where there are any."""
    hours, minutes, rest = seconds % DAY // HOUR, seconds // 60 % 60, seconds % 60
    return f"{hours:02d}:{minutes:02d}" + (f":{rest:02d}" if rest else "")
