"""Clusterings in awkward spaces: units, short axes, limits that must be met before anything is spent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.attributes import numeric

import dpmine as dm
from dpmine.codes.private_tree import ResolvedCutRule, TreeCut
from dpmine.codes.rows import RowRules, count_leaves
from dpmine.engines.cutting import RuleCutting
from dpmine.kernel.mechanisms import private_tree
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import ExactNoise
from dpmine.mining.clustering.space import Space
from dpmine.mining.clustering.synopsis import _clear, grid_sides

SHARE, INCOME = numeric("share", "0", "1", "0.01"), numeric("income", "0", "1000000", "1000")
AGE, WEIGHT = numeric("age", "0", "100", "1"), numeric("weight", "0", "1500000", "1000")
ROWS = 400


def table_of(*attributes: dm.Numeric) -> dict[str, list[float]]:
    """Rows on the attributes' own grid points, the same for the same attribute whatever the order."""
    table = {}
    for attribute in attributes:
        codes = np.random.default_rng(attribute.size).integers(0, attribute.size, ROWS)
        table[attribute.name] = [float(attribute.point(int(code))) for code in codes]
    return table


IGNORES_UNITS = pytest.mark.filterwarnings("ignore:With scaling='none':dpmine.DpmineWarning")


@IGNORES_UNITS
@pytest.mark.parametrize("attributes", [(SHARE, INCOME), (INCOME, SHARE), (AGE, WEIGHT), (WEIGHT, AGE)])
def test_distances_are_in_the_attributes_own_units_whatever_their_order(attributes: tuple[dm.Numeric, ...]) -> None:
    schema = dm.Schema("points", attributes, 1_000)
    table = table_of(*attributes)
    model = dm.KMeans(3, epsilon=100, scaling="none", seed=1).fit(table, schema=schema)
    points = np.stack([table[attribute.name] for attribute in attributes], axis=1)
    plain = np.linalg.norm(points[:, None] - model.cluster_centers_, axis=2)
    # The longest attribute's scale is rounded to at most 1 in 4,000; a step of a very short one counts as one position.
    assert np.allclose(model.transform(table), plain, rtol=2e-3, atol=50 * 0.12)


@IGNORES_UNITS
def test_the_unit_of_another_attribute_would_be_caught() -> None:
    schema = dm.Schema("points", (SHARE, INCOME), 1_000)
    table = table_of(SHARE, INCOME)
    model = dm.KMeans(3, epsilon=100, scaling="none", seed=1).fit(table, schema=schema)
    wrong = model.transform(table) / model._unit() * float(SHARE.step) / model.space_.scales[0]
    points = np.stack([table["share"], table["income"]], axis=1)
    assert not np.allclose(wrong, np.linalg.norm(points[:, None] - model.cluster_centers_, axis=2), rtol=0.1)


@pytest.mark.parametrize(
    ("attributes", "k"),
    [
        ((numeric("x", "0", "4095000", "1000"), numeric("y", "0", "4095000", "1000"), numeric("flag", "0", "1", "1")), 12),
        ((WEIGHT, AGE, numeric("gain", "0", "100000", "50")), 8),
        ((AGE, SHARE), 5),
        ((SHARE,), 100),
    ],
)
@pytest.mark.parametrize("epsilon", ["0.1", "5"])
def test_short_axes_do_not_make_grids_explode(attributes: tuple[dm.Numeric, ...], k: int, epsilon: str) -> None:
    space = Space.of(dm.Schema("points", attributes, 100_000), None, "none")
    sides = grid_sides(space, k, 10_000, dm.Epsilon.parse(epsilon))
    assert all(1 <= side <= attribute.size for side, attribute in zip(sides, attributes, strict=True))
    assert np.prod(sides) <= 2 * 400 * k
    if len(attributes) == 1:
        assert sides == (min(attributes[0].size, sides[0]),)


@IGNORES_UNITS
def test_a_fit_with_a_short_axis_spends_what_it_says() -> None:
    attributes = (numeric("x", "0", "4095000", "1000"), numeric("y", "0", "4095000", "1000"), numeric("flag", "0", "1", "1"))
    schema = dm.Schema("points", attributes, 100_000)
    model = dm.KMeans(12, epsilon=5, scaling="none", seed=1).fit(table_of(*attributes), schema=schema)
    assert model.charged_ == dm.Epsilon.parse(5)


# -- units -------------------------------------------------------------------------------------------------------------

YEARS, MONEY = numeric("age", "0", "110", "1"), numeric("income", "0", "200000", "100")
EARNERS = dm.Schema("earners", (YEARS, MONEY), 10_000)
MODELS: list[Any] = [dm.KMeans(2, 1000, seed=1), dm.DPLloyd(2, 1000, iterations=5, seed=1)]


def earners() -> dict[str, list[float]]:
    """The young and the old, whose incomes say nothing."""
    draw = np.random.default_rng(1)
    ages = np.concatenate([draw.normal(22, 3, 500), draw.normal(81, 3, 500)]).round()
    return {"age": ages.tolist(), "income": draw.uniform(0, 200_000, 1000).round(-2).tolist()}


@pytest.mark.parametrize("model", MODELS, ids=["KMeans", "DPLloyd"])
def test_years_count_as_much_as_money_unless_told_otherwise(model: Any) -> None:
    ages = model.fit(earners(), schema=EARNERS).cluster_centers_[:, 0]
    assert sorted(ages) == pytest.approx([22, 81], abs=4)


@pytest.mark.parametrize("model", MODELS, ids=["KMeans", "DPLloyd"])
def test_own_units_that_drown_an_attribute_are_warned_of_once_a_fit(model: Any) -> None:
    own = type(model)(**model.get_params() | {"scaling": "none", "schema": EARNERS})
    with pytest.warns(
        dm.DpmineWarning, match="hardly depend on 'age': the range of 'income' is more than 100 times"
    ) as told:
        own.fit(earners())
    assert len(told) == 1
    assert "Use scaling='bounds'" in str(told[0].message)
    assert told[0].filename == __file__


@pytest.mark.parametrize("high", ["110", "11000"])
def test_own_units_within_a_factor_of_a_hundred_are_not_warned_of(high: str) -> None:
    """Warnings are errors here."""
    schema = dm.Schema("near", (YEARS, numeric("other", "0", high, "100" if high == "11000" else "1")), 10_000)
    dm.KMeans(2, 1, scaling="none").fit({"age": [1, 2], "other": [3, 4]}, schema=schema)


def test_planning_with_own_units_warns_of_nothing() -> None:
    assert dm.KMeans(2, 1, scaling="none").plan(EARNERS).cost <= dm.Epsilon.parse(1)


def test_noise_beyond_64_bits_is_refused_before_anything_is_spent() -> None:
    attributes = (SHARE, INCOME, AGE, WEIGHT)
    schema = dm.Schema("points", attributes, 1_000)
    with dm.open(table_of(*attributes), schema=schema, cap=1) as data:
        private = data.grant("miner", epsilon=1)
        for model in (dm.DPLloyd(2, epsilon="0.0000001"), dm.KMeans(2, epsilon="0.0000001", method="tree")):
            with pytest.raises(dm.EpsilonError, match="would not fit 64 bits"):
                model.fit(private)
        assert private.remaining() == dm.Epsilon.parse(1)


def test_a_private_tree_has_no_more_different_cuts_than_one_query_has_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows in every node: the tree would go on for ever."""
    monkeypatch.setattr(private_tree, "MOST_PRIVATE_CUTS", 5)
    rules = [ResolvedCutRule("x", 1_000, (0,), (0,), (0,), 1), ResolvedCutRule("y", 1_000, (0,), (0,), (0,), 1)]

    def counted(tree: RowRules | None) -> np.ndarray:
        return np.full(count_leaves(tree), 10**6, dtype=np.int64)

    law = private_tree.comparisons(dm.Epsilon.parse(1))
    root = private_tree.grow_private_tree(RuleCutting(counted), rules, 12, ExactNoise(Entropy()), law)
    cuts = {node.cut for node in root.nodes() if node.cut is not None}
    assert 1 < len(cuts) <= 5
    assert TreeCut(0, 500) in cuts


def test_inertia_is_not_asked_of_a_table_with_other_grids() -> None:
    coarse = numeric("age", "0", "1000", "10")
    model = dm.KMeans(2, epsilon=10, seed=1).fit(table_of(AGE), schema=dm.Schema("points", (AGE,), 1_000))
    with dm.open({"age": [10, 20]}, schema=dm.Schema("other", (coarse,), 1_000), cap=1) as data:
        private = data.grant("miner", epsilon=1)
        with pytest.raises(dm.RequestError, match="other ranges or grids"):
            model.inertia(private, epsilon=1)
        assert private.remaining() == dm.Epsilon.parse(1)


def test_two_clear_clusters_are_found_without_being_told() -> None:
    schema = dm.Schema("points", (AGE, numeric("height", "0", "200", "1")), 1_000)
    table = {"age": [20] * 200 + [80] * 200, "height": [60] * 200 + [180] * 200}
    assert len(dm.KMeans("auto", epsilon=100, seed=1).fit(table, schema=schema).cluster_centers_) == 2


@pytest.mark.parametrize("method", ["grid", "tree"])
def test_a_view_of_too_many_steps_is_refused_before_anything_is_spent(method: str) -> None:
    with dm.open(table_of(AGE), schema=dm.Schema("points", (AGE,), 1_000), cap=1) as data:
        private = data.grant("miner", epsilon=1)
        deep = private
        for year in range(51):
            deep = deep.where(dm.col("age") >= year)
        with pytest.raises(dm.RequestError, match="at most 50 steps"):
            dm.KMeans(2, epsilon=1, method=method).fit(deep)
        assert private.remaining() == dm.Epsilon.parse(1)


def test_a_patch_that_rises_a_little_counts_only_where_it_hangs_together_with_one_that_rises_much() -> None:
    counts = np.zeros((30, 30), dtype=np.int64)
    counts[4:7, 4:7], counts[4:7, 7:13] = 1000, 60  # rows, with a low ridge beside them
    counts[20:23, 20:23] = 60  # as high as the ridge, and alone
    even = (np.ones(30), np.ones(30))
    kept = _clear(counts, 42.0, even)
    assert kept[5, 5]
    assert kept[5, 10]
    assert not kept[15:, 15:].any()
    assert _clear(counts, 30.0, even)[21, 21]  # where noise is less, it is rows


def test_with_hardly_any_noise_every_cell_with_rows_is_kept() -> None:
    counts = np.zeros((5, 1), dtype=np.int64)
    counts[2, 0] = 1
    assert _clear(counts, 0.0, (np.ones(5), np.ones(1))).all()  # within reach of the wider neighbourhood
