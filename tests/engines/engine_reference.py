"""A slow engine in plain Python, written from the documentation: one row at a time, fractions and texts, no numpy.

A row here is a dict from attribute to what the public rules make of its value: a category, a grid point as a fraction, or a
tuple of known items. Everything else (codes, caches, chunks, refinement) is the business of the engine under test.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.keys import AttributeKey, Bins, Groups, Key, Part, Test
from dpmine.language.model_keys import Nearest, NearestBands, Predicted, ScoreBands, ScoreLeaf, ScoreSplit, ScoreTree
from dpmine.language.predicates import And, Compare, Contains, IsIn, Not, Or, Predicate
from dpmine.language.views import Cell, Rules, Split, Step, Where

PRIME = 2**31 - 1
Row = dict[str, Any]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


@functools.cache
def grid(attribute: Numeric) -> tuple[Fraction, ...]:
    low, high, step = map(Fraction, (attribute.low, attribute.high, attribute.step))
    return tuple(low + number * step for number in range((high - low) // step + 1))


def on_grid(attribute: Numeric, value: float | int | str | None) -> Fraction:
    """The largest grid point that is not above the value, clamped; `missing` where there is no number.

    Grid points are compared as the doubles nearest to them, since the table holds doubles.
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        return max([point for point in grid(attribute) if point <= Fraction(attribute.missing)], default=grid(attribute)[0])
    return max([point for point in grid(attribute) if float(point) <= number], default=grid(attribute)[0])


def known_items(attribute: ItemList, value: list[str] | str | None) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [text.strip() for text in value.split(attribute.separator)]
    return tuple(item for item in value or [] if item in attribute.items)[: attribute.at_most]


def rows_of(table: dict[str, list[Any]], schema: Schema) -> list[Row]:
    """What the public rules make of every value."""
    count = len(next(iter(table.values())))
    rows: list[Row] = [{} for _ in range(count)]
    for attribute in schema.attributes:
        for row, value in zip(rows, table[attribute.name], strict=True):
            if isinstance(attribute, Nominal):
                row[attribute.name] = value if value in attribute.categories else attribute.other
            elif isinstance(attribute, Numeric):
                row[attribute.name] = on_grid(attribute, value)
            else:
                row[attribute.name] = known_items(attribute, value)
    return rows


def holds(predicate: Predicate, row: Row, schema: Schema) -> bool:
    if isinstance(predicate, Compare):
        return COMPARE[predicate.op](row[predicate.attribute], _constant(predicate.attribute, predicate.value, schema))
    if isinstance(predicate, IsIn):
        return row[predicate.attribute] in [_constant(predicate.attribute, text, schema) for text in predicate.values]
    if isinstance(predicate, Contains):
        return all(item in row[predicate.attribute] for item in predicate.items)
    if isinstance(predicate, Not):
        return not holds(predicate.part, row, schema)
    assert isinstance(predicate, (And, Or))
    parts = [holds(part, row, schema) for part in predicate.parts]
    return all(parts) if isinstance(predicate, And) else any(parts)


def _constant(attribute: str, text: str, schema: Schema) -> Any:
    return Fraction(text) if isinstance(schema.attribute(attribute), Numeric) else text


class Reference:
    """Counts over rows by looking at each row by itself."""

    def __init__(self, table: dict[str, list[Any]], schema: Schema, split_key: bytes) -> None:
        self.schema = schema
        self.rows = rows_of(table, schema)
        self._split_key = split_key
        seen: Counter[tuple[Any, ...]] = Counter()
        self._numbers = []
        for row in self.rows:
            name = tuple(row.items())
            self._numbers.append(seen[name])
            seen[name] += 1

    def size(self, key: Key) -> int:
        return len(key.labels(self.schema))

    def label(self, key: Key, place: int) -> int:
        """The number of the label that the row at `place` has."""
        row = self.rows[place]
        if isinstance(key, AttributeKey):
            attribute = self.schema.attribute(key.attribute)
            value = row[key.attribute]
            return grid(attribute).index(value) if isinstance(attribute, Numeric) else attribute.categories.index(value)  # type: ignore[union-attr]
        if isinstance(key, Bins):
            return sum(Fraction(cut) <= row[key.attribute] for cut in key.cuts)
        if isinstance(key, Groups):
            members = [group.values for group in key.groups]
            return next((number for number, group in enumerate(members) if row[key.attribute] in group), len(members))
        if isinstance(key, Test):
            return int(holds(key.predicate, row, self.schema))
        if isinstance(key, Predicted):
            sums = [sum(scores) for scores in zip(*(self._scores(tree, place) for tree in key.trees), strict=True)]
            return sums.index(max(sums))
        if isinstance(key, ScoreBands):
            total = sum(self._scores(tree, place)[key.place] for tree in key.trees)
            return sum(edge <= total for edge in key.edges)
        if isinstance(key, Nearest):
            distances = self.squared_distances(key, place)
            return distances.index(min(distances))
        if isinstance(key, NearestBands):
            return sum(edge <= min(self.squared_distances(key.nearest, place)) for edge in key.edges)
        assert isinstance(key, Part)
        return self._part(key, place)

    def position(self, key: Nearest, place: int) -> list[int]:
        """Where the row lies: in every attribute its number, rounded to that many steps, times the scale."""
        position = []
        for name, steps, scale in zip(key.attributes, key.steps, key.scales, strict=True):
            attribute = self.schema.single(name)
            assert isinstance(attribute, Numeric)
            low, high = Fraction(attribute.low), Fraction(attribute.value_point(attribute.values - 1))
            part = (Fraction(self.rows[place][name]) - low) / (high - low)
            position.append(math.floor(part * steps + Fraction(1, 2)) * scale)
        return position

    def squared_distances(self, key: Nearest, place: int) -> list[int]:
        """To every centre."""
        position = self.position(key, place)
        return [sum((x - c) ** 2 for x, c in zip(position, centre, strict=True)) for centre in key.centres]

    def clipped_sums(
        self, steps: Iterable[Step], key: Nearest, origins: Iterable[Iterable[int]], radii: Iterable[int]
    ) -> list[list[int]]:
        """For each centre the sums of its rows' offsets, those longer than the radius shortened towards 0."""
        starts, limits, steps = [list(origin) for origin in origins], list(radii), tuple(steps)
        sums = [[0] * len(key.attributes) for _ in key.centres]
        for place in range(len(self.rows)):
            if not all(self._inside(step, place) for step in steps):
                continue
            cluster = self.label(key, place)
            offset = [x - o for x, o in zip(self.position(key, place), starts[cluster], strict=True)]
            length = sum(map(abs, offset))
            if length > limits[cluster]:
                offset = [math.trunc(Fraction(part * limits[cluster], length)) for part in offset]
            sums[cluster] = [total + part for total, part in zip(sums[cluster], offset, strict=True)]
        return sums

    def _scores(self, tree: ScoreTree, place: int) -> tuple[int, ...]:
        """The scores of the leaf that the row reaches."""
        while isinstance(tree, ScoreSplit):
            tree = tree.children[self.label(tree.key, place)]
        assert isinstance(tree, ScoreLeaf)
        return tree.scores

    def _part(self, key: Part, place: int) -> int:
        """The keyed hash, in integers of any size."""
        row = self.rows[place]
        single = [attribute.name for attribute in self.schema.attributes if not isinstance(attribute, ItemList)]
        lists = [attribute for attribute in self.schema.attributes if isinstance(attribute, ItemList)]
        drawn = [self._drawn(number, key.salt) for number in range(5 + len(single) + len(lists))]
        rounds, shift, start, factors = drawn[:3], drawn[3], drawn[4], drawn[5:]
        codes = [self.label(AttributeKey(name), place) for name in single]
        for attribute in lists:
            codes.append(sum(_stirred(attribute.items.index(item) + 1, rounds) for item in row[attribute.name]) % PRIME)
        total = start + sum((code + 1) * factor for code, factor in zip(codes, factors, strict=True))
        hashed = _stirred((total + (self._numbers[place] + 1) * shift) % PRIME, rounds)
        ends = [end * PRIME // sum(key.weights) for end in itertools.accumulate(key.weights)]
        return sum(end <= hashed for end in ends[:-1])

    def _drawn(self, number: int, salt: str) -> int:
        digest = hashlib.blake2b(f"{number}:{salt}".encode(), key=self._split_key, digest_size=16).digest()
        return int.from_bytes(digest, "big") % (PRIME - 1) + 1

    def counts(self, steps: Iterable[Step], rules: Rules, keys: tuple[Key, ...]) -> dict[tuple[int, ...], int]:
        """The rows of every (cell, label of each key) that has any."""
        found: Counter[tuple[int, ...]] = Counter()
        steps = tuple(steps)
        for place in range(len(self.rows)):
            if all(self._inside(step, place) for step in steps):
                found[(self._leaf(rules, place), *(self.label(key, place) for key in keys))] += 1
        return dict(found)

    def _inside(self, step: Step, place: int) -> bool:
        if isinstance(step, Where):
            return holds(step.predicate, self.rows[place], self.schema)
        assert isinstance(step, Cell)
        return self.label(step.key, place) == step.index

    def _leaf(self, rules: Rules, place: int) -> int:
        """The number of the leaf, from left to right."""
        before = 0
        while isinstance(rules, Split):
            taken = self.label(rules.key, place)
            before += sum(_leaves(child) for child in rules.children[:taken])
            rules = rules.children[taken]
        return before


def _leaves(rules: Rules) -> int:
    return sum(map(_leaves, rules.children)) if isinstance(rules, Split) else 1


def _stirred(number: int, rounds: list[int]) -> int:
    for factor in rounds:
        number = (number * (number + factor) + factor) % PRIME
    return number
