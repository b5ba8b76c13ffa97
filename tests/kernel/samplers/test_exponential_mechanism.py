"""The exponential mechanism: exact thresholds for one uniform real, fast path held to the exact one, and its law."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.bits import Metered, Script, bits64
from support.laws import ALARM, exponential_law, frequencies, p_value

from dpmine.base.errors import RequestError
from dpmine.codes.choices import MOST_COPIES
from dpmine.kernel.mechanisms.choose_split import FAMILY_MASS
from dpmine.kernel.samplers import choice
from dpmine.kernel.samplers.choice import (
    BLOCK,
    _block_bounds,
    _by_doubles,
    _chosen_interval,
    _ends,
    _kept,
    exponential,
    stretches,
)
from dpmine.kernel.samplers.coins import sure_interval
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.questions.choose_split import MOST_CANDIDATES

Choose = Callable[..., int]
WORD = 2**64


def array(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


# -- the law by draws --------------------------------------------------------------------------------------------------

CASES: dict[str, tuple[list[int], list[int], Fraction]] = {
    "lunch vote": ([27, 23, 9, 0], [1, 1, 1, 1], Fraction(1, 20)),
    "all equal": ([5] * 7, [1] * 7, Fraction(3)),
    "ties that are no neighbours": ([4, 1, 4, 1, 4], [1, 1, 1, 1, 1], Fraction(1, 2)),
    "masses decide": ([0, 0, 0], [1, 10, 100], Fraction(1)),
    "masses against scores": ([3, 2, 1, 0], [1, 3, 9, 27], Fraction(1)),
    "negative scores": ([-100, -101, -103], [2, 3, 5], Fraction(1, 3)),
    "scores of 55 bits": ([2**55, 2**55 - 2**52, -(2**55)], [1, 1, 1], Fraction(1, 2**52)),
    "a gap no exponential survives": ([0, -(2**55), 0], [1, 1000, 2], Fraction(10)),
    "masses up to the limit": ([1, 0, 2], [2**47, 2**48, 2**46], Fraction(1)),
    "one against thousands": ([20] + [0] * 3000, [1] * 3001, Fraction(2, 5)),
    "one candidate": ([7], [3], Fraction(1)),
}


def misfit(choose: Choose, scores: list[int], masses: list[int], rate: Fraction, draws: int = 15_000) -> float:
    source, score, mass = Entropy(), array(scores), array(masses)
    drawn = frequencies(lambda: choose(source, score, mass, rate=rate), len(scores), draws)
    if len(scores) == 1:
        return 1.0 if drawn == [draws] else 0.0
    return p_value(drawn, exponential_law(scores, masses, rate))


@pytest.mark.parametrize("case", CASES)
def test_the_exponential_mechanism_follows_its_exact_law(case: str) -> None:
    assert misfit(exponential, *CASES[case]) > ALARM


def by_integers(drawn: int, bits: int, gaps: np.ndarray, weights: np.ndarray, rate: Fraction) -> int | None:
    return sure_interval(drawn, bits, *_ends(bits, gaps, weights, rate))


def by_integers_alone(entropy: Entropy, scores: np.ndarray, masses: np.ndarray, *, rate: Fraction) -> int:
    """The second, slower look for every draw."""
    bits, drawn = 64, entropy.bits(64)
    while True:
        place = by_integers(drawn, bits, scores.max() - scores, masses, rate)
        if place is not None:
            return place
        bits, drawn = bits + 64, (drawn << 64) | entropy.bits(64)


@pytest.mark.parametrize("case", ["lunch vote", "masses against scores", "scores of 55 bits", "masses up to the limit"])
def test_the_integer_path_alone_follows_the_same_law(case: str) -> None:
    assert misfit(by_integers_alone, *CASES[case]) > ALARM


def twice_the_rate(entropy: Entropy, scores: np.ndarray, masses: np.ndarray, *, rate: Fraction) -> int:
    return exponential(entropy, scores, masses, rate=2 * rate)


def without_masses(entropy: Entropy, scores: np.ndarray, masses: np.ndarray, *, rate: Fraction) -> int:
    return exponential(entropy, scores, np.ones_like(masses), rate=rate)


def first_of_a_stretch(entropy: Entropy, scores: np.ndarray, masses: np.ndarray, *, rate: Fraction) -> int:
    score, mass, starts = stretches(scores, masses)
    return int(starts[exponential(entropy, score, mass, rate=rate)])


@pytest.mark.parametrize(
    ("mistake", "case"),
    [
        (twice_the_rate, "lunch vote"),
        (twice_the_rate, "one against thousands"),
        (without_masses, "masses against scores"),
        (first_of_a_stretch, "all equal"),
    ],
)
def test_the_law_check_catches(mistake: Choose, case: str) -> None:
    assert misfit(mistake, *CASES[case]) < ALARM


# -- the law exactly: where on the line one candidate ends and the next begins -----------------------------------------


def boundaries(scores: list[int], masses: list[int], rate: Fraction, bits: int) -> list[int]:
    """The cumulative probabilities as integers of that many bits."""
    law = exponential_law(scores, masses, rate)
    with localcontext() as context:
        context.prec = 60
        ends = [sum(law[: place + 1], Decimal(0)) for place in range(len(law) - 1)]
    return [int(Fraction(end) * 2**bits) for end in ends]


def chosen_at(drawn: int, scores: list[int], masses: list[int], rate: Fraction) -> int:
    """The choice if the uniform real begins with these 128 bits; later words are only read if earlier ones can't tell."""
    script = Script(bits64(drawn >> 64), bits64(drawn & (WORD - 1)), *[bits64(0)] * 4)
    return exponential(script, array(scores), array(masses), rate=rate)


def wrong_boundaries(choose_at: Callable[..., int], scores: list[int], masses: list[int], rate: Fraction) -> int:
    """How many ends of candidates are not where the law puts them, to within 2^-126."""
    ends = boundaries(scores, masses, rate, 128)
    wrong = 0
    for place, end in enumerate(ends):
        before, after = end - 4, end + 4
        if (place and before <= ends[place - 1] + 4) or (place + 1 < len(ends) and after >= ends[place + 1] - 4):
            continue  # a candidate too unlikely to hit even with 128 bits
        if before >= 0:
            wrong += choose_at(before, scores, masses, rate) != place
        if after < 2**128:
            wrong += choose_at(after, scores, masses, rate) != place + 1
    return wrong


@st.composite
def instances(draw: st.DrawFn, largest: int = 60) -> tuple[list[int], list[int], Fraction]:
    """Neighbouring scores differ, so that every candidate is a stretch of its own."""
    scores = draw(st.lists(st.integers(-largest, largest), min_size=2, max_size=6))
    assume(all(one != other for one, other in itertools.pairwise(scores)))
    masses = draw(st.lists(st.integers(1, 2**32), min_size=len(scores), max_size=len(scores)))
    rate = draw(st.fractions(min_value=Fraction(1, 10**6), max_value=1, max_denominator=10**9))
    assume(rate > 0)
    return scores, masses, rate


@settings(deadline=None, max_examples=100)
@given(instances())
def test_each_candidate_owns_exactly_its_share_of_the_line(instance: tuple[list[int], list[int], Fraction]) -> None:
    assert wrong_boundaries(chosen_at, *instance) == 0


@pytest.mark.parametrize("case", ["lunch vote", "masses against scores", "negative scores", "scores of 55 bits"])
def test_the_named_cases_own_exactly_their_share_too(case: str) -> None:
    assert wrong_boundaries(chosen_at, *CASES[case]) == 0


def test_the_share_check_catches_doubles_without_an_error_bound() -> None:
    """Planted mistake: trusting 53-bit sums to the last bit."""

    def trusting(drawn: int, scores: list[int], masses: list[int], rate: Fraction) -> int:
        ends = np.cumsum(np.array(masses) * np.exp(-(max(scores) - array(scores)) * float(rate)))
        return int(np.searchsorted(ends, drawn / 2**128 * ends[-1], side="right"))

    wrong = sum(wrong_boundaries(trusting, [9, 4, k, 0], [1, 2, 3, 4], Fraction(k, 7)) for k in range(5, 9))
    assert wrong > 0


@pytest.mark.parametrize("masses", [[2**50], [2**49, 2**49], [2**62, 2**62, 2**62], [2**62] * 4, [2**63 - 1, 1]], ids=str)
def test_masses_that_doubles_cannot_add_exactly_are_refused(masses: list[int]) -> None:
    with pytest.raises(RequestError, match="masses"):
        exponential(Script(), array([0] * len(masses)), array(masses), rate=Fraction(1))


def test_only_the_sum_of_all_masses_is_limited() -> None:
    """One candidate of nearly all the mass among two million others, each of its own."""
    masses = np.arange(1, 2_000_001, dtype=np.int64)
    masses[7] = 2**50 - 1 - (int(masses.sum()) - 8)
    assert 0 <= exponential(Entropy(), np.zeros_like(masses), masses, rate=Fraction(1)) < masses.size
    masses[7] += 1
    with pytest.raises(RequestError, match="masses"):
        exponential(Script(), np.zeros_like(masses), masses, rate=Fraction(1))


def test_the_largest_choice_that_can_be_asked_fits_its_masses() -> None:
    """A refusal after the charge would waste budget, so no query may reach it: the public limits come first."""
    assert FAMILY_MASS * MOST_CANDIDATES < 2**50
    assert MOST_CANDIDATES <= MOST_COPIES


def test_equal_neighbours_share_one_interval_evenly() -> None:
    """Scores 1 1 1 0: one real decides the stretch, one more draw below 3 the member."""
    for member in range(3):
        script = Script(bits64(0), bytes([member]))
        assert exponential(script, array([1, 1, 1, 0]), array([1] * 4), rate=Fraction(1)) == member
        assert script.used_up
    script = Script(bits64(0), bytes([3]), bytes([2]))  # 3 is drawn again
    assert exponential(script, array([1, 1, 1, 0]), array([1] * 4), rate=Fraction(1)) == 2


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2)), min_size=1, max_size=12))
def test_stretches_are_the_runs_of_equal_score_and_mass(pairs: list[tuple[int, int]]) -> None:
    score, mass, starts = stretches(array([pair[0] for pair in pairs]), array([pair[1] for pair in pairs]))
    ends = [*starts[1:].tolist(), len(pairs)]
    rebuilt = [
        (int(one), int(two))
        for one, two, start, end in zip(score, mass, starts, ends, strict=True)
        for _ in range(end - start)
    ]
    assert rebuilt == pairs
    assert all(pairs[start] != pairs[start - 1] for start in starts[1:].tolist())


# -- doubles first, integers where they cannot tell ------------------------------------------------------------------


@settings(deadline=None, max_examples=400)
@given(instances(largest=2000), st.integers(0, WORD - 1), st.integers(-(2**34), 2**34), st.integers(0, 4))
def test_doubles_never_contradict_integers(
    instance: tuple[list[int], list[int], Fraction], anywhere: int, offset: int, which: int
) -> None:
    """On the same bits, drawn anywhere or close to an end of a candidate: doubles agree or abstain."""
    scores, masses, rate = instance
    gaps, weights = max(scores) - array(scores), array(masses)
    ends = boundaries(scores, masses, rate, 64)
    close = min(max(ends[which % len(ends)] + offset, 0), WORD - 1)
    for drawn in (anywhere, close):
        place = _by_doubles(drawn, gaps, weights, rate)
        if place is None:
            continue
        assert by_integers(drawn, 64, gaps, weights, rate) in (place, None)
        for rest in (0, WORD - 1):  # whatever bits would have come next
            assert by_integers(drawn << 64 | rest, 128, gaps, weights, rate) == place


def test_integers_decide_what_doubles_leave_open() -> None:
    """Within a double's error of an end, doubles abstain and integers find the side."""
    gaps, masses, rate = array([0, 1]), array([1, 1]), Fraction(1)
    (end,) = boundaries([1, 0], [1, 1], rate, 64)
    for drawn, place in ((end - 2, 0), (end + 2, 1)):
        assert _by_doubles(drawn, gaps, masses, rate) is None
        assert by_integers(drawn, 64, gaps, masses, rate) == place
    assert by_integers(end, 64, gaps, masses, rate) is None


def test_a_candidate_beyond_all_doubles_can_still_be_chosen() -> None:
    """exp(-800) is 0 as a double; the last 2^-1155 of the line still belongs to the second candidate."""
    assert 18 * 64 + 2 < 800 / math.log(2) < 18 * 64 + 3
    for last, place in ((WORD - 1, 1), (WORD // 2, 0)):
        script = Script(*[bits64(WORD - 1)] * 18, bits64(last))
        assert _chosen_interval(script, array([0, 800]), array([1, 1]), Fraction(1)) == place
        assert script.used_up


@pytest.mark.parametrize(("candidates", "draws", "allowed"), [(4, 15_000, 0), (500, 2000, 1)])
def test_a_second_look_is_rare(monkeypatch: pytest.MonkeyPatch, candidates: int, draws: int, allowed: int) -> None:
    """Chance of a second look: 8e-12 for each end of a candidate. False-alarm rate below 1e-6; 8 bytes for each choice."""
    looks = []

    def counted(*arguments: Any) -> tuple[list[int], list[int]]:
        looks.append(arguments)
        return _ends(*arguments)

    monkeypatch.setattr(choice, "_ends", counted)
    source, scores, masses = Metered(), array(list(range(candidates))), array([1] * candidates)
    for _ in range(draws):
        exponential(source, scores, masses, rate=Fraction(1, candidates))
    assert len(looks) <= allowed
    assert source.drawn == 8 * draws


# -- of many stretches, a block first ----------------------------------------------------------------------------------

Bounds = Callable[..., tuple[list[int], list[int], int]]
BLOCKED: dict[str, tuple[list[int], list[int], Fraction]] = {
    "best in the last": ([0, 1, 0, 2, 1, 3, 1, 9, 6, 10], [5, 1, 4, 2, 3, 1, 7, 1, 1, 2], Fraction(1, 3)),
    "masses that differ a lot": ([40, 3, 2, 1, 5, 6, 0], [1, 2**18, 2**19, 2**20, 2**15, 2**14, 2**20], Fraction(1, 3)),
    "a block that no exponential reaches": ([0, 1, -9000, -9001, 0, 2, 1], [3, 1, 2**20, 2**20, 1, 1, 2], Fraction(1)),
    "light before heavy": ([0] * 6, [1, 100, 50, 2, 3, 60], Fraction(1)),
    "gaps and rows in turn": ([-7, -4, -4, -1, 0, -2, -5], [900, 1, 30, 1, 2, 1, 500], Fraction(1, 2)),
    **{name: CASES[name] for name in ("masses against scores", "scores of 55 bits", "masses up to the limit", "lunch vote")},
}


def loose(*arguments: Any) -> tuple[list[int], list[int], int]:
    """Bounds that are right and far from tight: most blocks are drawn anew, and every coin is an exact one."""
    _, upper, shift = _block_bounds(*arguments)
    return [0] * len(upper), [one + max(upper) // (2 + place) for place, one in enumerate(upper)], shift


@pytest.mark.parametrize(
    ("block", "bounds"),
    [(1, _block_bounds), (2, _block_bounds), (3, _block_bounds), (2, loose)],
    ids=["1", "2", "3", "loose"],
)
@pytest.mark.parametrize("case", BLOCKED)
def test_a_choice_by_blocks_follows_the_same_law(
    monkeypatch: pytest.MonkeyPatch, case: str, block: int, bounds: Bounds
) -> None:
    monkeypatch.setattr(choice, "BLOCK", block)
    monkeypatch.setattr(choice, "_block_bounds", bounds)
    assert misfit(exponential, *BLOCKED[case]) > ALARM


def always_kept(bits: int, *_: Any) -> tuple[int, int]:
    return 1 << bits, 1 << bits


def from_the_first_alone(gaps: np.ndarray, weights: np.ndarray, rate: Fraction) -> tuple[list[int], list[int], int]:
    """Bounds of the first stretch of each block instead of all."""
    weights = weights.copy()
    weights[1 :: choice.BLOCK] = 0
    return _block_bounds(gaps, weights, rate)


def too_low(*arguments: Any) -> tuple[list[int], list[int], int]:
    """Bounds that are no bounds: with half of the first block left out."""
    lower, upper, shift = _block_bounds(*arguments)
    return [lower[0] // 2, *lower[1:]], [upper[0] // 2, *upper[1:]], shift


@pytest.mark.parametrize(
    ("name", "mistake", "case"),
    [
        ("_kept", always_kept, "best in the last"),
        ("_block_bounds", from_the_first_alone, "light before heavy"),
        ("_block_bounds", too_low, "light before heavy"),
    ],
)
def test_the_check_of_blocks_catches(monkeypatch: pytest.MonkeyPatch, name: str, mistake: Any, case: str) -> None:
    """Planted mistakes: every block is kept; bounds that are none."""
    monkeypatch.setattr(choice, "BLOCK", 2)
    if name == "_kept":
        monkeypatch.setattr(choice, "_block_bounds", loose)
    monkeypatch.setattr(choice, name, mistake)
    assert misfit(exponential, *BLOCKED[case]) < ALARM


def of_blocks(gaps: np.ndarray, weights: np.ndarray, rate: Fraction, block: int) -> list[Fraction]:
    """The sums of all blocks, to within 2^-1200 of their masses."""
    with localcontext() as context:
        context.prec = 90
        sums = []
        for first in range(0, gaps.size, block):
            pairs = zip(gaps[first : first + block].tolist(), weights[first : first + block].tolist(), strict=True)
            near = [(rate * gap, weight) for gap, weight in pairs if rate * gap < 1500]
            terms = [weight * (-Decimal(x.numerator) / x.denominator).exp() for x, weight in near]
            sums.append(Fraction(sum(terms, Decimal(0))))
    return sums


def bounds_that_do_not_hold(bounds: Bounds, gaps: np.ndarray, weights: np.ndarray, rate: Fraction) -> int:
    lower, upper, shift = bounds(gaps, weights, rate)
    true = [one * 2**shift for one in of_blocks(gaps, weights, rate, choice.BLOCK)]
    return sum(not low <= one <= high for low, one, high in zip(lower, true, upper, strict=True))


@st.composite
def many(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Fraction]:
    size = draw(st.integers(3, 40))
    gaps = draw(st.lists(st.integers(0, 2000) | st.integers(0, 2**60), min_size=size - 1, max_size=size - 1))
    weights = draw(st.lists(st.integers(1, 2**20) | st.integers(1, 2**44), min_size=size, max_size=size))
    rate = draw(st.fractions(min_value=Fraction(1, 10**6), max_value=1, max_denominator=10**9).filter(bool))
    return array([*gaps, 0]), array(weights), rate


@pytest.mark.parametrize("block", [1, 3, 16])
def test_double_bounds_hold_whatever_the_block(block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "BLOCK", block)

        @settings(deadline=None, max_examples=60)
        @given(many())
        def check(instance: tuple[np.ndarray, np.ndarray, Fraction]) -> None:
            assert bounds_that_do_not_hold(_block_bounds, *instance) == 0
            gaps, weights, rate = instance
            lower, upper, shift = _block_bounds(*instance)
            assert 2**61 <= sum(upper) < 2**63
            assert all(high - low <= high * 1e-11 + 4 for low, high in zip(lower, upper, strict=True))
            for place, (true, bound) in enumerate(zip(of_blocks(gaps, weights, rate, block), upper, strict=True)):
                inside = slice(place * block, (place + 1) * block)
                for bits in (64, 128):
                    low, high = _kept(bits, gaps[inside], weights[inside], rate, bound, shift)
                    assert low <= true * 2 ** (shift + bits) / bound <= high <= 2**bits
                    assert high - low <= 2 + 2 * int(weights[inside].sum()) // bound + 1

        check()


def test_the_check_of_bounds_catches_sums_without_an_error() -> None:
    """Planted mistake: 53-bit sums as bounds of themselves."""

    def trusting(gaps: np.ndarray, weights: np.ndarray, rate: Fraction) -> tuple[list[int], list[int], int]:
        sums = np.add.reduceat(weights * np.exp(-gaps * float(rate)), np.arange(0, gaps.size, BLOCK))
        shift = 62 - math.frexp(float(sums.sum()))[1]
        numbers = [int(math.ldexp(one, shift)) for one in sums.tolist()]
        return numbers, [one + 1 for one in numbers], shift

    gaps, weights = np.arange(BLOCK, dtype=np.int64), np.arange(1, BLOCK + 1, dtype=np.int64)
    assert bounds_that_do_not_hold(trusting, gaps, weights, Fraction(1, 700)) == 1
    assert bounds_that_do_not_hold(_block_bounds, gaps, weights, Fraction(1, 700)) == 0


def test_choices_of_a_block_at_most_draw_one_real_and_larger_ones_two_more() -> None:
    source, scores = Metered(), np.arange(BLOCK + 1, dtype=np.int64)
    exponential(source, scores[1:], np.ones(BLOCK, dtype=np.int64), rate=Fraction(1, 500))
    assert source.drawn == 8
    source = Metered()
    exponential(source, scores, np.ones(BLOCK + 1, dtype=np.int64), rate=Fraction(1, 500))
    assert source.drawn >= 24
    assert source.drawn % 8 == 0


def test_a_second_look_stays_rare_among_two_million(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than 3e-8 by the bounds that decide; so none in 30 draws, which fails by chance less than once in a million."""
    random, size = np.random.default_rng(3), 2_000_000
    scores = -np.abs(np.arange(size, dtype=np.int64) - 700_000) - np.arange(size) % 2
    masses = random.integers(1, 2**20, size, endpoint=True)
    lower, upper, _ = _block_bounds(-scores + scores.max(), masses, Fraction(1, 10**5))
    within = 4 * BLOCK * (2 * 2.0**-40 + 4 * BLOCK * 2.0**-53 + 2.0**-62)
    assert (sum(upper) - sum(lower)) / sum(upper) + within < 3e-8

    def no_look(*_: Any) -> Any:
        raise AssertionError("a second look")

    monkeypatch.setattr(choice, "_ends", no_look)
    chosen = [exponential(Entropy(), scores, masses, rate=Fraction(1, 10**5)) for _ in range(30)]
    assert all(abs(place - 700_000) < 50 * 10**5 for place in chosen)


def test_the_slow_look_reads_one_block_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred thousand stretches it takes the exponentials of 2,048, whichever of the two decisions is close."""
    looks = []

    def counted(bits: int, gaps: np.ndarray, *arguments: Any) -> tuple[list[int], list[int]]:
        looks.append(gaps.size)
        return _ends(bits, gaps, *arguments)

    monkeypatch.setattr(choice, "_ends", counted)
    monkeypatch.setattr(choice, "_by_doubles", lambda *_: None)
    monkeypatch.setattr(choice, "_block_bounds", lambda *arguments: ([0] * 49, *_block_bounds(*arguments)[1:]))
    scores = np.arange(100_000, dtype=np.int64) % 97
    exponential(Entropy(), scores, np.ones_like(scores), rate=Fraction(1, 10))
    assert len(looks) >= 2
    assert max(looks) <= BLOCK
