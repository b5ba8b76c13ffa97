"""The public facts about a table: its attributes, whom the guarantee protects, and how many rows there are at most.

Every value of every row is sent to a whole number by a rule that depends on these facts and on that value alone: numbers
are clamped to public bounds and rounded to a public resolution, and what is missing, or no value at all, goes to a place of
its own or to one that the schema names. No value can raise. The kernel knows these numbers alone: their `domain`.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from dpmine.base.decimals import plain
from dpmine.base.errors import ExpressionError, RequestError, SchemaError
from dpmine.codes.domain import MOST_ROWS, Domain
from dpmine.facts.kinds.dates import Dated
from dpmine.facts.kinds.kind import OWN, Attribute, Listed, Measured, Ordered, Single
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.reading_rules import DEFAULT_RULES, ReadingRules

A = TypeVar("A", bound=Attribute)


@dataclass(frozen=True)
class Unit:
    """Whom the guarantee protects: one row, or one person named by a column, of whose rows at most `at_most` count.

    Which of a person's rows count is settled once, before anything else, by a keyed hash of their values; rows that name no
    person are left out.
    """

    column: str | None = None
    at_most: int = 1

    def __post_init__(self) -> None:
        if self.column is None and self.at_most != 1:
            raise SchemaError("A unit of one row has no 'at_most'. Name the column of the person.")
        if not 1 <= self.at_most <= 1000:
            raise SchemaError("The unit's 'at_most' must be between 1 and 1000 rows a person.")

    @property
    def name(self) -> str:
        return "row" if self.column is None else "person"

    @property
    def neighbours(self) -> str:
        """The neighbour relation, as ledgers state it."""
        if self.column is None:
            return "add or remove one row"
        return f"add or remove one person, named by {self.column!r}, of whose rows at most {self.at_most} count"

    def form(self) -> Any:
        return "row" if self.column is None else {"column": self.column, "at_most": self.at_most}


@dataclass(frozen=True)
class Facts:
    """The public facts about one table. Owners have them as a `Schema`, which adds its file and its draft."""

    name: str
    attributes: tuple[Attribute, ...]
    rows_at_most: int
    class_attribute: str | None = None
    drop: tuple[str, ...] = ()
    unit: Unit = Unit()
    drafted: bool = False
    read: ReadingRules = DEFAULT_RULES
    """How text in files is read."""

    def __post_init__(self) -> None:
        names = [attribute.name for attribute in self.attributes]
        if not self.name or not all(part.isalnum() or part in "-_." for part in self.name) or self.name.startswith("."):
            raise SchemaError("The schema needs a name made of letters, digits, '-', '_' and '.'.")
        if not names:
            raise SchemaError("The schema must describe at least one attribute.")
        if len(set(names)) != len(names):
            raise SchemaError("The schema describes an attribute twice.")
        if set(names) & set(self.drop):
            raise SchemaError("A dropped column cannot also be an attribute.")
        for attribute in self.attributes:
            for column in set(attribute.reads) & set(self.drop):
                raise SchemaError(f"Attribute {attribute.name!r} is made of the column {column!r}, which is dropped.")
        if self.unit.column in names:
            raise SchemaError("The column that names persons cannot also be an attribute.")
        if not 1 <= self.rows_at_most <= MOST_ROWS:
            raise SchemaError(f"'rows_at_most' must be between 1 and {MOST_ROWS}.")
        if self.class_attribute is not None and not isinstance(self._by_name.get(self.class_attribute), Nominal):
            raise SchemaError(f"The class {self.class_attribute!r} must be a nominal attribute of the schema.")
        if self.class_attribute is not None and self.target.gap == OWN:
            raise SchemaError(
                f"The class {self.class_attribute!r} cannot have gaps as a class of their own. "
                'Set missing = "drop" to leave such rows out, or name the category that they belong to.'
            )

    @property
    def rows_per_unit(self) -> int:
        """How many rows one protected unit may own: the stability of the source."""
        return self.unit.at_most

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are ever read: those of the attributes, and the one that names persons."""
        return (
            *(name for attribute in self.attributes for name in attribute.reads),
            *([self.unit.column] if self.unit.column else []),
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what the codes mean. Disjoint cells are only known disjoint under one meaning of the codes."""
        form: dict[str, Any] = {"attributes": [(a.name, a.form()) for a in self.attributes], "unit": self.unit.form()}
        if self.read != DEFAULT_RULES:  # so that other rules are another root
            form["read"] = self.read.form()
        text = json.dumps(form, sort_keys=True, default=lambda number: plain(number))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def domain(self) -> Domain:
        """What the kernel knows of them."""
        columns = {attribute.name: attribute.column for attribute in self.attributes}
        return Domain(columns, self.fingerprint, self.rows_at_most, self.rows_per_unit, self.drafted)

    # -- attributes by name, as requests name them --------------------------------------------------------------------

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return {attribute.name: attribute for attribute in self.attributes}

    def attribute(self, name: str) -> Attribute:
        """The attribute of that name, or an error that lists the known ones."""
        if name not in self._by_name:
            reason = "is dropped by the schema" if name in self.drop else "is not in the schema"
            known = ", ".join(list(self._by_name)[:20])
            raise ExpressionError(f"Column {name!r} {reason}. It knows: {known}.")
        return self._by_name[name]

    def single(self, name: str) -> Single:
        """An attribute with one value a row, which can be counted, compared and split on."""
        attribute = self.attribute(name)
        if not isinstance(attribute, Single):
            raise ExpressionError(f"{name!r} holds a list in each row; only 'contains' can be asked of it.")
        return attribute

    def listed(self, name: str) -> Listed:
        attribute = self.attribute(name)
        if not isinstance(attribute, Listed):
            raise ExpressionError(f"{name!r} does not hold lists, so 'contains' cannot be asked of it.")
        return attribute

    def ordered(self, name: str, so: str, error: type[RequestError] = RequestError) -> Ordered:
        """An attribute that can be cut, or an error that says what cannot be asked of others: "it has no thresholds"."""
        attribute = self.single(name)
        if not isinstance(attribute, Ordered):
            raise error(f"{name!r} is not numeric, so {so}.")
        return attribute

    def measured(self, name: str, so: str, error: type[RequestError] = RequestError) -> Measured:
        """An attribute whose values are numbers or dates, or an error that says what cannot be asked of others."""
        attribute = self.single(name)
        if not isinstance(attribute, Measured):
            raise error(f"{name!r} is not numeric, so {so}.")
        return attribute

    def dated(self, name: str, so: str, error: type[RequestError] = RequestError) -> Dated:
        """An attribute of the calendar, or an error that says what cannot be asked of others: "it has no months"."""
        attribute = self.single(name)
        if not isinstance(attribute, Dated):
            raise error(f"{name!r} is no date, datetime or time, so {so}.")
        return attribute

    def numeric(self, name: str, so: str, error: type[RequestError] = RequestError) -> Numeric:
        """A numeric attribute, or an error that says what cannot be asked of others: "it has no quantiles"."""
        attribute = self.single(name)
        if isinstance(attribute, Dated):
            raise error(f"{name!r} is a {attribute.kind}, so {so}. It has a median, a min and a max, and it can be counted.")
        if not isinstance(attribute, Numeric):
            raise error(f"{name!r} is not numeric, so {so}.")
        return attribute

    def nominal(self, name: str, instead: str, error: type[RequestError] = RequestError) -> Nominal:
        """A nominal attribute, or an error that says what to ask of others instead: "use thresholds"."""
        attribute = self.single(name)
        if not isinstance(attribute, Nominal):
            raise error(f"{name!r} is {attribute.kind}: {instead}.")
        return attribute

    # -- attributes by kind -------------------------------------------------------------------------------------------

    @property
    def singles(self) -> tuple[Single, ...]:
        """The attributes with one value a row, in order."""
        return tuple(attribute for attribute in self.attributes if isinstance(attribute, Single))

    @property
    def lists(self) -> tuple[Listed, ...]:
        """The attributes with a list in each row, in order."""
        return tuple(attribute for attribute in self.attributes if isinstance(attribute, Listed))

    def of_kind(self, kind: type[A]) -> tuple[A, ...]:
        """The attributes of one kind, in order."""
        return tuple(attribute for attribute in self.attributes if isinstance(attribute, kind))

    # -- the class ----------------------------------------------------------------------------------------------------

    def require_class(self) -> str:
        if self.class_attribute is None:
            raise SchemaError('The schema names no class. Add a line such as: class = "diagnosis".')
        return self.class_attribute

    @property
    def target(self) -> Nominal:
        """The class, which is what models predict."""
        return self.nominal(self.require_class(), "it cannot be the class")

    @property
    def class_labels(self) -> tuple[str, ...]:
        return self.target.categories
