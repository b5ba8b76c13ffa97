"""What an owner's side does with columns of one kind: reads the schema's table, encodes, checks and drafts.

Nothing here is reached by the kernel. Each kind has one `ColumnKind` beside its attribute class, and the registry
(`dpmine.facts.kinds.registry`) finds it by the kind's name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from dpmine.facts.encoding import Codes, Lists
from dpmine.facts.kinds.kind import Attribute, Single
from dpmine.facts.sources import Source
from dpmine.facts.toml_tables import written_short

A = TypeVar("A", bound=Attribute)
E = TypeVar("E", Codes, Lists)
S = TypeVar("S", bound=Single)


class ColumnKind(ABC, Generic[A, E]):
    """One kind of columns, of which attributes A are the public facts and E is what they are encoded into."""

    name: str
    """The kind's word in schema files, `A.kind`."""

    # -- schema files -------------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, name: str, table: dict[str, Any], where: str) -> A:
        """The attribute from its table, or one sentence that begins with `where`."""

    def write(self, attribute: A, *, drafted: bool) -> str:
        """The inverse of read, as TOML; in a draft it may come with comments."""
        import tomli_w

        return "\n" + tomli_w.dumps({"attributes": {attribute.name: written_short(attribute.form())}})

    def draft_warning(self, attribute: A) -> str:
        """What the head of a drafted file says about such attributes, as comment lines; none by default."""
        return ""

    # -- columns ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def encode(self, source: Source, attribute: A) -> E:
        """The numbers of a column's values. Total, and a function of each value alone: none raises or moves another's.

        Of an attribute with one value a row that is the value's number, from which its code follows; of others the lists.
        """

    @abstractmethod
    def check(self, source: Source, attribute: A) -> dict[str, int]:
        """How many values of a column each public rule changes, for the owner only."""

    # -- drafts -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def recognises(self, column: ColumnInHand) -> bool:
        """Whether a column looks like one of this kind."""

    @abstractmethod
    def propose(self, column: ColumnInHand) -> A | None:
        """An attribute that fits a recognised column as it is; None if it is better dropped, like an identifier."""


class SingleColumns(ColumnKind[S, Codes]):
    """A kind of columns with one value a row."""

    @abstractmethod
    def shown(self, attribute: S) -> NDArray[Any]:
        """What each code stands for, as it would stand in a column; of the gap what a gap looks like there."""


@dataclass(frozen=True, eq=False, repr=False)
class ColumnInHand:
    """One column of a table that an owner drafts a schema from."""

    source: Source
    name: str

    @property
    def rows(self) -> int:
        return self.source.rows

    @cached_property
    def texts(self) -> list[str | None]:
        """Each value as text; None where it is missing."""
        return self.source.texts(self.name)

    @cached_property
    def distinct(self) -> list[str]:
        return sorted({text for text in self.texts if text is not None})

    @cached_property
    def numbers(self) -> list[Decimal]:
        """The distinct texts as numbers; none if some text is no number."""
        numbers = [self.number(text) for text in self.distinct]
        found = [number for number in numbers if number is not None]
        return found if len(found) == len(numbers) else []

    def number(self, text: str) -> Decimal | None:
        """The number that a text of this column stands for, by the rules of its file."""
        return _finite(self.source.read.plain_number(text))


def _finite(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except ArithmeticError:
        return None
    return number if number.is_finite() and abs(number) < Decimal(10) ** 14 else None
