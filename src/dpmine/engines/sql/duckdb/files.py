"""DuckDB as a connection to text and Parquet files. Rows stay on disk; each query encodes the columns that it needs."""

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray
from sqlglot import exp

from dpmine.base.errors import DataError
from dpmine.codes.domain import MOST_ROWS
from dpmine.engines.cache import Cache
from dpmine.engines.encoding import encoding_of
from dpmine.engines.sql.columns import sizes_of_columns
from dpmine.engines.sql.dialect import Dialect
from dpmine.engines.sql.duckdb.codes import coded_rows
from dpmine.engines.sql.duckdb.dialect import DUCKDB
from dpmine.engines.sql.expressions import call
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource, require_columns


@dataclass(eq=False, repr=False)
class DuckDBFiles:
    """A table in files, with one SQL expression for the code of each attribute."""

    schema: Schema
    source: FileSource
    encoding: str = field(init=False)
    cache: Cache = field(default_factory=Cache)
    coded: exp.Select = field(init=False)
    dialect: Dialect = DUCKDB

    def __post_init__(self) -> None:
        require_columns(self.source, [name for attribute in self.schema.attributes for name in attribute.reads])
        self.encoding = encoding_of(self.source, self.schema)
        self.coded = coded_rows(self.source, self.schema)
        self._read_everything_once()

    def fetched(self, select: exp.Select) -> dict[str, NDArray[Any]]:
        """The columns of what a query finds, masked where they are empty."""
        found: dict[str, NDArray[Any]] = self.source.cursor().execute(select.sql(dialect=self.dialect.name)).fetchnumpy()
        return found

    def check_unchanged(self) -> None:
        self.source.check_unchanged()

    def close(self) -> None:
        self.source.close()

    def _read_everything_once(self) -> None:
        """A value that cannot be read must fail here, where the owner sees it, and never behind the door."""
        import duckdb

        sizes = sizes_of_columns(self.schema)
        others = [name for name in self.coded.named_selects if name not in sizes]
        whole = exp.select(exp.Count(this=exp.Star()), *(call("count", exp.column(name)) for name in others))
        for name in sizes:
            whole = whole.select(exp.Min(this=exp.column(name)), exp.Max(this=exp.column(name)))
        text = whole.from_(self.coded.subquery("coded")).sql(dialect=self.dialect.name)
        try:
            rows, *found = self.source.cursor().execute(text).fetchall()[0]
        except duckdb.Error:
            raise DataError("The table holds a value that cannot be read, such as text that is not UTF-8.") from None
        if rows > MOST_ROWS:
            raise DataError(f"A table may have at most {MOST_ROWS} rows.")
        ends = found[len(others) :]
        for size, low, high in zip(sizes.values(), ends[::2], ends[1::2], strict=True):
            if rows and not 0 <= low <= high < size:  # behind the door such a row would be in a cell of others, or fail
                raise DataError("The DuckDB engine gave a row a code that no row can have. Use engine='memory'.")
        self.source.check_read_in_one_state()
