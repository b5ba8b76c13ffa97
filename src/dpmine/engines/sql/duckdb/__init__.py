"""The DuckDB engine: exact counts over CSV and Parquet files that need not fit into memory."""

from dpmine.engines.sql.duckdb.files import DuckDBFiles
from dpmine.engines.sql.duckdb.opening import open_files

__all__ = ["DuckDBFiles", "open_files"]
