"""Intervals: where a true number lies, and what shifts it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """An interval that holds the true number with the stated confidence, and what shifts it."""

    low: int
    high: int
    confidence: float
    note: str = ""

    def __str__(self) -> str:
        return f"{self.low} to {self.high} ({self.confidence:.0%} confidence)" + (f"; {self.note}" if self.note else "")
