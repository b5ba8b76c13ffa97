"""A table as it stands opened for an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpmine.facts.schema import Schema
from dpmine.language.aggregates import Engine


@dataclass(frozen=True, eq=False, repr=False)
class OpenedTable:
    """What the owner's wiring knows of a table, whatever keeps its rows."""

    schema: Schema
    encoding: str
    """The name of the way of reading: another one is another root of the odometer."""
    engine: Callable[[bytes], Engine]
    """What answers for the table, under a ledger's split key."""
    close: Callable[[], None]
    """Let go of files and connections."""
