"""The kinds of attributes by name: what reads, encodes, checks and drafts a column of each."""

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from dpmine.base.errors import SchemaError
from dpmine.facts.encoding import Codes, Lists, codes_of_values
from dpmine.facts.kinds.columns import ColumnInHand, ColumnKind, Proposal, SingleColumns
from dpmine.facts.kinds.dates_columns import DateColumns, DateTimeColumns, TimeColumns
from dpmine.facts.kinds.items_columns import ItemColumns
from dpmine.facts.kinds.kind import Attribute, Listed, Ordered, Single
from dpmine.facts.kinds.nominal_columns import NominalColumns
from dpmine.facts.kinds.numeric_columns import NumericColumns
from dpmine.facts.sources import Source
from dpmine.facts.toml_tables import value_at

WORDS = ("description", "measured_in")  # of every kind, for people
_kinds: dict[str, ColumnKind[Any, Any]] = {}


def register(kind: ColumnKind[Any, Any]) -> None:
    """Make a kind known to schema files, drafts and engines."""
    if kind.name in _kinds:
        raise ValueError(f"two kinds of attributes share the name {kind.name!r}")
    _kinds[kind.name] = kind


def kind_of(attribute: Attribute) -> ColumnKind[Any, Any]:
    return _kinds[attribute.kind]


def read_attribute(name: str, table: dict[str, Any]) -> Attribute:
    """An attribute from its table in a schema file."""
    where, kind = f"Attribute {name!r}", table.get("kind")
    if not isinstance(kind, str) or kind not in _kinds:
        *others, last = _kinds
        raise SchemaError(f"{where}: 'kind' must be {', '.join(others)} or {last}. Got {kind!r} instead.")
    words = {key: value_at(table, key, str, where) for key in WORDS if key in table}
    attribute: Attribute = _kinds[kind].read(name, {key: table[key] for key in table if key not in WORDS}, where)
    return replace(attribute, **words) if words else attribute


def propose_attribute(column: ColumnInHand) -> Proposal[Any]:
    """A proposal by the first kind that recognises the column, the latest registered first."""
    kind = next(kind for kind in reversed(_kinds.values()) if kind.recognises(column))
    return kind.propose(column)


def encode_single(source: Source, attribute: Single) -> Codes:
    """The number of each row's value, by the public rules of the schema: the same for private rows and for public ones."""
    values: Codes = kind_of(attribute).encode(source, attribute)
    return values


def codes_of(attribute: Single, values: Codes) -> Codes:
    """The code of each value: what histograms, splits and models see."""
    return codes_of_values(values, attribute.starts, attribute.values) if isinstance(attribute, Ordered) else values


def encode_listed(source: Source, attribute: Listed) -> Lists:
    lists: Lists = kind_of(attribute).encode(source, attribute)
    return lists


def values_of(attribute: Single) -> NDArray[Any]:
    """What each code of an attribute stands for: a category, or the middle of its values; None for gaps."""
    kind = kind_of(attribute)
    assert isinstance(kind, SingleColumns)
    return kind.shown(attribute)


# Drafts ask the latest first: any column can be read as categories.
for _kind in (NominalColumns(), NumericColumns(), ItemColumns(), DateColumns(), DateTimeColumns(), TimeColumns()):
    register(_kind)
