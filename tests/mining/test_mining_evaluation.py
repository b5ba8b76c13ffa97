"""Models judged privately: prices, confusion matrices, intervals that cover, AUC, bands; and private selection."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.attributes import of_persons
from support.estimators import EVERY
from support.mined_tables import schema_of, table_of
from support.opening import HUGE, fitted, opened, recorded

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.facts.schema import Schema
from dpmine.language.keys import AttributeKey
from dpmine.language.model_keys import ScoreBands
from dpmine.mining import evaluation
from dpmine.mining.evaluation import BANDS, Measured, accuracy_of, band_edges
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.models.trees import MILLION, Node, Trees
from dpmine.noise.spread import of_counts
from dpmine.questions.histogram import Histogram

SCHEMA = schema_of()
TABLE = table_of(SCHEMA, 400, 1, clear=0.8)
TRUTH = np.array(TABLE["class"], dtype=object)


def good(depth: int = 2) -> TreeEstimator:
    return fitted(dm.DiffPC45(HUGE, depth, "gini", pruning=False), TABLE, SCHEMA)


# -- price -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_an_evaluation_costs_its_epsilon(name: str) -> None:
    model = fitted(EVERY[name](epsilon=1000), TABLE, SCHEMA)
    with opened(TABLE, SCHEMA, 1) as private:
        judged = model.evaluate(private, epsilon="0.3")
        assert str(judged.epsilon) == "0.3"
        assert str(private.remaining()) == "0.7"
        model.evaluate(private, epsilon="0.3")  # the same question again is free
        assert str(private.remaining()) == "0.7"
        model.evaluate(private, epsilon="0.3", auc=False)
        assert str(private.remaining()) == "0.4"


def test_training_and_judging_on_disjoint_parts_cost_the_larger_of_the_two() -> None:
    with opened(TABLE, SCHEMA, 1) as private:
        train, test = private.split(test=0.3)
        model = dm.TreeClassifier("0.4").fit(train)
        model.evaluate(test, epsilon="0.25")
        assert str(private.remaining()) == "0.6"
        model.evaluate(test, epsilon="0.35")
        assert str(private.remaining()) == "0.4"  # 0.25 and 0.35 on the same rows
        assert str(private.statement().allotments[0].spent) == "0.6"


def test_a_tree_of_one_leaf_has_no_auc_and_pays_no_more_than_was_said() -> None:
    model = fitted(dm.TreeClassifier(1, 2, stopping=1000), TABLE, SCHEMA)
    assert model.trees_.trees[0].split is None
    with opened(TABLE, SCHEMA, 1) as private:
        judged = model.evaluate(private, epsilon="0.4")
        assert judged.auc is None or judged.auc.value == 0.5
        assert private.remaining() >= Epsilon.parse("0.6")
        assert judged.epsilon == Epsilon(10**9 - private.remaining().units), "says what it cost"


def test_persons_with_several_rows_are_charged_no_more_than_was_said() -> None:
    schema = of_persons(SCHEMA, 3)
    table = {**TABLE, "person": [f"p{place // 3}" for place in range(400)]}
    model = good()
    with opened(table, schema, 1) as private:
        assert str(model.evaluate(private, epsilon="0.3").epsilon) == "0.3"
        assert str(private.remaining()) == "0.7"
        chosen = dm.select_model(private, [dm.TreeClassifier(max_depth=2), dm.DiffPID3(max_depth=2)], epsilon="0.6")
        assert private.remaining() >= Epsilon.parse("0.1")
        assert str(chosen.cost) == "0.6"


def test_half_buys_the_matrix_and_half_the_bands() -> None:
    with recorded(TABLE, SCHEMA, 1) as (private, recorder):
        good().evaluate(private, epsilon="0.300000001")
    assert [query.epsilon[0].units for query in recorder.queries] == [150_000_000, 150_000_001]
    questions = [query.question for query in recorder.queries]
    assert all(isinstance(question, Histogram) and len(question.keys) == 2 for question in questions)
    assert isinstance(questions[1].keys[0], ScoreBands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("epsilon", [0, -1, "nan", 2])
def test_an_evaluation_that_cannot_be_paid_is_refused_and_spends_nothing(epsilon: Any) -> None:
    model = good()
    with opened(TABLE, SCHEMA, 1) as private:
        with pytest.raises(dm.DpmineError):
            model.evaluate(private, epsilon=epsilon)
        assert str(private.remaining()) == "1"


def test_a_table_with_other_classes_is_refused() -> None:
    other = schema_of(classes=3)
    with opened(table_of(other, 50, 1), other, 1) as private:
        with pytest.raises(dm.RequestError, match="other classes than the model"):
            good().evaluate(private, epsilon="0.1")
        assert str(private.remaining()) == "1"


# -- exact at a huge epsilon -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("name", EVERY)
def test_without_noise_the_matrix_and_the_measures_are_exact(name: str, classes: int) -> None:
    schema = schema_of(classes=classes)
    table = table_of(schema, 200, 3)
    truth = np.array(table["class"], dtype=object)
    model = fitted(EVERY[name](epsilon=20), table, schema)
    with opened(table, schema, HUGE) as private:
        judged = model.evaluate(private, epsilon=HUGE)
    predicted = model.predict(table)
    labels = schema.class_labels
    expected = [[int(((predicted == row) & (truth == column)).sum()) for column in labels] for row in labels]
    assert judged.confusion.tolist() == expected
    assert judged.accuracy.value == pytest.approx(model.score(table, truth))
    assert judged.majority == pytest.approx(max(np.mean(truth == label) for label in labels))
    assert (judged.auc is None) == (classes > 2 or not band_edges(model.trees_))
    for measured in filter(None, (judged.accuracy, judged.auc)):
        assert measured.low == pytest.approx(measured.value, abs=2e-3)  # shares are tried in thousandths
        assert measured.high == pytest.approx(measured.value, abs=2e-3)
        assert measured.low <= float(measured) <= measured.high


@pytest.mark.parametrize("seed", range(5))
def test_the_auc_is_scikit_learn_s_where_every_score_has_its_band(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    table = table_of(SCHEMA, 300, seed)
    model = fitted(dm.DiffPC45(HUGE, 2, "gini", pruning=False), table, SCHEMA)
    scores = sorted({leaf.shares[1] for leaf in model.trees_.trees[0].leaves()})
    with recorded(table, SCHEMA, 1000) as (private, recorder):
        judged = model.evaluate(private, epsilon=1000)
    (bands,) = (q.question.keys[0] for q in recorder.queries if isinstance(q.question.keys[0], ScoreBands))  # type: ignore
    truth = np.array(table["class"]) == "c1"
    probability = model.predict_proba(table)[:, 1]
    banded = np.searchsorted(bands.edges, np.rint(probability * MILLION), side="right")
    assert judged.auc is not None
    assert judged.auc.value == pytest.approx(metrics.roc_auc_score(truth, banded), abs=1e-6)
    if list(bands.edges) == scores[1:]:
        assert judged.auc.value == pytest.approx(metrics.roc_auc_score(truth, probability), abs=1e-6)


def test_the_auc_of_a_stump_is_exact() -> None:
    """Two leaves, two bands: the AUC by hand is the chance that the higher leaf holds the second class, half for ties."""
    model = good(1)
    with opened(TABLE, SCHEMA, 1000) as private:
        judged = model.evaluate(private, epsilon=1000)
    probability = model.predict_proba(TABLE)[:, 1]
    pairs = [
        (one > other) + (one == other) / 2
        for one, other in itertools.product(probability[TRUTH == "c1"], probability[TRUTH == "c0"])
    ]
    assert judged.auc is not None
    assert judged.auc.value == pytest.approx(float(np.mean(pairs)), abs=1e-9)


def test_more_than_two_classes_have_no_auc() -> None:
    schema = schema_of(classes=3)
    table = table_of(schema, 100, 1)
    model = fitted(dm.TreeClassifier(10), table, schema)
    with opened(table, schema, 1) as private:
        with pytest.raises(dm.RequestError, match="The AUC needs two classes; this model has 3"):
            model.evaluate(private, epsilon="0.1", auc=True)
        assert str(private.remaining()) == "1"
        assert model.evaluate(private, epsilon="0.1").auc is None
        assert str(private.remaining()) == "0.9"


def test_an_evaluation_is_told_in_words_and_as_json() -> None:
    with opened(TABLE, SCHEMA, 1) as private:
        judged = good().evaluate(private, epsilon="0.5")
    form = judged.to_dict()
    assert form["classes"] == ["c0", "c1"]
    assert form["confusion"] == judged.confusion.tolist()
    assert form["accuracy"] == {"value": judged.accuracy.value, "low": judged.accuracy.low, "high": judged.accuracy.high}
    assert (form["epsilon"], form["confidence"]) == ("0.5", 0.95)
    text = str(judged)
    for words in ("counts are noisy", "accuracy ", "AUC ", "always the most frequent class", "95%", "Epsilon 0.5"):
        assert words in text
    assert str(Measured(0.5, 0.25, 0.75)) == "50.0% (25.0% to 75.0%)"


def test_an_empty_table_can_be_judged() -> None:
    empty: dict[str, list[Any]] = {name: [] for name in TABLE}
    with opened(empty, SCHEMA, 1000) as private:
        judged = good().evaluate(private, epsilon=1000)
    assert judged.confusion.tolist() == [[0, 0], [0, 0]]
    for measured in (judged.accuracy, judged.auc):
        assert measured is not None
        assert 0 <= measured.low <= measured.high <= 1


# -- intervals cover ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "epsilon"), [(400, "0.1"), (400, "0.5"), (4000, "0.1")])
def test_intervals_cover_the_truth_in_about_95_percent(rows: int, epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 runs. Intervals are simulated around noisy counts, so that they cover in about 95 %.

    In 1,000 runs the accuracy was covered in 94 to 96 %, the AUC in 96 to 97 % and with 400 rows at epsilon 0.1, where noise
    is as large as counts, in 91 %. With a chance of .93 fewer than 162 of 200 are covered with chance 6e-9, and with one of
    .895 fewer than 153 with chance 4e-8.

    Fewer draws of simulated noise than usual keep this fast, and move the ends of an interval little.
    """
    monkeypatch.setattr(evaluation, "DRAWS", 500)
    schema = schema_of(rows_at_most=10_000)
    table = table_of(schema, rows, 1, clear=0.8)
    model = fitted(dm.DiffPC45(HUGE, 2, "gini", pruning=False), table, schema)
    with opened(table, schema, HUGE) as private:
        exact = model.evaluate(private, epsilon=HUGE)
    assert exact.auc is not None
    covered = dict.fromkeys(("accuracy", "auc"), 0)
    with dm.open(table, schema=schema, cap=HUGE) as data:
        for run in range(200):
            judged = model.evaluate(data.grant(f"analyst {run}", epsilon=1), epsilon=epsilon)
            for name in covered:
                measured, truth = getattr(judged, name), getattr(exact, name).value
                covered[name] += measured.low - 1e-9 <= truth <= measured.high + 1e-9
    assert covered["accuracy"] >= 162, covered
    assert covered["auc"] >= (153 if (rows, epsilon) == (400, "0.1") else 162), covered


@pytest.mark.parametrize("draws", [500, pytest.param(evaluation.DRAWS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rows", [1_000, 45_000, 300_000, 10**8])
def test_the_interval_of_an_accuracy_covers_and_is_narrow_however_many_rows_there_are(
    rows: int, draws: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 seeded draws. Twice the interval's half width is what the noise of 2 right and 2 wrong counts makes in 95 %."""
    monkeypatch.setattr(evaluation, "DRAWS", draws)
    noise, law = np.random.default_rng(rows), of_counts(Epsilon.parse("0.25"))
    true = np.array([[0.7004, 0.1096], [0.04, 0.15]]) * rows
    covered = 0
    for _ in range(200):
        judged = accuracy_of(np.round(true + noise.laplace(0, 4, (2, 2))).astype(np.int64), law)
        covered += judged.low <= 0.8504 <= judged.high
        assert 0 <= judged.low <= judged.value <= judged.high <= 1
        assert 8 / rows < judged.high - judged.low < 40 / rows
    assert 180 <= covered <= 199


# -- bands -------------------------------------------------------------------------------------------------------------


def tree_with(leaves: list[tuple[int, int]]) -> Trees:
    """A tree that is only good for its leaves: rows and the share of the second class in millionths."""
    children = tuple(Node((rows, 0), (MILLION - share, share)) for rows, share in leaves)
    root = Node((0, 0), (MILLION // 2, MILLION // 2), AttributeKey("colour"), children)
    return Trees(("c0", "c1"), (root,))


LEAVES = st.lists(st.tuples(st.integers(-50, 1000), st.integers(0, MILLION)), min_size=1, max_size=60)


@given(LEAVES)
def test_bands_are_few_and_their_edges_are_scores_of_leaves(leaves: list[tuple[int, int]]) -> None:
    edges = band_edges(tree_with(leaves))
    scores = sorted({share for _, share in leaves})
    assert list(edges) == sorted(set(edges))
    assert set(edges) <= set(scores[1:])  # an edge begins a band, and the lowest score is in the first
    assert len(edges) < BANDS
    assert bool(edges) == (len(scores) > 1)
    if edges:
        ScoreBands((tree_with(leaves).trees[0].scored(),), 1, edges)


@given(LEAVES)
def test_few_scores_of_even_weight_have_a_band_each(leaves: list[tuple[int, int]]) -> None:
    scores = sorted({share for _, share in leaves})[:BANDS]
    assert list(band_edges(tree_with([(100, share) for share in scores]))) == scores[1:]


@given(st.integers(2, 40), st.integers(0, MILLION))
def test_the_bands_of_a_forest_are_of_equal_width(trees: int, share: int) -> None:
    (tree,) = tree_with([(1, share), (1, 0)]).trees
    edges = band_edges(Trees(("c0", "c1"), (tree,) * trees))
    assert len(edges) == 2 * BANDS - 1
    widths = np.diff([0, *edges, trees * MILLION])
    assert widths.max() - widths.min() <= 1


# -- selection ---------------------------------------------------------------------------------------------------------


def selection(table: Any, schema: Schema, candidates: list[TreeEstimator], epsilon: Any = 2) -> Any:
    with opened(table, schema, epsilon) as private:
        chosen = dm.select_model(private, candidates, epsilon=epsilon)
        assert str(private.remaining()) == "0"
        assert chosen.cost == Epsilon.parse(epsilon)
    return chosen


def test_a_selection_costs_its_epsilon_and_keeps_the_candidates_as_they_were() -> None:
    candidates = [
        dm.TreeClassifier(max_depth=2),
        dm.GreedyForest(trees=2, max_depth=2),
        dm.RandomForest(trees=2, max_depth=2),
    ]
    chosen = selection(TABLE, SCHEMA, candidates)
    assert repr(candidates[0]) == "TreeClassifier(max_depth=2)"
    assert not any(hasattr(model, "trees_") for model in candidates)
    assert chosen.best is chosen.candidates[chosen.index]
    assert [str(model.budget) for model in chosen.candidates] == ["0.666666666"] * 3
    assert "chosen privately, epsilon 2" in str(chosen)
    assert str(chosen).count("->") == 1


def test_the_better_of_a_good_and_a_useless_candidate_is_chosen_nearly_always() -> None:
    """The useless one stays a single leaf and is right about 60 % of 800 rows; the good one about 85 %: some 200 rows more.

    None of 400 trial runs chose the useless one, so its chance is below 0.75 % (95 % confidence); at that chance, 5 of 15
    would be wrong with a chance below 1e-7.
    """
    schema = schema_of(rows_at_most=10_000)
    table = table_of(schema, 4000, 1, clear=0.9)
    useless, better = dm.TreeClassifier(max_depth=1, stopping=1000), dm.TreeClassifier(max_depth=4)
    for places in ([useless, better], [better, useless]):
        found = [selection(table, schema, list(places)).best.max_depth for _ in range(15)]
        assert found.count(4) >= 11


def test_a_selection_names_its_mistakes_before_anything_is_spent() -> None:
    with opened(TABLE, SCHEMA, 1) as private:
        for candidates, epsilon in (
            ([], 1),
            ([dm.TreeClassifier(), dm.TreeClassifier(max_depth=99)], 1),
            ([dm.TreeClassifier(), dm.DiffPID3(criterion="gainratio")], 1),
            ([dm.TreeClassifier()], 0),
            ([dm.TreeClassifier()] * 3, "0.000000002"),
        ):
            with pytest.raises(dm.DpmineError):
                dm.select_model(private, candidates, epsilon=epsilon)
        for validation in (0, 1, "x"):
            with pytest.raises(dm.RequestError):
                dm.select_model(private, [dm.TreeClassifier()], epsilon=1, validation=validation)
        assert str(private.remaining()) == "1"


def test_a_selection_that_cannot_be_paid_spends_nothing() -> None:
    with opened(TABLE, SCHEMA, 1) as private:
        with pytest.raises(dm.BudgetError):
            dm.select_model(private, [dm.TreeClassifier(), dm.TreeClassifier(max_depth=3)], epsilon="1.5")
        assert str(private.remaining()) == "1"
