"""Predicates that public facts alone make false for every row: refused before anybody pays for an empty view.

A courtesy to whoever asks, on their side of the door: nothing here is trusted, and what is asked all the same is answered.
"""

import functools
from typing import Any

from dpmine.base.errors import ExpressionError
from dpmine.base.wire import classes_within
from dpmine.base.wire_values import fields_of
from dpmine.codes.rows import All, Any_, Holds, InCodes, InValues, Negation, RowTest
from dpmine.facts.facts import Facts
from dpmine.facts.kinds.kind import Ordered
from dpmine.language.predicates import And, Compare, IsIn, IsMissing, Or, Predicate
from dpmine.language.queries import Query
from dpmine.language.resolving_predicates import PredicateResolver, Ranges, complement, merged, resolved_comparison


def refuse_empty(query: Query, schema: Facts) -> None:
    """Refuse a query with a predicate that can never hold; the smallest part that cannot is named.

    A comparison that the public bounds and grid make false for every row, and an `or` and `and` of which the same can be
    told, are refused. What is true for every row (`age <= 200` where 110 is the bound, or its negation's negation) only
    narrows nothing, and may be asked. Bins beyond the bounds may be too: they say what they are, and an empty bin adds
    nothing to the price of others.
    """
    bounds = _Bounds(schema)
    seen: dict[int, object] = {}
    waiting: list[Any] = [query]
    while waiting:
        item = waiting.pop()
        kind: Any = type(item)
        if id(item) not in seen:
            seen[id(item)] = item
            if isinstance(item, Predicate):
                bounds.refuse_empty(item)
            elif _may_hold_predicates(kind):
                for name in fields_of(kind):
                    _add_values(getattr(item, name), waiting)


@functools.cache
def _may_hold_predicates(kind: Any) -> bool:
    return any(issubclass(inner, Predicate) for inner in classes_within(kind))


def _add_values(field: Any, waiting: list[Any]) -> None:
    if isinstance(field, tuple):
        for part in field:
            _add_values(part, waiting)
    elif hasattr(field, "__json_tag__"):
        waiting.append(field)


class _Bounds:
    """What bounds and categories say of predicates; one that stands in many places is looked through once."""

    def __init__(self, schema: Facts) -> None:
        self._schema = schema
        self._resolver = PredicateResolver(schema)
        self._empty: dict[int, tuple[RowTest, bool]] = {}

    def refuse_empty(self, predicate: Predicate) -> None:
        parts: dict[int, Predicate] = {}
        waiting = [predicate]
        while waiting:
            part = waiting.pop()
            if id(part) not in parts:
                parts[id(part)] = part
                waiting += part.parts if isinstance(part, (And, Or)) else ()  # below a `not` an empty part empties nothing
        for part in reversed(parts.values()):
            if isinstance(part, IsIn):
                for equal in (Compare(part.attribute, "==", text) for text in part.values):
                    if not resolved_comparison(equal, self._schema).ranges:
                        raise ExpressionError(_why_never(equal, self._schema))
            if isinstance(part, IsMissing) and self._schema.single(part.attribute).gap is None:
                raise ExpressionError(_no_gaps(part))
            if self.never(self._resolver.resolve(part)):
                raise ExpressionError(_why_never(part, self._schema))

    def never(self, test: RowTest) -> bool:
        """Whether public facts alone make a test false for every row. May overlook it across several attributes."""
        if id(test) not in self._empty:
            self._empty[id(test)] = test, self._never(test)
        return self._empty[id(test)][1]

    def _never(self, test: RowTest) -> bool:
        schema = self._schema
        if isinstance(test, (InCodes, InValues)):
            return not test.ranges
        if isinstance(test, Holds):
            return len(test.items) > schema.listed(test.attribute).at_most
        if isinstance(test, Negation):
            return self._always(test.part)
        if isinstance(test, Any_):
            return all(map(self.never, test.parts))
        assert isinstance(test, All)
        outside = {
            name: [complement(one, _all_values(name, schema)) for one in found]
            for name, found in _ranges_of(test, schema).items()
        }
        return any(map(self.never, test.parts)) or any(_cover(schema, *one) for one in outside.items())

    def _always(self, test: RowTest) -> bool:
        """Whether the public facts alone make a test true for every row. What is negated is no negation itself."""
        if isinstance(test, (InCodes, InValues)):
            return _cover(self._schema, test.attribute, [_values_in(test, self._schema)])
        if isinstance(test, Holds):
            return not test.items
        if isinstance(test, Negation):
            return self.never(test.part)
        assert isinstance(test, (All, Any_))
        if isinstance(test, All):
            return all(map(self._always, test.parts))
        covered = any(_cover(self._schema, *one) for one in _ranges_of(test, self._schema).items())
        return covered or any(map(self._always, test.parts))


def _ranges_of(test: All | Any_, schema: Facts) -> dict[str, list[Ranges]]:
    """The ranges of the parts that test one attribute, as ranges of its values, by attribute."""
    found: dict[str, list[Ranges]] = {}
    for part in test.parts:
        if isinstance(part, (InCodes, InValues)):
            found.setdefault(part.attribute, []).append(_values_in(part, schema))
    return found


def _values_in(test: InCodes | InValues, schema: Facts) -> Ranges:
    """The ranges of a test as ranges of values; a gap is a value behind all others."""
    attribute = schema.single(test.attribute)
    if isinstance(test, InValues) or not isinstance(attribute, Ordered):
        return test.ranges
    edges = (*attribute.starts, attribute.values, attribute.values + 1)
    return tuple((edges[low], edges[high]) for low, high in test.ranges)


def _all_values(name: str, schema: Facts) -> int:
    """How many values there are, with that of a gap."""
    attribute = schema.single(name)
    count = attribute.values if isinstance(attribute, Ordered) else attribute.cells
    return count + (attribute.gap is not None)


def _cover(schema: Facts, name: str, ranges: list[Ranges]) -> bool:
    """Whether together they hold all values of an attribute."""
    return merged([pair for one in ranges for pair in one]) == ((0, _all_values(name, schema)),)


def _no_gaps(predicate: IsMissing) -> str:
    return f"{predicate} is true for no row: the schema gives every row a value there. Nothing was spent."


def _why_never(predicate: Predicate, schema: Facts) -> str:
    """What was asked, what the schema allows, and what to write instead."""
    if isinstance(predicate, IsIn):
        return f"{predicate} is true for no row: it names no value of {predicate.attribute!r}. Nothing was spent; name one."
    if not isinstance(predicate, Compare):
        return (
            f"{predicate} is true for no row: by the schema's bounds and categories no values can meet all of it. "
            "Nothing was spent; leave a part out, or ask for other values."
        )
    attribute = schema.single(predicate.attribute)
    why = f"{predicate} is true for no row: {attribute.describe()}. Nothing was spent;"
    if not attribute.ordered:
        return f"{why} leave the comparison out."
    assert isinstance(attribute, Ordered)
    points = (0, attribute.values - 1, max(attribute.values_of(attribute.compared(predicate.value))[0] - 1, 0))
    first, last, below = (attribute.written(attribute.value_point(value)) for value in points)
    op, bound = {"<": ("<=", first), "<=": ("<=", first), "==": ("==", below)}.get(predicate.op, (">=", last))
    return f"{why} write a comparison that such values can meet, for example {Compare(attribute.name, op, bound)}."
