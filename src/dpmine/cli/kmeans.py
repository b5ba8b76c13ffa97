"""`dpmine mine kmeans` and `dpmine plan kmeans`: private clusters from the command line."""

from importlib.util import find_spec
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
from dpmine.facts.schema import Schema
from dpmine.mining.clustering.estimator import ClusterEstimator
from dpmine.mining.clustering.mapping import drawn_places
from dpmine.mining.loading import ALGORITHMS as MODELS

ALGORITHMS = {"kmeans": "KMeans", "dplloyd": "DPLloyd"}
PICTURES = (".svg", ".png", ".pdf")

Clusters = Annotated[str, typer.Option("--clusters", help="How many, or auto (up to 30).", metavar="K")]
Attributes = Annotated[
    str | None,
    typer.Option("--attributes", help="Numeric attributes, with commas between. Default: all.", metavar="NAMES"),
]
Scaling = Annotated[
    str | None,
    typer.Option(
        "--scaling",
        help="bounds (every attribute equally long, the default) or none (distances as they are).",
        metavar="NAME",
    ),
]
Method = Annotated[
    str | None, typer.Option("--method", help="Of kmeans: auto, grid (up to 3 attributes) or tree.", metavar="NAME")
]
Algorithm = Annotated[str, typer.Option("--algorithm", help="kmeans (ours) or dplloyd (noisy Lloyd steps).", metavar="NAME")]
Iterations = Annotated[str | None, typer.Option("--iterations", help="Of dplloyd: how many, or auto.", metavar="T")]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", help="Write a map of the first two attributes, .svg or .png.", metavar="FILE"),
]


def mine_kmeans(
    file: Data,
    schema: SchemaFile,
    epsilon: Budget,
    clusters: Clusters,
    output: ModelOut,
    attributes: Attributes = None,
    scaling: Scaling = None,
    method: Method = None,
    algorithm: Algorithm = "kmeans",
    iterations: Iterations = None,
    plot: Plot = None,
    analyst: Analyst = "owner",
    ledger: LedgerFile = None,
    version: Version = "1",
    engine: EngineName = "memory",
    as_json: AsJson = False,
) -> None:
    """Find private clusters: centres and noisy sizes, by the schema's numeric attributes.

    Example: dpmine mine kmeans patients.parquet --schema patients.toml --epsilon 0.5 --clusters 3 --out clusters.json
    """
    with one_sentence_errors():
        model = _estimator(algorithm, epsilon, clusters, attributes, scaling, method, iterations)
        facts = Schema.load(schema)
        plan = model.plan(facts)
        refuse_taken(output, plot)
        _check_picture(plot, model, facts)
        remaining = fit_and_save(model, Rows(file, schema, analyst, ledger, version, engine), output)
        lines = []
        if plot is not None:
            _draw(model, plot)
            lines = [f"Drawn to {plot}."]
        found = [
            {"centre": dict(zip(model.space_.names, centre, strict=True)), "rows": size}
            for centre, size in zip(model.cluster_centers_.tolist(), model.cluster_sizes_.tolist(), strict=True)
        ]
        tell(
            model,
            plan,
            remaining,
            output,
            text=model.to_text(),
            lines=lines,
            after=f"dpmine predict {output} new.csv --out predicted.csv",
            more={"clusters": found} | ({} if plot is None else {"plot": str(plot)}),
            as_json=as_json,
        )


def plan_kmeans(
    schema: SchemaFile,
    epsilon: Budget,
    clusters: Clusters = "8",
    attributes: Attributes = None,
    scaling: Scaling = None,
    method: Method = None,
    algorithm: Algorithm = "kmeans",
    iterations: Iterations = None,
    as_json: AsJson = False,
) -> None:
    """What finding clusters would spend, and how far off its counts would be.

    Example: dpmine plan kmeans --schema patients.toml --epsilon 0.5 --clusters 3
    """
    with one_sentence_errors():
        model = _estimator(algorithm, epsilon, clusters, attributes, scaling, method, iterations)
        show_plan(model, schema, None, as_json)


def _estimator(
    algorithm: str,
    epsilon: str,
    clusters: str,
    attributes: str | None,
    scaling: str | None,
    method: str | None,
    iterations: str | None,
) -> ClusterEstimator:
    if algorithm not in ALGORITHMS:
        raise RequestError(f"--algorithm must be one of {', '.join(ALGORITHMS)}. Got {algorithm!r} instead.")
    chosen: Any = MODELS[ALGORITHMS[algorithm]]
    wanted: dict[str, Any] = {"scaling": scaling, "method": method, "iterations": _number(iterations)}
    given = {name: setting for name, setting in wanted.items() if setting is not None}
    for name in given:
        if not hasattr(chosen, name):
            raise RequestError(f"{algorithm} has no {name}: leave --{name} out.")
    if attributes is not None:
        given["attributes"] = [name.strip() for name in attributes.split(",")]
    model: ClusterEstimator = chosen(n_clusters=_number(clusters), epsilon=epsilon, **given)
    return model


def _number(text: str | None) -> Any:
    """A whole number where it is one; the model says what else it may be."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else text


def _check_picture(plot: Path | None, model: ClusterEstimator, facts: Any) -> None:
    """A picture that cannot be drawn is refused before anything is spent."""
    if plot is None:
        return
    if plot.suffix.lower() not in PICTURES:
        raise RequestError(f"--plot must end in one of {', '.join(PICTURES)}. Got {str(plot)!r} instead.")
    drawn_places(model.space(facts), None, None)
    if plot.suffix.lower() != ".svg" and find_spec("matplotlib") is None:
        raise RequestError(f"A {plot.suffix} needs matplotlib. Run: pip install 'dpmine[plots]', or ask for an .svg.")


def _draw(model: ClusterEstimator, plot: Path) -> None:
    if plot.suffix.lower() == ".svg":
        plot.write_text(model.to_svg(), encoding="utf-8")
    else:
        model.plot().savefig(plot)
