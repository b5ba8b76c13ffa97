"""The DuckDB engine is held to the memory engine's integers, over files of every kind and every question."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_strategies import Asked, Small, tables_with_questions
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmine as dm
from dpmine.datasets import patients, patients_schema
from dpmine.engines.duckdb import DuckDBEngine, DuckDBTable
from dpmine.engines.encoding import encode
from dpmine.engines.memory import MemoryEngine
from dpmine.expressions import AttributeKey, Group, Groups, Part
from dpmine.frames import FileSource, open_source
from dpmine.queries import LEAF, Split
from dpmine.resolution import resolve_cells, resolve_key
from dpmine.schema import ItemList, Nominal, Numeric, Schema

SPLIT_KEY = bytes(range(32))
Engines = tuple[MemoryEngine, DuckDBEngine]


def engines(path: Path | str, schema: Schema) -> Engines:
    in_files = DuckDBTable(schema, FileSource(path, keep_in_files=True))
    return MemoryEngine(encode(open_source(path), schema), SPLIT_KEY), DuckDBEngine(in_files, SPLIT_KEY)


def assert_same(pair: Engines, schema: Schema, question: Asked) -> None:
    cells = resolve_cells(question.steps, question.rules, schema)
    groups = [tuple(resolve_key(key, schema) for key in group) for group in question.groups]
    memory, in_files = pair
    for expected, counts in zip(memory.counts(cells, groups), in_files.counts(cells, groups), strict=True):
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts, expected)


def assert_codes_same(path: Path | str, schema: Schema) -> None:
    """Every attribute's histogram, which is every code's count."""
    groups = tuple((AttributeKey(a.name),) for a in schema.attributes if not isinstance(a, ItemList))
    assert_same(engines(path, schema), schema, Asked((), LEAF, groups))


def arrow_column(attribute: Any, values: list[Any]) -> pa.Array:
    if isinstance(attribute, Numeric):
        return pa.array([open_source({"x": [value]}).numbers("x")[0] for value in values], pa.float64())
    if isinstance(attribute, Nominal):
        return pa.array(open_source({"x": values}).texts("x"), pa.string())
    return pa.array(open_source({"x": values}).lists("x", attribute.separator), pa.list_(pa.string()))


def write_parquet(small: Small, path: Path) -> None:
    columns = {a.name: arrow_column(a, small.table[a.name]) for a in small.schema.attributes}
    pq.write_table(pa.table(columns), path)


@given(tables_with_questions)
@settings(max_examples=60)
def test_every_question_has_the_memory_engines_integers(drawn: tuple[Small, list[Asked]]) -> None:
    small, questions = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.parquet"
        write_parquet(small, path)
        pair = engines(path, small.schema)
        for question in [*questions, *questions]:  # the second time from the cache
            assert_same(pair, small.schema, question)


@pytest.mark.parametrize("others", [0.0, 1.0, 5.0])
def test_nan_among_equal_numbers_is_read_as_missing(tmp_path: Path, others: float) -> None:
    """Statistics of Parquet files leave NaN out; an optimizer that trusts them would read the NaN as the largest number."""
    path = tmp_path / "nan.parquet"
    pq.write_table(pa.table({"x": pa.array([others] * 6 + [float("nan")], pa.float64())}), path)
    schema = Schema("nan", (Numeric("x", Decimal(0), Decimal(7), Decimal(1), Decimal(3)),), 10)
    assert_codes_same(path, schema)
    with dm.open(path, schema=schema, ledger=None, cap=10**6, engine="duckdb") as data:
        private = data.grant("alice", epsilon=10**6)
        assert int(private.where("x == 3").count(epsilon=1000)) == 1
        assert int(private.where("x >= 6").count(epsilon=1000)) == 0


STEPS = st.sampled_from(["1", "2", "7", "0.1", "0.3", "2.5", "0.001"])
NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-50, 50).map(float) | st.just(-0.0)
NEAR = st.integers(-40, 400)


@given(STEPS, st.integers(-30, 30), st.integers(1, 300), st.lists(NUMBERS | st.none(), max_size=20), st.lists(NEAR))
@settings(max_examples=60)
def test_numbers_fall_on_the_same_grid_points(
    step: str, low: int, points: int, numbers: list[float | None], near: list[int]
) -> None:
    start = Decimal(low) * Decimal(step)
    attribute = Numeric("x", start, start + Decimal(step) * points, Decimal(step), start)
    edges = [float(start + Decimal(step) * place) for place in near]
    beside = [np.nextafter(edge, side) for edge in edges for side in (-np.inf, np.inf)]
    values = [*numbers, *edges, *map(float, beside)]
    schema = Schema("numbers", (attribute,), 1000)
    with tempfile.TemporaryDirectory() as folder:
        as_double, as_text = Path(folder) / "d.parquet", Path(folder) / "t.parquet"
        pq.write_table(pa.table({"x": pa.array(values, pa.float64())}), as_double)
        texts = [None if value is None else repr(value) for value in values]
        pq.write_table(pa.table({"x": pa.array(texts, pa.string())}), as_text)
        assert_codes_same(as_double, schema)
        assert_codes_same(as_text, schema)


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
    tmp_path: Path, column: pa.Array
) -> None:
    path = tmp_path / "typed.parquet"
    pq.write_table(pa.table({"x": column}), path)
    texts = ("1", "1.0", "1.5", "0", "2", "True", "False", "inf", "x'; DROP TABLE rows_of_files; --", "é", "other")
    assert_codes_same(path, Schema("texts", (Nominal("x", texts, "other"),), 100))
    assert_codes_same(path, Schema("numbers", (Numeric("x", Decimal(0), Decimal(3), Decimal("0.5"), Decimal(1)),), 100))


def test_a_type_that_sql_would_write_otherwise_is_refused_when_the_table_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "dates.parquet"
    pq.write_table(pa.table({"x": pa.array([0], pa.timestamp("us"))}), path)
    with pytest.raises(dm.DataError, match="cannot read column 'x'"):
        dm.open(path, schema=Schema("dates", (Nominal("x", ("a",), "a"),), 10), ledger=None, cap=1, engine="duckdb")


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


def test_a_pattern_of_files_is_one_table(lake: str) -> None:
    schema = patients_schema()
    rules = Split(Part("p", (2, 1)), (LEAF, Split(AttributeKey("ward"), (LEAF,) * 6)))
    assert_same(engines(lake, schema), schema, Asked((), rules, ((AttributeKey("age"),), (AttributeKey("diagnosis"),), ())))


def test_an_analyst_cannot_tell_the_engines_apart(lake: str, tmp_path: Path) -> None:
    """The same ledger, the same file, the other engine: identical codes, so one root and cached answers."""
    ledger = tmp_path / "ledger.db"
    answers = []
    for engine in ("memory", "duckdb"):
        with dm.open(lake, schema=patients_schema(), ledger=ledger, cap=10, engine=engine, memory_limit=None) as data:
            private = data.grant("alice", epsilon=10)
            train, _ = private.split(test="0.3")
            adults = train.where("age >= 40 and history contains flu")
            answers.append((adults.histogram("ward", epsilon=1).to_dict(), private.remaining()))
    assert answers[0] == answers[1]


def test_no_text_of_owner_or_analyst_becomes_sql(lake: str) -> None:
    poison = "a'\"; DROP VIEW rows_of_files; --"
    schema = Schema("poison", (Nominal("ward", (poison, "north"), "north"), ItemList("history", (poison,), 3, "';")), 1000)
    table = DuckDBTable(schema, FileSource(lake, keep_in_files=True))
    text = table.coded.sql(dialect="duckdb")
    assert "DROP" not in text
    assert "';" not in text
    assert_codes_same(lake, schema)


def test_what_the_duckdb_engine_cannot_open_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for table, engine, message in (
        ({"a": [1]}, "duckdb", "reads files"),
        (str(tmp_path / "none*.parquet"), "duckdb", "There is no file"),
        ({"a": [1]}, "spark", "engine must be"),
    ):
        with pytest.raises(dm.RequestError, match=message):
            dm.open(table, schema=patients_schema(), ledger=None, cap=1, engine=engine)


@pytest.mark.parametrize("size", [2, 100, 200, 255, 256, 257, 300])
def test_no_code_is_too_large_to_be_counted_from_any_cell_on(tmp_path: Path, size: int) -> None:
    """In 8 bits, code + first cell fails for large codes: whether one row is there would show as an error."""
    schema = Schema(
        "wide",
        (
            Nominal("zip", tuple(f"z{number}" for number in range(size)), "z0"),
            Nominal("ill", tuple(f"i{number}" for number in range(4)), "i0"),
        ),
        10_000,
    )
    rows = [(f"z{number * 7 % size}", f"i{number % 4}") for number in range(1000)]
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"zip": [row[0] for row in rows], "ill": [row[1] for row in rows]}), path)
    pair = engines(path, schema)
    by_zip = Split(AttributeKey("zip"), (LEAF,) * size)
    assert_same(pair, schema, Asked((), Split(AttributeKey("ill"), (by_zip,) * 4), ((),)))
    every_other = Groups("zip", (Group("even", tuple(f"z{number}" for number in range(0, size, 2))),))
    assert_same(pair, schema, Asked((), LEAF, ((every_other,), (every_other, AttributeKey("ill")))))


def test_files_that_changed_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x\n" + "a\n" * 1000)
    schema = Schema("t", (Nominal("x", ("a", "b"), "a"),), 10_000)
    with dm.open(path, schema=schema, ledger=None, cap=1000, engine="duckdb") as data:
        private = data.grant("alice", epsilon=1000)
        cells = private.partition("x")
        cells["a"].count(epsilon=100)
        path.write_text("x\n" + "b\n" * 1000)
        with pytest.raises(dm.DataError, match="changed since it was opened"):
            cells["b"].count(epsilon=100)
        assert str(private.remaining()) == "900"


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_files_of_other_types_are_not_one_table(tmp_path: Path, engine: str) -> None:
    """Read as a common type, "7" would become "7.0" because of another file's rows."""
    pq.write_table(pa.table({"x": pa.array([7.0, None])}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": pa.array(["7", "y"])}), tmp_path / "1.parquet")
    with pytest.raises(dm.DataError, match="same columns of the same types"):
        dm.open(
            str(tmp_path / "*.parquet"),
            schema=Schema("t", (Nominal("x", ("7",), "7"),), 10),
            ledger=None,
            cap=1,
            engine=engine,
        )


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_value_that_cannot_be_read_fails_when_the_table_is_opened(tmp_path: Path, engine: str) -> None:
    column = pa.array([b"a", b"\xff\xfe secret"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"x": column}), tmp_path / "bad.parquet")
    with pytest.raises(dm.DataError, match="cannot be read") as refused:
        dm.open(
            tmp_path / "bad.parquet", schema=Schema("t", (Nominal("x", ("a",), "a"),), 10), ledger=None, cap=1, engine=engine
        )
    assert "secret" not in str(refused.value)
