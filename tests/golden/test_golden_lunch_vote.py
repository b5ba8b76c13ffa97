"""The lunch vote of the slides: 27, 23, 9 and 0 votes; published probabilities, expected losses, and the real door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from support.laws import ALARM, exponential_law, p_value, permute_and_flip_law

import dpmine as dm
from dpmine.noise.laplace import noise_deviation

VOTES = [27, 23, 9, 0]
MEALS = ("pizza", "salad", "hamburger", "pie")
DRAWS = 8000


def exponential(rate: Fraction) -> list[Decimal]:
    return exponential_law(VOTES, [1] * 4, rate)


def permute_and_flip(rate: Fraction) -> list[Decimal]:
    return permute_and_flip_law(VOTES, rate)


@pytest.mark.parametrize(
    ("epsilon", "published"),
    [(Fraction(1, 10), [0.402, 0.330, 0.164, 0.104]), (Fraction(1), [0.881, 0.119, 1.1e-4, 1.2e-6])],
    ids=str,
)
def test_the_published_probabilities(epsilon: Fraction, published: list[float]) -> None:
    """With the generic rate epsilon / 2S. Two digits are given for the small ones."""
    for chance, printed in zip(exponential(epsilon / 2), published, strict=True):
        assert float(chance) == pytest.approx(printed, abs=5e-4 if printed > 0.01 else 0.05 * printed)


@pytest.mark.parametrize(
    ("law", "rate", "published"),
    [
        (exponential, Fraction(1, 2), 0.479),
        (permute_and_flip, Fraction(1, 2), 0.272),
        (exponential, Fraction(1), 0.072),
        (permute_and_flip, Fraction(1), 0.037),
    ],
)
def test_the_published_expected_losses(law: Callable[[Fraction], list[Decimal]], rate: Fraction, published: float) -> None:
    """At epsilon 1: exponential and permute-and-flip, generic and monotone."""
    loss = sum(float(chance) * (max(VOTES) - votes) for chance, votes in zip(law(rate), VOTES, strict=True))
    assert loss == pytest.approx(published, abs=5e-4)


def test_published_deviation_of_the_noise() -> None:
    """Discrete Laplace noise at epsilon 1 has variance 1.841, where continuous noise has 2."""
    assert noise_deviation(Fraction(1)) ** 2 == pytest.approx(1.841, abs=5e-4)


@pytest.fixture(scope="module")
def canteens() -> Iterator[dm.DataSet]:
    """The same vote in many canteens, so that one query over cells is many independent draws."""
    rooms = tuple(f"room{number}" for number in range(DRAWS))
    votes = [meal for meal, count in zip(MEALS, VOTES, strict=True) for _ in range(count)]
    schema = dm.Schema(
        name="canteens",
        attributes=(
            dm.Nominal("room", rooms, rooms[0], missing=rooms[0]),
            dm.Nominal("vote", MEALS, MEALS[-1], missing=MEALS[-1]),
        ),
        rows_at_most=10**6,
    )
    columns = {"room": [room for room in rooms for _ in votes], "vote": votes * DRAWS}
    with dm.open(columns, schema=schema, cap=100) as data:
        yield data


def drawn_through_the_door(canteens: dm.DataSet, epsilon: str, mechanism: str, calibration: str) -> list[int]:
    private = canteens.grant("anna", epsilon=50)
    chosen = private.cells("room").choose("vote", epsilon=epsilon, mechanism=mechanism, calibration=calibration)
    return np.bincount([one.index for one in chosen if one is not None], minlength=4).tolist()


@pytest.mark.parametrize(("calibration", "range_"), [("generic", 2), ("monotone", 1)])
@pytest.mark.parametrize(
    ("mechanism", "law"), [("exponential", exponential), ("permute-and-flip", permute_and_flip)], ids=["em", "pf"]
)
def test_choices_through_the_door_have_these_probabilities(
    canteens: dm.DataSet, mechanism: str, law: Callable[[Fraction], list[Decimal]], calibration: str, range_: int
) -> None:
    drawn = drawn_through_the_door(canteens, "0.1", mechanism, calibration)
    assert sum(drawn) == DRAWS
    assert p_value(drawn, law(Fraction(1, 10) / range_)) > ALARM


def test_the_door_check_catches_the_other_calibration() -> None:
    """Planted mistake: 2S where S was asked, or the other way round. Expected counts instead of draws, so no luck."""
    for right, wrong in ((Fraction(1, 10), Fraction(1, 20)), (Fraction(1, 20), Fraction(1, 10))):
        for law in (exponential, permute_and_flip):
            assert p_value([round(chance * DRAWS) for chance in law(wrong)], law(right)) < ALARM
