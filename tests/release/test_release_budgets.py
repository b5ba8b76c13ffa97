"""Budgets of releases: the paper's shares to the unit, plans that say what is charged at most, nothing spent on mistakes."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.attributes import of_persons
from support.choices import Drawn, choosing, halving
from support.executors import Recorder
from support.mined_tables import schema_of, table_of
from support.opening import HUGE, fitted, opened, recorded
from support.releases import SCORES, form_of, shown_groups, with_tree
from support.twins import few_and_many

import dpmine as dm
from dpmine.base.epsilon import UNITS, Epsilon
from dpmine.budget.plans import BudgetPlan
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.keys import Bins
from dpmine.language.queries import Query
from dpmine.language.splits import Specialise, Thresholds
from dpmine.language.views import Split
from dpmine.questions.choose_split import ChooseSplit
from dpmine.questions.histogram import Histogram
from dpmine.questions.sparse_histogram import SparseHistogram
from dpmine.release import counting
from dpmine.release.contingency import ContingencyTable
from dpmine.release.diffgen import DiffGen
from dpmine.release.estimator import ReleaseEstimator
from dpmine.release.tree_release import TreeRelease
from dpmine.tables.private_table import PrivateTable


def facts(nominal: int, numeric: int, points: int = 50) -> Schema:
    """So many attributes of three categories, and numeric ones of so many points."""
    attributes: list[Any] = [Nominal(f"n{place}", ("a", "b", "c"), "a", missing="a") for place in range(nominal)]
    attributes += [Numeric(f"x{place}", Decimal(1), Decimal(points), Decimal(1), Decimal(1)) for place in range(numeric)]
    return Schema("facts", (*attributes, Nominal("class", ("no", "yes"), "no", missing="no")), 10_000, "class")


def rows_of(schema: Schema, rows: int = 60) -> dict[str, list[Any]]:
    return {
        a.name: [a.label(place * (number + 3) % a.size) for place in range(rows)]  # type: ignore[union-attr]
        for number, a in enumerate(schema.attributes)
    }


def steps_of(plan: BudgetPlan) -> dict[str, tuple[int, int]]:
    """For each step its units and how often it is asked."""
    return {step.what: (step.epsilon.units, step.times) for step in plan.steps}


# -- the paper's shares ------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(0, 8), st.integers(1, 4), st.integers(1_000_000, 10**12))
def test_the_published_shares_are_the_papers(h: int, numeric: int, nominal: int, units: int) -> None:
    """eps' = eps / (2 (|A_n| + 2h)), rounded down to units, and half of epsilon (with what rounding left) for the counts."""
    plan = dm.DiffGen(Epsilon(units), h).plan(facts(nominal, numeric))
    choices = numeric + 2 * h
    each = units // (2 * choices)
    found = steps_of(plan)
    *chosen, (counts, once) = found.values()
    assert {epsilon for epsilon, _ in chosen} == {each}
    assert sum(times for _, times in chosen) == choices
    assert (counts, once) == (units - each * choices, 1)
    assert units <= 2 * counts < units + 4 * choices
    assert plan.cost == plan.budget == Epsilon(units)


def test_the_numbers_of_the_paper_are_met() -> None:
    """Adult has 6 numeric attributes: with h = 15 epsilon' is epsilon / 72, and with h = 10 it is epsilon / 52."""
    adult = facts(8, 6)
    assert {steps_of(dm.DiffGen(72, 15).plan(adult))["choose the value to specialise"][0]} == {UNITS}
    assert {steps_of(dm.DiffGen(52, 10).plan(adult))["choose the value to specialise"][0]} == {UNITS}


def test_joint_choices_cost_half_as_much_or_less() -> None:
    plan = steps_of(dm.DiffGen(1, 10, points="joint").plan(facts(3, 4)))
    assert plan == {"choose the value to specialise": (UNITS // 20, 10), "count the groups by class": (UNITS // 2, 1)}


@pytest.mark.parametrize("budget", ["0.0123456", "1", "7.7"])
@pytest.mark.parametrize("h", [1, 2, 5])
@pytest.mark.parametrize(("nominal", "numeric"), [(3, 0), (2, 1), (0, 3)])
def test_the_ledger_charges_what_the_paper_says(nominal: int, numeric: int, h: int, budget: str) -> None:
    """Read from the ledger's statement: points first, values, points of new intervals except the last, counts."""
    schema, model = facts(nominal, numeric), dm.DiffGen(budget, h)
    each = model.budget.units // (2 * (numeric + 2 * h))
    for seed in range(3):
        with choosing(Drawn(seed)), recorded(rows_of(schema), schema, model.budget) as (private, recorder):
            model.fit(private)
            charged = [spending.cost.units for spending in private.statement().spendings]
        *choices, counts = charged
        rounds, points = rounds_of(recorder.queries), points_of(recorder.queries)
        assert set(choices) == {each}
        assert rounds == (min(h, 3) if numeric == 0 else h)  # three attributes of one level can be specialised thrice
        assert len(choices) == rounds + points
        intervals = sum(len(cut) - 1 for name, cut in model.cuts_.items() if name.startswith("x"))
        assert max(numeric + intervals - 1, 0) <= points <= numeric + intervals
        assert counts == model.budget.units - (numeric + 2 * h) * each
        assert model.charged_.units == sum(charged) <= model.cost_.units == model.budget.units


def rounds_of(queries: list[Query]) -> int:
    """Choices of a value to specialise."""
    asked = [query.question for query in queries if isinstance(query.question, ChooseSplit)]
    return sum(isinstance(family, Specialise) for question in asked for family in question.candidates[0][:1])


def points_of(queries: list[Query]) -> int:
    """Choices of split points."""
    asked = [query.question for query in queries if isinstance(query.question, ChooseSplit)]
    return sum(isinstance(family, Thresholds) for question in asked for family in question.candidates[0][:1])


@pytest.mark.parametrize("h", [1, 2, 3])
def test_rounds_on_nominal_values_spend_nothing_on_points(h: int) -> None:
    schema = facts(3, 0)
    with recorded(rows_of(schema), schema, 1) as (private, recorder):
        model = dm.DiffGen(1, h).fit(private)
    assert [type(query.question) for query in recorder.queries] == [ChooseSplit] * h + [SparseHistogram]
    assert points_of(recorder.queries) == 0
    assert model.charged_.units == UNITS - h * (UNITS // (4 * h))


@pytest.mark.parametrize("h", [1, 2, 4])
def test_the_points_of_the_last_round_are_not_asked(h: int) -> None:
    """One numeric attribute of many points: its first point, h values, and points of new intervals h - 1 times."""
    schema = facts(0, 1, 200)
    with choosing(halving), recorded(rows_of(schema), schema, 1) as (private, recorder):
        model = dm.DiffGen(1, h).fit(private)
        assert len(private.statement().spendings) == 2 * h + 1
    assert (points_of(recorder.queries), rounds_of(recorder.queries)) == (h, h)
    assert len(model.cuts_["x0"]) == h + 1
    assert model.charged_.units == model.cost_.units - UNITS // (2 * (1 + 2 * h))


def test_two_new_intervals_share_one_price() -> None:
    """They are disjoint. Only the two are asked, and an interval of one grid point is not."""
    schema = facts(0, 1, 8)
    with recorded(rows_of(schema), schema, 1) as (private, recorder):
        model = dm.DiffGen(1, 7)
        model.fit(private)
        assert all(spending.cost == recorder.queries[0].epsilon[0] for spending in private.statement().spendings[:-1])
    assert [len(value.codes) for value in model.release().values["x0"]] == [1] * 8
    for query in recorder.queries:
        if isinstance(query.rules, Split):
            assert isinstance(query.rules.key, Bins)
            assert 1 <= sum(epsilon.units > 0 for epsilon in query.epsilon) <= 2
            assert len(query.epsilon) == len(query.rules.children)
            assert {epsilon.units for epsilon in query.epsilon} <= {0, UNITS // 30}


@pytest.mark.parametrize("points", ["first", "joint"])
@pytest.mark.parametrize("h", [1, 4, 200])
@pytest.mark.parametrize("budget", [Epsilon(UNITS + 7), Epsilon(12_345_678_901)])
def test_what_choices_did_not_need_goes_to_the_counts(budget: Epsilon, h: int, points: str) -> None:
    """Also where nothing is left to specialise after 11 of 200 rounds."""
    schema = facts(2, 1, 8)
    with recorded(rows_of(schema), schema, budget) as (private, recorder):
        model = dm.DiffGen(budget, h, points=points, leftover=True, threshold="auto").fit(private)
        *choices, counts = [spending.cost.units for spending in private.statement().spendings]
        assert private.remaining() == Epsilon(0)
    assert model.charged_ == model.cost_ == budget
    assert counts == budget.units - sum(choices) > budget.units // 2
    assert counts == recorder.queries[-1].epsilon[0].units
    if h == 200:
        assert len(choices) <= 30
    kept = fitted(dm.DiffGen(budget, h, points=points, threshold="auto"), rows_of(schema), schema)
    assert kept.charged_ <= kept.cost_ == budget
    if points == "first" or h == 200:
        assert kept.charged_ < budget


def test_total_and_frequencies_are_paid_from_the_same_epsilon() -> None:
    schema = facts(2, 1)
    with recorded(rows_of(schema), schema, 1) as (private, recorder):
        model = dm.DiffGen(1, 2, total_share=0.02, frequency_share=0.1, leftover=True).fit(private)
        charged = [spending.cost.units for spending in private.statement().spendings]
    kinds = [type(query.question) for query in recorder.queries]
    assert kinds[:4] == [Histogram, Histogram, Histogram, Histogram]
    assert kinds[-1] is SparseHistogram
    assert charged[:4] == [UNITS // 50] + [UNITS // 30] * 3
    left = UNITS - sum(charged[:4])
    assert set(charged[4:-1]) == {left // (2 * (1 + 2 * 2))}
    assert sum(charged) == UNITS == model.charged_.units


def test_the_contingency_table_spends_all_on_one_count() -> None:
    schema = facts(2, 1)
    with recorded(rows_of(schema), schema, "0.7") as (private, recorder):
        model = ContingencyTable("0.7").fit(private)
    assert [type(query.question) for query in recorder.queries] == [SparseHistogram]
    assert model.charged_ == model.cost_ == Epsilon.parse("0.7") == recorder.queries[0].epsilon[0]


# -- nothing costs more than epsilon -----------------------------------------------------------------------------------


def with_persons(table: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {**table, "person": [f"p{place // 2}" for place in range(len(table["class"]))]}


SCHEMAS = [schema_of(numeric=numeric, classes=classes, lists=True) for numeric in (True, False) for classes in (1, 2, 3)]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[ReleaseEstimator, dict[str, list[Any]], Schema]:
    schema = draw(st.sampled_from(SCHEMAS))
    table = table_of(schema, draw(st.sampled_from([0, 1, 2, 5, 60])), draw(st.integers(0, 999)))
    if draw(st.booleans()):
        schema, table = of_persons(schema, 3), with_persons(table)
    epsilon = draw(st.sampled_from(["0.0123456", "0.3", "1", "7.7", "100", "10000"]))
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return ContingencyTable(epsilon, draw(st.integers(2, 30))), table, schema
    if kind <= 2:
        shares = draw(st.sampled_from([0, 0.15, 0.9])), draw(st.sampled_from([0.001, 0.12, 0.9]))
        return dm.TreeRelease(epsilon, *shares, draw(st.sampled_from([1, 2, 5, "auto"]))), table, schema
    total = draw(st.sampled_from([0, 0.02, 0.5]))
    return (
        dm.DiffGen(
            epsilon=epsilon,
            specialisations=draw(st.sampled_from([1, 2, 3, 6, 40, "auto"] if total else [1, 2, 3, 6, 40])),
            score=draw(st.sampled_from(SCORES)),
            calibration=draw(st.sampled_from(["generic", "monotone"])),
            points=draw(st.sampled_from(["first", "joint"])),
            leftover=draw(st.booleans()),
            threshold=draw(st.sampled_from([1, 1, 20, "auto"])),
            total_share=total,
            frequency_share=draw(st.sampled_from([0, 0.1, 0.4])),
        ),
        table,
        schema,
    )


@few_and_many(worlds(), few=50, many=150)
def test_no_release_costs_more_than_epsilon_whatever_the_rows(
    world: tuple[ReleaseEstimator, dict[str, list[Any]], Schema],
) -> None:
    """The ledger holds twice epsilon, so it would not hide an overspending by refusing it."""
    model, table, schema = world
    with opened(table, schema, Epsilon(2 * model.budget.units)) as private, pytest.MonkeyPatch.context() as patched:
        patched.setattr(counting, "MOST_GROUPS", 20_000)  # a million of them take their time
        model.fit(private)
        spent = 2 * model.budget.units - private.remaining().units
    assert model.charged_.units == spent
    plan = model.plan(schema)
    assert model.cost_ == plan.cost <= model.budget
    assert model.budget.units - plan.cost.units < schema.rows_per_unit
    assert 0 < spent <= plan.cost.units
    if isinstance(model, ContingencyTable | TreeRelease) or (isinstance(model, DiffGen) and model.leftover):
        assert spent == plan.cost.units
    check_release(model, table)


def check_release(model: ReleaseEstimator, table: dict[str, list[Any]]) -> None:
    """Whatever noise did, the release is one that can be used."""
    released = model.release()
    assert released.groups.shape == (len(released.counts), len(released.values))
    assert (released.counts >= 0).all()
    assert isinstance(model, TreeRelease) or (released.counts.sum(axis=1) > 0).all()  # a tree shows leaves without rows
    assert len({tuple(group) for group in released.groups.tolist()}) == len(released.groups)
    assert {len(column) for column in model.transform(table).values()} == {len(table["class"])}
    released.generalised_schema()
    if len(released) < 20_000:  # noise can make a million groups of a thousand rows each
        assert {len(column) for column in model.rows().values()} == {len(released)}
        assert {len(column) for column in model.rows(raw=True, seed=1).values()} == {len(released)}


@pytest.mark.parametrize("number", range(5))
def test_persons_with_several_rows_are_charged_for_each(number: int) -> None:
    """Queries get a third of epsilon where a person may have three rows, so that the whole person is charged epsilon."""
    schema = of_persons(schema_of(), 3)
    table = with_persons(table_of(schema_of(), 60, 1))
    model = with_tree(300)[number]
    with recorded(table, schema, 1000) as (private, recorder):
        model.fit(private)
        assert private.remaining().units == 1000 * UNITS - model.charged_.units
    if number < 4:  # leaves of a tree that stopped early are counted with what their branch saved
        assert model.charged_.units == 3 * sum(max(part.units for part in query.epsilon) for query in recorder.queries)
    assert model.charged_ <= model.cost_ == model.plan(schema).cost == model.budget
    assert model.plan(schema).rows_per_unit == 3
    if number == 0:
        each = 100 * UNITS // (2 * (3 + 2 * 4))
        assert {max(query.epsilon).units for query in recorder.queries[:-1]} == {each}
        assert recorder.queries[-1].epsilon[0].units == 100 * UNITS - 11 * each


# -- before anything is spent ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("left", ["0.999999999", "0.5", "0.000000001"])
def test_a_budget_that_is_too_short_is_refused_before_the_first_question(number: int, left: str) -> None:
    schema = schema_of()
    model = with_tree(1)[number]
    with opened(table_of(schema, 50, 1), schema, left) as private:
        with pytest.raises(dm.BudgetError, match=r"Cannot begin: this needs epsilon .* in all and .* remains. Nothing was"):
            model.fit(private)
        assert str(private.remaining()) == left
        assert private.statement().spendings == ()
    assert not hasattr(model, "released_")


def test_a_cap_that_others_used_up_is_refused_before_the_first_question() -> None:
    schema = schema_of()
    with dm.open(table_of(schema, 50, 1), schema=schema, cap=1) as data:
        private, other = data.grant("alice", epsilon=1), data.grant("bob", epsilon=1)
        other.count(epsilon="0.1")
        with pytest.raises(dm.BudgetError, match="Cannot begin"):
            dm.DiffGen(1, 3).fit(private)
        assert str(private.remaining()) in ("1", "0.9")
        assert private.statement().spendings == ()


WRONG: list[dict[str, Any]] = [
    {"specialisations": 0},
    {"specialisations": -1},
    {"specialisations": 1001},
    {"specialisations": 2.0},
    {"specialisations": True},
    {"specialisations": "many"},
    {"specialisations": None},
    {"specialisations": "auto"},  # needs total_share
    {"score": "gini"},
    {"score": "gainratio"},
    {"score": "infogain-per-row"},
    {"score": None},
    {"calibration": "tight"},
    {"points": "last"},
    {"threshold": 0},
    {"threshold": -3},
    {"threshold": 1.5},
    {"threshold": "low"},
    {"threshold": 10**10},
    {"total_share": -0.1},
    {"total_share": 0.95},
    {"total_share": float("nan")},
    {"total_share": "0.1"},
    {"frequency_share": 1},
    {"frequency_share": None},
    {"frequency_share": 0.6, "total_share": 0.6},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_wrong_parameters_are_refused_by_fit_and_by_plan_and_nothing_is_spent(wrong: dict[str, Any]) -> None:
    schema = schema_of()
    model = dm.DiffGen(1, **wrong)  # the constructor takes anything, as scikit-learn's do
    with recorded(table_of(schema, 50, 1), schema, 1) as (private, recorder):
        with pytest.raises(dm.RequestError, match=r"must be|must leave|give total_share"):
            model.fit(private)
        with pytest.raises(dm.RequestError):
            model.plan(schema)
        assert str(private.remaining()) == "1"
        assert recorder.asked == []


@pytest.mark.parametrize(
    "wrong", [{"bins": 1}, {"bins": 2.5}, {"bins": 5000}, {"threshold": 0}, {"threshold": "x"}], ids=str
)
def test_wrong_parameters_of_the_contingency_table_are_refused(wrong: dict[str, Any]) -> None:
    schema = schema_of()
    with recorded(table_of(schema, 50, 1), schema, 1) as (private, recorder):
        with pytest.raises(dm.RequestError, match="must be"):
            ContingencyTable(1, **wrong).fit(private)
        assert recorder.asked == []


@pytest.mark.parametrize("epsilon", [0, -1, "nothing", "1e-10", float("nan"), float("inf"), 10**7])
def test_an_impossible_epsilon_is_refused(epsilon: Any) -> None:
    schema = schema_of()
    with recorded(table_of(schema, 50, 1), schema, 1) as (private, recorder):
        for model in (dm.DiffGen(epsilon, 3), ContingencyTable(epsilon), dm.TreeRelease(epsilon)):
            with pytest.raises(dm.EpsilonError):
                model.fit(private)
        assert recorder.asked == []


def test_an_epsilon_that_cannot_be_shared_is_refused() -> None:
    """21 choices cannot have a billionth each of 3e-8, and a person's three rows not of 6e-8."""
    schema = schema_of()
    with pytest.raises(dm.EpsilonError, match=r"too small for this plan: choose"):
        dm.DiffGen("3e-8", 9).plan(schema)
    assert dm.DiffGen("6e-8", 9).plan(schema).cost == Epsilon(60)
    with pytest.raises(dm.EpsilonError, match=r"too small"):
        dm.DiffGen("6e-8", 9).plan(of_persons(schema, 3))
    with opened(table_of(schema, 50, 1), schema, 1) as private:
        with pytest.raises(dm.EpsilonError, match="too small"):
            dm.DiffGen("3e-8", 9).fit(private)
        assert str(private.remaining()) == "1"


@pytest.mark.parametrize(
    "wrong",
    [
        *({"frequency_share": share} for share in (-0.1, 0.95, float("nan"), "0.1", None, True)),
        *({"leaf_share": share} for share in (0, 1, float("nan"), "0.1")),
        *({"max_depth": depth} for depth in (0, -1, 2.5, "deep", None, True, 1000)),
    ],
    ids=str,
)
def test_wrong_parameters_of_the_tree_are_refused(wrong: dict[str, Any]) -> None:
    schema = schema_of()
    with recorded(table_of(schema, 50, 1), schema, 1) as (private, recorder):
        with pytest.raises(dm.RequestError, match="must be"):
            dm.TreeRelease(1, **wrong).fit(private)
        with pytest.raises(dm.RequestError, match="must be"):
            dm.TreeRelease(1, **wrong).plan(schema)
        assert recorder.asked == []


ROOM: dict[str, Any] = {
    "DiffGen": lambda: dm.DiffGen(1, 4),
    "ContingencyTable": lambda: ContingencyTable(1),
    "TreeRelease": lambda: dm.TreeRelease(1),
    "TreeClassifier": lambda: dm.TreeClassifier(epsilon=1),
    "DiffPC45": lambda: dm.DiffPC45(epsilon=1),
}


@pytest.mark.parametrize("name", ROOM)
def test_a_cached_count_at_the_same_epsilon_does_not_look_like_room(name: str) -> None:
    """What was answered is free, and the whole sum was once asked as such a count: a fit would begin and stop halfway."""
    schema = schema_of()
    with opened(table_of(schema, 50, 1), schema, "1.5") as private:
        private.count(epsilon=1)
        asked = private.statement().spendings
        with pytest.raises(
            dm.BudgetError, match=r"Cannot begin: this needs epsilon (1|0\.9+) in all and 0\.5 remains\. Nothing was"
        ):
            ROOM[name]().fit(private)
        with pytest.raises(dm.BudgetError, match="Cannot begin"):
            ROOM[name]().fit(private.with_room_for(Epsilon(UNITS)))  # as the command does
        assert str(private.remaining()) == "0.5"
        assert private.statement().spendings == asked


@pytest.mark.parametrize("name", ROOM)
def test_a_table_in_cells_is_refused_before_anything_is_spent(name: str) -> None:
    schema = schema_of()
    with recorded(table_of(schema, 50, 1), schema, 5) as (private, recorder):
        with pytest.raises(dm.RequestError, match="Call fit on the table before it is split into cells"):
            ROOM[name]().fit(private.cells("colour"))
        assert str(private.remaining()) == "5"
        assert recorder.asked == []


# -- noise in empty groups ---------------------------------------------------------------------------------------------


@given(st.integers(1, 1000), st.floats(1e-7, 20))
def test_empty_groups_never_have_more_than_ten_million_records(threshold: int, epsilon: float) -> None:
    paid = Epsilon.parse(f"{epsilon:.9f}")
    most = counting.most_groups(threshold, paid)
    assert 0 <= most <= 1_000_000
    if most:
        assert counting.GroupCounting(paid, threshold, most).phantom_records <= 10_000_000 * (1 + 1e-9)
    if most < 1_000_000:
        assert counting.GroupCounting(paid, threshold, most + 1).phantom_records > 10_000_000


def test_at_a_small_epsilon_fewer_groups_are_made() -> None:
    schema = schema_of()
    coarse = fitted(dm.DiffGen("0.00001", 30), table_of(schema, 50, 1), schema).release()
    assert coarse.counting is not None
    assert coarse.counting.phantom_records <= 10_000_000
    assert coarse.counting.possible < fitted(dm.DiffGen(1, 30), table_of(schema, 50, 1), schema).release().counting.possible  # type: ignore[union-attr]
    with pytest.raises(dm.RequestError, match=r"combinations; with threshold 1 at most \d+ can be released"):
        ContingencyTable("0.00001", threshold=1).plan(schema)


# -- interrupted -------------------------------------------------------------------------------------------------------


class Stopped(Recorder):
    """Is interrupted once it has answered so many questions."""

    def __init__(self, private: PrivateTable, after: int) -> None:
        super().__init__(private._executor)
        self._after = after

    def answer(self, query: Query, *, key: str | None = None) -> Any:
        if len(self.asked) == self._after:
            raise KeyboardInterrupt
        return super().answer(query, key=key)


MANY_QUESTIONS = {name: made for name, made in ROOM.items() if name != "ContingencyTable"}


@pytest.mark.parametrize("after", [1, 2, 5])
@pytest.mark.parametrize("name", MANY_QUESTIONS)
def test_a_fit_that_was_interrupted_goes_on_with_the_rest_of_its_budget(name: str, after: int) -> None:
    schema = schema_of()
    with opened(table_of(schema, 50, 1), schema, 1) as private:
        with suppress(KeyboardInterrupt):  # some trees stop of themselves before
            MANY_QUESTIONS[name]().fit(PrivateTable(Stopped(private, after)))
        paid = 1 - private.remaining().fraction
        assert paid > 0
        model = MANY_QUESTIONS[name]().fit(private)
        assert model.charged_.fraction <= 1 - paid


def test_an_interrupted_fit_whose_rest_is_no_longer_there_is_refused_before_it_spends_more() -> None:
    schema = schema_of()
    with opened(table_of(schema, 50, 1), schema, 1) as private:
        with pytest.raises(KeyboardInterrupt):
            dm.DiffGen(1, 4).fit(PrivateTable(Stopped(private, 5)))
        private.count(epsilon="0.1")
        left = private.remaining()
        with pytest.raises(dm.BudgetError, match=r"Cannot go on: the rest needs epsilon .* and .* remains\. Nothing was"):
            dm.DiffGen(1, 4).fit(private)
        assert private.remaining() == left


# -- again, elsewhere, at the same time --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(5))
def test_the_same_release_again_costs_nothing_and_is_the_same(number: int) -> None:
    schema = schema_of()
    with opened(table_of(schema, 50, 1), schema, 1) as private:
        first = with_tree(1)[number].fit(private)
        left = private.remaining()
        again = with_tree(1)[number].fit(private)
        assert private.remaining() == left
    assert str(again.charged_) == "0"
    assert again.cost_ == first.cost_
    assert form_of(again.release()) == form_of(first.release())


def test_more_specialisations_are_another_release_and_cost_again() -> None:
    """Every h has its own epsilon', so no answer of one serves another: trying several is not free."""
    schema = schema_of()
    with opened(table_of(schema, 50, 1), schema, 3) as private:
        charged = [dm.DiffGen(1, h, leftover=True).fit(private).charged_ for h in (2, 3, 4)]
        assert str(private.remaining()) == "0"
    assert [str(cost) for cost in charged] == ["1", "1", "1"]


@pytest.mark.parametrize("number", range(5))
def test_disjoint_parts_are_paid_once(number: int) -> None:
    schema = schema_of()
    with opened(table_of(schema, 200, 1), schema, 1) as private:
        train, test = private.split(test=0.5)
        test.count(epsilon=1)
        assert str(private.remaining()) == "0"
        model = with_tree(1)[number].fit(train)
        assert str(model.charged_) == "0"
        assert model.cost_ == model.plan(schema).cost  # what the release discloses, whoever paid
        with pytest.raises(dm.BudgetError):
            with_tree(1)[number].fit(private)


def test_a_part_is_released_by_its_own_rows() -> None:
    schema = schema_of()
    table = table_of(schema, 200, 1)
    with opened(table, schema, HUGE) as private:
        red = private.where("colour == red")
        model = dm.DiffGen(HUGE, 6).fit(red)
    assert len(model.release()) == table["colour"].count("red")
    assert {group for group, *_ in shown_groups(model)} <= {"any", "warm", "red"}


def test_two_releases_at_once_never_overspend_together() -> None:
    """Both see room for themselves; the ledger lets only one have it all."""
    schema = schema_of()
    with opened(table_of(schema, 50, 1), schema, 1) as private:
        failed: list[Exception] = []

        def release(h: int) -> None:
            try:
                dm.DiffGen(1, h, leftover=True).fit(private)
            except dm.BudgetError as error:
                failed.append(error)

        threads = [threading.Thread(target=release, args=(h,)) for h in (2, 3, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spent = sum(spending.cost.units for spending in private.statement().spendings)
        assert spent <= UNITS
        assert len(failed) >= 2


def test_the_plan_is_made_without_the_table() -> None:
    """From a schema alone, on disk or in hand, and the number of rows is only ever a guess for it."""
    schema = schema_of()
    model = dm.DiffGen(1, "auto", total_share=0.02, points="joint")
    rounds = [steps_of(model.plan(schema, rows=rows))["choose the value to specialise"][1] for rows in (1, 2000, 10**9)]
    assert rounds == [3, 7, 26]
    assert {model.plan(schema, rows=rows).cost.units for rows in (1, 2000, 10**9)} == {UNITS}
    assert "count the rows" in str(model.plan(schema))


def test_the_recorder_sees_what_the_ledger_charges() -> None:
    schema = schema_of()
    with opened(table_of(schema, 50, 1), schema, 1) as private:
        recorder = Recorder(private._executor)
        model = dm.DiffGen(1, 4).fit(PrivateTable(recorder))
        statement = [spending.cost for spending in private.statement().spendings]
    assert [reply.cost for _, reply in recorder.asked] == statement
    assert model.charged_.units == sum(cost.units for cost in statement)


@pytest.mark.parametrize(("rows", "epsilon"), [(0, 1), (0, 1000), (60, 1), (60, 100)])
def test_the_plan_of_a_fitted_release_is_the_one_that_was_carried_out(rows: int, epsilon: int) -> None:
    """Automatic specialisations follow from a noisy count, so the plan made beforehand can only guess at them."""
    schema = replace(facts(3, 0), rows_at_most=10**9)
    model = dm.DiffGen(epsilon, "auto", points="joint", total_share=0.1)
    with recorded(rows_of(schema, rows), schema, epsilon) as (private, recorder):
        model.fit(private)
    (total,) = recorder.asked[0][1].answer.numbers[0] or ()
    budget, planned = model.budget_for(schema, total), steps_of(model.plan_)
    assert planned["choose the value to specialise"] == (budget.values.epsilon.units, budget.rounds)
    assert planned["count the groups by class"] == (budget.counts.epsilon.units, 1)
    assert recorder.queries[-1].epsilon == (budget.counts.epsilon,)
    assert steps_of(model.plan(schema)) != planned
    assert model.plan_.cost == model.cost_
