"""From predicates to the codes that they hold for."""

from __future__ import annotations

import hashlib

from dpmine.base.errors import ExpressionError
from dpmine.base.wire_values import canonical, tag_of
from dpmine.facts.facts import Facts
from dpmine.language.predicates import And, Compare, Contains, IsIn, Not, Or, Predicate
from dpmine.language.resolved import All, Any_, Holds, InCodes, Negation, RowTest


class PredicateResolver:
    """Resolves predicates; one that stands in many places is resolved, named and looked through once."""

    def __init__(self, schema: Facts) -> None:
        self._schema = schema
        self._found: dict[int, tuple[Predicate, RowTest]] = {}  # by identity, as everything here
        self._names: dict[int, tuple[RowTest, bytes]] = {}
        self._empty: dict[int, tuple[RowTest, bool]] = {}

    def resolve(self, predicate: Predicate) -> RowTest:
        if id(predicate) not in self._found:
            self._found[id(predicate)] = predicate, self._resolved(predicate)
        return self._found[id(predicate)][1]

    def _resolved(self, predicate: Predicate) -> RowTest:
        schema = self._schema
        if isinstance(predicate, Compare):
            return resolved_comparison(predicate, schema)
        if isinstance(predicate, IsIn):
            schema.single(predicate.attribute)
            equal = [
                resolved_comparison(Compare(predicate.attribute, "==", text), schema).ranges for text in predicate.values
            ]
            return InCodes(predicate.attribute, merged([pair for ranges in equal for pair in ranges]))
        if isinstance(predicate, Contains):
            attribute = schema.listed(predicate.attribute)
            return Holds(predicate.attribute, tuple(sorted({attribute.code(item) for item in predicate.items})))
        if isinstance(predicate, Not):
            part = self.resolve(predicate.part)
            if isinstance(part, InCodes):
                return InCodes(part.attribute, complement(part.ranges, schema.single(part.attribute).size))
            return part.part if isinstance(part, Negation) else Negation(part)
        assert isinstance(predicate, (And, Or))
        cls = All if isinstance(predicate, And) else Any_
        flat: dict[bytes, RowTest] = {}
        for part in map(self.resolve, predicate.parts):
            for inner in part.parts if isinstance(part, cls) else (part,):
                flat[self._name(inner)] = inner
        return next(iter(flat.values())) if len(flat) == 1 else cls(tuple(flat[name] for name in sorted(flat)))

    def _name(self, test: RowTest) -> bytes:
        """A name that two different tests do not share; parts are put in the order of their names."""
        if id(test) not in self._names:
            if isinstance(test, (All, Any_)):
                form = tag_of(type(test)).encode() + b"".join(map(self._name, test.parts))
            elif isinstance(test, Negation):
                form = tag_of(type(test)).encode() + self._name(test.part)
            else:
                form = canonical(test)
            self._names[id(test)] = test, hashlib.blake2b(form, digest_size=32).digest()
        return self._names[id(test)][1]

    def asked(self, predicate: Predicate) -> RowTest:
        """Resolve what a user asks, or refuse it: the smallest part that can never hold is named.

        A comparison that the public bounds and grid make false for every row, and an `or` and `and` of which the same can be
        told, are refused, so that nobody pays for an empty view. What is true for every row (`age <= 200` where 110 is the
        bound, or its negation's negation) only narrows nothing, and may be asked. Bins beyond the bounds may be too: they
        say what they are, and an empty bin adds nothing to the price of others.
        """
        found = self.resolve(predicate)
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
            if self.never(self.resolve(part)):
                raise ExpressionError(_why_never(part, self._schema))
        return found

    def never(self, test: RowTest) -> bool:
        """Whether public facts alone make a test false for every row. May overlook it across several attributes."""
        if id(test) not in self._empty:
            self._empty[id(test)] = test, self._never(test)
        return self._empty[id(test)][1]

    def _never(self, test: RowTest) -> bool:
        schema = self._schema
        if isinstance(test, InCodes):
            return not test.ranges
        if isinstance(test, Holds):
            return len(test.items) > schema.listed(test.attribute).at_most
        if isinstance(test, Negation):
            return self._always(test.part)
        if isinstance(test, Any_):
            return all(map(self.never, test.parts))
        assert isinstance(test, All)
        outside = {
            name: [complement(one, schema.single(name).size) for one in found] for name, found in _ranges_of(test).items()
        }
        return any(map(self.never, test.parts)) or any(_cover(schema, *one) for one in outside.items())

    def _always(self, test: RowTest) -> bool:
        """Whether the public facts alone make a test true for every row. What is negated is no negation itself."""
        if isinstance(test, InCodes):
            return _cover(self._schema, test.attribute, [test.ranges])
        if isinstance(test, Holds):
            return not test.items
        if isinstance(test, Negation):
            return self.never(test.part)
        assert isinstance(test, (All, Any_))
        if isinstance(test, All):
            return all(map(self._always, test.parts))
        covered = any(_cover(self._schema, *one) for one in _ranges_of(test).items())
        return covered or any(map(self._always, test.parts))


def _ranges_of(test: All | Any_) -> dict[str, list[tuple[tuple[int, int], ...]]]:
    """The ranges of the parts that test codes, by attribute."""
    found: dict[str, list[tuple[tuple[int, int], ...]]] = {}
    for part in test.parts:
        if isinstance(part, InCodes):
            found.setdefault(part.attribute, []).append(part.ranges)
    return found


def _cover(schema: Facts, name: str, ranges: list[tuple[tuple[int, int], ...]]) -> bool:
    """Whether together they hold all codes of an attribute."""
    return merged([pair for one in ranges for pair in one]) == ((0, schema.single(name).size),)


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
    first, last = attribute.label(0), attribute.label(attribute.size - 1)
    below = attribute.label(max(attribute.codes_of(predicate.value)[0] - 1, 0))
    op, bound = {"<": ("<=", first), "<=": ("<=", first), "==": ("==", below)}.get(predicate.op, (">=", last))
    return f"{why} write a comparison that such values can meet, for example {Compare(attribute.name, op, bound)}."


def resolved_comparison(predicate: Compare, schema: Facts) -> InCodes:
    attribute = schema.single(predicate.attribute)
    if not attribute.ordered and predicate.op not in ("==", "!="):
        raise ExpressionError(f"{predicate.attribute!r} is {attribute.kind}: only == and != compare it.")
    start, after = attribute.codes_of(predicate.value)
    size = attribute.size
    ranges = {
        "==": [(start, after)],
        "!=": [(0, start), (after, size)],
        "<": [(0, start)],
        "<=": [(0, after)],
        ">": [(after, size)],
        ">=": [(start, size)],
    }[predicate.op]
    return InCodes(predicate.attribute, merged(ranges))


def complement(ranges: tuple[tuple[int, int], ...], size: int) -> tuple[tuple[int, int], ...]:
    starts = [0, *(high for _, high in ranges)]
    ends = [*(low for low, _ in ranges), size]
    return merged(list(zip(starts, ends, strict=True)))


def merged(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pair for pair in ranges if pair[0] < pair[1]):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def resolve_predicate(predicate: Predicate, schema: Facts) -> RowTest:
    """The codes that a predicate holds for."""
    return PredicateResolver(schema).resolve(predicate)
