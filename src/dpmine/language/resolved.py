"""What predicates, keys, views and rules mean under a schema, on integer codes. Engines and kernel read nothing else."""

from __future__ import annotations

from dpmine.base.wire_values import value


class RowTest:
    """A predicate on codes."""


@value("codes")
class InCodes(RowTest):
    """The attribute's code lies in one of the half-open ranges, which rise and do not touch."""

    attribute: str
    ranges: tuple[tuple[int, int], ...]


@value("holds")
class Holds(RowTest):
    """The row's list holds all of these item codes."""

    attribute: str
    items: tuple[int, ...]


@value("all")
class All(RowTest):
    parts: tuple[RowTest, ...]


@value("any")
class Any_(RowTest):
    parts: tuple[RowTest, ...]


@value("none")
class Negation(RowTest):
    part: RowTest


class RowKey:
    """A key on codes: each row has one number below `size`."""

    size: int


@value("recode")
class Recode(RowKey):
    """The attribute's code looked up in a table, given by its runs (first code, value); no runs: the code itself."""

    attribute: str
    runs: tuple[tuple[int, int], ...]
    size: int

    def table(self, codes: int) -> list[int]:
        """The key's value for every one of the attribute's codes."""
        return [item for first, end, item in self.stretches(codes) for _ in range(first, end)]

    def stretches(self, codes: int) -> list[tuple[int, int, int]]:
        """Codes from a first one to before an end that share a value, in order, with that value."""
        if not self.runs:
            return [(code, code + 1, code) for code in range(codes)]
        ends = [*(first for first, _ in self.runs[1:]), codes]
        return [(first, end, item) for (first, item), end in zip(self.runs, ends, strict=True)]


FEW_RUNS = 64


def is_small(key: RowKey) -> bool:
    """Whether a key is short enough to be remembered by the thousand."""
    return isinstance(key, Recode) and len(key.runs) <= FEW_RUNS


@value("tested")
class Tested(RowKey):
    """0 or 1 by a test."""

    test: RowTest
    size: int = 2


@value("hashed")
class HashedPart(RowKey):
    """The part of a keyed-hash split with the given salt and integer weights."""

    salt: str
    weights: tuple[int, ...]
    size: int


class RowScores:
    """A rule tree on codes with integers at its leaves."""


@value("row-scores")
class LeafScores(RowScores):
    scores: tuple[int, ...]


@value("score-branch")
class ScoreBranch(RowScores):
    """Its key reads one column."""

    key: Recode
    children: tuple[RowScores, ...]


@value("largest-sum")
class LargestSum(RowKey):
    """The place of the largest sum of scores over the trees; of equal ones the first."""

    trees: tuple[RowScores, ...]
    size: int


@value("banded-sum")
class BandedSum(RowKey):
    """The band of the sum of the trees' first scores: how many of the rising edges are at or below it."""

    trees: tuple[RowScores, ...]
    edges: tuple[int, ...]
    size: int


@value("nearest-centre")
class NearestCentre(RowKey):
    """The number of the nearest centre, by squared distance of code times scale; of equally near ones the first."""

    attributes: tuple[str, ...]
    scales: tuple[int, ...]
    centres: tuple[tuple[int, ...], ...]
    size: int


@value("banded-distance")
class BandedDistance(RowKey):
    """The band of the squared distance to the nearest centre: how many of the rising edges are at or below it."""

    nearest: NearestCentre
    edges: tuple[int, ...]
    size: int


class RowStep:
    """A resolved step of a view."""


@value("keep")
class Keep(RowStep):
    test: RowTest


@value("enter")
class Enter(RowStep):
    key: RowKey
    index: int


class RowRules:
    """A resolved rule tree; leaves are None."""


@value("branch")
class Branch(RowRules):
    key: RowKey
    children: tuple[RowRules | None, ...]


@value("cells")
class Cells:
    """The disjoint cells of one query: a view and a rule tree over it."""

    steps: tuple[RowStep, ...]
    rules: RowRules | None


def count_leaves(rules: RowRules | None) -> int:
    return sum(map(count_leaves, rules.children)) if isinstance(rules, Branch) else 1
