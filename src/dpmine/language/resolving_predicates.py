"""From predicates to the codes and values that they hold for.

A gap leaves a comparison open, and `and`, `or` and `not` take that as SQL does: `not` goes down to the comparisons, each of
which then holds for the other values, and for gaps never.
"""

import hashlib

from dpmine.base.errors import ExpressionError
from dpmine.base.wire import to_wire
from dpmine.base.wire_values import tag_of
from dpmine.codes.rows import All, Any_, Holds, InCodes, InValues, Negation, RowTest
from dpmine.facts.facts import Facts
from dpmine.facts.kinds.kind import Ordered
from dpmine.language.predicates import And, Compare, Contains, IsIn, IsMissing, Not, Or, Predicate

MOST_NESTED = 60  # the compiler of SQL takes some seven frames of the stack for each
Ranges = tuple[tuple[int, int], ...]


class PredicateResolver:
    """Resolves predicates; one that stands in many places is resolved and named once."""

    def __init__(self, schema: Facts) -> None:
        self._schema = schema
        self._found: dict[tuple[int, bool], tuple[Predicate, RowTest]] = {}  # by identity, as everything here
        self._names: dict[int, tuple[RowTest, bytes]] = {}
        self._heights: dict[int, tuple[RowTest, int]] = {}

    def resolve(self, predicate: Predicate, *, negated: bool = False) -> RowTest:
        """For which rows a predicate is true; negated, for which it is false."""
        name = (id(predicate), negated)
        if name not in self._found:
            test = self._resolved(predicate, negated)
            if self._height(test) > MOST_NESTED:
                raise ExpressionError(f"In a predicate 'and', 'or' and 'not' are nested at most {MOST_NESTED} deep.")
            self._found[name] = predicate, test
        return self._found[name][1]

    def _height(self, test: RowTest) -> int:
        """How deep the tests in it are nested."""
        if id(test) not in self._heights:
            inner = (test.part,) if isinstance(test, Negation) else test.parts if isinstance(test, (All, Any_)) else ()
            self._heights[id(test)] = test, 1 + max(map(self._height, inner), default=0)
        return self._heights[id(test)][1]

    def _resolved(self, predicate: Predicate, negated: bool) -> RowTest:
        if isinstance(predicate, Not):
            return self.resolve(predicate.part, negated=not negated)
        if isinstance(predicate, (And, Or)):
            cls = All if isinstance(predicate, And) != negated else Any_
            flat: dict[bytes, RowTest] = {}
            for part in (self.resolve(part, negated=negated) for part in predicate.parts):
                for inner in part.parts if isinstance(part, cls) else (part,):
                    flat[self._name(inner)] = inner
            return next(iter(flat.values())) if len(flat) == 1 else cls(tuple(flat[name] for name in sorted(flat)))
        if isinstance(predicate, Contains):
            attribute = self._schema.listed(predicate.attribute)
            held = Holds(predicate.attribute, tuple(sorted({attribute.code(item) for item in predicate.items})))
            return Negation(held) if negated else held
        return resolved_comparison(predicate, self._schema, negated=negated)

    def _name(self, test: RowTest) -> bytes:
        """A name that two different tests do not share; parts are put in the order of their names."""
        if id(test) not in self._names:
            if isinstance(test, (All, Any_)):
                form = tag_of(type(test)).encode() + b"".join(map(self._name, test.parts))
            elif isinstance(test, Negation):
                form = tag_of(type(test)).encode() + self._name(test.part)
            else:
                form = to_wire(test)
            self._names[id(test)] = test, hashlib.blake2b(form, digest_size=32).digest()
        return self._names[id(test)][1]


def resolved_comparison(predicate: Predicate, schema: Facts, *, negated: bool = False) -> InCodes | InValues:
    """What a comparison, a list of values or a question for gaps holds for; of codes where that is the same as of values."""
    assert isinstance(predicate, (Compare, IsIn, IsMissing))
    attribute = schema.single(predicate.attribute)
    if isinstance(predicate, IsMissing):
        gap = [] if attribute.missing_code is None else [(attribute.missing_code, attribute.size)]
        return InCodes(attribute.name, merged([(0, attribute.cells)] if negated else gap))
    ordered = attribute if isinstance(attribute, Ordered) else None
    count = attribute.cells if ordered is None else ordered.values
    if isinstance(predicate, IsIn):
        ranges = merged([pair for text in predicate.values for pair in _equal(Compare(attribute.name, "==", text), schema)])
    else:
        ranges = _compared(predicate, schema, count)
    ranges = complement(ranges, count) if negated else ranges
    return InCodes(attribute.name, ranges) if ordered is None else in_codes_or_values(ordered, ranges)


def _equal(predicate: Compare, schema: Facts) -> Ranges:
    attribute = schema.single(predicate.attribute)
    pair = (
        attribute.values_of(attribute.compared(predicate.value))
        if isinstance(attribute, Ordered)
        else attribute.codes_of(predicate.value)
    )
    return merged([pair])


def _compared(predicate: Compare, schema: Facts, count: int) -> Ranges:
    attribute = schema.single(predicate.attribute)
    if not isinstance(attribute, Ordered):
        if predicate.op not in ("==", "!="):
            raise ExpressionError(f"{predicate.attribute!r} is {attribute.kind}: only == and != compare it.")
        start, after = attribute.codes_of(predicate.value)
    else:
        start, after = attribute.values_of(attribute.compared(predicate.value))
    ranges = {
        "==": [(start, after)],
        "!=": [(0, start), (after, count)],
        "<": [(0, start)],
        "<=": [(0, after)],
        ">": [(after, count)],
        ">=": [(start, count)],
    }[predicate.op]
    return merged(ranges)


def code_edges(attribute: Ordered) -> dict[int, int]:
    """The values at which codes begin, and the end of all, each with that code."""
    return {first: code for code, first in enumerate((*attribute.starts, attribute.values))}


def in_codes_or_values(attribute: Ordered, ranges: Ranges) -> InCodes | InValues:
    """Ranges of values as ranges of codes where all of them begin and end with one, so that the same rows have one text."""
    edges = code_edges(attribute)
    if all(end in edges for pair in ranges for end in pair):
        return InCodes(attribute.name, tuple((edges[low], edges[high]) for low, high in ranges))
    return InValues(attribute.name, ranges)


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
