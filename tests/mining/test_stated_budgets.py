"""Every estimator asks what its plan lists: the same epsilons, in the order of its algorithm, and both follow its shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
from support.attributes import number, of_persons
from support.mined_tables import Table, schema_of, table_of
from support.opening import HUGE, recorded

import dpmine as dm
from dpmine.audit.discovery import last_subclasses
from dpmine.base.epsilon import Epsilon
from dpmine.budget.plans import BudgetPlan, PlanStep, StatedBudget
from dpmine.budget.rows import per_row, per_unit
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.language.queries import Query
from dpmine.mining.estimators import Estimator
from dpmine.mining.trees.greedy import GreedyTrees
from dpmine.questions.choose_split import ChooseSplit
from dpmine.questions.histogram import Histogram
from dpmine.questions.offset_sums import OffsetSums
from dpmine.questions.private_tree import PrivateTree
from dpmine.questions.sparse_histogram import SparseHistogram
from dpmine.release.paid_check import buy_check, plan_check

Asked = list[tuple[type, Epsilon]]
"""The kind and the epsilon of each question, in order."""
PLENTY = HUGE // 10
"""Trees go all the way, and the ledger of these tests holds ten times as much, so that it hides nothing by refusing it."""
MIXED = schema_of()
ROWS = table_of(MIXED, 400, 1)
PREDICTORS = len(MIXED.attributes) - 1
POINTS = Schema(
    "points",
    (number("x", 100), number("y", 100)),
    1000,
)
LINE = Schema("line", (POINTS.attributes[0], Nominal("class", ("no", "yes"), "no", missing="no")), 1000, "class")


def spots(schema: Schema) -> Table:
    draw = np.random.default_rng(3)
    return {
        a.name: [a.label(int(code)) for code in draw.integers(0, a.size, 400)]  # type: ignore[union-attr]
        for a in schema.attributes
    }


class Count:
    """Stands for a histogram by no key."""


def kind_of(question: object) -> type:
    return Count if question == Histogram(()) else type(question)


def asked_by(queries: list[Query]) -> Asked:
    """What the cells of each question pay that are asked. A leaf that stopped early pays what its branch saved on top."""
    return [(kind_of(query.question), min(one for one in query.epsilon if one.units)) for query in queries]


# -- how each algorithm goes through its steps -------------------------------------------------------------------------

Order = Callable[..., Iterator[tuple[type, PlanStep]]]


def of_sulq(rows: PlanStep, classes: PlanStep, by_attribute: PlanStep, by_class: PlanStep) -> Any:
    """Of depth 1."""
    yield Count, rows
    for _ in range(by_attribute.times):
        yield Histogram, by_attribute
        yield Histogram, by_class
    yield Count, rows
    yield Histogram, classes


def of_id3(rows: PlanStep, attribute: PlanStep, classes: PlanStep) -> Any:
    for _ in range(attribute.times):
        yield Count, rows
        yield ChooseSplit, attribute
    yield Count, rows
    yield Histogram, classes


def of_c45(rows: PlanStep, points: PlanStep, attribute: PlanStep, classes: PlanStep) -> Any:
    for _ in range(attribute.times):
        yield Count, rows
        yield from [(ChooseSplit, points)] * (points.times // attribute.times)
        yield ChooseSplit, attribute
    yield Count, rows
    yield Histogram, classes


def of_a_tree(*levels_and_leaves: PlanStep) -> Any:
    *levels, leaves = levels_and_leaves
    yield from ((ChooseSplit, level) for level in levels)
    yield Histogram, leaves


def of_a_counted_tree(count: PlanStep, *levels_and_leaves: PlanStep) -> Any:
    yield Count, count
    yield from of_a_tree(*levels_and_leaves)


def of_a_tree_with_a_middle(first: PlanStep, second: PlanStep, inner: PlanStep, leaves: PlanStep) -> Any:
    yield ChooseSplit, first
    yield Histogram, inner
    yield ChooseSplit, second
    yield Histogram, leaves


def of_histograms(*steps: PlanStep) -> Any:
    yield from ((Histogram, step) for step in steps)


def of_a_tree_release(*steps: PlanStep) -> Any:
    *tree, frequencies = steps
    yield from of_a_tree(*tree)
    yield from [(Histogram, frequencies)] * frequencies.times


def of_diffgen(total: PlanStep, frequencies: PlanStep, points: PlanStep, *others: PlanStep) -> Any:
    """On one numeric attribute every round makes new intervals; nobody would use the points of the last ones."""
    values, new_points, counts = others
    yield Count, total
    yield from [(Histogram, frequencies)] * frequencies.times
    yield from [(ChooseSplit, points)] * points.times
    for place in range(values.times):
        yield ChooseSplit, values
        if place < values.times - 1:
            yield ChooseSplit, new_points
    yield SparseHistogram, counts


def of_joint_diffgen(values: PlanStep, counts: PlanStep) -> Any:
    yield from [(ChooseSplit, values)] * values.times
    yield SparseHistogram, counts


def of_one_count(counts: PlanStep) -> Any:
    yield SparseHistogram, counts


def of_a_grid(count: PlanStep, grid: PlanStep) -> Any:
    yield Count, count
    yield Histogram, grid


def of_cuts(marginals: PlanStep, structure: PlanStep, leaves: PlanStep, moves: PlanStep) -> Any:
    yield from [(Histogram, marginals)] * marginals.times
    yield PrivateTree, structure
    yield Count, leaves
    yield from [(OffsetSums, moves)] * moves.times


def of_lloyd(sizes: PlanStep, sums: PlanStep) -> Any:
    for _ in range(sizes.times):
        yield Histogram, sizes
        yield OffsetSums, sums


@dataclass(frozen=True)
class Case:
    """An estimator, the same with another share, and its way through the steps of either plan."""

    make: Callable[[], Any]
    other: Callable[[], Any]
    order: Callable[..., Any]
    schema: Schema = MIXED


TREE: dict[str, Any] = {"max_depth": 2, "stopping": 0}
CASES = {
    "SulqID3": Case(lambda: dm.SulqID3(PLENTY, 1), lambda: dm.SulqID3(PLENTY // 2, 1), of_sulq),
    "DiffPID3": Case(lambda: dm.DiffPID3(PLENTY, 2), lambda: dm.DiffPID3(PLENTY, 3), of_id3),
    "DiffPC45": Case(lambda: dm.DiffPC45(PLENTY, 1), lambda: dm.DiffPC45(PLENTY, 2), of_c45),
    "TreeClassifier": Case(
        lambda: dm.TreeClassifier(1, **TREE), lambda: dm.TreeClassifier(1, **TREE, leaf_share=0.4), of_a_tree
    ),
    "TreeClassifier, levels": Case(
        lambda: dm.TreeClassifier(1, **TREE), lambda: dm.TreeClassifier(1, **TREE, level_ratio=2), of_a_tree
    ),
    "TreeClassifier with a middle": Case(
        lambda: dm.TreeClassifier(1, **TREE, inner_share=0.3),
        lambda: dm.TreeClassifier(1, **TREE, inner_share=0.5),
        of_a_tree_with_a_middle,
    ),
    "GreedyForest": Case(lambda: dm.GreedyForest(PLENTY, 2, 2), lambda: dm.GreedyForest(PLENTY, 2, 3, "gini"), of_a_tree),
    "RandomForest": Case(
        lambda: dm.RandomForest(1, 3, 2, seed=1), lambda: dm.RandomForest(1, 3, 2, 0.3, seed=1), of_histograms
    ),
    "TreeRelease": Case(
        lambda: dm.TreeRelease(PLENTY, max_depth=2),
        lambda: dm.TreeRelease(PLENTY, 0.4, max_depth=2),
        of_a_tree_release,
    ),
    "DiffGen": Case(
        lambda: dm.DiffGen(PLENTY, 3, total_share=0.1, frequency_share=0.2),
        lambda: dm.DiffGen(PLENTY, 3, total_share=0.2, frequency_share=0.1),
        of_diffgen,
        LINE,
    ),
    "DiffGen, joint": Case(
        lambda: dm.DiffGen(1, 3, points="joint"), lambda: dm.DiffGen(1, 4, points="joint"), of_joint_diffgen
    ),
    "ContingencyTable": Case(lambda: dm.ContingencyTable(1, 2), lambda: dm.ContingencyTable("0.7", 2), of_one_count),
    "KMeans": Case(lambda: dm.KMeans(3, 1, seed=1), lambda: dm.KMeans(3, 2, seed=1), of_a_grid, POINTS),
    "KMeans by a tree": Case(
        lambda: dm.KMeans(3, 1, method="tree", seed=1), lambda: dm.KMeans(3, 2, method="tree", seed=1), of_cuts, POINTS
    ),
    "DPLloyd": Case(
        lambda: dm.DPLloyd(3, 1, 4, seed=1), lambda: dm.DPLloyd(3, 1, 4, shares="optimal", seed=1), of_lloyd, POINTS
    ),
}


def table(schema: Schema) -> Table:
    return ROWS if schema is MIXED else spots(schema)


def planned(case: Case, plan: BudgetPlan) -> Asked:
    return [(kind, step.epsilon) for kind, step in case.order(*plan.steps)]


def asked_in_fitting(model: Any, schema: Schema) -> Asked:
    with recorded(table(schema), schema, HUGE) as (private, recorder):
        model.fit(private)
    return asked_by(recorder.queries)


def asks_what_it_plans(case: Case, model: Any) -> bool:
    return asked_in_fitting(model, case.schema) == planned(case, model.plan(case.schema))


@pytest.mark.parametrize("name", CASES)
def test_fitting_asks_what_the_plan_lists_and_another_share_changes_both(name: str) -> None:
    case = CASES[name]
    model, other = case.make(), case.other()
    asked, asked_otherwise = (asked_in_fitting(one, case.schema) for one in (model, other))
    assert asked == planned(case, model.plan(case.schema))
    assert asked_otherwise == planned(case, other.plan(case.schema))
    assert asked != asked_otherwise
    assert model.plan(case.schema).steps != other.plan(case.schema).steps


@pytest.mark.parametrize("name", CASES)
def test_steps_go_through_as_often_as_the_plan_says(name: str) -> None:
    """The plan's cost is that of the longest way; only new points of the last round are planned and never asked."""
    case = CASES[name]
    plan = case.make().plan(case.schema)
    ways = [step for _, step in case.order(*plan.steps)]
    for step in plan.steps:
        never = step.what == "choose split points of new intervals"
        assert sum(one is step for one in ways) == step.times - never


def test_every_estimator_has_a_case() -> None:
    assert {found.__name__ for found in last_subclasses(Estimator)} == {name.split(",")[0].split(" ")[0] for name in CASES}


def test_a_depth_that_follows_from_rows_is_planned_and_asked_alike() -> None:
    model = dm.TreeClassifier(1, stopping=0)
    with recorded(ROWS, MIXED, 1) as (private, recorder):
        model.fit(private)
    (rows,) = recorder.asked[0][1].answer.numbers[0] or ()
    expected = [(kind, step.epsilon) for kind, step in of_a_counted_tree(*model.plan(MIXED, rows=rows).steps)]
    assert asked_by(recorder.queries) == expected
    assert model.plan(MIXED, rows=10**9).steps[1:] != model.plan(MIXED, rows=rows).steps[1:]


def test_a_check_asks_what_its_plan_lists() -> None:
    epsilon = Epsilon.parse(1)
    with recorded(ROWS, MIXED, 3) as (private, recorder):
        released = dm.TreeRelease(1, max_depth=2).fit(private).release()
        before = len(recorder.queries)
        buy_check(private, released, epsilon=epsilon, seed=1)
    matrix, histograms = plan_check(epsilon, MIXED).steps
    assert histograms.times == PREDICTORS + 1
    wanted = [matrix.epsilon, *[histograms.epsilon] * histograms.times]
    assert asked_by(recorder.queries[before:]) == [(Histogram, one) for one in wanted]


# -- planted mistakes --------------------------------------------------------------------------------------------------


def test_leaves_that_are_counted_by_another_share_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the last level's share and that of the leaves are swapped; together they cost what the plan says."""
    honest = GreedyTrees.grow

    def swapped(self: GreedyTrees, growth: Any, roots: Any, budget: Any, progress: Any) -> Any:
        *levels, last = budget.levels
        levels.append(replace(last, epsilon=budget.leaves.epsilon))
        leaves = replace(budget.leaves, epsilon=last.epsilon)
        return honest(self, growth, roots, replace(budget, levels=tuple(levels), leaves=leaves), progress)

    assert asks_what_it_plans(CASES["TreeClassifier"], CASES["TreeClassifier"].make())
    monkeypatch.setattr(GreedyTrees, "grow", swapped)
    assert not asks_what_it_plans(CASES["TreeClassifier"], CASES["TreeClassifier"].make())


def halved(item: Any) -> Any:
    """A budget with every step at half of its epsilon."""
    if isinstance(item, PlanStep):
        return replace(item, epsilon=Epsilon(item.epsilon.units // 2))
    if isinstance(item, tuple):
        return tuple(map(halved, item))
    if not isinstance(item, StatedBudget):
        return item
    return replace(item, **{field.name: halved(getattr(item, field.name)) for field in fields(item)})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
def test_a_budget_that_is_worked_out_anew_in_fitting_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: fitting asks by half of every step's epsilon."""
    case = CASES[name]
    honest = type(case.make()).budget_for
    fitting = False

    def other_in_fitting(self: Any, schema: Schema, rows: float = 0) -> Any:
        found = honest(self, schema, rows)
        return halved(found) if fitting else found

    monkeypatch.setattr(type(case.make()), "budget_for", other_in_fitting)
    model = case.make()
    plan = model.plan(case.schema)
    monkeypatch.setattr(type(model), "plan", lambda self, schema, rows=None: plan)
    fitting = True
    assert asked_in_fitting(model, case.schema) != planned(case, plan)


# -- rows and units ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("units", [1, 6, 999, 10**9, 10**15 + 1])
def test_what_rows_may_spend_is_at_most_what_their_unit_may(rows: int, units: int) -> None:
    owned = of_persons(MIXED, rows)
    row = per_row(Epsilon(units), owned)
    assert row.units == units // rows
    assert per_unit(row, owned).units <= units < per_unit(Epsilon(row.units + 1), owned).units
    assert per_row(per_unit(Epsilon(units), owned), owned) == Epsilon(units)
