"""A column's texts as numbers, for drafts: which there are, how often, and what is none."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from math import ceil

TOO_LARGE = Decimal(10) ** 14
ODD_AT_MOST = 100  # of so many rows one may hold a text that is no number, in a column of numbers
GAP_WORDS = frozenset(
    (
        "",
        "na",
        "n/a",
        "#n/a",
        "nan",
        "nat",
        "null",
        "none",
        "nil",
        "?",
        "-",
        "--",
        ".",
        "missing",
        "unknown",
        "not available",
    )
)
"""What people write where a number is missing."""


@dataclass(frozen=True)
class Amounts:
    """The numbers in a column and how many rows have each.

    beyond   rows with an infinite number, or one too large for any bounds
    gaps     rows with a word for a missing number
    odd      rows with another text
    """

    numbers: list[Decimal]
    rows: list[int]
    beyond: int
    gaps: int
    odd: int

    @classmethod
    def of(cls, counts: Mapping[str, int], number_of: Callable[[str], Decimal | None]) -> Amounts:
        found: dict[Decimal, int] = {}
        beyond = gaps = odd = 0
        for text, rows in counts.items():
            number = number_of(text)
            if number is not None:
                found[number] = found.get(number, 0) + rows
            elif text.strip().lower() in GAP_WORDS:
                gaps += rows
            elif _is_float(text):
                beyond += rows
            else:
                odd += rows
        numbers = sorted(found)
        return cls(numbers, [found[number] for number in numbers], beyond, gaps, odd)

    @property
    def are_numbers(self) -> bool:
        """Whether this is a column of numbers: one infinity, or a word here and there, does not make it one of texts."""
        return bool(self.numbers) and self.odd * ODD_AT_MOST <= sum(self.rows) + self.beyond

    @property
    def are_whole(self) -> bool:
        return all(number == number.to_integral_value() for number in self.numbers)

    def quantile(self, share: float) -> Decimal:
        """The smallest number that at least this share of the rows with a number does not exceed."""
        below = list(accumulate(self.rows))
        return self.numbers[min(bisect_left(below, max(ceil(share * below[-1]), 1)), len(below) - 1)]

    def share_between(self, low: Decimal, high: Decimal) -> float:
        inside = sum(rows for number, rows in zip(self.numbers, self.rows, strict=True) if low <= number <= high)
        return inside / (sum(self.rows) + self.beyond)


def finite(text: str) -> Decimal | None:
    """The number that a text stands for: ASCII that Python's float reads, as sources read numbers."""
    try:
        number = Decimal(text.strip()) if text.isascii() else None
    except ArithmeticError:
        return None
    return number if number is not None and number.is_finite() and abs(number) < TOO_LARGE else None


def _is_float(text: str) -> bool:
    try:
        return text.isascii() and float(text) == float(text)
    except ValueError:
        return False
