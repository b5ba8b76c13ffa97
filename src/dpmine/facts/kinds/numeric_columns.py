"""Columns of numbers: their table in a schema file, their values, and drafted bounds and steps."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.facts.calendar import DAY
from dpmine.facts.encoding import Codes, smallest_type
from dpmine.facts.kinds.columns import ColumnInHand, SingleColumns
from dpmine.facts.kinds.kind import OWN
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.moments import BILLION, MomentRule, Moments, pattern_of, zone_of
from dpmine.facts.sources import Source
from dpmine.facts.toml_tables import list_at, number_at, refuse_unknown_keys, texts_of, value_at

MOST_DRAFTED_POINTS = 128
FEW_NUMBERS = 10  # a column with at most this many whole values is drafted as nominal


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
        """Where each cell begins, as whole numbers where all are; NaN for gaps."""
        points = [attribute.point(code) for code in range(attribute.cells)]
        if attribute.gap is None and all(map(_is_whole, points)):
            return np.array([int(point) for point in points], dtype=np.int64)
        return np.array([*map(float, points), math.nan][: attribute.size])

    def check(self, source: Source, attribute: Numeric) -> dict[str, int]:
        numbers = numbers_of(source, attribute)
        constant = "" if attribute.gap is not None else f", set to {attribute.missing}"
        return {
            f"missing or no number{constant}": int(np.sum(np.isnan(numbers))),
            f"below {attribute.low}, clamped": int(np.sum(numbers < float(attribute.low))),
            f"above {attribute.high}, clamped": int(np.sum(numbers > float(attribute.high))),
        }

    def recognises(self, column: ColumnInHand) -> bool:
        return len(column.numbers) > FEW_NUMBERS or not all(map(_is_whole, column.numbers))

    def propose(self, column: ColumnInHand) -> Numeric | None:
        if _looks_like_identifier(column):
            return None
        numbers = column.numbers
        return _drafted(column.name, min(numbers), max(numbers), whole=all(map(_is_whole, numbers)))


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


def _looks_like_identifier(column: ColumnInHand) -> bool:
    name = column.name.lower()
    named = name == "id" or name.endswith(("_id", " id", "-id")) or name.startswith("id_")
    return named and len(column.distinct) == column.rows > 20


def _drafted(name: str, low: Decimal, high: Decimal, *, whole: bool) -> Numeric:
    """Round bounds outward to a round step that leaves at most MOST_DRAFTED_POINTS points."""
    width = max(high - low, Decimal(1) if whole else Decimal("0.001"))
    step = _round_step(width / (MOST_DRAFTED_POINTS - 2))
    if whole:
        step = max(step, Decimal(1))
    bottom = (low / step).to_integral_value("ROUND_FLOOR") * step
    top = (high / step).to_integral_value("ROUND_CEILING") * step
    top = top if top > bottom else bottom + step
    return Numeric(name, _tidy(bottom), _tidy(top), _tidy(step))


def _round_step(width: Decimal) -> Decimal:
    """The smallest of 1, 2, 5 times a power of ten that is at least `width`."""
    power = Decimal(10) ** max(math.floor(math.log10(float(width))), -9)
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= width)


def _tidy(number: Decimal) -> Decimal:
    return number.quantize(Decimal(1)) if number == number.to_integral_value() else number.normalize()
