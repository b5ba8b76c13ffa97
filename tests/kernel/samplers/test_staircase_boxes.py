"""Staircase noise over boxes: draws have exactly the stated law, which keeps epsilon and costs what is known to be least."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from support.bits import Metered, Script, bits64
from support.laws import ALARM, DIGITS, decimal_exp, p_value

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.design.balls import best_inner_boxes
from dpmine.kernel.samplers import staircase
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.finite_rows import drawn_output
from dpmine.kernel.samplers.laplace import ExactNoise
from dpmine.kernel.samplers.staircase import box_staircase, volume_in_levels
from dpmine.noise.boxes import BoxNoise
from dpmine.noise.finite_tables import FiniteTable
from dpmine.noise.laws import BoxStaircase

Vector = tuple[int, ...]
BOXES: list[tuple[Vector, Vector, str]] = [
    ((1,), (0,), "1"),
    ((4,), (0,), "1"),
    ((4,), (1,), "0.3"),
    ((4,), (3,), "2"),
    ((10,), (2,), "5"),
    ((1, 1), (0, 0), "1"),
    ((3, 1), (1, 0), "0.5"),
    ((2, 5), (0, 4), "3"),
    ((1, 1, 1), (0, 0, 0), "1"),
    ((2, 1, 3), (1, 0, 1), "2"),
]
NAMES = [f"{lengths} {inner} {epsilon}" for lengths, inner, epsilon in BOXES]


def level(point: Vector, lengths: Vector, inner: Vector) -> int:
    """The first box that holds the point, one box after the other."""
    return next(
        k
        for k in itertools.count()
        if all(abs(z) <= k * length + r for z, length, r in zip(point, lengths, inner, strict=True))
    )


def points(k: int, lengths: Vector, inner: Vector) -> int:
    return math.prod(2 * (k * length + r) + 1 for length, r in zip(lengths, inner, strict=True))


def law_of(lengths: Vector, inner: Vector, epsilon: str, levels: int) -> dict[Vector, Decimal]:
    """The probability of every point of the first levels, from the definition; all other points are left out."""
    with localcontext() as context:
        context.prec = DIGITS
        b = decimal_exp(Fraction(epsilon))
        shells = [points(0, lengths, inner)]
        far = 4000
        total, power = Decimal(shells[0]), Decimal(1)
        for k in range(1, far):
            power *= b
            total += power * (points(k, lengths, inner) - points(k - 1, lengths, inner))
        reach = [range(-(levels * length + r), levels * length + r + 1) for length, r in zip(lengths, inner, strict=True)]
        return {point: b ** level(point, lengths, inner) / total for point in itertools.product(*reach)}


@pytest.mark.parametrize(("lengths", "inner", "epsilon"), BOXES, ids=NAMES)
def test_draws_have_exactly_the_stated_law(lengths: Vector, inner: Vector, epsilon: str) -> None:
    """30,000 vectors against the exact probability of every point near 0, all others together. False alarms below 1e-6."""
    law = law_of(lengths, inner, epsilon, 3 if len(lengths) < 3 else 2)
    drawn = Counter(box_staircase(Entropy(), lengths, inner, epsilon=Fraction(epsilon), size=30_000))
    seen = [drawn[point] for point in law]
    rest = 1 - sum(law.values())
    assert p_value([*seen, 30_000 - sum(seen)], [*law.values(), rest]) > ALARM


@pytest.mark.parametrize(("lengths", "inner", "epsilon"), BOXES, ids=NAMES)
def test_the_law_keeps_epsilon_for_every_move_within_the_lengths_and_some_move_needs_all_of_it(
    lengths: Vector, inner: Vector, epsilon: str
) -> None:
    """Exactly: the log of a ratio is epsilon times a difference of levels."""
    reach = [range(-(2 * length + r), 2 * length + r + 1) for length, r in zip(lengths, inner, strict=True)]
    moves = list(itertools.product(*(sorted({-length, -1, 0, length}) for length in lengths)))
    losses = {
        level(tuple(z + s for z, s in zip(point, move, strict=True)), lengths, inner) - level(point, lengths, inner)
        for point in itertools.product(*reach)
        for move in moves
    }
    assert losses == {-1, 0, 1}


def test_a_staircase_for_half_the_sensitivity_loses_twice_epsilon() -> None:
    """The planted mistake: noise for L = 2 where a row moves the number by 4."""
    assert max(level((z + 4,), (2,), (1,)) - level((z,), (2,), (1,)) for z in range(-9, 9)) == 2


def test_the_check_of_laws_catches_a_wrong_length_and_a_wrong_inner_width() -> None:
    law = law_of((4,), (1,), "1", 3)
    rest = 1 - sum(law.values())
    for lengths, inner in (((3,), (1,)), ((4,), (2,)), ((4,), (0,))):
        drawn = Counter(box_staircase(Entropy(), lengths, inner, epsilon=Fraction(1), size=30_000))
        seen = [drawn[point] for point in law]
        assert p_value([*seen, 30_000 - sum(seen)], [*law.values(), rest]) < ALARM


def test_the_coordinates_of_a_vector_share_their_level() -> None:
    """Independent staircases would be the planted mistake: then two large coordinates come together too seldom."""
    drawn = box_staircase(Entropy(), (1, 1), (0, 0), epsilon=Fraction(1), size=30_000)
    both = sum(abs(x) >= 3 and abs(y) >= 3 for x, y in drawn) / 30_000
    one = sum(abs(x) >= 3 for x, _ in drawn) / 30_000
    assert both > 1.2 * one**2  # in truth 2.64 times: more than 20 deviations away


@pytest.mark.parametrize(
    ("lengths", "inner"), [((4,), (1,)), ((3, 1), (2, 0)), ((2, 1, 7), (1, 0, 3)), ((5,) * 6, (2,) * 6)]
)
def test_the_points_of_a_box_are_written_in_binomials_without_negative_numbers(lengths: Vector, inner: Vector) -> None:
    amounts = volume_in_levels(lengths, inner)
    assert min(amounts) > 0
    for k in range(12):
        together = sum(amount * math.comb(k, degree) for degree, amount in enumerate(amounts))
        assert together == points(k, lengths, inner)


def test_one_number_with_steps_of_one_is_discrete_laplace() -> None:
    law = law_of((1,), (0,), "0.7", 4)
    a = math.exp(-0.7)
    for (z,), chance in law.items():
        assert float(chance) == pytest.approx((1 - a) / (1 + a) * a ** abs(z), rel=1e-12)
    drawn = Counter(z for z in ExactNoise(Entropy()).discrete_laplace(1 / Fraction("0.7"), 30_000).tolist())
    seen = [drawn[z] for (z,) in law]
    assert p_value([*seen, 30_000 - sum(seen)], [*law.values(), 1 - sum(law.values())]) > ALARM


# -- costs -------------------------------------------------------------------------------------------------------------

COSTS = {"1": (0.9595, 1.918), "2": (0.4255, 0.4227), "5": (0.0826, 0.0297)}


@pytest.mark.parametrize("epsilon", COSTS)
def test_on_a_fine_lattice_the_staircase_reaches_its_known_costs(epsilon: str) -> None:
    """Expected absolute value and variance in units of the sensitivity, over the best inner width."""
    steps = 2000
    noises = [BoxNoise((steps,), (r,), Epsilon.parse(epsilon)) for r in range(0, steps, 5)]
    absolute, variance = COSTS[epsilon]
    assert min(noise.mean_error() for noise in noises) / steps == pytest.approx(absolute, abs=6e-5)
    assert min(noise.deviation() ** 2 for noise in noises) / steps**2 == pytest.approx(variance, abs=6e-4)
    chosen = BoxNoise((steps,), best_inner_boxes((steps,), Epsilon.parse(epsilon)), Epsilon.parse(epsilon))
    assert chosen.mean_error() / steps == pytest.approx(absolute, abs=6e-5)


@pytest.mark.parametrize("epsilon", ["0.000000001", "0.001", "0.1", "1"])
@pytest.mark.parametrize("dimensions", [1, 2, 3, 10, 33])
def test_a_box_costs_about_half_of_independent_noise_in_many_dimensions(dimensions: int, epsilon: str) -> None:
    """(d + 1) / (2 epsilon) lengths, where independent noise for even shares of epsilon costs d / epsilon."""
    lengths = (1000,) * dimensions
    noise = BoxNoise(lengths, best_inner_boxes(lengths, Epsilon.parse(epsilon)), Epsilon.parse(epsilon))
    wanted = (dimensions + 1) / 2 / float(epsilon)
    assert noise.mean_error() / 1000 == pytest.approx(wanted, rel=0.045 if dimensions == 1 else 0.01)
    assert noise.mean_error() / 1000 <= dimensions / float(epsilon)


@pytest.mark.parametrize(("lengths", "inner", "epsilon"), BOXES, ids=NAMES)
def test_what_is_said_about_the_noise_is_true_of_its_law(lengths: Vector, inner: Vector, epsilon: str) -> None:
    """By the exact marginal law of each coordinate, from the levels far out."""
    noise = BoxNoise(lengths, inner, Epsilon.parse(epsilon))
    b = math.exp(-float(epsilon))
    levels = range(400)
    weights = [b**k * points(k, lengths, inner) for k in levels]
    for place in range(len(lengths)):
        reach = [k * lengths[place] + inner[place] for k in levels]
        far = range(max(reach) + 1)
        tails = [0.0] * (max(reach) + 2)  # mass of exactly abs(z) = t
        for weight, m in zip(weights, reach, strict=True):
            share = weight / sum(weights) / (2 * m + 1)
            for t in range(m + 1):
                tails[t] += share * (1 if t == 0 else 2)
        assert noise.mean_error(place) == pytest.approx(math.fsum(t * tails[t] for t in far), rel=1e-6)
        assert noise.deviation(place) ** 2 == pytest.approx(math.fsum(t * t * tails[t] for t in far), rel=1e-6)
        for confidence in (0.5, 0.95, 0.999):
            width = noise.half_width(confidence, place)
            assert math.fsum(tails[: width + 1]) >= confidence - 1e-9
            assert width == 0 or math.fsum(tails[:width]) < confidence


# -- extremes ----------------------------------------------------------------------------------------------------------


def test_the_smallest_and_the_largest_epsilon() -> None:
    tiny = box_staircase(Entropy(), (2**30,) * 33, (0,) * 33, epsilon=Fraction(1, 10**9), size=20)
    assert all(isinstance(z, int) for point in tiny for z in point)
    assert max(abs(z) for point in tiny for z in point) > 2**50  # of 660 numbers about 33 * 2^60 wide: false alarm 1e-6
    assert set(box_staircase(Entropy(), (7, 7), (0, 0), epsilon=Fraction(10**6), size=20)) == {(0, 0)}


def test_a_draw_that_64_bits_cannot_decide_takes_more() -> None:
    """The boundary between the two kinds of levels for L = 1, r = 0: 1 - b against 2 b lies at (1 - b) / (1 + b)."""
    with localcontext() as context:
        context.prec = DIGITS
        b = decimal_exp(Fraction(1))
        boundary = int((1 - b) / (1 + b) * 2**64)
    for after, wanted in ((0, 0), (2**64 - 1, 1)):
        script = Script(bits64(boundary), bits64(after))
        assert staircase._degree(script, (1,), (0,), Fraction(1)) == wanted
        assert script.used_up
    plain = Script(bits64(boundary - 2))
    assert staircase._degree(plain, (1,), (0,), Fraction(1)) == 0
    assert plain.used_up


def test_the_same_number_of_geometric_draws_is_taken_whatever_comes() -> None:
    """But for rejections when a uniform number is drawn, and widths of numbers, work does not follow the noise."""
    used = set()
    for _ in range(20):
        entropy = Metered()
        box_staircase(entropy, (1, 1), (0, 0), epsilon=Fraction(10**4))
        used.add(entropy.drawn)
    assert len(used) == 1


@pytest.mark.parametrize(("lengths", "inner"), [((), ()), ((3,), (3,)), ((3,), (-1,)), ((0,), (0,)), ((2, 2), (1,))])
def test_boxes_that_make_no_sense_are_refused(lengths: Vector, inner: Vector) -> None:
    with pytest.raises(RequestError):
        BoxStaircase(lengths, inner, Epsilon.parse(1), 0)


# -- rows of finite mechanisms -----------------------------------------------------------------------------------------

THREE = FiniteTable("-1", "1", ("-1", "0", "1"), ((5, 3, 0), (1, 0, 7), (2, 2, 4)))


def test_a_row_is_drawn_from_with_its_weights_exactly() -> None:
    """All uniform numbers below the total, one after the other."""

    class Next(Entropy):
        def __init__(self, number: int) -> None:
            self.number = number

        def below(self, bound: int) -> int:
            assert bound == 8
            return self.number

    for place, row in enumerate(THREE.weights):
        drawn = Counter(drawn_output(Next(number), THREE, Fraction(place - 1)) for number in range(8))
        assert tuple(drawn[output] for output in range(3)) == row


def test_values_go_to_the_grid_by_the_floor_rule_and_are_clamped() -> None:
    def inputs(*values: str) -> list[int]:
        return [THREE.input_of(Fraction(value)) for value in values]

    assert inputs("-100", "-1.51", "-0.5", "-0.51", "0.5", "0.49", "1.5", "9") == [0, 0, 1, 0, 2, 1, 2, 2]


def test_draws_of_a_row_have_its_law() -> None:
    drawn = Counter(drawn_output(Entropy(), THREE, Fraction(0)) for _ in range(20_000))
    assert p_value([drawn[output] for output in range(3)], [1 / 8, 0, 7 / 8]) > ALARM
    assert p_value([drawn[output] for output in range(3)], [5 / 8, 3 / 8, 0]) < ALARM
