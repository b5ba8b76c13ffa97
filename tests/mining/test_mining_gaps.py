"""Trees and forests over gaps, uneven grids and values finer than codes: what they find, who counts, what they predict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.choices import choosing, first_best
from support.gappy_tables import GAPS, gappy_schema, gappy_table
from support.opening import HUGE, fitted, opened

import dpmine as dm
from dpmine.base.errors import RequestError
from dpmine.base.json_values import to_json
from dpmine.facts.schema import Schema
from dpmine.language.candidates import number_of_candidates, one_versus_rest, split_key
from dpmine.language.keys import LAST, AttributeKey, Bins
from dpmine.language.splits import Divide, Subsets, Thresholds
from dpmine.mining.trees.candidates import discretised, nominal_keys
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.growing import Growth
from dpmine.models.trees import Node, encode_rows, labels_of, rows_with_class
from dpmine.report.words import condition

EVERY_MODEL: list[TreeEstimator] = [
    dm.TreeClassifier(HUGE, max_depth=3),
    dm.TreeClassifier(HUGE, max_depth=3, splits="multiway"),
    dm.DiffPC45(HUGE, max_depth=2),
    dm.DiffPID3(HUGE, max_depth=2, bins=4),
    dm.SulqID3(HUGE, max_depth=2, bins=4),
    dm.GreedyForest(HUGE, trees=3, max_depth=3),
    dm.RandomForest(HUGE, trees=4, max_depth=4, seed=1),
]
every_model = pytest.mark.parametrize("model", EVERY_MODEL, ids=repr)
every_gap = pytest.mark.parametrize("gap", GAPS)
TABLE = gappy_table(600, 1)


def coded(schema: Schema, table: Any = TABLE) -> tuple[dict[str, Any], int]:
    return encode_rows(table, schema, [attribute.name for attribute in schema.attributes])


def leaf_counts(node: Node, rows: dict[str, Any], places: Any, schema: Schema) -> Any:
    """The true class counts in each leaf, from left to right."""
    if node.split is None:
        yield np.bincount(rows["class"][places], minlength=len(schema.class_labels)).tolist()
        return
    labels = labels_of(node.split, {name: column[places] for name, column in rows.items()}, schema)
    assert labels.max(initial=0) < len(node.children)
    for number, child in enumerate(node.children):
        yield from leaf_counts(child, rows, places[labels == number], schema)


@pytest.mark.parametrize("telling", ["size", "income", "dose", "kind", "colour"])
def test_a_gap_that_tells_the_class_is_found_where_gaps_are_their_own(telling: str) -> None:
    schema = gappy_schema("own")
    model = fitted(dm.TreeClassifier(HUGE, max_depth=2, splits="binary"), gappy_table(600, 2, telling=telling), schema)
    (root,) = model.trees_.trees
    assert root.split is not None
    assert root.split.attribute == telling
    words = [condition(root.split, number, schema) for number in (0, 1)]
    assert sorted(words) == [f"{telling} has a value", f"{telling} is missing"]


@pytest.mark.parametrize("telling", ["size", "income", "kind"])
def test_no_split_tells_dropped_gaps_from_values(telling: str) -> None:
    schema = gappy_schema("drop")
    for model in EVERY_MODEL:
        found = fitted(model, gappy_table(600, 2, telling=telling), schema)
        for node in (node for tree in found.trees_.trees for node in tree.nodes() if node.split is not None):
            attribute = schema.single(node.split.attribute)
            codes = np.arange(attribute.size)
            labels = labels_of(node.split, {attribute.name: codes}, schema)
            if attribute.missing_code is not None:
                assert labels[attribute.missing_code] in labels[: attribute.missing_code]


@every_gap
@every_model
def test_children_cover_their_parent_and_rows_without_a_class_teach_nothing(model: Any, gap: str) -> None:
    """At a huge epsilon the leaves of a tree that kept its counts hold every row with a class once, and no other."""
    schema = gappy_schema(gap)
    found = fitted(model, TABLE, schema)
    rows, _ = coded(schema)
    taught = np.flatnonzero(rows_with_class(rows["class"], schema))
    assert 0 < len(taught) < len(TABLE["class"])
    for tree in found.trees_.trees:
        counts = list(leaf_counts(tree, rows, taught, schema))
        assert np.sum(counts) == len(taught)
        if len(found.trees_.trees) == 1 and not isinstance(model, dm.DiffPC45):  # pruning smooths counts
            assert counts == [list(leaf.rows) for leaf in tree.leaves()]


@every_gap
@every_model
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_predictions_on_public_rows_are_those_next_to_the_rows(model: Any, gap: str, engine: Any, tmp_path: Path) -> None:
    schema = gappy_schema(gap)
    found = fitted(model, TABLE, schema)
    judged, target = gappy_table(300, 3), schema.target
    predicted = found.predict(judged).tolist()
    pd.DataFrame(judged).to_parquet(tmp_path / "judged.parquet")
    with opened(str(tmp_path / "judged.parquet"), schema, HUGE, engine=engine) as private:
        counted = private.histogram(found.predicted(), epsilon=HUGE / 4).counts.tolist()
        assert counted == [predicted.count(label) for label in schema.class_labels]
        matrix = found.evaluate(private, epsilon=HUGE / 4).confusion
    pairs = list(zip(predicted, judged["class"], strict=True))
    assert matrix.tolist() == [[pairs.count((p, t)) for t in target.categories] for p in target.categories]
    right = sum(p == t for p, t in pairs)
    assert found.score(judged, judged["class"]) == pytest.approx(right / sum(t is not None for _, t in pairs))


@every_gap
@every_model
def test_models_are_saved_and_loaded_with_gaps_and_uneven_grids(model: Any, gap: str, tmp_path: Path) -> None:
    found = fitted(model, TABLE, gappy_schema(gap))
    found.save(tmp_path / "model.json")
    loaded = dm.load(tmp_path / "model.json")
    assert isinstance(loaded, TreeEstimator)
    assert (loaded.trees_, loaded.schema_) == (found.trees_, found.schema_)
    rows = {name: column[:50] for name, column in TABLE.items()}
    assert np.array_equal(loaded.predict_proba(rows), found.predict_proba(rows))
    assert loaded.to_text() == found.to_text()


def test_models_whose_cuts_lie_between_cells_are_refused(tmp_path: Path) -> None:
    schema = gappy_schema("own")
    model = fitted(dm.TreeClassifier(HUGE, max_depth=1), TABLE, schema)
    form = model.to_json()
    form["trees"]["trees"][0]["split"] = to_json(Bins("size", ("7.3",), LAST))
    (tmp_path / "model.json").write_text(json.dumps(form))
    with pytest.raises(RequestError, match="cells of a grid"):
        dm.load(tmp_path / "model.json")


def test_arrays_and_frames_have_gaps_as_they_have_them() -> None:
    schema = gappy_schema("own")
    model = fitted(EVERY_MODEL[0], TABLE, schema)
    plain = model.predict(TABLE).tolist()
    assert model.predict(pd.DataFrame(TABLE)).tolist() == plain
    features = [a.name for a in schema.attributes if a.name != "class"]
    assert model.predict(np.array([TABLE[name] for name in features], dtype=object).T).tolist() == plain


# -- candidates --------------------------------------------------------------------------------------------------------


def test_candidates_of_numbers_send_gaps_to_the_right() -> None:
    for gap, more in (("own", 1), ("drop", 0)):
        schema = gappy_schema(gap)
        for name in ("size", "income", "dose"):
            attribute, family = schema.single(name), Thresholds(name)
            assert number_of_candidates(family, schema) == attribute.cells - 1 + more
            codes = {name: np.arange(attribute.size)}
            for index in range(number_of_candidates(family, schema)):
                expected = (codes[name] > index).astype(int).tolist()
                assert labels_of(split_key(family, schema, index), codes, schema).tolist() == expected
            assert split_key(family, schema, attribute.cells - 2) == Bins(
                name, (attribute.label(attribute.cells - 1),), LAST
            )


def test_dropped_gaps_are_no_candidate_however_one_asks() -> None:
    schema = gappy_schema("drop")
    last = schema.single("size").label(20)
    assert Thresholds("size", high="(missing)").codes(schema) == Thresholds("size").codes(schema)
    assert Divide("size", "0", "(missing)").codes(schema) == Divide("size", "0", last).codes(schema)
    with pytest.raises(RequestError, match="at least two grid points"):
        Divide("size", last, "(missing)").codes(schema)
    with opened(TABLE, schema) as private:
        for subset in (("(missing)",), ("a", "b", "c")):
            with pytest.raises(RequestError, match=r"tells them from|both sides"):
                private.choose([Subsets("kind", (subset,))], epsilon="0.1", score="gini")
    assert one_versus_rest(schema, "colour").subsets == (
        *((name,) for name in ("red", "blue", "yellow", "green")),
        *(("red", "yellow"), ("blue", "green")),
    )
    assert one_versus_rest(gappy_schema("own"), "colour").subsets[-1] == ("(missing)",)


def test_an_interval_that_is_divided_holds_dropped_gaps_on_its_right() -> None:
    """The score of a division of the last interval counts rows without a number, as the tree will send them."""
    schema = gappy_schema("drop")
    table = {name: column[:40] for name, column in TABLE.items()}
    table["size"] = [None] * 20 + [6.0] * 10 + [9.0] * 10
    table["class"] = ["yes"] * 20 + ["no"] * 10 + ["yes"] * 10
    with opened(table, schema, HUGE) as private:
        chosen: Any = private.choose([Divide("size", "5", "10")], epsilon=HUGE, score="max")
    assert chosen.key.written(schema)[0] in ("6.5", "7", "7.5", "8", "8.5", "9")


def test_multiway_splits_have_a_child_for_gaps_of_their_own_alone() -> None:
    own, drop = gappy_schema("own"), gappy_schema("drop")
    names = ["colour", "kind", "flag", "constant"]
    assert nominal_keys(own) == tuple(AttributeKey(name) for name in names)
    assert [key.title for key in nominal_keys(drop)] == ["colour", "kind", "flag"]  # one category alone tells nothing
    assert [len(key.labels(own)) for key in nominal_keys(own)] == [5, 4, 2, 2]
    assert [len(key.labels(drop)) for key in nominal_keys(drop)] == [4, 3, 2]
    assert [key.hidden(drop) for key in nominal_keys(drop)] == [None] * 3
    for schema, more in ((own, 1), (drop, 0)):
        for key in discretised(schema, 3):
            attribute = schema.single(key.title)
            labels = labels_of(key, {key.title: np.arange(attribute.size)}, schema)
            sizes = np.bincount(labels).tolist()
            assert len(sizes) == 3 + more
            assert labels[-1] == len(sizes) - 1
            assert np.ptp([sizes[0], sizes[1], sizes[2] - (1 - more)]) <= 1


def test_a_node_that_only_the_last_number_and_dropped_gaps_reach_has_no_split_points() -> None:
    for gap, points in (("own", 1), ("drop", 0)):
        schema = gappy_schema(gap)
        with opened(TABLE, schema) as private:
            root = Growth(private, ()).root
        root.split_by(Bins("size", ("10",), LAST), schema)
        family = root.children[1].thresholds("size", schema)
        assert (0 if family is None else number_of_candidates(family, schema)) == points


# -- the class ---------------------------------------------------------------------------------------------------------


@every_gap
def test_choices_by_the_class_are_about_rows_that_have_one(gap: str) -> None:
    """Rows without a class, all of them of kind c, would else make kind the best split."""
    schema = gappy_schema(gap)
    rows = 90
    table = {name: column[:rows] for name, column in TABLE.items()}
    table["kind"] = ["c"] * 60 + ["a", "b"] * 15
    table["flag"] = ["no", "yes"] * 30 + ["no"] * 15 + ["yes"] * 15
    table["class"] = [None] * 60 + ["no"] * 15 + ["yes"] * 15
    with opened(table, schema, HUGE) as private:
        chosen: Any = private.choose(["kind", "flag"], epsilon=HUGE / 8, score="gini")
        assert chosen.key.title == "flag"
        counted: Any = private.cells("flag").choose([["kind", "size"]], epsilon=HUGE / 8, score="max")
        assert len(counted) == 2
        good = fitted(dm.TreeClassifier(HUGE, max_depth=1), table, schema)
        bad = fitted(dm.TreeClassifier(HUGE, max_depth=1), table | {"class": ["no"] * rows}, schema)
        assert private.choose_model([bad.predicted(), good.predicted()], epsilon=HUGE / 8).index == 1


@every_gap
def test_a_model_is_the_same_with_and_without_rows_that_have_no_class(gap: str) -> None:
    schema = gappy_schema(gap)
    kept = [place for place, label in enumerate(TABLE["class"]) if label is not None]
    fewer = {name: [column[place] for place in kept] for name, column in TABLE.items()}
    with choosing(first_best):
        for model in EVERY_MODEL:
            if not isinstance(model, dm.GreedyForest | dm.RandomForest):  # every ledger splits rows in its own way
                assert fitted(model, TABLE, schema).trees_ == fitted(model, fewer, schema).trees_


def test_models_are_selected_by_rows_that_have_a_class() -> None:
    schema = gappy_schema("own")
    with opened(TABLE, schema, HUGE) as private:
        chosen = dm.select_model(private, [dm.TreeClassifier(max_depth=1), dm.TreeClassifier(max_depth=3)], epsilon=HUGE)
        assert chosen.charged == chosen.cost


def test_labels_that_are_no_class_are_left_out_of_the_score() -> None:
    schema = gappy_schema("own")
    model = fitted(EVERY_MODEL[0], TABLE, schema)
    rows = {name: column[:4] for name, column in TABLE.items()}
    said = model.predict(rows).tolist()
    other = {"no": "yes", "yes": "no"}
    assert model.score(rows, [said[0], said[1], other[said[2]], None]) == pytest.approx(2 / 3)
    assert model.score(rows, [said[0], "maybe", None, float("nan")]) == 1
    assert model.score(rows, [said[0], other[said[1]], None, None], [3, 1, 5, 5]) == 0.75
    with pytest.raises(RequestError, match="None of the labels"):
        model.score(rows, ["maybe", None, None, None])
