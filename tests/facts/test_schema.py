"""The schema: one TOML file both ways, and one clear sentence for every mistake in it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import assert_one_sentence
from support.schema_strategies import schemas
from support.twins import few_and_many

import dpmine as dm
from dpmine.base.errors import ExpressionError, SchemaError
from dpmine.codes.domain import MOST_ROWS
from dpmine.datasets import patients_schema
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import MOST_CATEGORIES, Nominal
from dpmine.facts.kinds.numeric import MOST_GRID_POINTS, Numeric
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema

PATIENTS = """
name = "patients"
rows_at_most = 1000
class = "ward"
drop = ["patient_id"]

[attributes.ward]
kind = "nominal"
categories = ["north", "south", "other"]

[attributes.age]
kind = "numeric"
low = 0
high = 110

[attributes.history]
kind = "items"
items = ["flu", "asthma"]
at_most = 6
"""


def with_lines(*lines: str, instead_of: str = "") -> str:
    """The patients' TOML with one line replaced, or with lines added at the top."""
    added = "\n".join(lines)
    if not instead_of:
        return added + "\n" + PATIENTS
    assert PATIENTS.count(instead_of + "\n") == 1
    return PATIENTS.replace(instead_of + "\n", added + "\n")


# -- both ways ---------------------------------------------------------------------------------------------------------


@few_and_many(schemas(), few=60, many=250)
def test_a_schema_comes_back_from_its_toml(schema: Schema) -> None:
    back = Schema.from_toml(schema.to_toml())
    assert back == schema
    assert back.fingerprint == schema.fingerprint
    assert back.to_toml() == schema.to_toml()


def test_a_schema_comes_back_from_its_file(tmp_path: Path) -> None:
    schema = patients_schema()
    file = tmp_path / "patients.toml"
    file.write_text(schema.to_toml(), encoding="utf-8")
    assert Schema.load(file) == Schema.load(str(file)) == Schema.load(schema) == schema


def test_what_is_left_out_of_the_toml_has_a_documented_default() -> None:
    schema = Schema.from_toml(PATIENTS)
    ward, age, history = schema.attributes
    assert ward == Nominal(
        "ward", ("north", "south", "other"), other=None, missing="drop"
    )  # the class has no gaps of its own
    assert age == Numeric("age", Decimal(0), Decimal(110), step=Decimal(1), missing="own", resolution=Decimal(1))
    assert history == ItemList("history", ("flu", "asthma"), 6, separator="|")
    assert (schema.unit.name, schema.drafted, schema.class_attribute, schema.drop) == ("row", False, "ward", ("patient_id",))
    assert schema.class_labels == ("north", "south", "other")
    assert schema.rows_per_unit == 1


def test_numbers_in_toml_are_read_as_decimals_and_not_as_doubles() -> None:
    schema = Schema.from_toml(with_lines("low = 0.1", "step = 0.1", instead_of="low = 0"))
    (age,) = [attribute for attribute in schema.attributes if isinstance(attribute, Numeric)]
    assert (age.low, age.step) == (Decimal("0.1"), Decimal("0.1"))
    assert age.label(2) == "0.3"


def test_the_fingerprint_follows_the_meaning_of_the_codes_only() -> None:
    base = Schema.from_toml(PATIENTS)
    same = ["drafted = true", 'unit = "row"']
    assert all(Schema.from_toml(with_lines(line)).fingerprint == base.fingerprint for line in same)
    assert Schema.from_toml(with_lines("low = 0.0", instead_of="low = 0")).fingerprint == base.fingerprint
    assert Schema.from_toml(with_lines("low = 0", "resolution = 1.0", instead_of="low = 0")).fingerprint == base.fingerprint
    assert Schema.from_toml(with_lines("low = 0", "missing = 'own'", instead_of="low = 0")).fingerprint == base.fingerprint
    no_class = PATIENTS.replace('class = "ward"\n', "").replace('"other"]', '"other"]\nmissing = "drop"')
    assert Schema.from_toml(no_class).fingerprint == base.fingerprint
    others = [
        PATIENTS.replace("high = 110", "high = 111"),
        PATIENTS.replace("high = 110", "high = 110\nmissing = 3"),
        PATIENTS.replace("high = 110", "high = 110\nmissing = 'drop'"),
        PATIENTS.replace("high = 110", "high = 110\nresolution = 0.5"),
        PATIENTS.replace("high = 110", "high = 110\nstep = 10"),
        PATIENTS.replace("high = 110", "high = 110\nedges = [18, 65]"),
        PATIENTS.replace("high = 110", "high = 110\nedges = [18, 66]"),
        PATIENTS.replace("high = 110", "high = 110\nscale = 'log'"),
        PATIENTS.replace("at_most = 6", "at_most = 6\n[attributes.x]\nkind = 'nominal'\ncategories = ['a']"),
        PATIENTS.replace("at_most = 6", "at_most = 6\n[attributes.x]\nkind = 'nominal'\ncategories = ['a']\nother = 'a'"),
        PATIENTS.replace("at_most = 6", "at_most = 6\n[attributes.x]\nkind = 'nominal'\ncategories = ['a']\nmissing = 'a'"),
        PATIENTS.replace('["north", "south", "other"]', '["south", "north", "other"]'),
        PATIENTS.replace('["north", "south", "other"]', '["north", "south", "other"]\nother = "north"'),
        PATIENTS.replace("at_most = 6", "at_most = 7"),
        PATIENTS.replace("[attributes.age]", "[attributes.years]"),
    ]
    assert len({base.fingerprint, *(Schema.from_toml(text).fingerprint for text in others)}) == len(others) + 1


# -- taxonomies --------------------------------------------------------------------------------------------------------


def taxonomy_of(toml: str) -> TaxonomyNode:
    attribute = Schema.from_toml(PATIENTS.replace("[attributes.age]", f"{toml}\n[attributes.age]")).attribute("ward")
    assert isinstance(attribute, Nominal)
    assert attribute.taxonomy is not None
    return attribute.taxonomy


def test_a_taxonomy_is_read_from_nested_tables_and_lists() -> None:
    expected = TaxonomyNode(
        "any",
        (
            TaxonomyNode("cold", (TaxonomyNode("north"),)),
            TaxonomyNode("warm", (TaxonomyNode("south"), TaxonomyNode("other"))),
        ),
    )
    assert taxonomy_of('[attributes.ward.taxonomy.any]\ncold = ["north"]\nwarm = ["south", "other"]') == expected
    as_tables = "[attributes.ward.taxonomy.any.cold.north]\n[attributes.ward.taxonomy.any.warm.south]\n"
    assert taxonomy_of(as_tables + "[attributes.ward.taxonomy.any.warm.other]") == expected
    mixed = "[attributes.ward.taxonomy.any]\nnorth = []\n[attributes.ward.taxonomy.any.warm]\nsouth = {}\nother = {}"
    found = taxonomy_of(mixed)
    assert found.leaves() == ("north", "south", "other")
    assert [node.name for node in found.nodes()] == ["any", "north", "warm", "south", "other"]


def test_a_taxonomy_in_python_is_read_from_nested_dicts_and_lists() -> None:
    form = {"a": ["x", "y"], "b": {"c": ["z"], "d": None, "e": {}}}
    node = TaxonomyNode.parse("any", form)
    assert node.leaves() == ("x", "y", "z", "d", "e")
    assert TaxonomyNode.parse("any", node.form()) == node


@pytest.mark.parametrize(
    "toml",
    [
        '[attributes.ward.taxonomy]\ncold = ["north"]\nwarm = ["south", "other"]',
        "[attributes.ward.taxonomy]",
        '[attributes.ward.taxonomy]\nany = "north"',
        '[attributes.ward.taxonomy]\nany = ["north", 3]',
        '[attributes.ward.taxonomy]\nany = ["north", "south"]',
        '[attributes.ward.taxonomy]\nany = ["north", "south", "other", "west"]',
        '[attributes.ward.taxonomy]\nany = ["north", "south", "other", "other"]',
        '[attributes.ward.taxonomy.any]\na = ["north", "south"]\nb = ["south", "other"]',
        "[attributes.ward.taxonomy]\nany = 3",
    ],
)
def test_a_taxonomy_that_is_no_tree_over_the_categories_is_refused(toml: str) -> None:
    with pytest.raises(SchemaError, match="taxonomy") as refused:
        taxonomy_of(toml)
    assert_one_sentence(refused.value)


def test_siblings_of_one_name_are_refused_because_toml_cannot_tell_them_apart() -> None:
    twins = TaxonomyNode("any", (TaxonomyNode("g", (TaxonomyNode("x"),)), TaxonomyNode("g", (TaxonomyNode("y"),))))
    with pytest.raises(SchemaError, match="taxonomy"):
        Nominal("n", ("x", "y"), "x", twins, missing="x")


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("", "rows_at_most"),
        ("name = ", "not valid TOML"),
        ("rows_at_most = " + "9" * 5000, "not valid TOML"),
        ("name = " + "[" * 5000, "not valid TOML"),
        ("name = " + "[" * 5000 + "]" * 5000, "not valid TOML"),
        ("[attributes" + ".a" * 5000 + "]", "rows_at_most"),
        (PATIENTS + "[attributes.ward.taxonomy" + ".a" * 5000 + "]", "not valid TOML"),
        (PATIENTS.replace('name = "patients"\n', ""), "'name' must be text"),
        (with_lines("name = 3", instead_of='name = "patients"'), "'name' must be text"),
        (with_lines('name = ""', instead_of='name = "patients"'), "needs a name"),
        (with_lines('name = "../x"', instead_of='name = "patients"'), "needs a name"),
        (with_lines('name = ".x"', instead_of='name = "patients"'), "needs a name"),
        (with_lines('name = "a b"', instead_of='name = "patients"'), "needs a name"),
        (PATIENTS.replace("rows_at_most = 1000\n", ""), "'rows_at_most' is missing"),
        (with_lines("rows_at_most = 0", instead_of="rows_at_most = 1000"), "between 1 and"),
        (with_lines(f"rows_at_most = {MOST_ROWS + 1}", instead_of="rows_at_most = 1000"), "between 1 and"),
        (with_lines("rows_at_most = 1e3", instead_of="rows_at_most = 1000"), "whole number"),
        (with_lines("rows_at_most = true", instead_of="rows_at_most = 1000"), "whole number"),
        (with_lines("rows_at_most = '1000'", instead_of="rows_at_most = 1000"), "whole number"),
        (with_lines("colour = 'red'"), "unknown key 'colour'"),
        (with_lines("drafted = 1"), "'drafted' must be true or false"),
        (with_lines("unit = 'person'"), 'must be "row" or name persons'),
        (with_lines("unit = 3"), 'must be "row" or name persons'),
        (with_lines("drop = 'patient_id'", instead_of='drop = ["patient_id"]'), "list of texts"),
        (with_lines("drop = [1]", instead_of='drop = ["patient_id"]'), "list of texts"),
        (with_lines("drop = ['age']", instead_of='drop = ["patient_id"]'), "dropped column cannot also"),
        (with_lines("class = 'age'", instead_of='class = "ward"'), "class 'age' must be a nominal"),
        (with_lines("class = 'history'", instead_of='class = "ward"'), "class 'history' must be a nominal"),
        (with_lines("class = 'diagnosis'", instead_of='class = "ward"'), "class 'diagnosis' must be a nominal"),
        (with_lines("class = 'patient_id'", instead_of='class = "ward"'), "class 'patient_id' must be a nominal"),
        (with_lines("class = 3", instead_of='class = "ward"'), "'class' must be text"),
        ("name = 'x'\nrows_at_most = 3", "at least one attribute"),
        ("name = 'x'\nrows_at_most = 3\nattributes = 3", "attributes must be tables"),
        ("name = 'x'\nrows_at_most = 3\nattributes = {age = 3}", "attributes must be tables"),
        (
            PATIENTS.replace('kind = "numeric"\n', ""),
            "'kind' must be nominal, numeric, items, date, datetime or time. Got None",
        ),
        (
            with_lines("kind = 'place'", instead_of='kind = "numeric"'),
            "'kind' must be nominal, numeric, items, date, datetime or time",
        ),
        (
            with_lines("kind = []", instead_of='kind = "numeric"'),
            "'kind' must be nominal, numeric, items, date, datetime or time",
        ),
        (with_lines("low = 0", "colour = 3", instead_of="low = 0"), "Attribute 'age': unknown key 'colour'"),
        (with_lines("at_most = 6", "low = 3", instead_of="at_most = 6"), "Attribute 'history': unknown key 'low'"),
        (PATIENTS.replace("low = 0\n", ""), "'low' is missing"),
        (PATIENTS.replace("high = 110\n", ""), "'high' is missing"),
        (with_lines("low = '0'", instead_of="low = 0"), "'low' must be a number"),
        (with_lines("low = true", instead_of="low = 0"), "'low' must be a number"),
        (with_lines("low = nan", instead_of="low = 0"), "'low' must be a number"),
        (with_lines("high = inf", instead_of="high = 110"), "'high' must be a number"),
        (with_lines("high = -inf", instead_of="high = 110"), "'high' must be a number"),
        (with_lines("high = 1e300", instead_of="high = 110"), "'high' must be a number below 1e15"),
        (with_lines("low = 0.0000000000001", instead_of="low = 0"), "at most 12 decimals"),
        (with_lines("high = 0", instead_of="high = 110"), "low < high"),
        (with_lines("high = -5", instead_of="high = 110"), "low < high"),
        (with_lines("low = 0", "step = 0", instead_of="low = 0"), "positive step"),
        (with_lines("low = 0", "resolution = 0", instead_of="low = 0"), "positive step and resolution"),
        (with_lines("low = 0", "resolution = -1", instead_of="low = 0"), "positive step and resolution"),
        (with_lines("low = 0", "resolution = '1'", instead_of="low = 0"), "'resolution' must be a number"),
        (with_lines("low = 0", "resolution = 200", instead_of="low = 0"), "leaves one value between its bounds"),
        (with_lines("low = 0", "resolution = 1e-8", instead_of="low = 0"), r"more than 2\^30 values"),
        (with_lines("low = 0", "resolution = 2", instead_of="low = 0"), "two edges have no value between them"),
        (with_lines("low = 0", "scale = 'linear'", instead_of="low = 0"), "'scale' must be \"log\""),
        (with_lines("low = 0", "scale = 3", instead_of="low = 0"), "'scale' must be text"),
        (
            with_lines("low = 0", "scale = 'log'", "step = 1", instead_of="low = 0"),
            "needs one of 'step', 'edges' or 'scale'",
        ),
        (with_lines("low = 0", "edges = [1]", "step = 1", instead_of="low = 0"), "needs one of 'step', 'edges' or 'scale'"),
        (with_lines("low = 0", "edges = [1]", "scale = 'log'", instead_of="low = 0"), "needs one of"),
        (with_lines("low = 0", "edges = 18", instead_of="low = 0"), "'edges' must be a list"),
        (with_lines("low = 0", "edges = ['18']", instead_of="low = 0"), "'edge' must be a number"),
        (with_lines("low = 0", "edges = [65, 18]", instead_of="low = 0"), "edges rise from above low on"),
        (with_lines("low = 0", "edges = [18, 18]", instead_of="low = 0"), "edges rise from above low on"),
        (with_lines("low = 0", "edges = [0, 18]", instead_of="low = 0"), "edges rise from above low on"),
        (with_lines("low = 0", "edges = [18, 111]", instead_of="low = 0"), "no edge lies above high"),
        (with_lines("low = 0", f"edges = {list(range(1, 4097))}", instead_of="low = 0"), "at most 4095"),
        (with_lines("low = 0", "missing = 111", instead_of="low = 0"), "must lie within its bounds"),
        (with_lines("low = 0", "missing = -1", instead_of="low = 0"), "must lie within its bounds"),
        (with_lines("low = 0", "missing = 'none'", instead_of="low = 0"), '"own", "drop" or a number'),
        (PATIENTS.replace('"other"]', '"other"]\nmissing = "own"'), "cannot have gaps as a class of their own"),
        (PATIENTS.replace('"other"]', '"other"]\nmissing = "west"'), '"own", "drop" or one of its categories'),
        (PATIENTS.replace('"other"]', '"other"]\nmissing = 3'), "'missing' must be text"),
        (PATIENTS.replace('"other"]', '"(missing)"]'), "is the label of gaps"),
        (with_lines("low = 0", "step = -1", instead_of="low = 0"), "positive step"),
        (with_lines("low = 0", "missing = nan", instead_of="low = 0"), "'missing' must be a number"),
        (with_lines("high = 4096", instead_of="high = 110"), f"more than {MOST_GRID_POINTS} grid points"),
        (with_lines("high = 1e9", instead_of="high = 110"), f"more than {MOST_GRID_POINTS} grid points"),
        (with_lines("high = 1e14", instead_of="high = 110"), r"more than 2\^30 values"),
        (with_lines("low = 0", "step = 0.001", instead_of="low = 0"), "grid points"),
        (with_lines("low = 109.9999999", "step = 1e-9", instead_of="low = 0"), None),
        (with_lines("low = 109.9999999999", "step = 1e-12", instead_of="low = 0"), None),
        (
            with_lines("low = 100000000000000", "step = 0.001", instead_of="low = 0").replace("110", "100000000000001"),
            "too fine",
        ),
        (with_lines("categories = []", instead_of='categories = ["north", "south", "other"]'), "must list its categories"),
        (
            with_lines("categories = ['a', 'a']", instead_of='categories = ["north", "south", "other"]'),
            "lists a category twice",
        ),
        (with_lines("categories = 'a'", instead_of='categories = ["north", "south", "other"]'), "list of texts"),
        (with_lines("categories = [1, 2]", instead_of='categories = ["north", "south", "other"]'), "list of texts"),
        (PATIENTS.replace('"other"]', '"other"]\nother = "west"'), "'other' must be one of its categories"),
        (PATIENTS.replace('"other"]', '"other"]\nother = 3'), "'other' must be text"),
        (PATIENTS.replace("at_most = 6\n", ""), "'at_most' must be a whole number"),
        (with_lines("at_most = 0", instead_of="at_most = 6"), "between 1 and 100000"),
        (with_lines("items = []", instead_of='items = ["flu", "asthma"]'), "distinct items"),
        (with_lines("items = ['flu', 'flu']", instead_of='items = ["flu", "asthma"]'), "distinct items"),
        (with_lines("at_most = 6", "separator = ''", instead_of="at_most = 6"), "'separator' must not be empty"),
        (with_lines("at_most = 6", "separator = 3", instead_of="at_most = 6"), "'separator' must be text"),
        (PATIENTS + "[attributes.age]\nkind = 'numeric'", "not valid TOML"),
    ],
)
def test_a_mistake_in_the_schema_gets_one_sentence(toml: str, words: str | None) -> None:
    if words is None:
        assert Schema.from_toml(toml)
        return
    with pytest.raises(SchemaError, match=words) as refused:
        Schema.from_toml(toml, where="patients.toml")
    assert_one_sentence(refused.value)


@given(st.text(max_size=60) | st.lists(st.sampled_from(PATIENTS.splitlines()), max_size=20).map("\n".join))
def test_random_toml_is_read_or_refused_in_one_sentence(text: str) -> None:
    try:
        Schema.from_toml(text)
    except SchemaError as error:
        assert_one_sentence(error)


@given(st.data())
@settings(max_examples=200)
def test_a_schema_with_one_value_replaced_is_read_or_refused_in_one_sentence(data: st.DataObject) -> None:
    lines = Schema.from_toml(PATIENTS).to_toml().splitlines()
    place = data.draw(st.sampled_from([number for number, line in enumerate(lines) if " = " in line and "[" not in line]))
    value = data.draw(
        st.sampled_from(["0", "-1", "1e400", "nan", "inf", "''", '"x"', "[]", "{}", "true", "1979-05-27", "9" * 30])
    )
    lines[place] = lines[place].split(" = ")[0] + " = " + value
    try:
        Schema.from_toml("\n".join(lines))
    except SchemaError as error:
        assert_one_sentence(error)


def test_a_schema_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="No such file"):
        Schema.load(tmp_path / "missing.toml")
    with pytest.raises(SchemaError, match=r"[Dd]irectory"):
        Schema.load(tmp_path)
    picture = tmp_path / "picture.toml"
    picture.write_bytes(b"\xff\xd8\xff")
    with pytest.raises(SchemaError, match="not a text file"):
        Schema.load(picture)
    with pytest.raises(SchemaError) as refused:
        Schema.load("a\x00b")
    assert_one_sentence(refused.value)


def test_a_schema_built_in_python_is_held_to_the_same_rules() -> None:
    ward = Nominal("ward", ("north", "south"), "south", missing="south")
    with pytest.raises(SchemaError, match="twice"):
        Schema("x", (ward, ward), 10)
    with pytest.raises(SchemaError, match="categories"):
        Nominal("n", tuple(map(str, range(MOST_CATEGORIES + 1))), "0", missing="0")
    for low, high, step in (("NaN", "1", "1"), ("0", "Infinity", "1"), ("0", "1e400", "1e399"), ("0", "1e-20", "1e-21")):
        with pytest.raises(SchemaError) as refused:
            Numeric("x", Decimal(low), Decimal(high), Decimal(step), Decimal(0))
        assert_one_sentence(refused.value)
    with pytest.raises(SchemaError, match="names no class"):
        Schema("x", (ward,), 10).require_class()


def test_the_largest_grid_and_the_largest_category_list_are_allowed() -> None:
    assert Numeric("x", Decimal(0), Decimal(4095), Decimal(1), Decimal(0)).size == MOST_GRID_POINTS
    assert Numeric("x", Decimal(0), Decimal(4095), Decimal(1)).size == MOST_GRID_POINTS + 1  # and gaps
    assert Numeric("x", Decimal(0), Decimal(2**30), Decimal(2**20)).values == 2**30 + 1
    assert Nominal("n", tuple(map(str, range(MOST_CATEGORIES))), "0", missing="0").size == MOST_CATEGORIES


# -- looking things up -------------------------------------------------------------------------------------------------


def test_an_unknown_name_in_a_request_lists_what_the_schema_knows() -> None:
    schema = Schema.from_toml(PATIENTS)
    with pytest.raises(ExpressionError, match=r"'income' is not in the schema\. It knows: ward, age, history"):
        schema.attribute("income")
    with pytest.raises(ExpressionError, match="'patient_id' is dropped by the schema"):
        schema.attribute("patient_id")
    with pytest.raises(ExpressionError, match="only 'contains'"):
        schema.single("history")
    with pytest.raises(ExpressionError, match=r"no category 'west'\. The schema knows: north, south, other"):
        schema.attribute("ward").code("west")  # type: ignore[union-attr]
    with pytest.raises(ExpressionError, match=r"no item 'gout'\. The schema knows: flu, asthma"):
        schema.attribute("history").code("gout")  # type: ignore[union-attr]


def test_public_names_of_the_package_reach_the_schema() -> None:
    assert dm.Schema is Schema
    assert json.loads(json.dumps(dm.Schema.from_toml(PATIENTS).fingerprint))
