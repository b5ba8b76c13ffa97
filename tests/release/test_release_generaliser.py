"""Sheets as generalisers: rows that others have come out as the release would make them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from support.mined_tables import schema_of, table_of
from support.opening import HUGE, fitted

import dpmine as dm
from dpmine.datasets import patients, patients_schema
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.release.contingency import ContingencyTable
from dpmine.release.estimator import ReleaseEstimator

SCHEMA = schema_of(lists=True, classes=3)
TABLE = table_of(SCHEMA, 200, 1)
OTHERS = {name: column for name, column in table_of(SCHEMA, 60, 2).items() if name != "past"}
RELEASES: dict[str, Any] = {
    "diffgen": lambda: dm.DiffGen(1, 6),
    "exact": lambda: dm.DiffGen(HUGE, 6),
    "contingency": lambda: ContingencyTable(1, bins=3),
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_sheet_generalises_as_the_release_does(name: str, tmp_path: Path) -> None:
    model: ReleaseEstimator = fitted(RELEASES[name](), TABLE, SCHEMA)
    file = tmp_path / "sheet.json"
    file.write_text(json.dumps(model.sheet()))
    generaliser = dm.Generaliser.load(file)
    expected = model.transform(OTHERS)
    found = generaliser.transform(OTHERS)
    assert found == expected | {"class": OTHERS["class"]}
    assert list(found) == [attribute.name for attribute in SCHEMA.attributes if attribute.name in found]
    without = {column: values for column, values in OTHERS.items() if column != "class"}
    assert generaliser.transform(pd.DataFrame(without)) == expected
    assert generaliser.transform(pl.DataFrame(without)) == expected
    assert dm.Generaliser.load(model.sheet()).transform(without) == expected


def test_unknown_categories_and_numbers_outside_go_where_the_schema_puts_them() -> None:
    schema = patients_schema()
    model = dm.DiffGen(HUGE, 8).fit(patients(500), schema=schema)
    rows = {name: column[:3] for name, column in patients(500).items() if name != "diagnosis"}
    rows |= {"ward": ["no such ward", None, "north"], "age": [-5, 900, None]}
    assert dm.Generaliser.load(model.sheet()).transform(rows) == model.transform(rows)


def test_grids_whose_points_are_no_doubles_come_back() -> None:
    attributes = (
        Numeric("x", Decimal("-0.7"), Decimal("0.9"), Decimal("0.1"), Decimal(0)),
        Numeric("y", Decimal(0), Decimal(1), Decimal("0.0003"), Decimal(0)),
        Nominal("class", ("no", "yes"), "no", missing="no"),
    )
    schema = Schema("fine", attributes, 1000, "class")
    rows = {
        "x": [(place % 17 - 7) / 10 for place in range(90)],
        "y": [place / 90 for place in range(90)],
        "class": ["no", "yes"] * 45,
    }
    model = dm.DiffGen(HUGE, 12).fit(rows, schema=schema)
    assert max(map(len, model.release().value_names().values())) > 3
    assert dm.Generaliser.load(model.sheet()).transform(rows) == model.transform(rows) | {"class": rows["class"]}


def test_the_leaves_of_a_tree_overlap_and_are_refused() -> None:
    """At epsilon 1e5 the tree of these patients splits, and does so differently in different branches."""
    sheet = dm.TreeRelease(100_000).fit(patients(3000), schema=patients_schema()).sheet()
    with pytest.raises(dm.RequestError, match="overlap or leave some out"):
        dm.Generaliser.load(sheet)


def test_what_is_no_sheet_is_refused_in_one_sentence(tmp_path: Path) -> None:
    sheet = fitted(dm.DiffGen(1, 3), TABLE, SCHEMA).sheet()
    numeric = next(name for name, form in sheet["attributes"].items() if form["kind"] == "numeric")
    damaged: list[Any] = [
        {},
        sheet | {"version": 99},
        {name: item for name, item in sheet.items() if name != "schema"},
        sheet | {"schema": "nonsense = ["},
        sheet | {"schema": 3},
        sheet | {"attributes": {"nobody": {"values": []}}},
        sheet | {"attributes": {numeric: {"values": []}}},
        sheet | {"attributes": {numeric: {"values": [{"name": "a", "from": 1e300, "to": 1e301}]}}},
        sheet | {"attributes": {numeric: {"values": [{"name": "a", "from": "x", "to": "y"}]}}},
        sheet | {"attributes": {numeric: {"values": [{"from": 0, "to": 1}]}}},
        sheet | {"attributes": None},
    ]
    for form in damaged:
        with pytest.raises(dm.DpmineError):
            dm.Generaliser.load(form)
    file = tmp_path / "sheet.json"
    for text in ("[]", "{", ""):
        file.write_text(text)
        with pytest.raises(dm.RequestError, match="is not a sheet"):
            dm.Generaliser.load(file)
    with pytest.raises(dm.RequestError, match="There is no file"):
        dm.Generaliser.load(tmp_path / "nothing.json")
