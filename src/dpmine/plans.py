"""What a query means under a schema, on integer codes: the values that are priced, cached and computed.

Attributes go by name, values by code. `resolution` makes these from what users write; engines and kernel read nothing else.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpmine.finite import FiniteMechanism, LatticeNoise
from dpmine.values import value

# -- resolved predicates and keys --------------------------------------------------------------------------------------


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


# -- resolved cells ----------------------------------------------------------------------------------------------------


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


@value("row-cuts")
class RowCuts:
    """Where an attribute would be cut, for every interval: as `dpmine.queries.CutRule`."""

    attribute: str
    size: int
    edges: tuple[int, ...]
    scores: tuple[int, ...]
    cuts: tuple[int, ...]
    inside: int


# -- resolved questions ------------------------------------------------------------------------------------------------


class RowQuestion:
    """A resolved question."""


@value("counts")
class Counts(RowQuestion):
    """Row counts by the keys (none: the plain count)."""

    keys: tuple[RowKey, ...]

    @property
    def bins(self) -> int:
        return math.prod(key.size for key in self.keys)


@value("sparse-counts")
class SparseCounts(RowQuestion):
    """Row counts by the keys, where they reach the threshold after noise."""

    keys: tuple[RowKey, ...]
    at_least: int

    @property
    def bins(self) -> int:
        return math.prod(key.size for key in self.keys)


@value("power-sums")
class PowerSums(RowQuestion):
    """Sums of (first + step * code)^power over the rows of each cell."""

    key: RowKey
    first: int
    step: int
    powers: tuple[int, ...]
    sensitivities: tuple[int, ...]


@value("told-statistic")
class ToldStatistic(RowQuestion):
    """One statistic of the values low + step * code, told through noise for that sensitivity.

    Everything that decides the noise stands here. Exact numbers are written as text.
    """

    statistic: str
    key: RowKey | None
    low: str
    step: str
    noise: FiniteMechanism | LatticeNoise
    sensitivity: str

    @property
    def steps(self) -> int:
        """By how many steps of the noise's own grid one row can move the answer."""
        moves = Fraction(self.sensitivity)
        if isinstance(self.noise, FiniteMechanism):
            return self.noise.steps(moves)
        return max(math.ceil(moves / Fraction(self.noise.step)), 1)


@value("vector-of-sums")
class VectorOfSums(RowQuestion):
    """Sums of first + step * code for each key, after the number of rows if wanted, with one noise for all."""

    keys: tuple[RowKey, ...]
    firsts: tuple[int, ...]
    steps: tuple[int, ...]
    with_count: bool
    ball: str
    inner: tuple[int, ...]
    lengths: tuple[int, ...]


@value("clipped-sums")
class ClippedSums(RowQuestion):
    """For each centre the sum of its rows' positions less its origin, shortened to its radius (in L1)."""

    nearest: NearestCentre
    origins: tuple[tuple[int, ...], ...]
    radii: tuple[int, ...]


@value("grown-cuts")
class GrownCuts(RowQuestion):
    """Which nodes of a tree of cuts are split: see `dpmine.private_trees`."""

    rules: tuple[RowCuts, ...]
    deepest: int


@value("best-rank")
class BestRank(RowQuestion):
    key: RowKey
    numerator: int
    denominator: int


@value("best-label")
class BestLabel(RowQuestion):
    key: RowKey
    mechanism: str
    calibration: str


class RowSplits:
    """A family of candidate splits on one key's codes."""

    key: RowKey

    @property
    def candidates(self) -> int:
        raise NotImplementedError


@value("by-label")
class ByLabel(RowSplits):
    key: RowKey

    @property
    def candidates(self) -> int:
        return 1


@value("by-threshold")
class ByThreshold(RowSplits):
    """Candidate i sends codes below first + i to the left."""

    key: RowKey
    first: int
    points: int

    @property
    def candidates(self) -> int:
        return self.points


@value("by-subset")
class BySubset(RowSplits):
    """Candidate i sends the codes of its set to the left."""

    key: RowKey
    subsets: tuple[tuple[int, ...], ...]

    @property
    def candidates(self) -> int:
        return len(self.subsets)


@value("by-children")
class ByChildren(RowSplits):
    """One candidate: the rows with the codes of some child go to that child; other rows do not count.

    A child's codes are given by half-open ranges.
    """

    key: RowKey
    children: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def candidates(self) -> int:
        return 1


@value("by-division")
class ByDivision(RowSplits):
    """Candidate i sends codes from first up to first + i to the left; codes outside first .. end - 1 do not count."""

    key: RowKey
    first: int
    end: int

    @property
    def candidates(self) -> int:
        return self.end - self.first - 1


@value("whole")
class Whole(RowSplits):
    """One candidate, which leaves the cell whole. `key` is any key of the choice: its counts add up to the cell's."""

    key: RowKey
    bonus: int

    @property
    def candidates(self) -> int:
        return 1


@value("best-split")
class BestSplit(RowQuestion):
    target: RowKey
    families: tuple[tuple[RowSplits, ...], ...]
    score: str
    rows_at_most: int
    mechanism: str
    calibration: str

    def families_of(self, cell: int) -> tuple[RowSplits, ...]:
        return self.families[cell] if len(self.families) > 1 else self.families[0]


@value("best-model")
class BestModel(RowQuestion):
    """The key whose label agrees with the target in most rows."""

    target: RowKey
    models: tuple[RowKey, ...]
    mechanism: str
    calibration: str


@value("plan")
class Plan:
    """The canonical form of a query under one schema: what is priced, cached and computed."""

    cells: Cells
    question: RowQuestion
    units: tuple[int, ...]
    schema: str
