"""Discrete Laplace noise: its law, its exact decisions at every threshold, its range, and mistakes the checks catch."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bits import Metered, Script, bits64, word
from support.laws import ALARM, decimal_exp, laplace_bins, laplace_edges, laplace_law, p_value
from support.noise import Fixed

from dpmine.base.errors import RequestError
from dpmine.kernel.samplers import coins, laplace
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import LIMIT, ExactNoise, _digit_bounds, _digit_probability, add_noise, geometric
from dpmine.noise.laplace import noise_deviation, noise_half_width

Sampler = Callable[[Fraction, int], np.ndarray]
SCALES = [
    Fraction(1, 10),
    Fraction(1, 3),
    Fraction(1),
    Fraction(7, 3),
    Fraction(10),
    Fraction(100),
    Fraction(1000),
    Fraction(10**4),
]
ours: Sampler = ExactNoise(Entropy()).discrete_laplace


# -- checks that the real sampler passes and planted mistakes do not -------------------------------------------------


def law_misfit(sampler: Sampler, scale: Fraction) -> float:
    """Against the exact law, in bins that hold a ten-thousandth to a hundredth of the mass each."""
    draws = sampler(scale, 6_000_000 if scale < Fraction(1, 5) else 1_000_000)
    edges = laplace_edges(scale)
    return p_value(laplace_bins(draws, edges), laplace_law(scale, edges))


def remainder_misfit(sampler: Sampler, scale: Fraction, modulus: int) -> float:
    """The low digits, which wide bins do not see: the law of the remainder of a draw."""
    a = math.exp(-1 / scale)
    whole = 1 - a**modulus
    law = [(1 - a) / (1 + a) * (a**r + a ** (modulus - r)) / whole for r in range(modulus)]
    return p_value(np.bincount(sampler(scale, 500_000) % modulus, minlength=modulus), law)


def dependence(sampler: Sampler, scale: Fraction) -> float:
    """Draws of one call (halves, also back to front, and neighbours) and of two calls: pairs must have the product law.

    No draw is in two pairs of one check: overlapping pairs would count each value twice, which is no chi-square law.
    """
    edges = [edge for place, edge in enumerate(laplace_edges(scale)) if place % 20 == 10]
    law = np.array(laplace_law(scale, edges))
    product = np.outer(law, law).ravel()
    one, two = sampler(scale, 200_000), sampler(scale, 200_000)
    p_values = []
    halves = one[:100_000], one[100_000:]
    neighbours = (one[0::2], one[1::2]), (one[1:-1:2], one[2::2])
    for left, right in (halves, (halves[0], halves[1][::-1]), (one, two), *neighbours):
        place = np.searchsorted(edges, left) * law.size + np.searchsorted(edges, right)
        p_values.append(p_value(np.bincount(place, minlength=law.size**2), product))
    return min(p_values)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laplace_follows_its_exact_law(scale: Fraction) -> None:
    assert law_misfit(ours, scale) > ALARM


@pytest.mark.parametrize("modulus", [2, 3, 16, 37])
@pytest.mark.parametrize("scale", [Fraction(7, 3), Fraction(100), Fraction(10**4)], ids=str)
def test_discrete_laplace_has_the_right_low_digits(scale: Fraction, modulus: int) -> None:
    assert remainder_misfit(ours, scale, modulus) > ALARM


@pytest.mark.parametrize("scale", [Fraction(7, 3), Fraction(1000)], ids=str)
def test_draws_are_independent_within_a_call_and_between_calls(scale: Fraction) -> None:
    assert dependence(ours, scale) > ALARM


def test_mean_deviation_and_interval_are_those_of_the_law() -> None:
    """False-alarm rate below 1e-6: each mean of a million draws may be off by 6 standard errors."""
    draws = ours(Fraction(1), 1_000_000)
    a = math.exp(-1)
    assert abs(np.abs(draws).mean() - 2 * a / (1 - a * a)) < 6 * noise_deviation(Fraction(1)) / 1000
    assert abs(draws.mean()) < 6 * noise_deviation(Fraction(1)) / 1000
    half = noise_half_width(Fraction(1), 0.95)
    covered = float(np.mean(np.abs(draws) <= half))
    exact_cover = 1 - 2 * a ** (half + 1) / (1 + a)
    assert exact_cover >= 0.95
    assert abs(covered - exact_cover) < 6 / 1000 * math.sqrt(exact_cover * (1 - exact_cover))


# -- planted mistakes --------------------------------------------------------------------------------------------------


def halved_scale(scale: Fraction, size: int) -> np.ndarray:
    return ours(scale / 2, size)


def rounded_floats(scale: Fraction, size: int) -> np.ndarray:
    return np.rint(np.random.default_rng().laplace(scale=float(scale), size=size)).astype(np.int64)


def double_zero(scale: Fraction, size: int) -> np.ndarray:
    """A random sign on a geometric draw, without drawing again when the sign of zero is minus."""
    sign = 1 - 2 * (Entropy().words(size) & 1).astype(np.int64)
    return sign * geometric(Entropy(), 1 / scale, size)


def leaning_sign(scale: Fraction, size: int) -> np.ndarray:
    """One draw in twenty loses its minus sign."""
    draws = ours(scale, size)
    return np.where(Entropy().words(size) % 20 == 0, np.abs(draws), draws)


def one_sided(scale: Fraction, size: int) -> np.ndarray:
    return geometric(Entropy(), 1 / scale, size)


def missing_digit(scale: Fraction, size: int) -> np.ndarray:
    return ours(scale, size) & ~1


def reused_halves(scale: Fraction, size: int) -> np.ndarray:
    half = ours(scale, (size + 1) // 2)
    return np.concatenate([half, half])[:size]


def mirrored(scale: Fraction, size: int) -> np.ndarray:
    """Each geometric variable is used twice, with either sign."""
    drawn = one_sided(scale, size)
    return drawn - drawn[::-1]


class Stuck:
    """The same noise at every call."""

    def __init__(self) -> None:
        self.kept: dict[tuple[Fraction, int], np.ndarray] = {}

    def __call__(self, scale: Fraction, size: int) -> np.ndarray:
        return self.kept.setdefault((scale, size), ours(scale, size))


@pytest.mark.parametrize("mistake", [halved_scale, rounded_floats, double_zero, leaning_sign, one_sided, missing_digit])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 3)], ids=str)
def test_the_law_check_catches(mistake: Sampler, scale: Fraction) -> None:
    assert law_misfit(mistake, scale) < ALARM


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(10**4)], ids=str)
def test_the_law_check_catches_a_halved_scale_at_the_ends_of_the_range(scale: Fraction) -> None:
    assert law_misfit(halved_scale, scale) < ALARM


def test_the_remainder_check_catches_a_missing_digit() -> None:
    assert law_misfit(missing_digit, Fraction(10**4)) > ALARM  # wide bins do not see it
    assert remainder_misfit(missing_digit, Fraction(10**4), 2) < ALARM


@pytest.mark.parametrize(
    "mistake", [reused_halves, mirrored, Stuck()], ids=["reused halves", "mirrored", "reused between calls"]
)
def test_the_independence_check_catches(mistake: Sampler) -> None:
    assert dependence(mistake, Fraction(7, 3)) < ALARM


# -- the digits, exactly -----------------------------------------------------------------------------------------------


def digit_chance(rate: Fraction, k: int) -> Decimal:
    with localcontext() as context:
        context.prec = 80
        q = decimal_exp(rate * 2**k)
        return q / (1 + q)


def scaled(chance: Decimal, bits: int) -> Fraction:
    return Fraction(chance) * 2**bits


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1), Fraction(10)], ids=str)
def test_independent_digits_make_exactly_the_geometric_law(rate: Fraction) -> None:
    """The identity behind the sampler, to fifty digits: digits below 2^K times the tail give (1 - a) a^g."""
    with localcontext() as context:
        context.prec = 60
        digits = len(_digit_bounds(rate))
        a, tail = decimal_exp(rate), decimal_exp(rate * 2**digits)
        chances = [digit_chance(rate, k) for k in range(digits)]
        for g in range(300):
            chance = (1 - tail) * tail ** (g >> digits)
            for k, one in enumerate(chances):
                chance *= one if g >> k & 1 else 1 - one
            wanted = (1 - a) * a**g
            assert abs(chance / wanted - 1) < Decimal(10) ** -50


@settings(deadline=None, max_examples=200)
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=30, max_denominator=10**9), st.data())
def test_every_digit_threshold_encloses_its_probability(rate: Fraction, data: st.DataObject) -> None:
    bounds = _digit_bounds(rate)
    assert rate * 2 ** len(bounds) >= 23
    if bounds:
        k = data.draw(st.integers(0, len(bounds) - 1))
        chance = digit_chance(rate, k)
        low, high = bounds[k]
        assert low <= scaled(chance, 32) <= high
        assert high - low <= 2
        for bits in (32, 96, 160):
            low, high = _digit_probability(rate * 2**k)(bits)
            assert low <= scaled(chance, bits) <= high
            assert high - low <= 2


def drawn_one(rate: Fraction, *pieces: bytes) -> int:
    script = Script(*pieces)
    drawn = geometric(script, rate, 1)
    assert script.used_up
    assert drawn.dtype == np.int64
    return int(drawn[0])


NONE = word(2**32 - 1)  # no digit, no tail
EVERY = 2**64 - 1


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1), Fraction(22), Fraction(30)], ids=str)
def test_each_word_decides_its_own_digit_at_the_exact_threshold(rate: Fraction) -> None:
    bounds = _digit_bounds(rate)
    for k, (low, high) in enumerate(bounds):
        before, after = [NONE] * k, [NONE] * (len(bounds) - k)
        if low:
            assert drawn_one(rate, *before, word(low - 1), *after) == 2**k
        assert drawn_one(rate, *before, word(high), *after) == 0
        if high - low == 1:  # an undecided word: the digit goes by the next 64 bits of the real it began
            fraction = int(scaled(digit_chance(rate, k), 96)) & EVERY
            assert drawn_one(rate, *before, word(low), bits64(fraction - 2), *after) == 2**k
            assert drawn_one(rate, *before, word(low), bits64(fraction + 2), *after) == 0
    assert drawn_one(rate, *[NONE] * (len(bounds) + 1)) == 0


def test_all_digits_one_give_the_largest_number_below_the_tail() -> None:
    assert len(_digit_bounds(Fraction(1))) == 5  # 16 < 23 <= 32
    ones = [word(max(low - 1, 0)) for low, _ in _digit_bounds(Fraction(1))]
    assert drawn_one(Fraction(1), *ones, NONE) == 31


def test_the_tail_counts_coins_beyond_the_digits() -> None:
    """Rate 1: five digits, then 32 times a geometric variable of rate 32. exp(-32) = 2^-46.17."""
    digits = [NONE, word(0), NONE, NONE, NONE]  # 2
    chance = int(scaled(decimal_exp(Fraction(32)), 96))
    failure = bits64(EVERY)
    undecided_then_below = (word(0), bits64(0))
    assert drawn_one(Fraction(1), *digits, *undecided_then_below, failure) == 2 + 32
    assert drawn_one(Fraction(1), *digits, *undecided_then_below, bits64(0), bits64(0), failure) == 2 + 3 * 32
    assert drawn_one(Fraction(1), *digits, word(0), bits64(chance - 1), failure) == 2 + 32
    assert drawn_one(Fraction(1), *digits, word(0), bits64(chance + 2)) == 2
    assert drawn_one(Fraction(1), *digits, word(1)) == 2


def test_a_rate_above_every_digit_is_all_tail() -> None:
    assert _digit_bounds(Fraction(40)) == ()
    assert drawn_one(Fraction(40), word(0), bits64(0), bits64(0), bits64(EVERY)) == 2
    assert drawn_one(Fraction(40), word(0), bits64(EVERY)) == 0


def test_the_tail_saturates_instead_of_wrapping() -> None:
    rate = Fraction(23, 2**60)
    assert len(_digit_bounds(rate)) == 60
    script = Script(*[NONE] * 60, word(0), *[bits64(0)] * 10, bits64(EVERY))
    assert int(geometric(script, rate, 1)[0]) == 2**62
    with pytest.raises(RequestError, match="too small"):
        geometric(Entropy(), rate / 2, 1)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(-1)])
def test_a_scale_that_is_not_positive_is_refused(rate: Fraction) -> None:
    with pytest.raises(RequestError, match="positive"):
        geometric(Entropy(), rate, 1)


def noise_of(scale: Fraction, *pieces: bytes) -> list[int]:
    script = Script(*pieces)
    drawn = ExactNoise(script).discrete_laplace(scale, 1)
    assert script.used_up
    assert drawn.dtype == np.int64
    return [int(number) for number in drawn]


def test_signs_come_first_and_magnitudes_lie_above_one() -> None:
    """Three draws at rate 1: three words for the signs, then words digit by digit, then those of the tail."""
    plus, zero, minus = word(0), word(2**31), word(2**32 - 1)
    one = word(0)
    digits = [[one, one, NONE], [NONE, one, NONE], [one, one, one], [NONE] * 3, [NONE] * 3]
    script = Script(plus, zero, minus, *(piece for digit in digits for piece in digit), *[NONE] * 3)
    assert ExactNoise(script).discrete_laplace(Fraction(1), 3).tolist() == [1 + 5, 0, -(1 + 4)]
    assert script.used_up


@pytest.mark.parametrize("rate", [Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(22), Fraction(30)], ids=str)
def test_the_sign_goes_by_the_exact_thresholds(rate: Fraction) -> None:
    """Plus below p = a / (1 + a), minus from 1 - p on, also for words that 32 bits cannot decide."""
    rest = [NONE] * (len(_digit_bounds(rate)) + 1)
    low, high = _digit_probability(rate)(32)
    on, at = divmod(int(scaled(digit_chance(rate, 0), 96)), 2**64)  # the word that p lies in, and where in it
    if low:
        assert noise_of(1 / rate, word(low - 1), *rest) == [1]
        assert noise_of(1 / rate, word(2**32 - low), *rest) == [-1]
    assert noise_of(1 / rate, word(on), bits64(at - 2), *rest) == [1]
    assert noise_of(1 / rate, word(on), bits64(at + 2), *rest) == [0]
    assert noise_of(1 / rate, word(2**32 - 1 - on), bits64(EVERY - at + 2), *rest) == [-1]
    assert noise_of(1 / rate, word(2**32 - 1 - on), bits64(EVERY - at - 2), *rest) == [0]
    assert noise_of(1 / rate, word(high), *rest) == [0]
    assert noise_of(1 / rate, word(2**32 - 1 - high), *rest) == [0]


def test_a_word_that_may_be_either_sign_waits_for_more_bits() -> None:
    """Rate 1e-15: p is so near one half that the words around it could still be plus, minus or zero."""
    rate = Fraction(1, 10**15)
    low, high = _digit_probability(rate)(32)
    assert low < 2**31 <= high
    rest = [NONE] * (len(_digit_bounds(rate)) + 1)
    assert noise_of(1 / rate, word(low), bits64(0), *rest) == [1]
    assert noise_of(1 / rate, word(low), bits64(EVERY), *rest) == [0]
    assert noise_of(1 / rate, word(2**31), bits64(0), *rest) == [0]
    assert noise_of(1 / rate, word(2**31), bits64(EVERY), *rest) == [-1]


def test_noise_beyond_64_bits_is_cut_with_its_sign() -> None:
    """Rate 23 / 2^60: the tail counts in steps of 2^60."""
    for sign, first in ((1, word(0)), (-1, word(2**32 - 1))):
        for steps in (2, 4, 9):
            counted = [*[bits64(0)] * steps, bits64(EVERY)]
            (drawn,) = noise_of(Fraction(2**60, 23), first, *[NONE] * 60, word(0), *counted)
            assert drawn == sign * min(1 + steps * 2**60, 2**62)


def test_the_bits_drawn_do_not_depend_on_the_noise() -> None:
    """All but a few draws in a billion take the same number of words; false-alarm rate below 1e-6."""
    for scale in (Fraction(1, 2), Fraction(100)):
        words = 50 * (len(_digit_bounds(1 / scale)) + 2)
        for _ in range(20):
            source = Metered()
            ExactNoise(source).discrete_laplace(scale, 50)
            assert source.drawn in (4 * words, 4 * words + 8)  # one undecided word: once in 1e5 calls


# -- integers only -----------------------------------------------------------------------------------------------------


def test_noise_is_64_bit_integers_all_the_way() -> None:
    for scale in (Fraction(1, 10), Fraction(7, 3), Fraction(10**9)):
        assert geometric(Entropy(), 1 / scale, 7).dtype == np.int64
        assert ours(scale, 7).dtype == np.int64
        assert all(type(bound) is int for pair in _digit_bounds(1 / scale) for bound in pair)
    for size in (0, 1):
        assert ours(Fraction(1), size).shape == (size,)


@pytest.mark.parametrize("module", [laplace, coins], ids=lambda module: module.__name__)
def test_the_sampling_path_names_no_float(module: ModuleType) -> None:
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
        assert not (isinstance(node, ast.Name) and node.id in ("float", "math"))
        assert not (isinstance(node, ast.Attribute) and "float" in node.attr)


def test_add_noise_adds_in_place_order_and_keeps_the_shape() -> None:
    counts = np.array([[1, 2, 3], [4, 5, 6]])
    noisy = add_noise(counts, Fixed(10, 20, 30, 40, 50, 60), Fraction(1))
    assert noisy.tolist() == [[11, 22, 33], [44, 55, 66]]
    assert noisy.dtype == np.int64
    assert counts.tolist() == [[1, 2, 3], [4, 5, 6]]


EXTREMES = [-(2**63), -(2**62) - 1, -(2**62), -(2**61) - 1, -(2**61), -1, 0, 1, 2**61, 2**61 + 1, 2**62, 2**63 - 1]


@pytest.mark.parametrize("noise_drawn", EXTREMES)
@pytest.mark.parametrize("count", [0, 1, 2**31, 2**61])
def test_add_noise_clips_at_its_limit_and_never_wraps(noise_drawn: int, count: int) -> None:
    noisy = add_noise(np.array([count]), Fixed(noise_drawn), Fraction(1))
    assert int(noisy[0]) == max(-LIMIT, min(LIMIT, count + noise_drawn))
    assert LIMIT == 2**61


def test_add_noise_draws_fresh_noise_for_every_number() -> None:
    counts = np.zeros((400, 500), dtype=np.int64)
    noisy = add_noise(counts, ExactNoise(Entropy()), Fraction(7, 3)).ravel()
    assert (
        dependence(lambda scale, size: add_noise(counts, ExactNoise(Entropy()), scale).ravel()[:size], Fraction(7, 3))
        > ALARM
    )
    edges = laplace_edges(Fraction(7, 3))
    assert p_value(laplace_bins(noisy, edges), laplace_law(Fraction(7, 3), edges)) > ALARM
