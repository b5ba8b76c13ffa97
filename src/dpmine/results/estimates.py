"""Numbers computed from noisy sums, with intervals."""

from dataclasses import dataclass

from dpmine.base.decimals import plain
from dpmine.facts.kinds.numeric import Numeric
from dpmine.results.receipts import Receipt


@dataclass(frozen=True)
class Estimate:
    """A number computed from noisy sums, with an interval that holds the clamped truth with the stated confidence.

    Values outside the attribute's public bounds count as these bounds. `rows` is about how many rows it is of, where the
    answer tells that.
    """

    what: str
    value: float
    low: float
    high: float
    confidence: float
    note: str
    receipt: Receipt
    rows: int | None = None

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        shown = f"{self.what} about {self.value:.6g}, {self.low:.6g} to {self.high:.6g} ({self.confidence:.0%})"
        return shown + (f"; {self.note}" if self.note else "") + f", epsilon {self.receipt.epsilon}"


def clamping_note(attribute: Numeric, note: str = "") -> str:
    """What was done to the values before they were summed, and what else is to be said of the answer."""
    low, high = plain(attribute.low), plain(attribute.value_point(attribute.values - 1))
    gaps = "; rows without a value do not count" if attribute.gap is not None else ""
    return f"values outside {low} to {high} count as these bounds{gaps}" + (f"; {note}" if note else "")


def clamped(number: float, low: float, high: float) -> float:
    return min(max(number, low), high)
