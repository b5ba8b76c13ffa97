"""Sums, means, variances and quantiles: exact integers, sensitivities that hold on every small table, true intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.attributes import grid_from
from support.kernels import UNTOUCHED, desk_over, kernel_over
from support.laws import exponential_law, privacy_loss
from support.noise import Silent

import dpmine as dm
from dpmine.base.epsilon import UNITS, Epsilon
from dpmine.base.wire import from_wire, to_wire
from dpmine.codes.moments import ResolvedMoments
from dpmine.codes.quantile import ResolvedQuantile
from dpmine.codes.queries import ResolvedQuery
from dpmine.codes.rows import Cells
from dpmine.codes.value_grids import ValueGrid
from dpmine.engines.encoding import encode
from dpmine.engines.memory import MemoryEngine
from dpmine.engines.memory import engine as memory_engine
from dpmine.facts.kinds import numeric_columns
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.kernel.door import Kernel
from dpmine.kernel.mechanisms import quantile, total
from dpmine.kernel.samplers.laplace import ExactNoise
from dpmine.kernel.scores import RankScore
from dpmine.language.keys import AttributeKey
from dpmine.language.queries import Query, resolve
from dpmine.language.resolving_keys import rounded
from dpmine.language.views import LEAF, View
from dpmine.owner.ledgers import book_at
from dpmine.questions.choose_label import ChooseLabel
from dpmine.questions.moments import Moments
from dpmine.questions.quantile import Quantile
from dpmine.questions.total import Total


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
EVEN = [grid_from(*grid) for grid in GRIDS]


def fine(low: str, step: str, values: int, missing: str | Decimal, *, drop: int = 0) -> Numeric:
    """Values finer than codes: the first two have a code of their own, the others share one."""
    first, high = Decimal(low), Decimal(low) + Decimal(step) * (values - 1)
    return Numeric("x", first, high, None, missing, Decimal(step), (first + Decimal(step), first + 2 * Decimal(step)))


KINDS = [
    *EVEN,
    fine("-3", "1", 5, "own"),
    fine("0.5", "0.25", 4, "drop"),
    fine("-1", "0.5", 5, Decimal("0.5")),
    Numeric("x", Decimal(0), Decimal(1), Decimal(1)),
]
GAPS = fine("2", "1", 4, "own")
"""0 is none of its values."""


def rows_of(numeric: Numeric) -> list[Any]:
    """One row of each kind: a number for each value, and none where gaps are possible."""
    return [float(numeric.value_point(value)) for value in range(numeric.values)] + [None] * (numeric.gap is not None)


def known_of(rows: Sequence[Any], numeric: Numeric) -> list[Fraction]:
    """What the rows stand for, by plain Python."""
    return [Fraction(str(value)) for value in rows if value is not None]


def losses(numeric: Numeric, question: Any, rows: int = 2) -> set[Fraction]:
    """Of epsilon = 1: what one row added to a small table loses over all numbers of the answer together."""
    kinds, found = rows_of(numeric), set()
    for count in range(rows + 1):
        for table in itertools.combinations_with_replacement(kinds, count):
            before, scales = ask(list(table), numeric, question)
            for added in kinds:
                after, again = ask([*table, added], numeric, question)
                assert scales == again
                found.add(sum((abs(a - b) / s for a, b, s in zip(after, before, scales, strict=True)), Fraction(0)))
    return found


MEAN, VARIANCE = Moments(("x",)), Moments(("x", "x"))
QUESTIONS = {"total": Total("x"), "mean": MEAN, "variance": VARIANCE}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("numeric", KINDS, ids=str)
def test_one_row_loses_at_most_epsilon_and_some_row_all_of_it(numeric: Numeric, question: Any) -> None:
    assert max(losses(numeric, question)) == 1


@pytest.mark.parametrize("numeric", KINDS, ids=str)
def test_one_row_moves_the_parts_of_a_mean_or_variance_by_one_number_whatever_its_value(numeric: Numeric) -> None:
    """So no part needs a share: the pair moves by the range in L1, the triple by its square, and no part goes down."""
    wide = numeric.numbers.steps
    for question, power in ((MEAN, 1), (VARIANCE, 2)):
        before, scales = ask([], numeric, question)
        assert scales == [Fraction(wide**power)] * len(before)
        for row in rows_of(numeric):
            after, _ = ask([row], numeric, question)
            moved = [more - less for more, less in zip(after, before, strict=True)]
            assert min(moved) >= 0
            assert sum(moved) == (0 if row is None else wide**power)


SECOND = {
    "alike": grid_from("-3", "1", 3, "y"),
    "with gaps": Numeric("y", Decimal(-1), Decimal(1), None, "drop", Decimal("0.5"), (Decimal("0.5"),)),
    "of two values": Numeric("y", Decimal(0), Decimal(1), Decimal(1)),
}


@pytest.mark.parametrize("other", SECOND.values(), ids=SECOND)
@pytest.mark.parametrize("numeric", [EVEN[2], fine("-3", "1", 4, "own")], ids=["always there", "with gaps"])
def test_one_row_moves_the_products_of_a_covariance_by_both_ranges(numeric: Numeric, other: Numeric) -> None:
    schema, wide = Schema("pair", (numeric, other), 1000), numeric.numbers.steps * other.numbers.steps
    kinds = list(itertools.product(rows_of(numeric), rows_of(other)))

    def told(rows: Sequence[Any]) -> tuple[int, ...]:
        table = encode(open_source({"x": [row[0] for row in rows], "y": [row[1] for row in rows]}), schema)
        noise = Silent()
        kernel = kernel_over(table, UNTOUCHED, Kernel, noise=noise)
        (numbers,) = kernel._compute(resolve(Query(View(), LEAF, Moments(("x", "y")), (Epsilon(UNITS),)), schema)).numbers
        assert noise.scales == [wide] * 4
        assert numbers is not None
        return numbers

    for table in [(), *itertools.combinations(kinds, 1), *itertools.combinations(kinds[:5], 2)]:
        before = told(table)
        for added in kinds:
            moved = [more - less for more, less in zip(told((*table, added)), before, strict=True)]
            assert min(moved) >= 0
            assert sum(moved) == (0 if None in added else wide)


EPSILONS = ("1", "0.1", "0.000001001", "3.333333333")


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_where_gaps_are_possible_a_twentieth_counts_the_rows_and_both_shares_add_up(epsilon: str) -> None:
    paid = Epsilon.parse(epsilon)
    (total,) = ask([1, 2], EVEN[1], Total("x"), epsilon)[1]
    assert Fraction(3) / total == paid.fraction
    total, counted = ask([2, 3], GAPS, Total("x"), epsilon)[1]
    assert Fraction(5) / total + 1 / counted == paid.fraction
    assert 1 / counted == Fraction(paid.units // 20, UNITS)
    assert ask([2, 3], GAPS, Quantile("x", 1, 2), epsilon)[1] == [counted]
    assert ask([2, 3], EVEN[1], Quantile("x", 1, 2), epsilon)[1] == []
    assert ask([2, 3], GAPS, MEAN, epsilon)[1] == [3 / paid.fraction] * 2


def test_mistakes_with_sums_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of values as they stand in the rows, gaps that count as 0, all of epsilon twice, noise for half the range."""
    with monkeypatch.context() as patched:  # unclamped: a row far outside has a value beyond the last
        patched.setattr(numeric_columns, "encode_numbers", lambda numbers, numeric: (numbers + 3).astype(np.uint8))
        before, (scale,) = ask([], EVEN[1], Total("x"))
        after, _ = ask([40], EVEN[1], Total("x"))
        assert abs(after[0] - before[0]) > scale
    with monkeypatch.context() as patched:  # a gap is a row of the mean and of the sum
        patched.setattr(memory_engine, "sums", gaps_as_zero)
        assert max(losses(GAPS, MEAN, 1)) > 1
    with monkeypatch.context() as patched:  # the number of rows for nothing
        patched.setattr(total, "counted_share", lambda amount, domain, epsilon: (epsilon, Epsilon(epsilon.units // 20)))
        assert max(losses(GAPS, Total("x"), 1)) > 1
    for question in (MEAN, VARIANCE):  # sums around the middle are half as large, but these are not around it
        with monkeypatch.context() as patched:
            whole = ResolvedMoments.together.fget  # type: ignore[attr-defined]
            patched.setattr(ResolvedMoments, "together", property(lambda self, whole=whole: whole(self) // 2))
            assert max(losses(EVEN[0], question, 1)) > 1


def gaps_as_zero(cells: Any, amounts: Any, powers: Any, rows: Any) -> Any:
    """The planted mistake: a gap is the number 0, wherever the bounds are. (In steps, 2 below the lowest.)"""
    numbers = rows.values("x").astype(np.int64)
    numbers[numbers > amounts[0].steps] = -2
    return np.array([[int((numbers ** power[0]).sum()) for power in powers]])


def test_the_slides_sensitivity_of_a_sum_is_caught_where_values_may_be_negative() -> None:
    """Erratum E3: for [a, b] the printed sensitivity is b. One row at a = -5 moves the sum by 5, not by 2."""
    numeric = grid_from("-5", "1", 8)
    before, scales = ask([], numeric, Total("x"))
    after, _ = ask([-5], numeric, Total("x"))
    printed = 2
    assert abs(after[0] - before[0]) > printed
    assert abs(after[0] - before[0]) == scales[0]


@given(
    st.sampled_from(KINDS),
    st.lists(st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(10**30), 10**30) | st.none(), max_size=30),
)
def test_sums_are_those_of_the_clamped_and_rounded_values_as_fractions_whatever_stands_in_the_rows(
    numeric: Numeric, values: list[Any]
) -> None:
    found = encode(open_source({"x": values, "c": ["a"] * len(values)}), schema_of(numeric)).values["x"].tolist()
    exact = [Fraction(numeric.value_point(value)) for value in found if value < numeric.values]
    unit = ValueGrid.of(numeric.numbers, centred=False).unit
    (summed, *counted), _ = ask(values, numeric, Total("x"))
    assert summed * unit == sum(exact, Fraction(0))
    assert counted == ([len(exact)] if numeric.gap else [])
    low, high, step = numeric.numbers.low, numeric.numbers.high, numeric.numbers.step
    parts, _ = ask(values, numeric, MEAN)
    wanted = [sum((value - low for value in exact), Fraction(0)), sum((high - value for value in exact), Fraction(0))]
    assert [part * step for part in parts] == wanted
    parts, _ = ask(values, numeric, VARIANCE)
    products = [((value - low) ** 2, 2 * (value - low) * (high - value), (high - value) ** 2) for value in exact]
    assert [part * step**2 for part in parts] == [sum(column) for column in zip((0, 0, 0), *products, strict=True)]


def test_a_variance_of_many_values_is_of_values_rounded_to_few_steps() -> None:
    """2^15 steps: each value moves by at most half of one, and one row the three sums by 2^30."""
    wide = Numeric("x", Decimal(-(10**6)), Decimal(10**6), Decimal(10**5), resolution=Decimal(1))
    values = [-(10**6), -31, 0, 30, 31, 999_999, 10**6, 2 * 10**6, None]
    (squares, mixed, rest), scales = ask(values, wide, VARIANCE)
    assert scales == [2**30] * 3
    assert squares + mixed + rest == 8 * 2**30
    steps = [math.floor(Fraction(min(value, 10**6) + 10**6) * 2**15 / (2 * 10**6) + Fraction(1, 2)) for value in values[:-1]]
    assert squares == sum(step**2 for step in steps)
    assert rest == sum((2**15 - step) ** 2 for step in steps)


@given(st.randoms(), st.lists(st.integers(0, 7), max_size=20))
def test_the_order_of_the_rows_does_not_matter(shuffle: Any, values: list[int]) -> None:
    numeric = grid_from("0", "1", 8)
    mixed = list(values)
    shuffle.shuffle(mixed)
    assert ask(values, numeric, VARIANCE) == ask(mixed, numeric, VARIANCE)


def drawn_by(rows: Sequence[Any], schema: Schema, question: ResolvedQuantile, taken: int = 0) -> tuple[Any, int]:
    """The scores, masses and rate of a quantile's private choice, and the point that follows where that one is taken."""
    seen: list[Any] = []

    def chosen(kernel: Any, mechanism: str, scores: Any, masses: Any, rate: Fraction) -> int:
        seen.append((scores.tolist(), masses.tolist(), rate))
        return taken

    table = encode(open_source({"x": list(rows), "c": ["a"] * len(rows)}), schema)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Kernel, "_choose", chosen)
        plan = ResolvedQuery(Cells((), None), question, (UNITS,), schema.fingerprint)
        plan.check(schema.domain)
        (numbers,) = kernel_over(table, UNTOUCHED, Kernel, noise=Silent())._compute(plan).numbers
    assert numbers is not None
    gaps_are_possible = question.amount.size > question.amount.steps + 1
    assert numbers[1:] == ((sum(row is not None for row in rows),) if gaps_are_possible else ())
    return seen[0], numbers[0]


def law_of_points(rows: Sequence[Any], schema: Schema, question: ResolvedQuantile) -> list[Decimal]:
    """The probability of every point: of its stretch, evenly among the points in it."""
    (scores, masses, rate), _ = drawn_by(rows, schema, question)
    stretches = exponential_law(scores, masses, rate)
    return [chance / mass for chance, mass in zip(stretches, masses, strict=True) for _ in range(mass)]


QUANTILES = {
    "values": (EVEN[0], 4),
    "values with gaps": (fine("-3", "1", 5, "own"), 4),
    "rounded values": (fine("-3", "1", 8, Decimal(0)), 3),
    "rounded values with gaps": (fine("0.5", "0.25", 8, "drop"), 3),
}


def worst_quantile(numeric: Numeric, steps: int, order: tuple[int, int]) -> float:
    """The largest loss between the laws on any two small neighbours. A row without a value changes nothing."""
    schema = schema_of(numeric)
    question = ResolvedQuantile(rounded(numeric, steps), *order)
    known, worst = {}, 0.0
    kinds = rows_of(numeric)
    for count in range(4):
        for rows in itertools.combinations_with_replacement(kinds[:: 1 if count < 3 else 2], count):
            known[rows] = law_of_points(rows, schema, question)
            assert len(known[rows]) == steps + 1
    for rows, law in known.items():
        for added in kinds:
            more = known.get(tuple(sorted((*rows, added), key=kinds.index)))
            if more is not None:
                assert added is not None or more == law
                worst = max(worst, privacy_loss(law, more))
    return worst


@pytest.mark.parametrize("order", [(0, 1), (1, 2), (9, 10)])
@pytest.mark.parametrize("what", QUANTILES)
def test_the_law_of_a_quantile_keeps_its_part_of_epsilon_on_every_small_table(what: str, order: tuple[int, int]) -> None:
    numeric, steps = QUANTILES[what]
    assert worst_quantile(numeric, steps, order) <= (1 if numeric.gap is None else 0.95) + 1e-12


def test_a_point_is_one_of_the_chosen_stretch() -> None:
    numeric = fine("0", "1", 12, "own")
    schema, question = schema_of(numeric), ResolvedQuantile(rounded(numeric, 11), 1, 2)
    rows = [0.0, 3.0, 3.0, 4.0, None, 11.0]
    (_, masses, _), _ = drawn_by(rows, schema, question)
    assert masses == [1, 2, 1, 1, 6, 1]
    for taken, first in enumerate((0, 1, 3, 4, 5, 11)):
        found = {drawn_by(rows, schema, question, taken)[1] for _ in range(60)}
        assert found == set(range(first, first + masses[taken]))  # by chance not all of 6: below 1e-4


@pytest.mark.parametrize("mistake", ["the rows' own values", "a stretch counts once", "a gap lies behind all"])
def test_mistakes_with_points_are_caught(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = quantile.stretches_of_points

    def planted(points: Any, exact_counts: Any, size: int) -> Any:
        found = told(points, exact_counts, size)
        if mistake == "the rows' own values" and len(points):  # no public domain: what nobody has is never chosen
            return tuple(column[found[2] > 0] for column in found)
        return found

    monkeypatch.setattr(quantile, "stretches_of_points", planted)
    if mistake == "a stretch counts once":
        of_points = law_of_points

        def evenly(rows: Any, schema: Any, question: Any) -> list[Decimal]:
            (scores, masses, rate), _ = drawn_by(rows, schema, question)
            stretches = exponential_law(scores, [1] * len(scores), rate)
            return [chance / mass for chance, mass in zip(stretches, masses, strict=True) for _ in range(mass)]

        assert len(of_points([], schema_of(EVEN[0]), ResolvedQuantile(rounded(EVEN[0], 4), 1, 2))) == 5
        monkeypatch.setitem(globals(), "law_of_points", evenly)
    if mistake == "a gap lies behind all":  # as if it were the last point
        occupied = MemoryEngine.occupied

        def gaps_last(self: Any, cells: Any, keys: Any) -> Any:
            numbers, counts = occupied(self, cells, keys)
            return np.minimum(numbers, keys[0].steps), counts

        monkeypatch.setattr(MemoryEngine, "occupied", gaps_last)
    with pytest.raises(AssertionError):
        assert worst_quantile(*QUANTILES["values with gaps"], (1, 2)) <= 0.95 + 1e-12


@pytest.mark.parametrize("hidden", [True, False])
def test_a_label_that_gaps_share_stays_out_of_a_choice_where_the_schema_drops_them(hidden: bool) -> None:
    """Adding a row moves the count of one label, or of none: the range stays one."""
    numeric = fine("-3", "1", 4, "drop" if hidden else "own")
    schema, seen = schema_of(numeric), []
    kinds = rows_of(numeric)

    def scores_of(rows: Sequence[Any]) -> np.ndarray:
        def chosen(kernel: Any, mechanism: str, scores: Any, masses: Any, rate: Fraction) -> int:
            seen.append(rate)
            found.append(scores)
            return 0

        found: list[np.ndarray] = []
        table = encode(open_source({"x": list(rows), "c": ["a"] * len(rows)}), schema)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Kernel, "_choose", chosen)
            asked = ChooseLabel(AttributeKey("x"), "exponential", "monotone")
            kernel_over(table, UNTOUCHED, Kernel)._compute(resolve(Query(View(), LEAF, asked, (Epsilon(UNITS),)), schema))
        return found[0]

    for rows in [(), *itertools.combinations(kinds, 1), *itertools.combinations(kinds, 2)]:
        before = scores_of(rows)
        assert len(before) == numeric.cells + (not hidden)
        for added in kinds:
            moved = (scores_of((*rows, added)) - before).tolist()
            assert sorted(moved)[:-1] == [0] * (len(moved) - 1)
            assert max(moved) == (0 if hidden and added is None else 1)
    assert set(seen) == {Fraction(1)}


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
        lambda: table.covariance("x", "c", epsilon=1),
        lambda: table.covariance("x", "x", epsilon=1),
        lambda: table.std("c", epsilon=1),
    ):
        with pytest.raises(dm.RequestError):
            refused()
    finest = Numeric("x", Decimal("0.001"), Decimal("1000000.001"), Decimal(1000), resolution=Decimal("0.001"))
    with dm.open({"x": [1]}, schema=Schema("fine", (finest,), 10), cap=10) as data:
        fine_table = data.grant("ann", epsilon=10)
        with pytest.raises(dm.RequestError, match="Epsilon is too small"):
            fine_table.mean("x", epsilon="0.000000001")
        with pytest.raises(dm.RequestError, match="Epsilon is too small"):
            fine_table.sum("x", epsilon="0.000000019")  # its twentieth is nothing
        assert fine_table.remaining() == Epsilon.parse(10)
    wide = Numeric("x", Decimal("0.001"), Decimal("1000000000.001"), None, "own", Decimal(10**6), (Decimal(10**7),))
    with dm.open({"x": [1]}, schema=Schema("wide", (wide,), 10), cap=10) as data:
        wide_table = data.grant("ann", epsilon=10)
        with pytest.raises(dm.RequestError, match="too large for exact sums"):
            wide_table.sum("x", epsilon=1)
        assert wide_table.remaining() == Epsilon.parse(10)
    assert table.remaining() == Epsilon.parse(10**6)


def test_a_dry_run_says_the_cost_and_spends_nothing() -> None:
    table = private([1, 2, 3])
    for asked in (table.preview.sum("x", epsilon=1), table.preview.quantile("x", "0.5", epsilon=1)):
        assert asked.cost == Epsilon.parse(1)
        assert asked.expected_error
    assert table.remaining() == Epsilon.parse(10**6)


def test_sums_and_quantiles_are_values_that_travel_as_json() -> None:

    for question in (MEAN, VARIANCE, Moments(("x", "y")), Total("x"), Quantile("x", 1, 2)):
        query = Query(View(), LEAF, question, (Epsilon.parse(1),))
        assert from_wire(to_wire(query), Query) == query
