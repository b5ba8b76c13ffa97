"""Proposes a schema's facts by looking at a table: a helper for owners, outside the budget, to be reviewed line by line."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpmine.base.errors import SchemaError
from dpmine.codes.domain import MOST_ROWS
from dpmine.facts.kinds.columns import ColumnInHand
from dpmine.facts.kinds.kind import DROP, Attribute
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.registry import propose_attribute
from dpmine.facts.reading_rules import ReadingRules
from dpmine.facts.sources import Source, reading
from dpmine.facts.sources.detecting import detected_rules
from dpmine.facts.sources.lines_read import LinesRead

CLASS_NAMES = ("class", "target", "label", "outcome", "income", "diagnosis", "y")


@dataclass(frozen=True)
class ProposedFacts:
    """Facts that fit a table as it is, read from its rows."""

    name: str
    attributes: tuple[Attribute, ...]
    rows_at_most: int
    class_attribute: str | None
    drop: tuple[str, ...]
    read: ReadingRules
    lines: LinesRead
    """What became of the lines of text files under these rules."""

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(attribute.name for attribute in self.attributes), *self.drop)


def propose_facts(table: Any, *, name: str | None, read: ReadingRules | Mapping[str, str] | None = None) -> ProposedFacts:
    """Under the rules that `read` gives, or else under those that a file seems to be written by."""
    rules = read if isinstance(read, ReadingRules) else detected_rules(table, read or {})
    with reading(table, rules) as source:
        return _proposed(source, name or _name(table), rules)


def _proposed(source: Source, name: str, rules: ReadingRules) -> ProposedFacts:
    found = {column: propose_attribute(ColumnInHand(source, column)) for column in source.columns}
    source.check_read_in_one_state()
    attributes = [attribute for attribute in found.values() if attribute is not None]
    if not attributes:
        raise SchemaError("No column of this table can become an attribute: each has too many different texts.")
    target = _class(attributes)
    if target is not None:  # classes are never generalised, so they need no taxonomy
        attributes[attributes.index(target)] = replace(target, taxonomy=None, missing=DROP)
    return ProposedFacts(
        name,
        tuple(attributes),
        rows_at_most=min(_round_up(max(source.rows, 1)), MOST_ROWS),
        class_attribute=None if target is None else target.name,
        drop=tuple(column for column, attribute in found.items() if attribute is None),
        read=rules,
        lines=source.lines,
    )


def _name(table: Any) -> str:
    stem = Path(table).name.split(".")[0] if isinstance(table, (str, Path)) else "table"
    return "".join(part if part.isalnum() or part in "-_" else "-" for part in stem) or "table"


def _class(attributes: list[Attribute]) -> Nominal | None:
    named = [item for item in attributes if isinstance(item, Nominal) and item.name.lower() in CLASS_NAMES]
    return named[0] if named else None


def _round_up(rows: int) -> int:
    power = int(10 ** (len(str(rows)) - 1))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rows)
