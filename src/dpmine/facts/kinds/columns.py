"""What an owner's side does with columns of one kind: reads the schema's table, encodes, checks and drafts.

Nothing here is reached by the kernel. Each kind has one `ColumnKind` beside its attribute class, and the registry
(`dpmine.facts.kinds.registry`) finds it by the kind's name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from dpmine.facts.encoding import Codes, Lists
from dpmine.facts.kinds.amounts import Amounts, finite
from dpmine.facts.kinds.kind import OWN, Attribute, Single
from dpmine.facts.kinds.shifts import Shift
from dpmine.facts.sources import Source
from dpmine.facts.toml_tables import written_short

A = TypeVar("A", bound=Attribute)
E = TypeVar("E", Codes, Lists)
S = TypeVar("S", bound=Single)


@dataclass(frozen=True)
class Proposal(Generic[A]):
    """What a draft makes of a column. It ends up in a file, so its words name no counts of rows and no values."""

    attribute: A | None
    """None if the column is better dropped."""
    why: str
    check: str = ""
    """What the owner has to look at; nothing where it says what everybody knows."""
    persons: int | None = None
    """How many rows most of its values have, of a column that may name persons; None of others."""


class ColumnKind(ABC, Generic[A, E]):
    """One kind of columns, of which attributes A are the public facts and E is what they are encoded into."""

    name: str
    """The kind's word in schema files, `A.kind`."""

    # -- schema files -------------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, name: str, table: dict[str, Any], where: str) -> A:
        """The attribute from its table, or one sentence that begins with `where`."""

    def write(self, attribute: A, *, drafted: bool, gaps: bool = True) -> str:
        """The inverse of read, as TOML; in a draft it may come with comments. Without gaps it says nothing of them."""
        import tomli_w

        return "\n" + tomli_w.dumps({"attributes": {attribute.name: table_of(attribute, gaps=gaps)}})

    def domain(self, attribute: A) -> str:
        """What values can be, in a few words for a table."""
        return attribute.describe() if isinstance(attribute, Single) else attribute.kind

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

    def shift(self, source: Source, attribute: A) -> Shift | None:
        """What these rules shift in statistics, for the owner only; None where values are no numbers."""
        return None

    # -- drafts -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def recognises(self, column: ColumnInHand) -> bool:
        """Whether a column looks like one of this kind."""

    @abstractmethod
    def propose(self, column: ColumnInHand) -> Proposal[A]:
        """An attribute that fits a recognised column as it is, or why it is better dropped, like an identifier."""


class SingleColumns(ColumnKind[S, Codes]):
    """A kind of columns with one value a row."""

    @abstractmethod
    def shown(self, attribute: S) -> NDArray[Any]:
        """What each code stands for, as it would stand in a column; of the gap what a gap looks like there."""


@dataclass(frozen=True, eq=False, repr=False)
class ColumnInHand:
    """One column of a table that an owner drafts a schema from; or several of one kind, such as visit_1 to visit_6."""

    source: Source
    name: str
    joined: tuple[str, ...] = ()
    """The names of these several columns."""

    @property
    def rows(self) -> int:
        return self.source.rows * max(len(self.joined), 1)

    @cached_property
    def texts(self) -> list[str | None]:
        """Each value as text; None where it is missing."""
        return [text for name in self.joined or (self.name,) for text in self.source.texts(name)]

    @cached_property
    def counts(self) -> Counter[str]:
        """How many rows have each text."""
        return Counter(text for text in self.texts if text is not None)

    @cached_property
    def distinct(self) -> list[str]:
        return sorted(self.counts)

    @cached_property
    def amounts(self) -> Amounts:
        """Its texts as numbers."""
        return Amounts.of(self.counts, self.number)

    @property
    def numbers(self) -> list[Decimal]:
        """The distinct numbers in rising order; none if this is no column of numbers."""
        return self.amounts.numbers if self.amounts.are_numbers else []

    def number(self, text: str) -> Decimal | None:
        """The number that a text of this column stands for, by the rules of its file."""
        return finite(self.source.read.plain_number(text))


def table_of(attribute: Attribute, *, gaps: bool = True) -> dict[str, Any]:
    """The table of a schema file: what decides the codes, and words for people."""
    form = attribute.form()
    if not gaps and form.get("missing") == OWN:
        del form["missing"]
    return {"kind": form.pop("kind"), **attribute.words, **written_short(form)}
