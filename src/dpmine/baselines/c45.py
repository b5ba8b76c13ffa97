"""NOT PRIVATE: Quinlan's C4.5 (1993, and release 8 of 1996) on true rows, the reference for DiffP-C4.5.

Left out of Quinlan's program: grouping of values, fractional rows for missing values (the schema gives each a code), and
raising of subtrees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmine.baselines.greedy import (
    ROUNDING,
    SCORES,
    Chooser,
    Counts,
    Layout,
    NodeCounts,
    ReferenceTree,
    Scores,
    first_best,
    minus_entropy,
    threshold_key,
    times_logarithm,
)
from dpmine.errors import RequestError
from dpmine.expressions import AttributeKey, Key
from dpmine.postprocess.error_limits import upper_error
from dpmine.postprocess.noisy_trees import CountedNode, prune_by_error
from dpmine.tree_models import Node

GAIN_RATIO = "gainratio"


class C45(ReferenceTree):
    """NOT PRIVATE. Splits nominal attributes into all values, once on a path, and numeric ones in two, again and again.

    A split counts only if at least two of its branches have `min_rows` rows. With the gain ratio, a numeric attribute first
    takes the threshold of the largest gain, which pays for the choice among k thresholds by log2(k) / rows (release 8);
    then the largest ratio wins among attributes of at least average gain. With the other scores the largest one wins.
    Thresholds lie in the middle between neighbouring grid points that occur in the node. Of equal attributes the first in
    the schema is taken, of equal thresholds the lowest.

    `pruning` replaces subtrees by leaves from the bottom up, by the exact binomial error limit at `confidence`.
    `max_depth=None` is the depth that a model may have at all.
    """

    def __init__(
        self,
        max_depth: int | None = None,
        score: str = GAIN_RATIO,
        pruning: bool = True,
        confidence: float = 0.25,
        min_rows: int = 2,
    ) -> None:
        super().__init__(max_depth, score, [GAIN_RATIO, *SCORES])
        upper_error(0, 1, confidence)  # refuses an impossible confidence now, not after the growth
        if min_rows < 1:
            raise RequestError(f"'min_rows' must be at least 1. Got {min_rows} instead.")
        self.pruning = pruning
        self.confidence = confidence
        self.min_rows = min_rows

    def _chooser(self, layout: Layout) -> Chooser:
        if self.score == GAIN_RATIO:
            return _ByRatio(minus_entropy, self.min_rows)
        return _ByScore(SCORES[self.score], self.min_rows)

    def _finish(self, root: Node) -> Node:
        if not self.pruning:
            return root
        counted = _counted(root)
        prune_by_error(counted, self.confidence)
        return _without_pruned(root, counted)


def _counted(node: Node) -> CountedNode:
    counts = np.array(node.rows, dtype=np.float64)
    return CountedNode(float(counts.sum()), counts, [_counted(child) for child in node.children])


def _without_pruned(node: Node, counted: CountedNode) -> Node:
    if counted.is_leaf:
        return Node(node.rows, node.shares)
    pairs = zip(node.children, counted.children, strict=True)
    return Node(node.rows, node.shares, node.split, tuple(_without_pruned(*pair) for pair in pairs))


@dataclass(frozen=True)
class _Candidates:
    """The best split of every attribute, side by side.

    gains   [attributes], counted over all rows of the node; minus infinity where an attribute cannot split it
    bits    [attributes], the rows of the node times the entropy of the branch that a row goes to
    tries   [attributes], among how many thresholds the split was chosen
    cuts    for numeric attributes that can split the node, the first code of the right branch
    """

    gains: Scores
    bits: Scores
    tries: Counts
    cuts: dict[int, int]


@dataclass(frozen=True)
class _ByScore(Chooser):
    """One candidate an attribute, by the largest gain in the score."""

    score: Callable[[Counts], Scores]
    min_rows: int

    def best(self, view: NodeCounts) -> tuple[Key, int | None] | None:
        if view.rows < 2 * self.min_rows or not view.layout.attributes:
            return None
        candidates = self._candidates(view)
        number = self._chosen(view, candidates)
        if number is None:
            return None
        if number in candidates.cuts:
            return threshold_key(view.layout, number, candidates.cuts[number]), None
        return AttributeKey(view.layout.attributes[number].name), number

    def _chosen(self, view: NodeCounts, candidates: _Candidates) -> int | None:
        return first_best(np.where(candidates.gains > view.rounding, candidates.gains, -np.inf), view.rounding)

    def _candidates(self, view: NodeCounts) -> _Candidates:
        starts = view.layout.starts
        branches = np.add.reduceat((view.sizes >= self.min_rows).astype(np.intp), starts)
        possible = view.open & (branches >= 2)
        gains = np.where(possible, view.multiway(self.score) - self.score(view.node), -np.inf)
        bits = times_logarithm(np.array(view.rows)) - np.add.reduceat(times_logarithm(view.sizes), starts)
        tries = np.ones(len(starts), dtype=np.int64)
        cuts: dict[int, int] = {}
        for number in view.layout.numeric:
            gains[number] = -np.inf
            self._put_threshold(view, number, _Candidates(gains, bits, tries, cuts))
        return _Candidates(gains, bits, tries, cuts)

    def _put_threshold(self, view: NodeCounts, number: int, candidates: _Candidates) -> None:
        """Enter the best threshold of a numeric attribute, if there is any."""
        start = int(view.layout.starts[number])
        occurring = np.flatnonzero(view.sizes[start : start + view.layout.attributes[number].size])
        cuts = (occurring[:-1] + occurring[1:] + 1) // 2
        left = view.left_of(number, cuts)
        left_rows = left.sum(axis=-1)
        large = (left_rows >= self.min_rows) & (view.rows - left_rows >= self.min_rows)
        gains = self.score(left) + self.score(view.node - left) - self.score(view.node)
        place = first_best(np.where(large, gains, -np.inf), view.rounding)
        if place is None:
            return
        sizes = np.array([left_rows[place], view.rows - left_rows[place]])
        candidates.gains[number] = gains[place]
        candidates.bits[number] = times_logarithm(np.array(view.rows)) - times_logarithm(sizes).sum()
        candidates.tries[number] = np.count_nonzero(large)
        candidates.cuts[number] = int(cuts[place])


@dataclass(frozen=True)
class _ByRatio(_ByScore):
    """The gain ratio, among candidates of at least average gain: else a split into many tiny branches would win."""

    def _chosen(self, view: NodeCounts, candidates: _Candidates) -> int | None:
        gains = (candidates.gains - np.log2(candidates.tries)) / view.rows
        worth = (candidates.gains > view.rounding) & (gains > ROUNDING)
        if not worth.any():
            return None
        good = worth & (gains >= np.mean(gains[worth]) - ROUNDING)
        ratios = np.full(len(gains), -np.inf)
        ratios[good] = gains[good] / (candidates.bits[good] / view.rows)
        return first_best(ratios, ROUNDING)
