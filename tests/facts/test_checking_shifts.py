"""What `schema check` tells an owner of a column: what rules change and shift, and whom the unit leaves out."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmine.base.errors import DataError
from dpmine.facts.checking import ColumnReport, check_table
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.kind import Attribute
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema


def checked(attribute: Attribute, values: list[Any]) -> ColumnReport:
    (column,) = check_table({attribute.name: values}, Schema("t", (attribute,), 100)).columns
    return column


def words(attribute: Attribute, values: list[Any]) -> str:
    return checked(attribute, values).words(len(values))


def x(high: int, **options: Any) -> Numeric:
    return Numeric("x", Decimal(0), Decimal(high), Decimal(1), **options)


def test_a_column_that_fits_is_not_shifted() -> None:
    column = checked(x(20), list(range(20)))
    assert column.shift is not None
    assert column.shift.before == column.shift.after
    assert column.words(20) == "fits"


def test_clamping_from_above_is_told_in_one_line() -> None:
    assert words(x(100), [*range(99), 10_000]) == (
        "1 above 100, clamped (1.00%); what the schema changes lowers the mean from 148.51 to 49.51 and the std from 990.52 "
        "to 28.883"
    )


def test_clamping_from_below_raises_the_mean() -> None:
    told = words(x(9), [-5] * 50 + [5] * 50)
    assert told.startswith(
        "50 below 0, clamped (50.00%); what the schema changes moves the mean from 0 to 2.5, the std from 5 to 2.5"
    )
    assert "the median from 0 to 2.5" in told


def test_rounding_that_shifts_is_told_and_a_coarse_grid_shifts_nothing() -> None:
    values = [0.4] * 100
    assert "lowers the mean from 0.4 to 0" in words(x(10), values)
    fine = Numeric("x", Decimal(0), Decimal(10), Decimal(5), resolution=Decimal("0.1"))
    assert words(fine, values) == "fits"


def test_a_constant_for_gaps_shifts_the_mean_and_a_gap_of_its_own_does_not() -> None:
    values = [50, None] * 50
    assert "50 missing or no number, set to 0 (50.00%); what the schema changes" in words(x(100, missing=Decimal(0)), values)
    assert "lowers" not in words(x(100), values)
    assert words(x(100), values) == "50 missing or no number (50.00%)"
    assert words(x(100, missing="drop"), values) == "50 missing or no number (50.00%)"


def test_infinite_numbers_count_once_they_are_clamped() -> None:
    shift = checked(x(10), [5, 5, 5, math.inf]).shift
    assert shift is not None
    assert (shift.before.mean, shift.after.mean) == (5, 6.25)


def test_bounds_far_from_nearly_all_numbers_are_told() -> None:
    told = words(x(4000), list(range(100)) * 10)
    assert told.startswith("fits; 99 % of the numbers lie in 0 to 99: narrower bounds would clamp the rest")
    assert "up to 40 times as exact" in told


@pytest.mark.parametrize("values", [[], [None, None], ["x", "y"], [math.inf], [math.nan]])
def test_a_column_without_numbers_has_nothing_to_shift(values: list[Any]) -> None:
    assert checked(x(10), values).shift is None


def test_categories_have_no_mean() -> None:
    column = checked(Nominal("w", ("a", "b")), ["a", "c", None, "b"])
    assert column.shift is None
    assert column.words(4) == "1 missing (25.00%), 1 not listed, counted as missing (25.00%)"


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(1, 100))
def test_the_shift_is_that_of_numpy(values: list[float], high: int) -> None:
    column = checked(x(high), list(values))
    assert column.shift is not None
    after = np.floor(np.clip(values, 0, high) + 0.5)
    assert column.shift.before.mean == pytest.approx(np.mean(values))
    assert column.shift.after.mean == pytest.approx(np.mean(after))
    assert column.shift.after.std == pytest.approx(np.std(after))
    assert column.shift.after.median == pytest.approx(np.median(after))
    assert all(sentence for sentence in column.shift.sentences())
    json.dumps(column.shift.form())


# -- the unit ----------------------------------------------------------------------------------------------------------

VISITS: dict[str, list[Any]] = {
    "ward": ["north"] * 10,
    "patient": ["a", "a", "a", "a", "b", "b", "c", None, "  ", "d"],
}


def test_the_unit_tells_persons_and_rows_that_are_left_out() -> None:
    schema = Schema("t", (Nominal("ward", ("north",)),), 100, unit=Unit("patient", 2))
    report = check_table(VISITS, schema)
    assert report.form()["unit"] == {
        "column": "patient",
        "persons": 4,
        "rows_without_a_person": 2,
        "rows_beyond_at_most": 2,
    }
    assert report.unread == ()
    assert (
        "Persons by patient: 4; 2 rows name no person (20.00%) and are left out; 2 rows are beyond the 2 that count of each "
        "(20.00%) and are left out." in str(report)
    )
    assert check_table(VISITS, Schema("t", (Nominal("ward", ("north",)),), 100)).form()["unit"] is None


def test_a_unit_that_the_table_lacks_or_holds_as_floats_is_refused() -> None:
    schema = Schema("t", (Nominal("ward", ("north",)),), 100, unit=Unit("nobody", 2))
    with pytest.raises(DataError, match="no column 'nobody', which names the persons"):
        check_table(VISITS, schema)
    with pytest.raises(DataError, match="names persons by floats"):
        check_table(VISITS | {"nobody": [1.5] * 10}, schema)
