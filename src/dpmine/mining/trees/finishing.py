"""From a grown tree with raw noisy counts to the tree that is kept. Post-processing: it costs nothing."""

from __future__ import annotations

import numpy as np

from dpmine.mining.trees.growing import Sprout
from dpmine.postprocess.noisy_trees import CountedNode, prune_as_published
from dpmine.tree_models import Node, Shares, leaf, millionths, whole_rows


def as_counted(sprout: Sprout) -> Node:
    """The tree as published without pruning: a leaf follows its own noisy class counts, a node the sum of its leaves."""
    if sprout.split is None:
        assert sprout.classes is not None
        return leaf(sprout.classes.astype(np.float64))
    children = tuple(as_counted(child) for child in sprout.children)
    counts = np.sum([child.rows for child in children], axis=0)
    return Node(whole_rows(counts), millionths(counts), sprout.split, children)


def pruned(sprout: Sprout, confidence: float) -> Node:
    """The tree after Algorithm 3: counts made consistent, subtrees replaced by leaves where that makes no more errors."""
    counted = counted_tree(sprout)
    prune_as_published(counted, confidence)
    return kept(sprout, counted)


def counted_tree(sprout: Sprout) -> CountedNode:
    """The noisy counts of a grown tree, node for node."""
    classes = None if sprout.classes is None else sprout.classes.astype(np.float64)
    return CountedNode(sprout.rows, classes, [counted_tree(child) for child in sprout.children])


def kept(sprout: Sprout, counted: CountedNode) -> Node:
    """The tree with the counts that post-processing gave every node, and without what it pruned."""
    assert counted.classes is not None
    node = leaf(counted.classes)
    if counted.is_leaf:
        return node
    pairs = zip(sprout.children, counted.children, strict=True)
    return Node(node.rows, node.shares, sprout.split, tuple(kept(child, counts) for child, counts in pairs))


def smoothed(sprout: Sprout, deviations: dict[int, float], strength: float) -> Node:
    """A tree whose leaves lean on the nodes above: as if every node began with some rows that look like its parent.

    How many follows from the deviation of the leaf's noise. Where there are many more rows than noise, nothing changes.
    """
    return _smoothed(sprout, deviations, strength, None)


def _smoothed(sprout: Sprout, deviations: dict[int, float], strength: float, above: Shares | None) -> Node:
    leaves = list(sprout.leaves())
    counts = np.sum([leaf.classes for leaf in leaves if leaf.classes is not None], axis=0).astype(np.float64)
    noise = float(np.sqrt(sum(deviations[id(leaf)] ** 2 for leaf in leaves)))
    prior = np.full(len(counts), 1 / len(counts)) if above is None else above
    weights = np.maximum(counts, 0) + (1 + strength * noise) * prior
    shares = weights / weights.sum()
    if sprout.split is None:
        return Node(whole_rows(counts), millionths(weights))
    children = tuple(_smoothed(child, deviations, strength, shares) for child in sprout.children)
    return Node(whole_rows(counts), millionths(weights), sprout.split, children)
