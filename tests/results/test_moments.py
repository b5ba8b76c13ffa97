"""Sums, means and variances from one set of noisy moments, whichever powers they were asked with."""

from __future__ import annotations

from decimal import Decimal

import pytest
from support.opening import HUGE, opened

from dpmine.base.errors import RequestError
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.questions.moments import Moments

SCHEMA = Schema("m", (Numeric("x", Decimal(0), Decimal(10), Decimal("0.5"), Decimal(0)),), 1000)
ROWS = {"x": [0.0, 0.5, 4.5, 10.0, 10.0, 9.5]}


@pytest.mark.parametrize(("powers", "centred"), [((1,), False), ((0, 1), True), ((0, 1), False), ((0, 1, 2), True)])
def test_the_sum_is_the_sum_wherever_values_are_counted_from(powers: tuple[int, ...], centred: bool) -> None:
    with opened(ROWS, SCHEMA, HUGE) as private:
        told = private.ask(Moments("x", powers, centred), epsilon=HUGE).total()
    assert told.low == told.value == told.high == sum(ROWS["x"])


@pytest.mark.parametrize("centred", [True, False])
def test_the_interval_of_a_sum_around_the_middle_holds_the_truth(centred: bool) -> None:
    """600 answers of a 95 % interval: fewer than 520 hits have a chance below 1e-12."""
    hits = 0
    with opened(ROWS, SCHEMA, HUGE) as private:
        for number in range(600):
            told = private.ask(Moments("x", (0, 1), centred), epsilon=str(Decimal("0.5") + number * Decimal("1e-9"))).total()
            hits += told.low <= sum(ROWS["x"]) <= told.high
    assert hits >= 520


def test_moments_refuse_what_their_powers_do_not_tell() -> None:
    with opened(ROWS, SCHEMA, 10) as private:
        only_sum = private.ask(Moments("x", (1,), centred=False), epsilon=1)
        with pytest.raises(RequestError, match="power 0 is not among them"):
            only_sum.mean()
        with pytest.raises(RequestError, match="do not tell this"):
            only_sum.variance()
        assert isinstance(private.ask(Moments("x", (0, 1), centred=True), epsilon=1).mean().value, float)
