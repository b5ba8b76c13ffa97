"""Ordinary learners on released records: what they find out is as public as the release itself."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpmine.base.public_random import public_generator
from dpmine.baselines import GreedyTree
from dpmine.baselines.greedy import ReferenceTree
from dpmine.release.released import ReleasedTable
from dpmine.report.release_page import SelfTest

LEARNER = "a tree of depth 6"
DEPTH = 6  # two-way splits: at most 127 nodes, which is always small enough to ask the private table about
MOST_LESSONS = 100_000  # records that a learner is given: more would not teach it more
TEST_SHARE = 3  # one of so many rows is tried, the others teach

Codes = NDArray[np.int64]


def records_of(released: ReleasedTable, seed: int) -> tuple[dict[str, Codes], Codes]:
    """Released records drawn into the raw domains, and their classes; the same for the same seed."""
    codes, classes = released.raw_codes(seed)
    return {name: column[:MOST_LESSONS] for name, column in codes.items()}, classes[:MOST_LESSONS]


def learned_tree(released: ReleasedTable, seed: int) -> ReferenceTree:
    """The tree that all of the release teaches."""
    return taught(GreedyTree(max_depth=DEPTH), *records_of(released, seed), released)


def self_test(released: ReleasedTable, seed: int) -> SelfTest:
    """Taught by two thirds of the released records and tried on the others."""
    codes, classes = records_of(released, seed)
    tested = test_part(len(classes), seed)
    tree = taught(GreedyTree(max_depth=DEPTH), of_part(codes, ~tested), classes[~tested], released)
    accuracy = accuracy_of(tree, of_part(codes, tested), classes[tested])
    return SelfTest(LEARNER, accuracy, majority_of(classes[tested]))


def taught(learner: ReferenceTree, codes: Mapping[str, Codes], classes: Codes, released: ReleasedTable) -> ReferenceTree:
    return learner.fit_codes(codes, classes, released.schema)  # type: ignore[arg-type]


def accuracy_of(tree: ReferenceTree, codes: Mapping[str, Codes], classes: Codes) -> float:
    """The share of rows that a tree is right about; 0 where there are none."""
    right = tree.predict_codes(codes, len(classes)) == classes  # type: ignore[arg-type]
    return float(right.mean()) if len(classes) else 0.0


def majority_of(classes: Codes) -> float:
    """The share of the most frequent class; 0 where there are no rows."""
    return float(np.bincount(classes).max() / len(classes)) if len(classes) else 0.0


def test_part(count: int, seed: int) -> NDArray[np.bool_]:
    """A random third of so many rows."""
    return np.asarray(public_generator(seed).permutation(count) % TEST_SHARE == 0)


def of_part(codes: Mapping[str, Codes], chosen: NDArray[np.bool_]) -> dict[str, Codes]:
    return {name: column[chosen] for name, column in codes.items()}
