"""Statistics told through designed noise: on every small table, what one row moves and how much the noise hides it."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.attributes import grid_from
from support.kernels import UNTOUCHED, kernel_over
from support.laws import ALARM, p_value
from support.noise import Silent

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.base.json_values import from_text, to_text
from dpmine.codes.designed_statistic import STATISTICS, sensitivity_of
from dpmine.codes.queries import ResolvedQuery
from dpmine.design.finite_mechanisms import FiniteMechanism, at_most_ratio
from dpmine.design.statistic_noise import numbers_of
from dpmine.engines.encoding import encode
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.kernel.door import Kernel
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.mechanisms import designed_statistic, mechanism, vector_sums
from dpmine.kernel.mechanisms.mechanism import laws_of
from dpmine.language.keys import AttributeKey
from dpmine.language.parsing import parse_predicate
from dpmine.language.queries import Query, Question, resolve
from dpmine.language.resolver import Resolver
from dpmine.language.views import LEAF, Rules, Split, Step, View, Where
from dpmine.noise.finite_tables import LatticeNoise
from dpmine.questions.designed_statistic import DesignedStatistic
from dpmine.questions.vector_sums import VectorSums
from dpmine.tables.asking import query_of

ONE = Epsilon.parse(1)
Rows = tuple[int, ...]
"""The values of one attribute, row by row; behind the last one a gap."""

GRIDS = [
    ("0", "1", 5),
    ("-3", "1", 5),
    ("-3", "2", 3),
    ("0.5", "0.25", 4),
    ("-10", "0.1", 4),
    ("100", "7", 3),
    ("-4", "8", 2),
]


def with_gaps(low: str, step: str, values: int, missing: str) -> Numeric:
    """Values finer than codes, and gaps."""
    first, high = Decimal(low), Decimal(low) + Decimal(step) * (values - 1)
    return Numeric("x", first, high, None, missing, Decimal(step), (first + 2 * Decimal(step),))


FACTS = [
    *(grid_from(*grid) for grid in GRIDS),
    with_gaps("-3", "1", 4, "own"),
    with_gaps("0.5", "0.25", 4, "drop"),
    with_gaps("-4", "4", 3, "own"),
]
GAPPY = with_gaps("-4", "4", 3, "own")


def kinds(numeric: Numeric) -> int:
    """How many kinds of rows there are."""
    return numeric.values + (numeric.gap is not None)


def schema_of(*numeric: Numeric, unit: Unit = Unit()) -> Schema:  # noqa: B008 (frozen)
    return Schema("told", (*numeric, Nominal("c", ("a", "b"), "a", missing="a")), 1000, unit=unit)


def asked(question: Question, epsilon: Epsilon = ONE, *steps: Step, rules: Rules = LEAF) -> Query:
    return Query(View(steps), rules, question, (epsilon,))


def kernel_of(columns: dict[str, list[Any]], schema: Schema, ledger: Ledger = UNTOUCHED, **sources: Any) -> Kernel:
    return kernel_over(encode(open_source(columns), schema), ledger, Kernel, **sources)


def column(numeric: Numeric, rows: Sequence[int]) -> dict[str, list[Any]]:
    numbers = [numeric.value_point(value) if value < numeric.values else None for value in rows]
    return {"x": numbers, "c": ["a"] * len(rows)}


def tables(points: int, rows: int) -> Iterator[Rows]:
    for count in range(rows + 1):
        yield from itertools.combinations_with_replacement(range(points), count)


def neighbours(points: int, rows: int) -> Iterator[tuple[Rows, Rows]]:
    for table in tables(points, rows - 1):
        for added in range(points):
            yield table, (*table, added)


def exact(statistic: str, numeric: Numeric, rows: Rows) -> Fraction:
    """The statistic by plain Python, of the values as fractions."""
    low, high, step = numeric.numbers.low, numeric.numbers.high, numeric.numbers.step
    if statistic == "count":
        return Fraction(len(rows))
    values = [low + step * value for value in rows if value < numeric.values]
    if statistic == "sum":
        return sum(values, Fraction(0))
    if not values:
        middle = {"mean": (low + high) / 2, "max": low, "median": low + step * ((numeric.values - 1) // 2)}
        return middle[statistic]
    known: dict[str, Callable[[list[Fraction]], Fraction]] = {
        "mean": lambda listed: sum(listed, Fraction(0)) / len(listed),
        "max": max,
        "median": statistics.median_low,
    }
    return known[statistic](values)


def of(statistic: str) -> str | None:
    return None if statistic == "count" else "x"


# -- values and sensitivities ------------------------------------------------------------------------------------------


def told_exactly(statistic: str, numeric: Numeric, rows: Rows) -> Fraction:
    """What the door computes before any noise."""
    seen: list[Fraction] = []
    compute = designed_statistic._exact_value

    def watched(question: Any, asked: Any) -> Fraction:
        seen.append(compute(question, asked))
        return seen[-1]

    question = DesignedStatistic(statistic, of(statistic), LatticeNoise("1", "geometric", 0), None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(designed_statistic, "_exact_value", watched)
        kernel_of(column(numeric, rows), schema_of(numeric))._compute(resolve(asked(question), schema_of(numeric)))
    (found,) = seen
    return found


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("numeric", FACTS, ids=str)
def test_one_row_moves_a_statistic_by_at_most_its_sensitivity_and_some_row_by_all_of_it(
    numeric: Numeric, statistic: str
) -> None:
    """Every table of up to three rows, the empty one too. The range's ends and the middle are what reach the bound."""
    found = {rows: told_exactly(statistic, numeric, rows) for rows in tables(kinds(numeric), 3)}
    assert all(told == exact(statistic, numeric, rows) for rows, told in found.items())
    moved = [abs(found[tuple(sorted(more))] - found[less]) for less, more in neighbours(kinds(numeric), 3)]
    limit = sensitivity_of(statistic, numbers_of(statistic, of(statistic), schema_of(numeric)))
    assert max(moved) == limit


@pytest.mark.parametrize("statistic", ["sum", "mean", "max", "median"])
def test_a_row_without_a_value_moves_nothing_and_a_gap_that_counted_as_zero_would(
    statistic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted mistake: a gap as a value of its own beyond the bounds, or as the lowest one."""
    gap = GAPPY.values
    for rows in tables(gap, 2):
        assert told_exactly(statistic, GAPPY, (*rows, gap)) == told_exactly(statistic, GAPPY, rows)
    high = with_gaps("2", "1", 3, "own")  # where 0 is no value
    limit = sensitivity_of(statistic, high.numbers)
    zero = Fraction(0)

    def planted(rows: Rows) -> Fraction:
        low, step = high.numbers.low, high.numbers.step
        values = [zero if value == high.values else low + step * value for value in rows]
        return {"sum": sum, "mean": statistics.mean, "max": max, "median": statistics.median_low}[statistic](values)  # type: ignore[operator]

    moves = [
        abs(planted((*rows, added)) - (planted(rows) if rows else told_exactly(statistic, high, ())))
        for rows in tables(high.values + 1, 2)
        for added in range(high.values + 1)
    ]
    assert statistic == "sum" or max(moves) > limit


def test_the_sensitivities_are_those_of_the_reference() -> None:
    numeric = grid_from("-10", "1", 21)
    wanted = {"count": 1, "sum": 10, "mean": 10, "max": 20, "median": 20}
    found = {name: sensitivity_of(name, None if name == "count" else numeric.numbers) for name in STATISTICS}
    assert found == wanted
    assert sensitivity_of("mean", grid_from("18", "1", 83).numbers) == 41
    assert sensitivity_of("sum", grid_from("18", "1", 83).numbers) == 100


LATTICE_STEPS = ["1", "1/3", "1/4", "2", "5", "8", "10", "7/2"]


def steps_told(rows: Rows, numeric: Numeric, statistic: str, step: str) -> tuple[int, Fraction]:
    """What leaves the door when geometric noise adds nothing, and the scale that the noise would have had."""
    silent = Silent()
    question = DesignedStatistic(statistic, of(statistic), LatticeNoise(step, "geometric", 0), None)
    schema = schema_of(numeric)
    ((answer,),) = kernel_of(column(numeric, rows), schema, noise=silent)._compute(resolve(asked(question), schema)).numbers  # type: ignore[misc]
    (scale,) = silent.scales
    return answer, scale


def lattice_losses(numeric: Numeric, statistic: str, step: str, rows: int) -> set[Fraction]:
    """Epsilon times how many noise scales one row moves the answer, over all small tables."""
    known = {table: steps_told(table, numeric, statistic, step) for table in tables(kinds(numeric), rows)}
    assert len({scale for _, scale in known.values()}) == 1
    losses = set()
    for less, more in neighbours(kinds(numeric), rows):
        (before, scale), (after, _) = known[less], known[tuple(sorted(more))]
        losses.add(abs(after - before) / scale)
    return losses


@pytest.mark.parametrize("step", LATTICE_STEPS)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_one_row_moves_the_answer_on_a_lattice_by_at_most_its_noise_scale_times_epsilon(statistic: str, step: str) -> None:
    """Whether or not the step divides the sensitivity: a number that moves by D moves by at most ceil(D / step) steps."""
    losses = set()
    for numeric in (GAPPY, grid_from("-3", "1", 4)):
        losses |= lattice_losses(numeric, statistic, step, 2)
    assert max(losses) <= 1


@pytest.mark.parametrize("statistic", STATISTICS)
def test_on_the_lattice_of_the_grid_all_of_epsilon_is_used(statistic: str) -> None:
    assert max(lattice_losses(grid_from("-4", "4", 3), statistic, "1", 2)) == 1


def half_away_from_zero(number: Fraction, step: Fraction) -> int:
    away = math.floor(abs(number) / step + Fraction(1, 2))
    return away if number >= 0 else -away


def half_to_even(number: Fraction, step: Fraction) -> int:
    return round(number / step)


@pytest.mark.parametrize(
    ("rounding", "statistic", "grid", "step"),
    [(half_away_from_zero, "max", ("-4", "8", 2), "8"), (half_to_even, "sum", ("0", "8", 3), "16")],
)
def test_other_ways_of_rounding_halves_are_caught(
    rounding: Any, statistic: str, grid: tuple[str, str, int], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Erratum E9: -4 and 4 lie one sensitivity apart and go to -1 and 1; a sum of 8 goes to 0, and one of 24 to 2."""
    numeric = grid_from(*grid)
    assert max(lattice_losses(numeric, statistic, step, 2)) == 1
    monkeypatch.setattr(designed_statistic, "lattice_point", rounding)
    assert max(lattice_losses(numeric, statistic, step, 2)) == 2


# -- finite mechanisms -------------------------------------------------------------------------------------------------


def response(low: str, step: str, points: int, epsilon: str, less: int = 10**9) -> FiniteMechanism:
    """Randomised response: the true point has exp(epsilon) times the weight of any other, rounded down."""
    more = math.floor(math.exp(float(epsilon)) * less * (1 - 1e-14))
    outputs = tuple(str(Fraction(low) + Fraction(step) * place) for place in range(points))
    weights = tuple(tuple(more if column == row else less for column in range(points)) for row in range(points))
    return FiniteMechanism(low, step, outputs, weights)


def ladder(low: str, points: int, ratio: Fraction) -> FiniteMechanism:
    """Weights ratio^distance, truncated: keeps ln(1/ratio) for each step of the grid, and that many times more for more."""
    a = ratio
    rows = []
    for row in range(points):
        law = [a ** abs(row - column) * (1 - a) for column in range(points)]
        law[0], law[-1] = a**row, a ** (points - 1 - row)
        rows.append([chance / (1 + a) for chance in law])
    common = math.lcm(*(chance.denominator for row in rows for chance in row))
    weights = tuple(tuple(int(chance * common) for chance in row) for row in rows)
    return FiniteMechanism(low, "1", tuple(str(int(low) + place) for place in range(points)), weights)


def on_codes(query: Query, schema: Schema) -> ResolvedQuery:
    """What the query means, whatever the names' side would say of its price: the door is asked on codes."""
    resolver = Resolver(schema)
    return ResolvedQuery(
        resolver.cells(query.view, query.rules),
        query.question.resolve(resolver, 1),
        query.epsilon_units(1),
        schema.fingerprint,
    )


def row_used(rows: Rows, numeric: Numeric, query: Query, monkeypatch: pytest.MonkeyPatch) -> tuple[int, ...]:
    """The weights that the door draws from."""
    used: list[tuple[int, ...]] = []

    plan = on_codes(query, schema_of(numeric))
    drawn = designed_statistic.drawn_output

    def watched(entropy: Any, law: FiniteMechanism, exact_value: Fraction) -> int:
        used.append(law.weights[law.input_of(exact_value)])
        return drawn(entropy, law, exact_value)

    with monkeypatch.context() as patched:
        patched.setattr(designed_statistic, "drawn_output", watched)
        kernel_of(column(numeric, rows), schema_of(numeric))._compute(plan)
    (weights,) = used
    return weights


def worst_pair(numeric: Numeric, query: Query, rows: int, epsilon: Epsilon, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether all ratios of the laws on neighbouring tables stay within exp(epsilon), exactly."""
    known = {table: row_used(table, numeric, query, monkeypatch) for table in tables(kinds(numeric), rows)}
    pairs = set()
    for less, more in neighbours(kinds(numeric), rows):
        before, after = known[less], known[tuple(sorted(more))]
        pairs |= set(zip(before, after, strict=True)) | set(zip(after, before, strict=True))
    return all(at_most_ratio(one, other, epsilon) for one, other in pairs)


def finite_queries(numeric: Numeric) -> dict[str, Query]:
    low, step = numeric.numbers.low, numeric.numbers.step
    grid = str(low), str(step), numeric.values
    found = {
        f"{name} by response": asked(DesignedStatistic(name, "x", response(*grid, "1"), None))
        for name in ("mean", "max", "median")
    }
    found["count by ladder"] = asked(DesignedStatistic("count", None, ladder("0", 4, Fraction(37, 100)), None))
    found["sum by response"] = asked(DesignedStatistic("sum", "x", response("-8", "1", 17, "1"), None))
    found["mean, half the range a step"] = asked(
        DesignedStatistic("mean", "x", ladder(str(low), 5, Fraction(78, 100)), None)
    )
    return found


@pytest.mark.parametrize("numeric", [grid_from("-4", "4", 3), GAPPY], ids=["always there", "with gaps"])
@pytest.mark.parametrize("name", sorted(finite_queries(GAPPY)))
def test_the_law_of_a_told_statistic_keeps_epsilon_on_every_small_table(
    name: str, numeric: Numeric, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = finite_queries(numeric)[name]
    assert worst_pair(numeric, query, 3, ONE, monkeypatch)
    assert not worst_pair(numeric, query, 3, Epsilon.parse("0.9"), monkeypatch)


def laws_under(schema: Schema, query: Query) -> Any:
    """What the door makes sure of before it charges."""
    plan = on_codes(query, schema)
    return laws_of(plan.question, schema.domain, plan.units)


def test_a_mean_with_the_sensitivity_of_many_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake (u - l) / n, here with n = 4: right for tables of four rows and more, wrong for smaller ones."""
    numeric = grid_from("0", "1", 5)
    query = asked(DesignedStatistic("mean", "x", ladder("0", 5, Fraction(37, 100)), None))
    with pytest.raises(dm.RequestError, match="does not keep epsilon 1 where"):
        laws_under(schema_of(numeric), query)
    planted = designed_statistic.sensitivity_of
    monkeypatch.setattr(
        designed_statistic, "sensitivity_of", lambda name, found: planted(name, found) / (2 if name == "mean" else 1)
    )
    laws_under(schema_of(numeric), query)
    assert not worst_pair(numeric, query, 2, ONE, monkeypatch)


def test_a_mean_that_is_the_lower_end_where_nobody_is_there_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    numeric = grid_from("0", "1", 5)
    query = asked(DesignedStatistic("mean", "x", ladder("0", 5, Fraction(61, 100)), None))
    assert worst_pair(numeric, query, 3, ONE, monkeypatch)
    compute = designed_statistic._exact_value

    def planted(question: Any, asked: Any) -> Fraction:
        (exact_counts,) = asked.engine.counts(asked.cells, [()])
        return compute(question, asked) if exact_counts.sum() else numeric.numbers.low

    monkeypatch.setattr(designed_statistic, "_exact_value", planted)
    assert not worst_pair(numeric, query, 3, ONE, monkeypatch)


# -- before anything is charged ----------------------------------------------------------------------------------------


def opened(values: list[Any], *, low: str = "0", points: int = 5, step: str = "1", unit: Unit = Unit()) -> dm.PrivateTable:  # noqa: B008
    schema = schema_of(grid_from(low, step, points), unit=unit)
    columns = {"x": values, "c": ["a"] * len(values), "who": [str(place) for place in range(len(values))]}
    return dm.open(columns, schema=schema, cap=10**6).grant("ann", epsilon=10**6)


def refused(table: dm.PrivateTable, query: Query, words: str) -> None:
    before = table.remaining()
    for ask in (table._executor.answer, table._executor.preview):
        with pytest.raises(dm.RequestError, match=words):
            ask(query)
    assert table.remaining() == before


@pytest.mark.parametrize("epsilon", ["1", "0.1", "0.000001", "5"])
def test_a_mechanism_that_keeps_a_millionth_more_is_refused_and_costs_nothing(epsilon: str) -> None:
    table = opened([1, 2])
    more = str(Decimal(epsilon) + Decimal("0.000001"))
    right, wrong = (response("0", "1", 5, amount, 10**14) for amount in (epsilon, more))
    assert wrong.keeps(Epsilon.parse(more), Fraction(4))
    query = asked(DesignedStatistic("median", "x", wrong, None), Epsilon.parse(epsilon))
    refused(table, query, "does not keep epsilon")
    with pytest.raises(dm.RequestError, match="This table does not keep epsilon"):  # nor would the door, asked on codes
        laws_under(table.schema, query)
    table._executor.answer(asked(DesignedStatistic("median", "x", right, None), Epsilon.parse(epsilon)))
    assert table.remaining().units == 10**15 - Epsilon.parse(epsilon).units


def test_noise_for_a_smaller_sensitivity_than_the_schemas_is_refused() -> None:
    """The same mechanism is fine for a count, whose sensitivity is one step, and for no statistic of a wide attribute."""
    table = opened([1, 2])
    mechanism = ladder("0", 5, Fraction(37, 100))
    for name in ("mean", "max", "median", "sum"):
        refused(table, asked(DesignedStatistic(name, "x", mechanism, None)), f"one row can move the {name}")
        with pytest.raises(dm.RequestError, match="one row moves the answer"):
            laws_under(table.schema, asked(DesignedStatistic(name, "x", mechanism, None)))
    table._executor.answer(asked(DesignedStatistic("count", None, mechanism, None)))


def test_a_zero_beside_a_positive_weight_is_refused() -> None:
    mechanism = FiniteMechanism("0", "4", ("0", "4"), ((1, 0), (0, 1)))
    refused(opened([1]), asked(DesignedStatistic("max", "x", mechanism, None), Epsilon.parse(10**6)), "it needs inf")


def test_staircases_need_an_inner_width_below_the_sensitivity() -> None:
    table = opened([1, 2])
    for inner in (4, 5, 2**61):
        noise = LatticeNoise("1", "staircase", inner)
        refused(table, asked(DesignedStatistic("sum", "x", noise, None)), r"below its lengths: \(4,\)")


def test_noise_that_would_not_fit_64_bits_is_refused_in_words() -> None:
    table = opened([1], low="0", step="1000", points=4000)
    for question in (
        DesignedStatistic("sum", "x", LatticeNoise("1", "geometric", 0), None),
        DesignedStatistic("sum", "x", LatticeNoise("1", "staircase", 7), None),
        DesignedStatistic("count", None, LatticeNoise("1/16777216", "staircase", 7), None),
        VectorSums(("x",), True, False, "l1", ()),  # a billionth has no two shares
    ):
        assert resolve(asked(question), table.schema)
        refused(table, asked(question, Epsilon(1)), "Epsilon is too small")
    refused(table, asked(DesignedStatistic("sum", "x", LatticeNoise("1/1000000", "geometric", 0), None)), "too fine")
    wide = opened([1], low="0.001", step="1000", points=4000)
    for ball, inner in (("l1", ()), ("l-infinity", (0,))):
        refused(wide, asked(VectorSums(("x",), False, False, ball, inner)), "too large for exact sums")
    fair = opened([1], low="0.1", step="1000", points=4000)
    refused(fair, asked(VectorSums(("x",), False, False, "l-infinity", (0,)), Epsilon(1)), "Epsilon is too small")


def test_the_smallest_epsilon_is_answered_where_its_noise_fits() -> None:
    table = opened([1, 2])
    for question in (
        DesignedStatistic("count", None, LatticeNoise("1", "geometric", 0), None),
        DesignedStatistic("count", None, LatticeNoise("1", "staircase", 0), None),
        DesignedStatistic("sum", "x", LatticeNoise("1", "staircase", 3), None),
        VectorSums(("x",), True, True, "l-infinity", (0, 1)),
    ):
        reply = table._executor.answer(asked(question, Epsilon(1)))
        assert all(abs(number) <= 2**61 for number in reply.answer.numbers[0] or ())
        assert table._executor.preview(asked(question, Epsilon(2))).laws


def test_answers_are_clipped_to_61_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schema_of(grid_from("0", "1", 5))
    monkeypatch.setattr(mechanism, "box_staircase", lambda entropy, lengths, inner, epsilon: ((2**70,) * len(lengths),))
    kernel = kernel_of({"x": [1], "c": ["a"]}, schema)
    told = resolve(asked(DesignedStatistic("sum", "x", LatticeNoise("1", "staircase", 0), None)), schema)
    vector = resolve(asked(VectorSums(("x",), True, False, "l-infinity", (0, 0))), schema)
    assert kernel._compute(told).numbers == ((2**61,),)
    assert kernel._compute(vector).numbers == ((2**61, 2**61),)


@pytest.mark.parametrize(
    "question",
    [
        DesignedStatistic("count", None, LatticeNoise("1", "geometric", 0), None),
        VectorSums(("x",), False, False, "l-infinity", (0,)),
    ],
)
def test_cells_are_refused(question: Question) -> None:
    refused(opened([1]), asked(question, rules=Split(AttributeKey("c"), (LEAF, LEAF))), "whole view")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (DesignedStatistic("mean", "c", LatticeNoise("1", "geometric", 0), None), "not numeric"),
        (DesignedStatistic("mean", "nowhere", LatticeNoise("1", "geometric", 0), None), "nowhere"),
        (VectorSums(("c",), False, False, "l1", ()), "not numeric"),
    ],
)
def test_attributes_that_have_no_such_statistic_are_refused(question: Question, words: str) -> None:
    refused(opened([1]), asked(question), words)


FORM = json.loads(to_text(asked(DesignedStatistic("mean", "x", response("0", "4", 2, "1"), None))))
NOISE = FORM["question"]["noise"]


@pytest.mark.parametrize(
    "question",
    [
        {**FORM["question"], "statistic": "variance"},
        {**FORM["question"], "statistic": "count"},
        {**FORM["question"], "attribute": None},
        {**FORM["question"], "attribute": 3},
        {**FORM["question"], "prior": "x" * 16_385},
        {**FORM["question"], "prior": 1},
        {**FORM["question"], "noise": None},
        {**FORM["question"], "noise": {"is": "count"}},
        {**FORM["question"], "noise": {**NOISE, "low": "1e999999999"}},
        {**FORM["question"], "noise": {**NOISE, "low": "9" * 5000}},
        {**FORM["question"], "noise": {**NOISE, "low": "0/0"}},
        {**FORM["question"], "noise": {**NOISE, "step": "0"}},
        {**FORM["question"], "noise": {**NOISE, "step": "-1"}},
        {**FORM["question"], "noise": {**NOISE, "step": "1/" + "9" * 100}},
        {**FORM["question"], "noise": {**NOISE, "outputs": ["0"]}},
        {**FORM["question"], "noise": {**NOISE, "outputs": ["4", "0"]}},
        {**FORM["question"], "noise": {**NOISE, "weights": [[1, 1], [1, 2]]}},
        {**FORM["question"], "noise": {**NOISE, "weights": [[1, -1], [0, 0]]}},
        {**FORM["question"], "noise": {**NOISE, "weights": [[1, True], [1, 1]]}},
        {**FORM["question"], "noise": {**NOISE, "weights": [[2**70, 2**70], [2**70, 2**70]]}},
        {**FORM["question"], "noise": {**NOISE, "weights": []}},
        {**FORM["question"], "noise": {**NOISE, "weights": [[1, 1]] * 402}},
        {**FORM["question"], "noise": {"is": "lattice-noise", "step": "1", "kind": "gaussian", "inner": 0}},
        {**FORM["question"], "noise": {"is": "lattice-noise", "step": "nan", "kind": "geometric", "inner": 0}},
        {**FORM["question"], "noise": {"is": "lattice-noise", "step": "1", "kind": "geometric", "inner": 1}},
        {**FORM["question"], "noise": {"is": "lattice-noise", "step": "1", "kind": "staircase", "inner": -1}},
        {"is": "vector-sums", "attributes": [], "with_count": False, "centred": False, "ball": "l1", "inner": []},
        {"is": "vector-sums", "attributes": ["x", "x"], "with_count": False, "centred": False, "ball": "l1", "inner": []},
        {"is": "vector-sums", "attributes": ["x"], "with_count": False, "centred": False, "ball": "l2", "inner": []},
        {"is": "vector-sums", "attributes": ["x"], "with_count": False, "centred": False, "ball": "l1", "inner": [0]},
        {"is": "vector-sums", "attributes": ["x"], "with_count": True, "centred": False, "ball": "l-infinity", "inner": [0]},
        {"is": "vector-sums", "attributes": ["x"], "with_count": 1, "centred": False, "ball": "l1", "inner": []},
    ],
    ids=range(32),
)
def test_questions_that_make_no_sense_are_refused_when_they_are_read(question: dict[str, Any]) -> None:
    with pytest.raises(dm.RequestError) as caught:
        from_text(json.dumps({**FORM, "question": question}), Query)
    assert len(str(caught.value)) < 400


# -- what the plan holds -----------------------------------------------------------------------------------------------


def test_everything_that_decides_the_noise_is_in_the_plan_and_the_prior_is_not() -> None:
    schema = schema_of(grid_from("0", "1", 5))

    def plan(question: Question) -> Any:
        return resolve(asked(question), schema)

    same = [
        plan(DesignedStatistic("median", "x", response("0", "1", 5, "1"), prior)) for prior in (None, "flat", "normal:1:2")
    ]
    assert same[0] == same[1] == same[2]
    stairs = [LatticeNoise("1", "staircase", 0), LatticeNoise("1", "staircase", 1), LatticeNoise("2", "staircase", 0)]
    others = [
        same[0],
        plan(DesignedStatistic("median", "x", response("0", "1", 5, "0.5"), None)),
        plan(DesignedStatistic("max", "x", response("0", "1", 5, "1"), None)),
        *(plan(DesignedStatistic("max", "x", noise, None)) for noise in stairs),
        plan(DesignedStatistic("max", "x", LatticeNoise("1", "geometric", 0), None)),
        plan(VectorSums(("x",), True, True, "l-infinity", (0, 0))),
        plan(VectorSums(("x",), True, True, "l-infinity", (0, 1))),
        plan(VectorSums(("x",), True, True, "l1", ())),
        plan(VectorSums(("x",), True, False, "l1", ())),
        plan(VectorSums(("x",), False, False, "l1", ())),
    ]
    assert len({to_text(found) for found in others}) == len(others)


def test_a_repeated_question_is_free_and_answers_alike_whatever_the_prior_says() -> None:
    table = opened([1, 2, 3])
    mechanism = response("0", "1", 5, "1")
    first = table._executor.answer(asked(DesignedStatistic("median", "x", mechanism, None)))
    again = table._executor.answer(asked(DesignedStatistic("median", "x", mechanism, "normal:1:2")))
    assert first.answer == again.answer
    assert table.remaining().units == 10**15 - 10**9
    assert table._executor.preview(asked(DesignedStatistic("median", "x", mechanism, "flat"))).cached


def test_persons_with_several_rows_pay_for_each_of_them() -> None:
    table = opened([1, 2, 3], unit=Unit("who", 3))
    table._executor.answer(asked(DesignedStatistic("median", "x", response("0", "1", 5, "1"), None)))
    assert table.remaining().units == 10**15 - 3 * 10**9
    table._executor.answer(asked(VectorSums(("x",), True, True, "l-infinity", (0, 0))))
    assert table.remaining().units == 10**15 - 6 * 10**9


def test_a_view_leaves_other_rows_out() -> None:
    table = opened([0, 1, 4, 4])
    high = Epsilon.parse(1000)
    step = Where(parse_predicate("x <= 1"))
    reply = table._executor.answer(asked(DesignedStatistic("max", "x", LatticeNoise("1", "geometric", 0), None), high, step))
    assert reply.answer.numbers == ((1,),)
    nobody = Where(parse_predicate("x == 3"))
    for name, wanted in (("count", 0), ("sum", 0), ("mean", 2), ("max", 0), ("median", 2)):
        told = DesignedStatistic(name, of(name), LatticeNoise("1", "staircase", 0), None)
        assert table._executor.answer(asked(told, high, nobody)).answer.numbers == ((wanted,),)


def test_memory_and_duckdb_give_equal_exact_values(tmp_path: Path) -> None:
    """At an epsilon that leaves no noise, over both engines and by plain Python."""
    draw = np.random.default_rng(8)
    numeric, other = grid_from("-3", "0.5", 21), grid_from("10", "2", 9, "y")
    schema = schema_of(numeric, other)
    rows = {"x": draw.integers(-8, 12, 300) / 2, "y": draw.integers(0, 40, 300), "c": draw.choice(["a", "b"], 300)}
    import pandas as pd

    path = tmp_path / "rows.parquet"
    pd.DataFrame(rows).to_parquet(path)
    answers = []
    for source, engine in (({name: listed.tolist() for name, listed in rows.items()}, "memory"), (path, "duckdb")):
        with dm.open(source, schema=schema, ledger=None, cap=10**6, engine=engine) as data:
            table = data.grant("ann", epsilon=10**6).where("c == a")
            found: list[Any] = []
            for name in STATISTICS:
                told = DesignedStatistic(name, of(name), LatticeNoise("1/1000", "geometric", 0), None)
                found.append(table._executor.answer(query_of(table.schema, table._view, LEAF, told, 10**5)).answer.numbers)
            vector = VectorSums(("x", "y"), True, False, "l-infinity", (0, 0, 0))
            found.append(table._executor.answer(query_of(table.schema, table._view, LEAF, vector, 10**5)).answer.numbers)
            answers.append(found)
    assert answers[0] == answers[1]
    inside = np.clip(rows["x"], -3, 7)[rows["c"] == "a"]
    codes = tuple(int(value) for value in (inside + 3) * 2)
    for name, ((told,),) in zip(STATISTICS, answers[0][:-1], strict=True):
        assert told == math.floor(exact(name, numeric, codes) * 1000 + Fraction(1, 2))
    nearest = np.clip((rows["y"] + 1) // 2 * 2, 10, 26)[rows["c"] == "a"]
    assert answers[0][-1] == ((len(codes), int(inside.sum() * 2), int(nearest.sum()) // 2),)


# -- several sums at once ----------------------------------------------------------------------------------------------

PAIR = schema_of(grid_from("-3", "1", 3), grid_from("0", "2", 3, "y"))
KINDS = list(itertools.product((-3, -2, -1), (0, 2, 4)))
GAPPY_PAIR = schema_of(
    Numeric("x", Decimal(-3), Decimal(-1), None, "own", Decimal(1), (Decimal(-2),)),
    Numeric("y", Decimal(0), Decimal(4), Decimal(4), "drop", Decimal(2)),
)
GAPPY_KINDS = list(itertools.product((-3, -2, -1, None), (0, 2, 4, None)))


def vector_told(rows: Sequence[Any], question: VectorSums, monkeypatch: pytest.MonkeyPatch, schema: Schema = PAIR) -> Any:
    """Exact numbers of the door, and what its noise was asked for: boxes, or scales."""
    boxes: list[Any] = []

    def nothing(entropy: Any, lengths: Any, inner: Any, *, epsilon: Fraction) -> Any:
        boxes.append((lengths, inner, epsilon))
        return ((0,) * len(lengths),)

    silent = Silent()
    columns = {"x": [row[0] for row in rows], "y": [row[1] for row in rows], "c": ["a"] * len(rows)}
    with monkeypatch.context() as patched:
        patched.setattr(mechanism, "box_staircase", nothing)
        kernel = kernel_of(columns, schema, noise=silent)
        (numbers,) = kernel._compute(resolve(asked(question), schema)).numbers
    return numbers, boxes, silent.scales


def vector_loss(before: Any, after: Any) -> Fraction:
    """In units of epsilon = 1: the largest coordinate of a box, the sum over independent noise."""
    moves = [abs(one - other) for one, other in zip(before[0], after[0], strict=True)]
    loss = Fraction(0)
    for lengths, _, epsilon in before[1]:
        loss += epsilon * max(
            Fraction(math.ceil(Fraction(move, length))) for move, length in zip(moves, lengths, strict=True)
        )
    return loss + sum((move / scale for move, scale in zip(moves, before[2], strict=False)), Fraction(0))


VECTORS = {
    "sums in a box": VectorSums(("x", "y"), False, False, "l-infinity", (1, 0)),
    "means in a box": VectorSums(("x", "y"), True, True, "l-infinity", (0, 0, 0)),
    "sums in a cross": VectorSums(("x", "y"), False, False, "l1", ()),
    "means in a cross": VectorSums(("y", "x"), True, True, "l1", ()),
    "one sum": VectorSums(("x",), False, False, "l-infinity", (2,)),
}


def worst_vector_loss(
    question: VectorSums, monkeypatch: pytest.MonkeyPatch, schema: Schema = PAIR, kinds: Sequence[Any] = KINDS
) -> Fraction:
    known = {}
    for count in range(4):
        for rows in itertools.combinations_with_replacement(kinds, count):
            if count < 2 or rows[0] in (kinds[0], kinds[4]):
                known[rows] = vector_told(rows, question, monkeypatch, schema)
    worst = Fraction(0)
    for rows, before in known.items():
        for row in kinds:
            after = known.get(tuple(sorted((*rows, row), key=kinds.index)))
            worst = max(worst, vector_loss(before, after)) if after else worst
    return worst


@pytest.mark.parametrize("name", VECTORS)
def test_one_row_moves_several_sums_within_what_their_noise_hides(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert worst_vector_loss(VECTORS[name], monkeypatch) == 1
    assert worst_vector_loss(VECTORS[name], monkeypatch, GAPPY_PAIR, GAPPY_KINDS) == 1


def test_sums_are_of_rows_with_all_values_where_these_are_counted_else_each_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [(-3, 4), (-2, None), (None, 2), (None, None)]
    together, _, _ = vector_told(rows, VECTORS["means in a cross"], monkeypatch, GAPPY_PAIR)
    assert together == (1, 1, -1)  # one row; y is 1 step above its middle, x 1 below
    alone, _, _ = vector_told(rows, VECTORS["sums in a cross"], monkeypatch, GAPPY_PAIR)
    assert alone == (-5, 3)


def test_lengths_are_the_largest_values_and_shares_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    _, ((lengths, _, _),), _ = vector_told([], VECTORS["means in a box"], monkeypatch)
    assert lengths == (1, 1, 1)  # in units of each grid, from its middle
    _, ((lengths, _, _),), _ = vector_told([], VECTORS["sums in a box"], monkeypatch)
    assert lengths == (3, 2)
    _, boxes, scales = vector_told([], VECTORS["means in a cross"], monkeypatch)
    assert not boxes
    assert sum(1 / scale for scale in scales) == 1


def test_mistakes_with_several_sums_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths of centred values for values that are not, and all of epsilon for each of several sums."""
    lengths = vector_sums.lengths_of
    with monkeypatch.context() as patched:
        patched.setattr(
            vector_sums, "lengths_of", lambda grids, with_count: (1,) * len(lengths(grids, with_count=with_count))
        )
        assert worst_vector_loss(VECTORS["sums in a cross"], monkeypatch) > 1
        assert worst_vector_loss(VectorSums(("x", "y"), False, False, "l-infinity", (0, 0)), monkeypatch) > 1
    with monkeypatch.context() as patched:
        patched.setattr(vector_sums, "shares", lambda units, parts: (units,) * parts)
        assert worst_vector_loss(VECTORS["means in a cross"], monkeypatch) > 1


# -- the noise itself --------------------------------------------------------------------------------------------------


def drawn_through_the_door(question: Question, values: list[int], draws: int) -> Counter[tuple[int, ...]]:
    schema = schema_of(grid_from("0", "1", 5))
    kernel = kernel_of({"x": values, "c": ["a"] * len(values)}, schema)
    plan = resolve(asked(question), schema)
    return Counter(kernel._compute(plan).numbers[0] for _ in range(draws))  # type: ignore[misc]


def staircase_law(steps: int, inner: int, reach: int, centre: int) -> dict[tuple[int, ...], float]:
    """1.6 of the reference: a first part of 2 inner + 1 points, then stairs of `steps` points on either side."""
    b = math.exp(-1)
    total = (2 * inner + 1) + 2 * steps * b / (1 - b)
    return {(centre + z,): b ** max(0, -(-(abs(z) - inner) // steps)) / total for z in range(-reach, reach + 1)}


@pytest.mark.parametrize(("inner", "fits"), [(1, True), (0, False), (3, False)])
def test_a_staircase_through_the_door_has_its_law(inner: int, fits: bool) -> None:
    """The sum 7 with sensitivity 4 at epsilon 1, 6,000 times. False alarms below 1e-6; other stairs are told apart."""
    drawn = drawn_through_the_door(DesignedStatistic("sum", "x", LatticeNoise("1", "staircase", 1), None), [3, 4], 6000)
    law = staircase_law(4, inner, 12, 7)
    seen = [drawn[place] for place in law]
    found = p_value([*seen, 6000 - sum(seen)], [*law.values(), 1 - math.fsum(law.values())])
    assert (found > ALARM) == fits


def test_a_finite_mechanism_through_the_door_has_its_law() -> None:
    mechanism = response("0", "1", 5, "1")
    drawn = drawn_through_the_door(DesignedStatistic("median", "x", mechanism, None), [1, 3, 3, 4], 4000)
    seen = [drawn[(place,)] for place in range(5)]
    laws = [[weight / mechanism.total for weight in row] for row in mechanism.weights]
    assert p_value(seen, laws[3]) > ALARM
    assert p_value(seen, laws[2]) < ALARM
