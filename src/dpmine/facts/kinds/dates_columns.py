"""Columns of dates, moments and times of day: their table in a schema file, their values, and drafted bounds."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import SchemaError
from dpmine.facts.calendar import DAY, date_of
from dpmine.facts.encoding import Codes, smallest_type
from dpmine.facts.kinds.columns import ColumnInHand, Proposal, SingleColumns
from dpmine.facts.kinds.dates import AFTER_LAST, FIRST, Date, Dated, DateTime, Time, iso_text
from dpmine.facts.kinds.numeric import MOST_GRID_POINTS
from dpmine.facts.moments import ISO_CLOCK, MomentRule, Moments
from dpmine.facts.sources import Source
from dpmine.facts.toml_tables import refuse_unknown_keys, value_at

FORMATS = (
    "", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M",
    "%m/%d/%Y %I:%M %p", "%d-%m-%Y", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%d %B %Y",
    "%B %d, %Y", "%d.%m.%y", "%m/%d/%y",
)  # fmt: skip
"""What a draft tries, in this order, where every text of a column must be read."""
DIGITS = "%Y%m%d"
FEW_DIGITS = 3  # so many different numbers at least are taken for dates
LIKELY = ("1900-01-01", "2100-01-01")  # where the dates lie that digits alone are taken for

D = TypeVar("D", bound=Dated)


class DatedColumns(SingleColumns[D]):
    """What the three kinds have in common."""

    made: type[D]
    keys: frozenset[str] = frozenset({"kind", "low", "high", "grid", "missing", "format", "zone"})

    def read(self, name: str, table: dict[str, Any], where: str) -> D:
        refuse_unknown_keys(table, set(self.keys), where)
        texts = {key: value_at(table, key, str, where) for key in ("grid", "format", "zone", "resolution") if key in table}
        moments = {key: _moment_at(table, key, where) for key in ("low", "high", "missing") if key in table}
        for key in self._required():
            if key not in moments:
                raise SchemaError(f"{where}: {key!r} is missing.")
        return self.made(name, **moments, **texts)

    def _required(self) -> tuple[str, ...]:
        return ("low", "high")

    def encode(self, source: Source, attribute: D) -> Codes:
        moments = source.moments(attribute.name, attribute.rule)
        return encode_moments(moments, attribute)

    def shown(self, attribute: D) -> NDArray[Any]:
        """Where each cell begins, as text."""
        return np.array([*(attribute.label(code) for code in range(attribute.cells)), None][: attribute.size], dtype=object)

    def check(self, source: Source, attribute: D) -> dict[str, int]:
        moments = source.moments(attribute.name, attribute.rule)
        seconds = seconds_of(moments, attribute)
        constant = "" if attribute.gap is not None else f", set to {attribute.missing}"
        return {
            f"missing or no {attribute.kind}{constant}": int(np.sum(~moments.known)),
            f"before {attribute.low}, clamped": int(np.sum(moments.known & (seconds < attribute.first))),
            f"after {attribute.high}, clamped": int(np.sum(moments.known & (seconds >= attribute.last + attribute.step))),
        }

    def domain(self, attribute: D) -> str:
        return (
            f"{attribute.low} to {attribute.high}, by {attribute.resolution}; {attribute.cells:,} cells by {attribute.grid}"
        )

    def recognises(self, column: ColumnInHand) -> bool:
        rule = recognised(column)
        return rule is not None and self._fits(column, rule)

    def _fits(self, column: ColumnInHand, rule: MomentRule) -> bool:
        raise NotImplementedError

    def propose(self, column: ColumnInHand) -> Proposal[D]:
        """Whole years around what there is."""
        rule = recognised(column)
        assert rule is not None
        seconds = _seconds(column, rule)
        first, last = (date_of(second // DAY)[0] for second in (min(seconds), max(seconds)))
        if last - first >= MOST_GRID_POINTS:
            return Proposal(None, f"{self.name}s of more than {MOST_GRID_POINTS} years")
        made = self.made(column.name, f"{first:04d}-01-01", f"{last:04d}-12-31", format=rule.format)
        return Proposal(made, _why(made), _check(made, column))


class DateColumns(DatedColumns[Date]):
    name = Date.kind
    made = Date

    def _fits(self, column: ColumnInHand, rule: MomentRule) -> bool:
        return not rule.clock and all(second % DAY == 0 for second in _seconds(column, rule))


class DateTimeColumns(DatedColumns[DateTime]):
    name = DateTime.kind
    made = DateTime
    keys = DatedColumns.keys | {"resolution"}

    def _fits(self, column: ColumnInHand, rule: MomentRule) -> bool:
        return not rule.clock and any(second % DAY for second in _seconds(column, rule))


class TimeColumns(DatedColumns[Time]):
    name = Time.kind
    made = Time
    keys = DatedColumns.keys | {"resolution"}

    def _required(self) -> tuple[str, ...]:
        return ()

    def _fits(self, column: ColumnInHand, rule: MomentRule) -> bool:
        return rule.clock

    def propose(self, column: ColumnInHand) -> Proposal[Time]:
        return Proposal(Time(column.name), "each text is a time of day")


def seconds_of(moments: Moments, attribute: Dated) -> NDArray[np.int64]:
    """What the values of an attribute are made of; of times of day, the seconds of the day."""
    return moments.seconds % DAY if isinstance(attribute, Time) else moments.seconds


def encode_moments(moments: Moments, attribute: Dated) -> Codes:
    """Clamped to the bounds, in whole numbers; what is no moment becomes `missing`."""
    clamped = np.clip(seconds_of(moments, attribute), attribute.first, attribute.last)
    values = (clamped - attribute.first) // attribute.step
    return np.where(moments.known, values, attribute.missing_value).astype(smallest_type(attribute.values + 1))


def recognised(column: ColumnInHand) -> MomentRule | None:
    """The first rule that reads every text of a column."""
    if not column.distinct:
        return None
    if column.numbers:
        return _of_digits(column)
    for form in FORMATS:
        rule = MomentRule(form)
        if all(rule.moment(text) is not None for text in column.distinct) and _in_years(column, rule):
            return rule
    return MomentRule(clock=True) if all(map(_is_clock, column.distinct)) else None


def _of_digits(column: ColumnInHand) -> MomentRule | None:
    rule, iso = MomentRule(DIGITS), MomentRule()
    moments = [rule.moment(text) if len(text) == 8 else None for text in column.distinct]
    found = [moment[0] for moment in moments if moment is not None]
    first, last = ((iso.moment(text) or (0, 0))[0] for text in LIKELY)
    likely = len(found) == len(moments) >= FEW_DIGITS and first <= min(found) and max(found) < last
    return rule if likely else None


def _why(made: Dated) -> str:
    written = f"a {made.kind} as {made.format}" if made.format else f"a {made.kind} as ISO 8601 has it"
    return f"each text is {written}; whole years"


def _check(made: Dated, column: ColumnInHand) -> str:
    """Whether months and days may have changed places."""
    first, second = made.format.find("%d"), made.format.find("%m")
    other = made.format.replace("%d", "%@").replace("%m", "%d").replace("%@", "%m")
    if min(first, second) < 0 or made.format.startswith("%Y"):
        return "the bounds are those of the rows: state what is publicly known"
    unclear = all(MomentRule(other).moment(text) is not None for text in column.distinct)
    doubt = "whether days or months come first: all texts can be read as both; " if unclear else ""
    return f"{doubt}the bounds are those of the rows: state what is publicly known"


def _is_clock(text: str) -> bool:
    return ISO_CLOCK.compiled.fullmatch(text) is not None and MomentRule(clock=True).moment(text) is not None


def _in_years(column: ColumnInHand, rule: MomentRule) -> bool:
    return all(FIRST <= second < AFTER_LAST for second in _seconds(column, rule))


def _seconds(column: ColumnInHand, rule: MomentRule) -> list[int]:
    moments = (rule.moment(text) for text in column.distinct)
    return [moment[0] for moment in moments if moment is not None]


def _moment_at(table: dict[str, Any], key: str, where: str) -> str:
    """A date of TOML's own, or a text."""
    text = iso_text(table[key])
    if not isinstance(text, str):
        raise SchemaError(f"{where}: {key!r} must be a date or time, in quotes or not. Got {text!r} instead.")
    return text
