"""Between what a protected unit pays and what each of its rows pays.

A query at some epsilon costs a person with several rows that much for each of them. So what a person may spend is divided
among their rows, rounded down to whole units so that nothing overspends; and what a row pays is multiplied.
"""

from typing import Protocol

from dpmine.base.epsilon import Epsilon


class Owned(Protocol):
    """Whatever knows how many rows one protected unit may own: a schema, or a plan."""

    @property
    def rows_per_unit(self) -> int: ...


def per_row(amount: Epsilon, owned: Owned) -> Epsilon:
    """What queries may spend along one row, for a unit to pay at most this amount."""
    return Epsilon(amount.units // owned.rows_per_unit)


def per_unit(amount: Epsilon, owned: Owned) -> Epsilon:
    """What a unit pays at most where queries spend this amount along one row."""
    return Epsilon(amount.units * owned.rows_per_unit)
