"""Clustering spends what its plan says, at most epsilon, and nothing where it cannot begin or has the answers already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.attributes import of_persons
from support.estimators import CLUSTERINGS
from support.mined_tables import schema_of, table_of
from support.opening import opened, recorded
from support.points import blobs, box_schema, columns, cube

import dpmine as dm
from dpmine.base.epsilon import UNITS, Epsilon
from dpmine.budget.plans import BudgetPlan, PlanStep
from dpmine.facts.schema import Schema
from dpmine.mining.clustering.estimator import ClusterEstimator

POINTS, SCHEMA = blobs(100, 1), box_schema(2)


# -- plans -------------------------------------------------------------------------------------------------------------


@given(
    st.integers(1_000_000, 10**12),
    st.integers(1, 32),
    st.integers(1, 50),
    st.integers(1, 100),
    st.sampled_from(["equal", "optimal"]),
)
def test_the_shares_of_a_plan_add_up_to_epsilon(units: int, dimensions: int, k: int, iterations: int, shares: str) -> None:
    schema, budget = box_schema(dimensions, high=3), Epsilon(units)
    for plan in (dm.KMeans(k, budget).plan(schema), dm.KMeans("auto", budget, method="tree").plan(schema)):
        assert plan.cost == budget
    lloyd = dm.DPLloyd(k, budget, iterations, shares=shares)
    assert units - iterations < lloyd.plan(schema).cost.units <= units
    automatic = dm.DPLloyd(k, budget, "auto")
    assert 2 <= automatic.plan(schema).steps[0].times <= 7
    assert automatic.plan(schema).steps[0].times == automatic.plan(schema).steps[1].times


def test_the_share_of_sizes_is_half_or_what_makes_the_error_smallest() -> None:
    """eps_0 : eps_1 = (4 d rho^2)^(1/3) : 1, and a coordinate has eps_1; with rho = .225 and d = 10 sizes get 11.2 %."""
    schema = box_schema(10)
    for shares, wanted in (("equal", 0.5), ("optimal", (40 * 0.225**2) ** (1 / 3) / (10 + (40 * 0.225**2) ** (1 / 3)))):
        model = dm.DPLloyd(5, 1, 4, shares=shares)
        sizes, sums = (step.epsilon for step in model.budget_for(schema).steps)
        assert sizes.units + sums.units == UNITS // 4
        assert sizes.units / (UNITS // 4) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "k", "rows", "turns"), [("0.01", 15, 5000, 2), (1, 2, 100_000, 7), ("1.25", 5, 5000, 5)]
)
def test_automatic_iterations_follow_su_and_others(epsilon: Any, k: int, rows: int, turns: int) -> None:
    least = (500 * k**3 / rows**2 * (2 + (8 * 0.225**2) ** (1 / 3)) ** 3) ** 0.5
    assert turns == int(min(max(float(epsilon) / least, 2), 7))
    model = dm.DPLloyd(k, epsilon, "auto", rows=rows)
    assert model.turns(SCHEMA, model.space(SCHEMA)) == turns


def test_a_plan_is_readable_and_too_small_an_epsilon_is_said_to_be() -> None:
    text = str(dm.KMeans(3, 1).plan(SCHEMA))
    assert text.startswith("KMeans (grid) at epsilon 1")
    assert "0.97" in text
    assert "grow a tree of cuts" in str(dm.KMeans(3, 1).plan(box_schema(4)))
    for name, make in CLUSTERINGS.items():
        with pytest.raises(dm.EpsilonError, match="too small for"):
            make("0.000000001").plan(SCHEMA)
        assert name


# -- the ledger --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 300])
@pytest.mark.parametrize("epsilon", ["0.001", "0.7", "50"])
@pytest.mark.parametrize("name", CLUSTERINGS)
def test_what_is_charged_is_the_plan_s_cost_and_at_most_epsilon(name: str, epsilon: str, rows: int) -> None:
    """The ledger holds twice epsilon, so it would not hide an overspending by refusing it."""
    model = CLUSTERINGS[name](epsilon)
    with recorded(columns(POINTS[:rows]), SCHEMA, Epsilon(2 * model.budget.units)) as (private, recorder):
        model.fit(private)
        spent = 2 * model.budget.units - private.remaining().units
    once = {query: reply.cost.units for query, reply in recorder.asked}  # a question that is asked again is free
    assert model.charged_.units == spent == sum(once.values())
    assert spent <= model.cost_.units == model.plan(SCHEMA).cost.units <= model.budget.units
    assert sum(reply.cost.units for _, reply in recorder.asked) == model.cost_.units
    assert len(model.cluster_centers_) == len(model.cluster_sizes_)


@settings(max_examples=25)
@given(
    st.sampled_from(sorted(CLUSTERINGS)),
    st.integers(0, 5),
    st.integers(1, 4),
    st.integers(10_000_000, 2 * 10**9),
    st.integers(0, 999),
)
def test_no_fit_costs_more_than_epsilon_whatever_the_rows(name: str, rows: int, d: int, units: int, seed: int) -> None:
    if d == 4 and name == "grid":
        d = 3
    points = np.random.default_rng(seed).integers(0, 8, (rows, d)).astype(float)
    model = CLUSTERINGS[name](Epsilon(units))
    with opened(columns(points), box_schema(d, high=7), Epsilon(2 * units)) as private:
        model.fit(private)
        assert 0 < 2 * units - private.remaining().units == model.charged_.units <= units
    assert ((model.cluster_centers_ >= 0) & (model.cluster_centers_ <= 7)).all()
    assert (model.cluster_sizes_ >= 0).all()


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_persons_with_several_rows_are_charged_for_each_and_the_whole_is_at_most_epsilon(name: str) -> None:
    schema = of_persons(SCHEMA, 3)
    table = {**columns(POINTS), "person": [f"p{place // 3}" for place in range(len(POINTS))]}
    model = CLUSTERINGS[name](3)
    with opened(table, schema, 10) as private:
        model.fit(private)
        assert private.remaining().units == 10 * UNITS - model.charged_.units
    assert model.charged_ <= model.cost_ == model.plan(schema).cost <= model.budget
    assert model.cost_.units > 3 * UNITS - 100
    assert model.plan(schema).rows_per_unit == 3


def test_the_inertia_of_persons_says_what_was_paid_for_a_person() -> None:
    schema = of_persons(SCHEMA, 3)
    table = {**columns(POINTS), "person": [f"p{place // 3}" for place in range(len(POINTS))]}
    with opened(table, schema, 10) as private:
        model = dm.KMeans(3, 3).fit(private)
        before = private.remaining().units
        told = model.inertia(private, epsilon="0.9")
        assert before - private.remaining().units == told.receipt.epsilon.units == told.receipt.cost.units == 9 * UNITS // 10


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_fitting_again_costs_nothing_and_gives_the_same(name: str) -> None:
    with opened(columns(POINTS), SCHEMA, 1) as private:
        first, again = CLUSTERINGS[name]().fit(private), CLUSTERINGS[name]().fit(private)
    assert 0 < first.charged_.units <= first.cost_.units
    assert str(again.charged_) == "0"
    assert again.cost_ == first.cost_  # what the model discloses, whoever paid
    assert (again.cluster_centers_ == first.cluster_centers_).all()
    assert (again.cluster_sizes_ == first.cluster_sizes_).all()


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_a_budget_that_is_too_short_is_refused_before_anything_is_spent(name: str) -> None:
    model = CLUSTERINGS[name](1)
    with opened(columns(POINTS), SCHEMA, "0.999") as private:
        with pytest.raises(dm.BudgetError, match="Nothing was spent"):
            model.fit(private)
        assert str(private.remaining()) == "0.999"
    assert not hasattr(model, "cluster_centers_")


WRONG: list[tuple[Callable[[], ClusterEstimator], str]] = [
    (lambda: dm.KMeans(0), "n_clusters must be a whole number"),
    (lambda: dm.KMeans(2.5), "n_clusters"),  # type: ignore[arg-type]
    (lambda: dm.KMeans("many"), "n_clusters"),
    (lambda: dm.KMeans(1001), "from 1 to 1000"),
    (lambda: dm.KMeans(True), "n_clusters"),
    (lambda: dm.KMeans(2, max_clusters=2), "max_clusters"),
    (lambda: dm.KMeans(2, scaling="deviation"), "scaling must be one of none, bounds. Got 'deviation'"),
    (lambda: dm.KMeans(2, method="lsh"), "method must be one of auto, grid, tree. Got 'lsh'"),
    (lambda: dm.KMeans(2, method="grid"), "up to 3 attributes. Use method='tree'"),
    (lambda: dm.KMeans(2, seed=-1), "seed must be a whole number"),
    (lambda: dm.KMeans(2, seed="x"), "seed"),  # type: ignore[arg-type]
    (lambda: dm.KMeans(2, attributes=["x0", "x0"]), "different attributes"),
    (lambda: dm.KMeans(2, attributes=["x0", "nothing"]), "'nothing' is not in the schema"),
    (lambda: dm.KMeans(2, attributes=["x0", "colour"]), "'colour' is not numeric"),
    (lambda: dm.KMeans(2, attributes=["constant"]), "'constant' is not numeric"),
    (lambda: dm.DPLloyd(0), "n_clusters"),
    (lambda: dm.DPLloyd("auto"), "n_clusters"),  # type: ignore[arg-type]
    (lambda: dm.DPLloyd(2, iterations=0), "iterations must be a whole number from 1 to 100"),
    (lambda: dm.DPLloyd(2, iterations="some"), "iterations"),
    (lambda: dm.DPLloyd(2, starts="rows"), "starts must be one of random, spread. Got 'rows'"),
    (lambda: dm.DPLloyd(2, shares="all"), "shares must be one of equal, optimal"),
    (lambda: dm.DPLloyd(2, rows=0), "rows must be a whole number"),
    (lambda: dm.DPLloyd(2, seed=1.5), "seed"),  # type: ignore[arg-type]
    (lambda: dm.DPLloyd(2, attributes=["colour"]), "'colour' is not numeric"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_parameters_are_named_and_nothing_is_spent(number: int) -> None:
    make, message = WRONG[number]
    nominal = schema_of(lists=True)
    attributes = (*box_schema(4).attributes, nominal.single("colour"), nominal.single("constant"))
    table = {**columns(cube(10, 1)), "colour": ["red"] * 24, "constant": ["only"] * 24}
    model = make()
    with opened(table, Schema("points", attributes, 100), 1) as private:
        with pytest.raises(dm.DpmineError) as caught:
            model.fit(private)
        assert str(private.remaining()) == "1"
    assert message in str(caught.value)


def test_a_table_without_numbers_cannot_be_clustered() -> None:
    schema = schema_of(numeric=False)
    with opened(table_of(schema, 10, 1), schema, 1) as private:
        for model in (dm.KMeans(2), dm.DPLloyd(2)):
            with pytest.raises(dm.RequestError, match="no numeric attribute"):
                model.fit(private)
        assert str(private.remaining()) == "1"


# -- a planted mistake -------------------------------------------------------------------------------------------------


def test_a_count_of_rows_that_the_plan_forgets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: all of epsilon goes to the grid, and the number of rows is asked besides."""
    model = CLUSTERINGS["grid"]()

    def forgetful(self: Any, schema: Any, *, rows: int | None = None) -> BudgetPlan:
        return BudgetPlan("x", self.budget, (PlanStep("cells", self.budget),))

    honest = dm.KMeans.budget_for

    def greedy(self: Any, schema: Any, rows: float = 0) -> Any:
        found = honest(self, schema, rows)
        return replace(found, grid=replace(found.grid, epsilon=self.budget))

    monkeypatch.setattr(dm.KMeans, "budget_for", greedy)
    with pytest.raises(dm.EpsilonError, match="more than its budget"):
        model.plan(SCHEMA)
    monkeypatch.setattr(dm.KMeans, "plan", forgetful)
    with opened(columns(POINTS), SCHEMA, 2) as private:
        assert model.fit(private).charged_ > model.budget
    with opened(columns(POINTS), SCHEMA, 1) as private, pytest.raises(dm.BudgetError):
        CLUSTERINGS["grid"]().fit(private)
