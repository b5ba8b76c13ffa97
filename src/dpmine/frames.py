"""Reads tables: CSV and Parquet files through DuckDB, pandas, Polars and Arrow frames through narwhals.

A source hands out one column at a time, already reduced to what the schema needs: category numbers, doubles or lists of
texts. Each value is read on its own; how one value is read never depends on another row. Text rules: booleans are
"True" and "False", whole floats have no ".0", nulls and NaN are missing. Text is a number if it is ASCII and Python's
float reads it.
"""

from __future__ import annotations

import csv
import glob
import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmine.errors import DataError

CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".csv.zst", ".txt")
NUMPY_NUMBERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")

# SQL over a column c, the same wherever files are read.
TEXT_OF_BOOLEAN = "CASE WHEN c THEN 'True' WHEN NOT c THEN 'False' END"
NUMBER_OF_TEXT = "TRY_CAST(CASE WHEN contains(c, '+-') THEN NULL ELSE c END AS DOUBLE)"

# Parquet files state the smallest and largest value of each column chunk and leave NaN out. An optimizer that trusts these
# numbers takes isnan() for false in a chunk of zeros with one NaN: how that row is read would depend on the others. So
# tables with columns of floats are read without these optimizers.
ROW_BY_ROW = "SET disabled_optimizers = 'statistics_propagation,filter_pushdown'"

_PLAIN_CSV: dict[str, Any] = {"auto_detect": False, "strict_mode": False, "ignore_errors": True, "parallel": False}


class Source(Protocol):
    """A table, column by column."""

    @property
    def kind(self) -> str:
        """What is read: another kind may give the same value another text, so it is another encoding."""
        ...

    @property
    def columns(self) -> list[str]: ...

    @property
    def rows(self) -> int: ...

    def category_codes(self, name: str, categories: tuple[str, ...]) -> NDArray[np.int64]:
        """The place of each value's text in `categories`; -1 where it is missing or not listed."""
        ...

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Each value as a double; NaN where it is missing or no number."""
        ...

    def texts(self, name: str) -> list[str | None]:
        """Each value as text; None where it is missing."""
        ...

    def lists(self, name: str, separator: str) -> list[list[str]]:
        """Each value as a list of texts; text is cut at the separator, missing values are empty."""
        ...

    def holds_floats(self, name: str) -> bool:
        """Whether the column's type is a float, which cannot tell long numbers apart."""
        ...


def open_source(table: Any) -> Source:
    """A file path or glob pattern, or a pandas, Polars or Arrow frame (or anything narwhals knows, or a dict of columns)."""
    if isinstance(table, (str, Path)):
        return FileSource(table)
    return table if isinstance(table, FrameSource) else FrameSource(table)


@contextmanager
def reading(table: Any) -> Iterator[Source]:
    """A table's source for as long as it is read: what is opened for this is closed, also when reading fails."""
    source = open_source(table)
    try:
        yield source
    finally:
        if isinstance(source, FileSource):
            source.close()


def require_columns(source: Source, names: list[str]) -> None:
    """Refuse a table that lacks a column which its schema describes."""
    for name in names:
        if name not in source.columns:
            raise DataError(f"The table has no column {name!r}, which the schema describes.")


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
        self._files, self._state = files, _state_of(files)
        self.kind = "parquet" if _is_parquet(files[0]) else "csv"
        self._connection: Any = None
        try:
            self._connection = duckdb.connect(config={} if memory_limit is None else {"memory_limit": memory_limit})
            self._relation, self.columns = self._read(files, keep_in_files)
            if {"FLOAT", "DOUBLE"} & set(map(str, self._relation.types)):
                self._connection.execute(ROW_BY_ROW)
        except BaseException as error:
            self.close()
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
        return int(self._relation.count("*").fetchall()[0][0])

    def _read(self, files: list[Path], keep_in_files: bool) -> tuple[Any, list[str]]:
        patterns = [_literally(file) for file in files]
        if self.kind == "parquet":
            self._check_same_columns(patterns)
            relation = self._connection.read_parquet(patterns, hive_partitioning=False)
            return relation, list(relation.columns)
        for file in files:
            if not file.name.lower().endswith(CSV_ENDINGS):
                endings = ".csv, .csv.gz, .tsv or .parquet"
                raise DataError(f"{str(file)!r} is neither CSV nor Parquet: the name must end in {endings}.")
        separator = "\t" if ".tsv" in files[0].name.lower() else ","
        headers = [self._csv_header(file, separator) for file in files]
        if any(header != headers[0] for header in headers):
            raise DataError("The CSV files do not all have the same columns in the same order.")
        return self._read_csv(patterns, headers[0], separator, keep_in_files)

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

    def _read_csv(self, patterns: list[str], names: list[str], separator: str, keep_in_files: bool) -> tuple[Any, list[str]]:
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
        if keep_in_files:
            return relation, names
        relation.create("csv")  # parsed once; every column is then read from memory
        return self._connection.table("csv"), names

    # -- for the DuckDB engine --------------------------------------------------------------------------------------

    def register(self, view: str) -> None:
        """Make the rows known to SQL under our own names: a view with the columns c0, c1, ..."""
        places = ", ".join(f"#{place + 1} AS c{place}" for place in range(len(self.columns)))
        self._relation.project(places).create_view(view)

    def check_unchanged(self) -> None:
        """Disjoint cells are disjoint in one state of the table only, so files that changed are another version."""
        if self._state != _state_of(self._files):
            raise DataError("The table's files changed since it was opened. Open them again, with a new version label.")

    def cursor(self) -> Any:
        """A connection of its own for one thread's query."""
        return self._connection.cursor()

    def column_type(self, name: str) -> str:
        return self._column(name)[1]

    def create_enum(self, name: str, members: tuple[str, ...]) -> None:
        """An enumeration type of our own name; its members never become SQL text."""
        self._connection.register("listed_members", {"listed": np.array(members, dtype=object)})
        self._connection.execute(f"CREATE OR REPLACE TYPE {name} AS ENUM (SELECT listed FROM listed_members)")
        self._connection.unregister("listed_members")

    # -- column by column -------------------------------------------------------------------------------------------

    def _column(self, name: str) -> tuple[Any, str]:
        """The column renamed to c, and its type."""
        relation = self._relation.project(f"#{self.columns.index(name) + 1} AS c")
        return relation, str(relation.types[0])

    def _query(self, name: str, expression: str) -> Any:
        """One column of a fixed expression over c."""
        import duckdb

        relation, _ = self._column(name)
        try:
            return relation.project(f"{expression} AS c").fetchnumpy()["c"]
        except duckdb.Error:
            raise DataError(f"Column {name!r} holds a value that cannot be read, such as text that is not UTF-8.") from None

    def holds_floats(self, name: str) -> bool:
        return self.column_type(name) in ("FLOAT", "DOUBLE")

    def _text_expression(self, name: str) -> str | None:
        """SQL for the text of a value where DuckDB writes it as we do, else None: Python then reads value by value."""
        kind = self._column(name)[1]
        if kind == "BOOLEAN":
            return TEXT_OF_BOOLEAN
        return "CAST(c AS VARCHAR)" if kind in ("VARCHAR", *WHOLE_NUMBERS) else None

    def _objects(self, name: str) -> list[Any]:
        return [row[0] for row in self._column(name)[0].fetchall()]

    def category_codes(self, name: str, categories: tuple[str, ...]) -> NDArray[np.int64]:
        expression = self._text_expression(name)
        if self._column(name)[1] in ("FLOAT", "DOUBLE"):
            return _codes_of_numbers(self.numbers(name), categories)
        if expression is None:
            return _codes(self.texts(name), categories)
        self.create_enum("category", categories)
        codes = self._query(name, f"CAST(enum_code(TRY_CAST({expression} AS category)) AS BIGINT)")
        self._connection.execute("DROP TYPE category")
        return _filled(codes, -1).astype(np.int64)

    def numbers(self, name: str) -> NDArray[np.float64]:
        kind = self._column(name)[1]
        if kind == "VARCHAR":
            numbers = self._query(name, NUMBER_OF_TEXT)
        elif kind in ("BOOLEAN", "FLOAT", "DOUBLE", *WHOLE_NUMBERS):
            numbers = self._query(name, "CAST(c AS DOUBLE)")
        else:
            numbers = np.fromiter(map(_number, self._objects(name)), np.float64, self.rows)
        return _filled(numbers, math.nan).astype(np.float64)

    def texts(self, name: str) -> list[str | None]:
        expression = self._text_expression(name)
        if expression is None:
            return [text_of_value(item) for item in self._objects(name)]
        return self._query(name, expression).tolist()  # type: ignore[no-any-return]

    def lists(self, name: str, separator: str) -> list[list[str]]:
        if self._text_expression(name) is None:
            return [_list(item, separator) for item in self._objects(name)]
        return [_cut(text, separator) for text in self.texts(name)]


class FrameSource:
    """A data frame in memory, or columns in a dict; `more` columns come from beside it."""

    kind = "frame"

    def __init__(self, frame: Any, more: dict[str, Any] | None = None) -> None:
        import narwhals.stable.v2 as nw

        self._names: dict[str, Any]
        if isinstance(frame, dict):
            self._values = {str(name): list(values) for name, values in frame.items()}
            lengths = {len(values) for values in self._values.values()}
            if len(lengths) > 1:
                raise DataError("The columns of the table have different lengths.")
            self._names = dict.fromkeys(self._values)
            self.rows = lengths.pop() if lengths else 0
        else:
            try:
                self._frame = nw.from_native(frame, eager_only=True)
                self._names = {str(name): name for name in self._frame.columns}
            except TypeError:
                kind = type(frame).__name__
                raise DataError(
                    f"A file path or a pandas, Polars or Arrow frame was expected. Got {kind} instead."
                ) from None
            except nw.exceptions.DuplicateError:
                raise DataError("The table has two columns of the same name.") from None
            self._values = {}
            self.rows = len(self._frame)
        for name, values in (more or {}).items():
            self._values[name] = values.tolist() if hasattr(values, "tolist") else list(values)
            self._names[name] = None
            if len(self._values[name]) != self.rows:
                raise DataError(f"The table has {self.rows} rows, but {name!r} has {len(self._values[name])} values.")
        self.columns = list(self._names)

    def _array(self, name: str) -> NDArray[Any]:
        """The column as a numpy array: of numbers where it has a plain numeric type, else of Python objects."""
        if name in self._values:
            array = np.empty(self.rows, dtype=object)
            array[:] = self._values[name]
            return array
        series = self._frame.get_column(self._names[name])
        if str(series.dtype) in NUMPY_NUMBERS and series.null_count() == 0:
            return np.asarray(series.to_numpy())
        array = np.empty(self.rows, dtype=object)
        array[:] = series.to_list()
        return array

    def holds_floats(self, name: str) -> bool:
        if name in self._values:
            return any(isinstance(item, float) and not math.isnan(item) for item in self._values[name])
        return bool(self._frame.get_column(self._names[name]).dtype.is_float())

    def category_codes(self, name: str, categories: tuple[str, ...]) -> NDArray[np.int64]:
        array = self._array(name)
        if array.dtype != object:
            return _codes_of_numbers(array, categories)
        return _codes([item if type(item) is str else text_of_value(item) for item in array], categories)

    def numbers(self, name: str) -> NDArray[np.float64]:
        array = self._array(name)
        if array.dtype != object:
            return array.astype(np.float64)
        return np.fromiter((_number(item) for item in array), np.float64, self.rows)

    def texts(self, name: str) -> list[str | None]:
        return [text_of_value(item) for item in self._array(name).tolist()]

    def lists(self, name: str, separator: str) -> list[list[str]]:
        return [_list(item, separator) for item in self._array(name).tolist()]


def _state_of(files: list[Path]) -> list[tuple[int, int, int, int]]:
    """What tells that a file was replaced or written to."""
    try:
        found = [file.stat() for file in files]
    except OSError:
        return []
    return [(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns) for status in found]


def _literally(path: Path) -> str:
    """This file, also if its name looks like a pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith((".parquet", ".pq"))


def _filled(array: Any, missing: float) -> NDArray[Any]:
    return np.ma.filled(array, missing) if isinstance(array, np.ma.MaskedArray) else np.asarray(array)


def _codes(texts: list[str | None], categories: tuple[str, ...]) -> NDArray[np.int64]:
    place: dict[str | None, int] = {category: code for code, category in enumerate(categories)}
    return np.fromiter((place.get(text, -1) for text in texts), np.int64, len(texts))


def _codes_of_numbers(array: NDArray[Any], categories: tuple[str, ...]) -> NDArray[np.int64]:
    distinct, inverse = np.unique(array, return_inverse=True)
    return _codes([text_of_value(item) for item in distinct.tolist()], categories)[inverse.reshape(-1)]


def text_of_value(item: Any) -> str | None:
    """The text of one value. Total: whatever stands in a frame has a text or is missing."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(item, str):
        return item
    if isinstance(item, Decimal):
        return format(item, "f") if item.is_finite() else None
    if isinstance(item, (float, np.floating)):
        if math.isnan(item):
            return None
        number = float(item)
        return str(int(number)) if abs(number) < 1e16 and number.is_integer() else repr(number)
    try:
        return str(item)
    except Exception:  # a foreign object whose __str__ fails is as good as missing
        return None


def _number(item: Any) -> float:
    """One value as a double; NaN for whatever is no number."""
    if item is None or (isinstance(item, str) and not item.isascii()):
        return math.nan
    try:
        return float(item)
    except OverflowError:  # an integer or fraction beyond the doubles
        return math.copysign(math.inf, 1 if item > 0 else -1) if isinstance(item, (int, Fraction)) else math.nan
    except Exception:
        return math.nan


def _list(item: Any, separator: str) -> list[str]:
    if isinstance(item, (list, tuple, np.ndarray)):
        return [text for text in map(text_of_value, item) if text is not None]
    return _cut(text_of_value(item), separator)


def _cut(text: str | None, separator: str) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(separator) if part.strip()]
