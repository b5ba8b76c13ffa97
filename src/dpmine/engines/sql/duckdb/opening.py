"""Opening files for the DuckDB engine: every value is read once, and no row is kept in memory."""

from pathlib import Path
from typing import Any

from dpmine.base.errors import RequestError
from dpmine.codes.aggregates import Engine
from dpmine.engines.opened import OpenedTable
from dpmine.engines.sql.duckdb.files import DuckDBFiles
from dpmine.engines.sql.engine import SqlEngine
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource, tell_owner


def open_files(table: Any, schema: Schema, memory_limit: str | None) -> OpenedTable:
    """A file or a pattern of files. DuckDB may use this much memory, such as "2GB"."""
    if not isinstance(table, (str, Path)):
        raise RequestError("The DuckDB engine reads files: give a path or a pattern such as 'lake/*.parquet'.")
    source = FileSource(table, schema.read, names=schema.columns, keep_in_files=True, memory_limit=memory_limit)
    try:
        files = DuckDBFiles(schema, source)
        tell_owner(source)
    except BaseException:
        source.close()
        raise

    def engine(split_key: bytes) -> Engine:
        return SqlEngine(files, split_key)

    return OpenedTable(schema, files.encoding, engine, files.close)
