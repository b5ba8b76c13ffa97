"""Models as keys, private choice of a model and staying whole: next to the data and across a wire of JSON text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from support.executors import Opener
from support.patient_tables import RECORDS, SCHEMA, TABLE
from support.refusals import assert_one_sentence

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import ExpressionError, RequestError
from dpmine.base.json_values import from_text, to_text
from dpmine.base.wire import to_wire
from dpmine.codes.rows import LARGEST_SCORE, MOST_TREES
from dpmine.codes.splits import MOST_BONUS
from dpmine.language.keys import AttributeKey, Bins, Group, Groups, Key, Part, Test
from dpmine.language.model_keys import (
    DEEPEST_TREE,
    MOST_BANDS,
    MOST_CLASSES,
    MOST_NODES,
    Predicted,
    ScoreBands,
    ScoreLeaf,
    ScoreSplit,
    ScoreTree,
)
from dpmine.language.parsing import parse_predicate
from dpmine.language.queries import Query, resolve
from dpmine.language.splits import Stay
from dpmine.language.views import LEAF, Split, View
from dpmine.questions.choose_model import MOST_MODELS, ChooseModel, ChosenModel
from dpmine.questions.choose_split import ChosenSplit, Stayed
from dpmine.questions.histogram import Histogram

HUGE = 10_000
LABELS = SCHEMA.class_labels
WIDTH = len(LABELS)


def right_about(place: int) -> ScoreLeaf:
    return ScoreLeaf(tuple(int(label == place) for label in range(WIDTH)))


def constant(place: int) -> Predicted:
    """The model that always predicts one class."""
    return Predicted((right_about(place),), LABELS)


def chain(levels: int) -> ScoreTree:
    tree: ScoreTree = right_about(0)
    for _ in range(levels):
        tree = ScoreSplit(Bins("age", ("40",)), (right_about(1), tree))
    return tree


BY_AGE_ALONE = Predicted((ScoreSplit(Bins("age", ("40",)), (right_about(1), right_about(0))),), LABELS)


def query(*keys: Key) -> Query:
    return Query(View(), LEAF, Histogram(keys), (Epsilon(1),))


@pytest.fixture
def clear(opened: Opener) -> dm.PrivateTable:
    return opened(TABLE, SCHEMA, epsilon=1_000_000)


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED_WHEN_MADE: dict[str, tuple[str, Callable[[], object]]] = {
    "no tree": ("1 to 1000 trees", lambda: Predicted((), LABELS)),
    "too many trees": ("1 to 1000 trees", lambda: Predicted((right_about(0),) * (MOST_TREES + 1), LABELS)),
    "too many nodes": (
        "at most 65536 nodes",
        lambda: Predicted((ScoreSplit(AttributeKey("ward"), (right_about(0),) * MOST_NODES),), LABELS),
    ),
    "too deep": ("40 levels deep", lambda: Predicted((chain(DEEPEST_TREE + 1),), LABELS)),
    "a large score": ("whole number within", lambda: Predicted((ScoreLeaf((LARGEST_SCORE + 1, 0)),), ("a", "b"))),
    "a small score": ("whole number within", lambda: Predicted((ScoreLeaf((0, -LARGEST_SCORE - 1)),), ("a", "b"))),
    "half a score": ("whole number within", lambda: Predicted((ScoreLeaf((0.5, 0)),), ("a", "b"))),  # type: ignore[arg-type]
    "no number": ("whole number within", lambda: Predicted((ScoreLeaf((float("nan"), 0)),), ("a", "b"))),  # type: ignore[arg-type]
    "an engine's score": ("whole number within", lambda: Predicted((ScoreLeaf((np.int64(1), 0)),), ("a", "b"))),  # type: ignore[arg-type]
    "too few scores": ("Every leaf needs 3 scores", lambda: Predicted((ScoreLeaf((1, 2)),), ("a", "b", "c"))),
    "too many scores": ("Every leaf needs 2 scores", lambda: Predicted((ScoreLeaf((1, 2, 3)),), ("a", "b"))),
    "one class": ("two different classes", lambda: Predicted((ScoreLeaf((1,)),), ("a",))),
    "a class twice": ("two different classes", lambda: Predicted((ScoreLeaf((1, 2)),), ("a", "a"))),
    "too many classes": (
        "at most 1000 classes",
        lambda: Predicted((ScoreLeaf((0,) * (MOST_CLASSES + 1)),), tuple(map(str, range(MOST_CLASSES + 1)))),
    ),
    "a test inside": (
        "by a column, by bins or by groups",
        lambda: Predicted((ScoreSplit(Test(parse_predicate("age > 3")), (right_about(0),) * 2),), LABELS),
    ),
    "a part inside": (
        "by a column, by bins or by groups",
        lambda: Predicted((ScoreSplit(Part("s", (1, 1)), (right_about(0),) * 2),), LABELS),
    ),
    "a model inside": (
        "by a column, by bins or by groups",
        lambda: ScoreBands((ScoreSplit(BY_AGE_ALONE, (right_about(0),) * WIDTH),), 0, (1,)),
    ),
    "no edge": ("edges that rise", lambda: ScoreBands((right_about(0),), 0, ())),
    "falling edges": ("edges that rise", lambda: ScoreBands((right_about(0),), 0, (2, 1))),
    "equal edges": ("edges that rise", lambda: ScoreBands((right_about(0),), 0, (1, 1))),
    "an edge too far": ("beyond the largest", lambda: ScoreBands((right_about(0),), 0, (LARGEST_SCORE * MOST_TREES + 1,))),
    "half an edge": ("whole numbers as edges", lambda: ScoreBands((right_about(0),), 0, (0.5,))),  # type: ignore[arg-type]
    "too many bands": ("at most 4096 bands", lambda: ScoreBands((right_about(0),), 0, tuple(range(MOST_BANDS)))),
    "no such score": ("score number 9", lambda: ScoreBands((right_about(0),), 9, (1,))),
    "a place below": ("score number -1", lambda: ScoreBands((right_about(0),), -1, (1,))),
    "a score missing": ("score number 1", lambda: ScoreBands((ScoreLeaf((1, 2)), ScoreLeaf((1,))), 1, (1,))),
    "a negative bonus": ("whole number between 0", lambda: Stay(-1)),
    "a bonus too large": ("whole number between 0", lambda: Stay(MOST_BONUS + 1)),
    "half a bonus": ("whole number between 0", lambda: Stay(0.5)),  # type: ignore[arg-type]
    "no model": ("1 to 1000 models", lambda: ChooseModel((), "exponential", "monotone")),
    "too many models": (
        "1 to 1000 models",
        lambda: ChooseModel((constant(0),) * (MOST_MODELS + 1), "exponential", "monotone"),
    ),
    "bands as a model": (
        "Predicted",
        lambda: ChooseModel((ScoreBands((right_about(0),), 0, (1,)),), "exponential", "monotone"),  # type: ignore[arg-type]
    ),
    "an unknown mechanism": ("mechanism must be", lambda: ChooseModel((constant(0),), "dice", "monotone")),
    "an unknown calibration": ("calibration must be", lambda: ChooseModel((constant(0),), "exponential", "half")),
}


@pytest.mark.parametrize("name", REFUSED_WHEN_MADE)
def test_what_goes_beyond_the_limits_is_refused_when_it_is_made(name: str) -> None:
    words, make = REFUSED_WHEN_MADE[name]
    with pytest.raises(RequestError, match=words) as refused:
        make()
    assert_one_sentence(refused.value)


def test_what_is_just_within_the_limits_is_not_refused() -> None:
    Predicted((right_about(0),) * MOST_TREES, LABELS)
    Predicted((ScoreSplit(AttributeKey("ward"), (right_about(0),) * (MOST_NODES - 1)),), LABELS)
    Predicted((ScoreLeaf((LARGEST_SCORE, -LARGEST_SCORE)),), ("a", "b"))
    Predicted((ScoreLeaf((0,) * MOST_CLASSES),), tuple(map(str, range(MOST_CLASSES))))
    ScoreBands((right_about(0),), 0, (-LARGEST_SCORE * MOST_TREES, LARGEST_SCORE * MOST_TREES))
    ScoreBands((right_about(0),), 0, tuple(range(MOST_BANDS - 1)))
    assert [Stay(bonus).bonus for bonus in (0, MOST_BONUS)] == [0, MOST_BONUS]
    deepest = query(Predicted((chain(DEEPEST_TREE),), LABELS))
    assert from_text(to_text(deepest), Query) == deepest
    choice = Query(View(), LEAF, ChooseModel((Predicted((chain(DEEPEST_TREE),), LABELS),), "exponential", "generic"), ())
    assert from_text(to_text(choice), Query) == choice


def other_order() -> Predicted:
    return Predicted((right_about(0),), LABELS[::-1])


REFUSED_BY_THE_SCHEMA: dict[str, tuple[str, Callable[[dm.PrivateTable], object]]] = {
    "too few children": (
        "needs 2 children. Got 1",
        lambda private: private.histogram(
            Predicted((ScoreSplit(Bins("age", ("40",)), (right_about(0),)),), LABELS), epsilon=1
        ),
    ),
    "no children": (
        "needs 2 children. Got 0",
        lambda private: private.histogram(Predicted((ScoreSplit(Bins("age", ("40",)), ()),), LABELS), epsilon=1),
    ),
    "too many children": (
        "needs 2 children. Got 3",
        lambda private: private.cells(
            Split(ScoreBands((ScoreSplit(Bins("age", ("40",)), (right_about(0),) * 3),), 0, (1,)), (LEAF, LEAF))
        ).count(epsilon=1),
    ),
    "an unknown column": (
        "'height' is not in the schema",
        lambda private: private.histogram(
            Predicted((ScoreSplit(AttributeKey("height"), (right_about(0),)),), LABELS), epsilon=1
        ),
    ),
    "a column of lists": (
        "history",
        lambda private: private.histogram(
            Predicted((ScoreSplit(AttributeKey("history"), (right_about(0),)),), LABELS), epsilon=1
        ),
    ),
    "bins of a category": (
        "not numeric",
        lambda private: private.histogram(
            Predicted((ScoreSplit(Bins("ward", ("1",)), (right_about(0),) * 2),), LABELS), epsilon=1
        ),
    ),
    "classes in another order": ("in the same order", lambda private: private.choose_model([other_order()], epsilon=1)),
    "other classes": (
        "in the same order",
        lambda private: private.choose_model([constant(0), Predicted((ScoreLeaf((1, 0)),), ("a", "b"))], epsilon=1),
    ),
    "no models": ("1 to 1000 models", lambda private: private.choose_model([], epsilon=1)),
    "a column as a model": ("Predicted", lambda private: private.choose_model(["ward"], epsilon=1)),  # type: ignore[list-item]
    "only staying": (
        "no split to choose from in cell 0",
        lambda private: private.choose([Stay(1)], score="gini", epsilon=1),
    ),
    "only staying in one cell": (
        "no split to choose from in cell 1",
        lambda private: private.cells(BY_AGE).choose([["ward"], [Stay(1), Stay(2)]], score="gini", epsilon=1),
    ),
    "staying as a label": ("name one key", lambda private: private.choose(["ward", Stay(1)], epsilon=1)),  # type: ignore[call-overload]
    "rules that miss a class": (
        "children",
        lambda private: private.cells(Split(BY_AGE_ALONE, (LEAF,))).count(epsilon=1),
    ),
}
BY_AGE = Bins("age", ("40",))


@pytest.mark.parametrize("name", REFUSED_BY_THE_SCHEMA)
def test_what_the_schema_does_not_allow_is_refused_before_anything_is_charged(opened: Opener, name: str) -> None:
    private = opened(TABLE, SCHEMA, epsilon=10)
    words, ask = REFUSED_BY_THE_SCHEMA[name]
    with pytest.raises(RequestError, match=words) as refused:
        ask(private)
    assert_one_sentence(refused.value)
    assert str(private.remaining()) == "10"


def test_a_choice_of_models_needs_a_class(opened: Opener) -> None:
    schema = dm.Schema("classless", SCHEMA.attributes, 10_000)
    private = opened(RECORDS, schema, epsilon=10)
    with pytest.raises(RequestError, match="names no class") as refused:
        private.choose_model([constant(0)], epsilon=1)
    assert_one_sentence(refused.value)
    assert str(private.remaining()) == "10"


@pytest.mark.parametrize(
    "form",
    [
        {"is": "score-leaf", "scores": [0.5]},
        {"is": "score-leaf", "scores": [True]},
        {"is": "score-leaf", "scores": ["1"]},
        {"is": "score-split", "key": {"is": "attribute", "attribute": "x"}, "children": [{"is": "leaf"}]},
        {"is": "score-split", "key": {"is": "stay", "bonus": 1}, "children": []},
        {"is": "leaf"},
        {"is": "row-scores", "scores": [1]},  # what engines read never comes from outside
    ],
)
def test_a_tree_that_is_none_is_refused_when_it_is_read(form: dict[str, object]) -> None:
    with pytest.raises(RequestError) as refused:
        from_text(json.dumps(form), ScoreTree)
    assert_one_sentence(refused.value)


# -- what comes back ---------------------------------------------------------------------------------------------------


def test_a_histogram_by_prediction_and_class_is_a_confusion_matrix(clear: dm.PrivateTable) -> None:
    """At epsilon 10,000 noise is 0 but for a chance below e^-9000."""
    found = clear.histogram(BY_AGE_ALONE, "diagnosis", epsilon=HUGE)
    counts = Counter(
        (LABELS[1 if age < 40 else 0], diagnosis)
        for age, diagnosis in zip(RECORDS["age"], RECORDS["diagnosis"], strict=True)
    )
    assert found.titles == ("predicted", "diagnosis")
    assert found.labels == (LABELS, LABELS)
    for row, predicted in enumerate(LABELS):
        for column, actual in enumerate(LABELS):
            assert found.counts[row, column] == counts[predicted, actual]
    bands = clear.histogram(ScoreBands(BY_AGE_ALONE.trees, 0, (1,)), epsilon=HUGE)
    assert bands.labels == (("band 1", "band 2"),)
    assert bands.counts.tolist() == [sum(age < 40 for age in RECORDS["age"]), sum(age >= 40 for age in RECORDS["age"])]


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_the_model_that_is_right_most_often_is_chosen_by_its_index(clear: dm.PrivateTable, mechanism: str) -> None:
    """At epsilon 10,000 a model that is right about one row less is chosen with a chance below e^-4900."""
    frequent = Counter(RECORDS["diagnosis"])
    models = [constant(place) for place in range(WIDTH)]
    best = max(range(WIDTH), key=lambda place: frequent[LABELS[place]])
    assert sorted(frequent.values())[-1] > sorted(frequent.values())[-2]
    for order in (models, models[::-1], [models[best]]):
        chosen = clear.choose_model(order, epsilon=HUGE, mechanism=mechanism, calibration="generic")
        assert isinstance(chosen, ChosenModel)
        assert order[chosen.index] == models[best]
        assert str(chosen) == f"model {chosen.index} (chosen privately, epsilon 10000)"
        assert chosen.receipt.epsilon == Epsilon.parse(HUGE)


SEPARATED = dm.Schema(
    "separated",
    (
        dm.Nominal("x", ("a", "b"), "a", missing="a"),
        dm.Numeric("half", Decimal(0), Decimal(1), Decimal(1), Decimal(0)),
        dm.Nominal("ill", ("no", "yes"), "no", missing="no"),
    ),
    1000,
    class_attribute="ill",
)
SEPARATED_ROWS = {
    "x": ["a"] * 20 + ["b"] * 20,
    "half": [number % 2 for number in range(40)],
    "ill": ["no"] * 20 + ["yes"] * 20,
}


@pytest.mark.parametrize("score", ["max", "gini", "infogain"])
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_the_choice_stays_where_no_split_gains_more_rows_than_the_bonus(opened: Opener, score: Any, mechanism: str) -> None:
    """x gains 20 rows by max and gini and 40 by information, `half` none. At epsilon 10,000 a score that is one row
    behind is chosen with a chance below e^-800, whatever the score's range."""
    private = opened(SEPARATED_ROWS, SEPARATED, epsilon=1_000_000)
    options: dict[str, Any] = {"score": score, "epsilon": HUGE, "mechanism": mechanism}
    gain = 40 if score == "infogain" else 20
    split = private.choose(["half", Stay(gain - 1), "x"], **options)
    assert isinstance(split, ChosenSplit)
    assert (split.key, split.family) == (AttributeKey("x"), 2)
    stayed = private.choose(["half", Stay(gain + 1), "x"], **options)
    assert isinstance(stayed, Stayed)
    assert str(stayed) == "no split (chosen privately, epsilon 10000)"
    assert isinstance(private.choose([Stay(1), "half"], **options), Stayed)
    cells = private.cells("half").choose([["x", Stay(gain // 2 + 1)], [Stay(gain // 2 - 1), "x"]], **options)
    assert isinstance(cells[0], Stayed)
    assert isinstance(cells[1], ChosenSplit)
    one = private.cells("half").choose(["x", Stay(gain)], score=score, epsilon=[0, HUGE], mechanism=mechanism)
    assert one[0] is None
    assert isinstance(one[1], Stayed)


def test_statements_and_dry_runs_speak_of_models(clear: dm.PrivateTable) -> None:
    said = clear.preview.choose(["ward", Stay(3)], score="gini", epsilon=1)
    assert "below the best" in said.expected_error
    assert str(said.cost) == "1"
    clear.choose_model([constant(0), constant(1)], epsilon=1)
    clear.histogram(BY_AGE_ALONE, "diagnosis", epsilon=1)
    what = [spending.what for spending in clear.statement().spendings]
    assert what[-2:] == [
        "choice among 2 models at epsilon 1",
        "histogram by a test, part or model, diagnosis at epsilon 1",
    ]


# -- the same model, written differently -------------------------------------------------------------------------------


def test_models_that_mean_the_same_resolve_alike() -> None:
    def plan(key: Key) -> bytes:
        return to_wire(resolve(query(key), SCHEMA))

    def by_age(cut: str, names: tuple[str, ...] = LABELS) -> Key:
        return Predicted((ScoreSplit(Bins("age", (cut,)), (right_about(1), right_about(0))),), names)

    assert plan(by_age("40")) == plan(by_age("40.0")) == plan(by_age("39.5")) == plan(by_age("4e1"))
    assert plan(by_age("40")) == plan(by_age("40", tuple(f"k{place}" for place in range(WIDTH))))
    assert plan(by_age("40")) != plan(by_age("41"))
    ward = SCHEMA.attribute("ward")
    assert isinstance(ward, dm.Nominal)
    first, second, *_ = ward.categories

    def by_ward(*members: str, label: str) -> Key:
        split = Groups("ward", (Group(label, members),))
        return ScoreBands((ScoreSplit(split, (ScoreLeaf((0, 7)), ScoreLeaf((0, 1)))),), 1, (2,))

    assert plan(by_ward(first, second, label="x")) == plan(by_ward(second, first, label="y"))
    other_place = ScoreSplit(Groups("ward", (Group("x", (first, second)),)), (ScoreLeaf((7,)), ScoreLeaf((1,))))
    assert plan(by_ward(first, second, label="x")) == plan(ScoreBands((other_place,), 0, (2,)))


def test_an_answer_to_the_same_model_written_differently_is_free(opened: Opener) -> None:
    private = opened(TABLE, SCHEMA, epsilon=10)
    one = private.histogram(BY_AGE_ALONE, epsilon=1)
    same = Predicted((ScoreSplit(Bins("age", ("39.5",)), (right_about(1), right_about(0))),), LABELS)
    assert private.histogram(same, epsilon=1).counts.tolist() == one.counts.tolist()
    assert str(private.remaining()) == "9"


def test_errors_of_models_are_errors_of_requests() -> None:
    with pytest.raises(ExpressionError):
        Predicted((), LABELS)
    assert issubclass(ExpressionError, RequestError)
