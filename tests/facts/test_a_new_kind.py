"""What every kind of attribute promises, held for the known ones and for one that is a single file beside these tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from weekdays import Weekday, WeekdayColumns

import dpmine as dm
from dpmine.base.errors import DataError, ExpressionError, RequestError, SchemaError
from dpmine.engines.encoding import encode
from dpmine.facts.checking import check_table
from dpmine.facts.kinds import registry
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.kind import MISSING, Attribute, Single
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.candidates import candidate, number_of_candidates
from dpmine.language.keys import Bins
from dpmine.language.splits import Thresholds
from dpmine.tables.asking import splits_of

TABLE = {
    "day": ["Monday", "Tue", "Sunday", "Sun", None, "Someday", "Friday", "Fri"],
    "ward": ["north", "south", "north", "south", "north", "south", "north", "south"],
}
DAY_CODES = [1, 2, 0, 0, 0, 0, 5, 5]  # from Sunday on, which also takes what is no day
TOML = """
name = "shifts"
rows_at_most = 10

[attributes.day]
kind = "weekday"
first = "Sunday"

[attributes.ward]
kind = "nominal"
categories = ["north", "south"]
missing = "drop"
"""
EXACT = 10_000  # so large an epsilon that no noise shows


@pytest.fixture
def with_weekdays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy kind is known for one test."""
    monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
    registry.register(WeekdayColumns())


@pytest.fixture
def schema(with_weekdays: None) -> Schema:
    return Schema.from_toml(TOML)


@pytest.fixture
def private(schema: Schema) -> Iterator[dm.PrivateTable]:
    with dm.open(TABLE, schema=schema, cap=100 * EXACT) as data:
        yield data.grant("alice", epsilon=100 * EXACT)


# -- a new kind goes all the way ---------------------------------------------------------------------------------------


def test_a_new_kind_is_read_from_toml_and_written_back(schema: Schema) -> None:
    assert schema.attribute("day") == Weekday("day", "Sunday")
    assert Schema.from_toml(schema.to_toml()) == schema
    assert schema.fingerprint != Schema.from_toml(TOML.replace("Sunday", "Monday")).fingerprint
    with pytest.raises(SchemaError, match="unknown key 'last'"):
        Schema.from_toml(TOML.replace('first = "Sunday"', 'first = "Sunday"\nlast = "Monday"'))


def test_a_new_kind_is_named_where_kinds_are_listed_and_unknown_before() -> None:
    with pytest.raises(SchemaError, match=r"'kind' must be nominal, numeric, items, date, datetime or time\. Got 'weekday'"):
        Schema.from_toml(TOML)


def test_a_new_kind_is_listed_once_it_is_known(with_weekdays: None) -> None:
    with pytest.raises(SchemaError, match="'kind' must be nominal, numeric, items, date, datetime, time or weekday"):
        Schema.from_toml(TOML.replace('"weekday"', '"month"'))
    with pytest.raises(ValueError, match="share the name"):
        registry.register(WeekdayColumns())


def test_a_new_kind_is_drafted_where_it_recognises_a_column(with_weekdays: None) -> None:
    drafted = Schema.draft({"day": ["Mon", "Friday", None], "mood": ["Mon", "Good", None]})
    assert drafted.attribute("day") == Weekday("day", "Monday")
    assert isinstance(drafted.attribute("mood"), Nominal)
    assert Schema.from_toml(drafted.to_toml()) == drafted


def test_a_new_kind_is_checked(schema: Schema) -> None:
    report = check_table(TABLE, schema)
    assert report.columns[0].changes == {"missing or no day, set to Sunday": 2}


def test_a_new_kind_is_encoded_and_its_codes_enter_the_hash_of_a_row(schema: Schema) -> None:
    table = encode(open_source(TABLE), schema)
    assert table.codes["day"].tolist() == DAY_CODES
    assert table.occurrence.tolist() == [0, 0, 0, 0, 1, 1, 0, 0]  # by day and ward


def test_a_new_kind_is_counted_compared_and_split(private: dm.PrivateTable) -> None:
    counts = {"Sunday": 4, "Monday": 1, "Tuesday": 1, "Wednesday": 0, "Thursday": 0, "Friday": 2, "Saturday": 0}
    assert private.histogram("day", epsilon=EXACT).to_dict() == counts
    assert int(private.where(dm.col("day") == "Fri").count(epsilon=EXACT)) == 2
    assert int(private.where(dm.col("day") >= "Tuesday").count(epsilon=EXACT)) == 3
    assert private.where(dm.col("day") != "Sunday").histogram("ward", epsilon=EXACT).to_dict() == {"north": 2, "south": 2}
    assert sum(int(part.count(epsilon=EXACT)) for part in private.split(test=0.5)) == 8


def test_a_new_kind_with_an_order_is_binned_and_split(private: dm.PrivateTable, schema: Schema) -> None:
    weekend = private.histogram(dm.col("day").bins("Mon", "Saturday"), epsilon=EXACT).to_dict()
    assert weekend == {"<Monday": 4, "Monday to <Saturday": 4, ">=Saturday": 0}
    assert number_of_candidates(Thresholds("day"), schema) == 6
    assert candidate(Thresholds("day", "Monday", "Fri"), schema, 0) == Bins("day", ("Tuesday",), "last")
    assert splits_of("day", schema) == Thresholds("day")
    with pytest.raises(ExpressionError, match="The cuts of 'day' must rise"):
        private.histogram(dm.col("day").bins("Friday", "Monday"), epsilon=1)


def test_a_tree_splits_by_a_new_kind_with_an_order(schema: Schema) -> None:
    table = {"day": ["Sunday", "Monday", "Friday", "Saturday"] * 50, "ward": ["north", "north", "south", "south"] * 50}
    tree = dm.TreeClassifier(epsilon=EXACT, max_depth=1)
    with dm.open(table, schema=replace(schema, class_attribute="ward", rows_at_most=300), cap=2 * EXACT) as data:
        tree.fit(data.grant("alice", epsilon=2 * EXACT))
    assert tree.predict({"day": ["Mon", "Sat"]}).tolist() == ["north", "south"]
    assert "day" in tree.to_text()


def test_what_a_new_kind_cannot_do_is_refused_in_the_words_of_all(private: dm.PrivateTable) -> None:
    with pytest.raises(ExpressionError, match="'day' has no day 'Someday'"):
        private.where(dm.col("day") == "Someday").count(epsilon=1)
    with pytest.raises(ExpressionError, match=r"day < Sunday is true for no row: values of 'day' are the days from Sunday"):
        private.where(dm.col("day") < "Sunday").count(epsilon=1)
    with pytest.raises(RequestError, match="'day' is not numeric, so its values have no sum"):
        private.sum("day", epsilon=1)
    with pytest.raises(ExpressionError, match="'day' is weekday: use bins instead of groups"):
        private.histogram(dm.col("day").groups({"weekend": ["Saturday", "Sunday"]}), epsilon=1)


def test_an_engine_that_cannot_read_a_new_kind_says_so(schema: Schema, tmp_path: Path) -> None:
    file = tmp_path / "shifts.csv"
    file.write_text("day,ward\nMonday,north\n")
    with pytest.raises(DataError, match="knows no weekday attributes"), dm.open(file, schema=schema, cap=1, engine="duckdb"):
        pass


# -- what every kind promises ------------------------------------------------------------------------------------------

QUARTER = Decimal("0.25")
SINGLES: list[Single] = [
    Nominal("x", ("a", "b", "c"), "b", missing="b"),
    Nominal("x", ("only",), "only", missing="only"),
    Nominal("x", ("a", "b", "c"), None),
    Nominal("x", ("a", "b"), "a", missing="drop"),
    Numeric("x", Decimal("-0.5"), Decimal("2"), QUARTER, Decimal("1")),
    Numeric("x", Decimal("-0.5"), Decimal("2"), QUARTER, "own"),
    Numeric("x", Decimal("-0.5"), Decimal("2"), QUARTER, "drop", resolution=Decimal("0.05")),
    Numeric("x", Decimal(0), Decimal(110), None, "own", edges=(Decimal(18), Decimal(65))),
    Numeric("x", Decimal(-500), Decimal(10**6), None, Decimal(-500), scale="log"),
    Weekday("x", "Wednesday"),
]


@pytest.mark.parametrize("attribute", SINGLES, ids=lambda attribute: f"{attribute.kind} of {attribute.size}")
def test_labels_name_codes_and_codes_have_labels(attribute: Single, with_weekdays: None) -> None:
    labels = [attribute.label(code) for code in range(attribute.size)]
    named = labels if attribute.ordered else labels[: attribute.cells]
    assert [attribute.codes_of(label) for label in named] == [(code, code + 1) for code in range(len(named))]
    assert len(set(labels)) == len(labels)
    assert labels[attribute.cells :] == ([] if attribute.gap is None else [MISSING])
    assert attribute.hidden_code == (attribute.cells if attribute.gap == "drop" else None)
    assert attribute.column.size == attribute.size == attribute.cells + (attribute.gap is not None)
    assert not attribute.describe().endswith(".")
    assert registry.kind_of(attribute).name == attribute.kind


@pytest.mark.parametrize("attribute", SINGLES, ids=lambda attribute: f"{attribute.kind} of {attribute.size}")
def test_what_codes_stand_for_is_encoded_as_these_codes(attribute: Single, with_weekdays: None) -> None:
    source = open_source({"x": registry.values_of(attribute).tolist()})
    table = encode(source, Schema("t", (attribute,), 10))
    assert table.codes["x"].tolist() == list(range(attribute.size))
    changed = sum(registry.kind_of(attribute).check(source, attribute).values())
    assert changed == (0 if attribute.gap is None else 1)


@pytest.mark.parametrize("attribute", [*SINGLES, ItemList("x", ("a", "b"), 3)], ids=lambda attribute: attribute.kind)
def test_the_form_of_an_attribute_is_its_table(attribute: Attribute, with_weekdays: None) -> None:
    assert (
        registry.read_attribute("x", json.loads(json.dumps(attribute.form(), default=float), parse_float=Decimal))
        == attribute
    )


def test_a_number_off_the_grid_has_a_place_and_no_code() -> None:
    numeric = Numeric("x", Decimal(0), Decimal(10), Decimal(5), Decimal(0))
    places = {text: numeric.codes_of(text) for text in ("-1", "0", "3", "5", "12")}
    assert places == {"-1": (0, 0), "0": (0, 1), "3": (1, 1), "5": (1, 2), "12": (3, 3)}
