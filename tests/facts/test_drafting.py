"""Drafting and checking schemas: helpers for the owner that look at the data, and say so."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import strategies as st
from support.twins import few_and_many

import dpmine as dm
from dpmine.base.errors import DataError, DpmineError, SchemaError
from dpmine.datasets import patients, patients_schema
from dpmine.facts.checking import check_table
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema

RECORDS = patients(600)
KINDS = ["dict", "pandas", "polars", "arrow", "csv", "csv.gz", "parquet"]


def table_of(kind: str, folder: Path, records: dict[str, list[Any]] = RECORDS) -> Any:
    """The same records as a frame or file of that kind."""
    arrow = pa.table(records)
    if kind == "parquet":
        pyarrow.parquet.write_table(arrow, folder / "t.parquet", row_group_size=100)
    elif kind.startswith("csv"):
        pd.DataFrame(records).to_csv(folder / f"t.{kind}", index=False)
    frames = {"dict": records, "arrow": arrow, "pandas": pd.DataFrame(records), "polars": pl.DataFrame(records)}
    return frames.get(kind, folder / f"t.{kind}")


# -- drafts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_draft_of_the_patients_is_sensible_whatever_holds_them(kind: str, tmp_path: Path) -> None:
    schema = Schema.draft(table_of(kind, tmp_path), name="patients")
    assert schema == Schema.draft(RECORDS, name="patients")
    assert schema.drop == ("patient_id",)
    assert schema.class_attribute == "diagnosis"
    assert schema.rows_at_most == 1000
    age, ward, history = (schema.attribute(name) for name in ("age", "ward", "history"))
    assert isinstance(age, Numeric)
    assert (age.low, age.high, age.step, age.gap) == (0, 120, 1, "own")  # what everybody knows of ages
    assert isinstance(ward, Nominal)
    assert ward.categories == tuple(sorted(set(RECORDS["ward"])))
    assert (ward.other, ward.gap) == (None, "own")
    assert isinstance(history, ItemList)
    assert set(history.items) == set(patients_schema().attribute("history").items)  # type: ignore[union-attr]
    assert history.at_most == 6


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_fits_its_own_draft(kind: str, tmp_path: Path) -> None:
    table = table_of(kind, tmp_path)
    report = check_table(table, Schema.draft(table))
    assert report.rows == len(RECORDS["age"])
    assert all(not any(column.changes.values()) for column in report.columns)
    assert report.unread == ("patient_id",)


def test_a_draft_says_in_its_header_its_flag_and_every_statement_that_it_looked_at_the_data() -> None:
    draft = Schema.draft(RECORDS)
    assert draft.drafted
    toml = draft.to_toml()
    assert toml.startswith("# DRAFT. This file was proposed by looking at the data")
    assert "drafted = true" in toml
    assert Schema.from_toml(toml).drafted
    with dm.open(RECORDS, schema=draft, cap=1) as data:
        private = data.grant("alice", epsilon=1)
        private.count(epsilon=0.1)
        for statement in (private.statement(), data.statement()):
            assert "drafted by looking at the data, outside this budget" in statement.guarantee
            assert statement.guarantee in str(statement)


def test_a_reviewed_schema_no_longer_says_so() -> None:
    toml = Schema.draft(RECORDS).to_toml().replace("drafted = true\n", "")
    reviewed = Schema.from_toml(toml)
    assert not reviewed.drafted
    assert "# DRAFT" not in reviewed.to_toml()
    with dm.open(RECORDS, schema=reviewed, cap=1) as data:
        assert "drafted" not in str(data.statement())


def test_a_draft_is_named_after_its_file(tmp_path: Path) -> None:
    for file, name in (("hospital.csv", "hospital"), ("my data (2).csv", "my-data--2-"), (".hidden.csv", "table")):
        (tmp_path / file).write_text("ward\nnorth\n")
        assert Schema.draft(tmp_path / file).name == name
        assert Schema.draft(str(tmp_path / file), name="other").name == "other"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3] * 10, Nominal("x", ("1", "2", "3"))),
        ([10, 9, 100] * 10, Nominal("x", ("9", "10", "100"))),
        ([0, 1] * 10, Nominal("x", ("0", "1"))),
        (["0.0", "1.0"] * 10, Nominal("x", ("0.0", "1.0"))),
        (["a", "?", "b"], Nominal("x", ("?", "a", "b"), "?")),
        (["a", "Unknown", None], Nominal("x", ("Unknown", "a"), "Unknown")),
        ([True, False, None], Nominal("x", ("False", "True"))),
        ([None, None], None),
        (["(missing)", None], None),
        ([0, 0, 0, 1, 1, 2, 3, 4], Numeric("x", Decimal(0), Decimal(4), Decimal(1))),
        (list(range(100)), Numeric("x", Decimal(0), Decimal(100), Decimal(1))),
        ([0.5, 1.5], Numeric("x", Decimal("0.5"), Decimal("1.5"), Decimal("0.1"))),
        ([0.0, 1000.5] * 30, Numeric("x", Decimal(0), Decimal("1100"), Decimal(10), resolution=Decimal("0.1"))),
        ([*range(100), math.inf, "n/a"], Numeric("x", Decimal(0), Decimal(100), Decimal(1))),
        (["1.5", "x"], Nominal("x", ("1.5", "x"))),
        ([["a", "b"], ["b"], []], ItemList("x", ("a", "b"), 2)),
        (["a|b", "c|a", "b"], ItemList("x", ("a", "b", "c"), 2)),
        ([f"name {n}" for n in range(200)], None),
    ],
)
def test_a_column_is_drafted_by_what_it_holds(values: list[Any], expected: object) -> None:
    schema = Schema.draft({"x": values, "class": ["yes"] * len(values)})
    assert ("x" in schema.drop) == (expected is None)
    if expected is not None:
        assert schema.attribute("x").column == expected.column  # type: ignore[attr-defined]
        assert Schema.from_toml(schema.to_toml()).attribute("x").form() == schema.attribute("x").form()
        assert schema.attribute("x").form() == expected.form()  # type: ignore[attr-defined]
    assert schema.class_attribute == "class"


def test_a_numeric_identifier_is_dropped() -> None:
    assert Schema.draft({"row_id": list(range(50)), "age": list(range(50))}).drop == ("row_id",)


def test_a_table_without_any_usable_column_is_refused() -> None:
    for table in ({"x": [f"name {n}" for n in range(200)]}, {"x": []}, {}):
        with pytest.raises(SchemaError, match="No column"):
            Schema.draft(table)


cells = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["1e13", "0.001", "[a", "a|b"])
)


@few_and_many(
    st.lists(cells, max_size=30)
    | st.lists(st.integers(-(10**15), 10**15) | st.floats(-1e15, 1e15), min_size=11, max_size=30),
    few=50,
    many=200,
)
def test_any_column_can_be_drafted_and_the_draft_comes_back_from_its_toml(values: list[Any]) -> None:
    table = {"x": values, "z": ["a"] * len(values)} if values else {"z": ["a"]}
    schema = Schema.draft(table)
    assert Schema.from_toml(schema.to_toml()) == schema
    huge = any(
        isinstance(value, (int, float)) and abs(value) >= 1e14 for value in values
    )  # clamped, as no bounds reach there
    for column in check_table(table, schema).columns:
        if isinstance(schema.attribute(column.attribute), (Nominal, Numeric)) and not huge:
            assert not any(count for what, count in column.changes.items() if "missing" not in what)


def test_a_draft_of_adult_is_sensible_and_fits(data_folder: Path) -> None:
    schema = Schema.draft(data_folder / "adult.csv.gz")
    assert schema.name == "adult"
    assert schema.class_attribute == "income"
    assert schema.rows_at_most == 50_000
    assert not schema.drop
    numeric = {attribute.name for attribute in schema.attributes if isinstance(attribute, Numeric)}
    assert numeric == {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"}
    assert schema.attribute("workclass").other == "?"  # type: ignore[union-attr]
    age = schema.attribute("age")
    assert isinstance(age, Numeric)
    assert (age.low, age.high, age.step) == (0, 120, 1)
    assert {item.name for item in schema.attributes if isinstance(item, Numeric) and item.scale == "log"} == {
        "capital_gain",
        "capital_loss",
    }
    report = check_table(data_folder / "adult.csv.gz", schema)
    assert report.rows == 48_842
    assert all(not any(column.changes.values()) for column in report.columns)
    from_parquet = Schema.draft(data_folder / "adult.parquet")
    assert from_parquet.attributes == schema.attributes[: len(from_parquet.attributes)]


def test_the_taxonomies_of_adult_are_read_from_nested_json(data_folder: Path) -> None:
    trees = json.loads((data_folder / "adult_taxonomies.json").read_text())
    for name, tree in trees.items():
        ((root, inner),) = tree.items()
        node = TaxonomyNode.parse(root, inner)
        schema = Schema("t", (Nominal(name, node.leaves(), node.leaves()[0], node, missing=node.leaves()[0]),), 10)
        assert Schema.from_toml(schema.to_toml()) == schema
        subsets = dm.one_versus_rest(schema, name).subsets
        assert set(node.leaves()) <= {members[0] for members in subsets if len(members) == 1}
        assert all(len(members) < len(node.leaves()) for members in subsets)


# -- checks ------------------------------------------------------------------------------------------------------------

SCHEMA = Schema(
    "checked",
    (
        Nominal("ward", ("north", "south"), "south", missing="south"),
        Numeric("age", Decimal(0), Decimal(10), Decimal(1), Decimal(5)),
        ItemList("history", ("flu", "asthma"), 2),
    ),
    3,
)
ROWS: dict[str, list[Any]] = {
    "ward": ["north", "west", None, "", "south"],
    "age": ["-1", "11", "", "x", "10.5"],
    "history": ["flu|gout", "flu|asthma|flu", "", "gout|gout|flu", "asthma"],
    "name": ["a", "b", "c", "d", "e"],
}


@pytest.mark.parametrize("kind", ["dict", "csv", "polars", "parquet"])
def test_the_report_counts_what_the_schema_would_change(kind: str, tmp_path: Path) -> None:
    report = check_table(table_of(kind, tmp_path, ROWS), SCHEMA)
    form = report.form()
    empty = 2 if kind == "csv" else 1  # in a CSV file an empty field is missing
    assert form["owner_only"] is True
    assert (form["rows"], form["rows_at_most"]) == (5, 3)
    assert form["attributes"]["ward"] == {"missing, sent to 'south'": empty, "not listed, sent to 'south'": 3 - empty}
    assert form["attributes"]["age"] == {
        "missing or no number, set to 5": 2,
        "below 0, clamped": 1,
        "above 10, clamped": 2,
    }
    assert form["attributes"]["history"] == {"unknown items, left out": 3, "rows with more than 2 items, cut": 1}
    assert form["unread_columns"] == ["name"]
    text = str(report)
    assert text.startswith("For the owner only")
    assert "More rows than the schema allows" in text
    assert "Never read, because the schema does not describe them: name." in text
    assert json.loads(json.dumps(form)) == form


def test_a_table_that_fits_says_so() -> None:
    report = check_table({"ward": ["north"], "age": [3], "history": [["flu"]]}, SCHEMA)
    assert str(report).count(": fits") == 3
    assert "More rows" not in str(report)


def test_a_table_without_a_described_column_is_refused() -> None:
    with pytest.raises(DataError, match="no column 'age', which the schema describes"):
        check_table({"ward": ["north"], "history": ["flu"]}, SCHEMA)
    with pytest.raises(DataError, match="no column 'age', which the schema describes"):
        dm.open({"ward": ["north"], "history": ["flu"]}, schema=SCHEMA, cap=1)


@pytest.mark.parametrize("table", [None, 3, [1, 2], object(), pl.LazyFrame({"a": [1]}), pd.Series([1])])
def test_what_is_no_table_is_refused_in_one_sentence(table: object) -> None:
    with pytest.raises(DataError, match=r"A file path or a pandas, Polars or Arrow frame was expected\. Got"):
        check_table(table, SCHEMA)


def test_columns_of_different_lengths_or_equal_names_are_refused() -> None:
    with pytest.raises(DataError, match="different lengths"):
        check_table({"ward": ["north"], "age": [], "history": []}, SCHEMA)
    with pytest.raises(DataError, match="same name"):
        check_table(pd.DataFrame([[1, 2]], columns=["ward", "ward"]), SCHEMA)


def test_a_file_that_is_no_table_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "text.parquet").write_text("not parquet")
    (tmp_path / "text.csv.gz").write_text("not gzip")
    (tmp_path / "twice.csv").write_text("a,b,a\n1,2,3\n")
    (tmp_path / "sheet.xlsx").write_bytes(b"PK")
    for file in ("missing.csv", "empty.csv", "folder.csv", "text.parquet", "text.csv.gz", "twice.csv", "sheet.xlsx"):
        with pytest.raises(DataError) as refused:
            check_table(tmp_path / file, SCHEMA)
        assert "\n" not in str(refused.value)
        assert file in str(refused.value)
        assert isinstance(refused.value, DpmineError)
