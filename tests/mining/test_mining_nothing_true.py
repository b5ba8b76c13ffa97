"""A fitted model holds public facts and noisy numbers: no table, no engine, no number of rows, whatever is looked at."""

from __future__ import annotations

import copy
import json
import pickle
import re
from typing import Any

import numpy as np
import pytest
from support.estimators import EVERY
from support.mined_tables import schema_of, table_of, without_class
from support.opening import fitted, opened, recorded
from support.reachable import leaks

import dpmine as dm
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.mining.trees.growing import Growth, Sprout

ROWS = 9973  # a number that nothing else has
SCHEMA = schema_of(lists=True, rows_at_most=100_000)
TABLE = table_of(SCHEMA, ROWS, 1)


@pytest.mark.parametrize("handed", ["private", "rows"])
@pytest.mark.parametrize("name", EVERY)
def test_nothing_of_the_table_can_be_reached_from_a_fitted_model(name: str, handed: str) -> None:
    """At epsilon 0.5 a noisy total equals the true number of rows by chance only (1 in 16 or less), so five retries."""
    for _ in range(6):
        model = EVERY[name](epsilon="0.5", schema=SCHEMA if handed == "rows" else None)
        if handed == "private":
            fitted(model, TABLE, SCHEMA)
        else:
            model.fit(without_class(TABLE), TABLE["class"])
        found = leaks(model, ROWS, Growth, Sprout)
        if not found:
            break
    assert found == []
    assert set(vars(model)) - set(model.get_params()) == {
        *("trees_", "schema_", "classes_", "cost_", "charged_", "_label_kind", "feature_names_in_", "n_features_in_"),
    }


def test_the_walk_finds_what_is_hidden() -> None:
    model = fitted(dm.TreeClassifier(epsilon="0.5"), TABLE, SCHEMA)
    with opened(TABLE, SCHEMA) as private:
        for hidden in (private, private._executor, np.zeros(ROWS), {"deep": [{"count": ROWS}]}, lambda: private):
            model.hidden_ = hidden  # type: ignore[attr-defined]
            assert leaks(model, ROWS, Growth, Sprout)
    del model.hidden_  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", EVERY)
def test_json_and_pickle_hold_the_model_and_nothing_else(name: str) -> None:
    model = fitted(EVERY[name](epsilon="0.5"), TABLE, SCHEMA)
    form = model.to_json()
    assert set(form) == {"format", "version", "algorithm", "params", "cost", "labels", "schema", "trees"}
    assert json.loads(json.dumps(form)) == form
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 (our own)
    assert again.to_json() == form
    assert copy.deepcopy(model).to_json() == form
    text = json.dumps(form | {"trees": None})  # noisy counts may equal any number
    assert not re.search(rf"\b{ROWS}\b", text)
    assert len(pickle.dumps(model)) < ROWS * len(TABLE) / 2 + 5 * len(json.dumps(form))


@pytest.mark.parametrize("name", EVERY)
def test_neighbouring_tables_can_give_the_same_model(name: str) -> None:
    """Whatever one table answers, its neighbour could have answered too.

    Leaf counts have epsilon 1.5, at which an answer of one table has at least e^-1.5 of its chance at the other. What 100
    models of one table have been is a quarter or more of what the other draws (measured; seldom less, and then by little),
    so that none of 100 in common has a chance far below 1e-6. With 60 models each it was 1e-5.
    """
    attributes = (Nominal("flag", ("no", "yes"), "no", missing="no"), Nominal("class", ("no", "yes"), "no", missing="no"))
    schema = Schema("small", attributes, 10, "class")
    make = {
        "TreeClassifier": lambda: dm.TreeClassifier(2, 1, leaf_share=0.75, stopping=0),
        "GreedyForest": lambda: dm.GreedyForest("7.5", 1, 1),
        "RandomForest": lambda: dm.RandomForest("1.5", 1, 1, 0.0, seed=1),
    }.get(name, lambda: EVERY[name](epsilon=6, max_depth=1))

    def models(table: Any) -> set[str]:
        return {json.dumps(fitted(make(), table, schema).to_json()["trees"]) for _ in range(100)}

    assert models({"flag": ["no", "yes"], "class": ["no", "yes"]}) & models({"flag": ["no"], "class": ["no"]})


@pytest.mark.parametrize("name", EVERY)
def test_an_empty_table_gives_a_model(name: str) -> None:
    schema = schema_of(lists=True)
    empty: dict[str, list[Any]] = {attribute.name: [] for attribute in schema.attributes}
    model = fitted(EVERY[name](epsilon=1), empty, schema)
    assert json.loads(json.dumps(model.to_json()))["algorithm"] == name
    assert model.predict(empty).shape == (0,)
    assert len(model.predict(table_of(schema, 7, 1))) == 7
    assert isinstance(model.to_text(), str)
    assert model.to_svg().startswith("<svg")


@pytest.mark.parametrize("name", EVERY)
def test_a_fitted_model_shows_only_what_was_answered(name: str) -> None:
    """All numbers in the trees of an unpruned model without post-processing come from the answers."""
    with recorded(TABLE, SCHEMA, 1) as (private, recorder):
        model = EVERY[name](epsilon=1).fit(private)
    assert model.charged_.units == sum(reply.cost.units for _, reply in recorder.asked)
    if name in ("DiffPID3", "SulqID3"):
        answered = {number for _, reply in recorder.asked for numbers in reply.answer.numbers for number in numbers or ()}
        assert all(set(leaf.rows) <= answered for leaf in model.trees_.trees[0].leaves())
