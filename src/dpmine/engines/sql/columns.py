"""The columns of the relation `coded`, and of the layers that a query puts on it.

`coded` has one integer column for each attribute (a0, a1, ...) and one list of item codes for each list attribute (l0, l1,
...). Layers add what a query needs more than once: hashes of rows, sums of models, distances.
"""

from dataclasses import dataclass, field

from sqlglot import exp

from dpmine.codes.rows import NearestCentre, RowKey
from dpmine.engines.hashing import multipliers
from dpmine.engines.sql.dialect import Dialect
from dpmine.facts.schema import Schema

CODED = "coded"
ENCODED = "encoded"  # where rows have persons: the same, with the column `person`, before their rows are capped
PERSON = "person"


def code_names(schema: Schema) -> dict[str, str]:
    """The column of each attribute that has one code."""
    return {attribute.name: f"a{place}" for place, attribute in enumerate(schema.singles)}


def list_names(schema: Schema) -> dict[str, str]:
    """The column of each attribute that has a list of codes."""
    return {attribute.name: f"l{place}" for place, attribute in enumerate(schema.lists)}


@dataclass(eq=False, repr=False)
class Columns:
    """What one query knows of its relation: by which names columns go, in which dialect, under which split key."""

    schema: Schema
    dialect: Dialect
    split_key: bytes
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
        self.codes, self.lists = code_names(self.schema), list_names(self.schema)

    @property
    def names(self) -> tuple[str, ...]:
        """Of everything that makes two rows the same row."""
        return (*self.codes.values(), *self.lists.values())

    def code(self, attribute: str) -> exp.Column:
        return exp.column(self.codes[attribute])

    def multipliers(self, salt: str) -> list[int]:
        """The numbers of a keyed hash: 3 rounds, shift, start and the factors, as in `hashing`."""
        return multipliers(self.split_key, salt, 5 + len(self.names))
