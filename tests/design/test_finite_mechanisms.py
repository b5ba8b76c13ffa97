"""Finite mechanisms: the exact check, rounding, remaps, repeated answers, colluders."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.json_values import from_text, to_text
from dpmine.base.wire import from_wire, to_wire, value_hash
from dpmine.design.constructions import geometric_matrix, heuristic, truncated_geometric
from dpmine.design.finite_mechanisms import FiniteMechanism, at_most_ratio
from dpmine.design.priors import prior
from dpmine.design.repair import repaired, unrepaired
from dpmine.design.setting import Setting
from dpmine.language.queries import Query
from dpmine.language.views import LEAF, View
from dpmine.noise.finite_tables import FiniteTable, LatticeNoise, window_maxima
from dpmine.questions.designed_statistic import DesignedStatistic

ONE = Epsilon.parse("1")


def setting(low: int, high: int, sensitivity: int, epsilon: str = "1") -> Setting:
    return Setting(Fraction(low), Fraction(high), Fraction(1), Fraction(sensitivity), Epsilon.parse(epsilon))


def two_points(more: int, less: int) -> FiniteMechanism:
    return FiniteMechanism("0", "1", ("0", "1"), ((more, less), (less, more)))


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "3.7", "20"])
def test_the_check_decides_a_single_unit_at_the_edge(epsilon: str) -> None:
    amount, more = Epsilon.parse(epsilon), 10**17
    least = math.floor(more * math.exp(-float(amount)))
    while at_most_ratio(more, least, amount):
        least -= 1
    while not at_most_ratio(more, least, amount):
        least += 1
    with np.errstate(all="ignore"):
        assert abs(least - more * math.exp(-float(amount))) < 1e-14 * more + 2
    assert two_points(more, least).keeps(amount, Fraction(1))
    assert not two_points(more, least - 1).keeps(amount, Fraction(1))


def test_zero_may_only_meet_zero() -> None:
    assert not two_points(5, 0).keeps(Epsilon.parse("1000"), Fraction(1))
    assert FiniteMechanism("0", "1", ("0", "1"), ((5, 0), (5, 0))).keeps(ONE, Fraction(1))
    assert two_points(5, 0).epsilon(Fraction(1)) == math.inf


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 7), st.integers(1, 7), st.integers(0, 2**32), st.sampled_from(["0.5", "1", "2"]))
def test_the_check_is_that_of_all_pairs(points: int, steps: int, seed: int, epsilon: str) -> None:
    generator = np.random.default_rng(seed)
    weights = generator.integers(5, 16, size=(points, 3))
    weights[:, 2] = 100 - weights[:, :2].sum(axis=1)
    mechanism = FiniteMechanism("0", "1", ("0", "1", "2"), tuple(map(tuple, weights.tolist())))
    pairs = [(i, k) for i in range(points) for k in range(points) if abs(i - k) <= steps]
    bound = math.exp(float(epsilon))
    expected = all(weights[i, r] <= bound * weights[k, r] for i, k in pairs for r in range(3))
    assert mechanism.keeps(Epsilon.parse(epsilon), Fraction(steps)) == expected
    largest = max(math.log(weights[i, r] / weights[k, r]) for i, k in pairs for r in range(3))
    assert mechanism.epsilon(Fraction(steps)) == pytest.approx(largest)


def test_a_sensitivity_between_steps_counts_as_the_next_step() -> None:
    mechanism = truncated_geometric(setting(0, 5, 2))
    assert mechanism.steps(Fraction(3, 2)) == 2
    assert mechanism.keeps(ONE, Fraction(3, 2))
    assert not mechanism.keeps(ONE, Fraction(5, 2))
    assert mechanism.steps(Fraction(100)) == 5


def test_halves_go_up_also_below_zero() -> None:
    mechanism = FiniteMechanism("-2", "1", ("0",), ((1,),) * 5)
    places = [mechanism.input_of(Fraction(x)) for x in ("-9", "-3/2", "-1/2", "1/2", "3/2", "9", "-7/4")]
    assert places == [0, 1, 2, 3, 4, 4, 0]


def rounded_by(rule: object, low: int, high: int, sensitivity: int) -> FiniteMechanism:
    """The talk's heuristic with another rounding rule, repaired as if it were right."""
    values = range(low, high + 1)
    places = np.array([rule(Fraction(x, sensitivity)) for x in values])  # type: ignore[operator]
    places -= places.min()
    outputs = tuple(Fraction(low + place * sensitivity) for place in range(places.max() + 1))
    matrix = geometric_matrix(len(outputs), 1.0)[places]
    return unrepaired(0.999 * matrix + 0.001 / len(outputs), setting(low, high, sensitivity), outputs)


def away_from_zero(x: Fraction) -> int:
    return math.floor(abs(x) + Fraction(1, 2)) * (1 if x >= 0 else -1)


def half_up(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2))


def test_only_rounding_halves_up_keeps_epsilon() -> None:
    assert rounded_by(half_up, -10, 10, 10).keeps(ONE, Fraction(10))
    assert not rounded_by(away_from_zero, -10, 10, 10).keeps(ONE, Fraction(10))
    assert rounded_by(half_up, -20, 20, 10).keeps(ONE, Fraction(10))
    assert not rounded_by(round, -20, 20, 10).keeps(ONE, Fraction(10))


def test_heuristic_rows_are_those_of_three_points() -> None:
    mechanism, a = heuristic(setting(-10, 10, 10)), math.exp(-1)
    assert mechanism.outputs == ("-10", "0", "10")
    rows = np.array([[1, (1 - a) * a, a * a], [a, 1 - a, a], [a * a, (1 - a) * a, 1]]) / (1 + a)
    places = [0] * 5 + [1] * 10 + [2] * 6
    assert mechanism.matrix() == pytest.approx(rows[places], abs=1e-12)


def test_remap_is_exact_and_never_worse() -> None:
    facts, stated = setting(-10, 10, 10), prior("normal:0:3")
    probabilities = stated.probabilities(facts.grid)
    plain = truncated_geometric(facts)
    remapped = plain.remapped(probabilities, "absolute")
    assert remapped.keeps(ONE, Fraction(10))
    assert {sum(row) for row in remapped.weights} == {plain.total}
    best = sum(
        min(sum(p * row[y] * abs(x - r) for p, row, x in zip(probabilities, plain.matrix(), range(-10, 11), strict=True))
            for r in range(-10, 11))
        for y in range(21)
    )  # fmt: skip
    assert remapped.expected_loss(probabilities, "absolute") == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_repeated_answers_are_those_of_brute_force(k: int) -> None:
    mechanism = truncated_geometric(setting(0, 2, 1))
    several = mechanism.repeated(k)
    for row, weights in zip(mechanism.weights, several.weights, strict=True):
        chances = dict.fromkeys(several.multisets, 0)
        for answers in itertools.product(range(3), repeat=k):
            chances[tuple(sorted(answers))] += math.prod(row[answer] for answer in answers)
        assert tuple(chances.values()) == weights
        assert sum(weights) == several.total
    assert several.keeps(Epsilon.parse(k), Fraction(1))
    assert not several.keeps(Epsilon.parse(f"{0.999 * k:.3f}"), Fraction(1))
    assert several.epsilon(Fraction(1)) == pytest.approx(k * mechanism.epsilon(Fraction(1)))


def test_too_many_answers_are_refused() -> None:
    with pytest.raises(RequestError, match="too many"):
        truncated_geometric(setting(0, 20, 1)).repeated(5)


def test_colluders_take_what_can_be_released_then_the_middle_of_equally_likely_inputs() -> None:
    mechanism = heuristic(setting(-10, 10, 10))
    assert [mechanism.most_likely([output] * 9) for output in range(3)] == [0, 10, 20]
    flat = FiniteMechanism("0", "1", ("1/2",), ((1,),) * 6)
    assert flat.most_likely([0]) == 2
    assert truncated_geometric(setting(0, 4, 1)).most_likely([1, 1, 3]) == 1


def test_posterior_is_bayes_rule() -> None:
    mechanism = two_points(3, 1)
    assert mechanism.posterior([0.5, 0.5], 0) == pytest.approx([0.75, 0.25])
    assert mechanism.posterior([0.2, 0.8], 1) == pytest.approx([0.05 / 0.65, 0.6 / 0.65])


def test_windows_are_those_of_brute_force() -> None:
    numbers = np.random.default_rng(3).integers(0, 1000, (13, 4))
    for steps in range(13):
        expected = [numbers[max(0, i - steps) : i + steps + 1].max(axis=0) for i in range(13)]
        assert np.array_equal(window_maxima(numbers, steps), expected)


def test_json_there_and_back() -> None:
    mechanism = truncated_geometric(setting(-1, 2, 1))
    assert from_text(to_text(mechanism), FiniteTable) == mechanism
    noise = LatticeNoise("1/10", "staircase", 3)
    assert from_text(to_text(noise), LatticeNoise) == noise


def test_a_mechanism_is_asked_for_as_its_table() -> None:
    mechanism = truncated_geometric(setting(-1, 2, 1))
    table = FiniteTable(mechanism.low, mechanism.step, mechanism.outputs, mechanism.weights)
    asked = [Query(View(), LEAF, DesignedStatistic("max", "x", noise, None), (ONE,)) for noise in (mechanism, table)]
    assert table == mechanism
    assert mechanism == table
    assert hash(asked[0]) == hash(asked[1])
    assert asked[0] == asked[1]
    assert value_hash(asked[0]) == value_hash(asked[1])
    assert to_wire(asked[0]) == to_wire(asked[1])
    found = from_wire(to_wire(asked[0]), Query)
    assert found == asked[0]
    assert isinstance(found.question, DesignedStatistic)
    assert type(found.question.noise) is FiniteTable
    assert FiniteMechanism.of(found.question.noise).losses("absolute") == pytest.approx(mechanism.losses("absolute"))


def test_tables_of_other_numbers_are_others() -> None:
    assert two_points(2, 1) != FiniteTable("0", "1", ("0", "1"), ((2, 2), (2, 2)))
    assert two_points(2, 1) != FiniteTable("0", "2", ("0", "1"), ((2, 1), (1, 2)))
    assert two_points(2, 1) != LatticeNoise("1", "geometric", 0)


@pytest.mark.parametrize(
    ("low", "step", "outputs", "weights"),
    [
        ("0.5", "1", ("0",), ((1,),)),
        ("2/4", "1", ("0",), ((1,),)),
        ("0", "0", ("0",), ((1,),)),
        ("0", "1", ("1", "0"), ((1, 1),)),
        ("0", "1", ("0", "1"), ((1, 1), (1, 2))),
        ("0", "1", ("0", "1"), ((1, -1),)),
        ("0", "1", ("0", "1"), ((True, 1),)),
        ("0", "1", ("0", "1"), ((1,),)),
        ("0", "1", ("0",), ((2**62,),)),
        ("0", "1", ("0",), ((0,),)),
        ("0", "1", (), ((),)),
        ("0", "1", ("0",), ((1,),) * 402),
    ],
)
def test_what_is_no_mechanism_is_refused(low: str, step: str, outputs: tuple[str, ...], weights: object) -> None:
    with pytest.raises(RequestError):
        FiniteTable(low, step, outputs, weights)  # type: ignore[arg-type]


@pytest.mark.parametrize(("step", "kind", "inner"), [("0", "geometric", 0), ("1", "normal", 0), ("1", "geometric", 1)])
def test_what_is_no_lattice_noise_is_refused(step: str, kind: str, inner: int) -> None:
    with pytest.raises(RequestError):
        LatticeNoise(step, kind, inner)


def test_repair_says_how_much_it_mixed_in() -> None:
    facts = setting(0, 20, 5)
    clean = repaired(geometric_matrix(21, 0.2), facts)
    assert 0 < clean.mixed < 1e-10
    spoilt = geometric_matrix(21, 0.2)
    spoilt[3, 4] *= 1 + 1e-6
    mended = repaired(spoilt, facts)
    assert 1e-8 < mended.mixed < 1e-4
    assert mended.mechanism.keeps(facts.epsilon, facts.sensitivity)
    assert not unrepaired(spoilt, facts).keeps(facts.epsilon, facts.sensitivity)
