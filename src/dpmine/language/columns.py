"""How users write predicates and keys: `col("age") >= 40`, `col("ward").groups(...)`."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from dpmine.base.decimals import plain
from dpmine.base.errors import ExpressionError
from dpmine.facts.value_texts import text_of_value
from dpmine.language.keys import AttributeKey, Bins, ByCalendar, Group, Groups, Key, Test
from dpmine.language.predicates import Compare, Contains, IsIn, IsMissing, Predicate

Scalar = str | int | float | Decimal | bool | dt.date | dt.time | dt.timedelta


@dataclass(frozen=True, eq=False)
class Column:
    """A column in an expression: `col("age") >= 40`, `col("ward").isin(["north", "south"])`."""

    name: str

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]
        return Compare(self.name, "==", text_of(other))

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]
        return Compare(self.name, "!=", text_of(other))

    def __lt__(self, other: Scalar) -> Predicate:
        return Compare(self.name, "<", text_of(other))

    def __le__(self, other: Scalar) -> Predicate:
        return Compare(self.name, "<=", text_of(other))

    def __gt__(self, other: Scalar) -> Predicate:
        return Compare(self.name, ">", text_of(other))

    def __ge__(self, other: Scalar) -> Predicate:
        return Compare(self.name, ">=", text_of(other))

    def __hash__(self) -> int:
        return hash(self.name)

    def isin(self, values: Iterable[Scalar]) -> Predicate:
        return IsIn(self.name, tuple(text_of(item) for item in values))

    def between(self, low: Scalar, high: Scalar) -> Predicate:
        """low <= value < high."""
        return (self >= low) & (self < high)

    def is_missing(self) -> Predicate:
        """The rows without a value here; `~` of it those with one."""
        return IsMissing(self.name)

    def contains(self, *items: Scalar) -> Predicate:
        return Contains(self.name, tuple(text_of(item) for item in items))

    def bins(self, *cuts: Scalar) -> Key:
        return Bins(self.name, tuple(text_of(cut) for cut in cuts))

    def by(self, unit: str) -> Key:
        """A date by units of the calendar: "year", "month", "week", "day", "weekday" or "hour"."""
        return ByCalendar(self.name, unit)

    def groups(self, groups: dict[str, Iterable[Scalar]], rest: str = "rest") -> Key:
        listed = tuple(Group(label, tuple(text_of(item) for item in members)) for label, members in groups.items())
        return Groups(self.name, listed, rest)


def col(name: str) -> Column:
    """A column by name, to build predicates and keys with."""
    return Column(name)


def text_of(item: object) -> str:
    """A constant as text: floats by their shortest text, whole ones without '.0', truth by name, dates as ISO 8601."""
    if isinstance(item, str):
        return item
    if isinstance(item, (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)):
        text = text_of_value(item)
        if text is None:
            raise ExpressionError("A gap is no constant. Ask which rows have none: dm.col('admitted').is_missing().")
        return text
    if getattr(item, "shape", None) == () and hasattr(item, "item"):  # numpy scalars
        item = item.item()
    if isinstance(item, float) and item.is_integer():
        return plain(Decimal(item))
    if isinstance(item, (bool, int, float, Decimal)):
        return str(item)
    raise ExpressionError(f"A constant must be text, a number or a date. Got {type(item).__name__} instead.")


def key_of(item: str | Column | Key | Predicate) -> Key:
    """What a user may name where a key is wanted: a column, a key, or a predicate (yes or no)."""
    if isinstance(item, Key):
        return item
    if isinstance(item, Column):
        return AttributeKey(item.name)
    if isinstance(item, str):
        return AttributeKey(item)
    if isinstance(item, Predicate):
        return Test(item)
    raise ExpressionError(f"A column name or key was expected. Got {type(item).__name__} instead.")
