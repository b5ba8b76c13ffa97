"""A kind of attribute that dpmine does not know, in one file: days of the week, in order from a public first day."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import ExpressionError, SchemaError
from dpmine.facts.encoding import Codes, smallest_type
from dpmine.facts.kinds.columns import ColumnInHand, Proposal, SingleColumns
from dpmine.facts.kinds.kind import Ordered
from dpmine.facts.sources import Source
from dpmine.facts.toml_tables import refuse_unknown_keys, value_at

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Weekday(Ordered):
    """Days by name or first three letters; whatever is none becomes the first day."""

    kind: ClassVar[str] = "weekday"

    first: str = "Monday"

    def __post_init__(self) -> None:
        if self.first not in DAYS:
            raise SchemaError(f"Attribute {self.name!r}: 'first' must be a day such as Monday. Got {self.first!r}.")

    @property
    def cells(self) -> int:
        return len(DAYS)

    def label(self, code: int) -> str:
        return DAYS[(DAYS.index(self.first) + code) % len(DAYS)]

    def day(self, text: str | None) -> int | None:
        """The code of a text; None where it is no day."""
        found = [code for code in range(self.cells) if text in (self.label(code), self.label(code)[:3])]
        return found[0] if found else None

    def parsed(self, text: str) -> Decimal:
        code = self.day(text)
        if code is None:
            raise ExpressionError(f"{self.name!r} has no day {text!r}. Name one such as Monday.")
        return Decimal(code)

    def written(self, number: Decimal) -> str:
        return self.label(int(number))

    def value_point(self, value: int) -> Decimal:
        return Decimal(value)

    def first_value_at_least(self, number: Decimal) -> int:
        return int(number)

    def describe(self) -> str:
        return f"values of {self.name!r} are the days from {self.label(0)} to {self.label(self.cells - 1)}"

    def form(self) -> dict[str, Any]:
        return {"kind": self.kind, "first": self.first}


class WeekdayColumns(SingleColumns[Weekday]):
    name = Weekday.kind

    def read(self, name: str, table: dict[str, Any], where: str) -> Weekday:
        refuse_unknown_keys(table, {"kind", "first"}, where)
        return Weekday(name, value_at(table, "first", str, where))

    def encode(self, source: Source, attribute: Weekday) -> Codes:
        days = [attribute.day(text) for text in source.texts(attribute.name)]
        return np.array([day or 0 for day in days], smallest_type(attribute.size))

    def shown(self, attribute: Weekday) -> NDArray[Any]:
        return np.array([attribute.label(code) for code in range(attribute.size)], dtype=object)

    def check(self, source: Source, attribute: Weekday) -> dict[str, int]:
        days = [attribute.day(text) for text in source.texts(attribute.name)]
        return {f"missing or no day, set to {attribute.first}": days.count(None)}

    def recognises(self, column: ColumnInHand) -> bool:
        return bool(column.distinct) and set(column.distinct) <= {*DAYS, *(day[:3] for day in DAYS)}

    def propose(self, column: ColumnInHand) -> Proposal[Weekday]:
        return Proposal(Weekday(column.name), "names of days")
