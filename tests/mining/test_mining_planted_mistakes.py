"""Checks that a privacy reviewer would make, and for each a planted mistake that it must catch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.estimators import EVERY, PUBLISHED
from support.executors import Replayer
from support.imports import forbidden, imports
from support.kernels import Watching, kernel_over
from support.laws import exponential_law
from support.mined_tables import Table, schema_of, table_of
from support.opening import HUGE, opened, recorded

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.budget.plans import BudgetPlan, PlanStep
from dpmine.engines.encoding import encode
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.kernel.scores import GiniScore
from dpmine.language.keys import Bins, Key
from dpmine.language.queries import Query
from dpmine.language.splits import Thresholds
from dpmine.language.views import Rules, Split
from dpmine.mining.trees.growing import Growth
from dpmine.owner.ledgers import book_at
from dpmine.questions.choose_split import ChooseSplit
from dpmine.tables.private_table import PrivateTable

SCHEMA = schema_of(classes=2)
TABLE, OTHER_TABLE = table_of(SCHEMA, 150, 1), table_of(SCHEMA, 150, 2, clear=0)

# -- the model is a function of the answers ----------------------------------------------------------------------------

AT_HAND: list[Table] = []
"""The table of the fit that runs: what an honest algorithm has no way to, and a planted mistake reads."""


def asks_and_learns(name: str, epsilon: Any, table: Table, *, then: Callable[[Any, PrivateTable], Any] | None = None) -> Any:
    """Queries, replies and model of a fit on a table, with anything that is asked afterwards."""
    AT_HAND[:] = [table]
    with recorded(table, SCHEMA, 2 * epsilon) as (private, recorder):
        model = EVERY[name](epsilon=epsilon).fit(private)
        extra = then(model, private) if then else None
        return recorder, model.to_json(), extra


def learns_from_answers_alone(name: str, epsilon: Any, then: Callable[[Any, PrivateTable], Any] | None = None) -> bool:
    """Whether the same answers give the same queries and the same model, though another table lies there."""
    recorder, model, extra = asks_and_learns(name, epsilon, TABLE, then=then)
    AT_HAND[:] = [OTHER_TABLE]
    replayer = Replayer(SCHEMA, [reply for _, reply in recorder.asked], Epsilon.parse(2 * epsilon))
    again = EVERY[name](epsilon=epsilon)
    private = PrivateTable(replayer)
    try:
        again.fit(private)
        extra_again = then(again, private) if then else None
    except (IndexError, ValueError, AssertionError, dm.DpmineError):
        return False  # it asks other questions, which the answers do not fit
    return bool(replayer.queries == recorder.queries and again.to_json() == model and extra_again == extra)


@pytest.mark.parametrize("epsilon", [1, 100, HUGE // 2])
@pytest.mark.parametrize("name", EVERY)
def test_queries_and_model_are_a_function_of_the_answers(name: str, epsilon: int) -> None:
    assert learns_from_answers_alone(name, epsilon)


@pytest.mark.parametrize("name", EVERY)
def test_an_evaluation_is_a_function_of_the_answers(name: str) -> None:
    def judged(model: Any, private: PrivateTable) -> Any:
        return model.evaluate(private, epsilon=1).to_dict()

    assert learns_from_answers_alone(name, 1, judged)


def test_a_selection_is_a_function_of_the_answers() -> None:
    def selected(_: Any, private: PrivateTable) -> Any:
        chosen = dm.select_model(private, [dm.TreeClassifier(max_depth=2), dm.DiffPID3(max_depth=2)], epsilon=1)
        return chosen.index, chosen.best.to_json()

    assert learns_from_answers_alone("TreeClassifier", 1, selected)


def taken_from_a_row(self: Growth, nodes: Any, keys: Any) -> Any:
    """Planted: a split point is moved to a value that occurs in the rows at hand."""
    moved = []
    for key in keys:
        if isinstance(key, Bins) and key.attribute == "size":
            occurring = sorted(AT_HAND[0]["size"])
            moved.append(Bins("size", (SCHEMA.single("size").label(max(int(occurring[len(occurring) // 2] * 2), 1)),)))
        else:
            moved.append(key)
    return HONEST_SPLIT(self, nodes, moved)


HONEST_SPLIT = Growth.split


def stopped_by_true_rows(self: Growth, nodes: Any, keys: Any) -> Any:
    """Planted: nodes are split only where the true number of rows of a class is small."""
    small = AT_HAND[0]["class"].count("c1") < 60
    return HONEST_SPLIT(self, nodes, keys if small else [None] * len(keys))


def test_a_split_point_that_is_taken_from_a_row_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(TABLE["size"])[75] != sorted(OTHER_TABLE["size"])[75]
    monkeypatch.setattr(Growth, "split", taken_from_a_row)
    assert not learns_from_answers_alone("TreeClassifier", 1000)


def test_stopping_by_a_true_count_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TABLE["class"].count("c1") < 60 <= OTHER_TABLE["class"].count("c1")
    monkeypatch.setattr(Growth, "split", stopped_by_true_rows)
    for name in ("TreeClassifier", "DiffPID3", "SulqID3", "DiffPC45"):
        assert not learns_from_answers_alone(name, 1000)


# -- every split is a public one ---------------------------------------------------------------------------------------


def split_keys(rules: Rules) -> Iterator[Key]:
    if isinstance(rules, Split):
        yield rules.key
        for child in rules.children:
            yield from split_keys(child)


@pytest.mark.parametrize("name", EVERY)
def test_every_cut_that_is_asked_lies_on_the_public_grid(name: str) -> None:
    """Values between grid points are floored before anything else, so no cut can show where a row lies between them."""
    between = {**TABLE, "size": [value + 0.123 for value in TABLE["size"]], "age": [value + 0.9 for value in TABLE["age"]]}
    with recorded(between, SCHEMA, 1000) as (private, recorder):
        EVERY[name](epsilon=1000).fit(private)
    grids = {name: {SCHEMA.single(name).label(code) for code in range(SCHEMA.single(name).size)} for name in ("size", "age")}
    cuts = [key for query in recorder.queries for key in split_keys(query.rules) if isinstance(key, Bins)]
    for key in cuts:
        assert set(key.cuts) <= grids.get(key.attribute, {"0", "1"})
    for choice in recorder.choices:
        for family in (family for families in choice.candidates for family in families if isinstance(family, Thresholds)):
            assert {family.low, family.high} - {None} <= grids.get(family.attribute, {"0", "1"})


# -- 2S ----------------------------------------------------------------------------------------------------------------


def calibrations(name: str) -> set[str]:
    with recorded(TABLE, SCHEMA, 1000) as (private, recorder):
        EVERY[name](epsilon=1000).fit(private)
    return {choice.calibration for choice in recorder.choices}


def as_published(name: str) -> bool:
    """Published trees choose with the factor 1 / (2 S), by the exponential mechanism."""
    return calibrations(name) <= {"generic"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_trees_pay_for_twice_the_sensitivity(name: str) -> None:
    assert as_published(name)
    assert calibrations(name) == (set() if name == "SulqID3" else {"generic"})


def test_ours_use_that_scores_are_monotone_unless_told() -> None:
    assert calibrations("TreeClassifier") == calibrations("GreedyForest") == {"monotone"}
    assert calibrations("RandomForest") == set()
    with recorded(TABLE, SCHEMA, 1) as (private, recorder):
        dm.TreeClassifier(1, calibration="generic").fit(private)
    assert {choice.calibration for choice in recorder.choices} == {"generic"}
    assert {choice.mechanism for choice in recorder.choices} == {"exponential"}


@pytest.mark.parametrize("name", ["DiffPID3", "DiffPC45"])
def test_a_missing_2s_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Growth.choose

    def halved(self: Growth, *given: Any, **named: Any) -> Any:
        return honest(self, *given, **{**named, "calibration": "monotone"})

    monkeypatch.setattr(Growth, "choose", halved)
    assert not as_published(name)


# -- the exact loss of one row in the choice that leaves the estimator -------------------------------------------------


class Watched(Watching):
    """The real door, except that what it hands to the mechanism is kept, as an exact law, and candidate 0 is 'chosen'."""

    def laws(self, query: Query) -> list[list[float]]:
        self._laws: list[list[float]] = []
        self._compute(self.plan(query))
        return self._laws

    def _choose(self, mechanism: str, scores: np.ndarray, masses: np.ndarray, rate: Fraction) -> int:
        assert mechanism == "exponential"
        gaps = (scores - scores.max()).tolist()
        self._laws.append([float(chance) for chance in exponential_law(gaps, masses.tolist(), rate)])
        return 0


def crowd(more: bool) -> tuple[Schema, Table]:
    """Rows of one class in one branch of each of 30 attributes; one more of the other class, alone in a branch of one."""
    names = [f"a{number}" for number in range(30)]
    attributes = (
        *(Nominal(name, ("x", "y"), "x", missing="x") for name in names),
        Nominal("class", ("c0", "c1"), "c0", missing="c0"),
    )
    schema = Schema("mined", attributes, 1000, "class")
    table: Table = {name: ["x"] * 100 for name in names} | {"class": ["c0"] * 100}
    if more:
        table = {
            name: [*column, "y" if name == "a0" else "c1" if name == "class" else "x"] for name, column in table.items()
        }
    return schema, table


def first_choice(model: Any) -> Query:
    schema, table = crowd(more=False)
    with recorded(table, schema, model.budget) as (private, recorder):
        model.fit(private)
    return next(query for query in recorder.queries if isinstance(query.question, ChooseSplit))


def loss_of_a_row(query: Query) -> float:
    """The largest loss, over all outcomes of the choice, between the crowd and the crowd with one row more."""
    found = []
    for more in (False, True):
        schema, table = crowd(more)
        with closing(book_at(None, dataset="mined", cap=10**9)) as ledger:
            kernel = kernel_over(encode(open_source(table), schema), ledger, Watched)
            (law,) = kernel.laws(query)
        found.append(law)
    return max(abs(math.log(p / q)) for p, q in zip(*found, strict=True))


CHOOSERS: dict[str, Callable[[str], Any]] = {
    "DiffPID3": lambda score: dm.DiffPID3(4, 1, score),
    "DiffPC45": lambda score: dm.DiffPC45(4, 1, score),
    "TreeClassifier": lambda score: dm.TreeClassifier(1, 1, score),
}


SCORED = [(name, score) for name in CHOOSERS for score in ("max", "gini", "infogain")] + [("TreeClassifier", "mixed")]


@pytest.mark.parametrize(("name", "score"), SCORED)
def test_one_row_changes_the_choice_of_a_split_by_no_more_than_it_pays(name: str, score: str) -> None:
    query = first_choice(CHOOSERS[name](score))
    (epsilon,) = query.epsilon
    paid = float(epsilon)
    loss = loss_of_a_row(query)
    assert 0 < loss <= paid * (1 if name == "TreeClassifier" else 0.5) + 1e-9  # all scores are monotone: 2S pays double


def test_gini_with_a_range_of_one_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    query = first_choice(dm.TreeClassifier(1, 1, "gini"))
    (epsilon,) = query.epsilon
    honest = loss_of_a_row(query)
    monkeypatch.setattr(GiniScore, "sensitivity", 2**20)
    assert loss_of_a_row(query) > 1.5 * float(epsilon) > float(epsilon) >= honest


# -- the price of leaves -----------------------------------------------------------------------------------------------


def is_paid_as_planned(model: Any) -> bool:
    """Whether a tree that goes all the way costs what its plan says, and no more than epsilon."""
    with opened(TABLE, SCHEMA, 2 * model.epsilon) as private:
        model.fit(private)
    cost: Epsilon = model.plan(SCHEMA).cost
    return bool(model.charged_ == cost <= model.budget)


def going_all_the_way() -> list[Any]:
    return [dm.DiffPID3(10_000, 2), dm.DiffPC45(10_000, 2), dm.TreeClassifier(10_000, 2, stopping=0)]


def test_trees_are_paid_as_planned() -> None:
    assert all(map(is_paid_as_planned, going_all_the_way()))


@pytest.mark.parametrize("number", range(3))
def test_a_plan_without_the_leaves_is_caught(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = going_all_the_way()[number]
    honest = type(model).plan

    def forgetful(self: Any, schema: Any, *, rows: int | None = None) -> BudgetPlan:
        whole = honest(self, schema, rows=rows)
        kept = tuple(step for step in whole.steps if "classes" not in step.what)
        return BudgetPlan(whole.algorithm, whole.budget, kept)

    monkeypatch.setattr(type(model), "plan", forgetful)
    assert not is_paid_as_planned(model)


def test_leaves_that_are_counted_on_top_of_the_budget_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: all of epsilon is shared among counts of rows and choices, and the leaves are counted besides."""
    from dpmine.mining.trees import diffp_id3

    honest = diffp_id3.part_of
    monkeypatch.setattr(diffp_id3, "part_of", lambda budget, parts: honest(budget, parts - 1))
    model = dm.DiffPID3(10_000, 2)
    with opened(TABLE, SCHEMA, 20_000) as private:
        with pytest.raises(dm.EpsilonError, match="more than its budget"):
            model.plan(SCHEMA)
        honest_looking = BudgetPlan("x", model.budget, (PlanStep("all", model.budget),))
        monkeypatch.setattr(dm.DiffPID3, "plan", lambda self, schema, rows=None: honest_looking)
        assert model.fit(private).charged_ > model.budget
    with opened(TABLE, SCHEMA, 10_000) as private, pytest.raises(dm.BudgetError):
        dm.DiffPID3(10_000, 2).fit(private)


# -- what algorithms may import ----------------------------------------------------------------------------------------

SOURCE = Path(dm.__file__).parent
FILES = sorted(
    [*(SOURCE / "mining").rglob("*.py"), *(SOURCE / "postprocess").rglob("*.py"), *(SOURCE / "models").rglob("*.py")]
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_algorithms_import_no_randomness_and_no_kernel(path: Path) -> None:
    assert forbidden(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    "text",
    [
        "import random",
        "from secrets import token_bytes",
        "import numpy as np\nnp.random.default_rng()",
        "from numpy import random",
        "from numpy.random import default_rng",
        "def f():\n    from dpmine.kernel.samplers.laplace import ExactNoise",
        "from dpmine import kernel",
        "import dpmine.engines.memory",
        "from dpmine.owner.data_set import DataSet",
        "__import__('random')",
    ],
)
def test_a_forbidden_import_is_caught(text: str) -> None:
    assert forbidden(text)


def test_public_randomness_comes_from_one_place() -> None:
    users = {path.name for path in FILES if "dpmine.base.public_random" in imports(path.read_text(encoding="utf-8"))}
    assert users == {"forests.py", "evaluation.py", "dplloyd.py", "weighted_kmeans.py"}
