"""The schema: the public facts about a table as its owner states them in one TOML file, never learned from rows.

`Schema.load` and `Schema.to_toml` are inverse; `Schema.draft` proposes one for review.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from dpmine.base.errors import OwnerWarning, SchemaError
from dpmine.facts.draft_notes import DraftNotes
from dpmine.facts.drafting import ProposedFacts, Wishes, propose_facts
from dpmine.facts.facts import Facts, Unit
from dpmine.facts.kinds.kind import DROP, Attribute
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.registry import kind_of, read_attribute
from dpmine.facts.reading_rules import DEFAULT_RULES, ReadingRules
from dpmine.facts.toml_tables import refuse_unknown_keys, texts_of, value_at


@dataclass(frozen=True)
class Schema(Facts):
    """The public facts about one table, with their file."""

    notes: DraftNotes | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Why a draft is as it is, until it is written to its file as comments."""

    @classmethod
    def load(cls, source: str | Path | Schema) -> Schema:
        """Read a schema file; a Schema is returned as it is, without a draft's notes, which are for its owner."""
        if isinstance(source, Schema):
            return source if source.notes is None else replace(source, notes=None)
        path = Path(source)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise SchemaError(f"Cannot read the schema {str(source)!r}: {_reason(error)}.") from None
        return cls.from_toml(text, where=str(source))

    @classmethod
    def from_toml(cls, text: str, *, where: str = "schema") -> Schema:
        try:
            return cls._from_form(tomllib.loads(text, parse_float=Decimal), where)
        except (ValueError, InvalidOperation, RecursionError) as error:
            raise SchemaError(f"{where} is not valid TOML: {error}.") from None

    @classmethod
    def _from_form(cls, form: dict[str, Any], where: str) -> Schema:
        refuse_unknown_keys(form, {"name", "class", "rows_at_most", "unit", "drop", "drafted", "read", "attributes"}, where)
        tables = form.get("attributes", {})
        if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
            raise SchemaError(f"{where}: attributes must be tables such as [attributes.age].")
        if "rows_at_most" not in form:
            raise SchemaError(f"{where}: 'rows_at_most' is missing: a public bound on the number of rows.")
        target = value_at(form, "class", str, where) if "class" in form else None
        if target in tables and tables[target].get("kind") == Nominal.kind:  # rows without a class teach and judge nothing
            tables = tables | {target: {"missing": DROP} | tables[target]}
        return cls(
            name=value_at(form, "name", str, where),
            attributes=tuple(read_attribute(name, table) for name, table in tables.items()),
            rows_at_most=value_at(form, "rows_at_most", int, where),
            class_attribute=target,
            drop=texts_of(form.get("drop", []), f"{where}: 'drop'"),
            unit=_unit(form.get("unit", "row"), where),
            drafted=value_at(form, "drafted", bool, where) if "drafted" in form else False,
            read=ReadingRules.parse(form.get("read", {}), where),
        )

    def to_toml(self) -> str:
        import tomli_w

        form: dict[str, Any] = {"name": self.name, "rows_at_most": self.rows_at_most, "unit": self.unit.form()}
        if self.class_attribute is not None:
            form["class"] = self.class_attribute
        if self.drop:
            form["drop"] = list(self.drop)
        if self.drafted:
            form["drafted"] = True
        if self.read != DEFAULT_RULES:
            form["read"] = self.read.form()
        head = tomli_w.dumps(form)
        if self.drafted and self.notes is not None:
            head = self.notes.commented(head)
        return "".join((self._draft_warning(), head, *map(self._table, self.attributes)))

    def _table(self, attribute: Attribute) -> str:
        """An attribute as TOML; in a draft below why it is so, and silent about gaps where none were seen."""
        kind = kind_of(attribute)
        note = self.notes.of(attribute.name) if self.drafted and self.notes is not None else None
        if note is None:
            return kind.write(attribute, drafted=self.drafted)
        return "\n" + note.comments() + kind.write(attribute, drafted=True, gaps=note.gaps).removeprefix("\n")

    @classmethod
    def draft(
        cls,
        source: Any,
        *,
        name: str | None = None,
        class_attribute: str | None = None,
        unit: str | None = None,
        drop: Sequence[str] = (),
        read: ReadingRules | Mapping[str, str] | None = None,
    ) -> Schema:
        """Propose a schema for a file or frame. It looks at the data, so the owner must review every line.

        class_attribute  the column to predict; None: one with a name such as "diagnosis"
        unit             the column that names the persons whom the guarantee protects; None: rows are protected
        drop             columns that are never read
        read             how a text file is read, such as {"sep": ";", "encoding": "cp1252"}; what it leaves out is found out
        """
        proposed = propose_facts(source, name=name, read=read, wishes=Wishes(class_attribute, unit, tuple(drop)))
        for sentence in proposed.lines.sentences():
            warnings.warn(f"For the owner only: {sentence}", OwnerWarning, stacklevel=2)
        return cls.of_proposed(proposed)

    @classmethod
    def of_proposed(cls, proposed: ProposedFacts) -> Schema:
        return cls(
            proposed.name,
            proposed.attributes,
            proposed.rows_at_most,
            class_attribute=proposed.class_attribute,
            drop=proposed.drop,
            unit=proposed.unit,
            drafted=True,
            notes=proposed.notes,
            read=proposed.read,
        )

    def _draft_warning(self) -> str:
        if not self.drafted:
            return ""
        warnings = dict.fromkeys(kind_of(item).draft_warning(item) for item in self.attributes)
        return (
            "# DRAFT. This file was proposed by looking at the data: bounds, categories, grid and size may reveal rows.\n"
            "# Replace each by what is publicly known about such tables, then delete the line 'drafted = true'.\n"
            "# As long as it stays, every statement says that the schema was read from the data outside the budget.\n"
            + "".join(warnings)
            + "\n"
        )


def _unit(form: Any, where: str) -> Unit:
    if form == "row":
        return Unit()
    if isinstance(form, dict):
        inside = f"{where}: 'unit'"
        refuse_unknown_keys(form, {"column", "at_most"}, inside)
        return Unit(value_at(form, "column", str, inside), value_at(form, "at_most", int, inside))
    example = '{ column = "patient_id", at_most = 3 }'
    raise SchemaError(f"{where}: 'unit' must be \"row\" or name persons: {example}. Got {form!r} instead.")


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not a text file"
