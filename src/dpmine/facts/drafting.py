"""Proposes a schema's facts by looking at a table: a helper for owners, outside the budget, to be reviewed line by line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmine.base.errors import SchemaError
from dpmine.codes.domain import MOST_ROWS
from dpmine.facts.draft_notes import DROPPED, UNIT, ColumnNote, DraftNotes
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.column_names import names_identifiers, names_people, names_persons
from dpmine.facts.kinds.columns import ColumnInHand, Proposal
from dpmine.facts.kinds.identifying import round_up, rows_of_most
from dpmine.facts.kinds.kind import Attribute
from dpmine.facts.kinds.nominal_drafts import propose_class
from dpmine.facts.kinds.registry import kind_of, propose_attribute
from dpmine.facts.reading_rules import ReadingRules
from dpmine.facts.siblings import with_siblings_alike
from dpmine.facts.sources import Source, reading
from dpmine.facts.sources.detecting import detected_rules
from dpmine.facts.sources.lines_read import LinesRead

CLASS_NAMES = ("class", "target", "label", "outcome", "income", "diagnosis", "y")
MOST_CLASSES = 20  # of a column that is taken for the class by its name alone


@dataclass(frozen=True)
class Wishes:
    """What an owner knows beforehand: which column is the class, which one names persons, and which are never to be read."""

    class_attribute: str | None = None
    unit: str | None = None
    drop: tuple[str, ...] = ()

    def check(self, columns: Sequence[str]) -> None:
        named = [name for name in (self.class_attribute, self.unit, *self.drop) if name is not None]
        unknown = [name for name in named if name not in columns]
        if unknown:
            raise SchemaError(f"The table has no column {unknown[0]!r}. It has: {', '.join(columns[:20])}.")
        twice = [name for name in named if named.count(name) > 1]
        if twice:
            raise SchemaError(f"A column is the class, names persons or is dropped, and not two of these: {twice[0]!r}.")


NO_WISHES = Wishes()


@dataclass(frozen=True)
class ProposedFacts:
    """Facts that fit a table as it is, read from its rows."""

    name: str
    attributes: tuple[Attribute, ...]
    rows_at_most: int
    class_attribute: str | None
    drop: tuple[str, ...]
    unit: Unit
    notes: DraftNotes
    read: ReadingRules
    lines: LinesRead
    """What became of the lines of text files under these rules."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(note.name for note in self.notes.columns)


def propose_facts(
    table: Any, *, name: str | None, read: ReadingRules | Mapping[str, str] | None = None, wishes: Wishes = NO_WISHES
) -> ProposedFacts:
    """Under the rules that `read` gives, or else under those that a file seems to be written by."""
    rules = read if isinstance(read, ReadingRules) else detected_rules(table, read or {})
    with reading(table, rules) as source:
        return _proposed(source, name or _name(table), rules, wishes)


def _proposed(source: Source, name: str, rules: ReadingRules, wishes: Wishes) -> ProposedFacts:
    wishes.check(source.columns)
    target = wishes.class_attribute or _class(source, wishes)
    columns = {column: ColumnInHand(source, column) for column in source.columns if column not in wishes.drop}
    looked_at = {item: propose_attribute(columns[item]) for item in columns if item not in (wishes.unit, target)}
    found = dict(with_siblings_alike(source, looked_at, propose_attribute))
    found |= {item: Proposal(None, "never read, as asked") for item in wishes.drop}
    if target is not None:
        found[target] = propose_class(columns[target])
        if found[target].attribute is None:
            raise SchemaError(f"The column {target!r} cannot be the class: {found[target].why}.")
    unit = Unit()
    if wishes.unit is not None:
        unit = Unit(wishes.unit, _at_most(columns[wishes.unit]))
        check = f"at most {unit.at_most} rows a person count, read from the data: every answer costs that many times as much"
        found[wishes.unit] = Proposal(None, "it names the persons whom the guarantee protects, as asked", check)
    notes = _notes(columns, {item: found[item] for item in source.columns}, unit)
    source.check_read_in_one_state()
    proposed = [found[item].attribute for item in source.columns]
    attributes = tuple(attribute for attribute in proposed if attribute is not None)
    if not attributes:
        raise SchemaError("No column of this table can become an attribute: " + _why_none(notes))
    return ProposedFacts(
        name,
        attributes,
        rows_at_most=min(round_up(max(source.rows, 1)), MOST_ROWS),
        class_attribute=target,
        drop=tuple(note.name for note in notes.columns if note.kind == DROPPED),
        unit=unit,
        notes=notes,
        read=rules,
        lines=source.lines,
    )


def _name(table: Any) -> str:
    stem = Path(table).name.split(".")[0] if isinstance(table, (str, Path)) else "table"
    return "".join(part if part.isalnum() or part in "-_" else "-" for part in stem) or "table"


def _class(source: Source, wishes: Wishes) -> str | None:
    """The first column with a name such as 'diagnosis' and few values; a list is no class."""
    for column in source.columns:
        if column.lower() in CLASS_NAMES and column not in (wishes.unit, *wishes.drop):
            in_hand = ColumnInHand(source, column)
            if propose_class(in_hand).attribute is not None and len(in_hand.counts) <= MOST_CLASSES:
                return column
    return None


def _at_most(column: ColumnInHand) -> int:
    most = rows_of_most(column)
    if most is None:
        raise SchemaError(
            f"The column {column.name!r} cannot name persons: it holds floats, which merges long numbers. Store text or "
            "whole numbers."
        )
    return most


# -- notes -------------------------------------------------------------------------------------------------------------


def _notes(columns: dict[str, ColumnInHand], found: dict[str, Proposal[Any]], unit: Unit) -> DraftNotes:
    notes = tuple(_note(item, proposal, columns.get(item), unit) for item, proposal in found.items())
    persons = [note.name for note in notes if note.persons is not None and unit.column is None]
    # By its name people, else things, else an identifier, else the one with the most different values.
    by_name = (names_people, names_persons, names_identifiers)
    persons.sort(key=lambda item: (*(not named(item) for named in by_name), -len(columns[item].counts)))
    return DraftNotes(notes, persons[0] if persons else None)


def _note(name: str, proposal: Proposal[Any], column: ColumnInHand | None, unit: Unit) -> ColumnNote:
    attribute = proposal.attribute
    if attribute is None:
        kind = UNIT if name == unit.column else DROPPED
        return ColumnNote(name, kind, "", proposal.why, proposal.check, persons=proposal.persons)
    domain = kind_of(attribute).domain(attribute)
    gaps = column is not None and _has_gaps(column)
    return ColumnNote(name, attribute.kind, domain, proposal.why, proposal.check, gaps)


def _has_gaps(column: ColumnInHand) -> bool:
    numbers = column.amounts if column.amounts.are_numbers else None
    return None in column.texts or (numbers is not None and numbers.gaps + numbers.odd > 0)


def _why_none(notes: DraftNotes) -> str:
    return "; ".join(f"{note.name}: {note.why}" for note in notes.columns[:5]) + "." if notes.columns else "it has none."
