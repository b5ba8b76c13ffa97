"""`dpmine mine`, `plan`, `show` and `predict`: private models from the command line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmine.cli.shared import (
    Analyst,
    AsJson,
    Budget,
    Data,
    EngineName,
    LedgerFile,
    SchemaFile,
    Version,
    escaped,
    one_sentence_errors,
    open_data,
    out,
    print_json,
)

if TYPE_CHECKING:
    from dpmine.mining.trees.estimator import TreeEstimator
    from dpmine.schema import Schema

app = typer.Typer(help="Learn a private model from a table; fitting is charged.", no_args_is_help=True)
plan_app = typer.Typer(help="What fitting a model would spend, step by step; spends nothing.", no_args_is_help=True)

TREES = {"treeclassifier": "TreeClassifier", "diffp-c45": "DiffPC45", "diffp-id3": "DiffPID3", "sulq-id3": "SulqID3"}
FORESTS = {"greedy": "GreedyForest", "random": "RandomForest"}

TreeAlgorithm = Annotated[str, typer.Option("--algorithm", help=f"One of {', '.join(TREES)}.", metavar="NAME")]
ForestAlgorithm = Annotated[
    str, typer.Option("--algorithm", help="greedy (trees that choose their splits) or random.", metavar="NAME")
]
Depth = Annotated[int | None, typer.Option("--max-depth", help="How deep a tree may grow. Default: the algorithm's own.")]
Score = Annotated[
    str | None, typer.Option("--score", help="mixed, gini, max or infogain. Default: the algorithm's own.", metavar="SCORE")
]
TreeCount = Annotated[int | None, typer.Option("--trees", help="How many trees, each on its own part of the rows.")]
RowCount = Annotated[int | None, typer.Option("--rows", help="About how many rows. Default: the schema's bound.", min=1)]
Test = Annotated[
    Path | None, typer.Option("--test", help="A PUBLIC table with the class column, to measure accuracy on.", metavar="FILE")
]
ModelOut = Annotated[Path, typer.Option("--out", "-o", help="Where to write the model (JSON).", metavar="JSON")]
Model = Annotated[Path, typer.Argument(help="A model written by dpmine mine.", metavar="MODEL")]


@app.command()
def tree(
    file: Data,
    schema: SchemaFile,
    epsilon: Budget,
    output: ModelOut,
    algorithm: TreeAlgorithm = "treeclassifier",
    max_depth: Depth = None,
    score: Score = None,
    test: Test = None,
    analyst: Analyst = "owner",
    ledger: LedgerFile = None,
    version: Version = "1",
    engine: EngineName = "memory",
    as_json: AsJson = False,
) -> None:
    """Grow a private decision tree that predicts the schema's class attribute.

    Example: dpmine mine tree patients.parquet --schema patients.toml --epsilon 0.5 --out tree.json
    """
    with one_sentence_errors():
        model = _estimator(TREES, algorithm, epsilon, max_depth, score)
        _mine(model, file, schema, output, test, analyst, ledger, version, engine, as_json)


@app.command()
def forest(
    file: Data,
    schema: SchemaFile,
    epsilon: Budget,
    output: ModelOut,
    algorithm: ForestAlgorithm = "greedy",
    trees: TreeCount = None,
    max_depth: Depth = None,
    score: Score = None,
    test: Test = None,
    analyst: Analyst = "owner",
    ledger: LedgerFile = None,
    version: Version = "1",
    engine: EngineName = "memory",
    as_json: AsJson = False,
) -> None:
    """Grow a private forest: several trees on disjoint parts of the rows, for the price of one.

    Example: dpmine mine forest patients.parquet --schema patients.toml --epsilon 0.5 --trees 4 --out forest.json
    """
    with one_sentence_errors():
        model = _estimator(FORESTS, algorithm, epsilon, max_depth, score, trees)
        _mine(model, file, schema, output, test, analyst, ledger, version, engine, as_json)


def _estimator(
    known: dict[str, str], algorithm: str, epsilon: str, max_depth: int | None, score: str | None, trees: int | None = None
) -> TreeEstimator:
    from dpmine.errors import RequestError
    from dpmine.mining.saving import algorithms

    if algorithm not in known:
        raise RequestError(f"--algorithm must be one of {', '.join(known)}. Got {algorithm!r} instead.")
    chosen = algorithms()[known[algorithm]]
    wanted = {"max_depth": max_depth, "criterion": score, "trees": trees}
    given: dict[str, Any] = {name: setting for name, setting in wanted.items() if setting is not None}
    given["epsilon"] = epsilon
    if "criterion" in given and not hasattr(chosen, "criterion"):
        raise RequestError(f"{algorithm} has no score to choose by: leave --score out.")
    return chosen(**given)


def _mine(
    model: TreeEstimator,
    file: Path,
    schema: Path,
    output: Path,
    test: Path | None,
    analyst: str,
    ledger: Path | None,
    version: str,
    engine: str,
    as_json: bool,
) -> None:
    """Refuse what can be refused, then fit, save and show."""
    from dpmine.errors import RequestError
    from dpmine.schema import Schema

    facts = Schema.load(schema)
    plan = model.plan(facts)
    if output.exists():
        raise RequestError(f"{str(output)!r} exists already. Choose another name or remove it first.")
    if not output.absolute().parent.is_dir():
        raise RequestError(f"There is no folder {str(output.absolute().parent)!r} to write the model to.")
    labels = None if test is None else true_labels(test, facts)
    with closing(open_data(file, schema, ledger, version, engine)) as data:
        private = data.private(analyst)
        model.fit(private)
        remaining = private.remaining()
    model.save(output)
    accuracy = None if labels is None else model.score(test, labels)
    if as_json:
        form = {
            "model": str(output),
            "cost": str(model.cost_),
            "charged": str(model.charged_),
            "remaining": str(remaining),
            "plan": plan.to_dict(),
        }
        print_json(form | ({} if accuracy is None else {"accuracy_on_public_test": accuracy}))
        return
    out.print(escaped(model.to_text(max_depth=4)))
    out.print(f"\n{escaped(plan.algorithm)}: epsilon {model.charged_} spent, {remaining} remains. Counts are noisy.")
    if accuracy is not None:
        out.print(f"Accuracy on the public table {escaped(str(test))}: {accuracy:.1%}.")
    out.print(f"Saved to {escaped(str(output))}. Next: dpmine show {escaped(str(output))} --svg tree.svg")


def true_labels(table: Path, schema: Schema) -> Any:
    """The class labels of a public table that has all columns of the schema, by the schema's rules."""
    import numpy as np

    from dpmine.frames import open_source, require_columns
    from dpmine.schema import ItemList
    from dpmine.tree_models import encode_rows

    target = schema.require_class()
    require_columns(open_source(table), [a.name for a in schema.attributes if not isinstance(a, ItemList)])
    rows, _ = encode_rows(table, schema, [target])
    return np.array(schema.class_labels, dtype=object)[rows[target]]


@plan_app.command("tree")
def plan_tree(
    schema: SchemaFile,
    epsilon: Budget,
    rows: RowCount = None,
    algorithm: TreeAlgorithm = "treeclassifier",
    max_depth: Depth = None,
    score: Score = None,
    as_json: AsJson = False,
) -> None:
    """What growing a tree would spend, and how far off its numbers would be.

    Example: dpmine plan tree --schema patients.toml --epsilon 0.5 --rows 45000
    """
    with one_sentence_errors():
        _show_plan(_estimator(TREES, algorithm, epsilon, max_depth, score), schema, rows, as_json)


@plan_app.command("forest")
def plan_forest(
    schema: SchemaFile,
    epsilon: Budget,
    rows: RowCount = None,
    algorithm: ForestAlgorithm = "greedy",
    trees: TreeCount = None,
    max_depth: Depth = None,
    score: Score = None,
    as_json: AsJson = False,
) -> None:
    """What growing a forest would spend, and how far off its numbers would be.

    Example: dpmine plan forest --schema patients.toml --epsilon 0.5 --trees 4
    """
    with one_sentence_errors():
        _show_plan(_estimator(FORESTS, algorithm, epsilon, max_depth, score, trees), schema, rows, as_json)


def _show_plan(model: TreeEstimator, schema: Path, rows: int | None, as_json: bool) -> None:
    plan = model.plan(schema, rows=rows)
    if as_json:
        print_json(plan.to_dict())
    else:
        out.print(escaped(str(plan)))


def show(
    model: Model,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write a picture to this SVG file.", metavar="FILE")] = None,
    tree: Annotated[int, typer.Option("--tree", help="Of a forest: which tree the picture shows.", min=0)] = 0,
    max_depth: Annotated[int | None, typer.Option("--max-depth", help="Draw only so many levels.", min=0)] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a saved model: as text, or as a picture with --svg.

    Example: dpmine show tree.json --svg tree.svg
    """
    from dpmine.errors import RequestError
    from dpmine.mining.saving import load

    with one_sentence_errors():
        loaded = load(model)
        if svg is not None:
            if svg.exists():
                raise RequestError(f"{str(svg)!r} exists already. Choose another name or remove it first.")
            svg.write_text(loaded.to_svg(tree=tree, max_depth=max_depth), encoding="utf-8")
        if as_json:
            print_json(loaded.to_json())
            return
        out.print(f"{escaped(repr(loaded))}, epsilon {loaded.cost_}. Counts are noisy.")
        out.print(escaped(loaded.to_text(max_depth=max_depth)))
        if svg is not None:
            out.print(f"Drawn to {escaped(str(svg))}.")


def predict(
    model: Model,
    file: Data,
    output: Annotated[Path, typer.Option("--out", "-o", help="Where to write the predictions (CSV).", metavar="CSV")],
    as_json: AsJson = False,
) -> None:
    """Predict the class of each row of a table: its class and the probability of every class, in the order of the rows.

    Example: dpmine predict tree.json new.csv --out predicted.csv
    """
    import csv

    from dpmine.errors import DataError, RequestError
    from dpmine.mining.saving import load

    with one_sentence_errors():
        loaded = load(model)
        if not file.exists():
            raise DataError(f"There is no file {str(file)!r}.")
        if output.exists():
            raise RequestError(f"{str(output)!r} exists already. Choose another name or remove it first.")
        shares = loaded.predict_proba(file)
        labels = loaded.classes_[shares.argmax(axis=1)]
        with output.open("w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened)
            writer.writerow(["predicted", *(f"probability {label}" for label in loaded.classes_)])
            for label, row in zip(labels, shares, strict=True):
                writer.writerow([label, *(f"{share:.6f}" for share in row)])
        if as_json:
            print_json({"rows": len(labels), "out": str(output), "classes": [str(label) for label in loaded.classes_]})
        else:
            out.print(f"Predicted {len(labels)} rows; written to {escaped(str(output))}.")
