"""The closed language of predicates and keys: what a row may be asked, as frozen values.

A *predicate* is true or false for each row; a *key* gives each row one of finitely many public labels. Both look at
one row only, are total (no row can make them fail) and are checked against the schema alone. Users write them as
`dm.col("age") >= 40` or as text; `str(expression)` gives that text back. No callables, no SQL.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from dpmine.errors import ExpressionError
from dpmine.schema import ItemList, Nominal, Numeric, Schema, plain
from dpmine.values import value

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
MOST_PARTS = 1_000_000  # weights of a keyed-hash part are integers with at most this sum


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


class Key:
    """One of finitely many public labels for each row; rows are counted and split by keys."""

    def labels(self, schema: Schema) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def title(self) -> str:
        raise NotImplementedError


# -- predicates -----------------------------------------------------------------------------------------------------


@value("compare")
class Compare(Predicate):
    """attribute op value, on the public grid; categories know only == and !=."""

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
    part: Predicate

    def __str__(self) -> str:
        return f"not {self.part}"


def _predicate(item: object) -> Predicate:
    if not isinstance(item, Predicate):
        raise ExpressionError(f"A predicate was expected, such as col('age') >= 40. Got {type(item).__name__} instead.")
    return item


def _parts_of(cls: type[And] | type[Or], item: Predicate) -> tuple[Predicate, ...]:
    return item.parts if isinstance(item, cls) else (item,)


# -- keys -----------------------------------------------------------------------------------------------------------


@value("attribute")
class AttributeKey(Key):
    """Each value of an attribute: its categories, or its grid points."""

    attribute: str

    def labels(self, schema: Schema) -> tuple[str, ...]:
        attribute = schema.single(self.attribute)
        return tuple(attribute.label(code) for code in range(attribute.size))

    @property
    def title(self) -> str:
        return self.attribute


@value("bins")
class Bins(Key):
    """A numeric attribute cut at the given points; a bin holds its lower cut and not its upper one."""

    attribute: str
    cuts: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.cuts:
            raise ExpressionError(f"bins of {self.attribute!r} need at least one cut.")

    def labels(self, schema: Schema) -> tuple[str, ...]:
        cuts = [plain(cut) for cut in self.numbers(schema)]
        middle = tuple(f"{low} to <{high}" for low, high in itertools.pairwise(cuts))
        return (f"<{cuts[0]}", *middle, f">={cuts[-1]}")

    def numbers(self, schema: Schema) -> list[Decimal]:
        attribute = schema.single(self.attribute)
        if not isinstance(attribute, Numeric):
            raise ExpressionError(f"{self.attribute!r} is not numeric, so it cannot be cut into bins.")
        numbers = [attribute.number(cut) for cut in self.cuts]
        if any(low >= high for low, high in itertools.pairwise(numbers)):
            raise ExpressionError(f"The cuts of {self.attribute!r} must rise.")
        return numbers

    @property
    def title(self) -> str:
        return self.attribute


@value("group")
class Group:
    """Some values of an attribute under one label."""

    label: str
    values: tuple[str, ...]


@value("groups")
class Groups(Key):
    """Categories looked up in a public table of groups; those in no group share the last label, `rest`."""

    attribute: str
    groups: tuple[Group, ...]
    rest: str = "rest"

    def labels(self, schema: Schema) -> tuple[str, ...]:
        self.table(schema)
        return (*(group.label for group in self.groups), self.rest)

    def table(self, schema: Schema) -> list[int]:
        """For each code of the attribute the number of its group."""
        attribute = schema.single(self.attribute)
        if not isinstance(attribute, Nominal):
            raise ExpressionError(f"{self.attribute!r} is numeric: use bins instead of groups.")
        labels = [*(group.label for group in self.groups), self.rest]
        if len(set(labels)) != len(labels):
            raise ExpressionError(f"The groups of {self.attribute!r} must have different labels.")
        table = [len(self.groups)] * attribute.size
        for number, group in enumerate(self.groups):
            for text in group.values:
                code = attribute.code(text)
                if table[code] != len(self.groups):
                    raise ExpressionError(f"The groups of {self.attribute!r} name {text!r} twice.")
                table[code] = number
        return table

    @property
    def title(self) -> str:
        return self.attribute


@value("test")
class Test(Key):
    """A predicate as a key with the labels no and yes."""

    __test__ = False  # not a test class, whatever pytest thinks of its name
    predicate: Predicate

    def labels(self, schema: Schema) -> tuple[str, ...]:
        return ("no", "yes")

    @property
    def title(self) -> str:
        return str(self.predicate)


@value("part")
class Part(Key):
    """Each row's part in a split by keyed hash, in shares given by integer weights.

    The hash reads the row's own encoded values and its number among identical rows, never its position, so that adding
    a row moves no other row. Another salt gives another, independent split.
    """

    salt: str
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.weights) < 2 or min(self.weights) < 1 or sum(self.weights) > MOST_PARTS:
            raise ExpressionError(f"A split needs at least two positive weights with a sum of at most {MOST_PARTS}.")
        if len(self.salt) > 200 or any("\ud800" <= letter <= "\udfff" for letter in self.salt):
            raise ExpressionError("The salt of a split is a text of at most 200 characters.")

    def labels(self, schema: Schema) -> tuple[str, ...]:
        return tuple(f"part {number + 1}" for number in range(len(self.weights)))

    @property
    def title(self) -> str:
        return f"split {self.salt}".strip()


# -- how users write them -------------------------------------------------------------------------------------------

Scalar = str | int | float | Decimal | bool


@dataclass(frozen=True, eq=False)
class Column:
    """A column in an expression: `col("age") >= 40`, `col("ward").isin(["north", "south"])`."""

    name: str

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]
        return Compare(self.name, "==", text_of(other))

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]
        return Compare(self.name, "!=", text_of(other))

    def __lt__(self, other: Scalar) -> Predicate:
        return Compare(self.name, "<", text_of(other))

    def __le__(self, other: Scalar) -> Predicate:
        return Compare(self.name, "<=", text_of(other))

    def __gt__(self, other: Scalar) -> Predicate:
        return Compare(self.name, ">", text_of(other))

    def __ge__(self, other: Scalar) -> Predicate:
        return Compare(self.name, ">=", text_of(other))

    def __hash__(self) -> int:
        return hash(self.name)

    def isin(self, values: Iterable[Scalar]) -> Predicate:
        return IsIn(self.name, tuple(text_of(item) for item in values))

    def between(self, low: Scalar, high: Scalar) -> Predicate:
        """low <= value < high."""
        return (self >= low) & (self < high)

    def contains(self, *items: Scalar) -> Predicate:
        return Contains(self.name, tuple(text_of(item) for item in items))

    def bins(self, *cuts: Scalar) -> Key:
        return Bins(self.name, tuple(text_of(cut) for cut in cuts))

    def groups(self, groups: dict[str, Iterable[Scalar]], rest: str = "rest") -> Key:
        listed = tuple(Group(label, tuple(text_of(item) for item in members)) for label, members in groups.items())
        return Groups(self.name, listed, rest)


def col(name: str) -> Column:
    """A column by name, to build predicates and keys with."""
    return Column(name)


def text_of(item: object) -> str:
    """A constant as text: floats by their shortest text, whole floats without '.0', True and False by name."""
    if isinstance(item, str):
        return item
    if getattr(item, "shape", None) == () and hasattr(item, "item"):  # numpy scalars
        item = item.item()
    if isinstance(item, float) and item.is_integer():
        return plain(Decimal(item))
    if isinstance(item, (bool, int, float, Decimal)):
        return str(item)
    raise ExpressionError(f"A constant must be text or a number. Got {type(item).__name__} instead.")


def key_of(item: str | Column | Key | Predicate) -> Key:
    """What a user may name where a key is wanted: a column, a key, or a predicate (yes or no)."""
    if isinstance(item, Key):
        return item
    if isinstance(item, Column):
        return AttributeKey(item.name)
    if isinstance(item, str):
        return AttributeKey(item)
    if isinstance(item, Predicate):
        return Test(item)
    raise ExpressionError(f"A column name or key was expected. Got {type(item).__name__} instead.")


def list_attribute(schema: Schema, name: str) -> ItemList:
    attribute = schema.attribute(name)
    if not isinstance(attribute, ItemList):
        raise ExpressionError(f"{name!r} does not hold lists, so 'contains' cannot be asked of it.")
    return attribute


WORDS = frozenset({"and", "or", "not", "in", "contains", "true", "false"})


def quoted(text: str) -> str:
    """A name or constant as it stands in expression text: bare where that is unambiguous, else in double quotes."""
    bare = text and text.lower() not in WORDS and all(part.isalnum() or part in "_.+-" for part in text)
    if bare and text.isascii():
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
