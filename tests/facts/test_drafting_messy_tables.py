"""Drafts of a table such as owners have: what each column is taken for, why, and what the owner must check."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmine as dm
from dpmine.base.errors import SchemaError
from dpmine.facts.checking import check_table
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.registry import encode_single
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source

ROWS = 600
draw = np.random.default_rng(7)


def whole(low: int, high: int) -> list[int]:
    return draw.integers(low, high, ROWS).tolist()


def broken(numbers: Any, decimals: int) -> list[str]:
    return [f"{number:.{decimals}f}" for number in numbers]


TABLE: dict[str, list[Any]] = {
    "money": broken(draw.lognormal(7, 2, ROWS), 2),
    "debt": broken(draw.normal(0, 1, ROWS) ** 5, 2),
    "zip": [f"{number:05d}" for number in draw.integers(1000, 1080, ROWS)],
    "station": draw.choice([10115, 20095, 50667], ROWS).tolist(),
    "post_code": whole(10_000, 10_090),
    "grade": whole(1, 7),
    **{f"visit_{number}": draw.poisson(4 / number, ROWS).tolist() for number in range(1, 7)},
    **{f"answer{number}": draw.choice(["never", "often", "always"][: number + 1], ROWS).tolist() for number in (1, 2)},
    **{f"scale_{number}": (draw.integers(0, 1000, ROWS) * 10**number).tolist() for number in (0, 3)},
    "dose": [math.inf if row == 5 else round(x, 1) for row, x in enumerate(draw.normal(50, 10, ROWS))],
    "lab": ["n/a" if row % 9 == 0 else f"{x:.1f}" for row, x in enumerate(draw.normal(7, 1, ROWS))],
    "typo": ["12,3" if row == 3 else str(number) for row, number in enumerate(whole(0, 90))],
    "smoker": draw.choice(["yes", "no"], ROWS).tolist(),
    "alive": draw.choice([0, 1], ROWS).tolist(),
    "flag": draw.choice(["0.0", "1.0"], ROWS).tolist(),
    "letters": [f"Case {row} was seen in the morning and sent home again" for row in range(ROWS)],
    "case": [f"C{row:06d}" for row in range(ROWS)],
    "receipt": [3_000_000 + 17 * row for row in range(ROWS)],
    "email": [f"a{row % 400}@example.org" for row in range(ROWS)],
    "patient": [f"P{row % 150}" for row in range(ROWS)],
    "device_id": [row % 30 for row in range(ROWS)],
    "percent_done": broken(draw.uniform(3, 80, ROWS), 1),
    "error_rate": broken(draw.uniform(0, 0.3, ROWS), 3),
    "age": [None if row % 50 == 0 else age for row, age in enumerate(whole(18, 90))],
    "birthMonth": whole(1, 13),
    "latitude": broken(draw.uniform(47, 55, ROWS), 4),
    "dep_time": [100 * hour + minute for hour, minute in zip(whole(0, 24), whole(0, 60), strict=True)],
    "children": draw.poisson(1.3, ROWS).tolist(),
    "town": [f"Town {'abcdefghij'[min(int(x), 9)]}{'xyz'[row % 3]}" for row, x in enumerate(draw.exponential(2, ROWS))],
    "kind": draw.choice(["red", "green", "other"], ROWS).tolist(),
    "diagnosis": draw.choice(["Healthy", "Sick"], ROWS).tolist(),
    "empty": [None] * ROWS,
}
DRAFT = Schema.draft(TABLE, name="messy")
assert DRAFT.notes is not None
NOTES = {note.name: note for note in DRAFT.notes.columns}


def numeric(name: str) -> Numeric:
    attribute = DRAFT.attribute(name)
    assert isinstance(attribute, Numeric)
    return attribute


def nominal(name: str) -> Nominal:
    attribute = DRAFT.attribute(name)
    assert isinstance(attribute, Nominal)
    return attribute


# -- kinds -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["zip", "station", "post_code", "grade"])
def test_codes_that_look_like_numbers_are_categories(name: str) -> None:
    assert set(nominal(name).categories) == set(map(str, TABLE[name]))
    assert "code" in NOTES[name].why
    assert 'write kind = "numeric"' in NOTES[name].check


@pytest.mark.parametrize(("name", "categories"), [("smoker", "no yes"), ("alive", "0 1"), ("flag", "0.0 1.0")])
def test_yes_and_no_stay_two_categories(name: str, categories: str) -> None:
    assert nominal(name) == Nominal(name, tuple(categories.split()))
    assert ("1.0 is not 1" in NOTES[name].check) == (name == "flag")


def test_the_class_has_no_category_for_the_rest_and_leaves_gaps_out() -> None:
    assert nominal("diagnosis") == Nominal("diagnosis", ("Healthy", "Sick"), missing="drop")
    assert DRAFT.class_attribute == "diagnosis"
    assert nominal("kind").other == "other"  # a category of the table's own


def test_numbered_siblings_are_one_kind_with_one_domain() -> None:
    visits = [numeric(f"visit_{number}") for number in range(1, 7)]
    assert {replace(visit, name="visit") for visit in visits} == {replace(visits[0], name="visit")}
    assert visits[0].high >= max(max(TABLE[visit.name]) for visit in visits)
    assert "one kind with visit_1 to visit_6" in NOTES["visit_6"].why
    assert nominal("answer1").categories == nominal("answer2").categories == ("always", "never", "often")


def test_siblings_of_very_different_size_keep_their_own_bounds() -> None:
    assert (numeric("scale_0").high, numeric("scale_3").high) == (1000, 1_000_000)


@pytest.mark.parametrize("name", ["dose", "lab", "typo"])
def test_an_infinity_a_word_for_gaps_or_a_typo_does_not_make_texts_of_numbers(name: str) -> None:
    assert numeric(name)
    expected = {"dose": "beyond the bounds", "lab": "", "typo": "are no numbers count as missing"}[name]
    assert expected in NOTES[name].check
    assert NOTES[name].gaps == (name != "dose")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("letters", "free text"),
        ("case", "every row has a value of its own"),
        ("receipt", "every row has a value of its own"),
        ("email", "by its name it says who somebody is"),
        ("empty", "no row has a value"),
        ("patient", "names of persons"),
        ("device_id", "names of persons or things"),
    ],
)
def test_what_tells_rows_or_people_apart_is_dropped_with_the_reason(name: str, why: str) -> None:
    assert name in DRAFT.drop
    assert NOTES[name].kind == "dropped"
    assert why in NOTES[name].why
    comments = " ".join(line.removeprefix("# ") for line in DRAFT.to_toml().splitlines() if line.startswith("# "))
    assert f"{name}: {NOTES[name].why}" in comments


def test_very_many_categories_of_which_few_are_frequent_get_one_for_the_rest() -> None:
    texts = [f"common {number % 90}" for number in range(9_700)] + [f"rare {number % 150}" for number in range(300)]
    town = Schema.draft({"town": texts}).attribute("town")
    assert isinstance(town, Nominal)
    assert (town.cells, town.other) == (101, "other")
    assert {f"common {number}" for number in range(90)} < set(town.categories)
    assert (
        "town" in Schema.draft({"town": [f"place {'abc'[n % 3]} {n % 4000}" for n in range(9_000)], "x": ["a"] * 9_000}).drop
    )


# -- bounds, resolution, grid ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("age", 0, 120),
        ("percent_done", 0, 100),
        ("error_rate", 0, 1),
        ("birthMonth", 1, 12),
        ("latitude", -90, 90),
        ("dep_time", 0, 2400),
    ],
)
def test_what_an_owner_can_look_up_is_proposed_instead_of_the_datas_own_extremes(name: str, low: int, high: int) -> None:
    assert (numeric(name).low, numeric(name).high) == (low, high)
    assert NOTES[name].check == ""


@pytest.mark.parametrize("name", ["money", "dose", "lab", "children", "visit_1"])
def test_bounds_read_from_the_data_are_round_and_said_to_be(name: str) -> None:
    numbers = [Decimal(str(x)) for x in TABLE[name] if x not in ("n/a", math.inf)]
    attribute = numeric(name)
    assert attribute.low <= min(numbers) <= max(numbers) <= attribute.high
    assert attribute.high - attribute.low <= 2 * (max(numbers) - min(numbers))
    assert len(str(attribute.high).strip("0").replace(".", "")) <= 3
    assert "bounds read from the data" in NOTES[name].check


def test_a_fact_that_the_numbers_contradict_is_not_proposed() -> None:
    months = Schema.draft({"age": [5.5 * number for number in range(100)], "pct": [*range(99), 40_000]})
    age, share = months.attributes
    assert isinstance(age, Numeric)
    assert isinstance(share, Numeric)
    assert age.high >= 544
    assert share.high == 100  # one mistake in a hundred rows is clamped, and told
    assert months.notes is not None
    assert "lie beyond the bounds and are clamped" in months.notes.of("pct").check


@pytest.mark.parametrize("name", ["money", "debt"])
def test_a_skewed_column_has_cells_that_grow(name: str) -> None:
    attribute = numeric(name)
    assert attribute.scale == "log"
    assert 10 <= attribute.cells <= 300
    assert "cells grow with the numbers" in NOTES[name].why


def test_no_finite_number_of_a_drafted_column_is_moved() -> None:
    source = open_source(TABLE)
    for attribute in DRAFT.of_kind(Numeric):
        values = encode_single(source, attribute)
        for text, value in zip(TABLE[attribute.name], values.tolist(), strict=True):
            if text is None or text == math.inf or (isinstance(text, str) and not re.fullmatch(r"-?[\d.]+", text)):
                continue
            assert Fraction(attribute.value_point(value)) == Fraction(Decimal(str(text))), attribute.name


@given(st.lists(st.decimals(-(10**6), 10**6, places=2, allow_nan=False), min_size=12, max_size=40, unique=True))
def test_a_drafted_column_holds_every_number_at_its_own_decimals(numbers: list[Decimal]) -> None:
    schema = Schema.draft({"x": [str(number) for number in numbers]})
    (attribute,) = schema.attributes
    assert isinstance(attribute, Numeric)
    values = encode_single(open_source({"x": [str(number) for number in numbers]}), attribute)
    assert [attribute.value_point(value) for value in values.tolist()] == numbers
    assert attribute.cells <= 400


def test_numbers_finer_than_values_can_be_are_rounded_and_the_draft_says_so() -> None:
    schema = Schema.draft({"x": np.random.default_rng(1).uniform(0, 1000, 100).tolist()})
    (attribute,) = schema.attributes
    assert isinstance(attribute, Numeric)
    assert attribute.finest == Decimal("0.000001")
    assert schema.notes is not None
    assert "their last digits are left out" in schema.notes.of("x").check


# -- whom the guarantee protects ---------------------------------------------------------------------------------------


def test_a_column_that_looks_like_persons_is_suggested_as_the_unit() -> None:
    assert DRAFT.unit == dm.Schema.from_toml(DRAFT.to_toml()).unit
    assert DRAFT.unit.column is None
    assert DRAFT.notes is not None
    assert DRAFT.notes.suggested == "patient"
    toml = DRAFT.to_toml()
    assert '# unit = { column = "patient", at_most = 5 }' in toml
    chosen = toml.replace('unit = "row"\n', "").replace("# unit = {", "unit = {")
    assert Schema.from_toml(chosen).unit.form() == {"column": "patient", "at_most": 5}


def test_what_the_owner_knows_beforehand_is_heeded() -> None:
    schema = Schema.draft(TABLE, class_attribute="grade", unit="email", drop=["money", "zip"])
    assert schema.class_attribute == "grade"
    assert schema.target.gap == "drop"
    assert schema.unit.form() == {"column": "email", "at_most": 2}
    assert {"money", "zip"} < set(schema.drop)
    assert "email" not in schema.drop
    assert Schema.from_toml(schema.to_toml()) == schema
    assert isinstance(Schema.draft(TABLE, class_attribute="children").target, Nominal)


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"class_attribute": "nobody"}, "no column 'nobody'. It has: money, debt"),
        ({"unit": "nobody"}, "no column 'nobody'"),
        ({"drop": ["nobody"]}, "no column 'nobody'"),
        ({"unit": "patient", "drop": ["patient"]}, "not two of these: 'patient'"),
        ({"class_attribute": "money"}, "'money' cannot be the class: too many different values"),
        ({"class_attribute": "empty"}, "'empty' cannot be the class: no row has a value"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused_in_one_sentence(wishes: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.draft(TABLE, **wishes)


def test_floats_cannot_name_persons() -> None:
    with pytest.raises(SchemaError, match="holds floats"):
        Schema.draft({"patient": [1.0, 2.0, None] * 50, "x": ["a"] * 150}, unit="patient")


# -- the file ----------------------------------------------------------------------------------------------------------


def test_the_draft_comes_back_from_its_file_with_a_comment_for_every_column() -> None:
    toml = DRAFT.to_toml()
    assert Schema.from_toml(toml) == DRAFT
    for attribute in DRAFT.attributes:
        head = f"[attributes.{attribute.name}]\n"
        assert re.search(rf"\n# Why: [^\n]+\n(# [^\n]+\n)*{re.escape(head)}", toml), attribute.name


def test_gaps_are_mentioned_where_they_were_seen() -> None:
    tables = {part.split("]")[0]: part for part in DRAFT.to_toml().split("[attributes.")[1:]}
    silent = {name for name, table in tables.items() if "missing = " not in table}
    assert {"age", "lab", "typo", "diagnosis"} == set(tables) - silent
    assert 'missing = "own"' in tables["age"]
    assert 'missing = "drop"' in tables["diagnosis"]


def test_comments_tell_no_counts_of_rows_and_no_values_of_columns() -> None:
    comments = "\n".join(line for line in DRAFT.to_toml().splitlines() if line.startswith("#"))
    for told in ("Town", "P1", "600", "example.org", "12,3"):
        assert told not in comments


def test_a_column_name_cannot_end_a_comment() -> None:
    name = 'id\nclass = "evil"\n\x00#'
    schema = Schema.draft({name: [f"A{row}" for row in range(99)], "x": ["a"] * 99})
    assert schema.drop == (name,)
    assert Schema.from_toml(schema.to_toml()) == schema


def test_notes_are_the_owners_and_go_no_further() -> None:
    loaded = Schema.load(DRAFT)
    assert loaded == DRAFT
    assert loaded.notes is None
    assert "# Why" not in loaded.to_toml()
    assert "# Why" not in replace(DRAFT, drafted=False).to_toml()
    with dm.open(TABLE, schema=DRAFT, cap=1) as data:
        assert data.grant("alice", epsilon=1).schema.notes is None


def test_a_table_fits_its_draft_but_for_what_the_draft_says() -> None:
    changed = {column.attribute for column in check_table(TABLE, DRAFT).columns if any(column.changes.values())}
    assert changed == {"age", "dose", "lab", "typo"}
