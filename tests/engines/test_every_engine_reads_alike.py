"""Files of every kind have the same codes in every engine: the memory engine's."""

from __future__ import annotations

import csv
import tempfile
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_strategies import Asked, Small, small_tables
from engines_under_test import arrow_column, assert_as_in_memory, assert_codes_as_in_memory, every_engine
from hypothesis import strategies as st
from support.twins import few_and_many
from support.wild_files import ZOO, Wild

import dpmine as dm
from dpmine.datasets import patients, patients_schema
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.registry import ENGINES
from dpmine.engines.sql.columns import code_names, value_names
from dpmine.engines.sql.duckdb import DuckDBFiles
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource, open_source
from dpmine.facts.value_texts import text_of_value
from dpmine.language.keys import AttributeKey, Part
from dpmine.language.views import LEAF, Split

every_other_engine = every_engine(but=("memory",))


@every_engine()
@pytest.mark.parametrize("others", [0.0, 1.0, 5.0])
def test_nan_among_equal_numbers_is_read_as_missing(tmp_path: Path, others: float, engine: str) -> None:
    """Statistics of Parquet files leave NaN out; an optimizer that trusts them would read the NaN as the largest number."""
    path = tmp_path / "nan.parquet"
    pq.write_table(pa.table({"x": pa.array([others] * 6 + [float("nan")], pa.float64())}), path)
    schema = Schema("nan", (Numeric("x", Decimal(0), Decimal(7), Decimal(1), Decimal(3)),), 10)
    assert_codes_as_in_memory(engine, path, schema)
    with dm.open(path, schema=schema, ledger=None, cap=10**6, engine=engine) as data:
        private = data.grant("alice", epsilon=10**6)
        assert int(private.where("x == 3").count(epsilon=1000)) == 1
        assert int(private.where("x >= 6").count(epsilon=1000)) == 0


STEPS = st.sampled_from(["1", "2", "7", "0.1", "0.3", "2.5", "0.001"])
NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-50, 50).map(float) | st.just(-0.0)
NEAR = st.integers(-40, 400)
LISTS = (st.lists(NUMBERS | st.none(), max_size=20), st.lists(NEAR))


@every_other_engine
@few_and_many(STEPS, st.integers(-30, 30), st.integers(1, 300), *LISTS, few=8, many=60)
def test_numbers_fall_on_the_same_grid_points(
    engine: str, step: str, low: int, points: int, numbers: list[float | None], near: list[int]
) -> None:
    start = Decimal(low) * Decimal(step)
    finer = Decimal(step) / 8 if points % 2 else None
    attribute = Numeric("x", start, start + Decimal(step) * points, Decimal(step), start if low % 3 else "own", finer)
    edges = [float(start + Decimal(step) * place) for place in near]
    beside = [np.nextafter(edge, side) for edge in edges for side in (-np.inf, np.inf)]
    values = [*numbers, *edges, *map(float, beside)]
    schema = Schema("numbers", (attribute,), 1000)
    with tempfile.TemporaryDirectory() as folder:
        as_double, as_text = Path(folder) / "d.parquet", Path(folder) / "t.parquet"
        pq.write_table(pa.table({"x": pa.array(values, pa.float64())}), as_double)
        texts = [None if value is None else repr(value) for value in values]
        pq.write_table(pa.table({"x": pa.array(texts, pa.string())}), as_text)
        assert_codes_as_in_memory(engine, as_double, schema)
        assert_codes_as_in_memory(engine, as_text, schema)


@every_other_engine
@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, None, -5, 2**31 - 1], pa.int32()),
        pa.array([1, 2, None, 2**63, 2**64 - 1], pa.uint64()),
        pa.array([True, False, None], pa.bool_()),
        pa.array([1.0, 1.5, float("nan"), float("inf"), None, -0.0, 1e300], pa.float64()),
        pa.array([1.0, 0.1, 16777217.0], pa.float32()),
        pa.array(["1", "1.0", " 1", "True", "x'; DROP TABLE rows_of_files; --", "", None, "é", "+-1"], pa.string()),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_of_every_plain_type_have_the_same_codes_as_categories_and_as_numbers(
    tmp_path: Path, column: pa.Array, engine: str
) -> None:
    path = tmp_path / "typed.parquet"
    pq.write_table(pa.table({"x": column}), path)
    texts = ("1", "1.0", "1.5", "0", "2", "True", "False", "inf", "x'; DROP TABLE rows_of_files; --", "é", "other")
    for other, missing in (("other", "other"), ("other", "own"), ("other", "0"), (None, "own"), (None, "drop")):
        assert_codes_as_in_memory(engine, path, Schema("texts", (Nominal("x", texts, other, missing=missing),), 100))
    assert_codes_as_in_memory(
        engine, path, Schema("numbers", (Numeric("x", Decimal(0), Decimal(3), Decimal("0.5"), Decimal(1)),), 100)
    )


def numbers_in(table: EncodedTable | DuckDBFiles) -> list[list[int]]:
    """The values and the codes of every row."""
    if isinstance(table, EncodedTable):
        return [column.tolist() for columns in (table.values, table.codes) for column in columns.values()]
    found = table.source.cursor().execute(table.coded.sql(dialect="duckdb")).fetchnumpy()
    return [found[name].tolist() for names in (value_names, code_names) for name in names(table.schema).values()]


@few_and_many(small_tables(), few=12, many=100)
def test_the_same_row_has_the_same_values_and_codes_from_every_reader_in_every_engine(small: Small) -> None:
    single = tuple(attribute for attribute in small.schema.attributes if not isinstance(attribute, ItemList))
    if not single:
        return
    schema = replace(small.schema, attributes=single)
    table = pa.table({one.name: arrow_column(one, small.table[one.name]) for one in single})
    expected = numbers_in(encode(open_source(small.table), schema))
    with tempfile.TemporaryDirectory() as folder:
        in_parquet, in_text = f"{folder}/rows.parquet", f"{folder}/rows.csv"
        pq.write_table(table, in_parquet)
        with open(in_text, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table.column_names)
            writer.writerows([text_of_value(value) for value in row.values()] for row in table.to_pylist())
        readers = (table, table.to_pandas(), pl.from_arrow(table), table.to_pydict(), in_parquet, in_text)
        for reader in readers:
            assert numbers_in(encode(open_source(reader), schema)) == expected, type(reader)
        for file_name in (in_parquet, in_text):
            assert numbers_in(DuckDBFiles(schema, FileSource(file_name, keep_in_files=True))) == expected, file_name


@pytest.fixture(params=["parquet", "csv"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Patients in three files, one of them with odd values."""
    frame = pd.DataFrame(patients(900))
    frame.loc[5, "ward"] = "nowhere"
    frame.loc[7, "history"] = " flu | asthma||flu\t|unknown| flu"
    for part in range(3):
        rows = frame.iloc[part * 300 : part * 300 + 300]
        name = tmp_path / f"part-{part}.{request.param}"
        rows.to_parquet(name) if request.param == "parquet" else rows.to_csv(name, index=False)
    return str(tmp_path / f"*.{request.param}")


@every_other_engine
def test_a_pattern_of_files_is_one_table(lake: str, engine: str) -> None:
    schema = patients_schema()
    rules = Split(Part("p", (2, 1)), (LEAF, Split(AttributeKey("ward"), (LEAF,) * 6)))
    assert_as_in_memory(engine, lake, schema, Asked((), rules, ((AttributeKey("age"),), (AttributeKey("diagnosis"),), ())))


def test_an_analyst_cannot_tell_the_engines_apart(lake: str, tmp_path: Path) -> None:
    """The same ledger, the same file, the other engine: identical codes, so one root and cached answers."""
    ledger = tmp_path / "ledger.db"
    answers = []
    for engine in ENGINES:
        with dm.open(lake, schema=patients_schema(), ledger=ledger, cap=10, engine=engine, memory_limit=None) as data:
            private = data.grant("alice", epsilon=10)
            train, _ = private.split(test="0.3")
            adults = train.where("age >= 40 and history contains flu")
            answers.append((adults.histogram("ward", epsilon=1).to_dict(), private.remaining()))
    assert all(answer == answers[0] for answer in answers)


@every_other_engine
def test_a_text_that_looks_like_sql_is_a_text(lake: str, engine: str) -> None:
    poison = "a'\"; DROP VIEW rows_of_files; --"
    schema = Schema(
        "poison",
        (Nominal("ward", (poison, "north"), "north", missing="north"), ItemList("history", (poison,), 3, "';")),
        1000,
    )
    assert_codes_as_in_memory(engine, lake, schema)


@every_other_engine
@pytest.mark.parametrize("wild", [wild for wild in ZOO if wild.rows], ids=lambda wild: wild.name)
@pytest.mark.filterwarnings("ignore::dpmine.base.errors.OwnerWarning")
def test_files_from_the_wild_have_the_same_codes(wild: Wild, tmp_path: Path, engine: str) -> None:
    assert_codes_as_in_memory(engine, wild.written(tmp_path), wild.schema)


@every_engine()
def test_files_of_other_types_are_not_one_table(tmp_path: Path, engine: str) -> None:
    """Read as a common type, "7" would become "7.0" because of another file's rows."""
    pq.write_table(pa.table({"x": pa.array([7.0, None])}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": pa.array(["7", "y"])}), tmp_path / "1.parquet")
    with pytest.raises(dm.DataError, match="same columns of the same types"):
        dm.open(
            str(tmp_path / "*.parquet"),
            schema=Schema("t", (Nominal("x", ("7",), "7", missing="7"),), 10),
            ledger=None,
            cap=1,
            engine=engine,
        )


@every_engine()
def test_a_value_that_cannot_be_read_fails_when_the_table_is_opened(tmp_path: Path, engine: str) -> None:
    column = pa.array([b"a", b"\xff\xfe secret"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"x": column}), tmp_path / "bad.parquet")
    with pytest.raises(dm.DataError, match="cannot be read") as refused:
        dm.open(
            tmp_path / "bad.parquet",
            schema=Schema("t", (Nominal("x", ("a",), "a", missing="a"),), 10),
            ledger=None,
            cap=1,
            engine=engine,
        )
    assert "secret" not in str(refused.value)
