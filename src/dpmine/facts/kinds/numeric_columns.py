"""Columns of numbers: their table in a schema file, their codes on the grid, and drafted bounds and steps."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.facts.encoding import Codes, smallest_type
from dpmine.facts.kinds.columns import ColumnInHand, SingleColumns
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.sources import Source
from dpmine.facts.toml_tables import number_at, refuse_unknown_keys

MOST_DRAFTED_POINTS = 128
FEW_NUMBERS = 10  # a column with at most this many whole values is drafted as nominal


class NumericColumns(SingleColumns[Numeric]):
    name = Numeric.kind

    def read(self, name: str, table: dict[str, Any], where: str) -> Numeric:
        refuse_unknown_keys(table, {"kind", "low", "high", "step", "missing"}, where)
        low, high = number_at(table, "low", where), number_at(table, "high", where)
        step = number_at(table, "step", where) if "step" in table else Decimal(1)
        missing = number_at(table, "missing", where) if "missing" in table else low
        return Numeric(name, low, high, step, missing)

    def encode(self, source: Source, attribute: Numeric) -> Codes:
        return encode_numbers(source.numbers(attribute.name), attribute)

    def values(self, attribute: Numeric) -> NDArray[Any]:
        """Grid points, as whole numbers where all are."""
        whole = attribute.low == attribute.low.to_integral_value() and attribute.step == attribute.step.to_integral_value()
        return attribute.edges.astype(np.int64) if whole else attribute.edges

    def check(self, source: Source, attribute: Numeric) -> dict[str, int]:
        numbers = source.numbers(attribute.name)
        return {
            f"missing or no number, set to {attribute.missing}": int(np.sum(np.isnan(numbers))),
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


def encode_numbers(numbers: NDArray[np.float64], attribute: Numeric) -> Codes:
    """Floored to the grid and clamped to its ends; NaN becomes `missing`. Only comparisons, so row-local to the last bit."""
    codes = np.searchsorted(attribute.edges, numbers, side="right") - 1
    codes = np.clip(codes, 0, attribute.size - 1)
    return np.where(np.isnan(numbers), attribute.other_code, codes).astype(smallest_type(attribute.size))


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
    return Numeric(name, _tidy(bottom), _tidy(top), _tidy(step), _tidy(bottom))


def _round_step(width: Decimal) -> Decimal:
    """The smallest of 1, 2, 5 times a power of ten that is at least `width`."""
    power = Decimal(10) ** max(math.floor(math.log10(float(width))), -9)
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= width)


def _tidy(number: Decimal) -> Decimal:
    return number.quantize(Decimal(1)) if number == number.to_integral_value() else number.normalize()
