"""The engines by name: for each how a table is opened for it. Another engine is files of its own and an entry here."""

from collections.abc import Callable, Mapping
from typing import Any

from dpmine.base.errors import RequestError
from dpmine.engines.memory.opening import open_in_memory
from dpmine.engines.opened import OpenedTable
from dpmine.facts.schema import Schema

Opener = Callable[[Any, Schema, str | None], OpenedTable]
"""Opens a table under a schema, with a limit on what the engine may hold in memory if it knows one."""


def _open_files(table: Any, schema: Schema, memory_limit: str | None) -> OpenedTable:
    from dpmine.engines.sql.duckdb.opening import open_files  # SQLGlot takes long to import

    return open_files(table, schema, memory_limit)


ENGINES: Mapping[str, Opener] = {"memory": open_in_memory, "duckdb": _open_files}


def open_table(table: Any, schema: Schema, engine: str, memory_limit: str | None) -> OpenedTable:
    """Open a table for the engine of that name."""
    opener = ENGINES.get(engine)
    if opener is None:
        raise RequestError(f"engine must be {' or '.join(map(repr, ENGINES))}. Got {engine!r} instead.")
    return opener(table, schema, memory_limit)
