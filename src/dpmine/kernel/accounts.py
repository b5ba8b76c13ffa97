"""What the ledger's protocol passes around: accounts, requests, reservations and stored answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpmine.epsilon import format_units
from dpmine.errors import BudgetError
from dpmine.kernel.odometer import Charge
from dpmine.kernel.replay import DATASET
from dpmine.queries import Head


@dataclass(frozen=True)
class Reservation:
    """A charge that is paid and waits for its answer."""

    analyst: str
    key: str
    token: str


@dataclass(frozen=True)
class Stored:
    """Stored answer bytes with the ledger's head at their row, and what they cost the analyst."""

    answer: bytes
    head: Head
    cost: int


@dataclass(frozen=True)
class Request:
    """One priced request, as the ledger sees it."""

    analyst: str
    key: str
    plan: str
    root: str
    charge: Charge
    rows_per_unit: int
    what: str
    drafted: bool = False
    """Whether the schema was a draft: what it learned from rows outside the budget stays part of the statement."""


@dataclass(frozen=True)
class Account:
    name: str
    allotment: int
    revoked: bool
    spent: int

    @property
    def remaining(self) -> int:
        return 0 if self.revoked else max(self.allotment - self.spent, 0)


def account_of(row: tuple[Any, ...]) -> Account:
    return Account(str(row[0]), int(row[1]), bool(row[2]), int(row[3]))


def short_of_budget(account: Account, increase: int) -> BudgetError:
    needed, remaining = format_units(increase), format_units(account.remaining)
    whose = "of the data set's cap " if account.name == DATASET else ""
    advice = (
        "ask the data owner for more"
        if account.remaining == 0
        else (f"Ask with at most {remaining}, or ask the data owner for more")
    )
    advice = advice[0].upper() + advice[1:]
    message = f"Cannot answer: this query needs epsilon {needed} and {remaining} {whose}remains. {advice}."
    return BudgetError(message, requested=needed, remaining=remaining)
