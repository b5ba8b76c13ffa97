"""What codes there are, and what they stand for: all that the kernel knows of a schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpmine.base.errors import RequestError

MOST_ROWS = 2**31 - 1  # counts of counts must stay far inside 64 bits


@dataclass(frozen=True)
class Grid:
    """The numbers that an attribute's codes stand for: low, low + step, and so on."""

    low: Fraction
    step: Fraction
    size: int

    @property
    def high(self) -> Fraction:
        return self.low + self.step * (self.size - 1)


@dataclass(frozen=True)
class Column:
    """The codes of one attribute, from 0 to before `size`: one in each row, or a list of them."""

    size: int
    grid: Grid | None = None
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

    def size(self, name: str, *, listed: bool = False) -> int:
        """The number of codes of an attribute."""
        column = self.columns.get(name)
        require(column is not None and column.listed == listed, f"no such attribute is here: {name:.60}")
        return self.columns[name].size

    def grid(self, name: str) -> Grid:
        """What the codes of a numeric attribute stand for."""
        self.size(name)
        grid = self.columns[name].grid
        if grid is None:
            raise RequestError(f"The codes of {name!r} are no numbers.")
        return grid


def require(holds: bool, otherwise: str) -> None:
    """Refuse a query on codes, of which only what follows from public facts is ever said."""
    if not holds:
        raise RequestError(f"This is no query on the codes of this table: {otherwise}.")
