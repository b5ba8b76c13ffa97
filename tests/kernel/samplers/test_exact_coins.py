"""Exact coins: enclosures hold the true value, and a drawn real is compared with it to as many bits as it takes."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bits import Script, bits64
from support.laws import ALARM, frequencies, p_value

from dpmine.base.exponentials import exp_bounds
from dpmine.kernel.samplers.coins import coin_exp, uniform_is_below
from dpmine.kernel.samplers.entropy import Entropy

small = st.fractions(min_value=0, max_value=2, max_denominator=10**12)
wide = st.fractions(min_value=0, max_value=400, max_denominator=10**6)


def true_exp(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Rationals below and above exp(-x), by Decimal's correctly rounded exponential."""
    with localcontext() as context:
        context.prec = digits + 20
        centre = Fraction((Decimal(-x.numerator) / Decimal(x.denominator)).exp())
    error = centre / 10**digits
    return centre - error, centre + error


def encloses(bounds: tuple[int, int], x: Fraction, bits: int) -> bool:
    below, above = true_exp(x, bits // 3 + 30)
    return bounds[0] <= above * 2**bits and below * 2**bits <= bounds[1]


@settings(deadline=None, max_examples=400)
@given(small | wide, st.integers(1, 400))
def test_exp_bounds_enclose_the_exponential_within_two_units(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    assert encloses((low, high), x, bits)
    assert 0 <= high - low <= 2


@settings(deadline=None, max_examples=200)
@given(st.fractions(min_value=0, max_value=1, max_denominator=10**6), st.integers(1, 96))
def test_exp_bounds_agree_with_exact_partial_sums(x: Fraction, bits: int) -> None:
    """Independent of any library: partial sums of 1 - x + x^2/2 - ... fall on alternating sides of exp(-x)."""
    term = total = Fraction(1)
    sums = [total]
    for k in range(1, 40):
        term = -term * x / k
        total += term
        sums.append(total)
    low, high = exp_bounds(x, bits)
    below, above = min(sums[-2:]), max(sums[-2:])
    assert low <= above * 2**bits
    assert below * 2**bits <= high


@pytest.mark.parametrize("bits", [1, 2, 32, 64, 65, 128, 1000])
def test_exp_bounds_at_the_ends(bits: int) -> None:
    assert exp_bounds(Fraction(0), bits) == (2**bits, 2**bits)
    assert exp_bounds(Fraction(10**9), bits) == (0, 1)
    for sixteenths in range(12 * (bits + 1) - 20, 12 * (bits + 1) + 3):  # around the shortcut for tiny values
        x = Fraction(sixteenths, 16)
        assert encloses(exp_bounds(x, bits), x, bits)


@pytest.mark.parametrize("x", [Fraction(1, 10**15), Fraction(1, 2), Fraction(1, 2) + Fraction(1, 10**9), Fraction(40)])
def test_more_bits_narrow_the_enclosure(x: Fraction) -> None:
    for bits in (64, 128, 1024):
        low, high = exp_bounds(x, bits)
        assert encloses((low, high), x, bits)
        assert high - low <= 2


def test_the_enclosure_check_catches_rounding_to_the_nearest() -> None:
    """Planted mistake: both ends at the nearest integer enclose nothing."""

    def nearest(x: Fraction, bits: int) -> tuple[int, int]:
        middle = round(true_exp(x, 60)[0] * 2**bits)
        return middle, middle

    assert not any(encloses(nearest(Fraction(k, 7), 64), Fraction(k, 7), 64) for k in range(1, 20))


# -- one uniform real against an enclosed probability ------------------------------------------------------------------


def third(bits: int) -> tuple[int, int]:
    return 2**bits // 3, 2**bits // 3 + 1


def test_a_decided_draw_asks_for_no_more_bits() -> None:
    prefix = 2**64 // 3
    assert uniform_is_below(Script(), prefix - 1, 64, third)
    assert not uniform_is_below(Script(), prefix + 1, 64, third)


@pytest.mark.parametrize("ties", [1, 2, 5])
def test_ties_are_refined_until_a_bit_differs(ties: int) -> None:
    pattern = 2**64 // 3  # the binary digits of 1/3 repeat 01
    below = Script(*[bits64(pattern)] * (ties - 1), bits64(pattern - 1))
    above = Script(*[bits64(pattern)] * (ties - 1), bits64(pattern + 1))
    assert uniform_is_below(below, pattern, 64, third)
    assert not uniform_is_below(above, pattern, 64, third)
    assert below.used_up
    assert above.used_up


@settings(deadline=None, max_examples=100)
@given(st.fractions(min_value=Fraction(1, 1000), max_value=60, max_denominator=10**6), st.integers(0, 3))
def test_coin_exp_follows_the_binary_digits_of_the_exponential(x: Fraction, ties: int) -> None:
    """A real that agrees with exp(-x) for `ties` words and then differs by a little is decided rightly."""
    bits = 64 * (ties + 1)
    digits = int(true_exp(x, bits // 3 + 40)[0] * 2**bits)
    for step, expected in ((-2, True), (2, False)):
        drawn = digits + step
        if not 0 <= drawn < 2**bits:
            continue
        words = [(drawn >> (64 * place)) & (2**64 - 1) for place in reversed(range(ties + 1))]
        assert coin_exp(Script(*map(bits64, words)), x) is expected


def test_coin_exp_of_zero_always_succeeds() -> None:
    assert coin_exp(Script(bits64(2**64 - 1)), Fraction(0))
    assert coin_exp(Script(bits64(0)), Fraction(0))


def coin_misfit(coin: object, x: Fraction) -> float:
    chance = float(true_exp(x, 30)[0])
    drawn = frequencies(lambda: int(coin(Entropy(), x)), 2, 40_000)  # type: ignore[operator]
    return p_value(drawn, [1 - chance, chance])


@pytest.mark.parametrize("x", [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(4)])
def test_coin_exp_has_its_law(x: Fraction) -> None:
    assert coin_misfit(coin_exp, x) > ALARM


def test_the_coin_check_catches_a_wrong_exponent() -> None:
    """Planted mistake: 10 percent too much in the exponent."""
    assert coin_misfit(lambda entropy, x: coin_exp(entropy, x * Fraction(11, 10)), Fraction(1)) < ALARM
