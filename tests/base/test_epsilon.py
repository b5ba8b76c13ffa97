"""Amounts of epsilon: read once, rounded down to whole units, refused in one sentence where they make no sense."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import assert_one_sentence

from dpmine.base.epsilon import LARGEST, UNITS, Epsilon, format_units
from dpmine.base.errors import EpsilonError


@pytest.mark.parametrize("amount", [0.1, "0.1", " 0.1 ", "1e-1", Decimal("0.1"), np.float64(0.1), np.float32(0.1), "+0.100"])
def test_one_tenth_is_one_tenth_however_it_is_written(amount: object) -> None:
    assert Epsilon.parse(amount).units == UNITS // 10  # type: ignore[arg-type]
    assert 10 * Epsilon.parse(amount).units == Epsilon.parse(1).units  # type: ignore[arg-type]


@pytest.mark.parametrize("amount", [1, np.int64(1), np.uint8(1), 1.0, Decimal(1), "1", Epsilon(UNITS)])
def test_whole_amounts_are_read_from_every_kind_of_number(amount: object) -> None:
    assert Epsilon.parse(amount) == Epsilon(UNITS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (0, "positive"),
        ("0", "positive"),
        (-1, "positive"),
        ("-0.5\n", "positive"),
        ("1e-10", "positive and at least 1e-9"),
        ("1e-999999999", "positive"),
        (float("nan"), "finite"),
        ("NaN", "finite"),
        ("sNaN", "finite"),
        (float("inf"), "finite"),
        ("-inf", "finite"),
        ("1e9", "at most 1000000"),
        ("1e999999999", "at most"),
        (1_000_001, "at most"),
        (10**100, "at most 64 characters"),
        ("0." + "0" * 100 + "1", "at most 64 characters"),
        ("much", "such as 0.1"),
        ("", "such as 0.1"),
        ("0,1", "such as 0.1"),
        ("1/2", "such as 0.1"),
        (Fraction(1, 3), "such as 0.1"),
        (True, "Got bool"),
        (None, "Got NoneType"),
        ([0.1], "Got list"),
        (b"0.1", "Got bytes"),
        (1j, "Got complex"),
    ],
)
def test_an_amount_that_makes_no_sense_is_refused_in_one_sentence(amount: object, words: str) -> None:
    with pytest.raises(EpsilonError, match=words) as refused:
        Epsilon.parse(amount)  # type: ignore[arg-type]
    assert_one_sentence(refused.value)
    with pytest.raises(EpsilonError, match="cap"):
        Epsilon.parse(amount, name="cap")  # type: ignore[arg-type]


def test_an_integer_that_python_itself_does_not_write_out_is_refused_too() -> None:
    for amount in (10**5000, -(10**5000)):
        with pytest.raises(EpsilonError, match="at most 64 characters"):
            Epsilon.parse(amount)


def test_zero_is_only_read_where_a_cell_may_be_left_out() -> None:
    assert Epsilon.parse_or_zero("0") == Epsilon.parse_or_zero("-0.0") == Epsilon(0)
    with pytest.raises(EpsilonError, match="negative"):
        Epsilon.parse_or_zero("-1e-30")


@given(st.decimals(0, LARGEST, allow_nan=False).filter(lambda number: len(str(number)) <= 64))
def test_an_amount_is_rounded_down_and_never_up(amount: Decimal) -> None:
    assert Epsilon.parse_or_zero(amount).units == Fraction(amount) * UNITS // 1


def test_even_an_amount_with_many_nines_is_rounded_down() -> None:
    assert Epsilon.parse("0.000000001" + "9" * 50).units == 1
    assert Epsilon.parse("999999.9999999999" + "9" * 40).units == LARGEST * UNITS - 1


@given(st.integers(0, LARGEST * UNITS))
def test_units_are_written_as_the_shortest_exact_decimal(units: int) -> None:
    text = str(Epsilon(units))
    assert Epsilon.parse_or_zero(text) == Epsilon(units)
    assert Fraction(text) == Epsilon(units).fraction
    assert "e" not in text.lower()
    assert "." not in text or not text.endswith("0")
    assert format_units(-units) == ("-" + text if units else text)


@given(st.floats(1e-9, LARGEST))
def test_a_float_is_read_by_its_shortest_text(amount: float) -> None:
    assert Epsilon.parse(amount) == Epsilon.parse(str(amount))
    assert float(Epsilon.parse(amount)) <= amount
