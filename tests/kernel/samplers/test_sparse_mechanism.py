"""The sparse histogram: skipping empty combinations has the law of noising all of them, and no domain is too large."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Callable
from decimal import MIN_EMIN, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from support.bits import Metered, Script, bits64
from support.laws import ALARM, laplace_cdf, p_value

from dpmine.base.epsilon import Epsilon
from dpmine.kernel.samplers import sparse
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import LIMIT, ExactNoise, NoiseSource, add_noise, geometric
from dpmine.kernel.samplers.sparse import _exact_gap, _gaps, _power_bounds, _successes, sparse_counts
from dpmine.noise.phantoms import phantoms
from dpmine.noise.spread import of_counts
from dpmine.noise.thresholds import threshold_for

WORD = 2**64
Shown = tuple[np.ndarray, np.ndarray]


def array(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


# -- whole outcomes: six combinations, of which some hold rows ---------------------------------------------------------

HIDDEN, AT, ABOVE = range(3)
WRONG = 3**6  # an outcome that cannot be: a place twice, out of range or out of order, or a count below the threshold
DRAWS = 5_000

CASES: dict[str, tuple[dict[int, int], Fraction, int]] = {
    "two occupied, threshold 1": ({1: 2, 4: 1}, Fraction(1), 1),
    "two occupied, threshold 3": ({1: 3, 2: 1}, Fraction(2), 3),
    "much noise, threshold 2": ({0: 1, 5: 7}, Fraction(7, 2), 2),
    "little noise, threshold 1": ({3: 1}, Fraction(1, 2), 1),
    "none occupied": ({}, Fraction(1), 1),
    "all occupied": (dict.fromkeys(range(6), 1), Fraction(1), 1),
}


def number_of(shown: Shown, at_least: int) -> int:
    """An outcome as a number: for each place whether it is hidden, at the threshold or above it."""
    digits = [HIDDEN] * 6
    last = -1
    for place, count in zip(shown[0].tolist(), shown[1].tolist(), strict=True):
        if not last < place < 6 or count < at_least:
            return WRONG
        digits[place], last = (AT if count == at_least else ABOVE), place
    return sum(digit * 3**place for place, digit in enumerate(digits))


def brute_force_law(counts: dict[int, int], scale: Fraction, at_least: int) -> list[float]:
    """Noise on every combination, and counts below the threshold struck out."""
    each = []
    for place in range(6):
        below, at = (laplace_cdf(scale, at_least - 1 + more - counts.get(place, 0)) for more in (0, 1))
        each.append((below, at - below, 1 - at))
    numbers = (digits[::-1] for digits in itertools.product(range(3), repeat=6))
    return [math.prod(each[place][digit] for place, digit in enumerate(digits)) for digits in numbers] + [0.0]


def misfit(
    mechanism: Callable[..., Shown], counts: dict[int, int], scale: Fraction, at_least: int, draws: int = DRAWS
) -> float:
    entropy = Entropy()
    noise = ExactNoise(entropy)
    places, exact_counts = array(sorted(counts)), array([counts[place] for place in sorted(counts)])
    seen = [0] * (WRONG + 1)
    for _ in range(draws):
        seen[number_of(mechanism(entropy, noise, places, exact_counts, 6, scale=scale, at_least=at_least), at_least)] += 1
    return p_value(seen, brute_force_law(counts, scale, at_least))


@pytest.mark.parametrize("case", CASES)
def test_whole_outcomes_have_the_law_of_noising_every_combination(case: str) -> None:
    """False alarms: below 1e-6 each."""
    assert misfit(sparse_counts, *CASES[case]) > ALARM


def planted(
    *,
    empty: bool = True,
    rise: int = 0,
    before_noise: bool = False,
    side: str = "right",
    flat: bool = False,
    shift: int = 0,
) -> Callable[..., Shown]:
    """The mechanism with one mistake."""

    def mechanism(
        entropy: Entropy,
        noise: NoiseSource,
        places: np.ndarray,
        exact_counts: np.ndarray,
        combinations: int,
        *,
        scale: Fraction,
        at_least: int,
    ) -> Shown:
        noisy = add_noise(exact_counts, noise, scale)
        shown = (exact_counts if before_noise else noisy) >= at_least
        ranks = _successes(entropy, combinations - len(places), 1 / scale, at_least + rise) if empty else array([])
        at = ranks + np.searchsorted(places - np.arange(len(places)), ranks, side=side) + shift  # type: ignore[call-overload]
        above = np.zeros_like(ranks) if flat else geometric(entropy, 1 / scale, len(ranks))
        all_places = np.concatenate((places[shown], at))
        order = np.argsort(all_places)
        return all_places[order], np.concatenate((noisy[shown], above + at_least + rise))[order]

    return mechanism


def test_the_frame_of_the_planted_mistakes_is_right_without_one() -> None:
    assert misfit(planted(), *CASES["two occupied, threshold 1"], draws=2000) > ALARM


MISTAKES: dict[str, Callable[..., Shown]] = {
    "empty combinations dropped": planted(empty=False),
    "another threshold for empty combinations": planted(rise=1),
    "the threshold tested before noise": planted(before_noise=True),
    "an occupied place shown twice": planted(side="left"),
    "every place one too far": planted(shift=1),
    "empty combinations exactly at the threshold": planted(flat=True),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_check_of_outcomes_catches(mistake: str) -> None:
    assert misfit(MISTAKES[mistake], *CASES["two occupied, threshold 1"], draws=2000) < ALARM


# -- high precision ----------------------------------------------------------------------------------------------------


def decimal_failure(rate: Fraction, at_least: int) -> Decimal:
    """q = 1 - a^at_least / (1 + a) for a = exp(-rate), to the precision of the context."""
    a = (Decimal(-rate.numerator) / rate.denominator).exp()
    return 1 - (Decimal(-rate.numerator * at_least) / rate.denominator).exp() / (1 + a)


def exact(uniform: Fraction, rate: Fraction, at_least: int, most: int) -> int:
    """The largest j <= most with uniform < q^j, by decimals of a precision that no double knows."""
    with localcontext() as context:
        context.prec, context.Emin = 350, MIN_EMIN
        q, u = decimal_failure(rate, at_least), Decimal(uniform.numerator) / Decimal(uniform.denominator)
        if q == 1:
            return most  # the chance of a success is below all these digits
        t = u.ln() / q.ln()
        assert abs(t - t.to_integral_value()) > Decimal(10) ** -60, "too close to tell"
        return int(min(t.to_integral_value(rounding=ROUND_FLOOR), Decimal(most)))


RATES = st.fractions(min_value=Fraction(1, 10**6), max_value=20, max_denominator=10**6).filter(lambda rate: rate > 0)
THRESHOLDS = st.integers(1, 30) | st.integers(1, 2**31 - 1)


@settings(deadline=None, max_examples=150)
@given(RATES, THRESHOLDS, st.integers(0, 2**60) | st.integers(0, 40), st.sampled_from([64, 128, 320]))
def test_power_bounds_enclose_the_power_and_are_narrow(rate: Fraction, at_least: int, power: int, bits: int) -> None:
    low, high = _power_bounds(rate, at_least, power, bits)
    with localcontext() as context:
        context.prec, context.Emin = 400, MIN_EMIN
        truth = decimal_failure(rate, at_least) ** Decimal(power) * Decimal(2) ** bits
        assert low <= truth <= high
    assert 0 <= high - low <= 2


@settings(deadline=None, max_examples=80)
@given(RATES, st.integers(1, 40), st.integers(0, WORD - 1), st.lists(st.integers(1, WORD - 1), min_size=6, max_size=6))
def test_every_gap_is_the_one_of_infinite_precision(rate: Fraction, at_least: int, drawn: int, more: list[int]) -> None:
    """Bits that the test knows in full; with errors so large that every draw is unsure, the same bits give the same gap."""
    number = drawn
    for word in more:
        number = number << 64 | word
    expected = exact(Fraction(2 * number + 1, 2 ** (64 * 7 + 1)), rate, at_least, 2**60)
    script = bits64(drawn), *map(bits64, more)
    assert _gaps(Script(*script), 1, rate, at_least, 2**60).tolist() == [expected]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sparse, "_ABSOLUTE", 1e30)
        assert _gaps(Script(*script), 1, rate, at_least, 2**60).tolist() == [expected]
    assert _exact_gap(Script(*script[1:]), drawn, 0, 2**60, rate, at_least) == expected


@settings(deadline=None, max_examples=100)
@given(RATES, st.integers(1, 12), st.integers(1, 10**6))
def test_a_gap_turns_exactly_at_the_power(rate: Fraction, at_least: int, power: int) -> None:
    """U on either side of q^power, where they differ in the 125th bit: the gap is `power` below it, and less above."""
    with localcontext() as context:
        context.prec = 200
        turn = int(decimal_failure(rate, at_least) ** Decimal(power) * Decimal(2) ** 128)
    high, low = divmod(turn, WORD)
    if not 8 < low < WORD - 8:
        return
    for side, inside in ((-4, True), (4, False)):
        gap = _gaps(Script(bits64(high), bits64(low + side), *[bits64(0)] * 8), 1, rate, at_least, 2**60)[0]
        assert (gap >= power) == inside


@pytest.mark.parametrize("drawn", [0, 1, 2**63, WORD - 2, WORD - 1])
@pytest.mark.parametrize("at_least", [1, 30, 199, 200, 201, 10**6])
def test_extreme_draws(drawn: int, at_least: int) -> None:
    more = [2**63 - 5] * 10
    number = drawn
    for word in more:
        number = number << 64 | word
    script = Script(bits64(drawn), *map(bits64, more))
    expected = exact(Fraction(2 * number + 1, 2 ** (64 * 11 + 1)), Fraction(1), at_least, 2**60)
    assert _gaps(script, 1, Fraction(1), at_least, 2**60).tolist() == [expected]


# -- gaps --------------------------------------------------------------------------------------------------------------

GAPS = {
    "half of all": (Fraction(1, 1000), 1, 400_000),
    "a quarter": (Fraction(1), 1, 400_000),
    "one in thirty": (Fraction(1, 2), 6, 200_000),
    "one in ten thousand": (Fraction(3), 3, 100_000),
}


def gap_misfit(rate: Fraction, at_least: int, gaps: np.ndarray) -> float:
    """Chi-square of gaps against P(gap >= j) = q^j, at up to 80 edges."""
    q = 1 - math.exp(-float(rate) * at_least) / (1 + math.exp(-float(rate)))
    edges = sorted({math.ceil(math.log(level) / math.log(q)) for level in np.linspace(0.0125, 0.9875, 80)} | {1})
    reached = [1.0, *(q**edge for edge in edges), 0.0]
    law = [before - after for before, after in itertools.pairwise(reached)]
    return p_value(np.bincount(np.searchsorted(edges, gaps, side="right"), minlength=len(law)).tolist(), law)


@pytest.mark.parametrize("case", GAPS)
def test_gaps_are_geometric(case: str) -> None:
    rate, at_least, draws = GAPS[case]
    assert gap_misfit(rate, at_least, _gaps(Entropy(), draws, rate, at_least, 2**60)) > ALARM


def test_gaps_are_geometric_where_no_double_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draw is 'unsure', so that integers decide all of them."""
    decided: list[int] = []
    real = sparse._exact_gap
    monkeypatch.setattr(sparse, "_ABSOLUTE", 1e30)
    monkeypatch.setattr(sparse, "_exact_gap", lambda *given: decided.append(1) or real(*given))
    assert gap_misfit(Fraction(1), 2, _gaps(Entropy(), 6_000, Fraction(1), 2, 10**6)) > ALARM
    assert len(decided) == 6_000


@pytest.mark.parametrize("shift", [-1, 1])
def test_the_check_of_gaps_catches_an_end_off_by_one(shift: int) -> None:
    for case in ("half of all", "one in thirty"):
        rate, at_least, draws = GAPS[case]
        assert gap_misfit(rate, at_least, np.maximum(_gaps(Entropy(), draws, rate, at_least, 2**60) + shift, 0)) < ALARM


def test_gaps_are_cut_exactly() -> None:
    for most in (1, 2, 7, 10**9):
        gaps = _gaps(Entropy(), 2000, Fraction(1), 3, most)
        assert gaps.min() >= 0
        assert gaps.max() <= most


@pytest.mark.parametrize("most", [2**53 - 1, 2**53 + 1, 2**57 + 1, 2**59 + 10, 2**59 + 64, 2**60 - 3, 2**60, 3 * 10**17 + 1])
@pytest.mark.parametrize("at_least", [100, 150, 250])
def test_nothing_succeeds_at_the_end_of_a_domain_that_no_double_holds(most: int, at_least: int) -> None:
    """A cut rounded down to a double ended the domain with a success; where it lay told how many places hold rows."""
    assert _gaps(Entropy(), 50, Fraction(1), at_least, most).tolist() == [most] * 50
    assert _successes(Entropy(), most, Fraction(1), at_least).size == 0


# -- places and counts of empty combinations ---------------------------------------------------------------------------


def test_place_and_count_are_independent() -> None:
    """Ten stretches of places and five counts, joint; 3,000 combinations of which every third holds a row."""
    places, at_least, scale = np.arange(0, 3000, 3), 4, Fraction(1)
    entropy = Entropy()
    noise = ExactNoise(entropy)
    joint = np.zeros((10, 5), dtype=np.int64)
    for _ in range(400):
        found, counts = sparse_counts(entropy, noise, places, np.ones_like(places), 3000, scale=scale, at_least=at_least)
        empty = found % 3 != 0
        np.add.at(joint, (found[empty] // 300, np.minimum(counts[empty] - at_least, 4)), 1)
    a = math.exp(-1)
    of_counts = [*((1 - a) * a**above for above in range(4)), a**4]
    assert p_value(joint.ravel().tolist(), np.outer(np.full(10, 0.1), of_counts).ravel().tolist()) > ALARM


def test_neighbouring_empty_combinations_are_independent() -> None:
    """All runs of 4 coins of one domain, so that a success says nothing about the next."""
    trials, rate, at_least = 200_000, Fraction(1, 2), 1
    coins = np.zeros(trials, dtype=np.int64)
    coins[_successes(Entropy(), trials, rate, at_least)] = 1
    p = math.exp(-0.5) / (1 + math.exp(-0.5))
    law = [p ** number.bit_count() * (1 - p) ** (4 - number.bit_count()) for number in range(16)]
    seen = np.bincount(coins.reshape(-1, 4) @ (8, 4, 2, 1), minlength=16)
    assert p_value(seen.tolist(), law) > ALARM


# -- huge domains ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("combinations", [10**9, 2**60, 2**59 + 65], ids=str)
def test_huge_domains_show_as_many_phantoms_as_expected(combinations: int) -> None:
    """The number is binomial (each end at 1e-9), places are spread evenly; memory follows what is shown."""
    epsilon, runs = Epsilon(10**9), 5
    at_least = threshold_for(combinations, of_counts(epsilon), 1000)
    entropy = Entropy()
    noise = ExactNoise(entropy)
    random = np.random.default_rng(7)
    places = np.unique(random.integers(0, combinations, 3000))
    total, spread = 0, np.zeros(20, dtype=np.int64)
    for run in range(runs):
        if run == 0:
            tracemalloc.start()
        found, counts = sparse_counts(
            entropy, noise, places, np.full(len(places), 2 * at_least), combinations, scale=Fraction(1), at_least=at_least
        )
        if run == 0:
            assert tracemalloc.get_traced_memory()[1] < 2_000_000
            tracemalloc.stop()
        assert found.dtype == counts.dtype == np.int64
        assert np.all(np.diff(found) > 0)
        assert found[0] >= 0
        assert found[-1] < combinations
        assert counts.min() >= at_least
        empty = found[~np.isin(found, places)]
        total += len(empty)
        spread += np.bincount((empty // (combinations // 20 + 1)).astype(np.intp), minlength=20)
    chance = phantoms(combinations, of_counts(epsilon), at_least) / combinations
    trials = runs * (combinations - len(places))
    assert binom.cdf(total, trials, chance) > ALARM
    assert binom.sf(total - 1, trials, chance) > ALARM
    assert p_value(spread.tolist(), [1 / 20] * 20) > ALARM


def test_what_is_drawn_follows_what_is_shown_not_the_combinations() -> None:
    metered = Metered()
    sparse_counts(metered, ExactNoise(metered), array([]), array([]), 2**60, scale=Fraction(1), at_least=60)
    assert metered.drawn < 1000


def test_one_combination() -> None:
    """Occupied or not, it passes with its probability: 2,000 draws each, ends at 1e-9."""
    entropy = Entropy()
    noise = ExactNoise(entropy)
    for counts, p in (([], math.exp(-2) / (1 + math.exp(-1))), ([2], 1 / (1 + math.exp(-1)))):
        places = array([0] * len(counts))
        shown = [
            sparse_counts(entropy, noise, places, array(counts), 1, scale=Fraction(1), at_least=2)[0].tolist()
            for _ in range(2000)
        ]
        assert {tuple(one) for one in shown} == {(), (0,)}
        passed = sum(map(len, shown))
        assert binom.cdf(passed, 2000, p) > ALARM
        assert binom.sf(passed - 1, 2000, p) > ALARM


def test_where_all_combinations_hold_rows_nothing_else_is_shown() -> None:
    places = np.arange(50)
    entropy = Entropy()
    found, counts = sparse_counts(
        entropy, ExactNoise(entropy), places, np.full(50, 10**6), 50, scale=Fraction(1), at_least=1
    )
    np.testing.assert_array_equal(found, places)
    assert np.all(np.abs(counts - 10**6) < 1000)


# -- tiny chances ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_least", [200, 1000, 2**31 - 1])
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1000)], ids=str)
def test_what_is_rarer_than_the_world_does_not_happen(at_least: int, rate: Fraction) -> None:
    """Below 2^60 exp(-200) < 1e-68 for a run."""
    for _ in range(20):
        assert _successes(Entropy(), 2**60, rate, at_least).size == 0


def test_a_chance_below_every_double_is_still_exact() -> None:
    """exp(-300) / (1 + exp(-1)) = 2^-433.3: U must agree with 1 in that many bits but for the 60 of the domain."""
    ones = [WORD - 1] * 6  # U = 1 - 2^-448 and less
    number = 0
    for word in (WORD - 1, *ones, 0):
        number = number << 64 | word
    expected = exact(Fraction(number, 2 ** (64 * 8)), Fraction(1), 300, 2**60)
    assert expected == 0
    assert _gaps(Script(*map(bits64, (WORD - 1, *ones, 0, 0))), 1, Fraction(1), 300, 2**60).tolist() == [0]
    fewer = [WORD - 1] * 5 + [WORD - 2**60]  # 1 - U = 2^-388, some 2^45 successes away
    number = 0
    for word in (WORD - 1, *fewer, 1):
        number = number << 64 | word
    expected = exact(Fraction(number, 2 ** (64 * 8)), Fraction(1), 300, 2**60)
    assert 2**44 < expected < 2**47
    gaps = _gaps(Script(*map(bits64, (WORD - 1, *fewer, 1, 2**63, 0))), 1, Fraction(1), 300, 2**60)
    assert abs(int(gaps[0]) - expected) <= 1


def test_noise_beyond_64_bits_is_clipped_as_on_occupied_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "geometric", lambda entropy, rate, size: np.full(size, 2**62))
    monkeypatch.setattr(sparse, "_successes", lambda *given: array([0, 1]))
    entropy = Entropy()
    _, counts = sparse_counts(entropy, ExactNoise(entropy), array([]), array([]), 9, scale=Fraction(1), at_least=2**31 - 1)
    assert counts.tolist() == [LIMIT, LIMIT]


# -- the public threshold ----------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 2**60), st.integers(10**5, 10**10), st.sampled_from([0.01, 1.0, 1000.0]))
def test_the_threshold_is_the_smallest_that_lets_so_few_through(combinations: int, units: int, most: float) -> None:
    epsilon = Epsilon(units)
    level = threshold_for(combinations, of_counts(epsilon), most)
    assert phantoms(combinations, of_counts(epsilon), level) <= most
    assert level == 1 or phantoms(combinations, of_counts(epsilon), level - 1) > most
