"""The arithmetic of an audit: limits of probabilities, the bound on epsilon, the test of fit, and the exact laws."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from dpmine.audit.bounds import choose_event, clopper_pearson, lower_bound, merged
from dpmine.audit.fit import entropy_tail, fit_failure
from dpmine.audit.laws import Buckets, by_group, exponential_law, independent, permute_and_flip_law
from dpmine.base.errors import RequestError


@pytest.mark.parametrize("failure", [0.05, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize(
    ("hits", "runs"), [(0, 10), (1, 10), (5, 10), (10, 10), (37, 1000), (999, 1000), (400_000, 1_000_000)]
)
def test_limits_are_those_of_clopper_and_pearson(hits: int, runs: int, failure: float) -> None:
    low, high = clopper_pearson(hits, runs, failure)
    wanted_low = 0.0 if hits == 0 else stats.beta.ppf(failure, hits, runs - hits + 1)
    wanted_high = 1.0 if hits == runs else stats.beta.isf(failure, hits + 1, runs - hits)
    assert low == pytest.approx(wanted_low, rel=1e-6, abs=1e-12)
    assert high == pytest.approx(wanted_high, rel=1e-6)


def test_the_bound_is_the_log_of_the_ratio_of_the_two_limits() -> None:
    counts = {"yes": 800, "no": 200}, {"yes": 300, "no": 700}
    bound = lower_bound(counts, counts, confidence=0.98)
    low, high = stats.beta.ppf(0.01, 700, 301), stats.beta.isf(0.01, 201, 800)
    assert bound.epsilon == pytest.approx(math.log(low / high), rel=1e-6)
    assert (bound.hits, bound.runs, bound.event.likelier) == ((700, 200), (1000, 1000), 1)


def test_the_bound_finds_the_better_direction() -> None:
    """Seldom is always the second table's: an outcome that hardly ever comes on the first one."""
    counts = {"often": 990, "seldom": 10}, {"often": 700, "seldom": 300}
    bound = lower_bound(counts, counts, confidence=0.99)
    assert bound.event.likelier == 1
    assert bound.event.outcomes == {"seldom"}


def test_equal_counts_show_nothing() -> None:
    counts = dict.fromkeys(range(10), 100)
    assert lower_bound((counts, counts), (counts, counts), confidence=0.99).epsilon == 0


def test_rare_and_unknown_outcomes_are_one() -> None:
    """A mechanism whose outcome never comes twice cannot be told apart by its outcomes' names."""
    once = {f"a{number}": 1 for number in range(1000)}, {f"b{number}": 1 for number in range(1000)}
    again = {f"c{number}": 1 for number in range(1000)}, {f"d{number}": 1 for number in range(1000)}
    assert lower_bound(once, again, confidence=0.99).epsilon == 0


def test_a_leak_of_everything_is_seen() -> None:
    counts = {"here": 5000}, {"there": 5000}
    assert lower_bound(counts, counts, confidence=0.999).epsilon > 6


@pytest.mark.parametrize("confidence", [0, 1, 1.5])
def test_a_bound_needs_a_confidence(confidence: float) -> None:
    with pytest.raises(RequestError):
        lower_bound(({"a": 1}, {"a": 1}), ({"a": 1}, {"a": 1}), confidence=confidence)


def test_a_bound_needs_runs() -> None:
    with pytest.raises(RequestError):
        lower_bound(({}, {}), ({"a": 1}, {"a": 1}), confidence=0.9)


def test_the_bound_is_above_the_truth_as_seldom_as_it_says() -> None:
    """Randomised response at epsilon 1, 1,000 audits with fixed seeds: at most 5 % of the bounds may be too high.

    The rate is far smaller, since both limits must be missed together; 5 % would be 50, and fixed seeds never alarm.
    """
    draw = np.random.default_rng(1)
    truth = math.e / (1 + math.e)
    above = 0
    for _ in range(1000):
        hits = draw.binomial(300, truth, 2), draw.binomial(300, 1 - truth, 2)
        tables = [tuple({"yes": int(side[part]), "no": 300 - int(side[part])} for side in hits) for part in (0, 1)]
        above += lower_bound(tables[0], tables[1], confidence=0.95).epsilon > 1  # type: ignore[arg-type]
    assert above <= 50


def test_an_event_chosen_and_judged_on_the_same_runs_would_lie() -> None:
    """Why runs are split: 400 outcomes without any difference look different to whoever may choose afterwards."""
    draw = np.random.default_rng(2)
    separate = same = 0
    for _ in range(50):
        counts = [Counter(draw.integers(0, 400, 4000).tolist()) for _ in range(4)]
        same += lower_bound((counts[0], counts[1]), (counts[0], counts[1]), confidence=0.95).epsilon > 0
        separate += lower_bound((counts[0], counts[1]), (counts[2], counts[3]), confidence=0.95).epsilon > 0
    assert same > 25
    assert separate <= 5


def test_event_counts_hits_of_what_it_holds() -> None:
    event = choose_event(({"a": 90, "b": 10}, {"a": 10, "b": 90}), failure=0.01, runs=100)
    assert event.hits({"a": 3, "b": 4, "never seen": 5}) in (3, 8)


def test_counts_of_rounds_add_up() -> None:
    assert merged([{"a": 1}, {"a": 2, "b": 3}]) == {"a": 3, "b": 3}


# -- fit ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [(0.5, 0.5), (0.9, 0.1), (0.2, 0.3, 0.5), (0.05, 0.05, 0.9), (0.25, 0.25, 0.25, 0.25)])
@pytest.mark.parametrize("runs", [5, 15])
def test_the_test_of_fit_keeps_its_rate_exactly(law: tuple[float, ...], runs: int) -> None:
    """Over all tables of counts: the probability of evidence at least x is at most the tail at x."""
    evidence: list[tuple[float, float]] = []
    for counts in itertools.product(range(runs + 1), repeat=len(law) - 1):
        if sum(counts) <= runs:
            seen = (*counts, runs - sum(counts))
            x = sum(times * math.log(times / (runs * chance)) for times, chance in zip(seen, law, strict=True) if times)
            evidence.append((x, float(stats.multinomial.pmf(seen, runs, law))))
    evidence.sort(reverse=True)
    reached = 0.0
    for x, chance in evidence:
        reached += chance
        assert reached <= entropy_tail(x - 1e-9, len(law) - 1) + 1e-12


def test_draws_from_the_law_fit_and_others_do_not() -> None:
    """Fixed seeds, so no false alarms; the wrong law is that of half the noise."""
    draw = np.random.default_rng(3)
    buckets = Buckets(tuple(range(-6, 8)))
    law, narrow = buckets.law(0, 1.0), buckets.law(0, 0.5)
    drawn = Counter(draw.choice(len(law), 2000, p=list(law.values())).tolist())
    assert fit_failure(drawn, law) > 1e-3
    assert fit_failure(drawn, narrow) < 1e-30


def test_an_impossible_outcome_does_not_fit() -> None:
    assert fit_failure({"a": 990, "b": 10}, {"a": 1.0}) < 1e-30


# -- laws --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.2, 1.0, 2.5, 100.0])
def test_buckets_have_the_law_of_discrete_laplace_noise(scale: float) -> None:
    buckets = Buckets((-3, 0, 1, 5))
    law = buckets.law(2, scale)
    a = math.exp(-1 / scale)
    reach = int(60 * scale) + 10
    wanted = dict.fromkeys(range(5), 0.0)
    for z in range(-reach, reach + 1):
        wanted[buckets.of([2 + z])[0]] += (1 - a) / (1 + a) * a ** abs(z)
    assert law == pytest.approx(wanted, abs=1e-9)
    assert sum(independent(law, law).values()) == pytest.approx(1)


def test_the_law_of_permute_and_flip_is_that_of_its_algorithm() -> None:
    scores = [3.0, 2.0, 2.0, 0.5]
    accept = [math.exp(score - 3) for score in scores]
    wanted = [0.0] * 4
    for order in itertools.permutations(range(4)):
        left = 1 / 24
        for candidate in order:
            wanted[candidate] += left * accept[candidate]
            left *= 1 - accept[candidate]
    assert permute_and_flip_law(scores, 1.0).tolist() == pytest.approx(wanted)
    assert permute_and_flip_law([0.0] * 128, 1.0).tolist() == pytest.approx([1 / 128] * 128)


def test_the_law_of_the_exponential_mechanism_reproduces_the_vote_of_the_slides() -> None:
    """Votes 27, 23, 9 and 0 at epsilon 0.1 with the generic factor: .402 .330 .164 .104."""
    law = exponential_law([27, 23, 9, 0], [1] * 4, 0.05)
    assert law.tolist() == pytest.approx([0.402, 0.330, 0.164, 0.104], abs=1e-3)
    assert by_group(law, ["a", "a", "b", "b"]) == pytest.approx({"a": 0.732, "b": 0.268}, abs=1e-3)
