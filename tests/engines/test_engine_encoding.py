"""Encoding is total and row-local: whatever stands in a table becomes a code by the public rule, wherever it stands."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmine.base.errors import DataError
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.facts.encoding import smallest_type
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source

NOMINAL = Nominal("nominal", ("a", "0", "1", "True", "other", "2020-01-01", "-1", "0.5", ""), "other", missing="other")
NUMERIC = Numeric("numeric", Decimal("-1.05"), Decimal(3), Decimal("0.1"), Decimal("0.5"))
ITEMS = ItemList("items", ("a", "b", "0", "True"), 2)
SCHEMA = Schema("total", (NOMINAL, NUMERIC, ITEMS), 1000)


class Hostile:
    """An object whose every conversion fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __repr__(self) -> str:
        return "hostile"


class Endless:
    """An object that says it is too large and cannot be compared."""

    def __float__(self) -> float:
        raise OverflowError


def name_of(value: Any) -> str:
    """A test's name; some integers are too long to be written out."""
    return "huge" if isinstance(value, int) and abs(value) > 10**20 else ascii(value)[:30]


HUGE = [10**30, -(10**30), 10**400, -(10**400), 10**5000, -(10**5000)]
ODD: list[Any] = [
    *(None, True, False, math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, -5e-324, 1e308, 1e15, 1e16, 0.5, 1.0, *HUGE),
    *(
        "",
        " ",
        "a",
        " a ",
        "b",
        "0",
        "1",
        "True",
        "true",
        "nan",
        "inf",
        "-inf",
        "1_0",
        "1e400",
        "0x10",
        "a|b",
        "b|a|0",
        "\x00",
    ),
    *(b"a", b"1", b"\xff", bytearray(b"1"), dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), dt.timedelta(1), dt.time(1)),
    *(
        Decimal("0.5"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        Decimal("1E+400"),
        Fraction(1, 3),
        Fraction(10**400),
        1j,
    ),
    *(["a", "b"], ["b"], [], ["a", None, math.nan], ("a",), {"a": 1}, {"a"}, np.array(["a", "b"]), np.array([]), [["a"]]),
    *(np.int8(-1), np.uint64(2**64 - 1), np.float32(0.5), np.float16(0.5), np.longdouble(1), np.bool_(True), np.str_("a")),
    *(np.datetime64("2020-01-01"), np.timedelta64(1, "D"), pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), pd.Timedelta(1)),
    *(Hostile(), Endless(), object, len, ..., "x" * 10_000, "\ud800", "\u0661"),
]
odd_values = st.sampled_from(ODD) | st.floats() | st.integers() | st.text(max_size=4) | st.binary(max_size=3) | st.booleans()


def table_of(values: list[Any]) -> dict[str, list[Any]]:
    return {"nominal": list(values), "numeric": list(values), "items": list(values)}


def lists_of(table: EncodedTable) -> list[tuple[int, ...]]:
    found: list[list[int]] = [[] for _ in range(table.rows)]
    for row, item in zip(table.lists["items"].rows.tolist(), table.lists["items"].items.tolist(), strict=True):
        found[row].append(item)
    return [tuple(items) for items in found]


def codes_of(frame: Any) -> list[tuple[int, int, tuple[int, ...]]]:
    """The three codes of every row."""
    table = encode(open_source(frame), SCHEMA)
    nominal, numeric = table.codes["nominal"], table.codes["numeric"]
    assert nominal.dtype == numeric.dtype == np.uint8
    assert len(nominal) == len(numeric) == table.rows
    assert int(nominal.max(initial=0)) < NOMINAL.size
    assert int(numeric.max(initial=0)) < NUMERIC.size
    return list(zip(nominal.tolist(), numeric.tolist(), lists_of(table), strict=True))


# -- totality and locality ---------------------------------------------------------------------------------------------


@given(st.lists(odd_values, max_size=25))
@settings(max_examples=300)
def test_no_value_raises_and_each_is_encoded_as_if_it_stood_alone(values: list[Any]) -> None:
    codes = codes_of(table_of(values))
    assert codes == [codes_of(table_of([value]))[0] for value in values]


@given(st.lists(odd_values, max_size=25), st.randoms(use_true_random=False))
def test_a_permuted_or_thinned_table_has_permuted_or_thinned_codes(values: list[Any], random: Any) -> None:
    codes = codes_of(table_of(values))
    places = random.sample(range(len(values)), random.randint(0, len(values)))
    assert codes_of(table_of([values[place] for place in places])) == [codes[place] for place in places]


@pytest.mark.parametrize("value", ODD, ids=name_of)
def test_every_odd_value_is_encoded_in_a_pandas_object_column_too(value: Any) -> None:
    for others in ([], ["a"], [1.5, None], [value, "b"]):
        values = pd.Series([value, *others], dtype=object)
        frame = pd.DataFrame({"nominal": values, "numeric": values, "items": values})
        assert codes_of(frame)[0] == codes_of(table_of([value]))[0]


@given(st.lists(st.none() | st.floats(width=32) | st.integers(-(2**20), 2**20), min_size=1, max_size=20))
def test_one_null_or_fraction_in_a_numeric_column_changes_no_other_row(values: list[float | None]) -> None:
    """Frames switch to another type as soon as one value is missing or broken; codes must not notice."""
    expected = codes_of(table_of(values))
    assert codes_of(pd.DataFrame(table_of(values))) == expected
    floats = [None if value is None else float(value) for value in values]
    assert codes_of(pl.DataFrame(table_of(floats), strict=False)) == expected
    assert (
        codes_of(pa.table({name: pa.array(column, pa.float64()) for name, column in table_of(floats).items()})) == expected
    )


# -- the rules ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "category"),
    [
        ("a", "a"),
        (" a ", "other"),
        ("A", "other"),
        (None, "other"),
        (math.nan, "other"),
        (pd.NA, "other"),
        (pd.NaT, "other"),
        ("unheard of", "other"),
        ("", ""),
        (0, "0"),
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (np.float32(1), "1"),
        (-1, "-1"),
        (0.5, "0.5"),
        (Decimal("0.5"), "0.5"),
        (True, "True"),
        (np.bool_(True), "True"),
        (dt.date(2020, 1, 1), "2020-01-01"),
        (10**5000, "other"),
        (Hostile(), "other"),
        (["a"], "other"),
    ],
    ids=name_of,
)
def test_a_nominal_value_goes_to_its_category_or_to_other(value: Any, category: str) -> None:
    assert codes_of(table_of([value]))[0][0] == NOMINAL.categories.index(category)


@pytest.mark.parametrize(
    ("value", "point"),
    [
        (0, "-0.05"),
        (-0.0, "-0.05"),
        (5e-324, "-0.05"),
        (-5e-324, "-0.05"),
        (0.05, "0.05"),
        ("0.05", "0.05"),
        (" 0.05 ", "0.05"),
        (math.nextafter(0.05, 0), "0.05"),  # rounded to hundredths first
        (0.0451, "0.05"),
        (0.0449, "-0.05"),
        (0.25, "0.25"),
        (2.95, "2.95"),
        (2.999, "2.95"),
        (3, "2.95"),
        (math.inf, "2.95"),
        ("inf", "2.95"),
        (1e308, "2.95"),
        (10**400, "2.95"),
        (10**5000, "2.95"),
        (Fraction(10**400), "2.95"),
        (-1.06, "-1.05"),
        (-math.inf, "-1.05"),
        (-(10**400), "-1.05"),
        (-(10**5000), "-1.05"),
        (True, "0.95"),
        (Decimal("0.15"), "0.15"),
        (np.float32(0.5), "0.45"),
        (math.nan, "0.45"),
        (None, "0.45"),
        (pd.NA, "0.45"),
        (pd.NaT, "0.45"),
        ("", "0.45"),
        ("one", "0.45"),
        ("\u0661", "0.45"),
        ("1,5", "0.45"),
        (Decimal("sNaN"), "0.45"),
        (dt.date(2020, 1, 1), "0.45"),
        (1j, "0.45"),
        (Hostile(), "0.45"),
        (["1"], "0.45"),
    ],
    ids=name_of,
)
def test_a_number_is_clamped_rounded_and_in_the_cell_of_its_value_or_set_to_missing(value: Any, point: str) -> None:
    assert NUMERIC.label(codes_of(table_of([value]))[0][1]) == point


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ("a|b", ["a", "b"]),
        (" b | a ", ["b", "a"]),
        ("a|unknown|b", ["a", "b"]),
        ("a|a|b", ["a", "a"]),
        ("||a||", ["a"]),
        (["a", "b", "0"], ["a", "b"]),
        (["unknown", 0.0, True], ["0", "True"]),
        (["a", None, math.nan, "b"], ["a", "b"]),
        (np.array(["b", "a"]), ["b", "a"]),
        (("a",), ["a"]),
        ("", []),
        (None, []),
        (math.nan, []),
        ([], []),
        (0, ["0"]),
        (Hostile(), []),
        ([Hostile(), "a"], ["a"]),
    ],
    ids=name_of,
)
def test_a_list_keeps_its_first_known_items(value: Any, items: list[str]) -> None:
    assert codes_of(table_of([value]))[0][2] == tuple(ITEMS.items.index(item) for item in items)


# -- every kind of frame -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "series",
    [
        pd.Series(["a", None, "b"], dtype="string"),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series(["a", None, "b"], dtype="string[pyarrow]"),
        pd.Series([1, None, 0], dtype="Int64"),
        pd.Series([1, None, 0], dtype="int64[pyarrow]"),
        pd.Series([1, 0, 255], dtype="uint8"),
        pd.Series([0.5, None, -0.0], dtype="Float64"),
        pd.Series([0.5, None, -0.0], dtype="float32"),
        pd.Series([0.5, None, 1.0], dtype="float16"),
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series([True, False]),
        pd.Series([2**64 - 1, 0], dtype="uint64"),
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pd.Series(pd.to_timedelta([1, None])),
        pd.Series([1 + 2j, 0]),
        pd.Series([pd.Period("2020-01"), None]),
        pd.Series(pd.arrays.SparseArray([0.0, 0.5, np.nan])),
        pl.Series(["a", None, "b"], dtype=pl.Categorical),
        pl.Series(["a", None, "b"], dtype=pl.Enum(["a", "b"])),
        pl.Series([1, None, 0], dtype=pl.Int128),
        pl.Series([1, 2**100, 0], dtype=pl.Int128),
        pl.Series([1, None, 0], dtype=pl.UInt8),
        pl.Series([0.5, None, math.nan], dtype=pl.Float32),
        pl.Series([Decimal("0.5"), None], dtype=pl.Decimal(10, 2)),
        pl.Series([True, None]),
        pl.Series([b"a", None]),
        pl.Series([dt.date(2020, 1, 1), None]),
        pl.Series([dt.datetime(2020, 1, 1), None]),
        pl.Series([dt.time(1), None]),
        pl.Series([dt.timedelta(1), None]),
        pl.Series([["a", "b"], None, []]),
        pl.Series([["a", "b"], ["b", "a"]]),
        pl.Series([["a", "b"], ["b", "a"]], dtype=pl.Array(pl.String, 2)),
        pl.Series([{"a": 1}, None]),
        pl.Series([None, None]),
        pl.Series([object(), "a"], dtype=pl.Object),
        pa.chunked_array([["a", None], ["b"]]),
        pa.chunked_array([pa.array(["a", None, "b"]).dictionary_encode()]),
        pa.chunked_array([pa.array([1, None, 0], pa.int8())]),
        pa.chunked_array([pa.array([0.5, None], pa.float16())]),
        pa.chunked_array([pa.array([Decimal("0.5"), None], pa.decimal128(10, 2))]),
        pa.chunked_array([pa.array([b"a", None], pa.binary())]),
        pa.chunked_array([pa.array([["a", "b"], None, []])]),
        pa.chunked_array([pa.array([["a", "b"], ["b", "a"]], pa.list_(pa.string(), 2))]),
        pa.chunked_array([pa.array([{"a": 1}, None])]),
        pa.chunked_array([pa.nulls(3)]),
        pa.chunked_array([pa.array([dt.datetime(2020, 1, 1), None])]),
        pa.chunked_array([pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8()))]),
    ],
    ids=lambda series: f"{type(series).__module__.split('.')[0]}-{getattr(series, 'dtype', None) or series.type}",
)
def test_every_column_type_of_every_frame_is_encoded_without_an_error(series: Any) -> None:
    columns = dict.fromkeys(("nominal", "numeric", "items"), series)
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[type(series).__module__.split(".")[0]](
        columns
    )
    codes = codes_of(frame)
    assert len(codes) == len(series)
    for place in range(len(series)):
        alone = frame.iloc[place : place + 1] if isinstance(frame, pd.DataFrame) else frame.slice(place, 1)
        assert codes_of(alone) == [codes[place]]


def test_lists_of_equal_length_are_read_as_lists_and_not_as_a_matrix() -> None:
    expected = [(0, 1), (1, 0)]
    lists = [["a", "b"], ["b", "a"]]
    arrays = [np.array(["a", "b"]), np.array(["b", "a"])]
    for column in (lists, arrays, [tuple(row) for row in lists], pd.Series(lists), pd.Series(arrays)):
        assert [row[2] for row in codes_of({"nominal": ["a"] * 2, "numeric": [1] * 2, "items": column})] == expected
    frame = pd.DataFrame({"nominal": ["a"] * 2, "numeric": [1] * 2, "items": arrays})
    assert [row[2] for row in codes_of(frame)] == expected


def test_pandas_columns_named_by_numbers_are_found_by_their_text() -> None:
    schema = Schema("numbered", (Nominal("0", ("a", "b"), "b", missing="b"),), 10)
    assert encode(open_source(pd.DataFrame({0: ["a", "b", "c"]})), schema).codes["0"].tolist() == [0, 1, 1]
    assert encode(open_source({0: ["a", "b", "c"]}), schema).codes["0"].tolist() == [0, 1, 1]


def test_the_index_of_a_pandas_frame_does_not_matter() -> None:
    frame = pd.DataFrame(table_of(["a", "b", None]), index=[7, 7, 3])
    assert codes_of(frame) == codes_of(frame.reset_index(drop=True))


def test_a_table_without_the_columns_of_the_schema_is_refused() -> None:
    for table in ({}, {"nominal": []}, pd.DataFrame(), pl.DataFrame(), pa.table({})):
        with pytest.raises(DataError, match="no column"):
            encode(open_source(table), SCHEMA)


def test_columns_that_the_schema_does_not_describe_are_never_read() -> None:
    class Unreadable(list):  # type: ignore[type-arg]
        def __getitem__(self, place: Any) -> Any:
            raise AssertionError("this column must not be read")

    table: dict[str, Any] = {**table_of(["a"]), "patient_id": Unreadable(["secret"])}
    assert codes_of(table) == codes_of(table_of(["a"]))


def test_codes_take_the_smallest_type_that_holds_them() -> None:
    assert [smallest_type(size) for size in (1, 256, 257, 65_536, 65_537)] == [
        np.uint8,
        np.uint8,
        np.uint16,
        np.uint16,
        np.uint32,
    ]
    schema = Schema("wide", (Nominal("n", tuple(map(str, range(300))), "0", missing="0"), NUMERIC, ITEMS), 10)
    table = encode(open_source({"n": ["299", "x"], "numeric": [0, 0], "items": [None, "a"]}), schema)
    assert table.codes["n"].dtype == np.uint16
    assert table.codes["n"].tolist() == [299, 0]
    assert table.values["n"] is table.codes["n"]
    assert (table.values["numeric"].dtype, table.codes["numeric"].dtype) == (np.uint16, np.uint8)
    assert table.bytes == 2 * 2 + 2 * (2 + 1) + 4 + 1  # one array where values are codes
