"""Intervals: they hold the truth as often as they say, and tell when non-negativity shifts them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpmine as dm
from dpmine.base.errors import RequestError
from dpmine.datasets import patients, patients_schema
from dpmine.engines.encoding import encode
from dpmine.facts.sources import open_source
from dpmine.noise.laplace import noise_deviation, noise_half_width
from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.spread import half_width
from dpmine.questions.histogram import interval_of
from dpmine.results.intervals import Interval

FALSE_ALARM = 1e-6
TABLE = encode(open_source(patients(20_000)), patients_schema())
NOBODY = encode(open_source({name: column[:0] for name, column in patients(1).items()}), patients_schema())


def tail(rate: float, beyond: int) -> float:
    """P(abs(noise) > beyond) for discrete Laplace noise, summed from its definition."""
    ratio = math.exp(-rate)
    return 2 * ratio ** (beyond + 1) / (1 + ratio)


@given(st.fractions(Fraction(1, 1000), 1000), st.floats(0.001, 0.999999))
def test_the_half_width_is_the_smallest_that_keeps_the_confidence(scale: Fraction, confidence: float) -> None:
    half = noise_half_width(scale, confidence)
    rate = float(1 / scale)
    assert tail(rate, half) <= (1 - confidence) * (1 + 1e-6)
    assert half == 0 or tail(rate, half - 1) > (1 - confidence) * (1 - 1e-6)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, math.nan, math.inf])
def test_a_confidence_outside_zero_and_one_is_refused(confidence: float) -> None:
    with pytest.raises(RequestError, match="between 0 and 1"):
        noise_half_width(Fraction(1), confidence)


@given(st.fractions(Fraction(1, 10), 50))
def test_the_deviation_is_that_of_the_law(scale: Fraction) -> None:
    ratio = math.exp(-1 / scale)
    weights = [(1 - ratio) / (1 + ratio) * ratio**t for t in range(1, int(60 * scale) + 60)]
    assert noise_deviation(scale) == pytest.approx(math.sqrt(2 * sum(w * t * t for t, w in enumerate(weights, 1))), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "confidence"), [("0.05", 0.95), ("0.5", 0.95), ("0.5", 0.5), ("1", 0.99), ("2", 0.8)])
def test_an_interval_holds_a_large_truth_exactly_as_often_as_it_should(epsilon: str, confidence: float) -> None:
    """Many counts with true value 5,000 or more: the number of hits is binomial, tested at 1e-6 on both sides."""
    hits = draws = 0
    truth = np.bincount(TABLE.codes["cough"], minlength=2)
    with dm.open(TABLE, schema=patients_schema(), cap=10_000) as data:
        private = data.grant("alice", epsilon=10_000)
        for number in range(400):
            counts = private.histogram("cough", epsilon=str(float(epsilon) + number * 1e-9))
            for label, true_count in zip(("False", "True"), truth.tolist(), strict=True):
                interval = counts.interval(label, confidence)
                hits += interval.low <= true_count <= interval.high
                draws += 1
                assert not interval.note
    chance = 1 - tail(float(epsilon), noise_half_width(1 / Fraction(epsilon), confidence))
    assert chance >= confidence - 1e-6
    assert stats.binomtest(hits, draws, chance).pvalue > FALSE_ALARM


def test_an_interval_holds_a_truth_of_zero_at_least_as_often_as_it_should() -> None:
    with dm.open(NOBODY, schema=patients_schema(), cap=100) as data:
        histogram = data.grant("alice", epsilon=100).histogram("age", "ward", "weight", epsilon="0.3")
    hits = draws = 0
    for labels, _ in histogram.items():
        interval = histogram.interval(labels, 0.9)
        hits += interval.low <= 0 <= interval.high
        draws += 1
    assert draws == 111 * 6 * 3
    assert stats.binom.cdf(hits, draws, 0.9) > FALSE_ALARM


def test_notes_tell_when_non_negativity_shifts_an_interval() -> None:
    law = DiscreteLaplace("10")
    assert half_width(law, 0.95) == 30
    assert interval_of(100, law, 0.95) == Interval(70, 130, 0.95)
    assert interval_of(30, law, 0.95) == Interval(0, 60, 0.95)
    assert interval_of(29, law, 0.95) == Interval(0, 59, 0.95, "cut at 0, since no count is negative")
    assert interval_of(-30, law, 0.95) == Interval(0, 0, 0.95, "cut at 0, since no count is negative")
    assert interval_of(-31, law, 0.95) == Interval(0, 0, 0.95, "the noise pushed this count far below 0")
    assert str(interval_of(100, law, 0.95)) == "70 to 130 (95% confidence)"
    assert str(interval_of(-31, law, 0.95)).endswith("; the noise pushed this count far below 0")


def test_counts_are_not_clamped_so_their_average_is_right() -> None:
    """4,000 noisy zeros: their mean is normal with a known deviation, tested at 1e-6; half of them are not positive."""
    with dm.open(NOBODY, schema=patients_schema(), cap=100) as data:
        histogram = data.grant("alice", epsilon=100).histogram("age", "ward", "weight", "cough", epsilon="0.5")
    counts = histogram.counts.ravel()
    limit = stats.norm.isf(FALSE_ALARM / 2) * noise_deviation(Fraction(2)) / math.sqrt(counts.size)
    assert abs(counts.mean()) < limit
    assert (counts < 0).any()
    assert histogram.nonnegative().mean() > counts.mean()
