"""What a miner holds: every promise of a private table, next to the data and across a wire of JSON text."""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.executors import Opener, across_the_wire
from support.patient_tables import RECORDS, ROWS, SCHEMA, TABLE, truth
from support.refusals import assert_one_sentence

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import BudgetError, DpmineError, ExpressionError, RequestError
from dpmine.datasets import patients_schema
from dpmine.language.candidates import number_of_candidates
from dpmine.language.keys import AttributeKey, Bins, Group, Groups, Key, Part
from dpmine.language.queries import Question
from dpmine.language.splits import Multiway
from dpmine.language.views import LEAF, Split
from dpmine.results import receipts
from dpmine.results.preview import Preview

HUGE = 1000  # an epsilon at which noise is 0 but for a chance of 2 e^-1000


@pytest.fixture
def private(opened: Opener) -> dm.PrivateTable:
    return opened(TABLE, SCHEMA, epsilon=1)


@pytest.fixture
def clear(opened: Opener) -> dm.PrivateTable:
    """A private table with so much epsilon that its answers are exact."""
    return opened(TABLE, SCHEMA, epsilon=1_000_000)


# -- the contract ------------------------------------------------------------------------------------------------------


def test_what_a_user_types_in_the_design_works(tmp_path: Path) -> None:
    pd.DataFrame(RECORDS).to_parquet(tmp_path / "patients.parquet")
    (tmp_path / "patients.toml").write_text(SCHEMA.to_toml())
    data = dm.open(
        str(tmp_path / "patients.parquet"),
        schema=str(tmp_path / "patients.toml"),
        ledger=str(tmp_path / "ledger.db"),
        cap=4.0,
    )
    private = data.grant("alice", epsilon=1.0)
    wards = private.where(dm.col("age") >= 40).histogram("ward", epsilon=0.1)
    train, test = private.split(test=0.2)
    assert wards.labels == (SCHEMA.attribute("ward").categories,)  # type: ignore[union-attr]
    assert isinstance(train, dm.PrivateTable)
    assert isinstance(test, dm.PrivateTable)
    assert str(private.remaining()) == "0.9"
    assert "granted 1, spent 0.1, remaining 0.9" in str(private.statement())
    data.close()
    with dm.open(tmp_path / "patients.parquet", schema=tmp_path / "patients.toml", ledger=tmp_path / "ledger.db") as again:
        private = again.private("alice")
        assert private.where("age >= 40").histogram("ward", epsilon=0.1).to_dict() == wards.to_dict()
        assert str(private.remaining()) == "0.9"


def test_every_public_name_is_there() -> None:
    assert set(dm.__all__) <= set(dir(dm))
    assert all(getattr(dm, name) is not None for name in dm.__all__)


def test_ten_queries_at_one_tenth_cost_exactly_one(private: dm.PrivateTable) -> None:
    for age in range(10):
        private.where(dm.col("age") == age).count(epsilon=0.1)
    assert private.remaining() == Epsilon(0)
    with pytest.raises(BudgetError):
        private.where("age == 10").count(epsilon="1e-9")


def test_a_query_beyond_the_allotment_is_refused_and_nothing_is_spent(private: dm.PrivateTable) -> None:
    private.count(epsilon=0.8)
    with pytest.raises(BudgetError) as refused:
        private.histogram("ward", epsilon=0.5)
    assert (refused.value.requested, refused.value.remaining) == ("0.5", "0.2")
    assert str(refused.value) == (
        "Cannot answer: this query needs epsilon 0.5 and 0.2 remains. Ask with at most 0.2, or ask the data owner for more."
    )
    assert str(private.remaining()) == "0.2"
    assert len(private.statement().spendings) == 1


@pytest.mark.filterwarnings("ignore:'alice' is granted epsilon 1, but the cap:dpmine.DpmineWarning")
def test_a_query_beyond_the_cap_is_refused_and_nothing_is_spent(opened: Opener) -> None:
    private = opened(TABLE, SCHEMA, epsilon=1, cap="0.5")
    private.count(epsilon="0.4")
    with pytest.raises(BudgetError, match="of the data set's cap over all analysts"):
        private.histogram("ward", epsilon="0.2")
    assert str(private.remaining()) == "0.6"


# -- counts and histograms ---------------------------------------------------------------------------------------------


def test_with_a_huge_epsilon_counts_are_exact(clear: dm.PrivateTable) -> None:
    assert clear.count(epsilon=HUGE).value == len(ROWS)
    old = clear.where((dm.col("age") >= 40) & ~dm.col("ward").isin(["north", "south"]))
    assert (
        int(old.count(epsilon=HUGE))
        == truth(where=lambda row: row["age"] >= 40 and row["ward"] not in ("north", "south"))[()]
    )
    asthma = clear.where("history contains asthma and cough == True")
    expected = truth(where=lambda row: "asthma" in str(row["history"]).split("|") and row["cough"] == "True")
    assert float(asthma.count(epsilon=HUGE)) == expected[()]


def test_with_a_huge_epsilon_histograms_are_exact_and_name_every_label(clear: dm.PrivateTable) -> None:
    histogram = clear.histogram("ward", dm.col("age").bins(18, 65), dm.col("cough") == "True", epsilon=HUGE)
    assert histogram.titles == ("ward", "age", 'cough == "True"')
    assert histogram.labels[1:] == (("<18", "18 to <65", ">=65"), ("no", "yes"))
    assert histogram.counts.shape == (6, 3, 2)
    assert int(histogram.counts.sum()) == len(ROWS)
    expected = truth("ward", where=lambda row: 18 <= row["age"] < 65 and row["cough"] == "True")
    for ward in histogram.labels[0]:
        assert histogram[ward, "18 to <65", "yes"] == expected[(ward,)]
    assert histogram.to_dict()[("north", "<18", "no")] == histogram["north", "<18", "no"]
    frame = histogram.to_frame()
    assert list(frame.columns) == [*histogram.titles, "noisy_count"]
    assert frame["noisy_count"].sum() == len(ROWS)
    assert [(*labels, count) for labels, count in histogram.items()] == list(frame.itertuples(index=False, name=None))


def test_the_whole_grid_of_a_number_can_be_counted(clear: dm.PrivateTable) -> None:
    ages = clear.histogram("age", epsilon=HUGE)
    np.testing.assert_array_equal(ages.counts, np.bincount(RECORDS["age"], minlength=111))
    assert ages.labels[0][:3] == ("0", "1", "2")
    assert ages["40"] == RECORDS["age"].count(40)


def test_groups_count_their_members_together_and_the_others_as_rest(clear: dm.PrivateTable) -> None:
    key = dm.col("ward").groups({"compass": ["north", "south", "east", "west"], "young": ["children"]}, rest="else")
    wards = truth("ward")
    assert clear.histogram(key, epsilon=HUGE).to_dict() == {
        "compass": sum(wards[(name,)] for name in ("north", "south", "east", "west")),
        "young": wards[("children",)],
        "else": wards[("intensive care",)],
    }


def test_views_narrow_step_by_step(clear: dm.PrivateTable) -> None:
    view = clear.where("age >= 40").partition("ward")["north"].where("not cough == True")
    expected = truth("diagnosis", where=lambda row: row["age"] >= 40 and row["ward"] == "north" and row["cough"] != "True")
    assert view.histogram("diagnosis", epsilon=HUGE).to_dict() == {name: expected[(name,)] for name in ("Healthy", "Sick")}


def test_cells_are_asked_all_at_once(clear: dm.PrivateTable) -> None:
    rules = Split(AttributeKey("cough"), (LEAF, Split(Bins("age", ("40",)), (LEAF, LEAF))))
    cells = clear.cells(rules)
    assert clear.cells(rules).labels() == ["cough: False", "cough: True, age: <40", "cough: True, age: >=40"]
    assert clear.cells(LEAF).labels() == ["all rows"]
    tests = (
        lambda row: row["cough"] == "False",
        lambda row: row["cough"] == "True" and row["age"] < 40,
        lambda row: row["cough"] == "True" and row["age"] >= 40,
    )
    counts = cells.count(epsilon=HUGE)
    assert [int(count) for count in counts] == [truth(where=test)[()] for test in tests]  # type: ignore[arg-type]
    histograms = cells.histogram("diagnosis", epsilon=HUGE)
    for histogram, test in zip(histograms, tests, strict=True):
        assert histogram is not None
        assert histogram["Sick"] == truth("diagnosis", where=test)[("Sick",)]


def test_each_cell_may_have_its_own_epsilon_and_zero_leaves_it_out(private: dm.PrivateTable) -> None:
    cells = private.cells("cough")
    one, other = cells.count(epsilon=["0", "0.3"])
    assert one is None
    assert other is not None
    assert (str(other.receipt.epsilon), str(other.receipt.cost)) == ("0.3", "0.3")
    assert other.law.fraction == Fraction(10, 3)
    assert cells.histogram("ward", epsilon=["0.1", 0])[1] is None
    assert cells.choose("ward", epsilon=[0, "0.1"])[0] is None
    assert str(private.remaining()) == "0.6"


# -- prices ------------------------------------------------------------------------------------------------------------


def test_disjoint_cells_cost_their_maximum_and_not_their_sum(private: dm.PrivateTable) -> None:
    parts = private.partition("ward")
    for number, part in enumerate(parts.values()):
        part.count(epsilon=Decimal("0.1") + Decimal(number).scaleb(-2))
    assert str(private.remaining()) == "0.85"
    private.cells("ward").count(epsilon="0.05")  # the same cells, named by a rule tree: on top of each
    assert str(private.remaining()) == "0.8"
    private.cells("ward").histogram("cough", epsilon=["0.05", 0, 0, 0, 0, 0])  # fits below the largest cell
    assert str(private.remaining()) == "0.8"


def test_overlapping_views_cost_their_sum(private: dm.PrivateTable) -> None:
    private.where("age >= 40").count(epsilon=0.1)
    private.where("age < 40").count(epsilon=0.1)
    private.count(epsilon=0.1)
    assert str(private.remaining()) == "0.7"


def test_train_and_test_cost_their_maximum(private: dm.PrivateTable) -> None:
    train, test = private.split(test=0.2)
    train.count(epsilon=0.5)
    test.count(epsilon=0.2)
    assert str(private.remaining()) == "0.5"


def test_asking_the_same_again_is_free_and_gives_the_same_answer(private: dm.PrivateTable) -> None:
    first = private.where("age >= 40").histogram("ward", epsilon=0.1)
    again = private.where(dm.col("age") > 39).histogram(dm.col("ward"), epsilon="0.10")
    assert first.to_dict() == again.to_dict()
    assert first.receipt == again.receipt
    assert str(private.remaining()) == "0.9"


def test_a_request_key_belongs_to_one_query(private: dm.PrivateTable) -> None:
    first = private.count(epsilon=0.1, request_key="k")
    assert private.count(epsilon=0.1, request_key="k") == first
    with pytest.raises(RequestError, match="used for another query"):
        private.count(epsilon=0.2, request_key="k")
    assert str(private.remaining()) == "0.9"


# -- dry runs ----------------------------------------------------------------------------------------------------------

SPLITS = ["age", "cough", "ward"]
QUESTIONS: dict[str, Callable[..., Any]] = {
    "count": lambda table, of: of(table).count(epsilon="0.07"),
    "count of a view": lambda table, of: of(table.where("age >= 40")).count(epsilon="0.07"),
    "count of a part": lambda table, of: of(table.partition("ward")["east"]).count(epsilon="0.07"),
    "count of a split": lambda table, of: of(table.split(test=0.2)[1]).count(epsilon="0.07"),
    "histogram": lambda table, of: of(table).histogram("ward", "cough", epsilon="0.07"),
    "choice of a label": lambda table, of: of(table).choose("ward", epsilon="0.07"),
    "choice of a split": lambda table, of: of(table).choose(SPLITS, score="gini", epsilon="0.07"),
    "counts of cells": lambda table, of: of(table.cells("ward")).count(epsilon=[0, "0.07", 0, 0, 0, 0]),
    "histograms of cells": lambda table, of: of(table.cells("cough")).histogram("ward", epsilon="0.07"),
    "choices in cells": lambda table, of: of(table.cells("ward")).choose(SPLITS, score="max", epsilon="0.07"),
}


@pytest.mark.parametrize("spent_before", [False, True])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_dry_run_costs_nothing_and_says_what_the_charge_will_be(
    private: dm.PrivateTable, name: str, spent_before: bool
) -> None:
    ask = QUESTIONS[name]
    if spent_before:
        private.partition("ward")["north"].count(epsilon="0.05")
        private.partition("cough")["True"].count(epsilon="0.3")
        private.where("age >= 40").histogram("ward", epsilon="0.01")
    before = private.remaining()
    preview = ask(private, lambda asked: asked.preview)
    assert isinstance(preview, Preview)
    assert private.remaining() == before == preview.remaining
    assert not preview.cached
    ask(private, lambda asked: asked)
    assert before.units - private.remaining().units == preview.cost.units
    again = ask(private, lambda asked: asked.preview)
    assert again.cached
    assert again.cost == Epsilon(0)
    assert "free: it is already answered" in str(again)
    assert again.expected_error == preview.expected_error


def test_a_dry_run_tells_the_price_even_when_the_budget_is_short(private: dm.PrivateTable) -> None:
    preview = private.preview.count(epsilon=5)
    assert (str(preview.cost), str(preview.remaining), preview.dataset_suffices) == ("5", "1", True)
    assert str(preview).startswith("This query costs epsilon 5; epsilon 1 remains. The count will be off by ")


@pytest.mark.filterwarnings("ignore:'alice' is granted epsilon 2, but the cap:dpmine.DpmineWarning")
def test_a_dry_run_says_when_the_cap_has_no_room_for_what_the_analyst_could_pay(opened: Opener) -> None:
    preview = opened(TABLE, SCHEMA, epsilon=2, cap=1).preview.count(epsilon="1.5")
    assert not preview.dataset_suffices
    assert "epsilon 2 remains. The data set's cap has no room for it. The count" in str(preview)


def test_a_dry_run_refuses_what_the_query_would(private: dm.PrivateTable) -> None:
    with pytest.raises(ExpressionError, match="no category"):
        private.where("ward == nowhere").preview.count(epsilon=0.1)


def laplace(epsilon: float) -> list[float]:
    """P(abs(noise) = t) for t = 0, 1, ... until nothing is left."""
    ratio = math.exp(-epsilon)
    first = (1 - ratio) / (1 + ratio)
    return [first] + [2 * first * ratio**t for t in range(1, int(60 / epsilon) + 2)]


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.5", "1", "2", "10"])
def test_the_expected_error_of_counts_is_that_of_the_noise(opened: Opener, epsilon: str) -> None:
    private = opened(TABLE, SCHEMA, epsilon=1)
    weights = laplace(float(epsilon))
    deviation = math.sqrt(sum(weight * t * t for t, weight in enumerate(weights)))
    within = next(t for t in range(len(weights)) if sum(weights[: t + 1]) >= 0.95)
    rest = f"will be off by {deviation:.3g} (standard deviation), within {within} in 95 % of the cases."
    assert private.preview.count(epsilon=epsilon).expected_error == f"The count {rest}"
    assert private.preview.histogram("ward", epsilon=epsilon).expected_error == f"Each count {rest}"
    assert private.cells("cough").preview.count(epsilon=["9", epsilon]).expected_error.startswith("Each count")


def test_the_expected_loss_of_choices_follows_the_range_of_their_scores(private: dm.PrivateTable) -> None:
    def loss(preview: Preview) -> float:
        found = re.fullmatch(
            r"In 95 % of the cases the choice is at most (\S+) (.*) below the best\.", preview.expected_error
        )
        assert found is not None
        return float(found[1])

    wards = 6
    assert loss(private.preview.choose("ward", epsilon=0.5)) == pytest.approx(math.log(20 * wards) / 0.5, rel=0.01)
    assert loss(private.preview.choose("ward", epsilon=0.5, calibration="generic")) == pytest.approx(
        2 * math.log(20 * wards) / 0.5, rel=0.01
    )
    two = [dm.col("ward") == "north", "cough"]
    for score, scale in (("max", 1), ("gini", 2), ("infogain", math.log2(SCHEMA.rows_at_most) + 1 / math.log(2))):
        preview = private.preview.choose(two, score=score, epsilon=0.5)
        assert loss(preview) == pytest.approx(scale * math.log(20 * 2) / 0.5, rel=0.01)
        assert f"of the {score} score" in preview.expected_error


# -- refusals ----------------------------------------------------------------------------------------------------------

E = {"epsilon": "0.1"}


def deep(predicate: dm.Predicate) -> dm.Predicate:
    """The same, and a thousand times the contrary."""
    for _ in range(1_000):
        predicate = ~predicate
    return predicate


WARD, AGE = dm.col("ward"), dm.col("age")
REFUSED: dict[str, Callable[[dm.PrivateTable], Any]] = {
    "unknown column in where": lambda t: t.where("income > 3").count(**E),
    "unknown column in histogram": lambda t: t.histogram("income", **E),
    "unknown column in choose": lambda t: t.choose("income", **E),
    "unknown column among splits": lambda t: t.choose(["age", "income"], score="gini", **E),
    "unknown column in partition": lambda t: t.partition("income"),
    "unknown column in cells": lambda t: t.cells("income"),
    "dropped column": lambda t: t.histogram("patient_id", **E),
    "list as key": lambda t: t.histogram("history", **E),
    "list compared": lambda t: t.where("history == flu").count(**E),
    "unknown category": lambda t: t.where("ward == nowhere").count(**E),
    "unknown category in a list": lambda t: t.where("ward in [north, nowhere]").count(**E),
    "unknown category in a group": lambda t: t.histogram(WARD.groups({"g": ["nowhere"]}), **E),
    "unknown category in a subset": lambda t: t.choose([dm.Subsets("ward", (("nowhere",),))], score="gini", **E),
    "unknown item": lambda t: t.where("history contains gout").count(**E),
    "contains of a category": lambda t: t.where("ward contains north").count(**E),
    "order of categories": lambda t: t.where("ward >= north").count(**E),
    "text as number": lambda t: t.where("age >= old").count(**E),
    "NaN as number": lambda t: t.where("age >= NaN").count(**E),
    "endless number": lambda t: t.where(AGE >= 10**30).count(**E),
    "a predicate that is not one": lambda t: t.where(3),  # type: ignore[arg-type]
    "a predicate that cannot be read": lambda t: t.where("age >="),
    "a callable": lambda t: t.where(lambda row: True),  # type: ignore[arg-type]
    "bins of a category": lambda t: t.histogram(WARD.bins(3), **E),
    "bins that fall": lambda t: t.histogram(AGE.bins(40, 18), **E),
    "bins twice at one place": lambda t: t.histogram(AGE.bins(40, "40.0"), **E),
    "groups of a number": lambda t: t.histogram(AGE.groups({"g": [3]}), **E),
    "groups that overlap": lambda t: t.histogram(WARD.groups({"g": ["north"], "h": ["north"]}), **E),
    "groups of one label": lambda t: t.histogram(WARD.groups({"rest": ["north"]}), **E),
    "no key": lambda t: t.histogram(**E),
    "no epsilon left to ask": lambda t: t.cells("cough").count(epsilon=[0, 0]),
    "too few epsilons": lambda t: t.cells("ward").count(epsilon=[0.1, 0.1]),
    "no epsilons": lambda t: t.cells("ward").count(epsilon=[]),
    "a negative epsilon in a cell": lambda t: t.cells("cough").count(epsilon=[0.1, -0.1]),
    **{
        f"epsilon {wrong!r}": lambda t, wrong=wrong: t.count(epsilon=wrong)
        for wrong in (0, -1, "0", "-0.1", "nan", math.nan, math.inf, "inf", "much", "", None, True, 1e-10, 10**7, [0])
    },
    "an unknown score": lambda t: t.choose(["age"], score="luck", **E),
    "gain ratio": lambda t: t.choose(["age"], score="gainratio", **E),
    "an unknown mechanism": lambda t: t.choose("ward", mechanism="dice", **E),
    "an unknown calibration": lambda t: t.choose("ward", calibration="loose", **E),
    "no candidate": lambda t: t.choose([], score="gini", **E),
    "several keys for labels": lambda t: t.choose(["ward", "age"], **E),
    "thresholds of a category": lambda t: t.choose([dm.Thresholds("ward")], score="gini", **E),
    "thresholds outside": lambda t: t.choose([dm.Thresholds("age", "200", "300")], score="gini", **E),
    "subsets of a number": lambda t: t.choose([dm.Subsets("age", (("3",),))], score="gini", **E),
    "the whole as a subset": lambda t: t.choose([dm.Subsets("cough", (("False", "True"),))], score="gini", **E),
    "a category twice in a subset": lambda t: t.choose([dm.Subsets("ward", (("north", "north"),))], score="gini", **E),
    "nothing as a subset": lambda t: t.choose([dm.Subsets("cough", ((),))], score="gini", **E),
    "no subset": lambda t: dm.Subsets("cough", ()),
    "candidates for the wrong cells": lambda t: t.cells("ward").choose([["age"], ["cough"]], score="gini", **E),
    "a rule tree with too few children": lambda t: t.cells(Split(AttributeKey("ward"), (LEAF,))).count(**E),
    "too many counts": lambda t: t.histogram("age", "age", "age", "age", **E),
    "too many cells": lambda t: t.cells(Part("s", (1,) * 100_000)).histogram("age", "ward", **E),
    "too many histogram keys": lambda t: t.histogram(*["cough"] * 17, **E),
    "too many candidates": lambda t: t.choose([dm.Subsets("ward", (("north",),) * 200_001)], score="gini", **E),
    "too many families": lambda t: t.choose(["cough"] * 4097, score="gini", **E),
    "too many different epsilons": lambda t: t.cells(Part("s", (1,) * 1001)).count(
        epsilon=[Epsilon(units) for units in range(1, 1002)]
    ),
    "no column": lambda t: t.sum(None, **E),
    "a list of columns where one is asked": lambda t: t.mean(["age"], **E),
    "a key where a column is asked": lambda t: t.median(AGE.bins(40), **E),
    "a designed mean of no column": lambda t: t.mean(3, design="geometric", **E),
    "one column where several are asked": lambda t: t.sums(AGE, **E),
    "a name where a question is asked": lambda t: t.ask("count", **E),
    "a question that nobody can read": lambda t: t.ask(Question(), **E),
    "a column as the key of a split": lambda t: t.cells(Split("ward", (LEAF,) * 6)),  # type: ignore[arg-type]
    "a test as the key of a split": lambda t: t.cells(Split(AGE >= 40, (LEAF, LEAF))),
    "a list of children": lambda t: t.cells(Split(AttributeKey("cough"), [LEAF, LEAF])),  # type: ignore[arg-type]
    "a child that is no rule": lambda t: t.cells(Split(AttributeKey("cough"), (LEAF, None))),  # type: ignore[arg-type]
    "a subset that is one text": lambda t: dm.Subsets("ward", ("north",)),  # type: ignore[arg-type]
    "a mean of every cell": lambda t: t.cells("ward").mean("age", **E),
    "a predicate that is nested too deeply": lambda t: t.where(deep(dm.col("cough") == "True")).count(**E),
    "a key that is nested too deeply": lambda t: t.histogram(deep(dm.col("cough") == "True"), **E),
    "an empty request key": lambda t: t.count(request_key="", **E),
    "a long request key": lambda t: t.count(request_key="x" * 201, **E),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_refused_in_one_sentence_and_nothing_is_spent(private: dm.PrivateTable, name: str) -> None:
    with pytest.raises(RequestError) as refused:
        REFUSED[name](private)
    assert_one_sentence(refused.value)
    assert str(private.remaining()) == "1"
    assert private.statement().spendings == ()


def test_a_revoked_analyst_is_refused() -> None:
    with dm.open(TABLE, schema=SCHEMA, cap=1) as data:
        private = data.grant("alice", epsilon=1)
        first = private.count(epsilon=0.1)
        data.revoke("alice")
        for ask in (
            lambda: private.count(epsilon=0.2),
            lambda: private.count(epsilon=0.1),
            lambda: private.preview.count(epsilon=0.1),
        ):
            with pytest.raises(RequestError, match="revoked"):
                ask()
        assert private.remaining() == Epsilon(0)
        data.grant("alice", epsilon=1)
        assert private.count(epsilon=0.1) == first
        assert str(private.remaining()) == "0.9"


def test_only_an_analyst_with_a_grant_gets_a_private_table() -> None:
    with dm.open(TABLE, schema=SCHEMA, cap=1) as data:
        for name in ("bob", ""):
            with pytest.raises(DpmineError):
                data.private(name).count(epsilon=0.1)
        with pytest.raises(RequestError, match="name of 1 to 200"):
            data.grant("", epsilon=1)


def test_granting_again_sets_the_allotment_and_does_not_add() -> None:
    with dm.open(TABLE, schema=SCHEMA, cap=4) as data:
        data.grant("alice", epsilon=1).count(epsilon=0.5)
        assert str(data.grant("alice", epsilon=1).remaining()) == "0.5"
        assert str(data.grant("alice", epsilon=2).remaining()) == "1.5"
        assert str(data.grant("alice", epsilon="0.1").remaining()) == "0"


@pytest.mark.parametrize(
    "options",
    [
        {"cap": 0},
        {"cap": "x"},
        {"cap": None},
        {"cap": 1, "version": ""},
        {"cap": 1, "version": "x" * 201},
        {"cap": 1, "version": "\ud800"},
        {"cap": 1, "version": 2},
        {"cap": 1, "noise": "gauss"},
    ],
)
def test_a_mistake_in_opening_is_refused_in_one_sentence(options: dict[str, Any]) -> None:
    with pytest.raises(DpmineError) as refused:
        dm.open(TABLE, schema=SCHEMA, **options)
    assert_one_sentence(refused.value)


def test_a_table_encoded_under_another_schema_is_refused() -> None:
    with pytest.raises(RequestError, match="another schema"):
        dm.open(TABLE, schema=patients_schema(rows_at_most=7), cap=1)


# -- answers -----------------------------------------------------------------------------------------------------------


def test_a_column_may_be_named_as_in_predicates(private: dm.PrivateTable) -> None:
    """`mean(dm.col("age"))` is the same question as `mean("age")`."""
    for ask in (private.mean, private.sum, private.variance, private.median, private.min, private.max):
        assert ask(AGE, **E) == ask("age", **E)
    assert private.sums([AGE], **E) == private.sums(["age"], **E)
    assert private.preview.mean(AGE, **E) == private.preview.mean("age", **E)
    assert private.mean(AGE, design="geometric", **E).value == private.mean("age", design="geometric", **E).value


def test_what_only_a_table_knows_is_missing_from_its_cells(private: dm.PrivateTable) -> None:
    assert not hasattr(private.cells("ward"), "mean")


def test_every_result_carries_the_law_of_its_answer(clear: dm.PrivateTable) -> None:
    found = [
        clear.count(epsilon=1),
        clear.histogram("ward", epsilon=1),
        clear.median("age", epsilon=1),
        clear.choose("ward", epsilon=1),
        clear.choose(["age"], score="gini", epsilon=1),
        clear.mean("age", epsilon=1, design="geometric"),
    ]
    laws = [paid.reply.answer.laws for paid in clear._executor.answers()]
    assert [((each.law,),) for each in found] == laws


def test_the_laws_of_an_answer_are_looked_through_once_and_not_for_every_cell(
    private: dm.PrivateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or reading an answer about many cells takes the square of their number."""
    looked = []
    by_price = receipts.laws_by_price
    monkeypatch.setattr(receipts, "laws_by_price", lambda priced: looked.append(1) or by_price(priced))
    found = private.cells(Part("s", (1,) * 500)).count(epsilon=[0, *["0.1", "0.2"] * 249, "0.3"])
    assert len(looked) == 1
    assert found[0] is None
    scales = [each.law.scale for each in found if each is not None]
    assert scales == [*["10", "5"] * 249, "10/3"]


def test_a_count_knows_its_noise_and_its_receipt(private: dm.PrivateTable) -> None:
    count = private.count(epsilon="0.25")
    assert count.law.fraction == 4
    deviation = math.sqrt(sum(weight * t * t for t, weight in enumerate(laplace(0.25))))
    assert count.standard_deviation == pytest.approx(deviation)
    assert (str(count.receipt.epsilon), str(count.receipt.cost)) == ("0.25", "0.25")
    assert count.receipt.sequence > 0
    assert re.fullmatch("[0-9a-f]{64}", count.receipt.digest)
    assert re.fullmatch(r"-?\d+ \+- 12 \(95 %\), epsilon 0\.25", str(count))


def test_a_histogram_refuses_labels_that_it_does_not_have(private: dm.PrivateTable) -> None:
    histogram = private.histogram("ward", "cough", epsilon=0.5)
    with pytest.raises(RequestError, match="by ward, cough: name one label of each"):
        histogram["north"]
    with pytest.raises(RequestError, match="'cough' has no label 'maybe'"):
        histogram["north", "maybe"]
    assert isinstance(histogram["north", "True"], int)
    assert (histogram.nonnegative() >= 0).all()


def test_a_long_histogram_is_printed_with_its_beginning_and_its_noise(private: dm.PrivateTable) -> None:
    text = str(private.histogram("age", epsilon=0.5)).splitlines()
    assert text[0].split() == ["age", "noisy", "count"]
    assert text[-2] == "... 61 more"
    assert text[-1] == "Each +- 6 (95 %), epsilon 0.5."


# -- what is held ------------------------------------------------------------------------------------------------------

PUBLIC = (str, int, float, bool, bytes, type(None), Decimal, Fraction, types.FunctionType, types.MethodType)


def held(item: object, seen: set[int]) -> list[object]:
    """Everything reachable from an object's attributes, up to the wire."""
    if id(item) in seen:
        return []
    seen.add(id(item))
    if isinstance(item, PUBLIC):
        return [item]
    if isinstance(item, np.ndarray):
        return [item]
    if isinstance(item, dict):
        parts: list[object] = [*item.keys(), *item.values()]
    elif isinstance(item, (list, tuple, set, frozenset)):
        parts = list(item)
    else:
        parts = list(vars(item).values())
    return [item, *(inner for part in parts for inner in held(part, seen))]


def test_a_private_table_across_a_wire_holds_no_rows() -> None:
    with dm.open(TABLE, schema=SCHEMA, cap=10) as data:
        private = across_the_wire(data.grant("alice", epsilon=10))
        view = private.where("age >= 40").partition("ward")["north"].cells("cough")
        view.count(epsilon=0.1)
        private.choose(["age", "ward"], score="gini", epsilon=0.1)
        for table in (private, view):
            found = held(table, set())
            arrays = [item for item in found if isinstance(item, np.ndarray)]
            edges = SCHEMA.attribute("age").edges  # type: ignore[union-attr]
            assert all(np.array_equal(array, edges) for array in arrays)
            longest = max(len(item) for item in found if isinstance(item, (list, tuple, dict)))
            assert longest < 120
            modules = {type(item).__module__.split(".")[0] for item in found}
            assert modules <= {"builtins", "dpmine", "decimal", "numpy", "support", "fractions"}
            names = {type(item).__name__ for item in found if type(item).__module__.startswith("dpmine")}
            assert not names & {"EncodedTable", "MemoryEngine", "Kernel", "Ledger", "DataSet", "LocalExecutor"}


def test_answers_hold_noisy_numbers_and_public_facts_only() -> None:
    with dm.open(TABLE, schema=SCHEMA, cap=10) as data:
        private = across_the_wire(data.grant("alice", epsilon=10))
        answers = [
            private.count(epsilon=0.1),
            private.histogram("ward", epsilon=0.1),
            private.choose("ward", epsilon=0.1),
            private.choose(["age"], score="max", epsilon=0.1),
        ]
    fields = {type(answer).__name__: {field.name for field in dataclasses.fields(answer)} for answer in answers}
    assert fields == {
        "NoisyCount": {"value", "law", "receipt"},
        "NoisyHistogram": {"titles", "labels", "counts", "law", "receipt"},
        "ChosenLabel": {"label", "index", "law", "receipt"},
        "ChosenSplit": {"key", "family", "labels", "law", "receipt"},
    }


def test_the_schema_of_a_private_table_is_the_owner_s(private: dm.PrivateTable) -> None:
    assert private.schema.fingerprint == private.where("age > 3").schema.fingerprint == SCHEMA.fingerprint


def test_keys_of_every_kind_can_be_named(clear: dm.PrivateTable) -> None:
    keys: list[Key] = [
        AttributeKey("cough"),
        Bins("age", ("40",)),
        Groups("ward", (Group("n", ("north",)),)),
        Part("s", (1, 1)),
    ]
    histogram = clear.histogram(*keys, epsilon=HUGE)
    assert histogram.titles == ("cough", "age", "ward", "split s")
    assert int(histogram.counts.sum()) == len(ROWS)
    assert number_of_candidates(Multiway(keys[0]), SCHEMA) == 1


# -- predicates that the bounds make empty -----------------------------------------------------------------------------

NEVER = {
    "age > 200": "age >= 110",
    "age >= 111": "age >= 110",
    "age > 110": "age >= 110",
    "age < -5": "age <= 0",
    "age < 0": "age <= 0",
    "age <= -1": "age <= 0",
    "age == 300": "age == 110",
    "age == -3": "age == 0",
    "age == 30.5": "age == 30",
    "age in [30, 300]": "age == 110",
    "cough == True or age > 200": "age >= 110",
}
NEVER_TOGETHER = ["not age <= 200", "not (age >= 0)", "age > 100 and age < 20", "ward == north and ward == south", "false"]
ALWAYS = ["not age > 200", "not false", "age <= 200", "age >= 0", "age != 300", "age >= 110", "age <= 0", "true"]


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("text", [*NEVER, *NEVER_TOGETHER])
def test_a_predicate_that_the_bounds_make_empty_is_refused_before_it_is_charged(
    text: str, engine: str, tmp_path: Path
) -> None:
    pd.DataFrame(RECORDS).to_csv(tmp_path / "rows.csv", index=False)
    with dm.open(tmp_path / "rows.csv", schema=patients_schema(), ledger=None, cap=1, engine=engine) as data:
        private = data.grant("alice", epsilon=1)
        for ask in (
            lambda: private.where(text).count(epsilon=1),
            lambda: private.where(text).histogram("ward", epsilon=1),
            lambda: private.where(text).mean("age", epsilon=1),
            lambda: private.histogram(dm.parse_predicate(text), epsilon=1),
            lambda: private.partition(dm.parse_predicate(text))["yes"].count(epsilon=1),
        ):
            with pytest.raises(dm.ExpressionError, match=r"is true for no row: .* Nothing was spent") as told:
                ask()
            assert text not in NEVER or f"for example {NEVER[text]}." in str(told.value)
        assert private.remaining() == dm.Epsilon.parse(1)
        assert not private.statement().spendings


@pytest.mark.parametrize("text", ALWAYS)
def test_a_predicate_that_the_bounds_make_true_or_narrow_may_be_asked(text: str) -> None:
    with dm.open(RECORDS, schema=patients_schema(), ledger=None, cap=1) as data:
        data.grant("alice", epsilon=1).where(text).count(epsilon=1)


def test_the_message_about_an_empty_predicate_says_what_is_allowed() -> None:
    with dm.open(RECORDS, schema=patients_schema(), ledger=None, cap=1) as data:
        private = data.grant("alice", epsilon=1)
        with pytest.raises(dm.ExpressionError) as told:
            private.where(dm.col("age") > 200).count(epsilon=1)
        with pytest.raises(dm.ExpressionError, match=r"age in \[\] is true for no row: it names no value of 'age'\."):
            private.where(dm.col("age").isin([])).count(epsilon=1)
    assert str(told.value) == (
        "age > 200 is true for no row: values of 'age' are clamped to 0 to 110, and rounded to multiples of 1. Nothing was "
        "spent; write a comparison that such values can meet, for example age >= 110."
    )


def test_bins_beyond_the_bounds_and_cells_without_values_may_be_asked() -> None:
    """They say what they are, and an empty bin adds nothing to the price of the others."""
    with dm.open(RECORDS, schema=patients_schema(), ledger=None, cap=1) as data:
        private = data.grant("alice", epsilon=1)
        assert private.histogram(dm.col("age").bins(0, 18, 200), epsilon="0.5").counts.shape == (4,)
        for part in private.partition(dm.col("age").bins(0, 18, 200)).values():
            part.count(epsilon="0.5")
        assert str(private.remaining()) == "0"
