"""A slow engine in plain Python, written from the documentation: one row at a time, fractions and texts, no numpy.

A row here is a dict from attribute to what the public rules make of its value: a category, the value nearest to a number as
a fraction, None for a gap, or a tuple of known items. Everything else (codes, caches, chunks, refinement) is the business of
the engine under test.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from support.values_of_numbers import (
    cell_of,
    nearest_of,
    nearest_of_double,
    point_of,
    resolution_of,
    starts_of,
    values_of,
)

from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.kind import MISSING
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.keys import APART, AttributeKey, Bins, Groups, Key, Part, Test
from dpmine.language.model_keys import Nearest, NearestBands, Predicted, ScoreBands, ScoreLeaf, ScoreSplit, ScoreTree
from dpmine.language.predicates import And, Compare, Contains, IsIn, IsMissing, Not, Or, Predicate
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


def nearest(attribute: Numeric, value: float | int | str | None) -> Fraction | None:
    """The nearest value, or what the schema says of gaps where there is no number."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isnan(number):
        return point_of(attribute, nearest_of_double(attribute, number))
    if isinstance(attribute.missing, str):
        return None
    return point_of(attribute, nearest_of(attribute, Fraction(attribute.missing)))


def category(attribute: Nominal, value: str | None) -> str | None:
    """A listed value, `other` for one that is not, and `missing` for none; what has no such place is a gap."""
    if value in attribute.categories:
        return value
    found = attribute.missing if value is None or attribute.other is None else attribute.other
    return found if found in attribute.categories else None


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
                row[attribute.name] = category(attribute, value)
            elif isinstance(attribute, Numeric):
                row[attribute.name] = nearest(attribute, value)
            else:
                row[attribute.name] = known_items(attribute, value)
    return rows


def holds(predicate: Predicate, row: Row, schema: Schema) -> bool | None:
    """Whether a predicate holds; None where a gap leaves it open. With the rules of SQL for and, or and not."""
    if isinstance(predicate, IsMissing):
        return row[predicate.attribute] is None
    if isinstance(predicate, (Compare, IsIn)) and row[predicate.attribute] is None:
        return None
    if isinstance(predicate, Compare):
        return COMPARE[predicate.op](row[predicate.attribute], _constant(predicate.attribute, predicate.value, schema))
    if isinstance(predicate, IsIn):
        return row[predicate.attribute] in [_constant(predicate.attribute, text, schema) for text in predicate.values]
    if isinstance(predicate, Contains):
        return all(item in row[predicate.attribute] for item in predicate.items)
    if isinstance(predicate, Not):
        inner = holds(predicate.part, row, schema)
        return None if inner is None else not inner
    assert isinstance(predicate, (And, Or))
    parts = [holds(part, row, schema) for part in predicate.parts]
    decides = isinstance(predicate, Or)  # one true part is enough for `or`, one false part for `and`
    return decides if decides in parts else None if None in parts else not decides


def _constant(attribute: str, text: str, schema: Schema) -> Any:
    return Fraction(text) if isinstance(schema.attribute(attribute), Numeric) else text


@dataclass(frozen=True)
class RoundedKey(Key):
    """Numbers rounded to even steps, which users never write: kernels ask for them."""

    attribute: str
    steps: int

    def labels(self, schema: Schema) -> tuple[str, ...]:  # type: ignore[override]
        gap = schema.single(self.attribute).gap is not None
        return tuple(map(str, range(self.steps + 1 + gap)))


class Reference:
    """Counts over rows by looking at each row by itself."""

    def __init__(self, table: dict[str, list[Any]], schema: Schema, split_key: bytes) -> None:
        self.schema = schema
        self._split_key = split_key
        self.rows = rows_of(table, schema)
        if schema.unit.column in table:  # else these are the rows that count
            self.rows = self._of_persons(table[schema.unit.column], schema.unit.at_most)
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
            return self.code(key.attribute, row)
        if isinstance(key, RoundedKey):
            return self.rounded(key.attribute, key.steps, row)
        if isinstance(key, Bins):
            if row[key.attribute] is None:
                return len(key.cuts) + (key.missing == APART)
            return sum(Fraction(cut) <= row[key.attribute] for cut in key.cuts if cut != MISSING)
        if isinstance(key, Groups):
            value = row[key.attribute]
            if value is None and key.missing == APART:
                return len(key.groups) + 1
            members = [group.values for group in key.groups]
            wanted = MISSING if value is None else value
            return next((number for number, group in enumerate(members) if wanted in group), len(members))
        if isinstance(key, Test):
            return int(holds(key.predicate, row, self.schema) is True)
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

    def code(self, name: str, row: Row) -> int:
        """The cell of a number, the place of a category; gaps come last."""
        attribute, value = self.schema.attribute(name), row[name]
        if isinstance(attribute, Nominal):
            return len(attribute.categories) if value is None else attribute.categories.index(value)
        assert isinstance(attribute, Numeric)
        return len(starts_of(attribute)) if value is None else cell_of(attribute, self.number(name, row))

    def number(self, name: str, row: Row) -> int:
        """How many steps of the resolution a value lies above the lowest one; a gap is one more than the highest."""
        attribute, value = self.schema.attribute(name), row[name]
        if not isinstance(attribute, Numeric):
            return self.code(name, row)
        return values_of(attribute) if value is None else int((value - point_of(attribute, 0)) / resolution_of(attribute))

    def rounded(self, name: str, steps: int, row: Row) -> int:
        """The nearest of so many even steps between the lowest and the highest value, halves upwards; a gap is one more."""
        attribute = self.schema.attribute(name)
        assert isinstance(attribute, Numeric)
        if row[name] is None:
            return steps + 1
        return math.floor(Fraction(self.number(name, row) * steps, values_of(attribute) - 1) + Fraction(1, 2))

    def sums(
        self, view: Iterable[Step], rules: Rules, amounts: Sequence[tuple[str, int]], powers: Sequence[tuple[int, ...]]
    ) -> list[list[int]]:
        """For each cell the sums of the products of rounded numbers, over the rows that have them all."""
        found = [[0] * len(powers) for _ in range(_leaves(rules))]
        view = tuple(view)
        for place, row in enumerate(self.rows):
            if any(row[name] is None for name, _ in amounts) or not all(self._inside(step, place) for step in view):
                continue
            numbers = [self.rounded(name, steps, row) for name, steps in amounts]
            leaf = self._leaf(rules, place)
            for column, power in enumerate(powers):
                found[leaf][column] += math.prod(number**times for number, times in zip(numbers, power, strict=True))
        return found

    def position(self, key: Nearest, place: int) -> list[int]:
        """Where the row lies: in every attribute its rounded number times the scale, or the middle of them."""
        row = self.rows[place]
        found = zip(key.attributes, key.steps, key.scales, strict=True)
        return [(s // 2 if row[name] is None else self.rounded(name, s, row)) * scale for name, s, scale in found]

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
        hashed = self._hashed(key.salt, self.rows[place], self._numbers[place])
        ends = [end * PRIME // sum(key.weights) for end in itertools.accumulate(key.weights)]
        return sum(end <= hashed for end in ends[:-1])

    def _content(self, row: Row) -> tuple[list[int], list[tuple[int, ...]]]:
        """All that makes a row the row that it is, in numbers: of its values, and of its lists."""
        single = [attribute.name for attribute in self.schema.attributes if not isinstance(attribute, ItemList)]
        lists = [attribute for attribute in self.schema.attributes if isinstance(attribute, ItemList)]
        items = [tuple(attribute.items.index(item) for item in row[attribute.name]) for attribute in lists]
        return [self.number(name, row) for name in single], items

    def _hashed(self, salt: str, row: Row, number: int) -> int:
        values, lists = self._content(row)
        drawn = [self._drawn(place, salt) for place in range(5 + len(values) + len(lists))]
        rounds, shift, start, factors = drawn[:3], drawn[3], drawn[4], drawn[5:]
        numbers = [*values, *(sum(_stirred(item + 1, rounds) for item in items) % PRIME for items in lists)]
        total = start + sum((each + 1) * factor for each, factor in zip(numbers, factors, strict=True))
        return _stirred((total + (number + 1) * shift) % PRIME, rounds)

    def _of_persons(self, names: list[str | None], at_most: int) -> list[Row]:
        """Of each person the rows with the smallest keyed hash of name and values; of equal hashes the smallest values."""
        rows: dict[str, list[Row]] = {}
        for name, row in zip(names, self.rows, strict=True):
            if name is not None and name.strip():
                rows.setdefault(name, []).append(row)

        def order(name: str, row: Row) -> Any:
            digest = hashlib.md5(name.encode(), usedforsecurity=False).digest()
            return self._hashed("rows of a person", row, int.from_bytes(digest[:8], "little") % PRIME), self._content(row)

        return [row for name, own in rows.items() for row in sorted(own, key=lambda row: order(name, row))[:at_most]]

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
            return holds(step.predicate, self.rows[place], self.schema) is True
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
