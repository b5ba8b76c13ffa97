"""What the ledger's protocol passes around: accounts, requests, reservations and stored answers."""

from dataclasses import dataclass
from typing import Any

from dpmine.base.epsilon import format_units
from dpmine.base.errors import BudgetError
from dpmine.codes.answers import Head
from dpmine.kernel.ledger.odometer import Charge

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
    drafted: bool = False
    """Whether the schema was a draft: what it learned from rows outside the budget stays part of the statement."""
    currency: str = CURRENCY

    def form(self) -> dict[str, Any]:
        """Everything that was asked, for the log."""
        return {**vars(self), "charge": self.charge.form()}


@dataclass(frozen=True)
class Account:
    name: str
    allotment: int
    revoked: bool = False
    spent: int = 0

    @property
    def remaining(self) -> int:
        return 0 if self.revoked else max(self.allotment - self.spent, 0)


def short_of_budget(account: Account, increase: int) -> BudgetError:
    """Nothing was charged. How much is left of the data set's cap follows from what others asked, so that is not told."""
    needed, remaining = format_units(increase), format_units(account.remaining)
    if account.name == DATASET:
        needs = f"this query needs epsilon {needed} of the data set's cap over all analysts, which has less left"
        return BudgetError(f"Cannot answer: {needs}.", requested=needed, remaining=None)
    message = f"Cannot answer: this query needs epsilon {needed} and {remaining} remains."
    return BudgetError(message, requested=needed, remaining=remaining)
