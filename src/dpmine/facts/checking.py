"""Tells an owner what a schema would do to a table: true counts of clamped, unknown and missing values, and what they shift.

Nothing here is private. It is never shown to analysts and never part of an answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmine.base.errors import DataError
from dpmine.facts.facts import Facts, Unit
from dpmine.facts.kinds.amounts import GAP_WORDS
from dpmine.facts.kinds.kind import Attribute, Single
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.registry import kind_of
from dpmine.facts.kinds.shifts import Shift
from dpmine.facts.sources import Source, reading, require_columns, require_persons
from dpmine.facts.sources.lines_read import LinesRead

MOSTLY = 0.9  # of the texts of a column that is meant to hold numbers


@dataclass(frozen=True)
class ColumnReport:
    """True counts for one attribute: how many values each public rule would change, and what that shifts."""

    attribute: str
    changes: dict[str, int]
    shift: Shift | None = None
    of_rows: bool = True
    """Whether rows are counted, and not items of lists."""
    no_number: int = 0
    """Texts that are no number where numbers are meant, if most are: then the file is read by wrong rules."""

    def words(self, rows: int) -> str:
        changed = [
            f"{count:,} {what}" + (f" ({count / rows:.2%})" if self.of_rows else "")
            for what, count in self.changes.items()
            if count
        ]
        told = self.shift.sentences() if self.shift is not None else []
        return "; ".join([", ".join(changed) if changed else "fits", *told])


@dataclass(frozen=True)
class UnitReport:
    """True counts of persons, and of rows that the unit leaves out."""

    column: str
    at_most: int
    persons: int
    without: int
    beyond: int

    @classmethod
    def of(cls, source: Source, unit: Unit) -> UnitReport | None:
        if unit.column is None:
            return None
        named = Counter(text for text in source.texts(unit.column) if text is not None and text.strip())
        beyond = sum(max(rows - unit.at_most, 0) for rows in named.values())
        return cls(unit.column, unit.at_most, len(named), source.rows - sum(named.values()), beyond)

    def form(self) -> dict[str, Any]:
        return {
            "column": self.column,
            "persons": self.persons,
            "rows_without_a_person": self.without,
            "rows_beyond_at_most": self.beyond,
        }

    def words(self, rows: int) -> str:
        left_out = [
            (self.without, "rows name no person"),
            (self.beyond, f"rows are beyond the {self.at_most:,} that count of each"),
        ]
        words = [f"{count:,} {what} ({count / rows:.2%}) and are left out" for count, what in left_out if count]
        return f"Persons by {self.column}: {self.persons:,}" + "".join(f"; {what}" for what in words) + "."


@dataclass(frozen=True)
class TableReport:
    rows: int
    rows_at_most: int
    columns: tuple[ColumnReport, ...]
    unread: tuple[str, ...]
    lines: LinesRead
    unit: UnitReport | None = None

    def form(self) -> dict[str, Any]:
        return {
            "owner_only": True,
            "rows": self.rows,
            "rows_at_most": self.rows_at_most,
            "unread_lines": self.lines.form(),
            "attributes": {column.attribute: column.changes for column in self.columns},
            "shifts": {column.attribute: column.shift.form() for column in self.columns if column.shift is not None},
            "unit": None if self.unit is None else self.unit.form(),
            "unread_columns": list(self.unread),
        }

    def __str__(self) -> str:
        lines = ["For the owner only: these are true counts and must not be shown to analysts."]
        lines.append(f"Rows: {self.rows} (the schema says at most {self.rows_at_most}).")
        if self.rows > self.rows_at_most:
            lines.append("More rows than the schema allows: answers stay private, but information gain loses accuracy.")
        lines += self.lines.sentences()
        if self.unit is not None:
            lines.append(self.unit.words(self.rows))
        lines += [f"  {column.attribute}: {column.words(self.rows)}" for column in self.columns]
        if self.unread:
            lines.append("Never read, because the schema does not describe them: " + ", ".join(self.unread) + ".")
        return "\n".join(lines)


def require_read(report: TableReport, *, unread_at_most: float) -> None:
    """Refuse a table of which a larger share of lines was not read as it stands, or numbers are not read as such."""
    for column in report.columns:
        if column.no_number:
            raise DataError(
                f"Most texts in {column.attribute!r} are no numbers under this schema. Say in [read] how numbers are "
                "written ('decimal', 'thousands'), or describe the column otherwise."
            )
    if report.lines.share > unread_at_most:
        raise DataError(
            f"More than {unread_at_most:.2%} of the lines were not read as they stand. Say in [read] of the schema how "
            "the file is written, mend the lines, or allow more by --unread-at-most."
        )


def check_table(table: Any, facts: Facts) -> TableReport:
    """Compare a table with the facts of a schema."""
    described = [name for attribute in facts.attributes for name in attribute.reads]
    with reading(table, facts.read, facts.columns) as source:
        require_columns(source, described)
        if facts.unit.column is not None:
            require_persons(source, facts.unit.column)
        columns = tuple(_column(source, item) for item in facts.attributes)
        unread = tuple(name for name in source.columns if name not in (*described, facts.unit.column))
        unit = UnitReport.of(source, facts.unit)
        source.check_read_in_one_state()
        return TableReport(source.rows, facts.rows_at_most, columns, unread, source.lines, unit)


def _column(source: Source, attribute: Attribute) -> ColumnReport:
    kind = kind_of(attribute)
    changes, shift = kind.check(source, attribute), kind.shift(source, attribute)
    unread = _no_numbers(source, attribute.name) if isinstance(attribute, Numeric) else 0
    return ColumnReport(attribute.name, changes, shift, isinstance(attribute, Single), unread)


def _no_numbers(source: Source, name: str) -> int:
    """How many values are texts that are no number; 0 unless most of all that there are."""
    if name not in source.columns:  # made of other columns
        return 0
    numbers = np.isnan(source.numbers(name))
    if not np.sum(numbers) > MOSTLY * source.rows:
        return 0
    texts = [text is not None and text.strip().lower() not in GAP_WORDS for text in source.texts(name)]
    found = int(np.sum(numbers & np.array(texts)))
    return found if found > MOSTLY * sum(texts) else 0
