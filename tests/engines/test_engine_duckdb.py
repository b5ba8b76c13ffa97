"""What is DuckDB's own: files that it refuses, files that change under it, and SQL without anybody's text."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmine as dm
from dpmine.datasets import patients_schema
from dpmine.engines.sql.duckdb import DuckDBFiles
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource


def test_no_text_of_owner_or_analyst_becomes_sql(tmp_path: Path) -> None:
    poison = "a'\"; DROP VIEW rows_of_files; --"
    schema = Schema(
        "poison",
        (Nominal("ward", (poison, "north"), "north", missing="north"), ItemList("history", (poison,), 3, "';")),
        1000,
    )
    pq.write_table(pa.table({"ward": ["north", poison], "history": ["a", poison]}), tmp_path / "poison.parquet")
    text = DuckDBFiles(schema, FileSource(tmp_path / "poison.parquet", keep_in_files=True)).coded.sql(dialect="duckdb")
    assert "DROP" not in text
    assert "';" not in text


def test_a_type_that_sql_would_write_otherwise_is_refused_when_the_table_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "structs.parquet"
    pq.write_table(pa.table({"x": pa.array([{"a": 1}])}), path)
    with pytest.raises(dm.DataError, match="cannot read column 'x'"):
        dm.open(
            path,
            schema=Schema("structs", (Nominal("x", ("a",), "a", missing="a"),), 10),
            ledger=None,
            cap=1,
            engine="duckdb",
        )


def test_what_the_duckdb_engine_cannot_open_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for table, engine, message in (
        ({"a": [1]}, "duckdb", "reads files"),
        (str(tmp_path / "none*.parquet"), "duckdb", "There is no file"),
        ({"a": [1]}, "spark", "engine must be"),
    ):
        with pytest.raises(dm.RequestError, match=message):
            dm.open(table, schema=patients_schema(), ledger=None, cap=1, engine=engine)


def test_files_that_changed_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x\n" + "a\n" * 1000)
    schema = Schema("t", (Nominal("x", ("a", "b"), "a", missing="a"),), 10_000)
    with dm.open(path, schema=schema, ledger=None, cap=1000, engine="duckdb") as data:
        private = data.grant("alice", epsilon=1000)
        cells = private.partition("x")
        cells["a"].count(epsilon=100)
        path.write_text("x\n" + "b\n" * 1000)
        with pytest.raises(dm.DataError, match="changed since it was opened"):
            cells["b"].count(epsilon=100)
        assert str(private.remaining()) == "900"
