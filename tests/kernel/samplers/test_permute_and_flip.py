"""Permute-and-flip: three exact computations of its law agree, its draws follow it, and weights are only legal as copies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from support.bits import Script, bits64, word
from support.laws import ALARM, decimal_exp, frequencies, p_value, permute_and_flip_law

from dpmine.kernel.samplers.choice import _coins, exponential, permute_and_flip
from dpmine.kernel.samplers.entropy import Entropy

WORD = 2**64
NODES, SIZES = np.polynomial.legendre.leggauss(80)  # integrates polynomials up to degree 159 exactly


def array(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


# -- the law, computed in three ways -----------------------------------------------------------------------------------


def law_by_orders(scores: list[int], rate: Fraction) -> list[Decimal]:
    """Straight from the algorithm: every order, every run of refusals."""
    accept = [decimal_exp(rate * (max(scores) - score)) for score in scores]
    law = [Decimal(0)] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = Decimal(1) / len(orders)
        for candidate in order:
            law[candidate] += reached * accept[candidate]
            reached *= 1 - accept[candidate]
        assert reached < Decimal(10) ** -20  # the best always accepts
    return law


def law_by_noisy_max(scores: list[int], rate: float) -> list[float]:
    """Add exponential noise of that rate to every score and report the largest: numerical integration."""
    best = max(scores)

    def density(x: float, r: int) -> float:
        others = math.prod(1 - math.exp(-rate * (x - score)) for s, score in enumerate(scores) if s != r)
        return rate * math.exp(-rate * (x - scores[r])) * others

    return [quad(density, best, best + 60 / rate, args=(r,), epsabs=1e-12, limit=200)[0] for r in range(len(scores))]


SMALL = [[0], [3, 0], [27, 23, 9, 0], [5, 5, 5], [1, 2, 3, 4, 5], [10, 0, 0, 0, 10]]


@pytest.mark.parametrize("scores", SMALL, ids=str)
@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 2), Fraction(2)], ids=str)
def test_three_computations_of_the_law_agree(scores: list[int], rate: Fraction) -> None:
    law = permute_and_flip_law(scores, rate)
    assert abs(sum(law) - 1) < Decimal(10) ** -20
    for one, other in zip(law, law_by_orders(scores, rate), strict=True):
        assert abs(one - other) < Decimal(10) ** -20
    for one, number in zip(law, law_by_noisy_max(scores, float(rate)), strict=True):
        assert float(one) == pytest.approx(number, abs=1e-9)


# -- draws -------------------------------------------------------------------------------------------------------------


CASES: dict[str, tuple[list[int], Fraction]] = {
    "lunch vote": ([27, 23, 9, 0], Fraction(1, 20)),
    "close race": ([3, 2, 2, 1, 0], Fraction(1)),
    "ties for the best": ([4, 1, 4, 1, 4], Fraction(1, 2)),
    "scores of 55 bits": ([2**55, 2**55 - 2**52, -(2**55)], Fraction(1, 2**52)),
    "copies": ([2] * 10 + [1] * 30, Fraction(1)),
    "one candidate": ([7], Fraction(1)),
}


def misfit(choose: Callable[..., int], scores: list[int], rate: Fraction) -> float:
    source, score = Entropy(), array(scores)
    drawn = frequencies(lambda: choose(source, score, rate=rate), len(scores), 15_000)
    if len(scores) == 1:
        return 1.0 if drawn == [15_000] else 0.0
    return p_value(drawn, permute_and_flip_law(scores, rate))


@pytest.mark.parametrize("case", CASES)
def test_permute_and_flip_follows_its_exact_law(case: str) -> None:
    assert misfit(permute_and_flip, *CASES[case]) > ALARM


def no_permutation(entropy: Entropy, scores: np.ndarray, *, rate: Fraction) -> int:
    return int(np.argmax(_coins(entropy, scores.max() - scores, rate)))


def exponential_instead(entropy: Entropy, scores: np.ndarray, *, rate: Fraction) -> int:
    return exponential(entropy, scores, np.ones_like(scores), rate=rate)


def half_the_rate(entropy: Entropy, scores: np.ndarray, *, rate: Fraction) -> int:
    return permute_and_flip(entropy, scores, rate=rate / 2)


def unpermuted_answer(entropy: Entropy, scores: np.ndarray, *, rate: Fraction) -> int:
    """The place in the shuffled list instead of the candidate."""
    order = entropy.order(scores.size)
    return int(np.argmax(_coins(entropy, (scores.max() - scores)[order], rate)))


@pytest.mark.parametrize("mistake", [no_permutation, exponential_instead, half_the_rate, unpermuted_answer])
def test_the_law_check_catches(mistake: Callable[..., int]) -> None:
    assert misfit(mistake, *CASES["close race"]) < ALARM


# -- the coins, exactly ------------------------------------------------------------------------------------------------


def coins(drawn: list[int], gaps: list[int], rate: Fraction, *more: int) -> tuple[list[bool], bool]:
    """Coins from given 64-bit draws: high words first, then low words, then what undecided coins ask for."""
    script = Script(
        *(word(number >> 32) for number in drawn), *(word(number & (2**32 - 1)) for number in drawn), *map(bits64, more)
    )
    return _coins(script, array(gaps), rate).tolist(), script.used_up


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 700), st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=10**6))
def test_every_coin_turns_exactly_at_its_probability(gap: int, rate: Fraction) -> None:
    chance = Fraction(decimal_exp(rate * gap))
    turn, fraction = divmod(int(chance * 2**128), WORD)
    if turn:
        assert coins([turn - 1], [gap], rate) == ([True], True)
    if turn + 1 < WORD:
        assert coins([turn + 1], [gap], rate) == ([False], True)
    if 8 < fraction < WORD - 8:  # the 64 bits of the turn itself leave it open
        assert coins([turn], [gap], rate, fraction - 4) == ([True], True)
        assert coins([turn], [gap], rate, fraction + 4) == ([False], True)


def test_the_best_accepts_whatever_is_drawn() -> None:
    assert coins([WORD - 1, WORD - 1, 0], [0, 5, 5], Fraction(1)) == ([True, False, True], True)


def test_an_impossible_looking_coin_can_still_succeed() -> None:
    """exp(-800) = 2^-1154.2: eighteen words of zeros and some more are needed, doubles alone would say never."""
    assert coins([0], [800], Fraction(1), *[0] * 18) == ([True], True)
    assert coins([0], [800], Fraction(1), *[0] * 17, WORD - 1) == ([False], True)


def test_the_first_to_accept_in_the_drawn_order_wins() -> None:
    tags = [bits64(30), bits64(20), bits64(10)]  # visits candidates 2, 1, 0
    high = [word(2**32 - 1), word(0), word(0)]  # 2 refuses, 1 accepts, 0 would too
    script = Script(*tags, *high, *[word(2**31)] * 3)
    assert permute_and_flip(script, array([9, 8, 7]), rate=Fraction(1)) == 1
    assert script.used_up


# -- weights -----------------------------------------------------------------------------------------------------------


def weighted_law(scores: list[int], weights: list[int], rate: Fraction) -> list[float]:
    """Planted mistake: shuffle by weight, flip each candidate once."""
    accept = [float(decimal_exp(rate * (max(scores) - score))) for score in scores]
    law = [0.0] * len(scores)
    for order in itertools.permutations(range(len(scores))):
        reached, left = 1.0, sum(weights)
        for candidate in order:
            reached *= weights[candidate] / left
            left -= weights[candidate]
        for candidate in order:
            law[candidate] += reached * accept[candidate]
            reached *= 1 - accept[candidate]
    return law


def copied_law(scores: list[int], weights: list[int], rate: Fraction) -> list[float]:
    """A weight as that many copies, each flipped on its own: the integral with repeated factors."""
    accept = [float(decimal_exp(rate * (max(scores) - score))) for score in scores]

    t = (NODES + 1) / 2
    law = []
    for r, (own, weight) in enumerate(zip(accept, weights, strict=True)):
        others = math.prod((1 - t * p) ** (w - (s == r)) for s, (p, w) in enumerate(zip(accept, weights, strict=True)))
        law.append(float(np.sum(SIZES / 2 * weight * own * others)))
    return law


def worst_loss(law: Callable[..., list[float]], weights: list[int], steps: int = 1) -> float:
    """The largest privacy loss over gaps up to 12 ranges, as one unit moves the gap by one range. Claimed: 1."""
    laws = [law([max(gap, 0), max(-gap, 0)], weights, Fraction(1, steps)) for gap in range(-12 * steps, 12 * steps + 1)]
    return max(
        abs(math.log(one / other))
        for here, there in zip(laws, laws[steps:], strict=False)
        for one, other in zip(here, there, strict=True)
    )


@pytest.mark.parametrize(("weights", "loss"), [([10, 1], 1.99), ([100, 1], 4.16), ([256, 1], 5.09)])
def test_shuffling_by_weight_is_not_private(weights: list[int], loss: float) -> None:
    """The stated losses are for gaps of whole ranges; gaps in between lose a little more."""
    assert worst_loss(weighted_law, weights) == pytest.approx(loss, abs=0.005)
    assert worst_loss(weighted_law, weights, steps=4) > loss + 0.05


@pytest.mark.parametrize("weights", [[1, 1], [10, 1], [100, 1]])
def test_weights_as_copies_are_private(weights: list[int]) -> None:
    assert worst_loss(copied_law, weights, steps=4) <= 1 + 1e-9


def test_copies_are_chosen_in_proportion_to_the_law_with_repeated_factors() -> None:
    scores, rate = CASES["copies"]
    law = permute_and_flip_law(scores, rate)
    grouped = [float(sum(law[:10])), float(sum(law[10:]))]
    assert grouped == pytest.approx(copied_law([2, 1], [10, 30], rate), abs=1e-9)
    drawn = frequencies(lambda: int(permute_and_flip(Entropy(), array(scores), rate=rate) >= 10), 2, 15_000)
    assert p_value(drawn, grouped) > ALARM
