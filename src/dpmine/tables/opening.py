"""How rows in hand become a private table: what builds on tables never sees the kernel."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dpmine.base.epsilon import Epsilon
from dpmine.facts.schema import Schema
from dpmine.tables.private_table import PrivateTable

Opener = Callable[[Any, Schema, Epsilon], AbstractContextManager[PrivateTable]]
_opener: Opener | None = None


def install_opener(opener: Opener) -> None:
    """The owner's wiring says how a table in hand becomes a private table."""
    global _opener
    _opener = opener


def open_in_memory(table: Any, schema: Schema, epsilon: Epsilon) -> AbstractContextManager[PrivateTable]:
    """A private table over rows in hand, with a ledger of its own in memory that holds just this budget.

    It is open inside the `with` alone: afterwards the ledger is closed, and nothing can be asked any more.
    """
    assert _opener is not None, "dpmine.owner installs the opener"
    return _opener(table, schema, epsilon)
