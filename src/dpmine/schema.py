"""The schema: public facts about a table, stated by its owner and never learned from rows.

Every value of every row is sent to an integer code by a rule that depends on the schema and on that value alone:
unknown categories and nulls to a fixed category, numbers floored to a public grid and clamped to its ends, NaN to a
fixed grid point. No value can raise. A schema is one TOML file; `Schema.load` and `Schema.to_toml` are inverse.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.errors import ExpressionError, SchemaError

MOST_GRID_POINTS = 4096
MOST_CATEGORIES = 65_536
MOST_ROWS = 2**31 - 1  # counts of counts must stay far inside 64 bits

_EXACT = Context(prec=60)  # numbers have at most 27 digits, codes at most 4: nothing on a grid is ever rounded


@dataclass(frozen=True)
class TaxonomyNode:
    """A node of a public hierarchy over categories; a node without children is a category."""

    name: str
    children: tuple[TaxonomyNode, ...] = ()

    def leaves(self) -> tuple[str, ...]:
        if not self.children:
            return (self.name,)
        return tuple(leaf for child in self.children for leaf in child.leaves())

    def nodes(self) -> tuple[TaxonomyNode, ...]:
        return (self, *(node for child in self.children for node in child.nodes()))

    @classmethod
    def parse(cls, name: str, form: Any) -> TaxonomyNode:
        """Nested tables; a list holds categories, null or an empty table is a category."""
        if isinstance(form, list) and all(isinstance(leaf, str) for leaf in form):
            return cls(name, tuple(cls(leaf) for leaf in form))
        if form is None or form == {}:
            return cls(name)
        if isinstance(form, dict):
            return cls(name, tuple(cls.parse(child, inner) for child, inner in form.items()))
        raise SchemaError(f"The taxonomy node {name!r} must be a table or a list of categories.")

    def form(self) -> Any:
        """The inverse of parse. Where one child is a table all are: TOML writes lists before tables."""
        if all(not child.children for child in self.children):
            return [child.name for child in self.children]
        forms = {child.name: child.form() for child in self.children}
        if any(isinstance(form, dict) for form in forms.values()):
            return {name: form if isinstance(form, dict) else {leaf: {} for leaf in form} for name, form in forms.items()}
        return forms


@dataclass(frozen=True)
class Nominal:
    """An attribute with a public list of categories. Values not in the list, and nulls, become `other`."""

    name: str
    categories: tuple[str, ...]
    other: str
    taxonomy: TaxonomyNode | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.categories) <= MOST_CATEGORIES:
            raise SchemaError(f"Attribute {self.name!r} must have 1 to {MOST_CATEGORIES} categories.")
        if len(set(self.categories)) != len(self.categories):
            raise SchemaError(f"Attribute {self.name!r} lists a category twice.")
        if self.other not in self.categories:
            raise SchemaError(f"Attribute {self.name!r}: 'other' must be one of its categories. Got {self.other!r}.")
        if self.taxonomy is not None and sorted(self.taxonomy.leaves()) != sorted(self.categories):
            raise SchemaError(f"Attribute {self.name!r}: the taxonomy's leaves must be its categories, each once.")
        for node in self.taxonomy.nodes() if self.taxonomy is not None else ():
            if len({child.name for child in node.children}) != len(node.children):
                raise SchemaError(f"Attribute {self.name!r}: the taxonomy has two children of one name below {node.name!r}.")

    @property
    def size(self) -> int:
        return len(self.categories)

    @cached_property
    def codes(self) -> dict[str, int]:
        return {category: code for code, category in enumerate(self.categories)}

    @property
    def other_code(self) -> int:
        return self.codes[self.other]

    def code(self, text: str) -> int:
        """The code of a category named in a request."""
        if text not in self.codes:
            known = ", ".join(self.categories[:12]) + (", ..." if self.size > 12 else "")
            raise ExpressionError(f"{self.name!r} has no category {text!r}. The schema knows: {known}.")
        return self.codes[text]

    def label(self, code: int) -> str:
        return self.categories[code]

    def form(self) -> dict[str, Any]:
        form: dict[str, Any] = {"kind": "nominal", "categories": list(self.categories), "other": self.other}
        if self.taxonomy is not None:
            form["taxonomy"] = {self.taxonomy.name: self.taxonomy.form()}
        return form


@dataclass(frozen=True)
class Numeric:
    """A numeric attribute on the public grid low, low + step, ... up to high.

    Values are floored to the grid, clamped to its ends; nulls, NaN and text that is no number become `missing`.
    """

    name: str
    low: Decimal
    high: Decimal
    step: Decimal
    missing: Decimal

    def __post_init__(self) -> None:
        for what in ("low", "high", "step", "missing"):
            parse_decimal(str(getattr(self, what)), f"Attribute {self.name!r}: {what!r}", SchemaError)
        if self.step <= 0 or self.high <= self.low:
            raise SchemaError(f"Attribute {self.name!r}: needs low < high and a positive step.")
        if self.size > MOST_GRID_POINTS:
            raise SchemaError(
                f"Attribute {self.name!r} has more than {MOST_GRID_POINTS} grid points. Use a larger step or closer bounds."
            )
        if np.any(np.diff(self.edges) <= 0):
            raise SchemaError(f"Attribute {self.name!r}: the step is too fine for numbers of this size.")

    @cached_property
    def size(self) -> int:
        return self._steps(self.high) + 1

    def _steps(self, number: Decimal) -> int:
        """How many whole steps a number of at least `low` lies above it."""
        return int(_EXACT.divide_int(_EXACT.subtract(number, self.low), self.step))

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """The grid points as the doubles nearest to them, so that encoding a value only ever compares."""
        return np.array([float(self.point(code)) for code in range(self.size)], dtype=np.float64)

    def point(self, code: int) -> Decimal:
        return _EXACT.fma(self.step, Decimal(code), self.low)

    @property
    def other_code(self) -> int:
        return self.floor_code(self.missing)

    def floor_code(self, number: Decimal) -> int:
        """The code of the largest grid point <= number, clamped to the ends of the grid."""
        return min(self._steps(number), self.size - 1) if number >= self.low else 0

    def first_code_at_least(self, number: Decimal) -> int:
        """The smallest code whose grid point is >= number; `size` if there is none."""
        if number <= self.low:
            return 0
        code = min(self._steps(number), self.size)
        return code if code == self.size or self.point(code) == number else code + 1

    def number(self, text: str) -> Decimal:
        """A number named in a request."""
        return parse_decimal(text, f"a value of {self.name!r}", ExpressionError)

    def label(self, code: int) -> str:
        return plain(self.point(code))

    def form(self) -> dict[str, Any]:
        return {"kind": "numeric", "low": self.low, "high": self.high, "step": self.step, "missing": self.missing}


@dataclass(frozen=True)
class ItemList:
    """A list-valued attribute over a public alphabet, such as a history of diagnoses.

    Unknown items are left out, and of each row only the first `at_most` known items count.
    """

    name: str
    items: tuple[str, ...]
    at_most: int
    separator: str = "|"

    def __post_init__(self) -> None:
        if not 1 <= len(self.items) <= MOST_CATEGORIES or len(set(self.items)) != len(self.items):
            raise SchemaError(f"Attribute {self.name!r} must list 1 to {MOST_CATEGORIES} distinct items.")
        if any(not item.strip() for item in self.items):
            raise SchemaError(f"Attribute {self.name!r} lists an empty item.")
        if not 1 <= self.at_most <= 100_000:
            raise SchemaError(f"Attribute {self.name!r}: 'at_most' must be between 1 and 100000.")
        if not self.separator:
            raise SchemaError(f"Attribute {self.name!r}: 'separator' must not be empty.")

    @cached_property
    def codes(self) -> dict[str, int]:
        return {item: code for code, item in enumerate(self.items)}

    def code(self, text: str) -> int:
        if text not in self.codes:
            known = ", ".join(self.items[:12]) + (", ..." if len(self.items) > 12 else "")
            raise ExpressionError(f"{self.name!r} has no item {text!r}. The schema knows: {known}.")
        return self.codes[text]

    def form(self) -> dict[str, Any]:
        return {"kind": "items", "items": list(self.items), "at_most": self.at_most, "separator": self.separator}


Attribute = Nominal | Numeric | ItemList
Single = Nominal | Numeric


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

    @classmethod
    def parse(cls, form: Any, where: str) -> Unit:
        if form == "row":
            return cls()
        if isinstance(form, dict):
            _only(form, {"column", "at_most"}, f"{where}: 'unit'")
            return cls(_get(form, "column", str, f"{where}: 'unit'"), _get(form, "at_most", int, f"{where}: 'unit'"))
        example = '{ column = "patient_id", at_most = 3 }'
        raise SchemaError(f"{where}: 'unit' must be \"row\" or name persons: {example}. Got {form!r} instead.")

    def form(self) -> Any:
        return "row" if self.column is None else {"column": self.column, "at_most": self.at_most}


@dataclass(frozen=True)
class Schema:
    """The public facts about one table."""

    name: str
    attributes: tuple[Attribute, ...]
    rows_at_most: int
    class_attribute: str | None = None
    drop: tuple[str, ...] = ()
    unit: Unit = Unit()
    drafted: bool = False

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
        if self.unit.column in names:
            raise SchemaError("The column that names persons cannot also be an attribute.")
        if not 1 <= self.rows_at_most <= MOST_ROWS:
            raise SchemaError(f"'rows_at_most' must be between 1 and {MOST_ROWS}.")
        if self.class_attribute is not None and not isinstance(self._by_name.get(self.class_attribute), Nominal):
            raise SchemaError(f"The class {self.class_attribute!r} must be a nominal attribute of the schema.")

    @property
    def rows_per_unit(self) -> int:
        """How many rows one protected unit may own: the stability of the source."""
        return self.unit.at_most

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
        if isinstance(attribute, ItemList):
            raise ExpressionError(f"{name!r} holds a list in each row; only 'contains' can be asked of it.")
        return attribute

    @property
    def class_labels(self) -> tuple[str, ...]:
        attribute = self.attribute(self.require_class())
        assert isinstance(attribute, Nominal)
        return attribute.categories

    def require_class(self) -> str:
        if self.class_attribute is None:
            raise SchemaError('The schema names no class. Add a line such as: class = "diagnosis".')
        return self.class_attribute

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what the codes mean. Disjoint cells are only known disjoint under one meaning of the codes."""
        form = {"attributes": [(a.name, a.form()) for a in self.attributes], "unit": self.unit.form()}
        text = json.dumps(form, sort_keys=True, default=lambda number: plain(number))
        return hashlib.sha256(text.encode()).hexdigest()

    # -- TOML ---------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, source: str | Path | Schema) -> Schema:
        """Read a schema file; a Schema is returned as it is."""
        if isinstance(source, Schema):
            return source
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
        _only(form, {"name", "class", "rows_at_most", "unit", "drop", "drafted", "attributes"}, where)
        tables = form.get("attributes", {})
        if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
            raise SchemaError(f"{where}: attributes must be tables such as [attributes.age].")
        if "rows_at_most" not in form:
            raise SchemaError(f"{where}: 'rows_at_most' is missing: a public bound on the number of rows.")
        return cls(
            name=_get(form, "name", str, where),
            attributes=tuple(_attribute(name, table) for name, table in tables.items()),
            rows_at_most=_get(form, "rows_at_most", int, where),
            class_attribute=_get(form, "class", str, where) if "class" in form else None,
            drop=_texts(form.get("drop", []), f"{where}: 'drop'"),
            unit=Unit.parse(form.get("unit", "row"), where),
            drafted=_get(form, "drafted", bool, where) if "drafted" in form else False,
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
        parts = [_draft_warning(self), tomli_w.dumps(form)]
        for attribute in self.attributes:
            table = _tidy(attribute.form())
            taxonomy = table.pop("taxonomy", None)
            parts.append("\n" + tomli_w.dumps({"attributes": {attribute.name: table}}))
            if taxonomy is not None:  # written apart from its attribute, so that a comment can stand above it
                parts.append("\n" + (_TAXONOMY_REMINDER if self.drafted else ""))
                parts.append(tomli_w.dumps({"attributes": {attribute.name: {"taxonomy": taxonomy}}}))
        return "".join(parts)

    @classmethod
    def draft(cls, source: Any, *, name: str | None = None) -> Schema:
        """Propose a schema for a file or frame. It looks at the data, so the owner must review every line."""
        from dpmine.drafting import draft

        return draft(source, name=name)


_TAXONOMY_WARNING = (
    "#\n"
    "# Taxonomies are proposals, made from the categories' names alone: names that begin with the same words form a group.\n"
    "# Correct each by public knowledge, such as an official classification, or delete it; NAME = [] stands in no group.\n"
    "# Never group categories because they behave alike in the rows: that would reveal rows outside the budget.\n"
)
_TAXONOMY_REMINDER = "# Proposed from names alone. Correct it by public knowledge, never by what the rows show.\n"


def _draft_warning(schema: Schema) -> str:
    if not schema.drafted:
        return ""
    has_taxonomies = any(isinstance(item, Nominal) and item.taxonomy is not None for item in schema.attributes)
    return (
        "# DRAFT. This file was proposed by looking at the data: bounds, categories, grid and size may reveal rows.\n"
        "# Replace each by what is publicly known about such tables, then delete the line 'drafted = true'.\n"
        "# As long as it stays, every statement says that the schema was read from the data outside the budget.\n"
        + (_TAXONOMY_WARNING if has_taxonomies else "")
        + "\n"
    )


def _attribute(name: str, table: dict[str, Any]) -> Attribute:
    where = f"Attribute {name!r}"
    kind = table.get("kind")
    if kind == "nominal":
        _only(table, {"kind", "categories", "other", "taxonomy"}, where)
        categories = _texts(table.get("categories", []), f"{where}: 'categories'")
        if not categories:
            raise SchemaError(f"{where} must list its categories.")
        other = _get(table, "other", str, where) if "other" in table else categories[-1]
        return Nominal(name, categories, other, _taxonomy(table.get("taxonomy"), where))
    if kind == "numeric":
        _only(table, {"kind", "low", "high", "step", "missing"}, where)
        low, high = _number(table, "low", where), _number(table, "high", where)
        step = _number(table, "step", where) if "step" in table else Decimal(1)
        missing = _number(table, "missing", where) if "missing" in table else low
        return Numeric(name, low, high, step, missing)
    if kind == "items":
        _only(table, {"kind", "items", "at_most", "separator"}, where)
        separator = _get(table, "separator", str, where) if "separator" in table else "|"
        items = _texts(table.get("items", []), f"{where}: 'items'")
        return ItemList(name, items, _get(table, "at_most", int, where), separator)
    raise SchemaError(f"{where}: 'kind' must be nominal, numeric or items. Got {kind!r} instead.")


def _taxonomy(form: Any, where: str) -> TaxonomyNode | None:
    if form is None:
        return None
    if not isinstance(form, dict) or len(form) != 1:
        raise SchemaError(f"{where}: the taxonomy must be a table with one root.")
    ((root, inner),) = form.items()
    return TaxonomyNode.parse(root, inner)


def _only(table: dict[str, Any], allowed: set[str], where: str) -> None:
    unknown = sorted(set(table) - allowed)
    if unknown:
        raise SchemaError(f"{where}: unknown key {unknown[0]!r}. Allowed: {', '.join(sorted(allowed))}.")


def _get(table: dict[str, Any], key: str, kind: type, where: str) -> Any:
    if type(table.get(key)) is not kind:
        names = {str: "text", int: "a whole number", bool: "true or false"}
        raise SchemaError(f"{where}: {key!r} must be {names[kind]}. Got {table.get(key)!r} instead.")
    return table[key]


def _texts(form: Any, where: str) -> tuple[str, ...]:
    if not isinstance(form, list) or not all(isinstance(text, str) for text in form):
        raise SchemaError(f"{where} must be a list of texts in quotes.")
    return tuple(form)


def _number(table: dict[str, Any], key: str, where: str) -> Decimal:
    if key not in table:
        raise SchemaError(f"{where}: {key!r} is missing.")
    number = table[key]
    if isinstance(number, bool) or not isinstance(number, (int, Decimal)):
        raise SchemaError(f"{where}: {key!r} must be a number. Got {number!r} instead.")
    return parse_decimal(str(number), f"{where}: {key!r}", SchemaError)


def parse_decimal(text: str, what: str, error: type[SchemaError] | type[ExpressionError]) -> Decimal:
    """A finite decimal of sane size: exact arithmetic on it must stay exact and cheap."""
    try:
        number = Decimal(text.strip()) if len(text) <= 40 else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite() or not -12 <= number.adjusted() < 15 or _decimals(number) > 12:
        if number is not None and number.is_finite() and number == 0:
            return Decimal(0)
        raise error(f"{what} must be a number below 1e15 with at most 12 decimals. Got {text[:40]!r} instead.")
    return number


def _decimals(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 99


def plain(number: Decimal) -> str:
    """Decimal text without exponent or trailing zeros: 40.0 is '40'."""
    text = format(number, "f") if number else "0"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def _tidy(form: dict[str, Any]) -> dict[str, Any]:
    return {
        key: int(item) if isinstance(item, Decimal) and item == item.to_integral_value() else item
        for key, item in form.items()
    }


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not a text file"
