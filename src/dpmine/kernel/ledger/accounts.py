"""What the ledger's protocol passes around: accounts, requests, reservations and stored answers."""

from __future__ import annotations

from dataclasses import dataclass

from dpmine.base.epsilon import format_units
from dpmine.base.errors import BudgetError
from dpmine.kernel.ledger.odometer import Charge
from dpmine.language.answers import Head

DATASET = ""  # the account of the data set itself; analysts have names
CURRENCY = "pure epsilon, in units of 1e-9"


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
class Paid:
    """A question in its canonical text, when it was answered, and the answer."""

    question: str
    at: str
    stored: Stored


@dataclass(frozen=True)
class Request:
    """One priced request, as the ledger sees it."""

    analyst: str
    key: str
    plan: str
    root: str
    question: str
    """The canonical text of what was asked, as it travels."""
    charge: Charge
    """What it costs a protected unit, all its rows together."""
    price_of_one: int = 1
    """What one unit of the question's own epsilon costs: advice on a short budget speaks of what can be asked."""
    drafted: bool = False
    """Whether the schema was a draft: what it learned from rows outside the budget stays part of the statement."""
    currency: str = CURRENCY


@dataclass(frozen=True)
class Account:
    name: str
    allotment: int
    revoked: bool = False
    spent: int = 0

    @property
    def remaining(self) -> int:
        return 0 if self.revoked else max(self.allotment - self.spent, 0)


def short_of_budget(account: Account, increase: int, price_of_one: int) -> BudgetError:
    """Nothing was charged. How much is left of the data set's cap follows from what others asked, so that is not told."""
    needed, remaining = format_units(increase), format_units(account.remaining)
    if account.name == DATASET:
        needs = f"this query needs epsilon {needed} of the data set's cap over all analysts, which has less left"
        return BudgetError(
            f"Cannot answer: {needs}. Ask with less, or ask the data owner.", requested=needed, remaining=None
        )
    advice = "ask the data owner for more"
    affordable = account.remaining // price_of_one
    advice = f"Ask with at most {format_units(affordable)}, or {advice}" if affordable else advice.capitalize()
    message = f"Cannot answer: this query needs epsilon {needed} and {remaining} remains. {advice}."
    return BudgetError(message, requested=needed, remaining=remaining)
