"""Tells an owner what a schema would do to a table: true counts of clamped, unknown and missing values.

Nothing here is private. It is never shown to analysts and never part of an answer.
"""

from dataclasses import dataclass
from typing import Any

from dpmine.facts.facts import Facts
from dpmine.facts.kinds.registry import kind_of
from dpmine.facts.sources import reading, require_columns


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


def check_table(table: Any, facts: Facts) -> TableReport:
    """Compare a table with the facts of a schema."""
    described = [name for attribute in facts.attributes for name in attribute.reads]
    with reading(table) as source:
        require_columns(source, described)
        columns = tuple(ColumnReport(item.name, kind_of(item).check(source, item)) for item in facts.attributes)
        unread = tuple(name for name in source.columns if name not in described)
        source.check_read_in_one_state()
        return TableReport(source.rows, facts.rows_at_most, columns, unread)
