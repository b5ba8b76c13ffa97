"""Sums, means, deviations, covariances and quantiles as users read them: intervals hold the truth as often as they say.

Every number comes through the real door with its real noise: one query asks many copies of a table as its cells. False
alarms: 1e-6 each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support.opening import HUGE, opened, silent

import dpmine as dm
from dpmine.base.errors import RequestError
from dpmine.codes.quantile import MOST_POINTS
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.queries import Question
from dpmine.questions.moments import Moments
from dpmine.questions.quantile import Quantile
from dpmine.questions.total import Total
from dpmine.results.estimates import Estimate

FALSE_ALARM = 1e-6
COPIES = 400
FEWER = 120  # of them, where an interval takes longer

EVEN = Numeric("x", Decimal(-20), Decimal(80), Decimal(1), Decimal(0))
FINE = Numeric("x", Decimal(0), Decimal(1000), None, "own", Decimal("0.01"), (Decimal(1), Decimal(10), Decimal(100)))
DROPPED = Numeric("x", Decimal(0), Decimal(10), Decimal(5), "drop", Decimal("0.5"))
BINARY = Numeric("x", Decimal(0), Decimal(1), Decimal(1))
OTHER = Numeric("y", Decimal(0), Decimal(9), Decimal(3), resolution=Decimal(1))
DRAW = np.random.default_rng(5)

Column = tuple[Numeric, list[Any]]
COLUMNS: dict[str, Column] = {
    "many rows": (EVEN, DRAW.integers(-40, 100, 300).tolist()),
    "skewed, with gaps": (FINE, [*np.round(DRAW.exponential(3, 200), 2).tolist(), *[None] * 50]),
    "few rows, most of them gaps": (DROPPED, [None, 4.3, None, 9.9, None, None]),
    "one row": (FINE, [740.25]),
    "yes or no": (BINARY, [*[1] * 7, *[0] * 120, None]),
    "hardly ever yes": (BINARY, [1, *[0] * 30]),
    "nobody": (EVEN, []),
    "only gaps": (FINE, [None] * 3),
}


def rounded_down_from_half(value: float, numeric: Numeric) -> Fraction:
    """A value as it counts: clamped, and the nearest of the resolution's, halves up."""
    numbers = numeric.numbers
    steps = (min(max(Fraction(str(value)), numbers.low), numbers.high) - numbers.low) / numbers.step
    return numbers.low + numbers.step * math.floor(steps + Fraction(1, 2))


def known(numeric: Numeric, values: Sequence[Any]) -> np.ndarray:
    return np.array([float(rounded_down_from_half(value, numeric)) for value in values if value is not None])


@cache
def answers(name: str, question: Question, epsilon: str) -> list[Any]:
    """One answer for each of many copies of a table."""
    numeric, values = COLUMNS[name]
    labels = tuple(str(number) for number in range(COPIES))
    schema = Schema("m", (Nominal("copy", labels, missing=labels[0]), numeric, OTHER), 10**6)
    rows = {
        "copy": np.repeat(labels, len(values)).tolist(),
        "x": values * COPIES,
        "y": [place % 10 if place % 7 else None for place in range(len(values))] * COPIES,
    }
    with opened(rows, schema, 100) as private:
        told: list[Any] = private.cells("copy").ask(question, epsilon=epsilon)
    return told


def held(estimates: Sequence[Estimate], truth: float, confidence: float = 0.95) -> bool:
    """Whether so many intervals hold the truth that they may do so as often as they say."""
    off = 1e-9 * (1 + abs(truth))
    hits = sum(one.low - off <= truth <= one.high + off for one in estimates)
    assert all(one.low <= one.high and one.confidence == confidence for one in estimates)
    return bool(stats.binom.cdf(hits, len(estimates), confidence) > FALSE_ALARM)


EPSILONS = ["0.1", "1", "20"]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", COLUMNS)
def test_the_interval_of_a_sum_holds_it(name: str, epsilon: str) -> None:
    told = [one.total() for one in answers(name, Total("x"), epsilon)]
    truth = known(*COLUMNS[name])
    assert held(told, float(truth.sum()))
    assert not held([one.__class__(**{**one.__dict__, "low": one.value, "high": one.value + 1e-12}) for one in told], 1e12)
    if COLUMNS[name][0].gap is None:
        assert {one.rows for one in told} == {None}
    else:
        counted = np.array([one.rows for one in told])
        assert abs(counted.mean() - len(truth)) <= 6 * math.sqrt(2 / COPIES) * 20 / float(epsilon) + 1


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", COLUMNS)
def test_the_interval_of_a_mean_holds_it(name: str, epsilon: str) -> None:
    """Of nobody, where there is no mean, every value is held as often."""
    numeric, truth = COLUMNS[name][0], known(*COLUMNS[name])
    sums = answers(name, Moments(("x",)), epsilon)
    low, high = float(numeric.numbers.low), float(numeric.numbers.high)
    told = [one.mean() for one in sums]
    assert held(told, float(truth.mean()) if len(truth) else low + (high - low) / 3)
    assert held([one.mean(0.5) for one in sums], float(truth.mean()) if len(truth) else low + (high - low) / 3, 0.5)
    assert all(low <= one.low <= one.value <= one.high <= high for one in told)
    counted = np.array([one.rows for one in told])
    assert abs(counted.mean() - len(truth)) <= 6 * math.sqrt(4 / COPIES) / float(epsilon) + 1


@pytest.mark.parametrize("epsilon", EPSILONS[1:])
@pytest.mark.parametrize("name", COLUMNS)
def test_the_intervals_of_a_variance_and_of_a_deviation_hold_them(name: str, epsilon: str) -> None:
    """Values finer than 2^15 steps are rounded to these, which the intervals take into account."""
    numeric, truth = COLUMNS[name][0], known(*COLUMNS[name])
    sums = answers(name, Moments(("x", "x")), epsilon)[:FEWER]
    width = float(numeric.numbers.high - numeric.numbers.low)
    told = [one.variance() for one in sums]
    assert held(told, float(truth.var()) if len(truth) else width**2 / 8)
    for one, variance in zip(sums[:5], told[:5], strict=True):
        std = one.std()
        roots = [math.sqrt(part) for part in (variance.value, variance.low, variance.high)]
        assert [std.value, std.low, std.high] == pytest.approx(roots)
    assert all(0 <= one.low <= one.value <= one.high <= (width / 2) ** 2 + 1e-9 for one in told)


@pytest.mark.parametrize("name", COLUMNS)
def test_the_interval_of_a_covariance_holds_it(name: str) -> None:
    numeric, values = COLUMNS[name]
    pairs = [(value, place % 10) for place, value in enumerate(values) if value is not None and place % 7]
    found = answers(name, Moments(("x", "y")), "1")
    truth = 0.0
    if pairs:
        x = np.array([float(rounded_down_from_half(value, numeric)) for value, _ in pairs])
        y = np.array([other for _, other in pairs], dtype=float)
        truth = float((x * y).mean() - x.mean() * y.mean())
    told = [one.covariance() for one in found[:FEWER]]
    assert held(told, truth)
    assert all(one.low <= one.value <= one.high for one in told)


@pytest.mark.parametrize("order", [(1, 2), (9, 10), (1, 200)])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_quantile_is_within_so_many_rows_of_being_one(name: str, order: tuple[int, int]) -> None:
    truth, share = known(*COLUMNS[name]), order[0] / order[1]
    told = answers(name, Quantile("x", *order), "1")
    away = [max(0, (truth < one.value - 1e-9).sum() - share * len(truth)) for one in told]
    over = [max(0, (truth > one.value + 1e-9).sum() - (1 - share) * len(truth)) for one in told]
    hits = sum(max(below, above) <= one.rows_away + 1e-9 for below, above, one in zip(away, over, told, strict=True))
    assert stats.binom.cdf(hits, COPIES, 0.95) > FALSE_ALARM
    gaps = COLUMNS[name][0].gap is not None
    assert all((one.rows is not None) == gaps and one.rounded is None for one in told)
    assert ("of about" in str(told[0])) == gaps


def test_a_test_of_intervals_that_are_half_as_wide_would_fail() -> None:
    """The planted mistake: `held` tells them apart."""
    truth = float(known(*COLUMNS["many rows"]).sum())
    told = [one.total() for one in answers("many rows", Total("x"), "1")]
    halved = [
        Estimate("sum", one.value, (one.low + one.value) / 2, (one.high + one.value) / 2, 0.95, "", one.receipt)
        for one in told
    ]
    assert not held(halved, truth)


# -- without noise -----------------------------------------------------------------------------------------------------

SCHEMA = Schema("m", (FINE, OTHER, Nominal("c", ("a", "b"), missing="a")), 1000)
ROWS = {"x": [0.004, 0.005, 12.5, 1e9, None, -3], "y": [1, None, 3, 4, 5, 6], "c": ["a", "b", "a", "b", "a", "b"]}
X = np.array([0, 0.01, 12.5, 1000, 0])
ALIKE: dict[str, tuple[Callable[[dm.PrivateTable], Any], float]] = {
    "sum": (lambda table: table.sum("x", epsilon=1), X.sum()),
    "mean": (lambda table: table.mean("x", epsilon=1), X.mean()),
    "variance": (lambda table: table.variance("x", epsilon=1), X.var()),
    "std": (lambda table: table.std("x", epsilon=1), X.std()),
    "covariance": (
        lambda table: table.covariance("x", "y", epsilon=1),
        float(np.cov([0, 12.5, 1000, 0], [1, 3, 4, 6], bias=True)[0, 1]),
    ),
}


@pytest.mark.parametrize("what", ALIKE)
def test_without_noise_each_is_that_of_the_clamped_values_of_rows_that_have_one(what: str) -> None:
    ask, truth = ALIKE[what]
    with silent(ROWS, SCHEMA, 10) as (private, _, _):
        told = ask(private)
    assert told.value == pytest.approx(truth, rel=2e-4)  # squares and products are of 2^15 steps
    assert told.low <= truth <= told.high
    assert told.rows == (4 if what == "covariance" else 5)
    both = what == "covariance"
    bounds = "values outside 0 to 1000 (x) and 0 to 9 (y)" if both else "values outside 0 to 1000"
    gaps = "rows without a value do not count" + (" (in any of x, y);" if both else ";")
    assert told.note.startswith(f"{bounds} count as these bounds; {gaps}")
    assert ("rounded to 1/32768 of the range" in told.note) == (what in ("variance", "std", "covariance"))


def test_a_deviation_after_a_variance_is_free() -> None:
    with opened(ROWS, SCHEMA, 1) as private:
        variance = private.variance("x", epsilon=1)
        assert private.std("x", epsilon=1).value == pytest.approx(math.sqrt(variance.value))
        assert private.remaining().units == 0


def test_more_values_than_points_are_rounded_and_it_is_said() -> None:
    numeric = Numeric("x", Decimal(0), Decimal(10**7), Decimal(10**5), resolution=Decimal("0.01"))
    assert numeric.values > MOST_POINTS
    schema = Schema("wide", (numeric,), 1000)
    with opened({"x": [1234.56] * 9 + [None]}, schema, HUGE) as private:
        told = private.median("x", epsilon=HUGE)
    assert told.rounded == pytest.approx(10**7 / (MOST_POINTS - 2))
    assert abs(told.value - 1234.56) <= told.rounded / 2 + 1e-6
    assert told.rows == 9
    assert "among values rounded to 9.53676 (within" in str(told)


def test_moments_refuse_what_they_do_not_tell() -> None:
    with opened(ROWS, SCHEMA, 10) as private:
        mean, variance = (private.ask(Moments(names), epsilon=1) for names in (("x",), ("x", "x")))
        for ask in (mean.variance, mean.covariance, variance.mean, variance.covariance):
            with pytest.raises(RequestError, match="do not tell the"):
                ask()
        assert isinstance(mean.mean().value, float)


def test_too_few_rows_are_said() -> None:
    with silent({"x": [], "y": [], "c": []}, SCHEMA, 10) as (private, _, _):
        told = private.mean("x", epsilon=1)
    assert (told.value, told.low, told.high) == (500, 0, 1000)
    assert told.note.endswith("too few rows to tell")
    assert told.rows == 0


# -- previews ----------------------------------------------------------------------------------------------------------


def test_previews_say_how_far_answers_lie_off() -> None:
    """A standard deviation and a reach that 400 answers have, to within chance."""
    sums = [one.total().value for one in answers("many rows", Total("x"), "1")]
    with opened({"x": [1], "y": [1], "copy": ["0"]}, Schema("m", (EVEN, OTHER), 10**6), 10) as private:
        said = private.preview.sum("x", epsilon=1).expected_error
        mean = private.preview.mean("x", epsilon=1).expected_error
    deviation, reach = 80 * math.sqrt(2), 80 * math.log(20)
    assert np.std(sums) == pytest.approx(deviation, rel=0.35)
    assert f"off by {deviation:.3g} (standard deviation), within {round(reach)}" in said
    truth = float(known(*COLUMNS["many rows"]).mean())
    off = [(one.mean().value - truth) / 100 for one in answers("many rows", Moments(("x",)), "1")]
    assert np.std(off) <= 1.2 * math.sqrt(2) / len(COLUMNS["many rows"][1])
    assert "off by at most about 141 / n (standard deviation): 1.41 rows of the range, 100." in mean


@pytest.mark.parametrize("what", ["sum", "quantile"])
def test_previews_say_where_a_twentieth_counts_rows(what: str) -> None:
    with opened(ROWS, SCHEMA, 1) as private:
        previews = private.preview
        ask = previews.sum if what == "sum" else lambda column, epsilon: previews.quantile(column, "0.5", epsilon=epsilon)
        assert "A twentieth of epsilon tells how many rows have a value" in ask("x", epsilon=1).expected_error
    with opened({"x": [1]}, Schema("m", (EVEN,), 10), 1) as private:
        previews = private.preview
        ask = previews.sum if what == "sum" else lambda column, epsilon: previews.quantile(column, "0.5", epsilon=epsilon)
        assert "twentieth" not in ask("x", epsilon=1).expected_error
