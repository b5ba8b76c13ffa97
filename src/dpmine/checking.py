"""Tells an owner what a schema would do to a table: true counts of clamped, unknown and missing values.

Nothing here is private. It is never shown to analysts and never part of an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmine.frames import Source, reading, require_columns
from dpmine.schema import ItemList, Nominal, Numeric, Schema


@dataclass(frozen=True)
class ColumnReport:
    """True counts for one attribute: how many values each public rule would change."""

    attribute: str
    changes: dict[str, int]


@dataclass(frozen=True)
class TableReport:
    rows: int
    rows_at_most: int
    columns: tuple[ColumnReport, ...]
    unread: tuple[str, ...]

    def form(self) -> dict[str, Any]:
        return {
            "owner_only": True,
            "rows": self.rows,
            "rows_at_most": self.rows_at_most,
            "attributes": {column.attribute: column.changes for column in self.columns},
            "unread_columns": list(self.unread),
        }

    def __str__(self) -> str:
        lines = ["For the owner only: these are true counts and must not be shown to analysts."]
        lines.append(f"Rows: {self.rows} (the schema says at most {self.rows_at_most}).")
        if self.rows > self.rows_at_most:
            lines.append("More rows than the schema allows: answers stay private, but information gain loses accuracy.")
        for column in self.columns:
            changed = [f"{count} {what}" for what, count in column.changes.items() if count]
            lines.append(f"  {column.attribute}: " + (", ".join(changed) if changed else "fits"))
        if self.unread:
            lines.append("Never read, because the schema does not describe them: " + ", ".join(self.unread) + ".")
        return "\n".join(lines)


def check_table(table: Any, schema: Schema) -> TableReport:
    """Compare a table with a schema."""
    described = [attribute.name for attribute in schema.attributes]
    with reading(table) as source:
        require_columns(source, described)
        columns = tuple(ColumnReport(attribute.name, _changes(source, attribute)) for attribute in schema.attributes)
        unread = tuple(name for name in source.columns if name not in described)
        source.check_read_in_one_state()
        return TableReport(source.rows, schema.rows_at_most, columns, unread)


def _changes(source: Source, attribute: Nominal | Numeric | ItemList) -> dict[str, int]:
    if isinstance(attribute, Nominal):
        codes = source.category_codes(attribute.name, attribute.categories)
        empty = sum(text is None for text in source.texts(attribute.name))
        unknown = int(np.sum(codes < 0)) - empty
        return {f"missing, sent to {attribute.other!r}": empty, f"unknown, sent to {attribute.other!r}": unknown}
    if isinstance(attribute, Numeric):
        numbers = source.numbers(attribute.name)
        return {
            f"missing or no number, set to {attribute.missing}": int(np.sum(np.isnan(numbers))),
            f"below {attribute.low}, clamped": int(np.sum(numbers < float(attribute.low))),
            f"above {attribute.high}, clamped": int(np.sum(numbers > float(attribute.high))),
        }
    lists = source.lists(attribute.name, attribute.separator)
    known = [[item for item in row if item in attribute.codes] for row in lists]
    return {
        "unknown items, left out": sum(map(len, lists)) - sum(map(len, known)),
        f"rows with more than {attribute.at_most} items, cut": sum(len(row) > attribute.at_most for row in known),
    }
