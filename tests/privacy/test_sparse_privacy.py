"""The sparse histogram through the door: on every small table, the exact loss of one row over all sets of outcomes.

What `sparse_counts` draws has the law used here: tests/kernel/test_sparse_histogram.py. Combinations are independent, so the
largest ratio of probabilities of a set of outcomes is the product of the largest ratios of the combinations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels import UNTOUCHED, Watching, kernel_over
from support.tiny_tables import KINDS, SCHEMA, Row, all_tables, encoded

from dpmine.base.epsilon import Epsilon
from dpmine.kernel.mechanisms import sparse_histogram
from dpmine.language.keys import AttributeKey, Bins, Part
from dpmine.language.parsing import parse_predicate
from dpmine.language.queries import Query
from dpmine.language.views import LEAF, Cell, Rules, Split, Step, View, Where
from dpmine.questions.sparse_histogram import SparseHistogram

COLOUR, SIZE, ILL = AttributeKey("colour"), AttributeKey("size"), AttributeKey("ill")
UNIT = 10**9
SLACK = 1e-12

Handed = tuple[tuple[int, ...], Fraction, int]  # the exact count of every combination, the scale and the threshold
Law = Callable[[int, Fraction, int], dict[Any, float]]


def query(question: SparseHistogram, *steps: Step, rules: Rules = LEAF, epsilons: tuple[int, ...] = (UNIT // 2,)) -> Query:
    return Query(View(steps), rules, question, tuple(map(Epsilon, epsilons)))


QUERIES: dict[str, Query] = {
    "all keys, threshold 1": query(SparseHistogram((COLOUR, SIZE, ILL), 1)),
    "two keys, threshold 3": query(SparseHistogram((SIZE, ILL), 3)),
    "the same key twice": query(SparseHistogram((SIZE, SIZE), 2)),
    "a view": query(SparseHistogram((COLOUR, Bins("size", ("1",))), 1), Where(parse_predicate("ill == yes"))),
    "a part": query(SparseHistogram((COLOUR,), 1), Cell(Part("salt", (2, 1)), 0)),
    "cells of different epsilons": query(
        SparseHistogram((SIZE, ILL), 2), rules=Split(COLOUR, (LEAF, LEAF)), epsilons=(UNIT // 2, UNIT // 10)
    ),
    "one cell paid": query(SparseHistogram((SIZE,), 1), rules=Split(COLOUR, (LEAF, LEAF)), epsilons=(0, UNIT // 2)),
}


class Watched(Watching):
    """The real door; what it hands to the mechanism is kept, with the count of every combination."""

    def handed(self, asked: Query) -> list[Handed]:
        kept: list[Handed] = []

        def keep(
            entropy: Any,
            noise: Any,
            places: np.ndarray,
            exact_counts: np.ndarray,
            combinations: int,
            *,
            scale: Fraction,
            at_least: int,
        ) -> tuple[np.ndarray, np.ndarray]:
            assert np.all(np.diff(places) > 0)
            assert np.all(exact_counts > 0)
            dense = np.zeros(combinations, dtype=np.int64)
            dense[places] = exact_counts
            kept.append((tuple(dense.tolist()), scale, at_least))
            return places[:0], exact_counts[:0]

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sparse_histogram, "sparse_counts", keep)
            self._compute(self.plan(asked))
        return kept


def noise_law(count: int, scale: Fraction) -> Callable[[int], float]:
    a = math.exp(-float(1 / scale))
    return lambda shown: (1 - a) / (1 + a) * a ** abs(shown - count)


def law(count: int, scale: Fraction, at_least: int) -> dict[Any, float]:
    """Of one combination: hidden, or a count; from 40 on all together, where the ratio of neighbours no longer changes."""
    noise = noise_law(count, scale)
    shown: dict[Any, float] = {number: noise(number) for number in range(at_least, 40)}
    a = math.exp(-float(1 / scale))
    tail = a ** (40 - count) / (1 + a)
    hidden = a ** (count - at_least + 1) / (1 + a) if at_least <= count else 1 - a ** (at_least - count) / (1 + a)
    return {"hidden": hidden, **shown, "tail": tail}


def loss(before: list[Handed], after: list[Handed], one: Law = law) -> float:
    """The largest log of a ratio of probabilities over all sets of outcomes; infinite where one side is impossible."""
    total = 0.0
    for (counts, scale, at_least), (more, again, threshold) in zip(before, after, strict=True):
        assert (scale, at_least, len(counts)) == (again, threshold, len(more))
        for count, other in zip(counts, more, strict=True):
            if count != other:
                first, second = one(count, scale, at_least), one(other, scale, at_least)
                assert first.keys() == second.keys()
                total += max(
                    0.0 if p == q else math.inf if min(p, q) == 0 else abs(math.log(p / q))
                    for p, q in ((first[outcome], second[outcome]) for outcome in first)
                )
    return total


@pytest.fixture(scope="module")
def kernels() -> dict[tuple[Row, ...], Watched]:
    return {table: kernel_over(encoded(table), UNTOUCHED, Watched) for table in all_tables(3)}


def neighbours(kernels: dict[tuple[Row, ...], Watched], asked: Query) -> Iterator[tuple[Row, list[Handed], list[Handed]]]:
    handed = {table: kernel.handed(asked) for table, kernel in kernels.items()}
    for table, before in handed.items():
        if len(table) < 3:
            for row in KINDS:
                yield row, before, handed[tuple(sorted((*table, row), key=KINDS.index))]


def test_the_law_adds_up() -> None:
    for count, scale, at_least in ((0, Fraction(2), 1), (3, Fraction(2), 1), (2, Fraction(10), 3), (2, Fraction(1, 3), 2)):
        assert math.fsum(law(count, scale, at_least).values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", QUERIES)
def test_one_row_changes_one_combination_by_one(kernels: dict[tuple[Row, ...], Watched], name: str) -> None:
    narrowed = name in ("a view", "a part", "one cell paid")
    found = set()
    for _, before, after in neighbours(kernels, QUERIES[name]):
        counts = [np.concatenate([np.array(counts) for counts, _, _ in side]) for side in (before, after)]
        found.add(int(np.abs(counts[1] - counts[0]).sum()))
    assert found == ({0, 1} if narrowed else {1})


@pytest.mark.parametrize("name", QUERIES)
def test_no_row_changes_a_sparse_histogram_by_more_than_epsilon(kernels: dict[tuple[Row, ...], Watched], name: str) -> None:
    """And some row changes it by all of its cell's epsilon: nothing is wasted."""
    allowed = {"red": 0.5, "blue": 0.1} if name == "cells of different epsilons" else {"red": 0.5, "blue": 0.5}
    worst = {"red": 0.0, "blue": 0.0}
    for row, before, after in neighbours(kernels, QUERIES[name]):
        lost = loss(before, after)
        assert lost <= allowed[row[0]] + SLACK
        worst[row[0]] = max(worst[row[0]], lost)
    assert worst["blue"] == pytest.approx(allowed["blue"])
    assert worst["red"] == (0 if name == "one cell paid" else pytest.approx(allowed["red"]))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(KINDS), max_size=30), st.sampled_from(KINDS), st.sampled_from(sorted(QUERIES)))
def test_larger_tables_lose_no_more(rows: list[Row], row: Row, name: str) -> None:
    handed = [kernel_over(encoded(table), UNTOUCHED, Watched).handed(QUERIES[name]) for table in (rows, [*rows, row])]
    assert loss(*handed) <= 0.5 + SLACK


def test_the_door_hands_over_scale_threshold_and_every_combination(kernels: dict[tuple[Row, ...], Watched]) -> None:
    empty = kernels[()]
    assert empty.handed(QUERIES["all keys, threshold 1"]) == [((0,) * 12, Fraction(2), 1)]
    assert empty.handed(QUERIES["cells of different epsilons"]) == [
        ((0,) * 6, Fraction(2), 2),
        ((0,) * 6, Fraction(10), 2),
    ]
    rows: tuple[Row, ...] = (("red", 2, "yes"), ("blue", 0, "no"), ("blue", 0, "no"))
    counting = kernel_over(encoded(rows), UNTOUCHED, Watched)
    assert counting.handed(QUERIES["two keys, threshold 3"]) == [((2, 0, 0, 0, 0, 1), Fraction(2), 3)]
    assert counting.handed(QUERIES["the same key twice"]) == [((2, 0, 0, 0, 0, 0, 0, 0, 1), Fraction(2), 2)]
    assert SCHEMA.rows_at_most == 100


# -- planted mistakes --------------------------------------------------------------------------------------------------


def only_combinations_with_rows(count: int, scale: Fraction, at_least: int) -> dict[Any, float]:
    """Empty combinations dropped: to see one proves that somebody is in it."""
    real = law(count, scale, at_least)
    return real if count else {outcome: float(outcome == "hidden") for outcome in real}


def another_threshold(count: int, scale: Fraction, at_least: int) -> dict[Any, float]:
    """Empty combinations are shown from one more on."""
    real = law(count, scale, at_least)
    if count == 0:
        real["hidden"] += real[at_least]
        real[at_least] = 0.0
    return real


def before_noise(count: int, scale: Fraction, at_least: int) -> dict[Any, float]:
    """The threshold is for the exact count."""
    outcomes = law(0, scale, -40)
    if count < at_least:
        return {outcome: float(outcome == "hidden") for outcome in outcomes}
    noise = noise_law(count, scale)
    return {outcome: 0.0 if isinstance(outcome, str) else noise(outcome) for outcome in outcomes}


def half_the_noise(count: int, scale: Fraction, at_least: int) -> dict[Any, float]:
    return law(count, scale / 2, at_least)


@pytest.mark.parametrize(
    "mistake", [only_combinations_with_rows, another_threshold, before_noise, half_the_noise], ids=lambda one: one.__name__
)
def test_the_loss_check_catches(kernels: dict[tuple[Row, ...], Watched], mistake: Law) -> None:
    found = [loss(before, after, mistake) for _, before, after in neighbours(kernels, QUERIES["two keys, threshold 3"])]
    assert max(found) > 0.99
