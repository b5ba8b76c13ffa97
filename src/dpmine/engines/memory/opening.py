"""Opening a table for the memory engine: every row is read and encoded."""

from typing import Any

from dpmine.base.errors import RequestError
from dpmine.codes.aggregates import Engine
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.memory.engine import MemoryEngine
from dpmine.engines.opened import OpenedTable
from dpmine.engines.persons import capped
from dpmine.facts.schema import Schema
from dpmine.facts.sources import reading, tell_owner


def open_in_memory(table: Any, schema: Schema, memory_limit: str | None) -> OpenedTable:
    """A file or a frame, or a table that is encoded already, under this very schema."""
    encoded = table if isinstance(table, EncodedTable) else _encoded(table, schema)
    if encoded.schema != schema:
        raise RequestError("This table was encoded under another schema. Open it with the schema that it was encoded under.")

    def engine(split_key: bytes) -> Engine:
        return MemoryEngine(capped(encoded, split_key), split_key)

    return OpenedTable(schema, encoded.encoding, engine, _holds_no_files)


def _encoded(table: Any, schema: Schema) -> EncodedTable:
    with reading(table, schema.read, schema.columns) as source:
        encoded = encode(source, schema)
        tell_owner(source)
        return encoded


def _holds_no_files() -> None:
    """Files were closed when their rows had been read."""
