"""Rank scores of stretches: those of the grid points in them, and exact up to the most rows that there can be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpmine.kernel.scores import RankScore

COUNTS = st.lists(st.integers(0, 3), min_size=1, max_size=30)


def stretches_of(counts: list[int]) -> tuple[list[int], list[int]]:
    """Occupied points and the gaps around them: rows in each, points in each."""
    rows: list[int] = []
    points: list[int] = []
    for count in counts:
        if count == 0 and rows and rows[-1] == 0:
            points[-1] += 1
        else:
            rows.append(count)
            points.append(1)
    return rows, points


@given(COUNTS, st.integers(1, 999))
def test_a_stretch_has_the_score_of_each_of_its_points(counts: list[int], numerator: int) -> None:
    score = RankScore(numerator, 1000)
    rows, points = stretches_of(counts)
    of_stretches = score.of(np.array(rows, dtype=np.int64))
    assert np.repeat(of_stretches, points).tolist() == score.of(np.array(counts, dtype=np.int64)).tolist()


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=8), st.integers(1, 999))
def test_scores_of_the_most_rows_are_exact(counts: list[int], p: int) -> None:
    shrunk = [count * (2**31 - 1) // max(sum(counts), 1) for count in counts]
    rows, q, exact = sum(shrunk), 1000, []
    for place, count in enumerate(shrunk):
        below = sum(shrunk[:place])
        exact.append(-max(0, q * below - p * rows, q * (rows - below - count) - (q - p) * rows))
    assert RankScore(p, q).of(np.array(shrunk, dtype=np.int64)).tolist() == exact
