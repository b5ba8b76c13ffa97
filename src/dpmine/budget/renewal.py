"""A renewal policy: so much more budget every so many days, stated by the owner when the ledger is made.

What is renewed is the owner's permission, not the guarantee: everything ever spent adds up, and statements say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from dpmine.base.epsilon import LARGEST, UNITS, Epsilon, format_units
from dpmine.base.errors import RequestError


@dataclass(frozen=True)
class Renewal:
    """`units` more of the data set's cap after every `days` days, counted from `start`."""

    units: int
    days: int
    start: date

    def __post_init__(self) -> None:
        whole = type(self.units) is int and type(self.days) is int and type(self.start) is date
        if not whole or not 1 <= self.units <= LARGEST * UNITS or not 1 <= self.days <= 36_500:
            raise RequestError("A renewal adds a positive epsilon every 1 to 36500 whole days, from a date on.")

    @classmethod
    def every(cls, days: int, *, epsilon: Epsilon | str | int | float | Decimal, start: date | None = None) -> Renewal:
        """So much epsilon every so many days, from today unless stated."""
        return cls(Epsilon.parse(epsilon, name="renewal").units, days, start or datetime.now(UTC).date())

    def added(self, now: datetime) -> int:
        """The units that were added up to a moment."""
        return self.units * max((now.date() - self.start) // timedelta(days=self.days), 0)

    def __str__(self) -> str:
        return f"{format_units(self.units)} every {self.days} days from {self.start.isoformat()}"

    @classmethod
    def parse(cls, text: str) -> Renewal | None:
        """The inverse of str; empty text is no renewal."""
        if not text:
            return None
        amount, _, days, _, _, start = text.split(" ")
        return cls(Epsilon.parse(amount).units, int(days), date.fromisoformat(start))
