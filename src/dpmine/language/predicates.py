"""The closed language of predicates and keys: what a row may be asked, as frozen values.

A *predicate* is true or false for each row; a *key* gives each row one of finitely many public labels. Both look at
one row only, are total (no row can make them fail) and are checked against the schema alone. Users write them as
`dm.col("age") >= 40` or as text; `str(expression)` gives that text back. No callables, no SQL.
"""

from __future__ import annotations

from typing import ClassVar

from dpmine.base.errors import ExpressionError
from dpmine.base.wire_values import value

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Predicate:
    """True or false for each row. Combine with &, | and ~."""

    MOST_PARTS: ClassVar[int] = 2**19  # on the wire, written out: a list of all categories there can be

    def __and__(self, other: Predicate) -> Predicate:
        return And((*_parts_of(And, self), *_parts_of(And, _predicate(other))))

    def __or__(self, other: Predicate) -> Predicate:
        return Or((*_parts_of(Or, self), *_parts_of(Or, _predicate(other))))

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> bool:
        raise ExpressionError("A predicate has no truth value of its own. Combine predicates with &, | and ~.")


@value("compare")
class Compare(Predicate):
    """attribute op value; categories know only == and !=. Rows without a value compare with nothing, as in SQL."""

    attribute: str
    op: str
    value: str

    def __post_init__(self) -> None:
        if self.op not in COMPARISONS:
            raise ExpressionError(f"A comparison must be one of {', '.join(COMPARISONS)}. Got {self.op!r} instead.")

    def __str__(self) -> str:
        return f"{quoted(self.attribute)} {self.op} {quoted(self.value)}"


@value("in")
class IsIn(Predicate):
    """The attribute has one of the given values."""

    attribute: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{quoted(self.attribute)} in [{', '.join(map(quoted, self.values))}]"


@value("is-missing")
class IsMissing(Predicate):
    """The row has no value here."""

    attribute: str

    def __str__(self) -> str:
        return f"{quoted(self.attribute)} is missing"


@value("contains")
class Contains(Predicate):
    """The row's list holds every one of the given items."""

    attribute: str
    items: tuple[str, ...]

    def __str__(self) -> str:
        return f"{quoted(self.attribute)} contains [{', '.join(map(quoted, self.items))}]"


@value("and")
class And(Predicate):
    """All parts hold; true where there are none."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return "(" + " and ".join(map(str, self.parts)) + ")" if self.parts else "true"


@value("or")
class Or(Predicate):
    """Some part holds; false where there are none."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return "(" + " or ".join(map(str, self.parts)) + ")" if self.parts else "false"


@value("not")
class Not(Predicate):
    """The part is false. What a gap leaves open is neither: `not (age > 40)` does not hold for it, as in SQL."""

    part: Predicate

    def __str__(self) -> str:
        if isinstance(self.part, IsMissing):
            return f"{quoted(self.part.attribute)} is not missing"
        return f"not {self.part}"


def _predicate(item: object) -> Predicate:
    if not isinstance(item, Predicate):
        raise ExpressionError(f"A predicate was expected, such as col('age') >= 40. Got {type(item).__name__} instead.")
    return item


def _parts_of(cls: type[And] | type[Or], item: Predicate) -> tuple[Predicate, ...]:
    return item.parts if isinstance(item, cls) else (item,)


WORDS = frozenset({"and", "or", "not", "in", "is", "missing", "contains", "true", "false"})


def quoted(text: str) -> str:
    """A name or constant as it stands in expression text: bare where that is unambiguous, else in double quotes."""
    bare = text and text.lower() not in WORDS and all(part.isalnum() or part in "_.+-" for part in text)
    if bare and text.isascii():
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
