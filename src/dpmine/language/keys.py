"""Keys: each gives a row one of finitely many public labels, by looking at that row alone."""

import itertools
from decimal import Decimal

from dpmine.base.errors import ExpressionError
from dpmine.base.wire_values import value
from dpmine.codes.rows import MOST_PARTS
from dpmine.facts.calendar import HOUR, WEEKDAYS, beginnings, unit_label
from dpmine.facts.facts import Facts
from dpmine.facts.kinds.dates import Date, Dated, DateTime, Time
from dpmine.facts.kinds.kind import DROP, MISSING, Ordered
from dpmine.facts.kinds.nominal import Nominal
from dpmine.language.predicates import Predicate


class Key:
    """One of finitely many public labels for each row; rows are counted and split by keys."""

    def labels(self, schema: Facts) -> tuple[str, ...]:
        raise NotImplementedError

    def hidden(self, schema: Facts) -> int | None:
        """The number of a label that no histogram shows: of gaps that the schema drops."""
        return None

    @property
    def title(self) -> str:
        raise NotImplementedError


APART, LAST = "apart", "last"
"""Where rows without a value go: to a label of their own behind all others, or to the last one."""


def _checked_missing(missing: str, title: str) -> None:
    if missing not in (APART, LAST):
        raise ExpressionError(f"Gaps of {title!r} are {APART!r} or {LAST!r}. Got {missing!r:.20} instead.")


@value("attribute")
class AttributeKey(Key):
    """Each code of an attribute: its categories, or the cells of its grid; behind them its gaps."""

    attribute: str

    def labels(self, schema: Facts) -> tuple[str, ...]:
        attribute = schema.single(self.attribute)
        return tuple(attribute.label(code) for code in range(attribute.size))

    def hidden(self, schema: Facts) -> int | None:
        return schema.single(self.attribute).hidden_code

    @property
    def title(self) -> str:
        return self.attribute


@value("bins")
class Bins(Key):
    """An ordered attribute cut at the given values; a bin holds its lower cut and not its upper one.

    With gaps "last" a row without a value lies behind all of them, in the last bin; so does the last cut where it is that of
    gaps, and then the last bin holds nothing else.
    """

    attribute: str
    cuts: tuple[str, ...]
    missing: str = APART

    def __post_init__(self) -> None:
        _checked_missing(self.missing, self.attribute)
        if not self.cuts:
            raise ExpressionError(f"bins of {self.attribute!r} need at least one cut.")

    def labels(self, schema: Facts) -> tuple[str, ...]:
        cuts = self.written(schema)
        last = (MISSING,) if cuts[-1] == MISSING or self.gap_apart(schema) else ()
        numbers = [cut for cut in cuts if cut != MISSING]
        if not numbers:
            return ("any value", MISSING)
        middle = tuple(f"{low} to <{high}" for low, high in itertools.pairwise(numbers))
        return (f"<{numbers[0]}", *middle, f">={numbers[-1]}", *last)

    def hidden(self, schema: Facts) -> int | None:
        hidden = self.gap_apart(schema) and self.ordered(schema).gap == DROP
        return len(self.cuts) + 1 if hidden else None

    def gap_apart(self, schema: Facts) -> bool:
        """Whether gaps have a label of their own."""
        return self.missing == APART and self.ordered(schema).gap is not None

    def ordered(self, schema: Facts) -> Ordered:
        return schema.ordered(self.attribute, "it cannot be cut into bins", ExpressionError)

    def written(self, schema: Facts) -> list[str]:
        """The cuts, each by the one text that it has."""
        attribute = self.ordered(schema)
        return [attribute.written(cut) if cut.is_finite() else MISSING for cut in self.numbers(schema)]

    def numbers(self, schema: Facts) -> list[Decimal]:
        attribute = self.ordered(schema)
        numbers = [attribute.number(cut) if self.missing == LAST else attribute.compared(cut) for cut in self.cuts]
        if any(low >= high for low, high in itertools.pairwise(numbers)):
            raise ExpressionError(f"The cuts of {self.attribute!r} must rise.")
        return numbers

    def first_values(self, schema: Facts) -> list[int]:
        """The value at which each bin but the first begins; gaps are a value behind all others."""
        attribute = self.ordered(schema)
        return [attribute.first_value_at_least(cut) if cut.is_finite() else attribute.values for cut in self.numbers(schema)]

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
    """Categories looked up in a public table of groups; those in no group share the label `rest`.

    With gaps "last" rows without a value are in the rest, or in the group that names them; else they have a label behind it.
    """

    attribute: str
    groups: tuple[Group, ...]
    rest: str = "rest"
    missing: str = APART

    def __post_init__(self) -> None:
        _checked_missing(self.missing, self.attribute)

    def labels(self, schema: Facts) -> tuple[str, ...]:
        self.table(schema)
        apart = (MISSING,) if self.gap_apart(schema) else ()
        return (*(group.label for group in self.groups), self.rest, *apart)

    def hidden(self, schema: Facts) -> int | None:
        return len(self.groups) + 1 if self.gap_apart(schema) and self.nominal(schema).gap == DROP else None

    def gap_apart(self, schema: Facts) -> bool:
        """Whether gaps have a label of their own."""
        return self.missing == APART and self.nominal(schema).gap is not None

    def nominal(self, schema: Facts) -> Nominal:
        return schema.nominal(self.attribute, "use bins instead of groups", ExpressionError)

    def table(self, schema: Facts) -> list[int]:
        """For each code of the attribute the number of its group."""
        attribute = self.nominal(schema)
        labels = [*(group.label for group in self.groups), self.rest]
        if len(set(labels)) != len(labels):
            raise ExpressionError(f"The groups of {self.attribute!r} must have different labels.")
        table = [len(self.groups)] * attribute.size
        if self.gap_apart(schema):
            table[attribute.cells] = len(self.groups) + 1
        for number, group in enumerate(self.groups):
            for text in group.values:
                gap = text == MISSING and self.missing == LAST and attribute.gap is not None
                code = attribute.place(text) if gap else attribute.code(text)
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


CYCLES = {"weekday": 7, "hour": 24}
MOST_LABELS_OF_A_CALENDAR = 4_096


@value("calendar")
class ByCalendar(Key):
    """A date, datetime or time by units of the calendar, those from its first value to its last.

    unit  "year", "month", "week" or "day", each of which is one label; of datetimes also "hour", one label for each hour
          of a day; and "weekday", from Monday on. Weeks are ISO weeks.
    """

    attribute: str
    unit: str

    def labels(self, schema: Facts) -> tuple[str, ...]:
        attribute = self.dated(schema)
        apart = () if attribute.gap is None else (MISSING,)
        if self.is_cyclic(schema):
            listed = WEEKDAYS if self.unit == "weekday" else tuple(f"{hour:02d}" for hour in range(CYCLES["hour"]))
            return (*listed, *apart)
        return (*(unit_label(self.unit, start) for start in self._beginnings(attribute)), *apart)

    def hidden(self, schema: Facts) -> int | None:
        return len(self.labels(schema)) - 1 if self.dated(schema).gap == DROP else None

    def dated(self, schema: Facts) -> Dated:
        """The attribute; refused where it has no such units."""
        attribute = schema.dated(self.attribute, "it is not counted by the calendar", ExpressionError)
        units = UNITS_OF[attribute.kind]
        if self.unit not in units:
            known = " or ".join(map(repr, units))
            raise ExpressionError(f"{self.attribute!r} is a {attribute.kind}: count it by {known}. Got {self.unit!r:.20}.")
        if self.unit == "hour" and attribute.step > HOUR:
            raise ExpressionError(f"The values of {self.attribute!r} are {attribute.resolution} apart: it has no hours.")
        return attribute

    def is_cyclic(self, schema: Facts) -> bool:
        """Whether labels come round again. The hours of a time of day are those between its bounds, each once."""
        return self.unit in CYCLES and self.dated(schema).kind != Time.kind

    def first_values(self, schema: Facts) -> list[int]:
        """The value at which each label but the first begins."""
        attribute = self.dated(schema)
        return [attribute.first_value_at_least(Decimal(start)) for start in self._beginnings(attribute)[1:]]

    def _beginnings(self, attribute: Dated) -> list[int]:
        starts = beginnings(self.unit, attribute.first, attribute.last)
        found = list(itertools.islice(starts, MOST_LABELS_OF_A_CALENDAR + 1))
        if len(found) > MOST_LABELS_OF_A_CALENDAR:
            raise ExpressionError(
                f"{self.attribute!r} has more than {MOST_LABELS_OF_A_CALENDAR} {self.unit}s between its bounds. "
                "Count it by a longer unit."
            )
        return found

    @property
    def title(self) -> str:
        return f"{self.attribute} by {self.unit}"


UNITS_OF = {
    Date.kind: ("year", "month", "week", "day", "weekday"),
    DateTime.kind: ("year", "month", "week", "day", "weekday", "hour"),
    Time.kind: ("hour",),
}
CALENDAR_UNITS = UNITS_OF[DateTime.kind]


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
