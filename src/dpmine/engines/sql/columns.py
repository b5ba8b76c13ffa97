"""The columns of the relation `coded`, and of the layers that a query puts on it.

`coded` has one integer column for each attribute's value (v0, v1, ...), and of attributes that have several values in a code
one for the code (a0, a1, ...); one list of item codes for each list attribute (l0, l1, ...). Layers add what a query needs
more than once: hashes of rows, sums of models, distances.
"""

from dataclasses import dataclass, field

from sqlglot import exp

from dpmine.codes.rows import NearestCentre, RowKey
from dpmine.engines.hashing import multipliers
from dpmine.engines.sql.dialect import Dialect
from dpmine.facts.kinds.kind import Ordered
from dpmine.facts.schema import Schema

CODED = "coded"
ENCODED = "encoded"  # where rows have persons: the same, with the column `person`, before their rows are capped
PERSON = "person"


def value_names(schema: Schema) -> dict[str, str]:
    """The column with the values of each attribute that has one value a row."""
    return {attribute.name: f"v{place}" for place, attribute in enumerate(schema.singles)}


def code_names(schema: Schema) -> dict[str, str]:
    """The column with its codes: that of its values where each has a code of its own."""
    return {
        attribute.name: f"a{place}" if isinstance(attribute, Ordered) and attribute.values > attribute.cells else f"v{place}"
        for place, attribute in enumerate(schema.singles)
    }


def sizes_of_columns(schema: Schema) -> dict[str, int]:
    """How many numbers there may be in each column of values or codes, from 0 on, with that of a gap."""
    sizes = {name: schema.single(attribute).size for attribute, name in code_names(schema).items()}
    for attribute, name in value_names(schema).items():
        single = schema.single(attribute)
        count = single.values if isinstance(single, Ordered) else single.cells
        sizes[name] = count + (single.gap is not None)
    return sizes


def list_names(schema: Schema) -> dict[str, str]:
    """The column of each attribute that has a list of codes."""
    return {attribute.name: f"l{place}" for place, attribute in enumerate(schema.lists)}


@dataclass(eq=False, repr=False)
class Columns:
    """What one query knows of its relation: by which names columns go, in which dialect, under which split key."""

    schema: Schema
    dialect: Dialect
    split_key: bytes
    values: dict[str, str] = field(init=False)
    codes: dict[str, str] = field(init=False)
    lists: dict[str, str] = field(init=False)
    hashes: dict[str, str] = field(default_factory=dict)
    """Of each salt the column with the hash of a row."""
    sums: dict[RowKey, list[str]] = field(default_factory=dict)
    """Of each model the columns with its sums of scores, or nearnesses to its centres."""
    best: dict[RowKey, str] = field(default_factory=dict)
    """The largest of these."""
    distances: dict[NearestCentre, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values, self.codes = value_names(self.schema), code_names(self.schema)
        self.lists = list_names(self.schema)

    @property
    def names(self) -> tuple[str, ...]:
        """Of everything that makes two rows the same row."""
        return (*self.values.values(), *self.lists.values())

    def value(self, attribute: str) -> exp.Column:
        return exp.column(self.values[attribute])

    def last_value(self, attribute: str) -> int:
        """The largest number that a value has; a gap's is one more."""
        return self.schema.ordered(attribute, "it has no values").values - 1

    def code(self, attribute: str) -> exp.Column:
        return exp.column(self.codes[attribute])

    def multipliers(self, salt: str) -> list[int]:
        """The numbers of a keyed hash: 3 rounds, shift, start and the factors, as in `hashing`."""
        return multipliers(self.split_key, salt, 5 + len(self.names))
