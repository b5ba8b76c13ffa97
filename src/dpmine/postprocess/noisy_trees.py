"""Trees of noisy counts made consistent: Friedman and Schuster 2010, Algorithm 3, and least squares after Hay et al. 2010.

A node's rows are its children's rows together, but noisy counts do not add up, and some are negative. Algorithm 3 scales
them until they do. Least squares weighs every number by its variance and gives the best estimate that adds up. Everything
here reads noisy numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.postprocess.error_limits import expected_errors

Counts = NDArray[np.float64]

_ROUNDING = 1e-9  # a leaf that is worse than its subtree by less than this is as good


@dataclass(eq=False)
class CountedNode:
    """A node and what was measured there, in the order of the classes.

    rows               the noisy number of rows, None where it was not asked for on its own
    classes            the noisy number of rows of each class, None where it was not asked for
    rows_variance      of the noise in `rows`
    classes_variance   of the noise in each number of `classes`, the same for all
    pruned             whether the node has become a leaf; its children stay, so that parallel trees can be read together
    """

    rows: float | None = None
    classes: Counts | None = None
    children: list[CountedNode] = field(default_factory=list)
    rows_variance: float = 1.0
    classes_variance: float = 1.0
    pruned: bool = False

    @property
    def is_leaf(self) -> bool:
        return self.pruned or not self.children

    def nodes(self) -> Iterator[CountedNode]:
        """This node and all below, parents first, from left to right."""
        yield self
        for child in self.children:
            yield from child.nodes()


# -- Algorithm 3 -------------------------------------------------------------------------------------------------------


def prune_as_published(root: CountedNode, confidence: float = 0.25) -> list[CountedNode]:
    """Algorithm 3 (lines 2 to 6) in place: the counts are made consistent, then C4.5 prunes by them."""
    top_down_correct(root)  # line 3
    bottom_up_aggregate(root)  # line 4
    return prune_by_error(root, confidence)  # line 5


def top_down_correct(root: CountedNode) -> None:
    """Algorithm 3, lines 7 to 16, in place: scale the children's rows to add up to their parent's.

    Noise can make counts negative and their sum zero, where line 12 divides by it: negative counts are taken as 0, and
    where no child has a row left the parent's rows are shared evenly. A node that was not counted on its own counts as many
    rows as its classes together, or else as its children.
    """
    _correct(root, max(_counted_rows(root), 0.0))


def _correct(node: CountedNode, fixed: float) -> None:
    counted = [max(_counted_rows(child), 0.0) for child in node.children]
    node.rows = fixed  # line 8
    for child, share in zip(node.children, _shares(counted), strict=True):  # lines 9 to 14
        _correct(child, fixed * share)


def _counted_rows(node: CountedNode) -> float:
    if node.rows is not None:
        return float(node.rows)
    if node.classes is not None:
        return float(np.sum(node.classes))
    if not node.children:
        raise RequestError("A leaf needs a noisy count, of its rows or of each class.")
    return sum(_counted_rows(child) for child in node.children)


def bottom_up_aggregate(root: CountedNode) -> None:
    """Algorithm 3, lines 17 to 29, in place: scale the class counts of each leaf to its rows, and add them up.

    Negative class counts are taken as 0. A leaf without any positive one knows nothing of its classes and gets the same
    number of rows of each, where line 19 would divide by zero.
    """
    if not root.children:  # lines 18 to 21
        if root.classes is None or root.rows is None:
            raise RequestError("Every leaf needs class counts, and its rows from the pass before.")
        root.classes = root.rows * np.array(_shares([max(float(count), 0.0) for count in root.classes]))
        return
    for child in root.children:  # line 24
        bottom_up_aggregate(child)
    counts = [child.classes for child in root.children if child.classes is not None]  # all of them, by line 24
    root.classes = np.sum(counts, axis=0)  # lines 25 to 27


def _shares(counts: list[float]) -> list[float]:
    """Shares in proportion to counts that are not negative; even ones where all are 0."""
    largest = max(counts, default=0.0)
    if largest <= 0:
        return [1 / len(counts) for _ in counts]
    scaled = [count / largest for count in counts]  # so that no sum overflows and no share of tiny counts is lost
    total = sum(scaled)
    return [count / total for count in scaled]


# -- C4.5's pruning ----------------------------------------------------------------------------------------------------


def prune_by_error(root: CountedNode, confidence: float = 0.25) -> list[CountedNode]:
    """Turn nodes into leaves, from the bottom up, where that is expected to make no more errors; which ones, outermost only.

    Reads the class counts of every node, so they must be consistent and not negative. The errors are those of C4.5
    (`upper_error`). Subtrees are replaced and never raised: to raise one, its rows would have to be counted again.
    """
    _prune(root, confidence)
    return list(_new_leaves(root))


def _prune(node: CountedNode, confidence: float) -> float:
    """The errors to expect below the node, after pruning."""
    if node.classes is None:
        raise RequestError("Pruning needs the class counts of every node.")
    rows = float(np.sum(node.classes))
    as_leaf = expected_errors(rows - float(np.max(node.classes)), rows, confidence)
    if not node.children:
        return as_leaf
    as_subtree = sum(_prune(child, confidence) for child in node.children)
    if as_leaf <= as_subtree + _ROUNDING:
        node.pruned = True
        return as_leaf
    return as_subtree


def _new_leaves(node: CountedNode) -> Iterator[CountedNode]:
    if node.pruned:
        yield node
        return
    for child in node.children:
        yield from _new_leaves(child)


# -- least squares -----------------------------------------------------------------------------------------------------


def least_squares(root: CountedNode) -> CountedNode:
    """The tree of class counts that add up, nearest to all measured numbers in squares weighted by one over the variance.

    Every leaf needs class counts; elsewhere rows and class counts may have been measured or not. Rows that were measured on
    their own count as a measurement of the sum of the classes. The result is a new tree in which `classes` are the
    estimates and `rows` their sum; estimates may be negative and `classes_variance` is no longer meant.

    The noise has the same variance in all classes of a node, so the problem falls into two that do not touch: the sum over
    the classes, which rows measure too, and how each class differs from the mean class. Each is solved in two passes.
    """
    _check(root)
    classes = len(next(node.classes for node in root.nodes() if node.classes is not None))
    apart = _Estimate.bottom_up(root, classes)
    together = _Estimate.bottom_up(root, None)
    apart.top_down(apart.numbers)
    together.top_down(together.numbers)
    return _joined(apart, together)


def _check(root: CountedNode) -> None:
    for node in root.nodes():
        if node.classes is None and not node.children:
            raise RequestError("Least squares needs the class counts of every leaf.")
        if node.rows_variance <= 0 or node.classes_variance <= 0:
            raise RequestError("Least squares needs variances above 0.")


@dataclass(eq=False)
class _Estimate:
    """An estimate of a node's numbers; after the pass up from the node and all below, after the pass down from all."""

    numbers: Counts
    variance: float
    children: list[_Estimate]

    @classmethod
    def bottom_up(cls, node: CountedNode, classes: int | None) -> _Estimate:
        """Hay's z, for any variances: the mean of the own measurements and the children's sum, weighted by precision.

        `classes` is None for the tree of sums over the classes.
        """
        children = [cls.bottom_up(child, classes) for child in node.children]
        known = _measured(node, classes)
        if children:
            total = np.sum([child.numbers for child in children], axis=0)
            known.append((total, sum(child.variance for child in children)))
        precision = sum(1 / variance for _, variance in known)
        numbers = np.sum([estimate / variance for estimate, variance in known], axis=0) / precision
        return cls(numbers, 1 / precision, children)

    def top_down(self, final: Counts) -> None:
        """Hay's h: what the children's sum lacks is shared by the children in proportion to their variances."""
        self.numbers = final
        if self.children:
            lacking = final - np.sum([child.numbers for child in self.children], axis=0)
            variance = sum(child.variance for child in self.children)
            for child in self.children:
                child.top_down(child.numbers + lacking * (child.variance / variance))


def _measured(node: CountedNode, classes: int | None) -> list[tuple[Counts, float]]:
    """What was measured at a node of one of the two trees, with variances."""
    measured: list[tuple[Counts, float]] = []
    if node.classes is not None:
        numbers = np.asarray(node.classes, dtype=np.float64)
        if classes is not None:
            return [(numbers, node.classes_variance)]
        measured.append((np.array([numbers.sum()]), len(numbers) * node.classes_variance))
    if classes is None and node.rows is not None:
        measured.append((np.array([float(node.rows)]), node.rows_variance))
    return measured


def _joined(apart: _Estimate, together: _Estimate) -> CountedNode:
    """The class counts moved by the same amount in every class, so that their sum is the estimate of the sum."""
    numbers = apart.numbers + (together.numbers[0] - apart.numbers.sum()) / len(apart.numbers)
    pairs = zip(apart.children, together.children, strict=True)
    return CountedNode(float(together.numbers[0]), numbers, [_joined(*pair) for pair in pairs])
