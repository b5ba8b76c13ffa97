"""What every kind of attribute tells whoever counts: how many codes it has, what they are called, and how they compare.

A kind is a class here, which kernel and questions read, and a `ColumnKind` in the file beside it, which reads its table in a
schema file, and encodes, checks and drafts columns (`dpmine.facts.kinds.columns`). docs/decisions/0020-attribute-kinds.md.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

from dpmine.base.errors import ExpressionError
from dpmine.codes.domain import Column, Values

MISSING = "(missing)"
"""The label of rows that have no value, and their place in an order: behind every number."""
OWN, DROP = "own", "drop"
"""What becomes of gaps: a label of their own, or one that no histogram shows and no statistic counts."""
BEYOND = Decimal("Infinity")


def known_of(names: tuple[str, ...]) -> str:
    """The first of many names, for a sentence."""
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


@dataclass(frozen=True)
class Attribute(ABC):
    """Public facts about one column of a table."""

    kind: ClassVar[str]
    """The word for the kind in schema files and errors."""

    name: str
    description: str = field(default="", kw_only=True)
    """What the column holds, in words for people."""
    measured_in: str = field(default="", kw_only=True)
    """The unit of its numbers, such as years."""

    @property
    def words(self) -> dict[str, str]:
        """What a schema file says of it to people, and nothing follows from."""
        words = {"description": self.description, "measured_in": self.measured_in}
        return {key: text for key, text in words.items() if text}

    @property
    def title(self) -> str:
        """Its name with the unit of its numbers."""
        return f"{self.name} ({self.measured_in})" if self.measured_in else self.name

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of a table that its values come from."""
        return (self.name,)

    @property
    @abstractmethod
    def column(self) -> Column:
        """Its codes, as the kernel knows them."""

    @abstractmethod
    def form(self) -> dict[str, Any]:
        """All that decides what its codes mean, as a table of a schema file: the schema's fingerprint is made of it."""


class Single(Attribute):
    """An attribute with one code a row, which can be counted, compared and split on. The last code may be that of gaps.

    Codes are what histograms, splits and models see; what makes two rows the same row are values. A kind whose values are
    finer than its codes is `Ordered`, and has both.
    """

    ordered: ClassVar[bool] = False
    """Whether smaller codes stand for smaller values: true of what is `Ordered`."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """The number of codes of rows that have a value: 0 .. cells - 1."""

    @property
    def gap(self) -> str | None:
        """What becomes of rows without a value: "own" or "drop"; None where the schema gives them a value."""
        return None

    @property
    def size(self) -> int:
        """The number of codes, with that of gaps."""
        return self.cells + (self.gap is not None)

    @property
    def missing_code(self) -> int | None:
        """The code of gaps, which is the last one; None where there are none."""
        return None if self.gap is None else self.cells

    @property
    def hidden_code(self) -> int | None:
        """The code that histograms do not show."""
        return self.cells if self.gap == DROP else None

    @property
    def column(self) -> Column:
        return Column(self.size, gap=self.gap is not None)

    @abstractmethod
    def label(self, code: int) -> str: ...

    @abstractmethod
    def codes_of(self, text: str) -> tuple[int, int]:
        """The half-open range of the codes that equal a value named in a request; empty, in its place, where none does."""

    @abstractmethod
    def describe(self) -> str:
        """What values can be, as part of a sentence."""


class Ordered(Single):
    """An attribute whose values are numbered in rising order, so that it can be compared, and cut where its codes begin.

    A value named in a request is a number of the kind's own making, which says what lies before what and nothing more. A
    gap lies behind every number, at infinity: so cuts send it to the right, and one cut tells it from all values. Where a
    kind says nothing else, every value is a code of its own.
    """

    ordered: ClassVar[bool] = True

    @property
    def values(self) -> int:
        """How many values there are, without gaps: 0 .. values - 1."""
        return self.cells

    @property
    def starts(self) -> Sequence[int]:
        """The value at which each code begins."""
        return range(self.cells)

    @property
    def column(self) -> Column:
        return Column(self.size, gap=self.gap is not None, starts=tuple(self.starts), values=self.values)

    @abstractmethod
    def parsed(self, text: str) -> Decimal:
        """A value named in a request."""

    @abstractmethod
    def written(self, number: Decimal) -> str:
        """The inverse of parsed: one text for each."""

    @abstractmethod
    def value_point(self, value: int) -> Decimal:
        """What the number of a value stands for."""

    @abstractmethod
    def first_value_at_least(self, number: Decimal) -> int:
        """The smallest value whose point is >= number; `values` if there is none."""

    # -- what follows from these ----------------------------------------------------------------------------------------

    def number(self, text: str) -> Decimal:
        """A value named in a request, or the gap, which lies behind all of them."""
        return BEYOND if text == MISSING and self.gap is not None else self.parsed(text)

    def compared(self, text: str) -> Decimal:
        """A value that rows are compared with: gaps compare with nothing."""
        if text == MISSING:
            raise ExpressionError(f"Nothing compares with a gap. Write: {self.name} is missing.")
        return self.parsed(text)

    def values_of(self, number: Decimal) -> tuple[int, int]:
        """The half-open range of the values that equal a number; empty, in its place, where none does."""
        start = self.first_value_at_least(number)
        return start, start + (start < self.values and self.value_point(start) == number)

    def point(self, code: int) -> Decimal:
        """Where a code's values begin; they go up to the next point."""
        return self.value_point(self.starts[code]) if code < self.cells else BEYOND

    @property
    def last_cut(self) -> int:
        """The last code that a split's right side may begin with: gaps are split off where they have their own label."""
        return self.size - 1 if self.gap != DROP else self.cells - 1

    def first_code_at_least(self, number: Decimal) -> int:
        """The smallest code whose point is >= number; `cells`, which is the gap's if there is one, where none is."""
        return self.cells if number == BEYOND else bisect_left(self.starts, self.first_value_at_least(number))

    def floor_code(self, number: Decimal) -> int:
        """The code of the largest point <= number, clamped to the first and the last."""
        if number == BEYOND:
            return self.size - 1
        return max(bisect_right(self.starts, self.values_of(number)[1] - 1) - 1, 0)

    def codes_of(self, text: str) -> tuple[int, int]:
        number = self.number(text)
        start = self.first_code_at_least(number)
        return start, start + (start < self.size and self.point(start) == number)

    def label(self, code: int) -> str:
        return self.written(self.point(code)) if code < self.cells else MISSING


class Measured(Ordered):
    """An ordered attribute whose values stand for numbers an even step apart: it has quantiles."""

    @property
    @abstractmethod
    def numbers(self) -> Values:
        """What values stand for, as the kernel knows them."""

    @property
    def column(self) -> Column:
        return Column(self.size, self.gap is not None, tuple(self.starts), self.values, self.numbers)


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
