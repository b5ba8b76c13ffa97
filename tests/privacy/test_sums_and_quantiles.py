"""Sums, means, variances and quantiles: exact integers, sensitivities that hold on every small table, true intervals."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.attributes import grid_from
from support.kernels import desk_over
from support.noise import Silent

import dpmine as dm
from dpmine.base.epsilon import UNITS, Epsilon, shares
from dpmine.base.wire import from_wire, to_wire
from dpmine.codes.value_grids import ValueGrid
from dpmine.engines.encoding import encode
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.kernel.samplers.laplace import ExactNoise
from dpmine.kernel.scores import RankScore
from dpmine.language.queries import Query
from dpmine.language.views import LEAF, View
from dpmine.owner.ledgers import book_at
from dpmine.questions.moments import Moments
from dpmine.questions.quantile import Quantile

SUM, MEAN, VARIANCE = ((1,), False), ((0, 1), True), ((0, 1, 2), True)


def schema_of(numeric: Numeric) -> Schema:
    return Schema("sums", (numeric, Nominal("c", ("a", "b"), "a", missing="a")), 1000)


def ask(values: list[Any], numeric: Numeric, question: Any, epsilon: str = "1") -> tuple[tuple[int, ...], list[Fraction]]:
    """What leaves the door when no noise is added, and the scales that the noise would have had."""
    schema = schema_of(numeric)
    table = encode(open_source({"x": values, "c": ["a"] * len(values)}), schema)
    ledger = book_at(None, dataset="sums", cap=10**15)
    ledger.grant("ann", 10**15)
    noise = Silent()
    desk = desk_over(table, ledger, noise=noise)
    reply = desk.answer(to_wire(Query(View(), LEAF, question, (Epsilon.parse(epsilon),))), analyst="ann")
    assert ledger.account("ann").spent == Epsilon.parse(epsilon).units
    ledger.close()
    (numbers,) = reply.answer.numbers
    assert numbers is not None
    return numbers, noise.scales


GRIDS = [("0", "1", 5), ("-3", "1", 5), ("-3", "2", 3), ("0.5", "0.25", 4), ("-10", "0.1", 4), ("100", "7", 3)]


@pytest.mark.parametrize(("powers", "centred"), [SUM, MEAN, VARIANCE])
@pytest.mark.parametrize("grid", GRIDS)
def test_one_row_changes_each_sum_by_at_most_its_sensitivity_and_some_row_by_all_of_it(
    grid: tuple[str, str, int], powers: tuple[int, ...], centred: bool
) -> None:
    numeric = grid_from(*grid)
    question = Moments("x", powers, centred)
    values = [float(numeric.point(code)) for code in range(numeric.size)]
    reached = [0] * len(powers)
    for count in range(3):
        for rows in itertools.combinations_with_replacement(values, count):
            before, _ = ask(list(rows), numeric, question)
            for added in values:
                after, _ = ask([*rows, added], numeric, question)
                reached = [max(most, abs(a - b)) for most, a, b in zip(reached, after, before, strict=True)]
    limits = [ValueGrid.of(numeric.grid, centred=centred).largest ** power for power in powers]
    assert reached == limits


@pytest.mark.parametrize(("powers", "centred"), [SUM, MEAN, VARIANCE])
def test_the_noise_of_each_sum_is_what_its_share_of_epsilon_pays_for(powers: tuple[int, ...], centred: bool) -> None:
    numeric = grid_from("-3", "1", 8)
    for epsilon in ("1", "0.1", "0.000001001", "3.333333333"):
        _, scales = ask([1, 2], numeric, Moments("x", powers, centred), epsilon)
        grid = ValueGrid.of(numeric.grid, centred=centred)
        spent = sum(Fraction(grid.largest**power) / scale for power, scale in zip(powers, scales, strict=True))
        assert spent == Epsilon.parse(epsilon).fraction
        assert sum(shares(Epsilon.parse(epsilon).units, len(powers))) == Epsilon.parse(epsilon).units


def test_the_slides_sensitivity_of_a_sum_is_caught_where_values_may_be_negative() -> None:
    """Erratum E3: for [a, b] the printed sensitivity is b. One row at a = -5 moves the sum by 5, not by 2."""
    numeric = grid_from("-5", "1", 8)
    before, scales = ask([], numeric, Moments("x", (1,), False))
    after, _ = ask([-5], numeric, Moments("x", (1,), False))
    printed = 2
    assert abs(after[0] - before[0]) > printed
    assert abs(after[0] - before[0]) == scales[0]


@given(
    st.sampled_from(GRIDS),
    st.lists(st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(10**30), 10**30) | st.none(), max_size=30),
)
def test_sums_are_those_of_the_clamped_values_as_fractions_whatever_stands_in_the_rows(
    grid: tuple[str, str, int], values: list[Any]
) -> None:
    numeric = grid_from(*grid)
    codes = encode(open_source({"x": values, "c": ["a"] * len(values)}), schema_of(numeric)).columns["x"]
    exact = [Fraction(numeric.point(int(code))) for code in codes]
    whole = ValueGrid.of(numeric.grid, centred=False)
    (total,), _ = ask(values, numeric, Moments("x", (1,), False))
    assert total * whole.unit == sum(exact, Fraction(0))
    middle = ValueGrid.of(numeric.grid, centred=True)
    (rows, first, second), _ = ask(values, numeric, Moments("x", (0, 1, 2), True))
    assert rows == len(values)
    assert first * middle.unit == sum((value - middle.centre for value in exact), Fraction(0))
    assert second * middle.unit**2 == sum(((value - middle.centre) ** 2 for value in exact), Fraction(0))


@given(st.randoms(), st.lists(st.integers(0, 7), max_size=20))
def test_the_order_of_the_rows_does_not_matter(shuffle: Any, values: list[int]) -> None:
    numeric = grid_from("0", "1", 8)
    mixed = list(values)
    shuffle.shuffle(mixed)
    question = Moments("x", (0, 1, 2), True)
    assert ask(values, numeric, question) == ask(mixed, numeric, question)


ORDERS = [(0, 1), (1, 1), (1, 2), (9, 10), (1, 10), (1, 3), (199, 200)]


def quantile_ranges(order: tuple[int, int], points: int, rows: int) -> int:
    """The largest range of the rank score's changes over all small tables and every added row."""
    score, most = RankScore(*order), 0
    for counts in itertools.product(range(rows + 1), repeat=points):
        before = score.of(np.array(counts, dtype=np.int64))
        for added in range(points):
            after = np.array(counts, dtype=np.int64)
            after[added] += 1
            change = score.of(after) - before
            most = max(most, int(change.max() - change.min()))
    return most


@pytest.mark.parametrize("order", ORDERS)
def test_the_rank_score_has_the_stated_range_on_every_small_table(order: tuple[int, int]) -> None:
    assert quantile_ranges(order, points=4, rows=3) <= RankScore(*order).range


def test_a_range_of_one_row_would_be_too_small_for_an_outer_quantile() -> None:
    """The planted mistake: the median's range of one row for every order."""
    assert quantile_ranges((1, 2), points=4, rows=3) <= 2
    assert quantile_ranges((9, 10), points=4, rows=3) > 10


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.sampled_from(ORDERS))
def test_the_best_points_are_exactly_the_quantiles(values: list[int], order: tuple[int, int]) -> None:
    counts = np.bincount(values, minlength=10).astype(np.int64)
    scores = RankScore(*order).of(counts)
    below = [sum(value < point for value in values) for point in range(10)]
    above = [sum(value > point for value in values) for point in range(10)]
    tau = Fraction(*order)
    is_quantile = [
        low <= tau * len(values) and high <= (1 - tau) * len(values) for low, high in zip(below, above, strict=True)
    ]
    assert [score == 0 for score in scores.tolist()] == is_quantile


def private(values: list[int], *, most: int = 99) -> dm.PrivateTable:
    schema = schema_of(grid_from("0", "1", most + 1))
    return dm.open({"x": values, "c": ["a"] * len(values)}, schema=schema, cap=10**6).grant("ann", epsilon=10**6)


def test_with_a_huge_epsilon_everything_is_the_truth() -> None:
    values = [3, 3, 7, 20, 99, 4, 150, -8]
    clamped = np.clip(values, 0, 99)
    table = private(values)
    assert float(table.sum("x", epsilon=10**4)) == pytest.approx(clamped.sum())
    assert float(table.mean("x", epsilon=10**4)) == pytest.approx(clamped.mean())
    # At 1e5 the noise of the squares is not 0 once in 300,000 times.
    assert float(table.variance("x", epsilon=2 * 10**5)) == pytest.approx(clamped.var())
    assert float(table.median("x", epsilon=10**4)) in (4.0, 5.0, 6.0, 7.0)
    assert float(table.quantile("x", "0.25", epsilon=10**4)) == 3.0
    frame = table.crosstab("x", "c", epsilon=10**4).to_frame(wide=True)
    assert frame.loc["3", "a"] == 2
    assert frame.to_numpy().sum() == len(values)


FALSE_ALARM = 1e-6


def test_intervals_cover_the_clamped_truth_at_their_confidence() -> None:
    """300 independent draws each at 95 %: fewer than 260 hits have a chance below 1e-6 (binomial tail)."""
    values = np.random.default_rng(3).integers(-20, 140, 400).tolist()
    clamped = np.clip(values, 0, 99)
    table = private(values)
    truths = {"sum": clamped.sum(), "mean": clamped.mean(), "variance": clamped.var()}
    hits = dict.fromkeys(truths, 0)
    for draw in range(300):
        epsilon = Epsilon(UNITS // 2 + draw)
        for what, truth in truths.items():
            estimate = getattr(table, what)("x", epsilon=epsilon)
            hits[what] += estimate.low - 1e-9 <= truth <= estimate.high + 1e-9
    tail = sum(math.comb(300, k) * 0.95**k * 0.05 ** (300 - k) for k in range(260))
    assert tail < FALSE_ALARM
    assert min(hits.values()) >= 260


def test_too_few_rows_are_said_and_give_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExactNoise, "discrete_laplace", lambda self, scale, size: np.zeros(size, dtype=np.int64))
    estimate = private([]).mean("x", epsilon="0.001")
    assert (estimate.low, estimate.high) == (0.0, 99.0)
    assert "too few rows" in estimate.note


def test_questions_that_make_no_sense_are_refused_and_cost_nothing() -> None:
    table = private([1, 2, 3])
    for refused in (
        lambda: table.sum("c", epsilon=1),
        lambda: table.mean("nowhere", epsilon=1),
        lambda: table.quantile("c", "0.5", epsilon=1),
        lambda: table.quantile("x", "1.5", epsilon=1),
        lambda: table.quantile("x", "0.12345", epsilon=1),
        lambda: table.quantile("x", "nan", epsilon=1),
        lambda: table.variance("x", epsilon="0.000000001"),
    ):
        with pytest.raises(dm.RequestError):
            refused()
    wide = Schema("wide", (Numeric("x", Decimal("0.001"), Decimal(10**9), Decimal(10**6), Decimal(1)),), 10)
    with pytest.raises(dm.RequestError, match="too large for exact sums"):
        dm.open({"x": [1]}, schema=wide, cap=10).grant("ann", epsilon=10).variance("x", epsilon=1)
    assert table.remaining() == Epsilon.parse(10**6)


def test_a_dry_run_says_the_cost_and_spends_nothing() -> None:
    table = private([1, 2, 3])
    for asked in (table.preview.sum("x", epsilon=1), table.preview.quantile("x", "0.5", epsilon=1)):
        assert asked.cost == Epsilon.parse(1)
        assert asked.expected_error
    assert table.remaining() == Epsilon.parse(10**6)


def test_sums_and_quantiles_are_values_that_travel_as_json() -> None:

    for question in (Moments("x", (0, 1), True), Quantile("x", 1, 2)):
        query = Query(View(), LEAF, question, (Epsilon.parse(1),))
        assert from_wire(to_wire(query), Query) == query
