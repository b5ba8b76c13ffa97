"""Files and frames with the same content have the same codes, and a broken CSV file never decides how others are read."""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import math
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.twins import few_and_many

from dpmine.base.errors import DataError
from dpmine.datasets import patients, patients_schema
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource, open_source

DAYS = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
TEXTS = st.sampled_from(
    ["a", "b", "a|b", "1", "1.5", " 2 ", "nan", "-inf", "x y", 'say "hi"', "it's", "\u65e5", "two\nlines", "a,b"]
)
ARROW_TYPES = {
    "text": (pa.string(), TEXTS | st.text("ab1.,|\"'\n ", min_size=1, max_size=5).filter(lambda text: text.strip() == text)),
    "whole": (pa.int64(), st.integers(-5, 5) | st.integers(-(2**62), 2**62)),
    "real": (
        pa.float64(),
        st.sampled_from([0.0, -0.0, 1.0, 0.1, 0.3, math.inf, -math.inf, 1e300, 5e-324, 1e16]) | st.floats(allow_nan=False),
    ),
    "day": (pa.date32(), DAYS),
}


def text_of(value: Any) -> str:
    """How a value is written into a CSV file: whole floats without '.0', missing values as nothing."""
    if value is None:
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


@st.composite
def typed_tables(draw: st.DrawFn) -> tuple[pa.Table, Schema]:
    """Columns of several types, each read once as nominal, once as numeric and once as a list."""
    rows = draw(st.integers(0, 12))
    columns: dict[str, pa.Array] = {}
    attributes: list[Nominal | Numeric | ItemList] = []
    for name, (kind, values) in ARROW_TYPES.items():
        column = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        texts = tuple(dict.fromkeys(["other", *(text_of(value) for value in column[:8] if value is not None)]))
        items = tuple(
            dict.fromkeys(["other", *(part.strip() for text in texts for part in text.split("|") if part.strip())])
        )
        attributes += [
            Nominal(f"{name} as category", texts, "other", missing="other"),
            Numeric(f"{name} as number", Decimal(-3), Decimal(3), Decimal("0.1"), Decimal(1)),
            ItemList(f"{name} as list", items, 2),
        ]
        columns |= dict.fromkeys([f"{name} as category", f"{name} as number", f"{name} as list"], pa.array(column, kind))
    return pa.table(columns), Schema("typed", tuple(attributes), 100)


def same_codes(one: EncodedTable, other: EncodedTable) -> None:
    assert one.rows == other.rows
    for name, codes in one.codes.items():
        np.testing.assert_array_equal(codes, other.codes[name], err_msg=name)
    for name, lists in one.lists.items():
        np.testing.assert_array_equal(lists.rows, other.lists[name].rows, err_msg=name)
        np.testing.assert_array_equal(lists.items, other.lists[name].items, err_msg=name)


def write_csv(path: Path, columns: dict[str, list[Any]], *, delimiter: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows([text_of(value) for value in row] for row in zip(*columns.values(), strict=True))


@few_and_many(typed_tables(), few=6, many=40)
def test_the_same_content_has_the_same_codes_in_every_frame_and_file(drawn: tuple[pa.Table, Schema]) -> None:
    table, schema = drawn
    expected = encode(open_source(table.to_pydict()), schema)
    same_codes(encode(open_source(table), schema), expected)
    same_codes(encode(open_source(pl.from_arrow(table)), schema), expected)
    same_codes(encode(open_source(table.to_pandas(types_mapper=pd.ArrowDtype)), schema), expected)
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(table, f"{folder}/t.parquet", row_group_size=3)
        same_codes(encode(open_source(f"{folder}/t.parquet"), schema), expected)
        for name, delimiter in (("t.csv", ","), ("t.tsv", "\t")):
            write_csv(Path(folder) / name, table.to_pydict(), delimiter=delimiter)
            same_codes(encode(open_source(f"{folder}/{name}"), schema), expected)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet"])
def test_patients_have_the_same_codes_from_file_and_from_memory(ending: str, tmp_path: Path) -> None:
    records = patients(5000)
    frame = pd.DataFrame(records)
    path = tmp_path / f"patients.{ending}"
    if ending == "parquet":
        frame.to_parquet(path, row_group_size=300)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    expected = encode(open_source(records), patients_schema())
    same_codes(encode(open_source(path), patients_schema()), expected)
    same_codes(encode(open_source(frame), patients_schema()), expected)


def test_adult_has_the_same_codes_from_csv_and_from_parquet(data_folder: Path) -> None:
    schema = Schema.draft(data_folder / "adult.parquet")
    one = encode(open_source(data_folder / "adult.csv.gz"), schema)
    same_codes(one, encode(open_source(data_folder / "adult.parquet"), schema))
    assert one.rows == 48_842


def test_columns_of_a_file_with_many_row_groups_stay_aligned(tmp_path: Path) -> None:
    rows = 200_000
    numbers = np.arange(rows)
    table = pa.table({"x": numbers % 4000, "y": (numbers % 4000).astype(str), "z": numbers % 4000 / 1.0})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=5000)
    categories = tuple(map(str, range(4000)))
    grid = [Numeric(name, Decimal(0), Decimal(3999), Decimal(1), Decimal(0)) for name in ("x", "z")]
    coded = encode(
        open_source(tmp_path / "t.parquet"), Schema("t", (*grid, Nominal("y", categories, "0", missing="0")), rows)
    )
    for codes in coded.codes.values():
        np.testing.assert_array_equal(codes, numbers % 4000)


@given(
    st.lists(
        st.text("0123456789+-._eE infatyINFA\t\n\x0b\x0c\r\u0661\u00a0,x", min_size=1, max_size=8), min_size=1, max_size=30
    )
)
@settings(max_examples=60)
def test_text_is_the_same_number_in_a_file_and_in_memory(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(pa.table({"x": texts}), f"{folder}/t.parquet")
        np.testing.assert_array_equal(
            open_source(f"{folder}/t.parquet").numbers("x"), open_source({"x": texts}).numbers("x")
        )


# -- names -------------------------------------------------------------------------------------------------------------

NAMES = [
    "*",
    "a.b",
    'say "hi"',
    "it's",
    "select",
    "c",
    "C0",
    "c0",
    "#1",
    "two words",
    "\u65e5",
    "x'; DROP TABLE csv; --",
    "$1",
    "?",
]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_with_awkward_names_are_read_as_themselves(ending: str, tmp_path: Path) -> None:
    columns = {name: [f"{number}", "x"] for number, name in enumerate(NAMES) if ending == "csv" or name != "C0"}
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        write_csv(path, columns)
    else:
        pyarrow.parquet.write_table(pa.table(columns), path)
    source = open_source(path)
    assert source.columns == list(columns)
    for name, values in columns.items():
        assert source.texts(name) == values
        assert source.category_codes(name, ("x", values[0])).tolist() == [1, 0]


def test_awkward_categories_are_data_and_never_sql() -> None:
    categories = ("'); DROP TABLE csv; --", '"', "'", "\\", "%", "\u65e5", "a\nb", "NULL", "null", " ", "x" * 1000)
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(pa.table({"x": [*categories, "unknown", None]}), f"{folder}/t.parquet")
        codes = open_source(f"{folder}/t.parquet").category_codes("x", categories)
    assert codes.tolist() == [*range(len(categories)), -1, -1]


@pytest.mark.parametrize(
    "name", ["d[1].csv", "d*.csv", "d?.csv", "d{1,2}.csv", "d'.csv", "d 1.csv", "d%20.csv", "k=v.csv", "d[!a].csv"]
)
def test_a_file_name_with_wildcards_names_that_file_only(name: str, tmp_path: Path) -> None:
    for other in ("d1.csv", "d2.csv", "da.csv", "dx.csv"):
        (tmp_path / other).write_text("x\nwrong\n")
    folder = tmp_path / "year=2020"
    folder.mkdir()
    for path in (tmp_path / name, folder / name):
        path.write_text("x\nright\n")
        source = open_source(path)
        assert source.columns == ["x"]
        assert source.texts("x") == ["right"]


# -- broken CSV --------------------------------------------------------------------------------------------------------


def read(folder: Path | str, content: str | bytes) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """Columns and rows of a CSV file with that content."""
    path = Path(folder) / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    source = FileSource(path)
    columns = [source.texts(name) for name in source.columns]
    return source.columns, list(zip(*columns, strict=True))


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("a,b\n1,x\n2,y\n", [("1", "x"), ("2", "y")]),
        ("a,b\n1,x", [("1", "x")]),
        ("\ufeffa,b\n1,x\n", [("1", "x")]),
        ("a,b\r\n1,x\r\n2,y\r\n", [("1", "x"), ("2", "y")]),
        ("a,b\r\n1,x\n2,y\r\n", [("1", "x"), ("2", "y")]),
        ("a,b\n", []),
        ("a,b\n1\n2,y\n", [("1", None), ("2", "y")]),
        ("a,b\n1,x,extra\n2,y\n", [("1", "x"), ("2", "y")]),
        ("a,b\n1,x,e,f,g\n2,y,e\n3,z,e\n", [("1", "x"), ("2", "y"), ("3", "z")]),
        ("a,b\n,\n1,\n,x\n", [(None, None), ("1", None), (None, "x")]),
        ("a,b\n1,x\n\n2,y\n", [("1", "x"), ("2", "y")]),
        ("a,b\n# no comment\n#,x\n1,y\n", [("# no comment", None), ("#", "x"), ("1", "y")]),
        ("a,b\ntitle\n1,x\n2,y\n3,z\n", [("title", None), ("1", "x"), ("2", "y"), ("3", "z")]),
        ('a,b\n"1,2",x\n', [("1,2", "x")]),
        ('a,b\n"two\nlines",x\n3,y\n', [("two\nlines", "x"), ("3", "y")]),
        ('a,b\n"say ""hi""",x\n', [('say "hi"', "x")]),
        ('a,b\nsay "hi",x\n2,y\n', [('say "hi"', "x"), ("2", "y")]),
        ('a,b\n"",x\n', [(None, "x")]),
        ("a,b\n1;2,x\n", [("1;2", "x")]),
        (" a , b \n1,x\n", [("1", "x")]),
        (b"a,b\n1,x\n\xff,y\n3,z\n", [("1", "x"), ("\ufffd", "y"), ("3", "z")]),
        (b"a,b\nx\x00y,1\n", [("x\x00y", "1")]),
        ("a,b\nNULL,null\nNA,nan\n", [("NULL", "null"), ("NA", "nan")]),
    ],
)
def test_an_odd_csv_file_is_read_line_by_line(
    content: str | bytes, rows: list[tuple[str | None, ...]], tmp_path: Path
) -> None:
    columns, found = read(tmp_path, content)
    assert columns == ["a", "b"]
    assert found == rows


def test_odd_lines_far_down_a_large_file_change_no_other_line(tmp_path: Path) -> None:
    plain = [f"{number},v{number}" for number in range(50_000)]
    _, rows = read(tmp_path, "\n".join(["a,b", *plain, "1", '"two\nlines",2', "3,4,5", 'x"y,6', ""]))
    assert rows[:50_000] == [tuple(line.split(",")) for line in plain]
    assert rows[50_000:] == [("1", None), ("two\nlines", "2"), ("3", "4"), ('x"y', "6")]


def test_a_column_without_a_name_gets_one() -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert read(folder, "a,,c\n1,2,3\n") == (["a", "column1", "c"], [("1", "2", "3")])
        assert read(folder, ",a\n0,x\n") == (["column0", "a"], [("0", "x")])


line = st.text("ab1,.# '|;\t\u65e5", max_size=8)


@few_and_many(st.lists(line.filter(lambda text: text.strip() != ""), min_size=1, max_size=8), few=8, many=40)
def test_a_line_without_quotes_is_read_the_same_whatever_stands_around_it(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _, together = read(folder, "\n".join(["a,b,c", *lines]) + "\n")
        alone = [read(folder, f"a,b,c\n{one}\n")[1][0] for one in lines]
    assert together == alone


@few_and_many(st.text("ab1,.# '\"|\\;\t\r\n\x00\u65e5", max_size=40) | st.binary(max_size=30), few=20, many=100)
def test_no_csv_content_raises_anything_but_one_sentence_for_the_owner(content: str | bytes) -> None:
    whole = content.encode() if isinstance(content, str) else content
    with tempfile.TemporaryDirectory() as folder:
        columns, rows = read(folder, b"a,b\n" + whole)
        assert columns == ["a", "b"]
        assert all(len(row) == 2 for row in rows)
        with contextlib.suppress(DataError):
            read(folder, whole)
