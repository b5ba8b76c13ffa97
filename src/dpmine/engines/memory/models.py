"""Models of trees, row by row: the label of the largest sum of scores, or the band of one sum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import BandedSum, LargestSum, LeafScores, RowKey, RowScores, ScoreBranch
from dpmine.engines.memory.columns import Column
from dpmine.engines.memory.rows import Codes, Integers
from dpmine.facts.encoding import smallest_type


@dataclass(frozen=True, eq=False, repr=False)
class LargestSumColumn:
    """The place of each row's largest sum; of equal ones the first."""

    key: LargestSum
    splits: Mapping[RowKey, Column]

    def values(self, rows: slice) -> Codes:
        sums = _sums(self.key.trees, self.key.size, self.splits, rows)
        places: Codes = np.argmax(sums, axis=1).astype(smallest_type(self.key.size))
        return places


@dataclass(frozen=True, eq=False, repr=False)
class BandedSumColumn:
    """The band of each row's sum; a band holds its lower edge."""

    key: BandedSum
    splits: Mapping[RowKey, Column]

    def values(self, rows: slice) -> Codes:
        sums = _sums(self.key.trees, 1, self.splits, rows)[:, 0]
        edges = np.array(self.key.edges, dtype=np.int64)
        places: Codes = np.searchsorted(edges, sums, side="right").astype(smallest_type(self.key.size))
        return places


def _sums(trees: Sequence[RowScores], scores: int, splits: Mapping[RowKey, Column], rows: slice) -> Integers:
    """[rows, scores]: the scores of the leaves that each row reaches, added up, only for the chunk at hand."""
    count = rows.stop - rows.start
    labels = {split: column.values(rows) for split, column in splits.items()}
    sums = np.zeros((count, scores), dtype=np.int64)
    for tree in trees:
        _add_scores(tree, np.arange(count), labels, sums)
    return sums


def _add_scores(tree: RowScores, places: NDArray[np.intp], labels: Mapping[RowKey, Codes], sums: Integers) -> None:
    if isinstance(tree, LeafScores):
        sums[places] += np.array(tree.scores, dtype=np.int64)
        return
    assert isinstance(tree, ScoreBranch)
    here = labels[tree.key][places]
    for label, child in enumerate(tree.children):
        _add_scores(child, places[here == label], labels, sums)


def splits_of(trees: Sequence[RowScores]) -> dict[RowKey, None]:
    """Every key that a model's trees split by."""
    keys: dict[RowKey, None] = {}
    waiting = list(trees)
    while waiting:
        tree = waiting.pop()
        if isinstance(tree, ScoreBranch):
            keys[tree.key] = None
            waiting.extend(tree.children)
    return keys
