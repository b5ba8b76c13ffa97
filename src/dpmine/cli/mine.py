"""`dpmine mine` and `plan`: private trees and forests from the command line."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dpmine.base.errors import RequestError
from dpmine.cli.fitting import ModelOut, Rows, fit_and_save, show_plan, tell
from dpmine.cli.shared import (
    Analyst,
    AsJson,
    Budget,
    Data,
    EngineName,
    LedgerFile,
    SchemaFile,
    Version,
    one_sentence_errors,
    refuse_taken,
)
from dpmine.facts.kinds.registry import values_of
from dpmine.facts.schema import Schema
from dpmine.facts.sources import reading, require_columns
from dpmine.mining.loading import ALGORITHMS
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.models.trees import encode_rows

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
        _mine(model, Rows(file, schema, analyst, ledger, version, engine), output, test, as_json)


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
        _mine(model, Rows(file, schema, analyst, ledger, version, engine), output, test, as_json)


def _estimator(
    known: dict[str, str], algorithm: str, epsilon: str, max_depth: int | None, score: str | None, trees: int | None = None
) -> TreeEstimator:
    if algorithm not in known:
        raise RequestError(f"--algorithm must be one of {', '.join(known)}. Got {algorithm!r} instead.")
    chosen: type[TreeEstimator] = ALGORITHMS[known[algorithm]]  # type: ignore[assignment]
    wanted = {"max_depth": max_depth, "criterion": score, "trees": trees}
    given: dict[str, Any] = {name: setting for name, setting in wanted.items() if setting is not None}
    given["epsilon"] = epsilon
    if "criterion" in given and not hasattr(chosen, "criterion"):
        raise RequestError(f"{algorithm} has no score to choose by: leave --score out.")
    return chosen(**given)


def _mine(model: TreeEstimator, rows: Rows, output: Path, test: Path | None, as_json: bool) -> None:
    """Refuse what can be refused, then fit, save and show."""
    facts = Schema.load(rows.schema)
    plan = model.plan(facts)
    refuse_taken(output)
    labels = None if test is None else true_labels(test, facts)
    remaining = fit_and_save(model, rows, output)
    accuracy = None if labels is None else model.score(test, labels)
    tell(
        model,
        plan,
        remaining,
        output,
        text=model.to_text(max_depth=4),
        lines=[] if accuracy is None else [f"Accuracy on the public table {test}: {accuracy:.1%}."],
        after=f"dpmine show {output} --svg tree.svg",
        more={} if accuracy is None else {"accuracy_on_public_test": accuracy},
        as_json=as_json,
    )


def true_labels(table: Path, schema: Schema) -> Any:
    """The class labels of a public table that has all columns of the schema, by its rules; None where they give none."""
    target = schema.require_class()
    with reading(table, schema.read, schema.columns) as source:
        require_columns(source, [a.name for a in schema.singles])
    rows, _ = encode_rows(table, schema, [target])
    return values_of(schema.single(target))[rows[target]]


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
        show_plan(_estimator(TREES, algorithm, epsilon, max_depth, score), schema, rows, as_json)


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
        show_plan(_estimator(FORESTS, algorithm, epsilon, max_depth, score, trees), schema, rows, as_json)
