"""Reads tables: CSV and Parquet files through DuckDB, pandas, Polars and Arrow frames through narwhals.

A source hands out one column at a time, already reduced to what the schema needs: category numbers, doubles or lists of
texts. Each value is read on its own; how one value is read never depends on another row. The text of a value is the one
of `dpmine.value_texts`, whatever source it comes from; text in a file is taken as it stands. Text is a number if it is
ASCII and Python's float reads it; a duration is its number of seconds.
"""

from __future__ import annotations

import csv
import glob
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmine.errors import DataError
from dpmine.value_texts import list_of_texts, number_of_value, text_of_value, texts_of_durations, texts_of_moments

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

ROWS_OF_FILES = "rows_of_files"
NOT_A_TIME = np.iinfo(np.int64).min

_PLAIN_CSV: dict[str, Any] = {"auto_detect": False, "strict_mode": False, "ignore_errors": True, "parallel": False}


class Source(Protocol):
    """A table, column by column."""

    @property
    def kind(self) -> str:
        """What is read: csv, tsv, parquet, dict, or the library of a frame. Another kind is another way of reading."""
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

    def type_name(self, name: str) -> str:
        """The type that the source states for a column, without any value of a row."""
        ...

    def check_read_in_one_state(self) -> None:
        """Refuse what was read if the table changed meanwhile: rows mixed of two states are rows of nobody."""
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
        self._path, self._files, self._state = path, files, _state_of(files)
        self.kind = "parquet" if _is_parquet(files[0]) else "tsv" if _is_tab_separated(files[0]) else "csv"
        self._connection: Any = None
        try:
            self._connection = duckdb.connect(config={} if memory_limit is None else {"memory_limit": memory_limit})
            self.columns, self._types = self._read(files, keep_in_files)
            if {"FLOAT", "DOUBLE"} & set(self._types):
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
        return self.type_name(name) in ("FLOAT", "DOUBLE")

    def _text_expression(self, name: str) -> str | None:
        """SQL for the text of a value where DuckDB writes it as we do, else None: Python then reads value by value."""
        kind = self.type_name(name)
        if kind == "BOOLEAN":
            return TEXT_OF_BOOLEAN
        return "CAST(c AS VARCHAR)" if kind in ("VARCHAR", *WHOLE_NUMBERS) else None

    def _objects(self, name: str) -> list[Any]:
        """Python's values; dates and moments as texts, since Python's own end with the year 9999 and with microseconds."""
        kind = self.type_name(name)
        if kind == "DATE":
            days = np.ma.asarray(self._query(name, "date_diff('day', DATE '1970-01-01', c)"))
            return texts_of_moments(np.ma.filled(days, NOT_A_TIME).astype("datetime64[D]"), zoned=False)
        if kind.startswith("TIMESTAMP") and not kind.endswith("]"):
            moments = np.ma.filled(self._query(name, "c"), np.datetime64("NaT"))
            return texts_of_moments(moments, zoned="TZ" in kind or "ZONE" in kind)
        with _one_sentence(name):
            return [row[0] for row in self._rows(name, "c").fetchall()]

    def category_codes(self, name: str, categories: tuple[str, ...]) -> NDArray[np.int64]:
        expression = self._text_expression(name)
        if self.type_name(name) in ("FLOAT", "DOUBLE"):
            return _codes_of_numbers(self.numbers(name), categories)
        if expression is None:
            return _codes(self.texts(name), categories)
        self.create_enum("category", categories)
        codes = self._query(name, f"CAST(enum_code(TRY_CAST({expression} AS category)) AS BIGINT)")
        self._connection.execute("DROP TYPE category")
        return _filled(codes, -1).astype(np.int64)

    def numbers(self, name: str) -> NDArray[np.float64]:
        kind = self.type_name(name)
        if kind == "VARCHAR":
            numbers = self._query(name, NUMBER_OF_TEXT)
        elif kind in ("BOOLEAN", "FLOAT", "DOUBLE", *WHOLE_NUMBERS):
            numbers = self._query(name, "CAST(c AS DOUBLE)")
        else:
            numbers = np.fromiter(map(number_of_value, self._objects(name)), np.float64, self.rows)
        return _filled(numbers, math.nan).astype(np.float64)

    def texts(self, name: str) -> list[str | None]:
        expression = self._text_expression(name)
        if expression is None:
            return [text_of_value(item) for item in self._objects(name)]
        return self._query(name, expression).tolist()  # type: ignore[no-any-return]

    def lists(self, name: str, separator: str) -> list[list[str]]:
        if self._text_expression(name) is None:
            return [list_of_texts(item, separator) for item in self._objects(name)]
        return [list_of_texts(text, separator) for text in self.texts(name)]


class FrameSource:
    """A data frame in memory, or columns in a dict; `more` columns come from beside it."""

    def __init__(self, frame: Any, more: dict[str, Any] | None = None) -> None:
        import narwhals.stable.v2 as nw

        self._names: dict[str, Any]
        self._stated: dict[str, str] = {}
        if isinstance(frame, dict):
            self.kind = "dict"
            self._stated = {str(name): _stated_type(values) for name, values in frame.items() if hasattr(values, "dtype")}
            self._values = {str(name): _listed(values) for name, values in frame.items()}
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
            self.kind = self._frame.implementation.name.lower()
            self._values = {}
            self.rows = len(self._frame)
        for name, values in (more or {}).items():
            self._values[name] = _listed(values)
            self._names[name] = None
            if hasattr(values, "dtype"):
                self._stated[name] = _stated_type(values)
            if len(self._values[name]) != self.rows:
                raise DataError(f"The table has {self.rows} rows, but {name!r} has {len(self._values[name])} values.")
        self.columns = list(self._names)

    def _array(self, name: str) -> NDArray[Any]:
        """The column as a numpy array: of numbers where it has a plain numeric type, else of Python objects."""
        if name in self._values:
            return _as_objects(self._values[name])
        return _values_of_series(self._frame.get_column(self._names[name]))

    def type_name(self, name: str) -> str:
        """What the frame says; of an enumeration no members, which may have been made of the rows."""
        if name in self._values:
            return self._stated.get(name, "objects")
        series = self._frame.get_column(self._names[name])
        if self.kind != "polars":
            native = series.to_native()
            return str(native.type) if self.kind == "pyarrow" else _stated_type(native)
        return type(series.dtype).__name__ if "Enum(" in str(series.dtype) else str(series.dtype)

    def holds_floats(self, name: str) -> bool:
        if name in self._values:
            return any(isinstance(item, (float, np.floating)) and not math.isnan(item) for item in self._values[name])
        return bool(self._frame.get_column(self._names[name]).dtype.is_float())

    def check_read_in_one_state(self) -> None:
        """A frame is the owner's own object: nobody else writes to it."""

    def category_codes(self, name: str, categories: tuple[str, ...]) -> NDArray[np.int64]:
        array = self._array(name)
        if array.dtype != object:
            return _codes_of_numbers(array, categories)
        return _codes([item if type(item) is str else text_of_value(item) for item in array], categories)

    def numbers(self, name: str) -> NDArray[np.float64]:
        array = self._array(name)
        if array.dtype != object:
            return array.astype(np.float64)
        return np.fromiter(map(number_of_value, array), np.float64, self.rows)

    def texts(self, name: str) -> list[str | None]:
        return [text_of_value(item) for item in self._array(name).tolist()]

    def lists(self, name: str, separator: str) -> list[list[str]]:
        return [list_of_texts(item, separator) for item in self._array(name).tolist()]


def _listed(values: Any) -> list[Any]:
    """The values of one column that is given by itself: a list, an array or a series of any library."""
    import narwhals.stable.v2 as nw

    series = nw.from_native(values, series_only=True, pass_through=True)
    return list(_values_of_series(series) if isinstance(series, nw.Series) else values)


def _values_of_series(series: Any) -> NDArray[Any]:
    """A series as a numpy array: of numbers where it has a plain numeric type, else of Python objects.

    Moments and durations become their texts here: numpy's are exact where Python's end with the year 9999 and with
    microseconds, and what a library makes of those differs.
    """
    if str(series.dtype) in NUMPY_NUMBERS and series.null_count() == 0:
        return np.asarray(series.to_numpy())
    if type(series.dtype).__name__ in ("Datetime", "Date", "Duration"):
        array = series.to_numpy()
        if array.dtype.kind == "M":
            return _as_objects(texts_of_moments(array, zoned=bool(getattr(series.dtype, "time_zone", None))))
        if array.dtype.kind == "m":
            return _as_objects(texts_of_durations(array))
    return _as_objects(series.to_list())


def _as_objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


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


def _stated_type(column: Any) -> str:
    """What a column says of its type; of categories their own type, which decides how values read, and no members."""
    dtype = column.dtype
    inner = getattr(getattr(dtype, "categories", None), "dtype", None)
    if inner is not None:
        return f"{type(dtype).__name__} of {inner}"
    return dtype.kind if isinstance(dtype, np.dtype) and dtype.kind in "US" else str(dtype)  # numpy's also say how long


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


def _codes(texts: list[str | None], categories: tuple[str, ...]) -> NDArray[np.int64]:
    place: dict[str | None, int] = {category: code for code, category in enumerate(categories)}
    return np.fromiter((place.get(text, -1) for text in texts), np.int64, len(texts))


def _codes_of_numbers(array: NDArray[Any], categories: tuple[str, ...]) -> NDArray[np.int64]:
    distinct, inverse = np.unique(array, return_inverse=True)
    return _codes([text_of_value(item) for item in distinct.tolist()], categories)[inverse.reshape(-1)]
