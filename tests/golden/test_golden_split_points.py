"""The slides' split-point example: seven ranges with lengths 2 1 2 2 3 1 1 and Max scores 3 4 5 4 3 4 3, epsilon 1."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from support.laws import ALARM, exponential_law, frequencies, p_value

import dpmine as dm
from dpmine.codes.rows import Recode
from dpmine.codes.splits import ResolvedThresholds
from dpmine.kernel.samplers.choice import exponential, stretches
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.scores import MaxScore

LENGTHS = [2, 1, 2, 2, 3, 1, 1]
SCORES = [3, 4, 5, 4, 3, 4, 3]
WITH_TWICE_THE_SENSITIVITY = [0.111, 0.091, 0.302, 0.183, 0.166, 0.091, 0.055]
AS_PRINTED = [0.063, 0.086, 0.467, 0.172, 0.095, 0.086, 0.032]
RATES = {"generic": Fraction(1, 2), "monotone": Fraction(1)}
PUBLISHED = {"generic": WITH_TWICE_THE_SENSITIVITY, "monotone": AS_PRINTED}

# Six rows on the grid 0 .. 12; between two neighbouring values every threshold separates the classes alike.
VALUES = [2, 3, 5, 7, 10, 11]
CLASSES = ["a", "a", "b", "b", "a", "b"]
GRID_SCORES = [score for score, length in zip(SCORES, LENGTHS, strict=True) for _ in range(length)]
RANGE_OF_POINT = [number for number, length in enumerate(LENGTHS) for _ in range(length)]
DRAWS = 8000


def by_range(law: list[Decimal]) -> list[float]:
    """The law of the twelve grid points, added up within the seven ranges."""
    return np.bincount(RANGE_OF_POINT, weights=[float(chance) for chance in law]).tolist()


@pytest.mark.parametrize("calibration", RATES)
def test_the_published_probabilities_from_lengths_as_masses(calibration: str) -> None:
    law = [float(chance) for chance in exponential_law(SCORES, LENGTHS, RATES[calibration])]
    assert law == pytest.approx(PUBLISHED[calibration], abs=6e-4)


@pytest.mark.parametrize("calibration", RATES)
def test_the_published_probabilities_from_equal_grid_points(calibration: str) -> None:
    law = by_range(exponential_law(GRID_SCORES, [1] * 12, RATES[calibration]))
    assert law == pytest.approx(PUBLISHED[calibration], abs=6e-4)


def test_stretches_find_the_seven_ranges() -> None:
    score, mass, starts = stretches(np.array(GRID_SCORES), np.ones(12, dtype=np.int64))
    assert score.tolist() == SCORES
    assert mass.tolist() == [1] * 7
    assert np.diff([*starts.tolist(), 12]).tolist() == LENGTHS


@pytest.mark.parametrize("calibration", RATES)
def test_draws_by_lengths_as_masses_follow_the_table(calibration: str) -> None:
    source, scores, masses = Entropy(), np.array(SCORES), np.array(LENGTHS)
    drawn = frequencies(lambda: exponential(source, scores, masses, rate=RATES[calibration]), 7, 15_000)
    assert p_value(drawn, exponential_law(SCORES, LENGTHS, RATES[calibration])) > ALARM


def test_six_rows_give_the_slides_scores() -> None:
    counts = np.zeros((1, 2, 13), dtype=np.int64)
    for value, label in zip(VALUES, CLASSES, strict=True):
        counts[0, "ab".index(label), value] += 1
    every = ResolvedThresholds(Recode("grid", (), 13), 0, 13, 1, 12)
    assert MaxScore().split(every.branches(counts)).tolist() == [GRID_SCORES]


@pytest.fixture(scope="module")
def copies() -> Iterator[dm.DataSet]:
    """The six rows again and again, told apart by one more column: each copy is a cell and so a draw of its own."""
    names = tuple(f"copy{number}" for number in range(DRAWS))
    schema = dm.Schema(
        name="copies",
        attributes=(
            dm.Nominal("copy", names, names[0], missing=names[0]),
            dm.Numeric("value", Decimal(0), Decimal(12), Decimal(1), Decimal(0)),
            dm.Nominal("label", ("a", "b"), "a", missing="a"),
        ),
        rows_at_most=10**5,
        class_attribute="label",
    )
    columns = {"copy": [name for name in names for _ in VALUES], "value": VALUES * DRAWS, "label": CLASSES * DRAWS}
    with dm.open(columns, schema=schema, cap=100) as data:
        yield data


@pytest.mark.parametrize("calibration", RATES)
def test_choices_through_the_door_follow_the_table(copies: dm.DataSet, calibration: str) -> None:
    private = copies.grant("anna", epsilon=50)
    chosen = private.cells("copy").choose(["value"], score="max", epsilon=1, calibration=calibration)
    cuts = [int(one.key.cuts[0]) for one in chosen if one is not None]  # type: ignore[union-attr]
    drawn = np.bincount(cuts, minlength=13)
    assert drawn[0] == 0
    assert p_value(drawn[1:], exponential_law(GRID_SCORES, [1] * 12, RATES[calibration])) > ALARM
    ranges = np.bincount([RANGE_OF_POINT[cut - 1] for cut in cuts], minlength=7)
    assert p_value(ranges, exponential_law(SCORES, LENGTHS, RATES[calibration])) > ALARM


def test_the_door_check_catches_ranges_without_their_lengths() -> None:
    """Planted mistake: every range counts once. Expected counts instead of draws, so no luck."""
    for rate in RATES.values():
        wrong = exponential_law(SCORES, [1] * 7, rate)
        assert p_value([round(chance * DRAWS) for chance in wrong], exponential_law(SCORES, LENGTHS, rate)) < ALARM
