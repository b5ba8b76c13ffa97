"""scikit-learn's tools work on our estimators, without dpmine importing it; and cross-validation is told what it costs."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.estimators import EVERY
from support.mined_tables import schema_of, table_of, without_class
from support.opening import opened

import dpmine as dm
from dpmine.mining import estimators

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone, is_classifier  # noqa: E402
from sklearn.metrics import accuracy_score  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score  # noqa: E402
from sklearn.pipeline import Pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402

SCHEMA = schema_of()
TABLE = table_of(SCHEMA, 200, 1, clear=0.9)
X, Y = pd.DataFrame(without_class(TABLE)), np.array(TABLE["class"])


@pytest.fixture(autouse=True)
def _warned_before() -> Iterator[None]:
    """The warning comes once a process; only the tests about it see it."""
    before = estimators._warned_of_folds
    estimators._warned_of_folds = True
    yield
    estimators._warned_of_folds = before


@pytest.mark.parametrize("name", EVERY)
def test_a_clone_is_an_unfitted_copy(name: str) -> None:
    model = EVERY[name](epsilon=2, schema=SCHEMA).fit(X, Y)
    copy = clone(model)
    assert type(copy) is type(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "trees_")
    assert is_classifier(copy)
    assert copy.__sklearn_tags__().estimator_type == "classifier"
    assert copy.__sklearn_tags__().target_tags.required


@pytest.mark.parametrize("name", EVERY)
def test_cross_validation_works_with_frames_arrays_and_labels_of_all_types(name: str) -> None:
    model = EVERY[name](epsilon=50, schema=SCHEMA)
    scores = cross_val_score(model, X, Y, cv=3)
    assert scores.shape == (3,)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert set(cross_val_predict(model, X.to_numpy(dtype=object), Y, cv=3)) <= {"c0", "c1"}


def test_cross_validation_by_auc_and_with_numbers_as_labels() -> None:
    attributes = (*SCHEMA.attributes[:-1], dm.Nominal("class", ("0", "1"), "0", missing="0"))
    schema = dm.Schema("mined", attributes, 1000, "class")
    model = dm.TreeClassifier(100, schema=schema)
    scores = cross_val_score(model, X, (Y == "c1").astype(int), cv=3, scoring="roc_auc")
    assert scores.mean() > 0.5
    assert cross_val_predict(model, X, (Y == "c1").astype(int), cv=3, method="predict_proba").shape == (200, 2)


def test_a_search_over_parameters_finds_the_better_budget() -> None:
    """At epsilon 1e-3 a tree of 133 rows is noise; at 1000 it is right about some 85 % of them."""
    search = GridSearchCV(dm.TreeClassifier(schema=SCHEMA), {"epsilon": ["0.001", "1000"], "max_depth": [3]}, cv=3)
    search.fit(X, Y)
    assert search.best_params_ == {"epsilon": "1000", "max_depth": 3}
    assert search.best_estimator_.predict(X).shape == (200,)
    assert search.score(X, Y) == accuracy_score(Y, search.predict(X)) > 0.7


def test_a_search_may_use_numpy_s_numbers() -> None:
    grid = {"max_depth": np.arange(1, 3), "epsilon": np.array([10.0, 20.0])}
    search = GridSearchCV(dm.TreeClassifier(schema=SCHEMA), grid, cv=2, error_score="raise")
    assert search.fit(X, Y).best_params_["max_depth"] in (1, 2)


def test_a_pipeline_fits_predicts_and_takes_nested_parameters() -> None:
    def floored(frame: Any) -> Any:
        return frame.assign(size=np.floor(frame["size"]))

    pipeline = Pipeline([("floor", FunctionTransformer(floored)), ("tree", dm.TreeClassifier(1000, schema=SCHEMA))])
    pipeline.set_params(tree__max_depth=2)
    assert pipeline.get_params()["tree__max_depth"] == 2
    pipeline.fit(X, Y)
    assert pipeline.score(X, Y) > 0.6
    assert pipeline.predict_proba(X).shape == (200, 2)
    assert list(pipeline.classes_) == ["c0", "c1"]
    assert cross_val_score(pipeline, X, Y, cv=2).shape == (2,)


# -- what it costs -----------------------------------------------------------------------------------------------------


def test_copies_that_are_fitted_on_rows_in_hand_are_told_once_what_that_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimators, "_warned_of_folds", False)
    with pytest.warns(UserWarning, match="spends epsilon once for every copy") as caught:
        cross_val_score(dm.TreeClassifier(10, schema=SCHEMA), X, Y, cv=3)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_val_score(dm.TreeClassifier(10, schema=SCHEMA), X, Y, cv=3)


def test_a_model_that_is_no_copy_and_a_copy_on_a_private_table_are_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimators, "_warned_of_folds", False)
    model = dm.TreeClassifier(10, schema=SCHEMA).fit(X, Y)
    with opened(TABLE, SCHEMA, 10) as private:
        clone(model).fit(private)
    assert estimators._warned_of_folds is False


def test_dpmine_does_not_import_scikit_learn() -> None:
    code = (
        "import sys, dpmine as dm; from dpmine.datasets import slide_records, patients_schema;"
        "dm.TreeClassifier(schema=patients_schema(extended=False)).fit(slide_records());"
        "assert not any(name.split('.')[0] in ('sklearn', 'pandas', 'matplotlib', 'scipy') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
