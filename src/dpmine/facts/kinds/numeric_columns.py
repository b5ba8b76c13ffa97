"""Columns of numbers: their table in a schema file, their values, and drafted bounds and steps."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.decimals import plain
from dpmine.facts.calendar import DAY
from dpmine.facts.encoding import Codes, smallest_type
from dpmine.facts.kinds.columns import ColumnInHand, Proposal, SingleColumns
from dpmine.facts.kinds.kind import OWN
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.numeric_drafts import propose_numeric, why_codes
from dpmine.facts.kinds.shifts import Shift
from dpmine.facts.moments import BILLION, MomentRule, Moments, pattern_of, zone_of
from dpmine.facts.sources import Source
from dpmine.facts.toml_tables import list_at, number_at, refuse_unknown_keys, texts_of, value_at


class NumericColumns(SingleColumns[Numeric]):
    name = Numeric.kind

    def read(self, name: str, table: dict[str, Any], where: str) -> Numeric:
        known = {"kind", "low", "high", "step", "edges", "scale", "resolution", "missing", "days_between", "format", "zone"}
        refuse_unknown_keys(table, known, where)
        low, high = number_at(table, "low", where), number_at(table, "high", where)
        resolution = number_at(table, "resolution", where) if "resolution" in table else None
        edges = tuple(number_at({"edge": edge}, "edge", where) for edge in list_at(table, "edges", where))
        scale = value_at(table, "scale", str, where) if "scale" in table else None
        even = Decimal(1) if not edges and scale is None else None
        step = number_at(table, "step", where) if "step" in table else even
        between = texts_of(table.get("days_between", []), f"{where}: 'days_between'")
        missing, rule = _missing_at(table, where), rule_at(table, where)
        return Numeric(name, low, high, step, missing, resolution, edges, scale, between, rule)

    def encode(self, source: Source, attribute: Numeric) -> Codes:
        return encode_numbers(numbers_of(source, attribute), attribute)

    def shown(self, attribute: Numeric) -> NDArray[Any]:
        """The middle of each cell's values, as whole numbers where all are; None for gaps."""
        points = [attribute.middle(code) for code in range(attribute.cells)]
        numbers = list(map(int if all(map(_is_whole, points)) else float, points))
        return np.array(numbers) if attribute.gap is None else np.array([*numbers, None], dtype=object)

    def check(self, source: Source, attribute: Numeric) -> dict[str, int]:
        numbers = numbers_of(source, attribute)
        constant = "" if attribute.gap is not None else f", set to {attribute.missing}"
        return {
            f"missing or no number{constant}": int(np.sum(np.isnan(numbers))),
            f"below {attribute.low}, clamped": int(np.sum(numbers < float(attribute.low))),
            f"above {attribute.high}, clamped": int(np.sum(numbers > float(attribute.high))),
        }

    def shift(self, source: Source, attribute: Numeric) -> Shift | None:
        numbers = numbers_of(source, attribute)
        values = encode_numbers(numbers, attribute).astype(np.int64)
        counted = values[values < attribute.values]  # a constant for gaps counts, a gap does not
        low, high = float(attribute.low), float(attribute.value_point(attribute.values - 1))
        return Shift.of(numbers, low + counted * float(attribute.finest), (low, high))

    def domain(self, attribute: Numeric) -> str:
        grid = f"in steps of {plain(attribute.step)}" if attribute.step is not None else "logarithmic"
        if attribute.edges:
            grid = f"{attribute.cells:,} cells"
        elif attribute.step != attribute.finest:
            grid = f"by {plain(attribute.finest)}; {attribute.cells:,} cells, {grid}"
        return f"{plain(attribute.low)} to {plain(attribute.high)}, {grid}"

    def recognises(self, column: ColumnInHand) -> bool:
        """Columns of amounts: numbers that are codes are categories."""
        return column.amounts.are_numbers and why_codes(column) is None

    def propose(self, column: ColumnInHand) -> Proposal[Numeric]:
        return propose_numeric(column)


def numbers_of(source: Source, attribute: Numeric) -> NDArray[np.float64]:
    """The numbers of a column as they are, or the days between the dates of two."""
    if not attribute.days_between:
        return source.numbers(attribute.name)
    return days_between(*(source.moments(name, attribute.rule) for name in attribute.days_between))


def days_between(first: Moments, second: Moments) -> NDArray[np.float64]:
    """Whole seconds and nanoseconds apart, in doubles: every engine computes the same; NaN where one is missing."""
    seconds = (second.seconds - first.seconds).astype(np.float64)
    parts = (second.nanoseconds - first.nanoseconds).astype(np.float64)
    return np.where(first.known & second.known, (seconds + parts / float(BILLION)) / float(DAY), math.nan)


def encode_numbers(numbers: NDArray[np.float64], attribute: Numeric) -> Codes:
    """Clamped to the bounds and rounded to the nearest value; NaN becomes `missing`.

    One subtraction, one division and one rounding of doubles by floor(y + 1/2), which every engine computes alike to the
    last bit; the resolution is so coarse that each value's own double is found again.
    """
    low, high = float(attribute.low), float(attribute.value_point(attribute.values - 1))
    steps = (np.clip(numbers, low, high) - low) / float(attribute.finest)
    nearest = np.floor(np.where(np.isnan(steps), 0, steps) + 0.5).astype(np.int64)
    kind = smallest_type(attribute.values + 1)
    return np.where(np.isnan(numbers), attribute.missing_value, nearest).astype(kind)


def rule_at(table: dict[str, Any], where: str, *, clock: bool = False) -> MomentRule:
    """How moments are read, by what the schema states."""
    form, zone = (value_at(table, key, str, where) if key in table else "" for key in ("format", "zone"))
    rule = MomentRule(form, zone_of(zone, where) if zone else 0, clock)
    if form:
        pattern_of(form)  # refused here if it is none
    return rule


def _missing_at(table: dict[str, Any], where: str) -> Decimal | str:
    if isinstance(table.get("missing", OWN), str):
        return str(table.get("missing", OWN))
    return number_at(table, "missing", where)


def _is_whole(number: Decimal) -> bool:
    return number == number.to_integral_value()
