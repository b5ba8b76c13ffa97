"""Columns of numbers: their table in a schema file, their values, and drafted bounds and steps."""

from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.decimals import plain
from dpmine.facts.encoding import Codes, smallest_type
from dpmine.facts.kinds.columns import ColumnInHand, Proposal, SingleColumns
from dpmine.facts.kinds.kind import OWN
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.numeric_drafts import propose_numeric, why_codes
from dpmine.facts.kinds.shifts import Shift
from dpmine.facts.sources import Source
from dpmine.facts.toml_tables import list_at, number_at, refuse_unknown_keys, value_at


class NumericColumns(SingleColumns[Numeric]):
    name = Numeric.kind

    def read(self, name: str, table: dict[str, Any], where: str) -> Numeric:
        refuse_unknown_keys(table, {"kind", "low", "high", "step", "edges", "scale", "resolution", "missing"}, where)
        low, high = number_at(table, "low", where), number_at(table, "high", where)
        resolution = number_at(table, "resolution", where) if "resolution" in table else None
        edges = tuple(number_at({"edge": edge}, "edge", where) for edge in list_at(table, "edges", where))
        scale = value_at(table, "scale", str, where) if "scale" in table else None
        even = Decimal(1) if not edges and scale is None else None
        step = number_at(table, "step", where) if "step" in table else even
        return Numeric(name, low, high, step, _missing_at(table, where), resolution, edges, scale)

    def encode(self, source: Source, attribute: Numeric) -> Codes:
        return encode_numbers(source.numbers(attribute.name), attribute)

    def shown(self, attribute: Numeric) -> NDArray[Any]:
        """The middle of each cell's values, as whole numbers where all are; None for gaps."""
        points = [attribute.middle(code) for code in range(attribute.cells)]
        numbers = list(map(int if all(map(_is_whole, points)) else float, points))
        return np.array(numbers) if attribute.gap is None else np.array([*numbers, None], dtype=object)

    def check(self, source: Source, attribute: Numeric) -> dict[str, int]:
        numbers = source.numbers(attribute.name)
        constant = "" if attribute.gap is not None else f", set to {attribute.missing}"
        return {
            f"missing or no number{constant}": int(np.sum(np.isnan(numbers))),
            f"below {attribute.low}, clamped": int(np.sum(numbers < float(attribute.low))),
            f"above {attribute.high}, clamped": int(np.sum(numbers > float(attribute.high))),
        }

    def shift(self, source: Source, attribute: Numeric) -> Shift | None:
        numbers = source.numbers(attribute.name)
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


def _missing_at(table: dict[str, Any], where: str) -> Decimal | str:
    if isinstance(table.get("missing", OWN), str):
        return str(table.get("missing", OWN))
    return number_at(table, "missing", where)


def _is_whole(number: Decimal) -> bool:
    return number == number.to_integral_value()
