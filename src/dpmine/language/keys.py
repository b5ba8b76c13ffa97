"""Keys: each gives a row one of finitely many public labels, by looking at that row alone."""

import itertools
from decimal import Decimal

from dpmine.base.errors import ExpressionError
from dpmine.base.wire_values import value
from dpmine.codes.rows import MOST_PARTS
from dpmine.facts.facts import Facts
from dpmine.facts.kinds.kind import Ordered
from dpmine.facts.kinds.nominal import Nominal
from dpmine.language.predicates import Predicate


class Key:
    """One of finitely many public labels for each row; rows are counted and split by keys."""

    def labels(self, schema: Facts) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def title(self) -> str:
        raise NotImplementedError


@value("attribute")
class AttributeKey(Key):
    """Each value of an attribute: its categories, or its grid points."""

    attribute: str

    def labels(self, schema: Facts) -> tuple[str, ...]:
        attribute = schema.single(self.attribute)
        return tuple(attribute.label(code) for code in range(attribute.size))

    @property
    def title(self) -> str:
        return self.attribute


@value("bins")
class Bins(Key):
    """An ordered attribute cut at the given points; a bin holds its lower cut and not its upper one."""

    attribute: str
    cuts: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.cuts:
            raise ExpressionError(f"bins of {self.attribute!r} need at least one cut.")

    def labels(self, schema: Facts) -> tuple[str, ...]:
        cuts = self.written(schema)
        middle = tuple(f"{low} to <{high}" for low, high in itertools.pairwise(cuts))
        return (f"<{cuts[0]}", *middle, f">={cuts[-1]}")

    def ordered(self, schema: Facts) -> Ordered:
        return schema.ordered(self.attribute, "it cannot be cut into bins", ExpressionError)

    def written(self, schema: Facts) -> list[str]:
        """The cuts, each by the one text that it has."""
        attribute = self.ordered(schema)
        return [attribute.written(cut) for cut in self.numbers(schema)]

    def numbers(self, schema: Facts) -> list[Decimal]:
        attribute = self.ordered(schema)
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

    def labels(self, schema: Facts) -> tuple[str, ...]:
        self.table(schema)
        return (*(group.label for group in self.groups), self.rest)

    def nominal(self, schema: Facts) -> Nominal:
        return schema.nominal(self.attribute, "use bins instead of groups", ExpressionError)

    def table(self, schema: Facts) -> list[int]:
        """For each code of the attribute the number of its group."""
        attribute = self.nominal(schema)
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

    def labels(self, schema: Facts) -> tuple[str, ...]:
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

    def labels(self, schema: Facts) -> tuple[str, ...]:
        return tuple(f"part {number + 1}" for number in range(len(self.weights)))

    @property
    def title(self) -> str:
        return f"split {self.salt}".strip()
