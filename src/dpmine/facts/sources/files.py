"""Reads CSV and Parquet files through DuckDB; text in a file is taken as it stands, and nothing is detected."""

import csv
import glob
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import DataError
from dpmine.facts.moments import MomentRule, Moments
from dpmine.facts.sources.moments_in_sql import moment_of
from dpmine.facts.sources.source import places_of_numbers, places_of_texts
from dpmine.facts.sources.texts_in_sql import FLOATS, number_of, text_of
from dpmine.facts.value_texts import list_of_texts, number_of_value, text_of_value

CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".csv.zst", ".txt")

# Parquet files state the smallest and largest value of each column chunk and leave NaN out. An optimizer that trusts these
# numbers takes isnan() for false in a chunk of zeros with one NaN: how that row is read would depend on the others. So
# tables with columns of floats are read without these optimizers.
ROW_BY_ROW = "SET disabled_optimizers = 'statistics_propagation,filter_pushdown'"

ROWS_OF_FILES = "rows_of_files"

_PLAIN_CSV: dict[str, Any] = {"auto_detect": False, "strict_mode": False, "ignore_errors": True, "parallel": False}


def matching_files(path: str | Path) -> list[Path]:
    """The file of that name, or else the files that match it as a pattern, sorted."""
    if Path(path).exists():
        return [Path(path)]
    found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    if not found:
        raise DataError(f"There is no file {str(path)!r}.")
    if len({_is_parquet(file) for file in found}) > 1:
        raise DataError(f"The pattern {str(path)!r} matches Parquet and other files. Name one kind.")
    return found


class FileSource:
    """CSV or Parquet files. No text of the user's ever becomes SQL text: columns go by their place and are renamed to c.

    `keep_in_files` leaves the rows where they are, for tables larger than memory; else a CSV file is parsed once.
    """

    def __init__(self, path: str | Path, *, keep_in_files: bool = False, memory_limit: str | None = None) -> None:
        import duckdb

        files = matching_files(path)
        self._path, self._files, self._state = path, files, _state_of(files)
        self.kind = "parquet" if _is_parquet(files[0]) else "tsv" if _is_tab_separated(files[0]) else "csv"
        self._connection: Any = None
        try:
            self._connection = duckdb.connect(config={} if memory_limit is None else {"memory_limit": memory_limit})
            self.columns, self._types = self._read(files, keep_in_files)
            if set(FLOATS) & set(self._types):
                self._connection.execute(ROW_BY_ROW)
        except BaseException as error:
            self.close()
            if _is_ctrl_c(error):
                raise KeyboardInterrupt from None
            if not isinstance(error, duckdb.Error):
                raise
            first_line = str(error).splitlines()[0][:200]
            raise DataError(f"Cannot read {str(path)!r} as a table: {first_line}") from None

    def close(self) -> None:
        """Let go of the files and of what was read of them. Nothing can be read any more."""
        if self._connection is not None:
            self._connection.close()

    @cached_property
    def rows(self) -> int:
        with _one_sentence(None):
            return int(self._connection.execute(f"SELECT count(*) FROM {ROWS_OF_FILES}").fetchall()[0][0])

    def _read(self, files: list[Path], keep_in_files: bool) -> tuple[list[str], list[str]]:
        """Make the rows known to SQL under names of our own, and tell the columns' names and types.

        No relation of DuckDB's is kept: it shows its first rows wherever it is printed.
        """
        patterns = [_literally(file) for file in files]
        if self.kind == "parquet":
            self._check_same_columns(patterns)
            relation = self._connection.read_parquet(patterns, hive_partitioning=False)
            return list(relation.columns), self._make_view(relation)
        for file in files:
            if not file.name.lower().endswith(CSV_ENDINGS):
                endings = ".csv, .csv.gz, .tsv or .parquet"
                raise DataError(f"{str(file)!r} is neither CSV nor Parquet: the name must end in {endings}.")
        separator = "\t" if self.kind == "tsv" else ","
        headers = [self._csv_header(file, separator) for file in files]
        if any(header != headers[0] for header in headers):
            raise DataError("The CSV files do not all have the same columns in the same order.")
        return headers[0], self._read_csv(patterns, headers[0], separator, keep_in_files)

    def _check_same_columns(self, patterns: list[str]) -> None:
        """Files of other types would be read as a common type: another file's rows would decide how a row is read."""
        first = None
        for pattern in patterns:
            relation = self._connection.read_parquet(pattern, hive_partitioning=False)
            columns = list(zip(relation.columns, map(str, relation.types), strict=True))
            if first is not None and columns != first:
                raise DataError("The Parquet files do not all have the same columns of the same types in the same order.")
            first = columns

    def _csv_header(self, path: Path, separator: str) -> list[str]:
        whole = {**_PLAIN_CSV, "columns": {"c": "VARCHAR"}, "sep": "\x1f", "quotechar": "", "escapechar": ""}
        first_line = self._connection.read_csv(_literally(path), header=False, **whole).limit(1).fetchall()
        if not first_line or first_line[0][0] is None:
            raise DataError(f"Cannot read {str(path)!r} as a table: its first line must name the columns.")
        header = next(csv.reader([first_line[0][0]], delimiter=separator))
        names = [name.strip() or f"column{place}" for place, name in enumerate(header)]
        if len(set(names)) != len(names):
            raise DataError(f"Cannot read {str(path)!r} as a table: it has two columns of the same name.")
        return names

    def _read_csv(self, patterns: list[str], names: list[str], separator: str, keep_in_files: bool) -> list[str]:
        """Everything as text and nothing detected: otherwise one row would decide how all others are read."""
        read: Any = self._connection.read_csv
        relation = read(
            patterns,
            header=True,
            columns={f"c{place}": "VARCHAR" for place in range(len(names))},
            sep=separator,
            quotechar='"',
            escapechar='"',
            null_padding=True,
            **_PLAIN_CSV,
        )
        if not keep_in_files:
            relation.create("csv")  # parsed once; every column is then read from memory
            relation = self._connection.table("csv")
        return self._make_view(relation)

    def _make_view(self, relation: Any) -> list[str]:
        """A view with the columns c0, c1, ..., and their types."""
        places = ", ".join(f"#{place + 1} AS c{place}" for place in range(len(relation.columns)))
        relation.project(places).create_view(ROWS_OF_FILES)
        return list(map(str, relation.types))

    # -- for the DuckDB engine --------------------------------------------------------------------------------------

    def check_unchanged(self) -> None:
        """Disjoint cells are disjoint in one state of the table only, so files that changed are another version."""
        if not self._state or self._state != _state_of(self._files):
            raise DataError("The table's files changed since it was opened. Open them again, with a new version label.")

    def check_read_in_one_state(self) -> None:
        """Columns are read one after the other, so the files must be the same ones, unchanged, from first to last."""
        try:
            same = matching_files(self._path) == self._files and self._state == _state_of(self._files)
        except DataError:
            same = False
        if not same or not self._state:
            raise DataError("The table's files changed while they were read. Open them again when nothing writes to them.")

    def cursor(self) -> Any:
        """A connection of its own for one thread's query."""
        return self._connection.cursor()

    def type_name(self, name: str) -> str:
        return self._types[self.columns.index(name)]

    def create_enum(self, name: str, members: tuple[str, ...]) -> None:
        """An enumeration type of our own name; its members never become SQL text."""
        self._connection.register("listed_members", {"listed": np.array(members, dtype=object)})
        self._connection.execute(f"CREATE OR REPLACE TYPE {name} AS ENUM (SELECT listed FROM listed_members)")
        self._connection.unregister("listed_members")

    # -- column by column -------------------------------------------------------------------------------------------

    def _rows(self, name: str, expression: str) -> Any:
        """The rows of one column, by a fixed expression over c."""
        place = self.columns.index(name)
        return self._connection.execute(f"SELECT {expression} AS c FROM (SELECT c{place} AS c FROM {ROWS_OF_FILES})")

    def _query(self, name: str, expression: str) -> Any:
        with _one_sentence(name):
            return self._rows(name, expression).fetchnumpy()["c"]

    def holds_floats(self, name: str) -> bool:
        return self.type_name(name) in FLOATS

    def _text_expression(self, name: str) -> str | None:
        """SQL for the text of a value, else None: Python then reads value by value."""
        return text_of(self.type_name(name))

    def _objects(self, name: str) -> list[Any]:
        """Python's values."""
        with _one_sentence(name):
            return [row[0] for row in self._rows(name, "c").fetchall()]

    def category_codes(self, name: str, categories: tuple[str, ...]) -> NDArray[np.int64]:
        expression = self._text_expression(name)
        if self.type_name(name) in FLOATS:
            return places_of_numbers(self.numbers(name), categories)
        if expression is None:
            return places_of_texts(self.texts(name), categories)
        self.create_enum("category", categories)
        codes = self._query(name, f"CAST(enum_code(TRY_CAST({expression} AS category)) AS BIGINT)")
        self._connection.execute("DROP TYPE category")
        return _filled(codes, -1).astype(np.int64)

    def numbers(self, name: str) -> NDArray[np.float64]:
        expression = number_of(self.type_name(name))
        if expression is None:
            numbers: Any = np.fromiter(map(number_of_value, self._objects(name)), np.float64, self.rows)
        else:
            numbers = self._query(name, expression)
        return _filled(numbers, math.nan).astype(np.float64)

    def moments(self, name: str, rule: MomentRule) -> Moments:
        found = moment_of(self.type_name(name), rule)
        if found is None:
            return rule.moments(self._objects(name))
        with _one_sentence(name):
            both = self._rows(name, f"{found.seconds} AS s, {found.nanoseconds}").fetchnumpy()
        known = ~np.ma.getmaskarray(np.ma.asarray(both["s"]))
        seconds, parts = (np.where(known, _filled(both[each], 0).astype(np.int64), 0) for each in ("s", "c"))
        return Moments(seconds, parts, known)

    def texts(self, name: str) -> list[str | None]:
        expression = self._text_expression(name)
        if expression is None:
            return [text_of_value(item) for item in self._objects(name)]
        return self._query(name, expression).tolist()  # type: ignore[no-any-return]

    def lists(self, name: str, separator: str) -> list[list[str]]:
        if self._text_expression(name) is None:
            return [list_of_texts(item, separator) for item in self._objects(name)]
        return [list_of_texts(text, separator) for text in self.texts(name)]


@contextmanager
def _one_sentence(name: str | None) -> Iterator[None]:
    """What DuckDB says of a column that it cannot read may hold a value: the owner gets one sentence without it."""
    import duckdb

    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        if _is_ctrl_c(error):
            raise KeyboardInterrupt from None
        if not isinstance(error, duckdb.Error):
            raise
        where = "The table" if name is None else f"Column {name!r}"
        raise DataError(f"{where} holds a value that cannot be read, such as text that is not UTF-8.") from None


def _is_ctrl_c(error: BaseException) -> bool:
    """How DuckDB passes on an interruption: not as Python's own, which nobody catches by accident."""
    return "interrupted" in str(error).lower() and (isinstance(error, RuntimeError) or "Interrupt" in type(error).__name__)


def _state_of(files: list[Path]) -> list[tuple[int, int, int, int, int]]:
    """What tells that a file was replaced or written to; the last is when, which no program can set back."""
    try:
        found = [file.stat() for file in files]
    except OSError:
        return []
    return [(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns) for status in found]


def _literally(path: Path) -> str:
    """This file, also if its name looks like a pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith((".parquet", ".pq"))


def _is_tab_separated(path: Path) -> bool:
    return ".tsv" in path.name.lower()


def _filled(array: Any, missing: float) -> NDArray[Any]:
    return np.ma.filled(array, missing) if isinstance(array, np.ma.MaskedArray) else np.asarray(array)
