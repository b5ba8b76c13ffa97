"""Reads tables: CSV and Parquet files through DuckDB, pandas, Polars and Arrow frames through narwhals.

A source hands out one column at a time, already reduced to what the schema needs: category numbers, doubles or lists of
texts. Each value is read on its own; how one value is read never depends on another row. Text rules: booleans are
"True" and "False", whole floats have no ".0", nulls and NaN are missing.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmine.errors import DataError

CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".csv.zst", ".txt")


class Source(Protocol):
    """A table, column by column."""

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


def open_source(table: Any) -> Source:
    """A file path, or a pandas, Polars or Arrow frame (or anything narwhals knows, or a dict of columns)."""
    if isinstance(table, (str, Path)):
        return FileSource(Path(table))
    return FrameSource(table)


class FileSource:
    """A CSV or Parquet file. No text of the user's ever becomes SQL text: columns are renamed to c first."""

    def __init__(self, path: Path) -> None:
        import duckdb

        if not path.exists():
            raise DataError(f"There is no file {str(path)!r}.")
        self._connection = duckdb.connect()
        try:
            self._relation = self._read(path)
            self.columns: list[str] = list(self._relation.columns)
            self.rows = int(self._relation.count("*").fetchall()[0][0])
        except duckdb.Error as error:
            first_line = str(error).splitlines()[0][:200]
            raise DataError(f"Cannot read {str(path)!r} as a table: {first_line}") from None

    def _read(self, path: Path) -> Any:
        name = path.name.lower()
        if name.endswith((".parquet", ".pq")):
            return self._connection.read_parquet(str(path))
        if name.endswith(CSV_ENDINGS):
            # Everything as text: type detection would let one row decide how all others are read.
            relation = self._connection.read_csv(
                str(path),
                header=True,
                all_varchar=True,
                sep="\t" if ".tsv" in name else ",",
                quotechar='"',
                escapechar='"',
                null_padding=True,
                ignore_errors=True,
            )
            relation.create("csv")  # parsed once; every column is then read from memory
            return self._connection.table("csv")
        raise DataError(f"{str(path)!r} is neither CSV nor Parquet: the name must end in .csv, .csv.gz, .tsv or .parquet.")

    def _column(self, name: str) -> tuple[Any, str]:
        """The column renamed to c, and its type."""
        import duckdb

        relation = self._relation.select(duckdb.ColumnExpression(name).alias("c"))
        return relation, str(relation.types[0])

    def _query(self, name: str, expression: str) -> Any:
        """One column of a fixed expression over c."""
        relation, _ = self._column(name)
        return relation.project(f"{expression} AS c").fetchnumpy()["c"]

    def _text_expression(self, name: str) -> str:
        kind = self._column(name)[1]
        if kind == "BOOLEAN":
            return "CASE WHEN c THEN 'True' WHEN NOT c THEN 'False' END"
        if kind in ("FLOAT", "DOUBLE"):
            return "CASE WHEN isnan(c) THEN NULL ELSE regexp_replace(CAST(c AS VARCHAR), '\\.0$', '') END"
        return "CAST(c AS VARCHAR)"

    def category_codes(self, name: str, categories: tuple[str, ...]) -> NDArray[np.int64]:
        listed = {"listed": np.array(categories, dtype=object)}
        self._connection.register("listed_categories", listed)
        self._connection.execute("CREATE OR REPLACE TYPE category AS ENUM (SELECT listed FROM listed_categories)")
        codes = self._query(name, f"CAST(enum_code(TRY_CAST({self._text_expression(name)} AS category)) AS BIGINT)")
        self._connection.execute("DROP TYPE category")
        return _filled(codes, -1).astype(np.int64)

    def numbers(self, name: str) -> NDArray[np.float64]:
        numbers = self._query(name, "TRY_CAST(c AS DOUBLE)")
        return _filled(numbers, math.nan).astype(np.float64)

    def texts(self, name: str) -> list[str | None]:
        return self._query(name, self._text_expression(name)).tolist()  # type: ignore[no-any-return]

    def lists(self, name: str, separator: str) -> list[list[str]]:
        relation, kind = self._column(name)
        if kind.endswith("[]"):
            return [[_text(item) or "" for item in row[0] or []] for row in relation.fetchall()]
        return [_cut(text, separator) for text in self.texts(name)]


class FrameSource:
    """A data frame in memory."""

    def __init__(self, frame: Any) -> None:
        import narwhals.stable.v2 as nw

        if isinstance(frame, dict):
            self._values = {str(name): list(values) for name, values in frame.items()}
            lengths = {len(values) for values in self._values.values()}
            if len(lengths) > 1:
                raise DataError("The columns of the table have different lengths.")
        else:
            try:
                self._frame = nw.from_native(frame, eager_only=True)
            except TypeError:
                kind = type(frame).__name__
                raise DataError(
                    f"A file path or a pandas, Polars or Arrow frame was expected. Got {kind} instead."
                ) from None
            self._values = {}
        self.columns = [str(name) for name in (self._values or self._frame.columns)]
        self.rows = len(next(iter(self._values.values()))) if self._values else len(self._frame)

    def _array(self, name: str) -> NDArray[Any]:
        """The column as a numpy array: of numbers where it has a plain numeric type, else of Python objects."""
        if name in self._values:
            array = np.empty(self.rows, dtype=object)
            array[:] = self._values[name]
            return array
        series = self._frame.get_column(name)
        if series.dtype.is_numeric() and series.null_count() == 0 and not series.dtype.is_decimal():
            return np.asarray(series.to_numpy())
        array = np.empty(self.rows, dtype=object)
        array[:] = series.to_list()
        return array

    def category_codes(self, name: str, categories: tuple[str, ...]) -> NDArray[np.int64]:
        place = {category: code for code, category in enumerate(categories)}
        array = self._array(name)
        if array.dtype != object:
            distinct, inverse = np.unique(array, return_inverse=True)
            codes = [place.get(_text(item) or "", -1) if _text(item) is not None else -1 for item in distinct.tolist()]
            return np.array(codes, dtype=np.int64).reshape(-1)[inverse.reshape(-1)]
        texts = (item if type(item) is str else _text(item) for item in array)
        return np.fromiter((-1 if text is None else place.get(text, -1) for text in texts), np.int64, self.rows)

    def numbers(self, name: str) -> NDArray[np.float64]:
        array = self._array(name)
        if array.dtype != object:
            return array.astype(np.float64)
        return np.fromiter((_number(item) for item in array), np.float64, self.rows)

    def texts(self, name: str) -> list[str | None]:
        return [_text(item) for item in self._array(name).tolist()]

    def lists(self, name: str, separator: str) -> list[list[str]]:
        return [_list(item, separator) for item in self._array(name).tolist()]


def _filled(array: Any, missing: float) -> NDArray[Any]:
    return np.ma.filled(array, missing) if isinstance(array, np.ma.MaskedArray) else np.asarray(array)


def _text(item: Any) -> str | None:
    """The text of one value. Total: whatever stands in a frame has a text or is missing."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(item, str):
        return item
    if isinstance(item, (float, np.floating)):
        if math.isnan(item):
            return None
        number = float(item)
        return str(int(number)) if abs(number) < 1e15 and number.is_integer() else repr(number)
    try:
        return str(item)
    except Exception:  # a foreign object whose __str__ fails is as good as missing
        return None


def _number(item: Any) -> float:
    """One value as a double; NaN for whatever is no number."""
    if item is None:
        return math.nan
    try:
        return float(item)
    except OverflowError:  # an integer beyond the doubles
        return -math.inf if str(item).startswith("-") else math.inf
    except Exception:
        return math.nan


def _list(item: Any, separator: str) -> list[str]:
    if isinstance(item, (list, tuple, np.ndarray)):
        return [text for text in map(_text, item) if text is not None]
    return _cut(_text(item), separator)


def _cut(text: str | None, separator: str) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(separator) if part.strip()]
