"""When a tree stops growing: how deep it may be, and too few rows (Friedman and Schuster 2010, Algorithms 1 and 2)."""

import math
from collections.abc import Sequence

from dpmine.base.epsilon import Epsilon
from dpmine.facts.schema import Schema
from dpmine.mining.parameters import check_number
from dpmine.mining.trees.growing import Sprout
from dpmine.noise.spread import of_counts

DEEPEST = 20  # levels of a tree


def check_depth(max_depth: object) -> int:
    """max_depth, or an error that says what it may be."""
    check_number("max_depth", max_depth, 1, DEEPEST, whole=True)
    return int(max_depth)  # type: ignore[call-overload, no-any-return]


def without(nodes: list[Sprout], stopped: list[Sprout]) -> list[Sprout]:
    """The nodes that go on growing."""
    left_out = set(stopped)
    return [node for node in nodes if node not in left_out]


def too_few(node: Sprout, epsilon: Epsilon, schema: Schema, numeric: Sequence[str] = ()) -> bool:
    """Line 9 of Algorithms 1 and 2: no attribute is left, or too few rows for the counts below to rise out of the noise.

    t is the largest number of branches that an attribute at hand could make; one that is split at a point makes 2.
    """
    branches = [len(key.labels(schema)) for key in node.keys]
    branches += [2 for name in numeric if node.thresholds(name, schema) is not None]
    if not branches:
        return True
    assert node.rows is not None
    return node.rows / (max(branches) * len(schema.class_labels)) < math.sqrt(2) * float(of_counts(epsilon).fraction)
