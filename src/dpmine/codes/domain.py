"""What codes there are, and what they stand for: all that the kernel knows of a schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpmine.base.errors import RequestError

MOST_ROWS = 2**31 - 1  # counts of counts must stay far inside 64 bits


@dataclass(frozen=True)
class Values:
    """The numbers that an attribute's values stand for: low, low + step, and so on."""

    low: Fraction
    step: Fraction
    size: int

    @property
    def steps(self) -> int:
        """How many steps the last value lies above the first."""
        return self.size - 1

    @property
    def high(self) -> Fraction:
        return self.low + self.step * self.steps


@dataclass(frozen=True)
class Column:
    """The codes of one attribute, from 0 to before `size`: one in each row, or a list of them.

    An ordered attribute also has one of `values` values in each row, and each code holds those from its start on. The last
    code may stand for a gap; its value is then `values`.
    """

    size: int
    gap: bool = False
    starts: tuple[int, ...] = ()
    values: int = 0
    numbers: Values | None = None
    """What the values stand for, of a numeric attribute."""
    listed: bool = False


@dataclass(frozen=True)
class Domain:
    """The public facts about a table that prices, sensitivities and cells follow from."""

    columns: Mapping[str, Column]
    fingerprint: str
    """Of what the codes mean. Disjoint cells are only known disjoint under one meaning of the codes."""
    rows_at_most: int
    rows_per_unit: int
    """How many rows one protected unit may own: the stability of the source."""
    drafted: bool

    def column(self, name: str, *, listed: bool = False) -> Column:
        """The codes of an attribute."""
        column = self.columns.get(name)
        require(column is not None and column.listed == listed, f"no such attribute is here: {name:.60}")
        return self.columns[name]

    def size(self, name: str, *, listed: bool = False) -> int:
        """The number of codes of an attribute."""
        return self.column(name, listed=listed).size

    def values(self, name: str) -> int:
        """The number of values of an ordered attribute, with that of a gap."""
        column = self.column(name)
        require(column.values > 0, "values are of an ordered attribute")
        return column.values + column.gap

    def numbers(self, name: str) -> Values:
        """What the values of a numeric attribute stand for."""
        numbers = self.column(name).numbers
        if numbers is None:
            raise RequestError(f"The values of {name!r} are no numbers.")
        return numbers


def require(holds: bool, otherwise: str) -> None:
    """Refuse a query on codes, of which only what follows from public facts is ever said."""
    if not holds:
        raise RequestError(f"This is no query on the codes of this table: {otherwise}.")
