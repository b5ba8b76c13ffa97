"""Noise and price read the same integer: what an answer is noised for is what the ledger was charged."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels import desk_over
from support.laws import ALARM, laplace_bins, laplace_edges, laplace_law, p_value
from support.noise import Silent
from support.tiny_tables import KINDS, SCHEMA, encoded

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.codes.answers import Answer
from dpmine.codes.queries import ResolvedQuery
from dpmine.kernel.door import Kernel
from dpmine.kernel.ledger.accounts import DATASET
from dpmine.kernel.samplers.laplace import Integers
from dpmine.owner.ledgers import book_at
from dpmine.owner.local_executor import LocalExecutor
from dpmine.tables.private_table import PrivateTable

TABLE = encoded(KINDS * 2)
UNIT = 10**9


class Opened:
    """A fresh kernel over the tiny table, with an analyst who may spend a lot."""

    def __init__(self, kind: type[Kernel] = Kernel) -> None:
        self.noise = Silent()
        self.ledger = book_at(None, dataset="tiny", cap=10**6 * UNIT)
        self.ledger.grant("anna", 10**6 * UNIT)
        desk = desk_over(TABLE, self.ledger, kind, noise=self.noise)
        self.private = PrivateTable(LocalExecutor(desk, "anna", SCHEMA))

    def spent(self) -> set[int]:
        return {self.ledger.account(name).spent for name in ("anna", DATASET)}


def noise_matches_price(kind: type[Kernel], text: str) -> bool:
    """Ask for a count and a histogram: units paid are the text rounded down, and the scale is exactly 1 / units."""
    units = math.floor(Fraction(text) * UNIT)
    opened = Opened(kind)
    counted = opened.private.count(epsilon=text)
    first = opened.spent()
    opened.private.histogram("colour", "size", epsilon=text)
    scale = Fraction(UNIT, units)
    return (
        first == {units}
        and opened.spent() == {2 * units}
        and counted.receipt.cost == counted.receipt.epsilon == Epsilon(units)
        and counted.law.fraction == scale
        and opened.noise.asked == [(scale, 1), (scale, 6)]
    )


TEXTS = [
    "0.1",
    "0.1000000009999",
    "0.1000000000001",
    "1e-9",
    "0.0000000019999",
    "2.9999999999",
    "1",
    "100000",
    "0.333333333333",
]


@pytest.mark.parametrize("text", TEXTS)
def test_noise_and_price_use_the_epsilon_rounded_down(text: str) -> None:
    assert noise_matches_price(Kernel, text)


@settings(deadline=None, max_examples=50)
@given(st.decimals(min_value=Decimal("1e-9"), max_value=1000, places=15))
def test_noise_and_price_agree_for_any_text(amount: Decimal) -> None:
    assert noise_matches_price(Kernel, format(amount, "f"))


class RoundedUp(Kernel):
    """Planted mistake: charged for the units rounded down, noised for the units rounded up."""

    def _compute(self, plan: ResolvedQuery) -> Answer:
        return super()._compute(replace(plan, units=tuple(units + 1 for units in plan.units)))


class ByFloat(Kernel):
    """Planted mistake: the scale goes through a double."""

    def _compute(self, plan: ResolvedQuery) -> Answer:
        noise = self._noise

        class Doubled:
            def discrete_laplace(self, scale: Fraction, size: int) -> Integers:
                return noise.discrete_laplace(Fraction(float(scale)), size)

        self._noise = Doubled()
        return super()._compute(plan)


@pytest.mark.parametrize("mistake", [RoundedUp, ByFloat])
def test_the_price_check_catches(mistake: type[Kernel]) -> None:
    assert not all(noise_matches_price(mistake, text) for text in TEXTS)


def test_cells_are_noised_each_for_its_own_epsilon_and_cost_the_largest() -> None:
    opened = Opened()
    answers = opened.private.cells("size").histogram("colour", "ill", epsilon=["0.1000000009999", 0, "0.2"])
    assert answers[1] is None
    assert opened.noise.asked == [(Fraction(10), 4), (Fraction(5), 4)]
    assert opened.spent() == {2 * 10**8}
    assert [one.law.fraction for one in answers if one is not None] == [Fraction(10), Fraction(5)]
    assert [one.receipt.epsilon.units for one in answers if one is not None] == [10**8, 2 * 10**8]


def test_equal_epsilons_share_a_call_but_every_number_has_noise_of_its_own() -> None:
    opened = Opened()
    opened.private.cells("size").count(epsilon="0.5")
    assert opened.noise.asked == [(Fraction(2), 3)]


def test_choices_use_the_same_integer_as_their_price() -> None:
    rates: list[Fraction] = []

    class Watched(Kernel):
        def _choose(self, mechanism: str, scores: Any, masses: Any, rate: Fraction) -> int:
            rates.append(rate)
            return super()._choose(mechanism, scores, masses, rate)

    opened = Opened(Watched)
    opened.private.choose("size", epsilon="0.1000000009999")
    opened.private.choose(["colour"], score="gini", epsilon="0.1000000009999")
    assert opened.spent() == {2 * 10**8}
    assert rates == [Fraction(1, 10), Fraction(1, 10 * 2**21)]
    assert opened.noise.asked == []


# -- real noise through the real door ----------------------------------------------------------------------------------

EMPTY = dm.Schema(
    name="empty",
    attributes=(
        dm.Numeric("value", Decimal(0), Decimal(4095), Decimal(1), Decimal(0)),
        dm.Nominal("group", ("a", "b", "c", "d", "e", "f", "g", "h"), "a", missing="a"),
    ),
    rows_at_most=10,
)


def answers_of_an_empty_table(epsilon: str, noise: str) -> np.ndarray:
    """32,768 answers whose true value is 0."""
    with dm.open({"value": [], "group": []}, schema=EMPTY, cap=10, noise=noise) as data:
        private = data.grant("anna", epsilon=10)
        histograms = private.cells("group").histogram("value", epsilon=epsilon)
    return np.concatenate([one.counts for one in histograms if one is not None])


def answer_misfit(answers: np.ndarray, scale: Fraction) -> float:
    edges = laplace_edges(scale)
    return p_value(laplace_bins(answers, edges), laplace_law(scale, edges))


@pytest.mark.parametrize("noise", ["exact", "opendp"])
def test_answers_through_the_door_have_exactly_the_stated_noise(noise: str) -> None:
    if noise == "opendp":
        pytest.importorskip("opendp")
    answers = answers_of_an_empty_table("0.4", noise)
    assert answers.size == 32_768
    assert answer_misfit(answers, Fraction(5, 2)) > ALARM


def test_the_door_check_catches_noise_for_a_quarter_more_epsilon() -> None:
    assert answer_misfit(answers_of_an_empty_table("0.5", "exact"), Fraction(5, 2)) < ALARM
