"""NOT PRIVATE: a released table beside the rows that it was made from, for their owner alone.

Everything here reads true rows. What it returns is of a type that the public page does not take.
"""

from typing import Any

import numpy as np

from dpmine.base.public_random import public_generator
from dpmine.baselines import C45, GreedyTree
from dpmine.models.trees import encode_rows, rows_with_class
from dpmine.release.bars import axes_of
from dpmine.release.learning import (
    DEPTH,
    LEARNER,
    MOST_LESSONS,
    accuracy_of,
    majority_of,
    of_part,
    records_of,
    taught,
    test_part,
)
from dpmine.release.released import ReleasedTable
from dpmine.report.release_page import OwnerView, TrueUtility


def owner_view(table: Any, released: ReleasedTable, seed: int) -> OwnerView:
    """NOT PRIVATE. True rows in each bar, and what learners make of the rows and of the release."""
    axes = axes_of(released)
    encoded, _ = encode_rows(table, released.schema, [axis.name for axis in axes])
    has_class = rows_with_class(encoded[released.target], released.schema)
    rows = {name: column[has_class].astype(np.int64) for name, column in encoded.items()}
    bars = {axis.name: axis.count(rows[axis.name]) for axis in axes}

    classes = rows.pop(released.target)
    tested = test_part(len(classes), seed)
    test_rows, test_classes = of_part(rows, tested), classes[tested]
    # In a random order: files are sorted often, and their first rows alike.
    lessons = public_generator(seed).permutation(np.flatnonzero(~tested))[:MOST_LESSONS]
    true_rows, true_classes = {name: column[lessons] for name, column in rows.items()}, classes[lessons]
    utility = []
    for name, learner in (("C4.5", C45), (LEARNER, lambda: GreedyTree(max_depth=DEPTH))):
        from_rows = taught(learner(), true_rows, true_classes, released)
        from_release = taught(learner(), *records_of(released, seed), released)
        accuracies = (accuracy_of(tree, test_rows, test_classes) for tree in (from_rows, from_release))
        utility.append(TrueUtility(name, *accuracies))
    return OwnerView(bars, tuple(utility), majority_of(test_classes), len(lessons), len(test_classes))
