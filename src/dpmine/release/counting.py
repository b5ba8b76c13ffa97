"""Noisy counts of the groups that a set of cuts makes, and the groups of other rows under the same cuts."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import EpsilonError, RequestError
from dpmine.codes.domain import MOST_ROWS
from dpmine.facts.encoding import Codes
from dpmine.language.keys import AttributeKey
from dpmine.models.cuts import Cut, combinations
from dpmine.noise.spread import of_counts
from dpmine.noise.thresholds import threshold_for
from dpmine.questions.sparse_histogram import MOST_SPARSE_KEYS
from dpmine.release.released import GroupCounting
from dpmine.tables.private_table import PrivateTable

AUTO = "auto"
MOST_GROUPS = 1_000_000  # with the published threshold of 1: noise lifts up to half of the empty ones over it
MOST_PHANTOM_RECORDS = 10_000_000
MOST_GROUPS_AUTO = 2**59  # with a threshold that follows from how many empty groups may show up
MOST_CUT_ATTRIBUTES = MOST_SPARSE_KEYS - 1  # beside the class

Integers = NDArray[np.int64]


def most_groups(threshold: int | str, epsilon: Epsilon) -> int:
    """How many groups, empty or not and by class, may be counted under a threshold: a given one lets many empty ones pass.

    All empty, they would have at most ten million records, whatever epsilon their counts get.
    """
    if threshold == AUTO:
        return MOST_GROUPS_AUTO
    in_all = GroupCounting(epsilon, int(threshold), MOST_GROUPS).phantom_records if epsilon.units else math.inf
    return int(MOST_GROUPS * min(MOST_PHANTOM_RECORDS / max(in_all, 1), 1))


def at_least(threshold: int | str, groups: int, epsilon: Epsilon) -> int:
    """The smallest count that is released: as given, or such that about 1,000 of so many groups pass by noise alone."""
    return threshold_for(groups, of_counts(epsilon)) if threshold == AUTO else int(threshold)


def check_threshold(threshold: int | str, epsilon: Epsilon) -> None:
    """Refuse, before anything is spent, an epsilon so small that an automatic threshold would lie beyond any count."""
    if threshold == AUTO and epsilon.units and threshold_for(MOST_GROUPS_AUTO, of_counts(epsilon)) > MOST_ROWS:
        raise EpsilonError("epsilon is too small for threshold='auto': no count would reach it.")


def check_attributes(cuts: Sequence[Cut]) -> None:
    """Refuse, before anything is spent, more attributes than one histogram can hold."""
    if sum(len(cut) > 1 for cut in cuts) > MOST_CUT_ATTRIBUTES:
        raise RequestError(f"At most {MOST_CUT_ATTRIBUTES} attributes can be released with more than one value each.")


def count_groups(
    private: PrivateTable, cuts: Sequence[Cut], epsilon: Epsilon, threshold: int | str
) -> tuple[Integers, Integers, GroupCounting]:
    """The groups that reach the threshold in some class, their noisy counts by class, and how they were counted.

    Groups without rows get noise too.

    A group is given by the number of its value in each cut. Counts below the threshold are 0.
    """
    classes = len(private.schema.class_labels)
    keys = [key for cut in cuts if (key := cut.key()) is not None]
    target = AttributeKey(private.schema.require_class())
    possible = combinations(cuts, classes)
    lowest = at_least(threshold, possible, epsilon)
    sparse = private.sparse_histogram(*keys, target, epsilon=epsilon, at_least=lowest)
    group, label = np.divmod(sparse.numbers, classes)  # the class is the last key
    starts = np.diff(group, prepend=-1) > 0
    left = group[starts]
    groups = np.zeros((len(left), len(cuts)), dtype=np.int64)
    for place in range(len(cuts) - 1, -1, -1):
        if len(cuts[place]) > 1:
            left, groups[:, place] = np.divmod(left, len(cuts[place]))
    table = np.zeros((len(groups), classes), dtype=np.int64)
    table[np.cumsum(starts) - 1, label] = sparse.counts
    return groups, table, GroupCounting(epsilon, lowest, possible)


def groups_of(cuts: Sequence[Cut], rows: Mapping[str, Codes], count: int) -> Integers:
    """For each of some rows the number of its value in each cut."""
    groups = np.zeros((count, len(cuts)), dtype=np.int64)
    for place, cut in enumerate(cuts):
        value_of_code = np.zeros(cut.attribute.size, dtype=np.int64)
        for number, value in enumerate(cut.values()):
            value_of_code[list(value.codes)] = number
        groups[:, place] = value_of_code[rows[cut.attribute.name]]
    return groups
