"""Dates, datetimes and times: their schema, their values and cells, their texts, and what is asked of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.opening import HUGE, fitted, opened

import dpmine as dm
from dpmine.base.errors import ExpressionError, RequestError, SchemaError
from dpmine.codes.rows import Cyclic, Recode, RecodeValues
from dpmine.engines.encoding import encode
from dpmine.facts.checking import check_table
from dpmine.facts.kinds.dates import Date, Dated, DateTime, Time
from dpmine.facts.kinds.kind import MISSING
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.registry import values_of
from dpmine.facts.moments import MomentRule
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.keys import ByCalendar
from dpmine.language.resolving_keys import resolve_key
from dpmine.mining.loading import load

EXACT = 1_000
"""Of a question: HUGE is that of all of them."""
TOML = """
name = "stays"
rows_at_most = 100

[attributes.admitted]
kind = "date"
low = 2012-01-01
high = "2013-12-31"
grid = "month"

[attributes.seen]
kind = "datetime"
low = 2013-01-01T00:00:00
high = 2013-12-31
resolution = "1min"
zone = "+01:00"

[attributes.woken]
kind = "time"
low = 05:00:00
high = "10:59:59"
missing = "drop"

[attributes.stay]
kind = "numeric"
days_between = ["admitted", "discharged"]
low = 0
high = 30
"""
TABLE: dict[str, list[Any]] = {
    "admitted": ["2012-02-29", "2013-02-29", "2013-01-01", dt.date(2013, 12, 31), None, "1999-01-01"],
    "seen": ["2013-01-01T00:30Z", "2013-01-01 00:30", "2012-12-31 23:59:59+00:00", "2013-06-01 12:30:59.9", "noon", None],
    "woken": ["06:30", "23:00", dt.time(7, 15, 1), "2013-01-01 08:00", "", "6:30"],
    "discharged": ["2012-03-01", "2013-03-01", "2013-01-01 12:00", dt.datetime(2014, 1, 3), "2013-01-01", "1999-12-31"],
}


@pytest.fixture
def schema() -> Schema:
    return Schema.from_toml(TOML)


@pytest.fixture
def private(schema: Schema) -> Iterator[dm.PrivateTable]:
    with opened(TABLE, schema, HUGE) as table:
        yield table


def attribute(schema: Schema, name: str) -> Dated:
    return schema.dated(name, "")


# -- schema files ------------------------------------------------------------------------------------------------------


def test_the_kinds_are_read_from_toml_and_written_back(schema: Schema) -> None:
    assert schema.attribute("admitted") == Date("admitted", "2012-01-01", "2013-12-31", "month")
    assert attribute(schema, "seen").high == "2013-12-31 23:59"  # a day takes in all of its moments
    assert attribute(schema, "seen").grid == "day"  # 8,760 hours are too many
    assert attribute(schema, "woken").starts == tuple(3600 * hour for hour in range(6))
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Schema.from_toml(schema.to_toml()).fingerprint == schema.fingerprint


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("low = 2012-01-01", "low = 2012-01-02"),
        ('grid = "month"', 'grid = "week"'),
        ('grid = "month"', 'grid = "month"\nformat = "%Y"'),
        ('resolution = "1min"', 'resolution = "5min"'),
        ('zone = "+01:00"', 'zone = "+02:00"'),
        ('days_between = ["admitted", "discharged"]', 'days_between = ["discharged", "admitted"]'),
        ("low = 0\n", 'low = 0\nzone = "+01:00"\n'),
    ],
)
def test_all_that_decides_a_value_is_part_of_the_fingerprint(schema: Schema, line: str, instead: str) -> None:
    other = Schema.from_toml(TOML.replace(line, instead, 1))
    assert other != schema
    assert other.fingerprint != schema.fingerprint
    assert Schema.from_toml(other.to_toml()) == other


MISTAKES = [
    ({"low": "2013-02-29"}, "'low' must be a date such as 2013-01-31"),
    ({"low": "2013-01-01 12:00"}, "'low' must be a date"),
    ({"low": "0000-01-01"}, "years 1 to 9999"),
    ({"high": "10000-01-01"}, "years 1 to 9999"),
    ({"high": "2013-01-01"}, "needs low < high"),
    ({"high": "2012-12-31"}, "needs low < high"),
    ({"grid": "hour"}, "'grid' must be one of day, week, month, year"),
    ({"grid": "day", "high": "2089-12-31"}, "more than 4096 cells. Set closer bounds, or a grid of weeks"),
    ({"high": "9999-12-31"}, "a grid of years has more than 4096 cells. Set closer bounds."),
    ({"missing": "2012-01-01"}, "'missing' must lie within its bounds"),
    ({"missing": "never"}, "'missing' must be a date"),
    ({"zone": "Europe/Berlin"}, "Named zones change their offset"),
    ({"zone": "+25:00"}, "must be a fixed offset"),
    ({"resolution": "1s"}, "the resolution of a date is a day"),
    ({"format": "%d.%m"}, "has no year"),
    ({"format": "%d.%m.%Q"}, "unknown part %Q"),
    ({"format": "%Y %y"}, "says one thing twice"),
    ({"format": "%Y %I"}, "needs both %I and %p"),
    ({"format": "%Y%"}, "ends in the middle"),
    ({"format": "%Y" + "x" * 60}, "at most 60 letters"),
]


@pytest.mark.parametrize(("fields", "words"), MISTAKES)
def test_a_mistake_in_a_date_gets_one_sentence(fields: dict[str, str], words: str) -> None:
    with pytest.raises(SchemaError) as refused:
        Date("x", **{"low": "2013-01-01", "high": "2013-12-31", **fields})
    assert words in str(refused.value)


def test_mistakes_in_datetimes_times_and_differences() -> None:
    with pytest.raises(SchemaError, match="part of an hour, or whole hours that make a day"):
        DateTime("x", "2013-01-01", "2013-12-31", resolution="7min")
    with pytest.raises(SchemaError, match="at a whole multiple of the resolution"):
        DateTime("x", "2013-01-01 00:30", "2013-12-31", resolution="1h")
    with pytest.raises(SchemaError, match=r"more than 2\^30 values"):
        DateTime("x", "1900-01-01", "2013-12-31", resolution="1s")
    with pytest.raises(SchemaError, match="'low' must be a time such as"):
        Time("x", "2013-01-01", "12:00")
    with pytest.raises(SchemaError, match="has no hour"):
        Time("x", format="%M")
    for line, instead, words in [
        ("low = 2012-01-01\n", "", "'low' is missing"),
        ("low = 2012-01-01\n", "low = 2012\n", "must be a date or time, in quotes or not"),
        ('["admitted", "discharged"]', '["admitted"]', "'days_between' names two columns"),
        ('days_between = ["admitted", "discharged"]', 'zone = "+01:00"', "say how the columns of 'days_between' are read"),
        (
            "rows_at_most = 100",
            'rows_at_most = 100\ndrop = ["discharged"]',
            "is made of the column 'discharged', which is dropped",
        ),
    ]:
        with pytest.raises(SchemaError, match=words):
            Schema.from_toml(TOML.replace(line, instead))


def test_bounds_may_be_pythons_dates() -> None:
    days: Any = dt.date(2013, 1, 1), dt.date(2013, 2, 1)
    assert Date("x", *days) == Date("x", "2013-01-01", "2013-02-01")
    midnight: Any = dt.datetime(2013, 2, 1)
    assert DateTime("x", days[0], midnight).high == "2013-02-01 00:00"  # said as a moment, and not as a day


def test_by_default_a_second_is_the_resolution_where_it_fits() -> None:
    assert DateTime("x", "2013-01-01", "2013-12-31").resolution == "1s"
    assert DateTime("x", "1900-01-01", "2013-12-31").resolution == "1min"
    assert DateTime("x", "0001-01-01", "4000-12-31").resolution == "1h"
    assert DateTime("x", "2013-01-01", "2013-12-31", resolution="60s").resolution == "1min"
    assert Time("x").values == 86_400


# -- values and cells --------------------------------------------------------------------------------------------------


def test_rows_have_the_values_that_public_rules_give_them(schema: Schema) -> None:
    table = encode(open_source(TABLE), schema)
    day = dt.date(2012, 1, 1).toordinal()
    gap = attribute(schema, "admitted").values
    assert gap == 731
    assert table.values["admitted"].tolist() == [59, gap, dt.date(2013, 1, 1).toordinal() - day, 730, gap, 0]
    assert table.codes["admitted"].tolist() == [1, 24, 12, 23, 24, 0]
    # 00:30 in UTC is 01:30 at +01:00; a moment before low is clamped; seconds are cut off.
    june = (dt.datetime(2013, 6, 1, 12, 30) - dt.datetime(2013, 1, 1)) // dt.timedelta(minutes=1)
    assert table.values["seen"].tolist() == [90, 30, 59, june, 525_600, 525_600]
    seconds = [5400, 21_599, 8101, 10_800, 21_600, 21_600]
    assert table.values["woken"].tolist() == seconds  # clamped to the bounds; "6:30" is not ISO 8601
    assert table.values["stay"].tolist() == [1, 31, 1, 3, 31, 30]  # half a day is rounded up; a year is clamped to 30 days


def test_differences_are_of_moments_as_they_stand_before_any_bound(schema: Schema) -> None:
    """A day long before the bounds of 'admitted' is not what 'stay' counts from."""
    stay = Numeric("stay", Decimal(-1000), Decimal(1000), Decimal(1), resolution=Decimal("0.25"), days_between=("a", "b"))
    table = {"a": ["1800-01-01", "2013-01-02 06:00"], "b": ["1800-01-31 12:00", "2013-01-01 00:00"]}
    values = encode(open_source(table), Schema("s", (Date("a", "2012-01-01", "2013-12-31"), stay), 10)).values["stay"]
    assert [stay.value_point(value) for value in values.tolist()] == [Decimal("30.5"), Decimal("-1.25")]


def test_a_difference_needs_its_columns_and_none_of_its_own(schema: Schema) -> None:
    assert "stay" not in TABLE
    without = {name: values for name, values in TABLE.items() if name != "discharged"}
    with pytest.raises(dm.DataError, match="no column 'discharged'"), opened(without, schema):
        pass


DATES = [
    Date("x", "2012-02-28", "2013-03-02", "month"),
    Date("x", "2012-12-29", "2013-01-09", "week", "drop"),
    Date("x", "1896-01-01", "2104-12-31", "year", missing="2000-02-29"),
    DateTime("x", "2012-12-31 22:00", "2013-01-01 03:59:59", "hour", resolution="15min"),
    DateTime("x", "0001-01-01", "3999-12-31", "year"),
    DateTime("x", "2013-01-01", "2013-01-01", "minute", missing="drop"),
    Time("x", "05:30", "21:15", "hour"),
    Time("x", "12:00", "12:59", "minute", "12:30", resolution="1min"),
]


@pytest.mark.parametrize("each", DATES, ids=lambda each: f"{each.kind} by {each.grid}")
def test_cells_begin_at_edges_of_the_calendar_and_hold_all_values(each: Dated) -> None:
    starts = list(each.starts)
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert len(starts) == each.cells == each.size - (each.gap is not None)
    table = encode(open_source({"x": values_of(each).tolist()}), Schema("t", (each,), 10_000))
    assert table.codes["x"].tolist() == list(range(each.size))
    for code in range(each.cells):
        assert each.codes_of(each.label(code)) == (code, code + 1)
        assert each.written(each.parsed(each.label(code))) == each.label(code)
    assert Schema.from_toml(Schema("t", (each,), 10).to_toml()).attributes == (each,)


@given(st.integers(0, 730), st.integers(0, 2))
def test_every_day_is_found_again_by_its_text(day: int, halves: int) -> None:
    each = DATES[0] if day < DATES[0].values else Date("x", "2012-01-01", "2013-12-31", "week")
    point = each.value_point(day)
    assert each.parsed(each.written(point)) == point
    assert each.first_value_at_least(point - halves * 43_200) == max(day - halves // 2, 0)
    assert each.values_of(point) == (day, day + 1)


@given(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)), st.integers(-23 * 60, 23 * 60))
def test_every_moment_of_python_is_read_as_it_is_with_and_without_a_zone(moment: dt.datetime, minutes: int) -> None:
    rule = MomentRule()
    since = moment - dt.datetime(1970, 1, 1)
    found = since.days * 86_400 + since.seconds, since.microseconds * 1000
    zoned = moment.replace(tzinfo=dt.timezone(dt.timedelta(minutes=minutes)))
    assert rule.moment(moment.isoformat()) == rule.moment_of_value(moment) == found
    assert rule.moment(str(zoned)) == rule.moment_of_value(zoned) == (found[0] - 60 * minutes, found[1])
    assert MomentRule(zone=minutes).moment_of_value(zoned) == found
    for form in ("%d.%m.%Y %H:%M:%S.%f", "%Y%m%d%H%M%S%f", "%I:%M:%S.%f %p, %B %d, %Y"):
        written = moment.strftime(form.replace("%Y", f"{moment.year:04d}"))  # some systems write fewer digits
        assert MomentRule(form).moment(written) == found
    if 1969 <= moment.year <= 2068:
        assert MomentRule("%y-%b-%d %H.%M.%S,%f").moment(moment.strftime("%y-%b-%d %H.%M.%S,%f")) == found


@given(st.text() | st.from_regex(r"[0-9+:TZ. -]{0,30}"))
def test_reading_is_total(text: str) -> None:
    for rule in (MomentRule(), MomentRule(clock=True), MomentRule("%d.%m.%Y"), MomentRule("%y%m%d %I%p")):
        found = rule.moment(text)
        assert found is None or (isinstance(found[0], int) and 0 <= found[1] < 10**9)


def test_what_is_stored_as_a_date_is_never_read_by_a_format() -> None:
    """2013-05-01 would be the fifth of January where days come second."""
    each = Date("x", "2013-01-01", "2013-12-31", format="%Y-%d-%m")
    tables = [
        {"x": ["2013-01-05", dt.date(2013, 5, 1), np.datetime64("2013-05-01"), pd.Timestamp("2013-05-01")]},
        pd.DataFrame({"x": pd.to_datetime(["2013-05-01"] * 4)}),
        {"x": pd.Series(pd.to_datetime(["2013-05-01"] * 4))},
    ]
    for table in tables:
        assert encode(open_source(table), Schema("t", (each,), 10)).values["x"].tolist() == [120] * 4


def test_the_owner_is_told_what_the_bounds_change(schema: Schema) -> None:
    changes = {column.attribute: column.changes for column in check_table(TABLE, schema).columns}
    assert changes["admitted"] == {"missing or no date": 2, "before 2012-01-01, clamped": 1, "after 2013-12-31, clamped": 0}
    assert changes["woken"] == {"missing or no time": 2, "before 05:00, clamped": 0, "after 10:59:59, clamped": 1}
    assert changes["stay"]["missing or no number"] == 2
    constant = Schema("t", (Date("admitted", "2012-01-01", "2013-12-31", missing="2013-01-01"),), 10)
    assert check_table(TABLE, constant).columns[0].changes["missing or no date, set to 2013-01-01"] == 2


# -- what is asked -----------------------------------------------------------------------------------------------------


def test_dates_are_counted_compared_and_told_missing(private: dm.PrivateTable) -> None:
    def count(asked: Any) -> int:
        return int(private.where(asked).count(epsilon=EXACT))

    assert count(dm.col("admitted") >= "2013-01-01") == count(dm.col("admitted") >= dt.date(2013, 1, 1)) == 2
    assert count("admitted >= 2013-01-01") == count("not (admitted < 2013-01-01)") == 2
    assert (
        count(dm.col("admitted") == np.datetime64("2012-02-29"))
        == count(dm.col("admitted") == pd.Timestamp("2012-02-29"))
        == 1
    )
    assert count("admitted is missing") == 2
    assert count(dm.col("seen").between(dt.datetime(2013, 1, 1, 0, 30), "2013-01-01T01:00")) == 2
    assert count('seen >= "2013-01-01 00:00Z"') == 2  # which is 01:00 where the schema is
    assert count('woken < "07:15:01.5"') == count(dm.col("woken") <= dt.time(7, 15, 1)) == 2
    assert count(dm.col("admitted").isin(["2012-02-29", dt.date(2013, 12, 31)])) == 2
    counted = private.histogram("admitted", epsilon=EXACT).to_dict()
    assert {label: number for label, number in counted.items() if number} == {
        "2012-01-01": 1,
        "2012-02-01": 1,
        "2013-01-01": 1,
        "2013-12-01": 1,
        MISSING: 2,
    }
    assert sum(private.histogram("woken", epsilon=EXACT).to_dict().values()) == 4  # gaps are dropped


def test_dates_are_cut_into_bins(private: dm.PrivateTable) -> None:
    bins = private.histogram(dm.col("admitted").bins("2012-06-15", dt.date(2013, 1, 1)), epsilon=EXACT).to_dict()
    assert bins == {"<2012-06-15": 2, "2012-06-15 to <2013-01-01": 0, ">=2013-01-01": 2, MISSING: 2}
    woken = private.histogram(dm.parse_key('woken:"07:00":"08:00"'), epsilon=EXACT).to_dict()
    assert woken == {"<07:00": 1, "07:00 to <08:00": 1, ">=08:00": 2}


def test_quantiles_of_dates_are_dates_and_sums_are_refused(private: dm.PrivateTable) -> None:
    median = private.where("admitted >= 2012-02-01").median("admitted", epsilon=EXACT)
    assert median.value == dt.date(2013, 1, 1)
    assert "about 2013-01-01 (within" in str(median)
    with pytest.raises(TypeError, match="2013-01-01 is no number"):
        float(median)
    assert private.where("seen >= 2013-02-01").median("seen", epsilon=EXACT).value == dt.datetime(2013, 6, 1, 12, 30)
    assert private.where('woken < "07:00"').median("woken", epsilon=EXACT).value == dt.time(6, 30)
    assert private.where("admitted is not missing").max("stay", epsilon=EXACT).value == 30.0
    for ask in (private.sum, private.mean, private.std):
        with pytest.raises(RequestError, match=r"'admitted' is a date, so its values have no sum\. It has a median"):
            ask("admitted", epsilon=1)
    with pytest.raises(RequestError, match="'seen' is a datetime"):
        private.covariance("seen", "stay", epsilon=1)
    with pytest.raises(RequestError, match="'seen' is a datetime"):
        private.median("seen", epsilon=1, design="auto")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ('admitted >= "2013-01-01 12:00"', "A value of 'admitted' must be a date such as 2013-01-31"),
        ("admitted >= 2013-02-29", "must be a date"),
        ("admitted == 3", "must be a date"),
        ("seen == noon", "must be a datetime such as"),
        ('woken == "2013-01-01 12:00"', "must be a time such as"),
        (
            "admitted > 2013-12-31",
            "admitted > 2013-12-31 is true for no row: values of 'admitted' are clamped to 2012-01-01",
        ),
        ('seen == "2013-06-01 12:30:30"', "write a comparison that such values can meet, for example seen == "),
    ],
)
def test_what_no_date_can_meet_is_refused_in_a_sentence(private: dm.PrivateTable, asked: str, words: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        private.where(asked).count(epsilon=1)
    assert words in str(refused.value)


def test_a_gap_is_no_constant() -> None:
    with pytest.raises(ExpressionError, match="is_missing"):
        assert dm.col("admitted") >= pd.NaT


# -- by the calendar ---------------------------------------------------------------------------------------------------


def test_dates_are_counted_by_units_of_the_calendar(private: dm.PrivateTable) -> None:
    def by(name: str, unit: str) -> dict[Any, int]:
        counted = private.histogram(dm.col(name).by(unit), epsilon=EXACT).to_dict()
        return {label: number for label, number in counted.items() if number}

    assert by("admitted", "year") == {"2012": 2, "2013": 2, MISSING: 2}
    assert by("admitted", "month") == {"2012-01": 1, "2012-02": 1, "2013-01": 1, "2013-12": 1, MISSING: 2}
    assert by("admitted", "week") == {"2011-W52": 1, "2012-W09": 1, "2013-W01": 1, "2014-W01": 1, MISSING: 2}
    assert by("admitted", "day") == {"2012-01-01": 1, "2012-02-29": 1, "2013-01-01": 1, "2013-12-31": 1, MISSING: 2}
    assert by("admitted", "weekday") == {"Sunday": 1, "Wednesday": 1, "Tuesday": 2, MISSING: 2}
    assert by("seen", "hour") == {"00": 2, "01": 1, "12": 1, MISSING: 2}
    assert by("woken", "hour") == {"06": 1, "07": 1, "08": 1, "10": 1}
    assert private.histogram(dm.col("woken").by("hour"), epsilon=EXACT).titles == ("woken by hour",)
    parts = private.partition(dm.col("woken").by("hour"))
    assert list(parts) == ["05", "06", "07", "08", "09", "10"]  # gaps are dropped


def test_calendar_keys_have_a_text_and_stand_in_crosstabs(private: dm.PrivateTable) -> None:
    assert dm.parse_key("admitted:month") == dm.col("admitted").by("month") == ByCalendar("admitted", "month")
    assert dm.parse_key("age:18:65") == dm.col("age").bins("18", "65")
    table = private.crosstab(dm.col("admitted").by("year"), dm.col("admitted").by("weekday"), epsilon=EXACT)
    assert table.to_dict()["2013", "Tuesday"] == 2
    counted = private.cells(dm.col("admitted").by("year")).count(epsilon=EXACT)
    assert [int(cell) for cell in counted] == [2, 2, 2]


def test_calendar_keys_are_of_codes_where_cells_begin_with_them(schema: Schema) -> None:
    assert isinstance(resolve_key(ByCalendar("admitted", "year"), schema), Recode)
    assert isinstance(resolve_key(ByCalendar("admitted", "month"), schema), Recode)
    assert isinstance(resolve_key(ByCalendar("admitted", "week"), schema), RecodeValues)
    assert resolve_key(ByCalendar("admitted", "weekday"), schema) == Cyclic("admitted", 6, 1, 7, 8)  # from a Sunday on
    assert resolve_key(ByCalendar("seen", "hour"), schema) == Cyclic("seen", 0, 60, 24, 25)
    assert resolve_key(ByCalendar("seen", "weekday"), schema) == Cyclic("seen", 1440, 1440, 7, 8)


@pytest.mark.parametrize(
    ("name", "unit", "words"),
    [
        ("admitted", "hour", "'admitted' is a date: count it by 'year' or 'month' or 'week' or 'day' or 'weekday'"),
        ("admitted", "century", "Got 'century'"),
        ("woken", "weekday", "'woken' is a time: count it by 'hour'"),
        ("stay", "month", "'stay' is no date, datetime or time"),
        ("long", "day", "more than 4096 days between its bounds. Count it by a longer unit"),
        ("rough", "hour", "values of 'rough' are 6h apart"),
    ],
)
def test_units_that_a_column_has_not_are_refused(schema: Schema, name: str, unit: str, words: str) -> None:
    more = (Date("long", "1900-01-01", "2013-12-31"), DateTime("rough", "2013-01-01", "2013-12-31", resolution="6h"))
    with pytest.raises(ExpressionError) as refused:
        resolve_key(ByCalendar(name, unit), Schema("s", (*schema.attributes, *more), 10))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("each", "unit"),
    [
        *[
            (each, unit)
            for each in (DATES[0], DATES[1], DATES[3], DATES[5])
            for unit in ("year", "month", "week", "day", "weekday")
        ],
        *[(DATES[2], "year"), (DATES[2], "month"), (DATES[2], "weekday"), (DATES[3], "hour"), (DATES[5], "hour")],
        *[(DATES[4], "year"), (DATES[4], "weekday"), (DATES[4], "hour")],
    ],
    ids=lambda each: each if isinstance(each, str) else f"{each.kind} by {each.grid}",
)
def test_calendar_keys_give_every_value_the_label_that_pythons_dates_have(each: Dated, unit: str, tmp_path: Path) -> None:
    names = {"year": "%Y", "month": "%Y-%m", "week": "%G-W%V", "day": "%Y-%m-%d", "weekday": "%A", "hour": "%H"}
    drawn = np.unique(np.linspace(0, each.values - 1, 400).astype(int)).tolist()
    moments = [each.told(Fraction(each.first + value * each.step)) for value in drawn]
    frame = pd.DataFrame({"x": [*(str(moment) for moment in moments), None]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    wanted: dict[str, int] = {}
    for moment in moments:
        label = moment.strftime(names[unit]).rjust(4, "0") if unit == "year" else moment.strftime(names[unit])
        wanted[label] = wanted.get(label, 0) + 1
    if each.gap == "own":
        wanted[MISSING] = 1
    elif each.gap is None:
        label = each.told(Fraction(each.first + each.missing_value * each.step)).strftime(names[unit])
        wanted[label] = wanted.get(label, 0) + 1
    for engine in ("memory", "duckdb"):
        with opened(tmp_path / "x.csv", Schema("s", (each,), 1000), HUGE, engine=engine) as private:
            counted = private.histogram(ByCalendar("x", unit), epsilon=EXACT).to_dict()
        assert {label: number for label, number in counted.items() if number} == wanted


# -- models and parts --------------------------------------------------------------------------------------------------


def test_trees_split_on_dates_are_saved_and_predict(tmp_path: Path) -> None:
    days = pd.date_range("2012-01-01", "2013-12-31", periods=400)
    table = pd.DataFrame({"admitted": days, "winter": np.where(days < "2012-09-01", "yes", "no")})
    table.loc[::50, "admitted"] = pd.NaT
    schema = Schema(
        "s", (Date("admitted", "2012-01-01", "2013-12-31", "month"), Nominal("winter", ("yes", "no"), missing="drop")), 1000,
        class_attribute="winter",
    )  # fmt: skip
    tree = fitted(dm.TreeClassifier(epsilon=HUGE, max_depth=2), table, schema)
    path = tmp_path / "tree.json"
    tree.save(path)
    again = load(path)
    asked = {"admitted": ["2012-02-03", dt.date(2013, 4, 5), None]}
    assert again.predict(asked)[:2].tolist() == tree.predict(asked)[:2].tolist() == ["yes", "no"]
    assert "2012-09-01" in tree.to_text()


def test_rows_that_differ_by_a_day_in_one_cell_are_different_rows(schema: Schema) -> None:
    """Identity is by values: numbers among identical rows, and parts, follow from the day and not from the month."""
    each = Date("x", "2012-01-01", "2013-12-31", "year")
    table = encode(open_source({"x": ["2012-01-01", "2012-01-02", "2012-01-01", None]}), Schema("s", (each,), 10))
    assert table.codes["x"].tolist() == [0, 0, 0, 2]
    assert table.occurrence.tolist() == [0, 0, 1, 0]


# -- drafts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["2013-01-05", "2014-05-06", None], Date("x", "2013-01-01", "2014-12-31")),
        (["05.01.2013", "31.12.2013"], Date("x", "2013-01-01", "2013-12-31", format="%d.%m.%Y")),
        (["01/13/2013", "12/31/2013"], Date("x", "2013-01-01", "2013-12-31", format="%m/%d/%Y")),
        (["13/01/2013", "31/12/2013"], Date("x", "2013-01-01", "2013-12-31", format="%d/%m/%Y")),
        (["20130105", "20130506", "20140506"], Date("x", "2013-01-01", "2014-12-31", format="%Y%m%d")),
        (["2013-01-05 12:30", "2013-01-05"], DateTime("x", "2013-01-01", "2013-12-31")),
        (["12:30", "23:59:59"], Time("x")),
        ([dt.date(2013, 1, 5), dt.date(2013, 1, 6)], Date("x", "2013-01-01", "2013-12-31")),
        ([pd.Timestamp("2013-01-05 01:00"), pd.NaT], DateTime("x", "2013-01-01", "2013-12-31")),
    ],
)
def test_dates_are_recognised_in_drafts(texts: list[Any], wanted: Dated) -> None:
    drafted = Schema.draft({"x": texts * 5})
    assert drafted.attribute("x") == wanted
    assert Schema.from_toml(drafted.to_toml()) == drafted


@pytest.mark.parametrize(
    "texts", [["2013-01-05", "soon"], ["2013", "2014"], ["12345678", "20130105", "20130106"], ["1.5", "2.5"]]
)
def test_other_columns_are_no_dates(texts: list[str]) -> None:
    assert not isinstance(Schema.draft({"x": texts * 5}).attribute("x"), Dated)


# -- flights -----------------------------------------------------------------------------------------------------------

FLIGHTS = Schema(
    "flights",
    (
        DateTime("time_hour", "2013-01-01", "2014-01-01", resolution="1h"),
        Numeric("hour", Decimal(0), Decimal(23), Decimal(1)),
    ),
    400_000,
)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_flights_by_month_and_weekday_are_those_of_pandas(engine: str, data_folder: Path) -> None:
    path = data_folder / "flights.parquet"
    moments = pd.read_parquet(path, columns=["time_hour"])["time_hour"].dt
    with opened(path, FLIGHTS, HUGE, engine=engine) as private:
        for unit, form in {"month": "%Y-%m", "weekday": "%A", "hour": "%H", "week": "%G-W%V", "day": "%Y-%m-%d"}.items():
            counted = private.histogram(dm.col("time_hour").by(unit), epsilon=EXACT).to_dict()
            wanted = moments.strftime(form).value_counts().to_dict()
            assert {label: number for label, number in counted.items() if number} == wanted
