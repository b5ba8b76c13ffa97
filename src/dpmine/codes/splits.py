"""Families of candidate splits: on codes.

A candidate is given by the class counts in its branches. Each row of a cell stands in at most one branch of a candidate, and
a row of one branch in the same branch for every class: that is all that scores and their ranges rest on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmine.base.wire_values import value
from dpmine.codes.domain import MOST_ROWS, require
from dpmine.codes.rows import Checked, Checker, RowKey

Integers = NDArray[np.int64]

MOST_BONUS = MOST_ROWS  # of staying: no gain is larger


class ResolvedSplits(Checked):
    """A family of candidate splits on one key's codes."""

    key: RowKey
    candidates = 1
    bonus = 0
    """What is added to a candidate's score, in rows."""

    def check(self, see: Checker) -> None:
        see(self.key)

    def branches(self, counts: Integers) -> Integers:
        """[cells, classes, codes] -> [cells, candidates, branches, classes]: the class counts in every branch."""
        raise NotImplementedError

    @property
    def scored_as(self) -> ResolvedSplits:
        """The family whose scores hold this one's: what many cells ask in part is scored once."""
        return self

    def among(self, scores: Integers) -> Integers:
        """This family's scores among those."""
        return scores


@value("resolved-multiway")
class ResolvedMultiway(ResolvedSplits):
    """One candidate: a branch for each code."""

    key: RowKey

    def branches(self, counts: Integers) -> Integers:
        return np.moveaxis(counts, 1, 2)[:, None]


@value("resolved-thresholds")
class ResolvedThresholds(ResolvedSplits):
    """Candidate i sends the codes from `low` to before first + i to the left, and those from there to before `high` to the
    right. Other codes do not count."""

    key: RowKey
    low: int
    high: int
    first: int
    points: int

    def check(self, see: Checker) -> None:
        see(self.key)
        inside = 0 <= self.low < self.first < self.first + self.points <= self.high <= self.key.size
        require(inside, "thresholds lie between codes")

    @property
    def candidates(self) -> int:  # type: ignore[override]
        return self.points

    def branches(self, counts: Integers) -> Integers:
        below = np.moveaxis(np.cumsum(counts[:, :, self.low : self.high], axis=2), 1, 2)
        left = below[:, self.first - self.low - 1 :][:, : self.points]
        return np.stack([left, below[:, -1:] - left], axis=-2)

    @property
    def scored_as(self) -> ResolvedSplits:
        return replace(self, first=self.low + 1, points=self.high - self.low - 1)

    def among(self, scores: Integers) -> Integers:
        return scores[self.first - self.low - 1 :][: self.points]


@value("resolved-subsets")
class ResolvedSubsets(ResolvedSplits):
    """Candidate i sends the codes of its set to the left."""

    key: RowKey
    subsets: tuple[tuple[int, ...], ...]

    def check(self, see: Checker) -> None:
        see(self.key)
        codes = {code for subset in self.subsets for code in subset}
        require(bool(codes) and 0 <= min(codes) <= max(codes) < self.key.size, "subsets are of the key's codes")

    @property
    def candidates(self) -> int:  # type: ignore[override]
        return len(self.subsets)

    def branches(self, counts: Integers) -> Integers:
        members = np.zeros((len(self.subsets), self.key.size), dtype=np.int64)
        for number, subset in enumerate(self.subsets):
            members[number, list(subset)] = 1
        left = np.einsum("klc,sc->ksl", counts, members)
        return np.stack([left, counts.sum(axis=2)[:, None, :] - left], axis=-2)


@value("resolved-specialise")
class ResolvedSpecialise(ResolvedSplits):
    """One candidate: the rows with the codes of some child go to that child; other rows do not count.

    A child's codes are given by half-open ranges.
    """

    key: RowKey
    children: tuple[tuple[tuple[int, int], ...], ...]

    def check(self, see: Checker) -> None:
        """A code of two children would let one row be counted twice."""
        see(self.key)
        ranges = sorted(pair for child in self.children for pair in child)
        require(all(self.children) and all(first < end for first, end in ranges), "each child holds codes")
        ends = [end for _, end in ranges[:-1]]
        require(all(end <= first for end, (first, _) in zip(ends, ranges[1:], strict=True)), "no two children share a code")
        require(bool(ranges) and ranges[0][0] >= 0 and ranges[-1][1] <= self.key.size, "a child's codes are the key's")

    def branches(self, counts: Integers) -> Integers:
        ranges = [[counts[:, :, first:end].sum(axis=2) for first, end in child] for child in self.children]
        return np.stack([sum(parts[1:], parts[0]) for parts in ranges], axis=1)[:, None]


@value("resolved-stay")
class ResolvedStay(ResolvedSplits):
    """One candidate, which leaves the cell whole. `key` is any key of the choice: its counts add up to the cell's."""

    key: RowKey
    bonus: int

    def check(self, see: Checker) -> None:
        see(self.key)
        require(0 <= self.bonus <= MOST_BONUS, "a bonus is a number of rows")

    def branches(self, counts: Integers) -> Integers:
        whole: Integers = counts.sum(axis=2)[:, None, None]
        return whole

    @property
    def scored_as(self) -> ResolvedSplits:
        return ResolvedStay(self.key, 0)
