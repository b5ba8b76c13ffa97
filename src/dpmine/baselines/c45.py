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
from dpmine.schema import Numeric
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
class _Candidate:
    """The best split of one attribute. `gain` is counted over all rows of the node, `sizes` are the rows of its branches."""

    number: int
    gain: float
    sizes: Counts
    cut: int | None = None
    tries: int = 1


@dataclass(frozen=True)
class _ByScore(Chooser):
    """One candidate an attribute, by the largest gain in the score."""

    score: Callable[[Counts], Scores]
    min_rows: int

    def best(self, view: NodeCounts) -> tuple[Key, int | None] | None:
        if view.rows < 2 * self.min_rows:
            return None
        candidates = [candidate for candidate in self._candidates(view) if candidate.gain > view.rounding]
        chosen = self._chosen(view, candidates)
        if chosen is None:
            return None
        if chosen.cut is not None:
            return threshold_key(view.layout, chosen.number, chosen.cut), None
        return AttributeKey(view.layout.attributes[chosen.number].name), chosen.number

    def _chosen(self, view: NodeCounts, candidates: list[_Candidate]) -> _Candidate | None:
        place = first_best(np.array([candidate.gain for candidate in candidates]), view.rounding)
        return None if place is None else candidates[place]

    def _candidates(self, view: NodeCounts) -> list[_Candidate]:
        multiway = view.multiway(self.score) - self.score(view.node)
        found = []
        for number, attribute in enumerate(view.layout.attributes):
            if isinstance(attribute, Numeric):
                candidate = self._threshold(view, number)
            elif view.open[number]:
                candidate = self._all_values(view, number, float(multiway[number]))
            else:
                continue
            if candidate is not None:
                found.append(candidate)
        return found

    def _all_values(self, view: NodeCounts, number: int, gain: float) -> _Candidate | None:
        sizes = _sizes(view, number)
        return _Candidate(number, gain, sizes) if np.count_nonzero(sizes >= self.min_rows) >= 2 else None

    def _threshold(self, view: NodeCounts, number: int) -> _Candidate | None:
        occurring = np.flatnonzero(_sizes(view, number))
        cuts = (occurring[:-1] + occurring[1:] + 1) // 2
        left = view.left_of(number, cuts)
        left_rows = left.sum(axis=-1)
        large = (left_rows >= self.min_rows) & (view.rows - left_rows >= self.min_rows)
        gains = self.score(left) + self.score(view.node - left) - self.score(view.node)
        place = first_best(np.where(large, gains, -np.inf), view.rounding)
        if place is None:
            return None
        sizes = np.array([left_rows[place], view.rows - left_rows[place]])
        return _Candidate(number, float(gains[place]), sizes, int(cuts[place]), int(np.count_nonzero(large)))


def _sizes(view: NodeCounts, number: int) -> Counts:
    """The rows of each value of an attribute."""
    start = int(view.layout.starts[number])
    sizes: Counts = view.counts[start : start + view.layout.attributes[number].size].sum(axis=-1)
    return sizes


@dataclass(frozen=True)
class _ByRatio(_ByScore):
    """The gain ratio, among candidates of at least average gain: else a split into many tiny branches would win."""

    def _chosen(self, view: NodeCounts, candidates: list[_Candidate]) -> _Candidate | None:
        gains = np.array([(candidate.gain - np.log2(candidate.tries)) / view.rows for candidate in candidates])
        worth = gains > ROUNDING
        if not worth.any():
            return None
        split_information = np.array([-_minus_split_bits(candidate.sizes) / view.rows for candidate in candidates])
        good = worth & (gains >= np.mean(gains[worth]) - ROUNDING)
        place = first_best(np.where(good, gains / split_information, -np.inf), ROUNDING)
        return None if place is None else candidates[place]


def _minus_split_bits(sizes: Counts) -> float:
    """Minus the rows times the entropy of the branch that a row goes to, in bits."""
    return float(times_logarithm(sizes).sum() - times_logarithm(sizes.sum()))
