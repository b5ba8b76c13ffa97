"""Scores: one row moves every candidate the same way and by at most R; R is tight; the numbers are the papers'."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from support.laws import exponential_law, privacy_loss

from dpmine.codes.rows import Recode
from dpmine.codes.splits import ResolvedMultiway, ResolvedSubsets, ResolvedThresholds
from dpmine.kernel.scores import (
    CountScore,
    GiniScore,
    InfoGainScore,
    MaxScore,
    Score,
    score_named,
)

MOST_ROWS = 2**31 - 1
BOUNDS = [1, 2, 3, 10, 30, 8191, 8192, 8193, 10_000, 2**14, 100_000, 10**6, MOST_ROWS]
SIMPLE = [CountScore(), MaxScore(), GiniScore()]
EVERY = [*SIMPLE, *map(InfoGainScore, BOUNDS)]
RISES = {"count": 1, "max": 1, "gini": -1, "infogain": -1}


def name_of(score: Score) -> str:
    return score.name + (f" up to {score.rows_at_most} rows" if isinstance(score, InfoGainScore) else "")


def changes(score: Score, tables: np.ndarray) -> np.ndarray:
    """For each table [branches, classes] and each place a row can be added to: by how much the candidate's score moves."""
    branches, classes = tables.shape[1:]
    before = score.branch(tables).sum(axis=1)
    moved = []
    for place in np.ndindex(branches, classes):
        more = tables.copy()
        more[(slice(None), *place)] += 1
        moved.append(score.branch(more).sum(axis=1) - before)
    return np.stack(moved, axis=1)


def keeps_its_range(score: Score, claimed: int, tables: np.ndarray) -> bool:
    """Whether one row moves all candidates in one direction, and no two of them apart by more than the claimed range.

    Any two tables can be two candidates for the same rows' split as far as a score knows, and a candidate that does
    not move exists (an empty branch, a pure one), so the extremes over all tables are compared, and with 0.
    """
    moved = changes(score, tables)
    one_way = bool(np.all(moved * RISES[score.name] >= 0))
    return one_way and max(int(moved.max()), 0) - min(int(moved.min()), 0) <= claimed


def small_tables(branches: int, classes: int, rows: int) -> np.ndarray:
    """Every table of counts with at most that many rows: where bars stand among rows says which cell each is in."""
    cells = branches * classes
    found = []
    for bars in itertools.combinations(range(rows + cells), cells):
        ends = (-1, *bars)
        found.append([after - before - 1 for before, after in itertools.pairwise(ends)])
    return np.array(found, dtype=np.int64).reshape(-1, branches, classes)


def all_small_tables() -> Iterator[np.ndarray]:
    for branches, classes in itertools.product((1, 2, 3), repeat=2):
        yield small_tables(branches, classes, 6)
    yield np.array(list(np.ndindex(31, 31)), dtype=np.int64)[:, None, :]


SMALL = list(all_small_tables())


def tables_near(numbers: list[int]) -> np.ndarray:
    """One branch of two or three classes with counts and totals around the given numbers."""
    around = sorted({max(number + step, 0) for number in numbers for step in (-2, -1, 0, 1, 2)} | {0, 1, 2})
    pairs = [(one, other, 0) for one in around for other in around]
    sums = [(one, max(total - one, 0), 0) for one in (0, 1, 2, 3) for total in around]
    halves = [(total // 3, total // 3, total - 2 * (total // 3)) for total in around]
    return np.array(pairs + sums + halves, dtype=np.int64)[:, None, :]


@pytest.mark.parametrize("score", EVERY, ids=name_of)
def test_one_row_moves_every_candidate_one_way_and_by_at_most_the_range(score: Score) -> None:
    for tables in SMALL:
        assert keeps_its_range(score, score.range("monotone"), tables)
        assert np.abs(changes(score, tables)).max() <= score.sensitivity


@pytest.mark.parametrize("bound", BOUNDS)
def test_infogain_keeps_its_range_around_knots_and_beyond_its_bound(bound: int) -> None:
    """Also where the table has more rows than the public bound says: a wrong bound never breaks the range."""
    score = InfoGainScore(bound)
    knots = [2**13, 2**13 + 2, 2**14, 2**14 + 4, 20_000, 2**20, 2**20 + 256, 2**30, bound // 2, bound, 2 * bound, 10 * bound]
    tables = tables_near([knot for knot in knots if knot < 2**31])
    assert keeps_its_range(score, score.range("monotone"), tables)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(BOUNDS), arrays(np.int64, (40, 2, 3), elements=st.integers(0, 3 * 10**8)))
def test_scores_of_large_tables_keep_their_range(bound: int, tables: np.ndarray) -> None:
    for score in (score_named("infogain", bound), *SIMPLE):
        assert keeps_its_range(score, score.range("monotone"), tables)


def test_the_generic_range_is_twice_the_sensitivity() -> None:
    for score in EVERY:
        assert score.range("monotone") == score.sensitivity
        assert score.range("generic") == 2 * score.sensitivity


# -- the range is tight ------------------------------------------------------------------------------------------------


def pure(rows: int) -> np.ndarray:
    return np.array([[[rows, 0]]], dtype=np.int64)


def test_gini_comes_within_a_thousandth_of_its_range() -> None:
    """n rows of one class and one of another: 2n / (n + 1)."""
    moved = -changes(GiniScore(), pure(5000)).min() / GiniScore().unit
    assert 2 - 1e-3 < moved <= 2
    assert moved == pytest.approx(2 * 5000 / 5001, abs=1e-5)


@pytest.mark.parametrize("bound", BOUNDS)
def test_infogain_reaches_its_range(bound: int) -> None:
    score = InfoGainScore(bound)
    assert -changes(score, pure(bound)).min() == score.range("monotone")
    exact = (
        ((bound + 1) * math.log2(bound + 1) - bound * math.log2(bound))
        if bound < 10**6
        else math.log2(bound) + 1 / math.log(2)
    )
    assert score.sensitivity / score.unit == pytest.approx(exact, abs=2e-4)


def test_all_small_tables_are_all() -> None:
    assert [len(tables) for tables in SMALL] == [7, 28, 84, 28, 210, 924, 84, 924, 5005, 961]
    assert all(len(np.unique(tables, axis=0)) == len(tables) for tables in SMALL)


def test_max_and_count_reach_their_range() -> None:
    assert changes(MaxScore(), pure(3)).max() == 1
    assert changes(CountScore(), pure(3)).max() == 1


def test_the_range_check_catches_half_of_gini() -> None:
    """Planted mistake: R = 1, the bound of the index of one node that is not weighted by its rows."""
    assert not all(keeps_its_range(GiniScore(), GiniScore().unit, tables) for tables in SMALL)


@pytest.mark.parametrize("bound", [3, 30, 10_000])
def test_the_range_check_catches_one_unit_less_for_infogain(bound: int) -> None:
    score = InfoGainScore(bound)
    assert keeps_its_range(score, score.range("monotone"), tables_near([bound]))
    assert not keeps_its_range(score, score.range("monotone") - 1, tables_near([bound]))


def test_the_range_check_catches_a_table_of_logarithms_rounded_value_by_value() -> None:
    """Planted mistake: rounding t log t to coarse integers makes increments fall, so some rows move a score up."""

    class Rounded(InfoGainScore):
        def length_log(self, counts: np.ndarray) -> np.ndarray:
            exact = counts * np.log2(np.maximum(counts, 1))
            return np.rint(exact).astype(np.int64)

    score = Rounded(30)
    assert not all(keeps_its_range(score, score.sensitivity, tables) for tables in SMALL)


def test_the_range_check_catches_a_score_that_moves_both_ways() -> None:
    """Planted mistake: the gain relative to the parent is not monotone."""

    class Relative(GiniScore):
        def branch(self, class_counts: np.ndarray) -> np.ndarray:
            total = np.maximum(class_counts.sum(axis=-1), 1)
            return super().branch(class_counts) // total

    assert not all(keeps_its_range(Relative(), GiniScore().sensitivity, tables) for tables in SMALL)


# -- what a wrong rate costs -------------------------------------------------------------------------------------------


def loss_of_one_row(score: Score, rate: Fraction, rows: int) -> float:
    """Exact loss of the exponential mechanism: one candidate loses the most, a hundred others do not move."""
    before = int(score.branch(pure(rows)).sum())
    after = before + int(changes(score, pure(rows)).min())
    others = [before + 40 * score.sensitivity] * 100
    masses = [1] * 101
    return privacy_loss(exponential_law([before, *others], masses, rate), exponential_law([after, *others], masses, rate))


@pytest.mark.parametrize("score", [GiniScore(), InfoGainScore(50_000)], ids=name_of)
def test_the_printed_split_formula_overspends(score: Score) -> None:
    """Erratum E2, a planted mistake: exp(epsilon score) without the range costs 2 epsilon for Gini, 17 for InfoGain."""
    epsilon = Fraction(1, 10)
    right = loss_of_one_row(score, epsilon / score.range("monotone"), 50_000)
    assert 0.999 * epsilon < right <= epsilon
    printed = loss_of_one_row(score, epsilon / score.unit, 50_000)
    assert printed == pytest.approx(float(epsilon) * score.sensitivity / score.unit, rel=1e-3)
    assert printed > 1.99 * epsilon


def test_the_generic_range_costs_half() -> None:
    score, epsilon = GiniScore(), Fraction(1)
    assert loss_of_one_row(score, epsilon / score.range("generic"), 50_000) == pytest.approx(0.5, abs=1e-3)


# -- the papers' numbers -----------------------------------------------------------------------------------------------


def paper_infogain(counts: list[int]) -> float:
    """Sum of t_c log2(t_c / t): not positive (erratum E1), 0 for a pure branch."""
    total = sum(counts)
    return sum(count * math.log2(count / total) for count in counts if count)


def paper_gini(counts: list[int]) -> Fraction:
    total = sum(counts)
    return -(total - Fraction(sum(count * count for count in counts), total)) if total else Fraction(0)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.integers(0, 10**4) | st.integers(0, 4 * 10**8), min_size=1, max_size=5))
def test_scores_are_those_of_the_papers(counts: list[int]) -> None:
    table = np.array(counts, dtype=np.int64)
    assert int(MaxScore().branch(table)) == max(counts)
    assert int(CountScore().branch(table)) == sum(counts)
    assert int(GiniScore().branch(table)) == -math.floor(-paper_gini(counts) * 2**20)
    score = score_named("infogain", MOST_ROWS)
    assert int(score.branch(table)) / score.unit == pytest.approx(paper_infogain(counts), abs=1e-6 * sum(counts))


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_table_of_t_log_t_is_convex_and_off_by_less_than_half_a_millionth_a_row(bound: int) -> None:
    score = InfoGainScore(bound)
    counts = np.unique(
        np.concatenate([np.arange(min(bound, 30_000) + 2), np.linspace(0, bound + 1, 50_000).astype(np.int64)])
    )
    exact = np.array([count * math.log2(count) if count else 0.0 for count in counts.tolist()])
    assert np.all(np.abs(score.length_log(counts) / score.unit - exact) <= 5e-7 * counts)
    rising = np.diff(score.length_log(np.arange(min(bound, 40_000) + 50)))
    assert np.all(np.diff(rising) >= 0)
    assert rising[0] == 0
    assert int(rising[-1]) <= score.sensitivity


def test_a_split_that_separates_the_classes_scores_highest() -> None:
    """Erratum E1: with the sign as printed, the useless split would win."""
    separating = np.array([[30, 0], [0, 30]])
    useless = np.array([[15, 15], [15, 15]])
    for score in (MaxScore(), GiniScore(), InfoGainScore(100)):
        assert score.branch(separating).sum() > score.branch(useless).sum()
    assert InfoGainScore(100).branch(separating).sum() == 0
    assert InfoGainScore(100).branch(useless).sum() / 2**20 == pytest.approx(-60, abs=1e-4)


@pytest.mark.parametrize(
    "counts",
    [
        [2**31 - 1, 0],
        [2**30, 2**30 - 1],
        [2**31 - 2, 1],
        [715827882, 715827882, 715827883],
        [1, 2**31 - 3, 1],
        [2**29] * 3 + [2**29 - 1],
    ],
    ids=str,
)
def test_gini_of_two_billion_rows_does_not_overflow(counts: list[int]) -> None:
    scored = int(GiniScore().branch(np.array(counts, dtype=np.int64)))
    assert scored == -math.floor(-paper_gini(counts) * 2**20)


def test_scores_widen_small_types() -> None:
    table = np.full((1, 3), 250, dtype=np.uint8)
    assert int(GiniScore().branch(table)[0]) == -math.floor(-paper_gini([250] * 3) * 2**20)
    for score in EVERY:
        assert score.branch(table).dtype == np.int64


def test_scores_are_found_by_name() -> None:
    assert isinstance(score_named("gini", 10), GiniScore)
    assert score_named("infogain", 10) == InfoGainScore(10)


# -- from counts to candidates -----------------------------------------------------------------------------------------

tables = arrays(
    np.int64, array_shapes(min_dims=3, max_dims=3, min_side=2, max_side=4), elements=st.integers(0, 50)
)  # [cells, classes, codes]
scores = st.sampled_from([MaxScore(), GiniScore(), InfoGainScore(40)])


def codes_of(counts: np.ndarray) -> Recode:
    return Recode("code", (), counts.shape[2])


def thresholds(counts: np.ndarray) -> ResolvedThresholds:
    """Between all codes."""
    codes = counts.shape[2]
    return ResolvedThresholds(codes_of(counts), 0, codes, 1, codes - 1)


def rows_of(cell: np.ndarray) -> list[tuple[int, int]]:
    """The rows behind the counts of a cell: (class, code) pairs."""
    return [(c, code) for c, code in np.ndindex(cell.shape) for _ in range(int(cell[c, code]))]


def naive(score: Score, cell: np.ndarray, branches: list[set[int]]) -> int:
    """Send each row to its branch, count classes, add up the branches' scores."""
    total = 0
    for branch in branches:
        counts = np.zeros(cell.shape[0], dtype=np.int64)
        for c, code in rows_of(cell):
            counts[c] += code in branch
        total += int(score.branch(counts))
    return total


@settings(deadline=None, max_examples=60)
@given(scores, tables)
def test_multiway_scores_add_up_every_label(score: Score, counts: np.ndarray) -> None:
    found = score.split(ResolvedMultiway(codes_of(counts)).branches(counts))
    assert found.tolist() == [[naive(score, cell, [{code} for code in range(cell.shape[1])])] for cell in counts]


@settings(deadline=None, max_examples=60)
@given(scores, tables)
def test_threshold_scores_split_below_every_code(score: Score, counts: np.ndarray) -> None:
    codes = counts.shape[2]
    found = score.split(thresholds(counts).branches(counts))
    assert found.tolist() == [
        [naive(score, cell, [set(range(cut)), set(range(cut, codes))]) for cut in range(1, codes)] for cell in counts
    ]


@settings(deadline=None, max_examples=60)
@given(scores, tables, st.data())
def test_thresholds_of_a_stretch_leave_other_codes_out(score: Score, counts: np.ndarray, data: st.DataObject) -> None:
    codes = counts.shape[2]
    low = data.draw(st.integers(0, codes - 2))
    high = data.draw(st.integers(low + 2, codes))
    first = data.draw(st.integers(low + 1, high - 1))
    family = ResolvedThresholds(codes_of(counts), low, high, first, data.draw(st.integers(1, high - first)))
    expected = [
        [naive(score, cell, [set(range(low, cut)), set(range(cut, high))]) for cut in range(first, first + family.points)]
        for cell in counts
    ]
    assert score.split(family.branches(counts)).tolist() == expected
    every = score.split(family.scored_as.branches(counts))
    assert [family.among(row).tolist() for row in every] == expected


@settings(deadline=None, max_examples=60)
@given(scores, tables, st.data())
def test_subset_scores_split_each_subset_from_the_others(score: Score, counts: np.ndarray, data: st.DataObject) -> None:
    codes = counts.shape[2]
    members = data.draw(arrays(np.bool_, (data.draw(st.integers(1, 4)), codes)))
    subsets = tuple(tuple(np.flatnonzero(row).tolist()) for row in members)
    found = score.split(ResolvedSubsets(codes_of(counts), subsets).branches(counts))
    inside = [{code for code in range(codes) if row[code]} for row in members]
    assert found.tolist() == [[naive(score, cell, [one, set(range(codes)) - one]) for one in inside] for cell in counts]


def test_the_naive_check_catches_a_threshold_off_by_one() -> None:
    """Planted mistake: codes up to and including the cut go to the left."""
    counts = np.array([[[5, 0, 1, 0], [0, 4, 0, 3]]])
    found = GiniScore().split(thresholds(counts).branches(counts))
    shifted = np.roll(found, 1, axis=1)
    expected = [naive(GiniScore(), counts[0], [set(range(cut)), set(range(cut, 4))]) for cut in (1, 2, 3)]
    assert found.tolist() == [expected]
    assert shifted.tolist() != [expected]
