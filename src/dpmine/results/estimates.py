"""Numbers computed from noisy sums, with intervals."""

from collections.abc import Sequence
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


def clamping_note(attributes: Sequence[Numeric], note: str = "", *, together: Sequence[Numeric] = ()) -> str:
    """What was done to the values before they were summed, and what else is to be said of the answer.

    A row counts if it has a value in all of the attributes, and in those that were asked together with them.
    """
    bounds = [f"{plain(each.low)} to {plain(each.value_point(each.values - 1))}" for each in attributes]
    if len(attributes) > 1:
        bounds = [f"{range_} ({each.name})" for range_, each in zip(bounds, attributes, strict=True)]
    needed = dict.fromkeys((*attributes, *together))
    gaps = "" if all(each.gap is None for each in needed) else "; rows without a value do not count"
    gaps += f" (in any of {', '.join(each.name for each in needed)})" if gaps and len(needed) > 1 else ""
    return f"values outside {' and '.join(bounds)} count as these bounds{gaps}" + (f"; {note}" if note else "")


def clamped(number: float, low: float, high: float) -> float:
    return min(max(number, low), high)
