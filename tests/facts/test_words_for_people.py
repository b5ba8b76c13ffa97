"""Descriptions and units of columns: in the schema's file, shown in reports, and nothing follows from them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import done, done_json

import dpmine as dm
from dpmine.base.errors import SchemaError
from dpmine.datasets import patients, patients_schema
from dpmine.facts.schema import Schema
from dpmine.language.keys import AttributeKey, Bins
from dpmine.release.bars import released_bars
from dpmine.release.learning import self_test
from dpmine.report.release_page import release_page
from dpmine.report.words import condition

PLAIN = """
name = "patients"
rows_at_most = 1000

[attributes.age]
kind = "numeric"
low = 0
high = 110

[attributes.ward]
kind = "nominal"
categories = ["north", "south"]

[attributes.history]
kind = "items"
items = ["flu", "asthma"]
at_most = 6
"""
TOLD = (
    PLAIN.replace("low = 0", 'description = "age at admission"\nmeasured_in = "years"\nlow = 0')
    .replace("categories", 'description = "where they lay, [bold]first[/]"\ncategories')
    .replace("items = ", 'description = "earlier\\nillnesses"\nitems = ')
)


def test_words_come_back_from_the_file_for_every_kind() -> None:
    schema = Schema.from_toml(TOLD)
    age, ward, history = schema.attributes
    assert (age.description, age.measured_in, age.title) == ("age at admission", "years", "age (years)")
    assert (ward.measured_in, ward.title) == ("", "ward")
    assert history.description == "earlier\nillnesses"
    back = Schema.from_toml(schema.to_toml())
    assert [item.words for item in back.attributes] == [item.words for item in schema.attributes]
    assert back.to_toml() == schema.to_toml()
    assert schema.to_toml().index("description") < schema.to_toml().index("low")


def test_nothing_follows_from_words() -> None:
    plain, told = Schema.from_toml(PLAIN), Schema.from_toml(TOLD)
    assert plain.fingerprint == told.fingerprint
    assert plain.domain == told.domain
    assert [item.form() for item in plain.attributes] == [item.form() for item in told.attributes]
    assert replace(plain.attributes[0], description="age at admission", measured_in="years") == told.attributes[0]


@pytest.mark.parametrize("value", ["3", "true", "['x']"])
def test_words_are_texts(value: str) -> None:
    with pytest.raises(SchemaError, match="Attribute 'age': 'description' must be text"):
        Schema.from_toml(PLAIN.replace("low = 0", f"description = {value}\nlow = 0"))


def test_conditions_of_trees_name_the_unit() -> None:
    schema = Schema.from_toml(TOLD)
    assert condition(Bins("age", ("40",)), 0, schema) == "age (years) < 40"
    assert condition(AttributeKey("ward"), 0, schema) == "ward is north"


def test_schema_show_tells_what_columns_hold(tmp_path: Path) -> None:
    file = tmp_path / "told.toml"
    file.write_text(TOLD)
    assert done("schema", "show", file).endswith(
        "What columns hold:\n  age (years): age at admission\n  ward: where they lay, [bold]first[/]\n"
        "  history: earlier illnesses\n"
    )
    form = done_json("schema", "show", file)
    assert form["columns"]["age"] == {"description": "age at admission", "measured_in": "years"}
    assert json.dumps(form)


def test_a_releases_page_and_sheet_say_what_columns_hold() -> None:
    words = {"description": "age at <admission>", "measured_in": "years"}
    plain = patients_schema()
    attributes = tuple(replace(item, **words) if item.name == "age" else item for item in plain.attributes)
    with dm.open(patients(200), schema=replace(plain, attributes=attributes), cap=10) as data:
        model = dm.DiffGen(epsilon=1, specialisations=3).fit(data.grant("alice", epsilon=10))
    released = model.release()
    assert words.items() <= model.sheet()["attributes"]["age"].items()
    page = release_page(model.sheet(), released_bars(released), self_test(released, 0))
    assert "age (years)<br>age at &lt;admission&gt;" in page


def test_a_tree_names_units_and_comes_back_with_them() -> None:
    plain = patients_schema()
    attributes = tuple(replace(item, measured_in="years") if item.name == "age" else item for item in plain.attributes)
    schema = replace(plain, attributes=attributes)
    records = patients(500)
    records["diagnosis"] = ["Sick" if age >= 45 else "Healthy" for age in records["age"]]  # type: ignore[operator]
    with dm.open(records, schema=schema, cap=10**6) as data:
        tree = dm.TreeClassifier(epsilon=10**5, max_depth=4).fit(data.grant("alice", epsilon=10**6))
    assert "age (years)" in tree.to_text()
    assert type(tree).from_json(tree.to_json()).to_text() == tree.to_text()
