"""Predicates, keys, views and rules on integer codes, and what must hold of each: kernel and engines read nothing else.

Whoever translates a question into codes is not trusted. So each class says under which public conditions it means what its
first line says, for every row that there can be; the door sees to them before anything is charged.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from dpmine.base.wire_values import value
from dpmine.codes.domain import MOST_ROWS, Domain, require

MOST_LABELS = MOST_ROWS  # of a key: engines hold each exactly, in 32 bits and in SQL
MOST_TREES = 1_000  # of a model
MOST_CLASSES = 1_000  # an engine holds a sum for each class and row at hand
MOST_CENTRES = 1_000  # or a distance to each centre
LARGEST_SCORE = 10**9  # times MOST_TREES stays far inside 64 bits
MOST_DIMENSIONS = 32
LARGEST_POSITION = 2**23  # sums of 32 products of two positions, doubled, are exact in doubles
LARGEST_DISTANCE = MOST_DIMENSIONS * LARGEST_POSITION**2  # squared: 2^51
MOST_PARTS = 1_000_000  # weights of a keyed-hash part are integers with at most this sum


class Checked:
    """A part of a query on codes."""

    def check(self, see: Checker) -> None:
        """Refuse what does not mean, on every row, what the class says."""
        raise NotImplementedError


class Checker:
    """Has every part of a query checked; a part that stands in many places is looked at once."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._seen: dict[int, Checked] = {}

    def __call__(self, *parts: Checked | None) -> None:
        for part in parts:
            if part is not None and id(part) not in self._seen:
                self._seen[id(part)] = part
                part.check(self)


def rise(numbers: Sequence[int]) -> bool:
    return all(low < high for low, high in itertools.pairwise(numbers))


class RowTest(Checked):
    """A predicate on codes."""


@value("codes")
class InCodes(RowTest):
    """The attribute's code lies in one of the half-open ranges, which rise and do not touch."""

    attribute: str
    ranges: tuple[tuple[int, int], ...]

    def check(self, see: Checker) -> None:
        ends = [-1, *itertools.chain.from_iterable(self.ranges), see.domain.size(self.attribute) + 1]
        require(rise(ends), "ranges of codes rise")


@value("values")
class InValues(RowTest):
    """The attribute's value lies in one of the half-open ranges, which rise and do not touch."""

    attribute: str
    ranges: tuple[tuple[int, int], ...]

    def check(self, see: Checker) -> None:
        ends = [-1, *itertools.chain.from_iterable(self.ranges), see.domain.values(self.attribute) + 1]
        require(rise(ends), "ranges of values rise")


@value("holds")
class Holds(RowTest):
    """The row's list holds all of these item codes."""

    attribute: str
    items: tuple[int, ...]

    def check(self, see: Checker) -> None:
        size = see.domain.size(self.attribute, listed=True)
        require(all(0 <= item < size for item in self.items), "items are codes")


@value("all")
class All(RowTest):
    parts: tuple[RowTest, ...]

    def check(self, see: Checker) -> None:
        see(*self.parts)


@value("any")
class Any_(RowTest):
    parts: tuple[RowTest, ...]

    def check(self, see: Checker) -> None:
        see(*self.parts)


@value("none")
class Negation(RowTest):
    part: RowTest

    def check(self, see: Checker) -> None:
        see(self.part)


class RowKey(Checked):
    """A key on codes: each row has one number below `size`."""

    size: int


@value("recode")
class Recode(RowKey):
    """The attribute's code looked up in a table, given by its runs (first code, value); no runs: the code itself."""

    attribute: str
    runs: tuple[tuple[int, int], ...]
    size: int

    def check(self, see: Checker) -> None:
        codes = see.domain.size(self.attribute)
        if not self.runs:
            require(self.size == codes, "an attribute has as many labels as codes")
        else:
            _check_runs(self.runs, codes, self.size)


@value("recode-values")
class RecodeValues(RowKey):
    """The attribute's value looked up in a table, given by its runs (first value, label)."""

    attribute: str
    runs: tuple[tuple[int, int], ...]
    size: int

    def check(self, see: Checker) -> None:
        _check_runs(self.runs, see.domain.values(self.attribute), self.size)


def _check_runs(runs: tuple[tuple[int, int], ...], numbers: int, size: int) -> None:
    """Every number below that has one label below the size."""
    firsts = [first for first, _ in runs]
    require(size <= MOST_LABELS, "labels are small")
    require(firsts[:1] == [0] and rise([*firsts, numbers]), "runs rise from 0 on")
    require(all(0 <= item < size for _, item in runs), "a run's label is below the key's size")


@value("rounded")
class Rounded(RowKey):
    """The attribute's number, from its lowest to its highest, rounded to the nearest of `steps` even steps: 0 .. steps.

    Of value v among S steps it is floor((2 v steps + S) / 2 S): v itself where they are as many. A gap is steps + 1.
    """

    attribute: str
    steps: int
    size: int

    def check(self, see: Checker) -> None:
        column = see.domain.column(self.attribute)
        numbers = see.domain.numbers(self.attribute)
        require(1 <= self.steps <= numbers.steps, "rounding is to values or coarser")
        require(self.size == self.steps + 1 + column.gap, "rounding has a label for each step, and one for a gap")


@value("cyclic")
class Cyclic(RowKey):
    """Stretches of `unit` values, numbered round and round: of value v floor((v + offset) / unit) modulo the period.

    A gap is `period`.
    """

    attribute: str
    offset: int
    unit: int
    period: int
    size: int

    def check(self, see: Checker) -> None:
        column = see.domain.column(self.attribute)
        require(column.values > 0, "stretches are of an ordered attribute")
        require(self.unit >= 1 and self.period >= 1, "a round has stretches, and each of them values")
        require(0 <= self.offset < self.unit * self.period <= MOST_LABELS, "a round is small, and begun at most once")
        require(self.size == self.period + column.gap, "a round has a label for each stretch, and one for a gap")


def combinations(keys: Sequence[RowKey]) -> int:
    """How many there are of one label of each key."""
    return math.prod(key.size for key in keys)


FEW_RUNS = 64


def is_small(key: RowKey) -> bool:
    """Whether a key is short enough to be remembered by the thousand."""
    return isinstance(key, Recode) and len(key.runs) <= FEW_RUNS


@value("tested")
class Tested(RowKey):
    """0 or 1 by a test."""

    test: RowTest
    size: int = 2

    def check(self, see: Checker) -> None:
        see(self.test)
        require(self.size == 2, "a test has two labels")


@value("hashed")
class HashedPart(RowKey):
    """The part of a keyed-hash split with the given salt and integer weights."""

    salt: str
    weights: tuple[int, ...]
    size: int

    def check(self, see: Checker) -> None:
        require(self.size == len(self.weights) > 1 and min(self.weights) > 0, "every part has a weight")
        require(sum(self.weights) <= MOST_PARTS, "weights are small")
        require(not any("\ud800" <= letter <= "\udfff" for letter in self.salt), "a salt is text")  # it is hashed as UTF-8


class RowScores(Checked):
    """A rule tree on codes with integers at its leaves."""


@value("row-scores")
class LeafScores(RowScores):
    scores: tuple[int, ...]

    def check(self, see: Checker) -> None:
        require(all(abs(score) <= LARGEST_SCORE for score in self.scores), "scores are bounded")


@value("score-branch")
class ScoreBranch(RowScores):
    """Its key reads one column."""

    key: RowKey
    children: tuple[RowScores, ...]

    def check(self, see: Checker) -> None:
        require(isinstance(self.key, (Recode, RecodeValues)), "a tree splits by codes or values of one attribute")
        require(len(self.children) == self.key.size, "a tree has a child for every label")
        see(self.key, *self.children)


def check_trees(see: Checker, trees: tuple[RowScores, ...], scores: int) -> None:
    """Trees whose leaves all have that many scores, so few that no sum overflows."""
    require(1 <= len(trees) <= MOST_TREES and 1 <= scores <= MOST_CLASSES, "a model has some trees and classes")
    see(*trees)
    waiting = {id(tree): tree for tree in trees}
    found = dict(waiting)
    while waiting:
        _, tree = waiting.popitem()
        if isinstance(tree, ScoreBranch):
            new = {id(child): child for child in tree.children if id(child) not in found}
            waiting |= new
            found |= new
        else:
            require(isinstance(tree, LeafScores) and len(tree.scores) == scores, "every leaf has a score for each class")


@value("largest-sum")
class LargestSum(RowKey):
    """The place of the largest sum of scores over the trees; of equal ones the first."""

    trees: tuple[RowScores, ...]
    size: int

    def check(self, see: Checker) -> None:
        check_trees(see, self.trees, self.size)


@value("banded-sum")
class BandedSum(RowKey):
    """The band of the sum of the trees' only scores: how many of the rising edges are at or below it."""

    trees: tuple[RowScores, ...]
    edges: tuple[int, ...]
    size: int

    def check(self, see: Checker) -> None:
        check_trees(see, self.trees, 1)
        most = MOST_TREES * LARGEST_SCORE + 1
        require(rise([-most, *self.edges, most]) and self.size == len(self.edges) + 1 > 1, "bands have rising edges")


@value("nearest-centre")
class NearestCentre(RowKey):
    """The number of the nearest centre, by squared distance of positions; of equally near ones the first.

    A row's position in an attribute is its rounded number times a scale. A gap lies in the middle, at half the steps.
    """

    places: tuple[Rounded, ...]
    scales: tuple[int, ...]
    centres: tuple[tuple[int, ...], ...]
    size: int

    def check(self, see: Checker) -> None:
        see(*self.places)
        dimensions = len(self.places)
        shapes = {len(self.scales), len({place.attribute for place in self.places}), *map(len, self.centres)}
        require(1 <= dimensions <= MOST_DIMENSIONS and shapes == {dimensions}, "centres lie in different attributes")
        require(MOST_CENTRES >= self.size == len(self.centres) > 0, "there are centres")
        for place, scale in zip(self.places, self.scales, strict=True):
            require(0 < place.steps * scale <= LARGEST_POSITION, "positions are bounded")
        require(all(0 <= place <= LARGEST_POSITION for centre in self.centres for place in centre), "so are centres")


@value("banded-distance")
class BandedDistance(RowKey):
    """The band of the squared distance to the nearest centre: how many of the rising edges are at or below it."""

    nearest: NearestCentre
    edges: tuple[int, ...]
    size: int

    def check(self, see: Checker) -> None:
        see(self.nearest)
        ends = [-1, *self.edges, LARGEST_DISTANCE + 1]
        require(rise(ends) and self.size == len(self.edges) + 1 > 1, "bands have rising edges")


class RowStep(Checked):
    """A step of a view, which keeps a row or leaves it out."""


@value("keep")
class Keep(RowStep):
    test: RowTest

    def check(self, see: Checker) -> None:
        see(self.test)


@value("enter")
class Enter(RowStep):
    key: RowKey
    index: int

    def check(self, see: Checker) -> None:
        see(self.key)
        require(0 <= self.index < self.key.size, "a cell is one of its key's")


class RowRules(Checked):
    """A rule tree; leaves are None."""


@value("branch")
class Branch(RowRules):
    key: RowKey
    children: tuple[RowRules | None, ...]

    def check(self, see: Checker) -> None:
        require(len(self.children) == self.key.size, "rules have a child for every label")
        see(self.key, *self.children)


@value("cells")
class Cells:
    """The disjoint cells of one query: a view and a rule tree over it."""

    steps: tuple[RowStep, ...]
    rules: RowRules | None


def count_leaves(rules: RowRules | None) -> int:
    return sum(map(count_leaves, rules.children)) if isinstance(rules, Branch) else 1
