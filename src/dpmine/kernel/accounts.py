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


def short_of_budget(account: Account, increase: int, rows_per_unit: int) -> BudgetError:
    """Nothing was charged. How much is left of the data set's cap follows from what others asked, so that is not told.

    A question's epsilon is a row's, and costs a person with several rows as many times more.
    """
    needed, remaining = format_units(increase), format_units(account.remaining)
    if account.name == DATASET:
        needs = f"this query needs epsilon {needed} of the data set's cap over all analysts, which has less left"
        return BudgetError(
            f"Cannot answer: {needs}. Ask with less, or ask the data owner.", requested=needed, remaining=None
        )
    advice = "ask the data owner for more"
    affordable = account.remaining // rows_per_unit
    advice = f"Ask with at most {format_units(affordable)}, or {advice}" if affordable else advice.capitalize()
    message = f"Cannot answer: this query needs epsilon {needed} and {remaining} remains. {advice}."
    return BudgetError(message, requested=needed, remaining=remaining)
