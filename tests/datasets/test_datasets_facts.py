"""The public facts written in the code agree with the documentation's counts, with the data and with the trees."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dpmine import datasets
from dpmine.base.errors import RequestError, SchemaError
from dpmine.datasets import adult_facts, census_facts
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema

# The numbers of distinct values that the documentation of Census-Income states, in its order of nominal attributes.
DOCUMENTED = [9, 52, 47, 17, 3, 7, 24, 15, 5, 10, 2, 3, 6, 8, 6, 6, 51, 38, 8, 10, 9, 10, 3, 4, 5, 43, 43, 43, 5, 3, 3, 3, 2]


def nominals(schema: Schema) -> list[Nominal]:
    return [attribute for attribute in schema.attributes if isinstance(attribute, Nominal)]


def numerics(schema: Schema) -> list[Numeric]:
    return [attribute for attribute in schema.attributes if isinstance(attribute, Numeric)]


def assert_fits(schema: Schema, table: dict[str, list[object]]) -> None:
    """Exactly the listed categories occur, and every number lies within its published range."""
    assert [attribute.name for attribute in schema.attributes] == list(table)
    for nominal in nominals(schema):
        assert set(table[nominal.name]) == set(nominal.categories), nominal.name
    for numeric in numerics(schema):
        assert all(numeric.low <= value <= numeric.high for value in set(table[numeric.name])), numeric.name  # type: ignore[operator]
    assert len(table[schema.require_class()]) <= schema.rows_at_most


@pytest.mark.usefixtures("data_folder")
def test_adult_holds_exactly_the_documented_categories_within_the_published_ranges() -> None:
    assert_fits(datasets.adult_schema(), datasets.adult())


@pytest.mark.usefixtures("data_folder")
def test_complete_rows_hold_every_category_but_the_unknown_and_the_never_worked() -> None:
    table = datasets.adult(complete=True)
    for nominal in nominals(datasets.adult_schema(complete=True)):
        absent = {"Never-worked"} if nominal.name == "workclass" else set()
        assert set(nominal.categories) - set(table[nominal.name]) == absent
        assert set(table[nominal.name]) <= set(nominal.categories)


@pytest.mark.usefixtures("data_folder")
def test_the_census_holds_exactly_the_documented_categories_within_the_ranges() -> None:
    assert_fits(datasets.census_income_schema(), datasets.census_income())


def test_the_census_lists_have_the_documented_lengths() -> None:
    schema = datasets.census_income_schema()
    assert [attribute.size for attribute in nominals(schema)] == [*DOCUMENTED, 2]
    assert len(numerics(schema)) == 7
    assert schema.drop == ("instance_weight", "split")
    assert set(census_facts.COLUMNS) == set(census_facts.RANGES) | set(census_facts.CATEGORIES)


def test_adult_has_six_numeric_and_eight_nominal_attributes_and_a_class() -> None:
    schema = datasets.adult_schema()
    assert (len(numerics(schema)), len(nominals(schema)), schema.class_attribute) == (6, 9, "income")
    assert [(a.name, a.low, a.high) for a in numerics(schema)] == [
        ("age", 15, 95),
        ("fnlwgt", 0, 1_500_000),
        ("education_num", 1, 20),
        ("capital_gain", 0, 100_000),
        ("capital_loss", 0, 5_000),
        ("hours_per_week", 1, 100),
    ]
    assert set(adult_facts.COLUMNS) == set(adult_facts.RANGES) | set(adult_facts.CATEGORIES)


@pytest.mark.parametrize("bins", [2, 7, 64, 128, 1000])
def test_bins_are_as_many_as_asked_and_cover_the_range(bins: int) -> None:
    for numeric in numerics(datasets.adult_schema(bins=bins)):
        low, high, _ = adult_facts.RANGES[numeric.name]
        assert numeric.size == bins
        starts = [numeric.low, *numeric.edges]
        assert all(
            abs(start - (low + Decimal(high - low) * place / bins)) < Decimal("1e-5") for place, start in enumerate(starts)
        )
        assert all(0 <= numeric.point(place) - start < numeric.finest for place, start in enumerate(starts))
        assert (numeric.low, numeric.high) == (low, high)


def test_a_step_of_ones_own_goes_before_bins_and_default() -> None:
    schema = datasets.adult_schema(bins=8, steps={"age": 5, "capital_gain": "250.5"})
    steps = {attribute.name: attribute.step for attribute in numerics(schema)}
    assert (steps["age"], steps["capital_gain"], steps["capital_loss"]) == (5, Decimal("250.5"), None)
    assert {a.name: a.edges[:2] for a in numerics(schema)}["capital_loss"] == (625, 1250)
    assert {a.name: a.step for a in numerics(datasets.adult_schema(steps={"age": 2}))}["hours_per_week"] == 1


def test_impossible_grids_are_refused() -> None:
    with pytest.raises(RequestError, match="height"):
        datasets.adult_schema(steps={"height": 1})
    with pytest.raises(RequestError, match="2 bins"):
        datasets.adult_schema(bins=1)
    with pytest.raises(SchemaError, match="grid points"):
        datasets.adult_schema(steps={"fnlwgt": 1})


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.usefixtures("data_folder")
def test_the_published_trees_have_the_categories_as_leaves(complete: bool) -> None:
    schema = datasets.adult_schema(taxonomies=True, complete=complete)
    trees = {nominal.name: nominal.taxonomy for nominal in nominals(schema) if nominal.taxonomy is not None}
    assert set(trees) == set(adult_facts.CATEGORIES) - {"income"}
    assert {tree.name for tree in trees.values()} == {"Any"}
    below_the_root = {name for name, tree in trees.items() if "?" in [child.name for child in tree.children]}
    assert below_the_root == (set() if complete else set(adult_facts.WITH_UNKNOWN))


@pytest.mark.parametrize("schema", [datasets.adult_schema(bins=64), datasets.census_income_schema(bins=64)])
def test_the_schemas_survive_their_toml(schema: Schema) -> None:
    assert Schema.from_toml(schema.to_toml()) == schema
