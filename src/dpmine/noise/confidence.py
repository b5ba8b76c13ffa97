"""Intervals and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass

from dpmine.base.errors import RequestError


@dataclass(frozen=True)
class Interval:
    """An interval that holds the true number with the stated confidence, and what shifts it."""

    low: int
    high: int
    confidence: float
    note: str = ""

    def __str__(self) -> str:
        return f"{self.low} to {self.high} ({self.confidence:.0%} confidence)" + (f"; {self.note}" if self.note else "")


def check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise RequestError(f"The confidence must be between 0 and 1. Got {confidence} instead.")
