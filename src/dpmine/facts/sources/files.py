"""Reads text files and Parquet files through DuckDB; text in a file is taken as it stands, and nothing is detected.

Lines of text become rows by the public rules of this package (delimited text, JSON lines, Excel) before DuckDB sees them, so
that no release of DuckDB has a say in what a line means, and every engine reads the same rows.
"""

import glob
import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import DataError
from dpmine.facts.moments import MomentRule, Moments
from dpmine.facts.reading_rules import DEFAULT_RULES, ReadingRules, grouped_number
from dpmine.facts.sources import delimited, excel, json_lines
from dpmine.facts.sources.lines_read import Flat, LinesRead
from dpmine.facts.sources.moments_in_sql import moment_of
from dpmine.facts.sources.source import places_of_numbers, places_of_texts
from dpmine.facts.sources.texts_in_sql import FLOATS, number_of, text_of
from dpmine.facts.value_texts import list_of_texts, number_of_value, text_of_value

PACKED = ("", ".gz", ".zst")
ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "csv": tuple(ending + packed for ending in (".csv", ".txt", ".tsv", ".tab") for packed in PACKED),
    "jsonl": tuple(ending + packed for ending in (".jsonl", ".ndjson") for packed in PACKED),
    "excel": (".xlsx", ".xlsm"),
}
"""Of files' names, for each kind of file."""

# Parquet files state the smallest and largest value of each column chunk and leave NaN out. An optimizer that trusts these
# numbers takes isnan() for false in a chunk of zeros with one NaN: how that row is read would depend on the others. So
# tables with columns of floats are read without these optimizers.
ROW_BY_ROW = "SET disabled_optimizers = 'statistics_propagation,filter_pushdown'"

ROWS_OF_FILES = "rows_of_files"


ENDINGS_OF_TABS = tuple(ending + packed for ending in (".tsv", ".tab") for packed in PACKED)


def matching_files(path: str | Path) -> list[Path]:
    """The file of that name, or else the files that match it as a pattern, sorted."""
    if Path(path).exists():
        return [Path(path)]
    found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    if not found:
        raise DataError(f"There is no file {str(path)!r}.")
    if len({_ending_kind(file) for file in found}) > 1:
        raise DataError(
            f"The pattern {str(path)!r} matches Parquet and other files, or text of several kinds. Name one kind."
        )
    return found


def kind_of_file(path: Path) -> str:
    """What a file's name says of it: parquet, csv (for all delimited text), jsonl or excel."""
    kind = _ending_kind(path)
    if kind is None:
        raise DataError(f"Cannot read {str(path)!r}: the name must end in .csv, .tsv, .txt, .jsonl, .xlsx or .parquet.")
    return kind


def separator_of(path: Path, rules: ReadingRules) -> str:
    """What stands between values: by the rules, or else by the file's name."""
    return rules.sep or ("\t" if path.name.lower().endswith(ENDINGS_OF_TABS) else ",")


def number_of_text(rules: ReadingRules) -> str:
    """SQL over a text column c, for the number that it stands for: `ReadingRules.plain_number`, and then Python's float."""
    plain, mark, decimal = "c", _written(rules.thousands), _written(rules.decimal)
    if rules.thousands:
        grouped = f"regexp_full_match(c, {_written(grouped_number(rules))})"
        plain = f"CASE WHEN {grouped} THEN replace(c, {mark}, '') WHEN contains(trim(c, ' '), {mark}) THEN NULL ELSE c END"
    if rules.decimal != ".":
        plain = f"CASE WHEN contains({plain}, '.') THEN NULL ELSE replace({plain}, {decimal}, '.') END"
    return f"TRY_CAST(CASE WHEN contains({plain}, '+-') THEN NULL ELSE {plain} END AS DOUBLE)"


def _written(text: str) -> str:
    """One of the marks that rules may have, in SQL."""
    return " || ".join(f"chr({ord(letter)})" for letter in text) if "'" in text else f"'{text}'"


class FileSource:
    """Text or Parquet files. No text of the user's ever becomes SQL text: columns go by their place and are renamed to c.

    Parquet files are read where they are; lines of text become rows once. `keep_in_files` is for tables larger than memory:
    then these rows are kept in a temporary file of DuckDB's own, for the owner's eyes only, until the source is closed.
    `names` are the columns that JSON lines are read for, so that no line has a say in which columns there are.
    """

    def __init__(
        self,
        path: str | Path,
        rules: ReadingRules = DEFAULT_RULES,
        *,
        names: Sequence[str] | None = None,
        keep_in_files: bool = False,
        memory_limit: str | None = None,
    ) -> None:
        import duckdb

        files = matching_files(path)
        self._path, self._files, self._state = path, files, _state_of(files)
        self.kind = kind_of_file(files[0])
        for file in files[1:]:
            kind_of_file(file)
        if self.kind == "csv" and separator_of(files[0], rules) == "\t":
            self.kind = "tsv"
        self.read = rules if self.kind in ("csv", "tsv") else ReadingRules(encoding=rules.encoding)
        self.lines = LinesRead()
        self._connection: Any = None
        self._forget: Callable[[], object] = _nothing
        try:
            options: Any = {} if memory_limit is None else {"memory_limit": memory_limit}
            self._connection = duckdb.connect(self._place(keep=keep_in_files), config=options)
            self.columns, self._types = self._parquet(files) if self.kind == "parquet" else self._text(files, names)
            if set(FLOATS) & set(self._types):
                self._connection.execute(ROW_BY_ROW)
        except BaseException as error:
            self.close()
            if _is_ctrl_c(error):
                raise KeyboardInterrupt from None
            if isinstance(error, OSError):
                raise DataError(f"Cannot read {str(path)!r} as a table: {error.strerror or 'it cannot be read'}.") from None
            if not isinstance(error, duckdb.Error):
                raise
            first_line = str(error).splitlines()[0][:200]
            raise DataError(f"Cannot read {str(path)!r} as a table: {first_line}") from None

    def _place(self, *, keep: bool) -> str:
        """Where DuckDB keeps rows that were text: in memory, or in a folder that nobody else may enter."""
        if not keep or self.kind == "parquet":
            return ":memory:"
        folder = tempfile.mkdtemp(prefix="dpmine-")
        self._forget = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)  # closed, dropped, or at the end
        return str(Path(folder) / "rows.duckdb")

    def close(self) -> None:
        """Let go of the files and of what was read of them. Nothing can be read any more."""
        if self._connection is not None:
            self._connection.close()
        self._forget()

    @cached_property
    def rows(self) -> int:
        with _one_sentence(None):
            return int(self._connection.execute(f"SELECT count(*) FROM {ROWS_OF_FILES}").fetchall()[0][0])

    def _parquet(self, files: list[Path]) -> tuple[list[str], list[str]]:
        """Make the rows known to SQL under names of our own, and tell the columns' names and types.

        No relation of DuckDB's is kept: it shows its first rows wherever it is printed.
        """
        patterns = [_literally(file) for file in files]
        self._check_same_columns(patterns)
        relation = self._connection.read_parquet(patterns, hive_partitioning=False)
        places = ", ".join(f"#{place + 1} AS c{place}" for place in range(len(relation.columns)))
        relation.project(places).create_view(ROWS_OF_FILES)
        return list(relation.columns), list(map(str, relation.types))

    def _check_same_columns(self, patterns: list[str]) -> None:
        """Files of other types would be read as a common type: another file's rows would decide how a row is read."""
        first = None
        for pattern in patterns:
            relation = self._connection.read_parquet(pattern, hive_partitioning=False)
            columns = list(zip(relation.columns, map(str, relation.types), strict=True))
            if first is not None and columns != first:
                raise DataError("The Parquet files do not all have the same columns of the same types in the same order.")
            first = columns

    def _text(self, files: list[Path], names: Sequence[str] | None) -> tuple[list[str], list[str]]:
        """Everything as text and nothing detected: otherwise one row would decide how all others are read."""
        if self.kind == "jsonl":
            columns = json_lines.keys_of(files, self.read) if names is None else list(dict.fromkeys(names)) or ["column0"]
        else:
            headers = [self._header(file) for file in files]
            if any(header != headers[0] for header in headers):
                raise DataError("The files do not all have the same columns in the same order.")
            columns = headers[0]
        written = ", ".join(f"c{place} VARCHAR" for place in range(len(columns)))
        self._connection.execute(f"CREATE TABLE {ROWS_OF_FILES} ({written})")
        for file in files:
            for texts in self._rows_of(file, columns):
                self._keep(texts, len(columns))
        return columns, ["VARCHAR"] * len(columns)

    def _header(self, file: Path) -> list[str]:
        if self.kind == "excel":
            return excel.header_of(file)
        return delimited.header_of(file, separator_of(file, self.read), self.read)

    def _rows_of(self, file: Path, columns: list[str]) -> Iterator[Flat]:
        if self.kind == "jsonl":
            return json_lines.rows_of(file, self.read, columns, self.lines)
        if self.kind == "excel":
            return excel.rows_of(file, len(columns), self.lines)
        return delimited.rows_of(file, separator_of(file, self.read), self.read, len(columns), self.lines)

    def _keep(self, texts: Flat, width: int) -> None:
        """The texts of rows, in order. In delimited text "" is missing; elsewhere None is, and goes beside the texts."""
        if not texts:
            return
        empty_is_missing = self.kind in ("csv", "tsv")
        arrays: dict[str, NDArray[Any]] = {}
        for place in range(width):
            column = texts[place::width]
            values = np.empty(len(column), dtype=object)
            values[:] = column if empty_is_missing else [text or "" for text in column]
            arrays[f"c{place}"] = values
            if not empty_is_missing:
                arrays[f"m{place}"] = np.fromiter((text is None for text in column), np.bool_, len(column))
        kept = "nullif(c{0}, '')" if empty_is_missing else "CASE WHEN m{0} THEN NULL ELSE c{0} END"
        self._connection.register("read_rows", arrays)
        selected = ", ".join(kept.format(place) for place in range(width))
        self._connection.execute(f"INSERT INTO {ROWS_OF_FILES} SELECT {selected} FROM read_rows")
        self._connection.unregister("read_rows")

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
        kind = self.type_name(name)
        expression = number_of_text(self.read) if kind == "VARCHAR" else number_of(kind)
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
        in_json = self.kind == "jsonl"
        return [
            json_lines.json_list(text, separator) if in_json else list_of_texts(text, separator) for text in self.texts(name)
        ]


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


def _nothing() -> None:
    """Where no copy was made."""


def _ending_kind(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for kind, endings in ENDINGS.items() if name.endswith(endings)), None)


def _filled(array: Any, missing: float) -> NDArray[Any]:
    return np.ma.filled(array, missing) if isinstance(array, np.ma.MaskedArray) else np.asarray(array)
