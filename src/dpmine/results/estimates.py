"""Numbers computed from noisy sums, with intervals."""

from dataclasses import dataclass

from dpmine.codes.value_grids import ValueGrid
from dpmine.results.receipts import Receipt


@dataclass(frozen=True)
class Estimate:
    """A number computed from noisy sums, with an interval that holds the clamped truth with the stated confidence.

    Values outside the attribute's public bounds were clamped to them, and floored to the grid, before anything was summed.
    """

    what: str
    value: float
    low: float
    high: float
    confidence: float
    note: str
    receipt: Receipt

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        shown = f"{self.what} about {self.value:.6g}, {self.low:.6g} to {self.high:.6g} ({self.confidence:.0%})"
        return shown + (f"; {self.note}" if self.note else "") + f", epsilon {self.receipt.epsilon}"


Span = tuple[int, int, int]
"""A noisy number and the ends of its interval."""


def mean_of_spans(grid: ValueGrid, rows_span: Span, total_span: Span) -> tuple[float, float, float, str]:
    """The mean in units of the grid from its middle, the ends of its interval, and what to note about it."""
    rows, few, many = rows_span
    total, low, high = total_span
    bottom, top = grid.first, grid.last
    mean = clamped(total / max(rows, 1), bottom, top)
    if few < 1:
        return float(mean), bottom, top, "too few rows to say more than the bounds"
    ends = [end / number for end in (low, high) for number in (few, many)]
    note = "" if bottom <= total / max(rows, 1) <= top else "clamped to the attribute's bounds"
    return mean, clamped(min(ends), bottom, top), clamped(max(ends), bottom, top), note


def clamping_note(grid: ValueGrid, note: str) -> str:
    """What was done to the values before they were summed, and what else shifts the answer."""
    low, high = (float(grid.centre + end * grid.unit) for end in (grid.first, grid.last))
    return f"values outside {low:g} to {high:g} count as these bounds" + (f"; {note}" if note else "")


def clamped(number: float, low: float, high: float) -> float:
    return min(max(number, low), high)
