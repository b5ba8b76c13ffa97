"""The calendar in whole numbers, held to Python's dates and to numpy's."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmine.facts.calendar import (
    DAY,
    UNITS,
    WEEKDAYS,
    beginning,
    beginnings,
    date_of,
    days_in,
    days_of,
    following,
    unit_label,
    week_of,
)

EPOCH = dt.date(1970, 1, 1).toordinal()
days = st.dates().map(lambda day: day.toordinal() - EPOCH) | st.integers(-4_000_000, 4_000_000)


@given(st.dates())
def test_days_dates_and_weeks_are_those_of_python(day: dt.date) -> None:
    number = day.toordinal() - EPOCH
    assert date_of(number) == (day.year, day.month, day.day)
    assert days_of(day.year, day.month, day.day) == number
    assert week_of(number) == day.isocalendar()[:2]
    assert unit_label("week", beginning("week", number * DAY)) == "{}-W{:02d}".format(
        f"{day.isocalendar()[0]:04d}", day.isocalendar()[1]
    )
    assert WEEKDAYS[(number + 3) % 7] == day.strftime("%A")


@given(st.integers(-100_000_000, 100_000_000))
def test_days_beyond_pythons_years_are_those_of_numpy(number: int) -> None:
    year, month, day = date_of(number)
    assert days_of(year, month, day) == number
    months = int(np.datetime64(number, "D").astype("datetime64[M]").astype(np.int64))
    assert (year - 1970) * 12 + month - 1 == months
    assert 1 <= day <= days_in(year, month)


@given(st.sampled_from(UNITS), st.integers(-(10**11), 10**11))
def test_units_follow_one_another_without_a_gap(unit: str, second: int) -> None:
    start = beginning(unit, second)
    after = following(unit, start)
    assert start <= second < after
    assert beginning(unit, start) == start
    assert beginning(unit, after - 1) == start
    assert beginning(unit, after) == after
    assert list(beginnings(unit, second, after)) == [start, after]


@pytest.mark.parametrize(
    ("day", "label"),
    [
        ("2012-12-31", "2013-W01"),
        ("2013-12-29", "2013-W52"),
        ("2016-01-03", "2015-W53"),
        ("2021-01-03", "2020-W53"),
        ("2024-12-30", "2025-W01"),
    ],
)
def test_weeks_at_the_end_of_a_year_belong_to_the_year_of_their_thursday(day: str, label: str) -> None:
    second = (dt.date.fromisoformat(day).toordinal() - EPOCH) * DAY
    assert unit_label("week", beginning("week", second)) == label


@pytest.mark.parametrize(("year", "length"), [(1900, 28), (2000, 29), (2012, 29), (2013, 28), (2100, 28), (-4, 29), (0, 29)])
def test_leap_years(year: int, length: int) -> None:
    assert days_in(year, 2) == length
    assert days_of(year, 3, 1) - days_of(year, 2, 1) == length
