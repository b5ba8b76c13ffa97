"""A value has one text and one number, whatever holds it: a list, a frame of any library, or a Parquet file."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import enum
import math
import subprocess
import sys
import tempfile
import uuid
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.twins import few_and_many

from dpmine.base.errors import DataError
from dpmine.engines.encoding import EncodedTable, encode, encoding_of
from dpmine.engines.sql.duckdb import DuckDBFiles
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource, open_source
from dpmine.facts.value_texts import number_of_value, text_of_value

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
NOON = dt.datetime(2020, 1, 31, 12)
UUID = uuid.UUID(int=7)


class Colour(enum.Enum):
    RED = "red"


class Named(str, enum.Enum):  # noqa: UP042 (the older spelling calls its members otherwise)
    RED = "red"


class Numbered(int, enum.Enum):
    ONE = 1


# -- one value, many Python objects ------------------------------------------------------------------------------------

SAME: list[tuple[str | None, list[Any]]] = [
    (
        None,
        [None, math.nan, np.float32("nan"), pd.NA, pd.NaT, Decimal("NaN"), Decimal("sNaN"), np.datetime64("NaT"), object()],
    ),
    ("True", [True, np.True_, "True"]),
    ("0", [0, 0.0, -0.0, np.int8(0), np.float16(0), Decimal("0.00"), Decimal("-0"), Decimal("0E+9"), Fraction(0), "0"]),
    ("10", [10, 10.0, np.uint8(10), np.int64(10), np.float32(10), Decimal("10.00"), Decimal("1E+1"), Fraction(10)]),
    ("1", [1, 1.0, Numbered.ONE, Decimal(1), np.longdouble(1)]),
    ("-3", [-3, -3.0, np.int16(-3), Decimal("-3.0")]),
    ("10000000000000000", [10**16, 1e16, Decimal("1E+16"), np.uint64(10**16)]),
    ("0.5", [0.5, np.float16(0.5), np.float32(0.5), Decimal("0.50"), "0.5"]),
    ("0.10000000149011612", [np.float32(0.1), float(np.float32(0.1)), Decimal("0.10000000149011612")]),
    ("1e-07", [1e-7, Decimal("1E-7"), Decimal("0.00000010")]),
    ("-1.5e-07", [-1.5e-7, Decimal("-1.50E-7")]),
    ("inf", [math.inf, np.float32("inf"), Decimal("Infinity")]),
    ("-inf", [-math.inf, Decimal("-Infinity")]),
    (
        "2020-01-31",
        [
            dt.date(2020, 1, 31),
            dt.datetime(2020, 1, 31),
            dt.datetime(2020, 1, 31, fold=1),
            pd.Timestamp("2020-01-31"),
            *(np.datetime64("2020-01-31", unit) for unit in ("D", "h", "s", "ms", "us", "ns")),
            "2020-01-31",
        ],
    ),
    (
        "2020-01-31 12:00:00",
        [NOON, pd.Timestamp(NOON), *(np.datetime64(NOON, unit) for unit in ("h", "s", "ms", "us", "ns"))],
    ),
    ("2020-01-31 12:00:00.500000", [NOON + dt.timedelta(seconds=0.5), np.datetime64("2020-01-31T12:00:00.5")]),
    ("2020-01-31 12:00:00.000000001", [pd.Timestamp("2020-01-31T12:00:00.000000001"), np.datetime64(NOON, "ns") + 1]),
    (
        "2020-01-30 23:00:00+00:00",
        [
            dt.datetime(2020, 1, 31, tzinfo=BERLIN),
            dt.datetime(2020, 1, 30, 23, tzinfo=dt.UTC),
            dt.datetime(2020, 1, 31, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            pd.Timestamp("2020-01-31", tz="Europe/Berlin"),
            pd.Timestamp("2020-01-30 23:00", tz="UTC"),
        ],
    ),
    ("2020-01-31 00:00:00+00:00", [dt.datetime(2020, 1, 31, tzinfo=dt.UTC), pd.Timestamp("2020-01-31", tz="UTC")]),
    ("0000-12-31 23:00:00+00:00", [dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))]),
    ("12:00:00", [dt.time(12)]),
    ("12:00:00.000001", [dt.time(12, microsecond=1)]),
    ("86400", [dt.timedelta(1), pd.Timedelta(days=1), np.timedelta64(1, "D"), np.timedelta64(86_400_000, "ms")]),
    ("-0.5", [-dt.timedelta(seconds=0.5), pd.Timedelta(seconds=-0.5), np.timedelta64(-500_000, "us")]),
    ("1e-09", [pd.Timedelta(1, unit="ns"), np.timedelta64(1, "ns")]),
    ("b'a\\xff'", [b"a\xff", bytearray(b"a\xff"), memoryview(b"a\xff"), np.bytes_(b"a\xff")]),
    ("red", ["red", np.str_("red"), Named.RED]),
    (str(UUID), [UUID, str(UUID)]),
    ('["a", null, "1"]', [["a", None, 1], ("a", math.nan, 1.0), np.array(["a", None, Decimal("1.0")], dtype=object)]),
    ('[["2020-01-31"]]', [[[dt.date(2020, 1, 31)]], ((dt.datetime(2020, 1, 31),),)]),
    ('["1", "a", "b"]', [{"b", "a", 1}, frozenset(["a", 1, "b"])]),
    ('{"a": "1"}', [{"a": 1}, {"a": 1.0}]),
    ("1/3", [Fraction(1, 3)]),
    ("Colour.RED", [Colour.RED]),
]


@pytest.mark.parametrize(("text", "values"), SAME, ids=[str(text)[:30] for text, _ in SAME])
def test_equal_values_have_one_text(text: str | None, values: list[Any]) -> None:
    assert [text_of_value(value) for value in values] == [text] * len(values)
    assert open_source({"x": values}).texts("x") == [text] * len(values)
    assert open_source(pd.DataFrame({"x": pd.Series(values, dtype=object)})).texts("x") == [text] * len(values)


@pytest.mark.parametrize(("text", "values"), SAME, ids=[str(text)[:30] for text, _ in SAME])
def test_equal_values_have_one_number(text: str | None, values: list[Any]) -> None:
    typed = [value for value in values if not isinstance(value, str)]  # "True" is a text and no number
    assert len({str(number_of_value(value)) for value in typed} - {"-0.0"}) <= 1


@given(st.floats(allow_nan=False))
def test_a_float_and_the_decimal_that_it_is_written_as_have_one_text(number: float) -> None:
    exact = Decimal(int(number)) if number.is_integer() else Decimal(repr(number))
    assert text_of_value(number) == text_of_value(exact)
    assert float(text_of_value(number) or "") == number


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12))
def test_the_text_of_a_decimal_keeps_every_digit_whatever_precision_is_set(number: Decimal) -> None:
    with decimal.localcontext() as context:
        context.prec = 3
        text = text_of_value(number)
    assert text is not None
    assert Decimal(text) == number
    assert text == text_of_value(Decimal(text))


@given(st.datetimes(timezones=st.none() | st.timezones()), st.timedeltas())
def test_a_moment_and_a_duration_have_the_same_text_in_python_and_in_numpy(
    moment: dt.datetime, length: dt.timedelta
) -> None:
    if moment.tzinfo is None:
        assert text_of_value(np.datetime64(moment, "us")) == text_of_value(moment)
    else:
        assert (text_of_value(moment) or "").endswith("+00:00")
    if abs(length) < dt.timedelta(days=10**6):
        assert text_of_value(np.timedelta64(length)) == text_of_value(length)


def test_a_number_too_long_to_write_is_missing_at_once() -> None:
    long = [10**1000, -(10**1000), 10**5000, Decimal("1E+1000"), Decimal("1E-1001"), Decimal("9E+99999999")]
    assert [text_of_value(value) for value in long] == [None] * len(long)


def test_no_text_depends_on_the_process() -> None:
    """An address or the order of a set would give the same row other codes in the next process, under the same root."""
    ask = "from dpmine.facts.value_texts import text_of_value as t; print(t({'a','b','c','d'}), t(object()), t([{'x','y'}]))"
    said = {
        subprocess.run(
            [sys.executable, "-c", ask],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": PATH},
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert said == {'["a", "b", "c", "d"] None [["x", "y"]]\n'}


PATH = ":".join(path for path in sys.path if path)

# -- every kind of column, every source --------------------------------------------------------------------------------

YEARS = {"min_value": dt.datetime(1700, 1, 1), "max_value": dt.datetime(2200, 1, 1)}
MOMENTS = st.datetimes(**YEARS) | st.dates(dt.date(1700, 1, 1), dt.date(2200, 1, 1)).map(
    lambda day: dt.datetime(day.year, day.month, day.day)
)
LENGTHS = st.timedeltas(dt.timedelta(-20_000), dt.timedelta(20_000))


def to_second(moment: dt.datetime) -> dt.datetime:
    return moment.replace(microsecond=0)


KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    **{
        f"int{bits}": (getattr(pa, f"int{bits}")(), st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
        for bits in (8, 16, 32)
    },
    "int64": (pa.int64(), st.integers(-(2**53), 2**53)),
    "uint8": (pa.uint8(), st.integers(0, 255)),
    "uint64": (pa.uint64(), st.integers(0, 2**53)),
    "float32": (pa.float32(), st.sampled_from([0.1, 1.0, -0.0, 1e30]) | st.floats(width=32)),
    "float64": (pa.float64(), st.sampled_from([0.1, 1.0, -0.0, 1e16, 1e300]) | st.floats()),
    "decimal": (pa.decimal128(20, 4), st.decimals(-(10**9), 10**9, places=4)),
    "date": (pa.date32(), st.dates(dt.date(1700, 1, 1), dt.date(2200, 1, 1))),
    "second": (pa.timestamp("s"), MOMENTS.map(to_second)),
    "microsecond": (pa.timestamp("us"), MOMENTS),
    "nanosecond": (pa.timestamp("ns"), MOMENTS | st.integers(-(10**18), 10**18)),
    "zoned": (pa.timestamp("us", "Europe/Berlin"), MOMENTS),
    "zoned ns": (pa.timestamp("ns", "America/New_York"), MOMENTS | st.integers(-(10**18), 10**18)),
    "time": (pa.time64("us"), st.times()),
    "duration": (pa.duration("us"), LENGTHS),
    "duration ns": (pa.duration("ns"), st.integers(-(10**18), 10**18)),
    "category": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "b", "1", ""])),
    "text": (pa.string(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=5)),
    "bytes": (pa.binary(), st.binary(max_size=3)),
    "list": (pa.list_(pa.string()), st.lists(st.none() | st.sampled_from(["a", "b|c"]), max_size=3)),
    "list of numbers": (pa.list_(pa.int64()), st.lists(st.integers(-9, 9), max_size=3)),
    "struct": (pa.struct([("a", pa.int64())]), st.fixed_dictionaries({"a": st.none() | st.integers(-9, 9)})),
}
WITHOUT_TYPE_IN_PARQUET = ("duration", "duration ns")  # Parquet stores them as plain whole numbers
OF_PYTHON_ALONE = ("bytes", "list", "list of numbers", "struct")
IN_PLACE = tuple(name for name in KINDS if name not in (*WITHOUT_TYPE_IN_PARQUET, *OF_PYTHON_ALONE))

FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "dict": lambda table: table.to_pydict(),
    "dict of pandas": lambda table: {name: table[name].to_pandas() for name in table.column_names},
    "dict of Polars": lambda table: pl.from_arrow(table).to_dict(),  # type: ignore[union-attr]
    "pandas": lambda table: table.to_pandas(),
    "pandas of objects": lambda table: table.to_pandas().astype(object),
    "pandas with nullable types": lambda table: table.to_pandas().convert_dtypes(),
    "pandas with Arrow types": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": pl.from_arrow,
    "Arrow": lambda table: table,
}


@st.composite
def logical_tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 8))
    return pa.table(
        {
            name: pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind)
            for name, (kind, values) in KINDS.items()
        }
    )


@few_and_many(logical_tables(), few=6, many=30)
def test_every_kind_of_value_has_one_text_and_one_number_in_every_source(table: pa.Table) -> None:
    sources = {kind: open_source(made(table)) for kind, made in FRAMES.items()}
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, f"{folder}/t.parquet")
        sources["Parquet"] = open_source(f"{folder}/t.parquet")
        for name in KINDS:
            texts = sources["Arrow"].texts(name)
            numbers = sources["Arrow"].numbers(name)
            for kind, source in sources.items():
                if kind == "Parquet" and name in WITHOUT_TYPE_IN_PARQUET:
                    continue
                assert source.texts(name) == texts, (kind, name)
                np.testing.assert_array_equal(source.numbers(name), numbers, err_msg=f"{kind} {name}")


def schema_for(table: pa.Table, names: tuple[str, ...]) -> Schema:
    """Every column once as nominal, with the texts that occur, those that might, and the old ones of the same values."""
    attributes: list[Nominal | Numeric | ItemList] = []
    for name in names:
        values = table[name].to_pylist()
        texts = [text for value in values[:6] for text in (text_of_value(value), str(value)) if text]
        texts = list(dict.fromkeys(["other", *texts]))
        attributes.append(Nominal(name, tuple(texts), "other", missing="other"))
    return Schema("kinds", tuple(attributes), 100)


def codes_of(table: EncodedTable | DuckDBFiles) -> list[list[int]]:
    if isinstance(table, EncodedTable):
        return [codes.tolist() for codes in table.codes.values()]
    found = table.source.cursor().execute(table.coded.sql(dialect="duckdb")).fetchnumpy()
    return [found[f"v{place}"].tolist() for place in range(len(table.schema.attributes))]


@few_and_many(logical_tables(), few=4, many=20)
def test_the_same_rows_have_the_same_codes_in_every_source_and_engine(table: pa.Table) -> None:
    names = tuple(name for name in KINDS if name not in WITHOUT_TYPE_IN_PARQUET)
    schema, plain = schema_for(table, names), schema_for(table, IN_PLACE)
    expected = codes_of(encode(open_source(table), schema))
    for kind, made in FRAMES.items():
        assert codes_of(encode(open_source(made(table)), schema)) == expected, kind
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, f"{folder}/t.parquet")
        assert codes_of(encode(open_source(f"{folder}/t.parquet"), schema)) == expected
        in_files = DuckDBFiles(plain, FileSource(f"{folder}/t.parquet", keep_in_files=True))
        in_memory = encode(open_source(f"{folder}/t.parquet"), plain)
        assert in_files.encoding == in_memory.encoding
        assert codes_of(in_files) == codes_of(in_memory)
        write_csv(Path(folder) / "t.csv", table, IN_PLACE)
        in_files = DuckDBFiles(plain, FileSource(f"{folder}/t.csv", keep_in_files=True))
        in_memory = encode(open_source(f"{folder}/t.csv"), plain)
        assert in_files.encoding == in_memory.encoding
        assert codes_of(in_files) == codes_of(in_memory)


def write_csv(path: Path, table: pa.Table, names: tuple[str, ...]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(zip(*([text_of_value(v) for v in table[name].to_pylist()] for name in names), strict=True))


def test_moments_beyond_pythons_years_are_read_from_every_source(tmp_path: Path) -> None:
    table = pa.table(
        {"x": pa.array([10**18, -(10**17), None], pa.timestamp("us")), "d": pa.array([10**7, -(10**6), None], pa.date32())}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    for made in (table, pl.from_arrow(table), tmp_path / "t.parquet"):
        assert open_source(made).texts("x") == ["33658-09-27 01:46:40", "-1199-02-15 14:13:20", None]
    for made in (pl.from_arrow(table), tmp_path / "t.parquet"):
        assert open_source(made).texts("d") == ["29349-01-26", "-0768-02-04", None]


def test_moments_with_a_zone_are_read_without_further_packages_and_in_no_machines_zone(tmp_path: Path) -> None:
    moments = pa.array([dt.datetime(2020, 7, 1, 0, tzinfo=BERLIN), None], pa.timestamp("us", "Europe/Berlin"))
    pq.write_table(pa.table({"x": moments}), tmp_path / "t.parquet")
    assert open_source(tmp_path / "t.parquet").texts("x") == ["2020-06-30 22:00:00+00:00", None]


def test_persons_named_by_small_floats_are_refused_in_a_list_of_numpys_numbers() -> None:
    schema = Schema("p", (Nominal("a", ("x", "y"), "x", missing="x"),), 10, unit=Unit("who", 1))
    for one in (0.5, np.float32(0.5), np.float16(0.5)):
        with pytest.raises(DataError, match="by floats"):
            encode(open_source({"a": ["x"], "who": [one]}), schema)


# -- the way of reading is part of the root ----------------------------------------------------------------------------


def encoding(table: Any, schema: Schema | None = None) -> str:
    return encoding_of(open_source(table), schema or Schema("r", (Nominal("x", ("1", "2"), "1", missing="1"),), 10))


def test_every_kind_of_source_and_every_stated_type_is_another_root(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2]})
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    (tmp_path / "t.tsv").write_text("x\n1\n2\n")
    pq.write_table(table, tmp_path / "t.parquet")
    pq.write_table(table.cast(pa.schema([("x", pa.float64())])), tmp_path / "f.parquet")
    frame = pd.DataFrame({"x": [1, 2]})
    other = pl.DataFrame({"x": [1, 2]})
    tables = [
        *(tmp_path / name for name in ("t.csv", "t.tsv", "t.parquet", "f.parquet")),
        *({"x": [1, 2]}, frame, other, table),
        *(frame.astype(name) for name in ("float64", "Int64", "object", "category", "int64[pyarrow]", "datetime64[ns]")),
        *(other.cast(kind) for kind in (pl.Float32, pl.Int8, pl.String, pl.Datetime("us"), pl.Datetime("ns"), pl.Date)),
        *(
            table.cast(pa.schema([("x", kind)]))
            for kind in (pa.float32(), pa.string(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
        ),
    ]
    names = [encoding(each) for each in tables]
    assert len(set(names)) == len(names)


def test_the_persons_column_is_part_of_the_root_and_an_unread_column_is_not() -> None:
    schema = Schema("p", (Nominal("x", ("1", "2"), "1", missing="1"),), 10, unit=Unit("who", 1))
    ints, texts = (pd.DataFrame({"x": [1], "who": [who], "unread": [who]}) for who in (1, "1"))
    assert encoding(ints, schema) != encoding(texts, schema)
    assert encoding(ints) == encoding(texts)


def test_no_value_of_a_row_is_part_of_the_root() -> None:
    """Members of a category are made of the rows: a root that named them would tell of a row with a rare one."""
    for made in (
        lambda values: {"x": values},
        lambda values: pd.DataFrame({"x": pd.Categorical(values)}),
        lambda values: pd.DataFrame({"x": pd.Categorical(values, ordered=True)}),
        lambda values: pl.DataFrame({"x": pl.Series(values, dtype=pl.Enum(sorted(set(values))))}),
        lambda values: pl.DataFrame({"x": pl.Series(values, dtype=pl.Categorical)}),
        lambda values: pl.DataFrame({"x": pl.Series([[v] for v in values], dtype=pl.List(pl.Enum(sorted(set(values)))))}),
        lambda values: pa.table({"x": pa.array(values).dictionary_encode()}),
    ):
        assert encoding(made(["1", "2"])) == encoding(made(["1", "2", "canary"]))
