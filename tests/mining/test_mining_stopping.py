"""Where trees stop: the published rule, depths, limits of queries, odd tables and schemas; errors before spending."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from support.estimators import EVERY, PUBLISHED
from support.mined_tables import schema_of, table_of
from support.opening import HUGE, fitted, opened, recorded

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.mining.trees import growing
from dpmine.mining.trees.candidates import discretised, nominal_keys
from dpmine.mining.trees.growing import Sprout
from dpmine.mining.trees.stopping import too_few
from dpmine.questions.histogram import Histogram

SCHEMA = schema_of()

# -- the published rule ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1"])
@pytest.mark.parametrize("keys", [0, 1, 2, 3])
def test_a_node_is_a_leaf_where_its_counts_would_drown(epsilon: str, keys: int) -> None:
    """N / (t |C|) < sqrt 2 / eps, where t is the largest number of branches of the attributes at hand."""
    colour, kind, flag = nominal_keys(SCHEMA)
    at_hand = ((), (flag,), (flag, kind), (flag, kind, colour))[keys]
    paid = Epsilon.parse(epsilon)
    limit = max(keys + 1, 2) * 2 * math.sqrt(2) / float(paid)
    for rows in (math.floor(limit), math.floor(limit) + 1):
        assert too_few(Sprout(0, at_hand, rows=rows), paid, SCHEMA) == (keys == 0 or rows < limit)
    assert too_few(Sprout(0, at_hand, rows=-5), paid, SCHEMA)
    point = Sprout(0, (), rows=math.ceil(4 * math.sqrt(2) / float(paid)))
    assert not too_few(point, paid, SCHEMA, ["size"])  # an attribute that is split at a point makes 2 branches
    assert too_few(point, paid, SCHEMA)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_rule_is_followed_node_by_node(name: str) -> None:
    """Each node that was counted went on exactly if its noisy count was large enough for its attributes."""
    schema = schema_of(numeric=False)
    for seed in range(5):
        with recorded(table_of(schema, 800, seed), schema, "0.5") as (private, recorder):
            model = EVERY[name](epsilon="0.5", max_depth=2).fit(private)
        each = model.budget.units // 6
        (first, reply) = next((query, reply) for query, reply in recorder.asked if isinstance(query.question, Histogram))
        assert first.epsilon == (Epsilon(each),)
        (rows,) = reply.answer.numbers[0] or ()
        split = rows / (4 * 2) >= math.sqrt(2) / (each / 1e9)
        grown = any(isinstance(query.rules, dm.Split) for query in recorder.queries)
        assert grown == split


def test_fewer_rows_make_smaller_trees() -> None:
    """At epsilon 1 the published rule stops at the root below 4 * 5 * sqrt 2 times the scale of its noise, which is 12.

    Five rows exceed these 339 with a chance of e^-27. With two classes they would be 136, and the chance e^-11: too large.
    """
    schema, five = schema_of(numeric=False), schema_of(numeric=False, classes=5)
    for name in PUBLISHED:
        assert fitted(EVERY[name](epsilon=1), table_of(five, 5, 1), five).trees_.trees[0].split is None
        assert fitted(EVERY[name](epsilon=1000), table_of(schema, 900, 1), schema).trees_.trees[0].split is not None


# -- depth and size ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("name", sorted(set(EVERY) - {"RandomForest"}))
def test_no_tree_is_deeper_than_it_may_be(name: str, depth: int) -> None:
    options = {"trees": 2} if name == "GreedyForest" else {"stopping": 0} if name == "TreeClassifier" else {}
    schema = schema_of(numeric=False)
    model = fitted(EVERY[name](epsilon=HUGE, max_depth=depth, **options), table_of(schema, 100, 1), schema)
    depths = [tree.depth for tree in model.trees_.trees]
    assert max(depths) <= depth
    if depth <= 2 and name != "GreedyForest":  # whose parts of some fifty rows may all be better whole
        assert max(depths) == depth


@pytest.mark.parametrize("name", ["DiffPID3", "SulqID3"])
def test_id3_s_trees_end_where_no_attribute_is_left(name: str) -> None:
    schema = schema_of(numeric=False)
    model = fitted(EVERY[name](epsilon=HUGE, max_depth=20), table_of(schema, 100, 1), schema)
    assert model.trees_.trees[0].depth == 3


@pytest.mark.parametrize("depth", [0, 21, -1, True, 2.0, "deep", None, "3"])
@pytest.mark.parametrize("name", EVERY)
def test_a_depth_that_makes_no_sense_is_refused(name: str, depth: Any) -> None:
    nothing_spent(EVERY[name](max_depth=depth), "max_depth must be a whole number from 1 to 20")


@pytest.mark.parametrize("most", [1, 2, 7, 30])
@pytest.mark.parametrize("name", ["TreeClassifier", "DiffPC45", "DiffPID3", "SulqID3", "GreedyForest"])
def test_a_tree_that_grows_too_large_ends_within_its_budget(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "MOST_LEAVES", most)
    with recorded(table_of(SCHEMA, 400, 1), SCHEMA, 10_000) as (private, recorder):
        model = EVERY[name](epsilon=10_000, max_depth=4).fit(private)
    assert model.charged_ <= model.cost_ <= model.budget
    if name in ("TreeClassifier", "GreedyForest"):
        assert model.charged_ == model.budget
    leaves = sum(1 for tree in model.trees_.trees for _ in tree.leaves())
    assert leaves <= max(most, len(model.trees_.trees))
    assert all(len(query.epsilon) <= max(most, 4) for query in recorder.queries)
    assert len(model.predict(table_of(SCHEMA, 9, 2))) == 9


def wide_schema(points: int = 4000, attributes: int = 5) -> Schema:
    numeric = tuple(Numeric(f"x{n}", Decimal(1), Decimal(points), Decimal(1), Decimal(1)) for n in range(attributes))
    return Schema("wide", (*numeric, Nominal("class", ("no", "yes"), "no", missing="no")), 10_000, "class")


def test_a_forest_that_a_plan_allows_can_be_grown() -> None:
    """8192 leaves are not too many; but about 8,000 different cuts are drawn, each a key of one query."""
    schema = wide_schema()
    model = dm.RandomForest(1, trees=16, max_depth=9, seed=1)
    empty: dict[str, list[Any]] = {attribute.name: [] for attribute in schema.attributes}
    try:
        model.plan(schema)
    except dm.RequestError:
        return  # refused with its plan: as good
    assert str(fitted(model, empty, schema).charged_) == "1"


def test_a_tree_that_meets_a_limit_of_queries_ends_within_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """One query may hold so many counts; a tree with more leaves times grid points than that must stop growing, not fail.

    A limit of 2,000 keeps the test small: 16 leaves times 3 attributes of 50 points and 2 classes are beyond it.
    """
    from dpmine.language import queries

    monkeypatch.setattr(queries, "MOST_COUNTS", 2_000)
    monkeypatch.setattr(growing, "MOST_COUNTS", 2_000)
    schema = wide_schema(50, 3)
    empty: dict[str, list[Any]] = {attribute.name: [] for attribute in schema.attributes}
    with opened(empty, schema, 1) as private:
        try:
            model = dm.TreeClassifier(1, 8, stopping=0).fit(private)
        except dm.RequestError:
            assert str(private.remaining()) == "1", "refused after part of the budget was spent"
        else:
            assert len(model.predict(empty)) == 0


# -- odd tables --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("name", EVERY)
def test_a_table_of_one_class_gives_that_class(name: str, classes: int) -> None:
    """At epsilon 1e6 counts are exact; cells without rows may answer anything, so rows that were there are asked."""
    schema = schema_of(classes=classes)
    table = {**table_of(schema, 60, 1), "class": ["c1"] * 60}
    model = fitted(EVERY[name](epsilon=HUGE), table, schema)
    assert set(model.predict(table)) == {"c1"}
    assert model.classes_.tolist() == [f"c{number}" for number in range(classes)]


@pytest.mark.parametrize("name", EVERY)
def test_attributes_with_one_category_and_two_grid_points_do_no_harm(name: str) -> None:
    schema = Schema(
        "odd",
        (
            Nominal("constant", ("only",), "only", missing="only"),
            Numeric("half", Decimal(0), Decimal(1), Decimal(1), Decimal(0)),
            Numeric("point", Decimal(0), Decimal(1), Decimal(2), Decimal(0)),
            Nominal("class", ("no", "yes"), "no", missing="no"),
        ),
        1000,
        "class",
    )
    table = {"constant": ["only"] * 40, "half": [0, 1] * 20, "point": [0.5] * 40, "class": ["no", "yes"] * 20}
    model = fitted(EVERY[name](epsilon=HUGE, max_depth=3), table, schema)
    assert model.score(table, table["class"]) == 1.0


@pytest.mark.parametrize("name", ["DiffPID3", "DiffPC45", "SulqID3"])
def test_an_attribute_of_one_category_takes_a_level_and_no_more(name: str) -> None:
    """Either-or of two attributes: at the root all three splits are equal, so a constant is chosen in a third of the runs.

    It is used up there, and the two levels below tell the class; were the node to end as a leaf, 30 runs without one such
    would have a chance below 1e-5 (SuLQ takes the first of equal ones, which is the constant here).
    """
    names = ("constant", "one", "other")
    categories = (("only",), ("x", "y"), ("x", "y"))
    attributes = [
        Nominal(name, listed, listed[0], missing=listed[0]) for name, listed in zip(names, categories, strict=True)
    ]
    schema = Schema("either", (*attributes, Nominal("class", ("no", "yes"), "no", missing="no")), 1000, "class")
    rows = [("only", a, b, "yes" if a != b else "no") for a in "xy" for b in "xy"] * 25
    table = {name: [row[place] for row in rows] for place, name in enumerate((*names, "class"))}
    for _ in range(30):
        model = fitted(EVERY[name](epsilon=HUGE, max_depth=3), table, schema)
        assert model.score(table, table["class"]) == 1.0, model.to_text()


def test_a_part_of_the_domain_without_a_point_to_split_at_is_not_asked_again() -> None:
    """DiffP-C4.5 on 3 grid points: below the first cut one side is a single point."""
    attributes = (
        Numeric("x", Decimal(0), Decimal(2), Decimal(1), Decimal(0)),
        Nominal("class", ("no", "yes"), "no", missing="no"),
    )
    schema = Schema("three", attributes, 100, "class")
    table = {"x": [0, 1, 2] * 10, "class": ["no", "yes", "no"] * 10}
    model = fitted(dm.DiffPC45(HUGE, 5, "gini", pruning=False), table, schema)
    assert model.trees_.trees[0].depth == 2
    assert model.score(table, table["class"]) == 1.0


@pytest.mark.parametrize("bins", [2, 3, 10, 100])
def test_bins_are_of_equal_width_and_no_more_than_points(bins: int) -> None:
    for key in discretised(SCHEMA, bins):
        size = SCHEMA.single(key.attribute).size  # type: ignore[attr-defined]
        labels = len(key.labels(SCHEMA))
        assert labels == min(bins, size)
        codes = [size * place // bins for place in range(1, bins)]
        widths = np.diff([0, *sorted({code for code in codes if code}), size])
        assert widths.min() >= 1
        assert widths.max() - widths.min() <= 1


# -- refused before anything is spent ----------------------------------------------------------------------------------


def nothing_spent(model: Any, words: str, schema: Schema = SCHEMA, error: type[Exception] = dm.RequestError) -> None:
    table = {a.name: ["x"] * 3 if not isinstance(a, Numeric) else [1, 2, 3] for a in schema.attributes}
    with opened(table, schema, 1) as private:
        with pytest.raises(error, match=words):
            model.fit(private)
        assert str(private.remaining()) == "1"
        assert not hasattr(model, "trees_")
        with pytest.raises(dm.RequestError, match="not fitted yet"):
            model.predict(table)


@pytest.mark.parametrize("name", EVERY)
def test_a_schema_without_a_class_is_refused(name: str) -> None:
    schema = Schema("none", (Nominal("kind", ("a", "b"), "a", missing="a"), Numeric("x", *map(Decimal, (0, 9, 1, 0)))), 10)
    nothing_spent(EVERY[name](), "names no class", schema, dm.SchemaError)


NOTHING = [None, ItemList("past", ("flu",), 2), Numeric("x", *map(Decimal, (0, 1, 2, 0)))]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("attribute", NOTHING, ids=["only a class", "a list", "one grid point"])
def test_a_schema_with_nothing_to_split_by_is_refused(name: str, attribute: Any) -> None:
    attributes = (Nominal("class", ("no", "yes"), "no", missing="no"), *([attribute] if attribute else []))
    nothing_spent(EVERY[name](), "no attribute but the class", Schema("bare", attributes, 10, "class"))


@pytest.mark.parametrize("name", ["TreeClassifier", "GreedyForest", "RandomForest"])
def test_an_attribute_of_one_category_is_nothing_to_split_by(name: str) -> None:
    attributes = (Nominal("class", ("no", "yes"), "no", missing="no"), Nominal("one", ("a",), "a", missing="a"))
    nothing_spent(EVERY[name](), "no attribute but the class", Schema("bare", attributes, 10, "class"))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (dm.DiffPID3(criterion="gainratio"), "its sensitivity has no bound"),
        (dm.DiffPC45(criterion="gain ratio"), "its sensitivity has no bound"),
        (dm.TreeClassifier(criterion="gain_ratio"), "its sensitivity has no bound"),
        (dm.GreedyForest(criterion="gainratio"), "its sensitivity has no bound"),
        (dm.DiffPID3(criterion="mixed"), "one of max, gini, infogain"),
        (dm.TreeClassifier(criterion="luck"), "one of max, gini, infogain, mixed"),
        (dm.DiffPID3(bins=1), "bins must be a whole number from 2"),
        (dm.SulqID3(bins=0), "bins must be a whole number from 2"),
        (dm.DiffPC45(confidence=0), "confidence must be a number"),
        (dm.DiffPC45(confidence=0.6), "confidence must be a number"),
        (dm.TreeClassifier(leaf_share=0), "leaf_share"),
        (dm.TreeClassifier(leaf_share=1), "leaf_share"),
        (dm.TreeClassifier(inner_share=1), "inner_share"),
        (dm.TreeClassifier(level_ratio=0), "level_ratio"),
        (dm.TreeClassifier(stopping=-1), "stopping"),
        (dm.TreeClassifier(smoothing=float("nan")), "smoothing"),
        (dm.TreeClassifier(splits="ternary"), "splits must be"),
        (dm.TreeClassifier(calibration="bold"), "calibration must be"),
        (dm.GreedyForest(trees=0), "trees must be a whole number"),
        (dm.RandomForest(trees=1001), "trees must be a whole number"),
        (dm.RandomForest(trees=True), "trees must be a whole number"),
        (dm.RandomForest(threshold_share=1), "threshold_share"),
        (dm.RandomForest(trees=100, max_depth=10), "too many for one query"),
    ],
    ids=repr,
)
def test_parameters_that_make_no_sense_are_refused(model: Any, words: str) -> None:
    nothing_spent(model, words)
    with pytest.raises(dm.RequestError, match=words):
        model.plan(SCHEMA)


@pytest.mark.parametrize("epsilon", [0, -1, "nan", "much", None, True, "1e7"])
@pytest.mark.parametrize("name", EVERY)
def test_an_epsilon_that_makes_no_sense_is_refused(name: str, epsilon: Any) -> None:
    nothing_spent(EVERY[name](epsilon=epsilon), "epsilon", error=dm.EpsilonError)


@pytest.mark.parametrize("units", [1, 2, 10, 49, 50, 200])
@pytest.mark.parametrize("name", EVERY)
def test_an_epsilon_of_a_few_billionths_is_refused_or_shared(name: str, units: int) -> None:
    """Never a failure in the middle: either there are too few billionths for the plan, or the tree is grown."""
    with opened(table_of(SCHEMA, 20, 1), SCHEMA, 1) as private:
        model = EVERY[name](epsilon=Epsilon(units))
        try:
            model.fit(private)
        except dm.EpsilonError:
            assert str(private.remaining()) == "1"
        else:
            assert model.charged_.units <= units
