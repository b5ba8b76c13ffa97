"""Designed noise as a miner meets it: names and priors, previews, refusals, answers, and several sums at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.executors import Opener
from support.refusals import assert_one_sentence

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import BudgetError, DpmineError, RequestError
from dpmine.codes.answers import Quote
from dpmine.codes.designed_statistic import sensitivity_of
from dpmine.codes.vector_sums import lengths_of
from dpmine.design import balls, statistic_noise
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.noise.finite_tables import FiniteTable, LatticeNoise
from dpmine.noise.laws import FiniteLaw
from dpmine.questions.designed_statistic import DesignedAnswer, DesignedStatistic
from dpmine.questions.histogram import NoisyCount
from dpmine.questions.quantile import ChosenQuantile
from dpmine.questions.vector_sums import NoisyVectorSums, VectorSums, value_grids
from dpmine.results.estimates import Estimate
from dpmine.results.preview import Preview
from dpmine.results.receipts import Receipt
from dpmine.tables import asking

HUGE = 1000
SCHEMA = Schema(
    "clinic",
    (
        Numeric("age", Decimal(0), Decimal(20), Decimal(1), Decimal(0)),
        Numeric("weight", Decimal("-10"), Decimal(10), Decimal("0.5"), Decimal(0), Decimal("0.5")),
        Numeric("fine", Decimal(0), Decimal(4000), Decimal(1), Decimal(0)),
        Numeric("yes", Decimal(0), Decimal(1), Decimal(1), Decimal(0)),
        Nominal("ward", ("a", "b", "empty"), "a", missing="a"),
    ),
    rows_at_most=1000,
)
DRAW = np.random.default_rng(4)
ROWS: dict[str, list[Any]] = {
    "age": DRAW.integers(3, 17, 101).tolist(),
    "weight": (DRAW.integers(-12, 18, 101) / 2).tolist(),
    "fine": DRAW.integers(0, 4001, 101).tolist(),
    "yes": DRAW.integers(0, 2, 101).tolist(),
    "ward": DRAW.choice(["a", "b"], 101).tolist(),
}
BY_NAME = ["geometric", "staircase", "optimal", "risk-averse", "heuristic", "randomised-response", "auto"]


@pytest.fixture
def private(opened: Opener) -> dm.PrivateTable:
    return opened(ROWS, SCHEMA, epsilon=10)


@pytest.fixture
def clear(opened: Opener) -> dm.PrivateTable:
    """So much epsilon that answers are exact."""
    return opened(ROWS, SCHEMA, epsilon=1_000_000)


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["geometric", "staircase", "auto"])
def test_without_bounds_a_count_and_a_sum_are_told_on_a_lattice(clear: dm.PrivateTable, mechanism: str) -> None:
    count = clear.count(epsilon=HUGE, design=mechanism)
    assert isinstance(count, DesignedAnswer)
    assert (count.released, float(count)) == (101, 101.0)
    total = clear.sum("weight", epsilon=10 * HUGE, design=mechanism)
    assert total.released == Fraction(sum(ROWS["weight"]))
    assert total.mechanism in ("geometric", "staircase")
    assert total.prior_loss is None
    assert isinstance(total.noise, LatticeNoise)
    assert total.noise.step == "1/2"


@pytest.mark.parametrize("mechanism", ["geometric", "optimal", "randomised-response", "auto"])
def test_with_a_huge_epsilon_statistics_within_bounds_are_the_truth(clear: dm.PrivateTable, mechanism: str) -> None:
    largest = clear.max("age", epsilon=HUGE * 20, design=mechanism)
    median = clear.median("age", epsilon=HUGE * 20, design=mechanism)
    mean = clear.mean("age", epsilon=HUGE * 20, design=mechanism)
    assert largest.released == max(ROWS["age"])
    assert median.released == sorted(ROWS["age"])[50]
    assert abs(mean.value - np.mean(ROWS["age"])) <= 0.5
    assert mean.interval().low <= np.mean(ROWS["age"]) <= mean.interval().high


@pytest.mark.parametrize("mechanism", BY_NAME)
def test_every_mechanism_answers_for_a_mean_and_costs_its_epsilon(private: dm.PrivateTable, mechanism: str) -> None:
    answer = private.mean("age", epsilon="0.5", design=mechanism)
    assert isinstance(answer.noise, FiniteMechanism)
    assert 0 <= answer.value <= 20
    assert private.remaining() == Epsilon.parse("9.5")
    assert str(answer.receipt.epsilon) == "0.5"
    assert answer.noise.keeps(Epsilon.parse("0.5"), Fraction(10))
    assert answer.expected_loss > 0
    assert answer.why.endswith(".")


def test_a_prior_is_used_and_recorded(clear: dm.PrivateTable) -> None:
    known = dm.prior("normal:10:2")
    answer = clear.mean("age", epsilon="0.5", design=known)
    flat = clear.mean("age", epsilon="0.5", design="auto")
    assert answer.expected_loss < flat.expected_loss
    assert answer.prior_loss is not None
    assert answer.expected_loss <= answer.prior_loss + 1e-9
    assert "normal:10:2" in str(answer.interval())
    bounded = clear.count(epsilon=HUGE, design=dm.prior("normal:100:5", low=80, high=120))
    assert bounded.released == 101
    total = clear.sum("age", epsilon=HUGE * 100, design=dm.prior("flat", low=0, high=2000, step=10))
    assert abs(total.value - sum(ROWS["age"])) <= 5


def test_the_prior_stands_in_the_query() -> None:
    sent: list[Any] = []

    class Listening:
        schema = SCHEMA

        def preview(self, query: Any) -> Quote:
            sent.append(query.question)
            return Quote(Epsilon(1), Epsilon(1), True, False, ((FiniteLaw(query.question.noise),),), query.epsilon)

    table = dm.PrivateTable(Listening())  # type: ignore[arg-type]
    table.preview.mean("age", epsilon=1, design=dm.prior("normal:10:2", loss="squared"))
    (question,) = sent
    assert isinstance(question, DesignedStatistic)
    assert "normal:10:2" in (question.prior or "")
    assert "squared" in (question.prior or "")


def test_designs_follow_from_public_facts_alone(opened: Opener) -> None:
    """Another table under the same schema gets the very same mechanism."""
    others = {name: [column[0]] for name, column in ROWS.items()}
    answers = [opened(rows, SCHEMA, epsilon=2).max("age", epsilon=1, design="auto") for rows in (ROWS, others)]
    assert answers[0].noise == answers[1].noise
    assert answers[0].why == answers[1].why


def test_a_repeated_question_costs_nothing(private: dm.PrivateTable) -> None:
    first = private.median("age", epsilon=1, design="optimal")
    again = private.median("age", epsilon=1, design="optimal")
    assert first.released == again.released
    assert private.remaining() == Epsilon.parse(9)
    sums = [private.sums(["age", "weight"], epsilon=1).sums for _ in range(2)]
    assert sums[0] == sums[1]
    assert private.remaining() == Epsilon.parse(8)


def test_empty_views_are_answered_like_any_other(clear: dm.PrivateTable) -> None:
    nobody = clear.where("ward == empty")
    assert nobody.count(epsilon=HUGE, design="staircase").released == 0
    assert nobody.sum("age", epsilon=20 * HUGE, design="geometric").released == 0
    assert nobody.mean("age", epsilon=20 * HUGE, design="optimal").released == 10
    assert nobody.max("age", epsilon=20 * HUGE, design="optimal").released == 0
    assert nobody.median("age", epsilon=20 * HUGE, design="optimal").released == 10
    assert nobody.sums(["age", "weight"], epsilon=20 * HUGE).to_dict() == {"age": 0.0, "weight": 0.0}
    means = nobody.means(["age", "weight"], epsilon=20 * HUGE)
    assert means.to_dict() == {"age": 10.0, "weight": 0.0}
    assert "too few rows" in means["age"].note


def test_without_a_mechanism_everything_is_as_before(private: dm.PrivateTable) -> None:
    assert isinstance(private.count(epsilon="0.1"), NoisyCount)
    assert isinstance(private.mean("age", epsilon="0.1"), Estimate)
    assert isinstance(private.median("age", epsilon="0.1"), ChosenQuantile)
    assert isinstance(private.max("age", epsilon="0.1"), ChosenQuantile)
    assert isinstance(private.preview.median("age", epsilon="0.1"), Preview)
    assert isinstance(private.preview.max("age", epsilon="0.1"), Preview)
    assert private.remaining() == Epsilon.parse("9.6")


# -- which and why -----------------------------------------------------------------------------------------------------


def test_auto_takes_the_smaller_expected_error_and_says_why(clear: dm.PrivateTable) -> None:
    count = clear.count(epsilon=1, design="auto")
    assert count.mechanism == "geometric"
    assert "best for every prior" in count.why
    large, small = (clear.sum("age", epsilon=amount, design="auto") for amount in (5, "0.1"))
    assert large.mechanism == "staircase"
    assert large.expected_loss == pytest.approx(20 * 0.0826, rel=0.06)  # of the continuous law; a lattice is a bit better
    assert "with geometric noise" in large.why
    assert small.expected_loss <= 200
    named = clear.mean("age", epsilon=1, design="auto")
    others = [clear.mean("age", epsilon=1, design=name) for name in BY_NAME if name != "auto"]
    assert all(named.expected_loss <= other.expected_loss + 1e-9 for other in others)
    assert named.prior_loss is not None
    assert named.expected_loss <= named.prior_loss


def test_what_is_no_better_than_the_prior_alone_says_so(private: dm.PrivateTable) -> None:
    """The talk's heuristic with a narrow prior (erratum E11) and even its best remap; and a guard against the worst case."""
    heuristic = private.mean("age", epsilon="0.05", design=dm.prior("normal:10:1", by="heuristic"))
    assert heuristic.expected_loss == pytest.approx(heuristic.prior_loss, rel=0.01)
    assert "answers the same whatever the data" in heuristic.why
    assert "by the prior alone" in str(heuristic)
    averse = private.mean("age", epsilon=1, design=dm.prior("normal:10:1", by="risk-averse"))
    assert averse.prior_loss is not None
    assert averse.expected_loss > averse.prior_loss
    assert "loses to answering the prior alone" in averse.why


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_it_is_said_from_how_many_rows_on_the_default_is_better(private: dm.PrivateTable, statistic: str) -> None:
    answer = getattr(private, statistic)("age", epsilon=1, design="auto")
    assert "rows on" in answer.why
    assert "Without a mechanism" in answer.why
    assert "rows on" not in private.max("age", epsilon=1, design="auto").why


def test_the_default_for_a_mean_really_is_better_from_about_so_many_rows_on() -> None:
    """The stated number of rows is where the noise of the default, spread over the rows, is as large as the loss."""
    made = statistic_noise.design(SCHEMA, "mean", "age", epsilon=Epsilon.parse("0.5"), mechanism="geometric")
    rows = int(made.why.rsplit("about ", 1)[1].split(" ")[0].replace(",", ""))
    default = 20 / 0.5 / rows  # the sum's noise: half the range over half of epsilon
    assert 0.4 < default / made.expected_loss < 1.6


def test_a_dry_run_says_cost_error_mechanism_and_why_and_spends_nothing(private: dm.PrivateTable) -> None:
    asked: list[Callable[[], Preview]] = [
        lambda: private.preview.count(epsilon=1, design="auto"),
        lambda: private.preview.sum("age", epsilon=1, design="staircase"),
        lambda: private.preview.mean("age", epsilon=1, design=dm.prior("normal:10:2")),
        lambda: private.preview.max("age", epsilon=1, design="optimal"),
        lambda: private.preview.median("age", epsilon=1, design="randomised-response"),
    ]
    for ask in asked:
        preview = ask()
        assert preview.cost == Epsilon.parse(1)
        assert "will be off by" in preview.expected_error
        assert "Mechanism: " in preview.expected_error
        assert "expected absolute loss" in preview.expected_error
    vector = private.preview.means(["age", "weight"], epsilon=1)
    assert "number of rows" in vector.expected_error
    assert "weight" in vector.expected_error
    assert private.remaining() == Epsilon.parse(10)


def test_the_statement_names_what_was_told(private: dm.PrivateTable) -> None:
    private.count(epsilon=1, design="geometric")
    private.mean("age", epsilon=1, design="optimal")
    private.sums(["age", "weight"], epsilon=1, request_key="both")
    text = str(private.statement())
    assert "count told by geometric noise in steps of 1" in text
    assert "mean of age told by a finite mechanism of 21 points" in text
    assert "sums of age, weight at once" in text


# -- what an answer says of itself -------------------------------------------------------------------------------------


def test_an_answer_prints_what_matters(private: dm.PrivateTable) -> None:
    answer = private.mean("age", epsilon=1, design=dm.prior("normal:10:2"))
    text = str(answer)
    for part in (f"mean of age about {answer.value:.6g}", "95%", "normal:10:2", answer.mechanism, "epsilon 1", answer.why):
        assert part in text
    assert float(answer) == answer.value == float(answer.released)


def test_an_interval_is_what_the_posterior_says(private: dm.PrivateTable) -> None:
    answer = private.max("age", epsilon=1, design=dm.prior("normal:15:3", by="geometric"))
    assert isinstance(answer.noise, FiniteMechanism)
    assert answer.probabilities is not None
    place = answer.noise.released.index(answer.released)
    posterior = answer.noise.posterior(answer.probabilities, place)
    inputs = [float(point) for point in answer.noise.inputs]
    for confidence in (0.5, 0.95, 0.999):
        found = answer.interval(confidence)
        inside = [found.low <= point <= found.high for point in inputs]
        assert posterior[inside].sum() >= confidence - 1e-9
        assert "normal:15:3" in found.note
        narrower = [posterior[i : i + sum(inside) - 1].sum() for i in range(len(inputs) - sum(inside) + 2)]
        assert max(narrower) < confidence
    with pytest.raises(RequestError, match="between 0 and 1"):
        answer.interval(1.5)
    everything = private.mean("age", epsilon="0.01", design="geometric").interval(0.9999)
    assert (everything.low, everything.high) == (0, 20)  # never beyond the range, coarse or not


def test_on_a_lattice_the_interval_is_by_the_noise_alone(private: dm.PrivateTable) -> None:
    for mechanism in ("geometric", "staircase"):
        answer = private.sum("weight", epsilon=2, design=mechanism)
        found = answer.interval(0.9)
        assert (found.low + found.high) / 2 == answer.value
        assert 0 < found.high - found.low < 40
        assert "noise alone" in found.note


def test_the_interval_of_a_mean_on_a_lattice_holds_what_rounding_adds(opened: Opener) -> None:
    """A mean lies between lattice points even where every value lies on one: 0.25 is told as 0 or 1."""
    private = opened({**ROWS, "yes": [1, 0, 0, 0] * 25 + [0]}, SCHEMA, epsilon=HUGE)
    question = DesignedStatistic("mean", "yes", LatticeNoise("1", "staircase", 0), None)
    for number in range(20):
        found = private.ask(question, epsilon=40 + number / 100).interval(0.95)
        assert found.low <= 25 / 101 <= found.high
        assert found.high - found.low <= 1


def test_an_answer_that_contradicts_its_prior_still_prints() -> None:
    mechanism = FiniteMechanism("0", "1", ("0", "1"), ((3, 0), (0, 3)))
    receipt = Receipt(Epsilon.parse(1), Epsilon.parse(1), 1, "")
    answer = DesignedAnswer(
        "max of x",
        Fraction(1),
        "some",
        "Because.",
        "absolute",
        0.0,
        0.0,
        mechanism,
        1,
        "weights:1,0",
        np.array([1.0, 0.0]),
        False,
        receipt,
    )
    assert answer.interval().low == 1
    assert "contradicts" in str(answer)


# -- grids -------------------------------------------------------------------------------------------------------------


def grid_of(statistic: str, column: str | None, mechanism: Any = "geometric") -> tuple[Fraction, Fraction, int]:
    noise = statistic_noise.design(SCHEMA, statistic, column, epsilon=Epsilon.parse(1), mechanism=mechanism).noise
    assert isinstance(noise, FiniteMechanism)
    return noise.inputs[0], noise.inputs[-1], len(noise.inputs)


def test_grids_are_the_attributes_own_made_coarser_or_for_means_finer() -> None:
    assert grid_of("max", "age") == (0, 20, 21)
    assert grid_of("median", "weight") == (-10, 10, 41)
    assert grid_of("max", "fine") == (0, 4000, 201)
    assert grid_of("mean", "fine") == (0, 4000, 201)
    assert grid_of("mean", "yes") == (0, 1, 21)
    assert grid_of("max", "yes") == (0, 1, 2)
    assert grid_of("mean", "age", dm.prior("flat", by="geometric", low=5, high=15, step="0.5")) == (5, 15, 21)
    assert grid_of("count", None, dm.prior("flat", by="randomised-response", low=0, high=1000)) == (0, 1000, 201)
    assert grid_of("count", None, dm.prior("flat", by="geometric", low=0, high=7)) == (0, 7, 8)
    first, last, points = grid_of("count", None, dm.prior("flat", by="randomised-response", low=0, high=301))
    assert (first, last) == (0, 302)  # in steps of 2, so that the last point is not left out
    assert points == 152


def test_an_interval_is_wider_by_half_a_step_where_the_grid_misses_values() -> None:
    def coarse(statistic: str, column: str | None, **known: Any) -> bool:
        stated = dm.prior("flat", by="randomised-response", **known)
        return statistic_noise.design(SCHEMA, statistic, column, epsilon=Epsilon.parse(1), mechanism=stated).coarse

    assert coarse("mean", "age")
    assert coarse("max", "fine")
    assert coarse("max", "age", low="0.5", high="10.5")
    assert coarse("count", None, low=0, high=1000)
    assert not coarse("max", "age")
    assert not coarse("median", "weight")
    assert not coarse("max", "age", step="0.5")
    assert not coarse("count", None, low=3, high=100)
    assert not coarse("sum", "weight", low=0, high=50)


@pytest.mark.parametrize("statistic", ["mean", "max", "median"])
def test_designed_mechanisms_keep_epsilon_for_the_schemas_sensitivity(statistic: str) -> None:
    attribute = SCHEMA.single("weight")
    assert isinstance(attribute, Numeric)
    for mechanism in BY_NAME:
        for epsilon in ("0.01", "1", "4"):
            made = statistic_noise.design(SCHEMA, statistic, "weight", epsilon=Epsilon.parse(epsilon), mechanism=mechanism)
            assert isinstance(made.noise, FiniteMechanism)
            assert made.noise.keeps(Epsilon.parse(epsilon), sensitivity_of(statistic, attribute.numbers))


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda table: table.count(epsilon=1, design="optimal"), "has no bounds of its own"),
        (lambda table: table.sum("age", epsilon=1, design="heuristic"), "dm.prior"),
        (lambda table: table.count(epsilon=1, design=dm.prior("normal:5:1")), "low=0, high=1000"),
        (lambda table: table.count(epsilon=1, design=dm.prior("flat", low=3)), "both low and high"),
        (lambda table: table.mean("age", epsilon=1, design="magic"), "magic"),
        (lambda table: table.mean("age", epsilon=1, design="magic"), "geometric"),
        (lambda table: table.mean("ward", epsilon=1, design="auto"), "not numeric"),
        (lambda table: table.mean("nowhere", epsilon=1, design="auto"), "nowhere"),
        (lambda table: table.mean("age", epsilon=0, design="auto"), "positive"),
        (lambda table: table.sums(["age", "ward"], epsilon=1), "not numeric"),
        (lambda table: table.sums([], epsilon=1), "1 to 32"),
        (lambda table: table.sums(["age", "age"], epsilon=1), "different"),
        (lambda table: table.sums("age", epsilon=1), "as a list"),
        (lambda table: table.means(["age"], epsilon=1, ball="l2"), "l-infinity"),
        (lambda table: table.sum("fine", epsilon="0.000000001", design="staircase", request_key=""), "request key"),
    ],
    ids=range(15),
)
def test_refusals_are_one_sentence_and_cost_nothing(private: dm.PrivateTable, ask: Any, words: str) -> None:
    with pytest.raises(DpmineError, match=words) as caught:
        ask(private)
    assert_one_sentence(caught.value)
    assert private.remaining() == Epsilon.parse(10)


def test_a_tiny_epsilon_is_answered_or_refused_before_anything_is_spent(opened: Opener) -> None:
    wide = Schema("wide", (Numeric("x", Decimal(0), Decimal(10**9), Decimal(10**7 - 1), Decimal(0)),), 10)
    table = opened({"x": [5, 6]}, wide, epsilon=1)
    for mechanism in ("geometric", "staircase"):
        table.count(epsilon="0.000000001", design=mechanism)
    spent = table.remaining()
    assert table.max("x", epsilon="0.000000001", design="geometric").value >= 0
    before = table.remaining()
    assert before < spent
    fine = Schema("fine", (Numeric("x", Decimal("0.1"), Decimal(4 * 10**6), Decimal(1000), Decimal(1)),), 10)
    other = opened({"x": [5, 6]}, fine, epsilon=1)
    for ask in (
        lambda: other.sum("x", epsilon="0.000000001", design="staircase"),
        lambda: other.sums(["x"], epsilon="0.000000001"),
    ):
        with pytest.raises(RequestError, match="Epsilon is too small"):
            ask()
    assert other.remaining() == Epsilon.parse(1)


def test_a_budget_that_is_too_small_refuses(private: dm.PrivateTable) -> None:
    with pytest.raises(BudgetError):
        private.mean("age", epsilon=11, design="geometric")
    assert private.remaining() == Epsilon.parse(10)


def test_persons_pay_for_all_their_rows(opened: Opener) -> None:
    schema = Schema("people", SCHEMA.attributes, 1000, unit=Unit("who", 2))
    table = opened({**ROWS, "who": [str(place // 2) for place in range(101)]}, schema, epsilon=10)
    table.mean("age", epsilon=1, design="geometric")
    table.sums(["age", "weight"], epsilon=1)
    assert table.remaining() == Epsilon.parse(6)


# -- several sums at once ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ball", [None, "l-infinity", "l1"])
def test_with_a_huge_epsilon_sums_and_means_are_the_truth(clear: dm.PrivateTable, ball: str | None) -> None:
    names = ["weight", "age", "yes"]
    sums = clear.sums(names, epsilon=40 * HUGE, ball=ball)
    assert isinstance(sums, NoisyVectorSums)
    assert sums.to_dict() == {name: sum(ROWS[name]) for name in names}
    means = clear.means(names, epsilon=40 * HUGE, ball=ball)
    assert means.to_dict() == pytest.approx({name: np.mean(ROWS[name]) for name in names})
    assert means.rows == 101
    assert list(means) == names
    assert len(means) == 3
    assert clear.where("ward == a").sums(["age"], epsilon=40 * HUGE)["age"].value == sum(
        age for age, ward in zip(ROWS["age"], ROWS["ward"], strict=True) if ward == "a"
    )


def test_from_two_numbers_on_the_box_is_taken() -> None:
    for epsilon in ("0.1", "1", "5"):
        for what, columns in (("sum", ["age", "weight"]), ("mean", ["age"]), ("mean", ["age", "weight", "fine"])):
            question = asking.vector_sums(SCHEMA, columns, epsilon, None, means=what == "mean")
            assert question.ball == "l-infinity"
            grids = value_grids(SCHEMA, question.attributes, centred=question.centred)
            lengths = lengths_of(grids, with_count=question.with_count)
            assert len(question.inner) == len(lengths)
            box = balls.box_error(lengths, question.inner, Epsilon.parse(epsilon))
            cross = balls.cross_error(lengths, Epsilon.parse(epsilon))
            numbers = len(lengths)
            assert box <= cross
            if epsilon == "0.1":
                assert box / cross == pytest.approx((numbers + 1) / 2 / numbers, rel=0.01)


def test_intervals_of_sums_hold_at_their_confidence(clear: dm.PrivateTable) -> None:
    """100 draws each at 95 %: fewer than 78 hits have a chance below 1e-6 (binomial tail, below)."""
    truths = {"age": np.mean(ROWS["age"]), "weight": np.mean(ROWS["weight"])}
    hits = dict.fromkeys(truths, 0)
    for draw in range(100):
        found = clear.means(["age", "weight"], epsilon=Epsilon(10**9 + draw))
        for name, truth in truths.items():
            hits[name] += found[name].low - 1e-9 <= truth <= found[name].high + 1e-9
    assert sum(math.comb(100, k) * 0.95**k * 0.05 ** (100 - k) for k in range(78)) < 1e-6
    assert min(hits.values()) >= 78


def test_a_vector_prints_and_knows_its_columns(private: dm.PrivateTable) -> None:
    found = private.means(["age", "weight"], epsilon=1)
    assert "mean of age about" in str(found)
    assert "l-infinity" in str(found)
    with pytest.raises(RequestError, match="There are: age, weight"):
        found["fine"]
    with pytest.raises(RequestError, match="between 0 and 1"):
        found.estimate("age", 0)
    wide, narrow = found.estimate("age", 0.99), found.estimate("age", 0.5)
    assert wide.low <= narrow.low <= narrow.high <= wide.high


def test_one_noise_for_many_sums_is_smaller_than_one_after_the_other() -> None:
    """Five sums at epsilon 1: the box of five against five questions at 0.2."""
    names = tuple(f"n{place}" for place in range(5))
    schema = Schema("five", tuple(Numeric(name, Decimal(0), Decimal(50), Decimal(1), Decimal(0)) for name in names), 10)
    question = asking.vector_sums(schema, names, 1, None, means=False)
    assert isinstance(question, VectorSums)
    lengths = lengths_of(value_grids(schema, names, centred=False), with_count=False)
    together = balls.box_error(lengths, question.inner, Epsilon.parse(1)) / 5
    assert together == pytest.approx(3, rel=0.01)  # of 50; one after the other 5 of 50


def test_numpy_names_of_columns_are_names(private: dm.PrivateTable) -> None:
    """They once spoiled the schema's cache of keys for everybody."""
    first = private.sum(np.str_("age"), epsilon=1)
    assert private.sum("age", epsilon=1) == first
    assert private.sums(list(np.array(["age", "weight"])), epsilon=1) is not None


def test_a_mechanism_made_of_lists_is_refused() -> None:
    with pytest.raises(dm.RequestError, match="tuples"):
        FiniteMechanism("0", "1", ["0", "1"], [[1, 1], [1, 1]])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statistic", "column", "text", "epsilon"),
    [
        ("median", "fine", "normal:2009:3", "5"),
        ("mean", "age", "normal:10.4:0.2", "5"),
        ("sum", "age", "normal:6700:50", "1"),
    ],
)
def test_a_prior_narrower_than_a_grid_step_makes_the_grid_finer(
    statistic: str, column: str, text: str, epsilon: str
) -> None:
    """Simulated: truths by the prior, answers by the mechanism. 20,000 of them: six standard errors."""
    bounds = {"low": 0, "high": 100_000} if statistic == "sum" else {}
    made = statistic_noise.design(
        SCHEMA, statistic, column, epsilon=Epsilon.parse(epsilon), mechanism=dm.prior(text, **bounds)
    )
    assert made.prior_loss is not None
    assert made.expected_loss < made.prior_loss
    assert isinstance(made.noise, FiniteMechanism)
    draw = np.random.default_rng(4)
    mean, deviation = map(float, text.split(":")[1:])
    truths = draw.normal(mean, deviation, 20_000)
    truths = truths if statistic == "mean" else np.rint(truths)
    released = np.array([float(x) for x in made.noise.released])
    matrix = made.noise.matrix().cumsum(axis=1)
    rows = [made.noise.input_of(Fraction(float(x)).limit_denominator(10**6)) for x in truths]
    told = released[[int(np.searchsorted(matrix[row], draw.random())) for row in rows]]
    losses = np.abs(told - truths)
    assert abs(losses.mean() - made.expected_loss) < 6 * losses.std() / np.sqrt(len(losses)) + 0.2 * made.expected_loss


def test_steps_too_coarse_are_told_of(private: dm.PrivateTable) -> None:
    coarse = private.count(epsilon=5, design=dm.prior("flat", step=10))
    interval = coarse.interval()
    assert interval.high - interval.low >= 10
    assert coarse.expected_loss > 2
    assert "give a smaller step" in private.mean("age", epsilon=5, design=dm.prior("flat", step=10)).why
    stated = dm.prior("normal:600:2", low=0, high=100_000, by="geometric")
    assert "prior alone" in statistic_noise.design(SCHEMA, "sum", "age", epsilon=Epsilon.parse("0.1"), mechanism=stated).why


def test_a_range_that_misses_the_attribute_is_refused(private: dm.PrivateTable) -> None:
    with pytest.raises(dm.RequestError, match="misses"):
        private.mean("age", epsilon=1, design=dm.prior("flat", low=200, high=300))


def test_an_answer_far_outside_the_prior_says_so() -> None:
    with dm.open(
        {"x": [1.0] * 900}, schema=dm.Schema("xs", (dm.Numeric("x", *map(Decimal, (0, 9, 1, 0))),), 1000), cap=9
    ) as data:
        answer = data.grant("miner", epsilon=9).count(epsilon=5, design=dm.prior("triangle:0:100:300", low=0, high=1000))
        assert "far outside" in str(answer)


def test_a_table_of_ones_own_is_a_mechanism_if_it_keeps_epsilon(private: dm.PrivateTable) -> None:
    fair = FiniteMechanism("0", "10", ("0", "20"), ((8, 4), (6, 6), (4, 8)))
    told = private.max("age", epsilon=1, design=fair)
    assert told.value in (0, 20)
    assert told.mechanism == "a mechanism of your own"
    left = private.remaining()
    with pytest.raises(dm.RequestError, match="does not keep epsilon"):
        private.max("age", epsilon="0.5", design=fair)
    with pytest.raises(dm.RequestError, match=r"dm\.prior\('normal:3:1'\)"):
        private.max("age", epsilon=1, design="normal:3:1")
    assert private.remaining() == left


def test_a_mechanism_and_its_table_are_answered_alike_and_paid_once(private: dm.PrivateTable) -> None:
    fair = FiniteMechanism("0", "10", ("0", "20"), ((8, 4), (6, 6), (4, 8)))
    table = FiniteTable(fair.low, fair.step, fair.outputs, fair.weights)
    asked = [private.ask(DesignedStatistic("max", "age", noise, None), epsilon=1) for noise in (fair, table)]
    assert asked[0].released == asked[1].released
    assert asked[0].receipt == asked[1].receipt
    assert all(type(answer.noise) is FiniteMechanism for answer in asked)
    assert private.remaining() == Epsilon.parse(9)
