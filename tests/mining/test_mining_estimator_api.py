"""Estimators as their users meet them: parameters, tables of all kinds, labels of all types, engines, files, the wire."""

from __future__ import annotations

import json
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.estimators import EVERY
from support.executors import across_the_wire
from support.mined_tables import schema_of, table_of, without_class
from support.opening import HUGE, fitted, opened, recorded

import dpmine as dm
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.language.keys import AttributeKey
from dpmine.mining.trees.estimator import TreeEstimator

SCHEMA = schema_of(lists=True)
TABLE = table_of(SCHEMA, 200, 1)
X, Y = without_class(TABLE), TABLE["class"]
NO_LISTS = schema_of()


def model_of(name: str, epsilon: Any = 5, **params: Any) -> TreeEstimator:
    return EVERY[name](epsilon=epsilon, schema=SCHEMA, **params)


# -- parameters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_parameters_are_read_set_and_shown(name: str) -> None:
    model = getattr(dm, name)()
    params = model.get_params()
    assert params == model.get_params(deep=False)
    assert {"epsilon", "max_depth", "schema"} <= set(params)
    assert repr(model) == f"{name}()"
    assert model.set_params(epsilon="0.25", max_depth=3) is model
    assert (model.epsilon, model.max_depth) == ("0.25", 3)
    assert repr(model) == f"{name}(epsilon='0.25', max_depth=3)"
    assert repr(type(model)(schema=SCHEMA)) == f"{name}(schema='mined')"
    with pytest.raises(dm.RequestError, match=f"{name} has no parameter 'depth'. It has epsilon"):
        model.set_params(depth=3)
    again = type(model)(**model.get_params())
    assert again.get_params() == model.get_params()
    with pytest.raises(TypeError):
        type(model)(colour="red")


@pytest.mark.parametrize("name", EVERY)
def test_parameters_are_checked_by_fit_and_not_before(name: str) -> None:
    model = model_of(name, epsilon=-1)
    with pytest.raises(dm.EpsilonError):
        model.fit(X, Y)


def test_a_fitted_model_stays_while_its_parameters_change() -> None:
    model = model_of("TreeClassifier").fit(X, Y)
    before = model.predict_proba(X)
    model.set_params(epsilon="0.01", criterion="max")
    assert (model.predict_proba(X) == before).all()
    assert str(model.cost_) == "5"


# -- what may be handed over -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_rows_in_hand_need_public_facts(name: str) -> None:
    with pytest.raises(dm.RequestError, match=r"needs the public facts about this table: fit\(X, y, schema="):
        EVERY[name]().fit(X, Y)
    assert EVERY[name]().fit(X, Y, schema=SCHEMA).schema_ == SCHEMA
    assert EVERY[name](schema=NO_LISTS).fit(X, Y, schema=SCHEMA).schema_ == SCHEMA  # the nearer one wins


@pytest.mark.parametrize("name", EVERY)
def test_a_private_table_brings_class_and_schema_along(name: str) -> None:
    with opened(TABLE, SCHEMA, 1) as private:
        for given_too in ({"y": Y}, {"schema": SCHEMA}):
            with pytest.raises(dm.RequestError, match=r"call fit\(private\) alone"):
                EVERY[name]().fit(private, **given_too)
        assert str(private.remaining()) == "1"


@pytest.mark.parametrize("name", EVERY)
def test_a_model_that_is_not_fitted_says_so(name: str) -> None:
    model = EVERY[name]()
    with opened(TABLE, SCHEMA, 1) as private:
        for use in (
            lambda: model.predict(X),
            lambda: model.predict_proba(X),
            lambda: model.score(X, Y),
            lambda: model.predicted(),
            lambda: model.evaluate(private, epsilon="0.1"),
            lambda: model.to_text(),
            lambda: model.to_svg(),
            lambda: model.to_json(),
            lambda: model.plot(),
        ):
            with pytest.raises(dm.RequestError, match=f"This {name} is not fitted yet. Call fit first."):
                use()
        assert str(private.remaining()) == "1"
    assert model._repr_svg_() is None


FRAMES = {
    "dict": lambda table: table,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("with_y", [True, False])
def test_tables_of_all_kinds_give_the_same_tree(kind: str, with_y: bool) -> None:
    make = FRAMES[kind]
    model = dm.DiffPC45(HUGE, 2, "gini", schema=SCHEMA)
    if with_y:
        model.fit(make(X), pd.Series(Y) if kind == "pandas" else pl.Series(Y) if kind == "polars" else Y)
    else:
        model.fit(make(TABLE))
    expected = dm.DiffPC45(HUGE, 2, "gini").fit(X, Y, schema=SCHEMA)
    assert model.trees_ == expected.trees_
    assert model.predict(make(X)).tolist() == expected.predict(TABLE).tolist()
    assert model.score(make(X), Y) == expected.score(X, np.array(Y, dtype=object))


def test_rows_and_labels_belong_together_by_position_not_by_index() -> None:
    order = list(range(200))
    random.Random(3).shuffle(order)
    frame = pd.DataFrame(X, index=order)
    labels = pd.Series(Y, index=list(reversed(order)))
    shuffled = dm.DiffPC45(HUGE, 2, "gini", schema=SCHEMA).fit(frame, labels)
    assert shuffled.trees_ == dm.DiffPC45(HUGE, 2, "gini", schema=SCHEMA).fit(X, Y).trees_
    assert shuffled.predict(frame).tolist() == shuffled.predict(X).tolist()
    assert shuffled.score(frame, labels) == shuffled.score(X, Y)


def test_y_wins_over_a_column_of_that_name() -> None:
    turned = ["c1" if label == "c0" else "c0" for label in Y]
    model = dm.DiffPC45(HUGE, 2, "gini", schema=SCHEMA).fit(TABLE, turned)
    assert model.trees_.trees[0].rows == (Y.count("c1"), Y.count("c0"))


@pytest.mark.parametrize("rows", [199, 201, 0])
def test_labels_of_another_number_than_rows_are_refused(rows: int) -> None:
    with pytest.raises(dm.DpmineError):
        dm.DiffPC45(1, 2, schema=SCHEMA).fit(X, (Y * 2)[:rows])


def as_array() -> np.ndarray:
    names = [a.name for a in NO_LISTS.attributes if a.name != "class"]
    return np.array(list(zip(*(X[name] for name in names), strict=True)), dtype=object)


def test_an_array_has_the_schema_s_columns_in_order() -> None:
    array = as_array()
    model = dm.DiffPC45(HUGE, 2, "gini", schema=NO_LISTS).fit(array, np.array(Y))
    assert model.trees_ == dm.DiffPC45(HUGE, 2, "gini", schema=NO_LISTS).fit(X, Y).trees_
    assert model.predict(array).tolist() == model.predict(X).tolist()
    assert model.n_features_in_ == array.shape[1] == len(model.feature_names_in_)
    assert list(model.feature_names_in_) == [a.name for a in NO_LISTS.attributes if a.name != "class"]
    for wrong in (array[:, :-1], array[:, 0], np.c_[array, array[:, 0]]):
        with pytest.raises(dm.RequestError, match="An array must have one column for each"):
            model.predict(wrong)


def test_an_array_cannot_hold_lists() -> None:
    with pytest.raises(dm.RequestError, match="cannot hold the schema's lists"):
        dm.DiffPC45(1, 2, schema=SCHEMA).fit(as_array(), np.array(Y))


def test_a_table_without_a_column_that_the_tree_reads_is_refused() -> None:
    model = model_of("DiffPC45", HUGE, max_depth=2).fit(X, Y)
    read = model.trees_.trees[0].split.attribute  # type: ignore[union-attr]
    with pytest.raises(dm.DpmineError, match=read):
        model.predict({name: column for name, column in X.items() if name != read})


# -- labels ------------------------------------------------------------------------------------------------------------


def labelled(categories: tuple[str, ...]) -> Schema:
    """The class of the world, with other labels."""
    return Schema(
        "mined", (*SCHEMA.attributes[:-1], Nominal("class", categories, categories[0], missing=categories[0])), 1000, "class"
    )


INTS, TRUTHS, WORDS = ("0", "1"), ("False", "True"), ("no", "yes")
LABELS: dict[str, tuple[tuple[str, str], Any, list[Any]]] = {
    "text": (WORDS, {"c0": "no", "c1": "yes"}, ["no", "yes"]),
    "numbers": (INTS, {"c0": 0, "c1": 1}, [0, 1]),
    "numbers in another order": (("7", "-3"), {"c0": 7, "c1": -3}, [7, -3]),
    "truth": (TRUTHS, {"c0": False, "c1": True}, [False, True]),
    "whole floats": (INTS, {"c0": 0.0, "c1": 1.0}, [0, 1]),
    "truth for numbers": (INTS, {"c0": False, "c1": True}, [0, 1]),
    "numbers for truth": (TRUTHS, {"c0": 0, "c1": 1}, [False, True]),
    "numbers in quotes": (INTS, {"c0": "0", "c1": "1"}, [0, 1]),
    "numbers that are no words": (("07", "3.5"), {"c0": "07", "c1": "3.5"}, ["07", "3.5"]),
}
"""The schema's classes, the labels in y, and the classes as the model tells them."""


@pytest.mark.parametrize("wrapped", [list, np.array, pd.Series, pl.Series])
@pytest.mark.parametrize("kind", LABELS)
def test_predictions_have_the_type_that_the_schema_s_classes_have(kind: str, wrapped: Any) -> None:
    categories, names, classes = LABELS[kind]
    truth = [names[label] for label in Y]
    model = dm.DiffPC45(HUGE, 2, "gini", schema=labelled(categories)).fit(X, wrapped(truth))
    assert model.classes_.tolist() == classes
    assert [type(label) for label in model.classes_.tolist()] == [type(label) for label in classes]
    predicted = model.predict(X)
    assert predicted.dtype == model.classes_.dtype
    assert set(predicted.tolist()) == set(classes)
    right = float(
        np.mean([classes.index(one) == ("c0", "c1").index(other) for one, other in zip(predicted, Y, strict=True)])
    )
    assert model.score(X, wrapped(truth)) == right > 0.6


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], ["0", "1"], [False, True], [np.uint8(0), np.uint8(1)]])
@pytest.mark.parametrize("way", ["fitted on a private table", "loaded"])
def test_a_score_does_not_depend_on_how_a_model_was_made(way: str, labels: Any, tmp_path: Path) -> None:
    schema = labelled(INTS)
    words = [INTS[label == "c1"] for label in Y]
    model = fitted(dm.DiffPC45(HUGE, 2, "gini"), X | {"class": words}, schema)
    if way == "loaded":
        model.save(tmp_path / "model.json")
        model = dm.load(tmp_path / "model.json")  # type: ignore[assignment]
    truth = [labels[label == "c1"] for label in Y]
    assert model.score(X, truth) == model.score(X, words) > 0.6
    assert model.predict(X).dtype.kind == "i"


def test_a_label_that_is_no_class_is_scored_as_other_like_in_fitting() -> None:
    model = fitted(dm.DiffPC45(HUGE, 2), TABLE, SCHEMA)
    other = [label if label == "c1" else odd for label, odd in zip(Y, [None, "new", 0.5, math.nan] * len(Y), strict=False)]
    assert model.score(X, other) == model.score(X, Y)


def test_a_score_without_one_known_label_is_refused() -> None:
    model = fitted(dm.DiffPC45(HUGE, 2), TABLE, SCHEMA)
    with pytest.raises(dm.RequestError, match=r"None of the labels in y is a class of the model: 'c0', 'c1'\. Give y in"):
        model.score(X, [0] * len(Y))
    with pytest.raises(dm.RequestError, match=f"The table has {len(Y)} rows, but y has 3 labels"):
        model.score(X, Y[:3])


@pytest.mark.parametrize("y", ["c0", 1, {"class": Y}, np.array(Y)[:, None], pd.DataFrame({"class": Y}), b"c0"])
def test_a_y_that_is_not_one_column_is_refused_in_fitting_and_in_scoring(y: Any) -> None:
    with pytest.raises(dm.RequestError, match="y must be one column"):
        dm.DiffPC45(1, 2, schema=SCHEMA).fit(X, y)
    with pytest.raises(dm.RequestError, match="y must be one column"):
        fitted(dm.DiffPC45(1, 2), TABLE, SCHEMA).score(X, y)


@pytest.mark.parametrize(
    "labels", [[0, 1], [True, False], [0.5, 1.5], [b"no", b"yes"]], ids=["numbers", "truth", "floats", "bytes"]
)
def test_labels_of_which_none_is_a_class_all_count_as_other(labels: list[Any]) -> None:
    """An error would tell one row of all: where a single label is a class there would be none."""
    model = dm.DiffPC45(HUGE, 2, schema=labelled(WORDS)).fit(X, [labels[label == "c1"] for label in Y])
    assert set(model.predict(X).tolist()) == {"no"}


# -- one row's label ---------------------------------------------------------------------------------------------------

ZEROS = [None, "0", 0.5, 0.0, False, math.nan, "new", np.int8(0), Decimal("0.0"), Decimal("NaN"), pd.NA, 2**70, math.inf]
ONES = ["1", 1.0, True, np.float32(1), np.True_, Decimal(1)]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("own", [0, 1])
def test_one_row_s_label_of_another_type_changes_nothing_in_a_model_file(name: str, own: int) -> None:
    """With noise that is 0 two tables with the same classes give the same file, whatever one row's label is written as."""
    trees = {"trees": 1} if name.endswith("Forest") else {}
    model = EVERY[name](epsilon=HUGE, max_depth=1, schema=labelled(INTS), **trees)
    truth: list[Any] = [int(label == "c1") for label in Y]
    place = truth.index(own)
    expected = model.fit(X, truth).to_json()
    assert expected["labels"] == "int"
    for alike in ONES if own else ZEROS:
        y = [*truth[:place], alike, *truth[place + 1 :]]
        model.fit(X, np.array(y, dtype=object) if alike is None else y)
        assert model.to_json() == expected, alike
        assert model.classes_.dtype == np.array([0, 1]).dtype


@pytest.mark.parametrize("classes", [WORDS, INTS, TRUTHS])
@pytest.mark.parametrize("added", [None, "0", 0, 1, 0.5, True, "yes", 2**70])
def test_one_row_more_changes_neither_the_kind_nor_the_type_of_the_labels(classes: tuple[str, str], added: Any) -> None:
    words: list[Any] = [classes[label == "c1"] for label in Y]
    more = {name: [*column, column[0]] for name, column in X.items()}
    model = dm.TreeClassifier(1, schema=labelled(classes))
    without, with_it = (model.fit(*table).to_json()["labels"] for table in ((X, words), (more, [*words, added])))
    assert without == with_it
    assert model.classes_.dtype == model.fit(X, words).classes_.dtype


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("name", EVERY)
def test_probabilities_add_up_and_the_likeliest_class_is_predicted(name: str, classes: int) -> None:
    schema = schema_of(classes=classes)
    table = table_of(schema, 300, 2)
    model = fitted(EVERY[name](epsilon=20), table, schema)
    shares = model.predict_proba(table)
    assert shares.shape == (300, classes)
    assert np.allclose(shares.sum(axis=1), 1)
    assert model.predict(table).tolist() == model.classes_[shares.argmax(axis=1)].tolist()
    weights = np.arange(300)
    right = model.predict(table) == np.array(table["class"], dtype=object)
    assert model.score(table, table["class"], sample_weight=weights) == pytest.approx(np.average(right, weights=weights))


# -- next to the rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("name", EVERY)
def test_an_engine_predicts_what_the_model_predicts(name: str, engine: str, tmp_path: Path) -> None:
    """A confusion matrix made next to the rows, without noise, is the one made here; forests and their constant too."""
    if engine == "duckdb":
        pd.DataFrame(TABLE).to_parquet(tmp_path / "rows.parquet")
    table = TABLE if engine == "memory" else tmp_path / "rows.parquet"
    model = fitted(EVERY[name](epsilon=3), TABLE, SCHEMA)
    assert name != "RandomForest" or len(model.trees_.trees) == 4  # three, and the constant
    here = pd.crosstab(pd.Series(model.predict(X)), pd.Series(Y)).reindex(
        index=SCHEMA.class_labels, columns=SCHEMA.class_labels, fill_value=0
    )
    with opened(table, SCHEMA, HUGE, engine=engine) as private:
        there = private.crosstab(model.predicted(), "class", epsilon=1000)
    assert there.counts.tolist() == here.to_numpy().tolist()


@pytest.mark.parametrize("name", EVERY)
def test_a_tree_learned_through_duckdb_is_the_tree_learned_in_memory(name: str, tmp_path: Path) -> None:
    if name in ("GreedyForest", "RandomForest"):
        return  # which part a row falls into depends on the ledger's own key
    pd.DataFrame(TABLE).to_parquet(tmp_path / "rows.parquet")
    params: dict[str, Any] = {"criterion": "gini"} if name != "SulqID3" else {}
    with opened(tmp_path / "rows.parquet", SCHEMA, HUGE, engine="duckdb") as private:
        there = EVERY[name](epsilon=HUGE, max_depth=1, **params).fit(private)
    here = fitted(EVERY[name](epsilon=HUGE, max_depth=1, **params), TABLE, SCHEMA)
    assert there.trees_.trees[0].rows == here.trees_.trees[0].rows
    assert there.score(X, Y) == here.score(X, Y)


@pytest.mark.parametrize("name", EVERY)
def test_every_estimator_works_across_a_wire_of_json(name: str) -> None:
    with opened(TABLE, SCHEMA, 10) as private:
        far = across_the_wire(private)
        model = EVERY[name](epsilon=5).fit(far)
        assert model.charged_ <= model.cost_ <= model.budget
        evaluation = model.evaluate(far, epsilon=5)
        assert evaluation.confusion.shape == (2, 2)
        assert private.remaining() == far.remaining()
    assert model.schema_ == SCHEMA
    assert set(model.predict(X)) <= {"c0", "c1"}


def test_a_selection_works_across_a_wire_of_json() -> None:
    with opened(TABLE, SCHEMA, 3) as private:
        chosen = dm.select_model(across_the_wire(private), [dm.TreeClassifier(), dm.RandomForest(trees=2)], epsilon=3)
        assert str(private.remaining()) == "0"
    assert chosen.best is chosen.candidates[chosen.index]


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_a_saved_model_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    model = model_of(name).fit(X, Y)
    model.save(tmp_path / "model.json")
    again = dm.load(tmp_path / "model.json")
    assert type(again) is type(model)
    assert again.to_json() == model.to_json()
    assert (again.trees_, again.schema_, again.cost_) == (model.trees_, model.schema_, model.cost_)
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.to_text() == model.to_text()
    assert again.predicted() == model.predicted()
    kept = model.get_params() | {"schema": None, "epsilon": "5"}
    assert again.get_params() == kept
    assert again.set_params(schema=SCHEMA).fit(X, Y).cost_ <= again.budget


@pytest.mark.parametrize("kind", LABELS)
def test_a_saved_model_keeps_the_type_of_its_labels(kind: str, tmp_path: Path) -> None:
    categories, names, _ = LABELS[kind]
    model = dm.TreeClassifier(5, schema=labelled(categories)).fit(X, [names[label] for label in Y])
    model.save(tmp_path / "model.json")
    assert dm.load(tmp_path / "model.json").predict(X).tolist() == model.predict(X).tolist()
    assert dm.load(tmp_path / "model.json").classes_.dtype == model.classes_.dtype


def test_numbers_of_numpy_as_parameters_can_be_used_and_saved(tmp_path: Path) -> None:
    """Searches over parameters hand over numpy's numbers."""
    model = dm.RandomForest(np.float64(2.0), trees=2, max_depth=2, seed=np.int64(3), schema=SCHEMA).fit(X, Y)  # type: ignore[arg-type]
    model.save(tmp_path / "model.json")
    assert dm.load(tmp_path / "model.json").predict(X).tolist() == model.predict(X).tolist()


def test_a_forest_of_the_most_trees_can_be_judged_and_saved(tmp_path: Path) -> None:
    """The constant vote is one tree more than those that were asked for."""
    model = dm.RandomForest(5, trees=999, max_depth=1, seed=1, schema=SCHEMA).fit(X, Y)
    model.save(tmp_path / "model.json")
    assert dm.load(tmp_path / "model.json").predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a saved model"),
        (b"\xff\xfe\x00", "not a saved model"),
        (b"{}", "not a saved model"),
        (b"[1, 2]", "not a saved model"),
        (b'{"format": "dpmine model", "version": 99}', "was saved in format 99"),
        (b'{"format": "dpmine model", "version": 2, "algorithm": "Oracle"}', "unknown algorithm"),
        (b'{"format": "dpmine model", "version": 2, "algorithm": ["DiffPID3"]}', "algorithm"),
        (b'{"format": "dpmine model", "version": 2, "algorithm": "DiffPID3"}', "not a complete model"),
        (b"[" * 100_000, "not a saved model"),
    ],
)
def test_a_file_that_is_no_model_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(dm.RequestError, match=words):
        dm.load(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(dm.RequestError, match="There is no file"):
        dm.load(tmp_path / "model.json")
    with pytest.raises(dm.RequestError, match="not a saved model"):
        dm.load(tmp_path)


FORM = fitted(dm.TreeClassifier(5, 2, stopping=0), TABLE, SCHEMA).to_json()
FOREST = fitted(dm.RandomForest(5, 2, 1, seed=1), TABLE, SCHEMA).to_json()


def places(form: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(form, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


PLACES = [(form, path) for form in (FORM, FOREST) for path in places(form)]
WRONG = [None, -1, 0, 2**70, 1.5, "", "x", [], {}, True, [[]], "1e400", float("nan"), "drop it"]


@settings(max_examples=400)
@given(st.sampled_from(PLACES), st.sampled_from(WRONG))
def test_a_damaged_model_is_refused_or_works(place: tuple[Any, tuple[Any, ...]], wrong: Any) -> None:
    form, path = json.loads(json.dumps(place[0])), place[1]
    at = form
    for key in path[:-1]:
        at = at[key]
    if wrong == "drop it":
        del at[path[-1]]
    else:
        at[path[-1]] = wrong
    load_text(json.dumps(form))


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.text('0123456789{}[],":ab-', min_size=1, max_size=5))
def test_a_model_file_with_damaged_letters_is_refused_or_works(place: int, letters: str) -> None:
    text = json.dumps(FORM)
    place %= len(text)
    load_text(text[:place] + letters + text[place + len(letters) :])


def load_text(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        path.write_text(text, encoding="utf-8")
        try:
            model = dm.load(path)
        except dm.DpmineError:
            return
    try:
        shares = model.predict_proba({**X, "class": Y})
        assert np.isfinite(shares).all()
        model.predicted()
        model.to_text()
        model.to_svg()
    except dm.DpmineError:
        pass


# -- drawn -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_every_model_can_be_drawn(name: str) -> None:
    model = model_of(name).fit(X, Y)
    assert model.to_text().strip()
    last = len(model.trees_.trees) - 1
    for tree in (0, last):
        assert model.to_svg(tree=tree, title="T", max_depth=1).startswith("<svg")
    for wrong in (-1, last + 1):
        with pytest.raises(dm.RequestError, match=f"This model has {last + 1} trees; there is no tree {wrong}"):
            model.to_svg(tree=wrong)
    # As deep as a notebook can show it, whatever the noise made of it.
    assert model._repr_svg_() in ([None] if last else [model.to_svg(max_depth=depth) for depth in range(21)])


def test_a_fit_asks_all_nodes_of_a_level_at_once() -> None:
    """The price of a level does not grow with its nodes, nor does the number of queries."""
    with recorded(TABLE, SCHEMA, HUGE) as (private, recorder):
        dm.DiffPID3(HUGE, 2).fit(private)
    counts = [query for query in recorder.queries if not hasattr(query.question, "candidates")]
    assert len(recorder.choices) == 2
    assert len(counts) <= 3 + 3  # of rows and of classes, once a level each
    with recorded(TABLE, SCHEMA, 1) as (private, recorder):
        dm.GreedyForest(1, trees=5, max_depth=3).fit(private)
    assert len(recorder.queries) == 3 + 1


def test_a_key_made_of_a_model_can_be_used_like_any_other() -> None:
    model = fitted(dm.TreeClassifier(5), TABLE, SCHEMA)
    with opened(TABLE, SCHEMA, 10_000) as private:
        by_flag = private.histogram(model.predicted(), AttributeKey("flag"), epsilon=1000)
        parts = {label: int(part.count(epsilon=1000)) for label, part in private.partition(model.predicted()).items()}
    predicted = model.predict(X)
    assert by_flag.counts.sum(axis=1).tolist() == list(parts.values())
    assert parts == {label: int((predicted == label).sum()) for label in SCHEMA.class_labels}
