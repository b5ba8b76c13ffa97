"""NOT PRIVATE: Quinlan's C4.5 (1993, and release 8 of 1996) on true rows, the reference for DiffP-C4.5.

Left out of Quinlan's program: grouping of values, fractional rows for missing values (a gap is a value like others), and
raising of subtrees.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.baselines.greedy import (
    ROUNDING,
    SCORES,
    Choice,
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
from dpmine.facts.kinds.kind import Ordered
from dpmine.language.candidates import every_category
from dpmine.models.trees import Node
from dpmine.postprocess.error_limits import expected_errors, upper_error

GAIN_RATIO = "gainratio"
AS_GOOD = 1e-9  # a leaf that is worse than its subtree by less than so many errors is as good


class C45(ReferenceTree):
    """NOT PRIVATE. Splits nominal attributes into all values, once on a path, and numeric ones in two, again and again.

    A split counts only if at least two of its branches have `min_rows` rows. With the gain ratio, a numeric attribute first
    takes the threshold of the largest gain, which pays for the choice among k thresholds by log2(k) / rows (release 8);
    then the largest ratio wins among attributes of at least average gain. With the other scores the largest one wins.
    Thresholds lie in the middle between neighbouring grid points that occur in the node; a gap is to the right of all, and
    a threshold of its own tells it from them unless the schema drops it. Of equal attributes the first in the schema is
    taken, of equal thresholds the lowest.

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
        return _pruned(root, self.confidence)[0] if self.pruning else root


def _pruned(node: Node, confidence: float) -> tuple[Node, float]:
    """The node after pruning from the bottom up, and the errors to expect below it: `prune_by_error` of true counts."""
    rows = sum(node.rows)
    as_leaf = expected_errors(rows - max(node.rows), rows, confidence)
    if not node.children:
        return node, as_leaf
    below = [_pruned(child, confidence) for child in node.children]
    as_subtree = sum(errors for _, errors in below)
    if as_leaf <= as_subtree + AS_GOOD:
        return Node(node.rows, node.shares), as_leaf
    return Node(node.rows, node.shares, node.split, tuple(child for child, _ in below)), as_subtree


@dataclass(frozen=True)
class _Candidates:
    """The best split of every node by every attribute: all are [nodes, attributes] but the cuts.

    gains   counted over all rows of the node; minus infinity where an attribute cannot split it
    bits    the rows of the node times the entropy of the branch that a row goes to
    tries   among how many thresholds the split was chosen
    cuts    by node and number of a numeric attribute, the first code of the right branch
    """

    gains: Scores
    bits: Scores
    tries: Counts
    cuts: dict[tuple[int, int], int]


@dataclass(frozen=True)
class _ByScore(Chooser):
    """One candidate an attribute, by the largest gain in the score."""

    score: Callable[[Counts], Scores]
    min_rows: int

    def best_of_all(self, layout: Layout, counts: Counts, nodes: Counts, opened: NDArray[np.bool_]) -> list[Choice]:
        if not layout.attributes:
            return [None] * len(nodes)
        candidates = self._candidates(layout, counts, nodes, opened)
        rows = nodes.sum(axis=-1)[:, np.newaxis]
        worth = (candidates.gains > ROUNDING * rows) & (rows >= 2 * self.min_rows)
        scores, rounding = self._compared(candidates, worth, rows)
        best = np.max(scores, axis=1, keepdims=True)
        numbers = np.argmax(scores >= best - rounding, axis=1)  # of equal ones the first
        return [
            None if top == -np.inf else self._choice(layout, candidates, node, number)
            for node, (top, number) in enumerate(zip(best[:, 0].tolist(), numbers.tolist(), strict=True))
        ]

    def _choice(self, layout: Layout, candidates: _Candidates, node: int, number: int) -> Choice:
        if (node, number) in candidates.cuts:
            return threshold_key(layout, number, candidates.cuts[node, number]), None
        return every_category(layout.schema, layout.attributes[number].name), number

    def _compared(self, candidates: _Candidates, worth: NDArray[np.bool_], rows: Counts) -> tuple[Scores, Scores | float]:
        """By what the candidates of a node are compared, minus infinity for those out of question, and its rounding."""
        rounding: Scores = ROUNDING * rows.astype(np.float64)
        return np.where(worth, candidates.gains, -np.inf), rounding

    def _candidates(self, layout: Layout, counts: Counts, nodes: Counts, opened: NDArray[np.bool_]) -> _Candidates:
        branches = layout.by_branch(counts)
        sizes = branches.sum(axis=-1)
        large = np.add.reduceat((sizes >= self.min_rows).astype(np.intp), layout.starts, axis=1)
        gains = np.add.reduceat(self.score(branches), layout.starts, axis=1) - self.score(nodes)[:, np.newaxis]
        gains[~opened | (large < 2)] = -np.inf
        bits = times_logarithm(nodes.sum(axis=-1))[:, np.newaxis]
        bits = bits - np.add.reduceat(times_logarithm(sizes), layout.starts, axis=1)
        candidates = _Candidates(gains, bits, np.ones_like(opened, dtype=np.int64), {})
        if layout.numeric:
            gains[:, layout.numeric] = -np.inf
            for node, one in enumerate(zip(counts, nodes, opened, strict=True)):
                view = NodeCounts(layout, *one)
                for number in layout.numeric:
                    self._put_threshold(view, node, number, candidates)
        return candidates

    def _put_threshold(self, view: NodeCounts, node: int, number: int, candidates: _Candidates) -> None:
        """Enter a node's best threshold of a numeric attribute, if there is any."""
        start = int(view.layout.starts[number])
        attribute = view.layout.attributes[number]
        assert isinstance(attribute, Ordered)
        occurring = np.flatnonzero(view.counts[start : start + attribute.last_cut + 1].any(axis=-1))
        # Between a number and a gap there is no middle: the threshold tells the gap from every number.
        cuts = np.where(occurring[1:] == attribute.missing_code, occurring[1:], (occurring[:-1] + occurring[1:] + 1) // 2)
        left = view.left_of(number, cuts)
        left_rows = left.sum(axis=-1)
        large = (left_rows >= self.min_rows) & (view.rows - left_rows >= self.min_rows)
        gains = self.score(left) + self.score(view.node - left) - self.score(view.node)
        place = first_best(np.where(large, gains, -np.inf), view.rounding)
        if place is None:
            return
        sizes = np.array([left_rows[place], view.rows - left_rows[place]])
        candidates.gains[node, number] = gains[place]
        candidates.bits[node, number] = times_logarithm(sizes.sum()) - times_logarithm(sizes).sum()
        candidates.tries[node, number] = np.count_nonzero(large)
        candidates.cuts[node, number] = int(cuts[place])


@dataclass(frozen=True)
class _ByRatio(_ByScore):
    """The gain ratio, among candidates of at least average gain: else a split into many tiny branches would win."""

    def _compared(self, candidates: _Candidates, worth: NDArray[np.bool_], rows: Counts) -> tuple[Scores, Scores | float]:
        gains = (candidates.gains - np.log2(candidates.tries)) / rows
        worth = worth & (gains > ROUNDING)
        average = np.where(worth, gains, 0).sum(axis=1, keepdims=True) / np.maximum(worth.sum(axis=1, keepdims=True), 1)
        good = worth & (gains >= average - ROUNDING)
        ratios = np.full(gains.shape, -np.inf)
        ratios[good] = gains[good] / (candidates.bits / rows)[good]
        return ratios, ROUNDING
