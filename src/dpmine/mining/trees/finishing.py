"""From a grown tree with raw noisy counts to the tree that is kept. Post-processing: it costs nothing."""

import numpy as np

from dpmine.mining.trees.growing import Sprout
from dpmine.models.trees import Node, Shares, leaf, millionths, whole_rows
from dpmine.postprocess.noisy_trees import CountedNode, least_squares, prune_as_published

TINY = 1e-12  # a variance that rounded to nothing: the noise of a huge epsilon


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
    children = [counted_tree(child) for child in sprout.children]
    return CountedNode(sprout.rows, classes, children, max(sprout.rows_deviation**2, TINY), max(sprout.deviation**2, TINY))


def kept(sprout: Sprout, counted: CountedNode) -> Node:
    """The tree with the counts that post-processing gave every node, and without what it pruned."""
    assert counted.classes is not None
    node = leaf(counted.classes)
    if counted.is_leaf:
        return node
    pairs = zip(sprout.children, counted.children, strict=True)
    return Node(node.rows, node.shares, sprout.split, tuple(kept(child, counts) for child, counts in pairs))


def smoothed(sprout: Sprout, strength: float) -> Node:
    """A tree of consistent counts whose nodes lean on those above: as if each began with some rows that look like those.

    How many follows from the deviation of the noise in its counts. Where there are many more rows, nothing changes.
    """
    return _smoothed(sprout, least_squares(counted_tree(sprout)), strength, None)


def _smoothed(sprout: Sprout, counted: CountedNode, strength: float, above: Shares | None) -> Node:
    counts = counted.classes
    assert counts is not None
    noise = float(np.sqrt(sum(leaf.deviation**2 for leaf in sprout.leaves())))
    prior = np.full(len(counts), 1 / len(counts)) if above is None else above
    weights = np.maximum(counts, 0) + (1 + strength * noise) * prior
    shares = weights / weights.sum()
    pairs = zip(sprout.children, counted.children, strict=True)
    children = tuple(_smoothed(child, counts_below, strength, shares) for child, counts_below in pairs)
    return Node(whole_rows(counts), millionths(weights), sprout.split, children)
