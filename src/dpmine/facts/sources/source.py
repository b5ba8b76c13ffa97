"""What a table is to those who read it: columns of category numbers, doubles or texts, one at a time.

Each value is read on its own; how one value is read never depends on another row. The text of a value is the one of
`dpmine.facts.value_texts`, whatever source it comes from. Text is a number if it is ASCII and Python's float reads it; a
duration is its number of seconds.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import DataError
from dpmine.facts.moments import MomentRule, Moments
from dpmine.facts.reading_rules import ReadingRules
from dpmine.facts.sources.lines_read import LinesRead
from dpmine.facts.value_texts import text_of_value


class Source(Protocol):
    """A table, column by column."""

    @property
    def kind(self) -> str:
        """What is read: csv, tsv, jsonl, excel, parquet, dict, or the library of a frame: each is another way of reading."""
        ...

    @property
    def read(self) -> ReadingRules:
        """The rules that its texts are read by; the defaults where there are no lines of text."""
        ...

    @property
    def lines(self) -> LinesRead:
        """What became of its lines, for the owner only; nothing where there are none."""
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

    def moments(self, name: str, rule: MomentRule) -> Moments:
        """Each value as a moment, by the rule."""
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


def require_columns(source: Source, names: list[str]) -> None:
    """Refuse a table that lacks a column which its schema describes."""
    for name in names:
        if name not in source.columns:
            raise DataError(f"The table has no column {name!r}, which the schema describes.")


def require_persons(source: Source, column: str) -> None:
    """Refuse a table whose persons a column cannot name."""
    if column not in source.columns:
        raise DataError(f"The table has no column {column!r}, which names the persons.")
    if source.holds_floats(column):
        raise DataError(
            f"The column {column!r} names persons by floats, which merges long numbers. Store text or whole numbers."
        )


def places_of_texts(texts: list[str | None], categories: tuple[str, ...]) -> NDArray[np.int64]:
    place: dict[str | None, int] = {category: code for code, category in enumerate(categories)}
    return np.fromiter((place.get(text, -1) for text in texts), np.int64, len(texts))


def places_of_numbers(array: NDArray[Any], categories: tuple[str, ...]) -> NDArray[np.int64]:
    distinct, inverse = np.unique(array, return_inverse=True)
    return places_of_texts([text_of_value(item) for item in distinct.tolist()], categories)[inverse.reshape(-1)]
