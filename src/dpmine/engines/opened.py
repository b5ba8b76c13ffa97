"""A table as it stands opened for an engine."""

from collections.abc import Callable
from dataclasses import dataclass

from dpmine.codes.aggregates import Engine
from dpmine.facts.schema import Schema


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
