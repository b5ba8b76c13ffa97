"""Golden entries: every estimator and every release, with each parameter away from its default at least once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from golden_table import FOUR_CLASSES, GAPS, PERSONS, PUBLIC_ROWS, SCHEMA, TABLE
from golden_world import World, entry

import dpmine as dm
from dpmine.facts.schema import Schema
from dpmine.mining.model_estimator import ModelEstimator
from dpmine.release.estimator import ReleaseEstimator

Make = Callable[[], Any]
SEED = 11
HEADS = 6  # rows of a release that are recorded


def model_form(model: ModelEstimator[Any]) -> Any:
    """A fitted model as it is saved, without the schema (which is the table's own, and is checked to be)."""
    form = model.to_json()
    assert form.pop("schema") == model.schema_.to_toml()
    return json.loads(json.dumps(form)) | {"charged": str(model.charged_)}


def predictions(model: ModelEstimator[Any]) -> Any:
    return {name: list(column) for name, column in model.predictions(PUBLIC_ROWS).columns.items()}


def fitted(world: World, made: Any, private: dm.PrivateTable) -> Any:
    world.fitted.append(made)
    return made.fit(private, progress=False)


def spent(private: dm.PrivateTable, before: dm.Epsilon) -> str:
    return str(dm.Epsilon(before.units - private.remaining().units))


# -- trees and forests -------------------------------------------------------------------------------------------------

TREES: dict[str, tuple[Make, Schema]] = {
    "TreeClassifier": (lambda: dm.TreeClassifier(epsilon=2), SCHEMA),
    "TreeClassifier as published": (
        lambda: dm.TreeClassifier(2, 2, "max", 0.3, 1.0, 0, "multiway", "generic", False, 0.0, 0),
        SCHEMA,
    ),
    "TreeClassifier with inner counts": (
        lambda: dm.TreeClassifier(
            3, 3, "gini", leaf_share=0.4, inner_share=0.5, splits="binary", smoothing=0.5, leftover=False
        ),
        SCHEMA,
    ),
    "TreeClassifier by information gain": (lambda: dm.TreeClassifier(2, 3, "infogain"), SCHEMA),
    "TreeClassifier of four classes": (lambda: dm.TreeClassifier(epsilon=2, max_depth=3), FOUR_CLASSES),
    "TreeClassifier of rows with gaps": (lambda: dm.TreeClassifier(epsilon=4, max_depth=3), GAPS),
    "TreeClassifier of persons": (lambda: dm.TreeClassifier(epsilon=4, max_depth=3), PERSONS),
    "SulqID3": (lambda: dm.SulqID3(epsilon=5, max_depth=2), SCHEMA),
    "SulqID3 with few bins": (lambda: dm.SulqID3(epsilon=20, max_depth=2, bins=3), SCHEMA),
    "DiffPID3": (lambda: dm.DiffPID3(epsilon=5, max_depth=2), SCHEMA),
    "DiffPID3 by gini": (lambda: dm.DiffPID3(epsilon=5, max_depth=3, criterion="gini", bins=3), SCHEMA),
    "DiffPID3 by infogain": (lambda: dm.DiffPID3(epsilon=5, max_depth=2, criterion="infogain", bins=4), SCHEMA),
    "DiffPC45": (lambda: dm.DiffPC45(epsilon=5, max_depth=3), SCHEMA),
    "DiffPC45 by gini, not pruned": (lambda: dm.DiffPC45(5, 2, "gini", pruning=False), SCHEMA),
    "DiffPC45 by infogain": (lambda: dm.DiffPC45(5, 3, "infogain", confidence=0.4), SCHEMA),
    "GreedyForest": (lambda: dm.GreedyForest(epsilon=4), SCHEMA),
    "GreedyForest of two": (lambda: dm.GreedyForest(epsilon=4, trees=2, max_depth=2, criterion="gini"), SCHEMA),
    "RandomForest": (lambda: dm.RandomForest(epsilon=4, trees=5, max_depth=3, seed=SEED), SCHEMA),
    "RandomForest without a line": (
        lambda: dm.RandomForest(epsilon=4, trees=3, max_depth=2, threshold_share=0, seed=SEED),
        SCHEMA,
    ),
    "RandomForest of four classes": (lambda: dm.RandomForest(epsilon=4, trees=2, max_depth=2, seed=SEED), FOUR_CLASSES),
}


def _tree(make: Make, schema: Schema) -> Callable[[World], Any]:
    def fit_and_judge(world: World) -> Any:
        private = world.private(schema)
        train, test = private.split(test=0.25)
        model = fitted(world, make(), train)
        before = private.remaining()
        evaluation = model.evaluate(test, epsilon=20)
        told = {"plan": model.plan(schema), "model": model_form(model), "text": model.to_text().splitlines()}
        paid = {"evaluation": evaluation, "evaluation charged": spent(private, before)}
        return {**told, "predictions": predictions(model), **paid}

    return fit_and_judge


ALSO_ON_DUCKDB = ("TreeClassifier", "KMeans on a grid", "DiffGen")

for _name, (_make, _schema) in TREES.items():
    entry(f"model/{_name}", duckdb=_name in ALSO_ON_DUCKDB)(_tree(_make, _schema))


@entry("model/fitted to rows in hand")
def _in_hand(world: World) -> Any:
    """The ledger is the fit's own, and the class is a column apart."""
    without = {name: column for name, column in TABLE.items() if name != "diagnosis"}
    model = dm.TreeClassifier(epsilon=1, max_depth=2, schema=SCHEMA).fit(without, TABLE["diagnosis"], progress=False)
    return {"model": model_form(model), "classes": model.classes_, "predicted": model.predict(PUBLIC_ROWS)}


@entry("model/saved and loaded")
def _saved(world: World) -> Any:
    model = fitted(world, dm.TreeClassifier(epsilon=2, max_depth=2), world.private())
    model.save(world.folder / "tree.json")
    loaded = dm.load(world.folder / "tree.json")
    assert {**loaded.to_json()} == {**model.to_json()}
    return {"cost": loaded.cost_, "predictions": predictions(loaded)}


@entry("select_model/of three trees")
def _selected(world: World) -> Any:
    private = world.private()
    candidates = [dm.TreeClassifier(max_depth=2), dm.DiffPID3(max_depth=1), dm.TreeClassifier(max_depth=4)]
    found = dm.select_model(private, candidates, epsilon=6, validation=0.4)
    told = {"chosen": found.index, "cost": found.cost, "charged": found.charged, "text": str(found).splitlines()}
    return {**told, "candidates": [model_form(model) for model in found.candidates]}


# -- clusters ----------------------------------------------------------------------------------------------------------

CLUSTERS: dict[str, tuple[Make, Schema]] = {
    "KMeans on a grid": (
        lambda: dm.KMeans(3, epsilon=4, attributes=["age", "dose"], scaling="bounds", method="grid", seed=SEED),
        SCHEMA,
    ),
    "KMeans of rows with gaps": (lambda: dm.KMeans(3, epsilon=4, attributes=["age", "weight"], seed=SEED), GAPS),
    "KMeans by a tree": (lambda: dm.KMeans(3, epsilon=8, scaling="bounds", method="tree", seed=SEED), SCHEMA),
    "KMeans in own units": (
        lambda: dm.KMeans(2, epsilon=8, attributes=["age", "weight"], scaling="none", seed=SEED),
        SCHEMA,
    ),
    "KMeans that counts clusters": (
        lambda: dm.KMeans("auto", epsilon=8, attributes=["age", "dose"], scaling="bounds", max_clusters=5, seed=SEED),
        SCHEMA,
    ),
    "KMeans of persons": (
        lambda: dm.KMeans(2, epsilon=8, attributes=["age", "dose"], scaling="bounds", method="tree", seed=SEED),
        PERSONS,
    ),
    "DPLloyd": (lambda: dm.DPLloyd(3, epsilon=8, iterations=3, scaling="none", seed=SEED), SCHEMA),
    "DPLloyd spread, optimal": (
        lambda: dm.DPLloyd(
            2, 8, "auto", "spread", "optimal", attributes=["age", "dose"], scaling="bounds", rows=200, seed=SEED
        ),
        SCHEMA,
    ),
}


def _clusters(make: Make, schema: Schema) -> Callable[[World], Any]:
    def fit_and_judge(world: World) -> Any:
        private = world.private(schema)
        model = fitted(world, make(), private)
        before = private.remaining()
        inertia = model.inertia(private, epsilon=4)
        told = {"plan": model.plan(schema), "model": model_form(model), "text": model.to_text().splitlines()}
        found = {"centres": model.cluster_centers_, "sizes": model.cluster_sizes_, "predictions": predictions(model)}
        return {**told, **found, "inertia": inertia, "inertia charged": spent(private, before)}

    return fit_and_judge


for _name, (_make, _schema) in CLUSTERS.items():
    entry(f"model/{_name}", duckdb=_name in ALSO_ON_DUCKDB)(_clusters(_make, _schema))

# -- releases ----------------------------------------------------------------------------------------------------------

RELEASES: dict[str, tuple[Make, Schema]] = {
    "DiffGen": (lambda: dm.DiffGen(epsilon=8, specialisations=3), SCHEMA),
    "DiffGen by infogain": (lambda: dm.DiffGen(8, 3, "infogain", frequency_share=0.2, total_share=0.1, threshold=2), SCHEMA),
    "DiffGen with all that is new": (
        lambda: dm.DiffGen(8, "auto", "max-gain", "monotone", "joint", leftover=True, total_share=0.1, threshold="auto"),
        SCHEMA,
    ),
    "DiffGen by gini gain": (lambda: dm.DiffGen(8, 4, "gini-gain", "monotone", "joint"), SCHEMA),
    "DiffGen of persons": (lambda: dm.DiffGen(8, 2), PERSONS),
    "ContingencyTable": (lambda: dm.ContingencyTable(epsilon=2, bins=2), SCHEMA),
    "ContingencyTable with a threshold": (lambda: dm.ContingencyTable(epsilon=4, bins=3, threshold=4), SCHEMA),
    "TreeRelease": (lambda: dm.TreeRelease(epsilon=4), SCHEMA),
    "TreeRelease with other shares": (
        lambda: dm.TreeRelease(epsilon=8, frequency_share=0.3, leaf_share=0.3, max_depth=2),
        SCHEMA,
    ),
    "TreeRelease of four classes": (lambda: dm.TreeRelease(epsilon=4, max_depth=2), FOUR_CLASSES),
    "TreeRelease of rows with gaps": (lambda: dm.TreeRelease(epsilon=4, max_depth=2), GAPS),
    "TreeRelease of persons": (lambda: dm.TreeRelease(epsilon=8, max_depth=2), PERSONS),
}
NOT_IN_SHEETS = ("date", "dpmine", "schema", "schema_fingerprint")
"""Times, versions and hashes; and the schema, which is the table's own."""


def sheet_form(sheet: dict[str, Any]) -> Any:
    return {name: item for name, item in sheet.items() if name not in NOT_IN_SHEETS}


def heads(columns: dict[str, list[Any]]) -> Any:
    return {name: column[:HEADS] for name, column in columns.items()}


def _release(make: Make, schema: Schema) -> Callable[[World], Any]:
    def fit_and_show(world: World) -> Any:
        model: ReleaseEstimator = fitted(world, make(), world.private(schema))
        told = {"plan": model.plan(schema), "cost": model.cost_, "charged": model.charged_, "released": model.release()}
        rows = {"rows": heads(model.rows(raw=False)), "raw rows": heads(model.rows(raw=True, seed=SEED))}
        other = {"other rows": heads(model.transform(PUBLIC_ROWS))}
        return {**told, "sheet": sheet_form(model.sheet()), **rows, **other}

    return fit_and_show


for _name, (_make, _schema) in RELEASES.items():
    entry(f"release/{_name}", duckdb=_name in ALSO_ON_DUCKDB)(_release(_make, _schema))


@entry("release/other rows by the sheet alone")
def _generalised(world: World) -> Any:
    model = fitted(world, dm.DiffGen(epsilon=8, specialisations=3), world.private())
    sheet = json.loads(json.dumps(model.sheet()))
    return dm.Generaliser.load(sheet).transform(PUBLIC_ROWS)
