"""From predicates to the codes that they hold for."""

import hashlib

from dpmine.base.errors import ExpressionError
from dpmine.base.wire import to_wire
from dpmine.base.wire_values import tag_of
from dpmine.codes.rows import All, Any_, Holds, InCodes, Negation, RowTest
from dpmine.facts.facts import Facts
from dpmine.language.predicates import And, Compare, Contains, IsIn, Not, Or, Predicate

MOST_NESTED = 60  # the compiler of SQL takes some seven frames of the stack for each


class PredicateResolver:
    """Resolves predicates; one that stands in many places is resolved and named once."""

    def __init__(self, schema: Facts) -> None:
        self._schema = schema
        self._found: dict[int, tuple[Predicate, RowTest]] = {}  # by identity, as everything here
        self._names: dict[int, tuple[RowTest, bytes]] = {}
        self._heights: dict[int, tuple[RowTest, int]] = {}

    def resolve(self, predicate: Predicate) -> RowTest:
        if id(predicate) not in self._found:
            test = self._resolved(predicate)
            if self._height(test) > MOST_NESTED:
                raise ExpressionError(f"In a predicate 'and', 'or' and 'not' are nested at most {MOST_NESTED} deep.")
            self._found[id(predicate)] = predicate, test
        return self._found[id(predicate)][1]

    def _height(self, test: RowTest) -> int:
        """How deep the tests in it are nested."""
        if id(test) not in self._heights:
            inner = (test.part,) if isinstance(test, Negation) else test.parts if isinstance(test, (All, Any_)) else ()
            self._heights[id(test)] = test, 1 + max(map(self._height, inner), default=0)
        return self._heights[id(test)][1]

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
                form = to_wire(test)
            self._names[id(test)] = test, hashlib.blake2b(form, digest_size=32).digest()
        return self._names[id(test)][1]


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
