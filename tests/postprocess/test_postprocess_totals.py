"""Counts made to add up: never negative, whole, the nearest ones by brute force, in the order that they had."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmine.postprocess.totals import whole_with_total, with_total

counts = st.lists(st.integers(-50, 200), min_size=1, max_size=30)
totals = st.integers(-20, 3000)


def made(noisy: Any, total: int) -> list[int]:
    return with_total(np.array(noisy, dtype=np.int64), total).ravel().tolist()


def squares(one: Any, other: Any) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def all_with_total(places: int, total: int) -> Any:
    """Every way to write a total as so many numbers from 0 on."""
    for bars in itertools.combinations(range(total + places - 1), places - 1):
        ends = (-1, *bars, total + places - 1)
        yield [after - before - 1 for before, after in itertools.pairwise(ends)]


@given(counts, totals)
def test_counts_are_never_negative_and_add_up(noisy: list[int], total: int) -> None:
    found = made(noisy, total)
    assert min(found) >= 0
    assert sum(found) == (max(total, 0) if max(noisy) > 0 else 0)


@given(counts, totals)
def test_order_is_kept_and_what_was_not_positive_stays_nothing(noisy: list[int], total: int) -> None:
    found = made(noisy, total)
    pairs = sorted(zip(noisy, found, strict=True))
    assert [count for _, count in pairs] == sorted(found)
    assert all(count == 0 for before, count in pairs if before <= 0)


@given(counts, totals)
def test_equal_counts_stay_equal_but_for_one_by_place(noisy: list[int], total: int) -> None:
    found = made(noisy, total)
    for number in set(noisy):
        alike = [count for before, count in zip(noisy, found, strict=True) if before == number]
        assert max(alike) - min(alike) <= 1
        assert alike == sorted(alike, reverse=True)


@given(st.lists(st.integers(-4, 9), min_size=1, max_size=4), st.integers(0, 9))
def test_counts_are_the_nearest_ones_by_brute_force(noisy: list[int], total: int) -> None:
    """Where the positive ones add up to the total or more: least squares over all whole counts from 0 on."""
    if sum(max(count, 0) for count in noisy) < total:
        return
    best = min(squares(noisy, other) for other in all_with_total(len(noisy), total))
    assert squares(noisy, made(noisy, total)) == best


def test_the_brute_force_is_sharp_enough_to_see_another_rule() -> None:
    """In proportion is not nearest where counts are too many: small ones must vanish first."""
    noisy, total = [8, 1, 1], 5
    assert made(noisy, total) == [5, 0, 0]
    in_proportion = [4, 1, 0]
    assert squares(noisy, in_proportion) > squares(noisy, made(noisy, total))


@given(st.lists(st.integers(0, 200), min_size=1, max_size=30), st.integers(0, 3000))
def test_counts_below_the_total_are_raised_in_proportion(noisy: list[int], more: int) -> None:
    """What a threshold struck out is missing from the sum. Each is off by less than one from its exact part."""
    whole = sum(noisy)
    if whole == 0:
        return
    found = made(noisy, whole + more)
    assert sum(found) == whole + more
    for before, after in zip(noisy, found, strict=True):
        assert abs(after - before * (whole + more) / whole) < 1 + 1e-6


@pytest.mark.parametrize("total", [0, -1, -(10**9)])
def test_a_total_of_nothing_leaves_nothing(total: int) -> None:
    assert made([5, 0, 3, -2], total) == [0, 0, 0, 0]


@pytest.mark.parametrize("noisy", [[0, 0, 0], [-5, -1, 0], []])
def test_counts_of_which_none_is_positive_stay_nothing(noisy: list[int]) -> None:
    """Nobody says where the rows are, so none is made up."""
    assert made(noisy, 7) == [0] * len(noisy)


def test_what_adds_up_already_is_left_alone() -> None:
    for noisy in ([1, 2, 3], [0, 6, 0], [6]):
        assert made(noisy, 6) == noisy
    assert made([-3, 2, 4], 6) == [0, 2, 4]


def test_shape_is_kept_and_the_input_is_not_touched() -> None:
    noisy = np.array([[4, -1], [3, 2], [0, 9]])
    before = noisy.copy()
    found = with_total(noisy, 10)
    assert found.shape == noisy.shape
    assert found.dtype == np.int64
    assert (noisy == before).all()
    assert found.ravel().tolist() == made(noisy.ravel(), 10)


@pytest.mark.parametrize(("size", "scale"), [(10**5, 3), (10**5, 10**4), (10**5, 10**9), (10**6, 10**3)])
def test_large_tables_add_up_too(size: int, scale: int) -> None:
    draw = np.random.default_rng(size + scale)
    noisy = np.rint(draw.laplace(0, scale, size)).astype(np.int64)
    positive = int(np.maximum(noisy, 0).sum())
    for total in (1, 30_162, positive // 3, positive - 1, positive, positive + 1, 2 * positive):
        found = with_total(noisy, total)
        assert int(found.sum()) == total
        assert found.min() >= 0
        order = np.argsort(noisy, kind="stable")
        rising = noisy[order]
        assert (np.diff(found[order])[np.diff(rising) > 0] >= 0).all()


def test_phantoms_vanish_first() -> None:
    """100,000 combinations without rows at epsilon 0.5, and ten with 3,000 rows each: nearly all rows stay there."""
    draw = np.random.default_rng(1)
    true = np.zeros(100_010, dtype=np.int64)
    true[:10] = 3000
    noisy = true + np.rint(draw.laplace(0, 2, true.size)).astype(np.int64)
    found = with_total(np.where(noisy >= 1, noisy, 0), 30_000)
    assert found[:10].sum() > 0.99 * 30_000
    assert found.sum() == 30_000


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20))
def test_rounding_moves_no_number_by_one_or_more(exact: list[float]) -> None:
    total = round(sum(exact))
    if abs(sum(exact) - total) > 1e-9 or total == 0:
        scaled = np.array(exact) * (total / sum(exact)) if sum(exact) > 0 else np.array(exact)
    else:
        scaled = np.array(exact)
    found = whole_with_total(scaled, total)
    if scaled.sum() > 0 or total == 0:
        assert found.sum() == total
        assert (np.abs(found - scaled) < 1 + 1e-9).all()
