"""Budgets: the published formulas, plans that say what the ledger will charge, and no fit that costs more than epsilon."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.attributes import of_persons
from support.estimators import EVERY
from support.mined_tables import schema_of, table_of
from support.opening import HUGE, fitted, opened, recorded
from support.twins import few_and_many

import dpmine as dm
from dpmine.base.epsilon import UNITS, Epsilon
from dpmine.budget.plans import BudgetPlan, PlanStep, part_of
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.noise.laws import ChoiceLoss
from dpmine.noise.spread import deviation, loss_bound, of_counts

# -- the formulas ------------------------------------------------------------------------------------------------------


def facts(nominal: int, numeric: int, points: int = 50) -> Schema:
    """So many attributes of two categories, and numeric ones of so many points."""
    attributes: list[Any] = [Nominal(f"n{place}", ("a", "b"), "a", missing="a") for place in range(nominal)]
    attributes += [Numeric(f"x{place}", Decimal(1), Decimal(points), Decimal(1), Decimal(1)) for place in range(numeric)]
    return Schema("facts", (*attributes, Nominal("class", ("no", "yes"), "no", missing="no")), 10_000, "class")


def epsilons(plan: BudgetPlan) -> set[Epsilon]:
    return {step.epsilon for step in plan.steps}


@given(st.integers(1, 20), st.integers(0, 8), st.integers(1, 5), st.integers(1_000_000, 10**12))
def test_the_published_shares_are_the_papers(depth: int, numeric: int, nominal: int, units: int) -> None:
    schema, budget = facts(nominal, numeric), Epsilon(units)
    id3 = dm.DiffPID3(budget, max_depth=depth).plan(schema)
    assert epsilons(id3) == {Epsilon(units // (2 * (depth + 1)))}
    assert sum(step.times for step in id3.steps) == 2 * (depth + 1)
    c45 = dm.DiffPC45(budget, max_depth=depth).plan(schema)
    assert epsilons(c45) == {Epsilon(units // ((2 + numeric) * depth + 2))}
    assert sum(step.times for step in c45.steps) == (2 + numeric) * depth + 2
    sulq = dm.SulqID3(budget, max_depth=depth).plan(schema)
    each = units // (2 * (depth + 1))
    assert epsilons(sulq) == {Epsilon(each), Epsilon(each // (2 * (nominal + numeric)))}
    for plan in (id3, c45, sulq):
        assert units - 2 * (nominal + numeric) * depth - sum(step.times for step in plan.steps) <= plan.cost.units <= units


def test_the_numbers_of_the_paper_are_met() -> None:
    """Adult has 6 numeric attributes: B/42 at depth 5, or B/12 in bins. SuLQ with 10 attributes and B = .1 has .00125."""
    adult = facts(8, 6)
    assert epsilons(dm.DiffPC45(42, max_depth=5).plan(adult)) == {Epsilon(UNITS)}
    assert epsilons(dm.DiffPID3(12, max_depth=5).plan(adult)) == {Epsilon(UNITS)}
    *_, by_attribute, by_class = dm.SulqID3("0.1", max_depth=1).plan(facts(10, 0)).steps
    assert by_attribute.epsilon == by_class.epsilon == Epsilon.parse("0.00125")
    assert deviation(of_counts(by_class.epsilon)) == pytest.approx(1131, abs=1)


def test_a_plan_never_costs_more_than_its_budget_and_every_step_has_some() -> None:
    with pytest.raises(dm.EpsilonError, match=r"costs 0\.3, more than its budget of 0\.2"):
        BudgetPlan("x", Epsilon.parse("0.2"), (PlanStep("count", Epsilon.parse("0.1"), 3),))
    with pytest.raises(dm.EpsilonError, match="too small for this plan: count would get less"):
        BudgetPlan("x", Epsilon.parse("0.2"), (PlanStep("count", Epsilon(0)),))
    for name, make in EVERY.items():
        if name == "RandomForest":
            continue  # it asks one question, for which a billionth is enough
        with pytest.raises(dm.EpsilonError, match="too small"):
            make(epsilon="0.000000001").plan(facts(3, 2))


@given(st.integers(1, 10**15), st.fractions(0, 1), st.integers(1, 1000))
def test_parts_are_rounded_down(units: int, share: Fraction, parts: int) -> None:
    assert part_of(Epsilon(units), share).units == units * share.numerator // share.denominator <= units
    assert part_of(Epsilon(units), parts).units * parts <= units


# -- plans and the ledger ----------------------------------------------------------------------------------------------


def a_full_tree(schema: Schema) -> dict[str, list[Any]]:
    """Enough rows that every path of a shallow tree is taken to its end."""
    draw = np.random.default_rng(5)
    table: dict[str, list[Any]] = {}
    for attribute in schema.attributes:
        codes = draw.integers(0, attribute.size, 2000)  # type: ignore[union-attr]
        table[attribute.name] = [attribute.label(int(code)) for code in codes]  # type: ignore[union-attr]
    return table


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("nominal", "numeric"), [(4, 0), (5, 1), (4, 2)])
def test_a_tree_that_goes_all_the_way_is_charged_what_its_plan_says(depth: int, nominal: int, numeric: int) -> None:
    schema = facts(nominal, numeric)
    table = a_full_tree(schema)
    for model in (
        dm.DiffPID3(HUGE, depth, "gini"),
        dm.DiffPC45(HUGE, depth, "gini"),
        dm.DiffPC45(HUGE, depth, "max", pruning=False),
    ):
        fitted(model, table, schema)
        assert model.charged_ == model.cost_ == model.plan(schema).cost
    sulq = dm.SulqID3(HUGE, depth)
    each = Epsilon.parse(HUGE).units // (2 * (depth + 1))
    attributes = [nominal + numeric - level for level in range(depth)]  # one is used up on every level
    shared = 2 * attributes[0] * (each // (2 * attributes[0]))  # what the first level can share evenly, all levels share
    exact = (depth + 2) * each + sum(2 * left * (shared // (2 * left)) for left in attributes)
    assert fitted(sulq, table, schema).charged_.units == exact
    assert exact <= sulq.plan(schema).cost.units <= exact + 2 * depth * (nominal + numeric)  # of a billionth each


FACTS = facts(3, 2)


@given(
    st.integers(1, 8),
    st.floats(0.01, 0.99),
    st.floats(0.1, 10),
    st.floats(0, 0.99),
    st.integers(1_000_000, 10**10),
)
def test_the_shares_of_a_tree_add_up_to_epsilon(depth: int, leaf: float, ratio: float, inner: float, units: int) -> None:
    model = dm.TreeClassifier(Epsilon(units), depth, leaf_share=leaf, level_ratio=ratio, inner_share=inner)
    try:
        budget = model.budget_for(FACTS, 1000)
    except dm.EpsilonError:
        assert leaf > 0.9 or ratio < 0.5 or ratio > 2 or inner > 0.9  # some share is less than a billionth
        return
    assert sum(step.cost.units for step in budget.steps) == units
    assert len(budget.levels) == depth
    assert budget.count is None
    automatic = dm.TreeClassifier(Epsilon(units), leaf_share=leaf, inner_share=inner).budget_for(FACTS, 10_000)
    assert automatic.count is not None
    assert automatic.count.epsilon.units == units // 50
    assert sum(step.cost.units for step in automatic.steps) == units


@pytest.mark.parametrize("options", [{}, {"max_depth": 3}, {"max_depth": 4, "inner_share": 0.3, "stopping": 0}])
def test_a_tree_s_plan_costs_epsilon_and_so_does_the_tree(options: dict[str, Any]) -> None:
    schema = schema_of()
    model = dm.TreeClassifier("0.7", **options)
    assert model.plan(schema).cost == Epsilon.parse("0.7")
    assert fitted(model, table_of(schema, 200, 1), schema).charged_ == model.cost_ == Epsilon.parse("0.7")


@pytest.mark.parametrize("rows", [1, 100, 10**6])
def test_an_automatic_depth_follows_from_rows_times_epsilon(rows: int) -> None:
    model = dm.TreeClassifier("0.5")
    depths = [step for step in model.plan(schema_of(), rows=rows).steps if step.what.startswith("choose the splits")]
    assert len(depths) == model.greedy.depth(model.budget, rows) == {1: 2, 100: 2, 10**6: 8}[rows]
    assert dm.TreeClassifier(1).greedy.depth(Epsilon(10**9), -5) == 2
    assert dm.TreeClassifier(1).greedy.depth(Epsilon(10**9), 10**12) == 10


# -- nothing costs more than epsilon -----------------------------------------------------------------------------------

SCHEMAS = [
    schema_of(numeric=numeric, classes=classes, lists=lists)
    for numeric in (True, False)
    for classes in (2, 3)
    for lists in (True, False)
]
CRITERIA = {"TreeClassifier": ["max", "gini", "infogain", "mixed"], "GreedyForest": ["max", "gini", "infogain", "mixed"]}


@st.composite
def worlds(draw: st.DrawFn) -> tuple[TreeEstimator, dict[str, list[Any]], Schema]:
    schema = draw(st.sampled_from(SCHEMAS))
    table = table_of(schema, draw(st.sampled_from([0, 1, 2, 5, 12, 60])), draw(st.integers(0, 999)))
    name = draw(st.sampled_from(sorted(EVERY)))
    params: dict[str, Any] = {"epsilon": draw(st.sampled_from(["0.0001", "0.0123456", "0.3", "1", "7.7", "100", "10000"]))}
    params["max_depth"] = draw(st.integers(1, 4))
    if name in ("DiffPC45", "DiffPID3", "TreeClassifier", "GreedyForest"):
        params["criterion"] = draw(st.sampled_from(CRITERIA.get(name, ["max", "gini", "infogain"])))
    if name == "TreeClassifier":
        params["stopping"] = draw(st.sampled_from([0, 0.05, 1, 50]))
        params["splits"] = draw(st.sampled_from(["any", "binary", "multiway"]))
        params["leftover"] = draw(st.booleans())
        params["inner_share"] = draw(st.sampled_from([0.0, 0.0, 0.4]))
        params["calibration"] = draw(st.sampled_from(["monotone", "generic"]))
        params["smoothing"] = draw(st.sampled_from([0, 1, 20]))
    if name in ("TreeClassifier", "GreedyForest") and draw(st.booleans()):
        params["max_depth"] = "auto"
    if name in ("GreedyForest", "RandomForest"):
        params["trees"] = draw(st.integers(1, 5))
    if name in ("DiffPID3", "SulqID3"):
        params["bins"] = draw(st.integers(2, 30))
    return EVERY[name](**params), table, schema


@few_and_many(worlds(), few=80, many=250)
def test_no_fit_costs_more_than_epsilon_whatever_the_rows(world: tuple[TreeEstimator, dict[str, list[Any]], Schema]) -> None:
    """The ledger holds twice epsilon, so it would not hide an overspending by refusing it."""
    model, table, schema = world
    with opened(table, schema, Epsilon(2 * model.budget.units)) as private:
        model.fit(private)
        spent = 2 * model.budget.units - private.remaining().units
    assert model.charged_.units == spent
    assert 0 < spent <= model.budget.units
    assert model.cost_ == model.plan(schema).cost <= model.budget
    spends_all = getattr(model, "leftover", True) and not getattr(model, "inner_share", 0)
    if isinstance(model, dm.TreeClassifier | dm.GreedyForest | dm.RandomForest) and spends_all:
        assert spent == model.budget.units
    if not isinstance(model, dm.SulqID3):  # of SuLQ below
        assert spent <= model.cost_.units
    check_model(model, table)


def check_model(model: TreeEstimator, table: dict[str, list[Any]]) -> None:
    """Whatever noise did, the model is one that predicts."""
    shares = model.predict_proba(table)
    assert shares.shape == (len(table["class"]), len(model.classes_))
    assert np.allclose(shares.sum(axis=1), 1)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert model.predict(table).tolist() == [model.classes_[place] for place in shares.argmax(axis=1)]
    depth = model.max_depth
    assert all(tree.depth <= (10 if depth == "auto" else depth) for tree in model.trees_.trees)


def test_a_branch_that_stops_early_spends_what_it_saved_on_its_own_counts() -> None:
    """With a huge bonus the root stays whole: its class counts get all later levels' shares."""
    schema = schema_of()
    with recorded(table_of(schema, 50, 1), schema, "1") as (private, recorder):
        model = dm.TreeClassifier(1, 3, stopping=1000).fit(private)
    assert model.trees_.trees[0].split is None
    budget = model.budget_for(schema)
    (only,) = recorder.queries[-1].epsilon
    assert only.units == budget.leaves.epsilon.units + sum(level.epsilon.units for level in budget.levels[1:])
    with recorded(table_of(schema, 50, 1), schema, "1") as (private, recorder):
        frugal = dm.TreeClassifier(1, 3, stopping=1000, leftover=False).fit(private)
    assert recorder.queries[-1].epsilon == (budget.leaves.epsilon,)
    assert frugal.charged_.units == budget.leaves.epsilon.units + budget.levels[0].epsilon.units


def test_counts_in_the_middle_that_are_never_asked_are_spent_on_the_leaves() -> None:
    """`leftover` promises what a branch saved to its leaves: also the share for the middle that it never reached."""
    schema = schema_of()
    model = dm.TreeClassifier(1, 4, stopping=1000, inner_share=0.5)
    assert fitted(model, table_of(schema, 50, 1), schema).charged_ == model.budget


@pytest.mark.parametrize("name", EVERY)
def test_a_budget_that_is_too_short_is_refused_before_anything_is_spent(name: str) -> None:
    """At epsilon 1000 and 500 rows every tree goes all the way, so each of these fits must be refused."""
    schema = schema_of()
    model = EVERY[name](epsilon=1000)
    with opened(table_of(schema, 500, 1), schema, 500) as private:
        with pytest.raises(dm.BudgetError):
            model.fit(private)
        assert str(private.remaining()) == "500"
        assert not hasattr(model, "trees_")


@pytest.mark.parametrize("name", EVERY)
def test_disjoint_parts_are_paid_once(name: str) -> None:
    """With nothing left, a part that is disjoint from the one that was paid can still be learned from."""
    schema = schema_of()
    with opened(table_of(schema, 200, 1), schema, 1) as private:
        train, test = private.split(test=0.5)
        test.count(epsilon=1)
        assert str(private.remaining()) == "0"
        model = EVERY[name](epsilon=1).fit(train)
        assert str(model.charged_) == "0"
        assert model.cost_ == model.plan(schema).cost  # what the model discloses, whoever paid
        with pytest.raises(dm.BudgetError):
            EVERY[name](epsilon=1).fit(private)


def test_a_model_never_discloses_more_than_its_cost_says() -> None:
    """SuLQ shares a level among fewer attributes the deeper it goes; rounded down, that may be a billionth or so more."""
    schema = facts(7, 0)
    for units in range(1_000_000_000_000, 1_000_000_000_040):
        model = fitted(dm.SulqID3(Epsilon(units), 3), a_full_tree(schema), schema)
        assert model.charged_ <= model.cost_, (model.charged_.units, model.cost_.units)


@pytest.mark.parametrize("name", EVERY)
def test_persons_with_several_rows_are_charged_for_each_and_the_model_costs_no_more_than_epsilon(name: str) -> None:
    """Queries get a third of epsilon where a person may have three rows, so that the whole person is charged epsilon."""
    base = schema_of()
    schema = of_persons(base, 3)
    table = {**table_of(base, 300, 1), "person": [f"p{place // 3}" for place in range(300)]}
    model = EVERY[name](epsilon=300, max_depth=2)
    with opened(table, schema, 1000) as private:
        model.fit(private)
        assert private.remaining().units == 1000 * UNITS - model.charged_.units
    assert model.charged_ <= model.cost_ == model.plan(schema).cost <= model.budget
    assert model.cost_.units > 299 * UNITS
    assert model.plan(schema).rows_per_unit == 3


# -- what plans promise ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["max", "gini", "mixed", "infogain"])
@pytest.mark.parametrize("calibration", ["monotone", "generic"])
@pytest.mark.parametrize("numeric", [0, 1, 3])
def test_the_loss_of_a_plan_is_at_least_that_of_the_choice_itself(criterion: str, calibration: str, numeric: int) -> None:
    """Families share the base measure evenly, so few candidates in one family weigh as many as thousands in another."""
    schema = facts(2, numeric, points=2000)
    model = dm.TreeClassifier("0.5", criterion=criterion, calibration=calibration, max_depth=1, stopping=0).greedy
    planned = model.loss(Epsilon.parse("0.5"), schema)
    rows = {a.name: ["a" if isinstance(a, Nominal) else "1"] for a in schema.attributes[:-1]} | {"class": ["no"]}
    with recorded(rows, schema) as (private, recorder):
        private.choose(model.candidates(schema), epsilon="0.5", score=criterion, calibration=calibration)
    ((law,),) = recorder.asked[0][1].answer.laws
    assert isinstance(law, ChoiceLoss)
    assert planned.candidates == law.candidates
    assert loss_bound(planned, 0.95) == pytest.approx(loss_bound(law, 0.95), rel=1e-3)  # whose range is rounded up to steps


def test_a_plan_for_persons_says_that_its_steps_are_priced_for_a_row() -> None:
    form = dm.TreeClassifier("0.9", max_depth=1).plan(of_persons(facts(2, 0), 3)).to_dict()
    assert form["rows_per_unit"] == 3
    assert sum(int(float(step["cost"]) * UNITS + 0.5) for step in form["steps"]) * 3 <= int(0.9 * UNITS)  # type: ignore[attr-defined]
    assert "rows_per_unit" not in dm.TreeClassifier("0.9", max_depth=1).plan(facts(2, 0)).to_dict()
