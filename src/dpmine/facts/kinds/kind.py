"""What every kind of attribute tells whoever counts: how many codes it has, what they are called, and how they compare.

A kind is a class here, which kernel and questions read, and a `ColumnKind` in the file beside it, which reads its table in a
schema file, and encodes, checks and drafts columns (`dpmine.facts.kinds.columns`). docs/decisions/0020-attribute-kinds.md.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from dpmine.codes.domain import Column


def known_of(names: tuple[str, ...]) -> str:
    """The first of many names, for a sentence."""
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


@dataclass(frozen=True)
class Attribute(ABC):
    """Public facts about one column of a table."""

    kind: ClassVar[str]
    """The word for the kind in schema files and errors."""

    name: str

    @property
    @abstractmethod
    def column(self) -> Column:
        """Its codes, as the kernel knows them."""

    @abstractmethod
    def form(self) -> dict[str, Any]:
        """All that decides what its codes mean, as a table of a schema file: the schema's fingerprint is made of it."""


class Single(Attribute):
    """An attribute with one code a row, which can be counted, compared and split on. The code itself enters a row's hash."""

    ordered: ClassVar[bool] = False
    """Whether smaller codes stand for smaller values: true of what is `Ordered`."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of codes: 0 .. size - 1."""

    @property
    def column(self) -> Column:
        return Column(self.size)

    @property
    @abstractmethod
    def other_code(self) -> int:
        """The code of what is missing or no value of this kind."""

    @abstractmethod
    def label(self, code: int) -> str: ...

    @abstractmethod
    def codes_of(self, text: str) -> tuple[int, int]:
        """The half-open range of the codes that equal a value named in a request; empty, in its place, where none does."""

    @abstractmethod
    def describe(self) -> str:
        """What values can be, as part of a sentence."""


class Ordered(Single):
    """An attribute whose codes stand for rising points, so that it can be compared, binned and split at each of them.

    A value named in a request is a number of the kind's own making, which says what lies before what and nothing more.
    """

    ordered: ClassVar[bool] = True

    @abstractmethod
    def number(self, text: str) -> Decimal:
        """A value named in a request."""

    @abstractmethod
    def written(self, number: Decimal) -> str:
        """The inverse of number: one text for each."""

    @abstractmethod
    def point(self, code: int) -> Decimal:
        """Where a code's values begin; they go up to the next point."""

    @abstractmethod
    def first_code_at_least(self, number: Decimal) -> int:
        """The smallest code whose point is >= number; `size` if there is none."""

    def floor_code(self, number: Decimal) -> int:
        """The code of the largest point <= number, clamped to the first and the last."""
        start = self.first_code_at_least(number)
        return start if start < self.size and self.point(start) == number else max(start - 1, 0)

    def codes_of(self, text: str) -> tuple[int, int]:
        number = self.number(text)
        start = self.first_code_at_least(number)
        return start, start + (start < self.size and self.point(start) == number)

    def label(self, code: int) -> str:
        return self.written(self.point(code))


class Listed(Attribute):
    """An attribute with a list of codes of a public alphabet in each row. The items, in any order, enter a row's hash."""

    items: tuple[str, ...]
    at_most: int

    @property
    def column(self) -> Column:
        return Column(len(self.items), listed=True)

    @abstractmethod
    def code(self, text: str) -> int:
        """The code of an item named in a request."""
