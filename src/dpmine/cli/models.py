"""`dpmine show` and `dpmine predict`: saved models of every kind."""

import csv
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dpmine.base.errors import DataError, RequestError
from dpmine.cli.shared import AsJson, Data, escaped, one_sentence_errors, out, print_json, refuse_taken
from dpmine.mining.loading import load

ModelFile = Annotated[Path, typer.Argument(help="A model written by dpmine mine.", metavar="MODEL")]
Settings = dict[str, str | int]


def show(
    model: ModelFile,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write a picture to this SVG file.", metavar="FILE")] = None,
    tree: Annotated[int | None, typer.Option("--tree", help="Of a forest: which tree the picture shows.", min=0)] = None,
    max_depth: Annotated[int | None, typer.Option("--max-depth", help="Of a tree: draw only so many levels.", min=0)] = None,
    x: Annotated[str | None, typer.Option("--x", help="Of clusters: the attribute across.", metavar="ATTRIBUTE")] = None,
    y: Annotated[str | None, typer.Option("--y", help="Of clusters: the attribute upwards.", metavar="ATTRIBUTE")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a saved model: as text, or as a picture with --svg.

    Example: dpmine show tree.json --svg tree.svg
    """
    with one_sentence_errors():
        loaded = load(model)
        wanted = {"tree": tree, "max_depth": max_depth, "x": x, "y": y}
        given = {name: setting for name, setting in wanted.items() if setting is not None}
        for name in given.keys() - _settings_of(loaded.to_text) - _settings_of(loaded.to_svg):
            raise RequestError(f"--{name.replace('_', '-')} is not for a {type(loaded).__name__}: leave it out.")
        refuse_taken(svg)
        if svg is not None:
            svg.write_text(_with(given, loaded.to_svg), encoding="utf-8")
        if as_json:
            print_json(loaded.to_json())
            return
        out.print(f"{escaped(repr(loaded))}, epsilon {loaded.cost_}. Counts are noisy.")
        out.print(escaped(_with(given, loaded.to_text)))
        if svg is not None:
            out.print(f"Drawn to {escaped(str(svg))}.")


def _settings_of(drawing: Callable[..., str]) -> set[str]:
    return set(inspect.signature(drawing).parameters)


def _with(given: Settings, drawing: Callable[..., str]) -> str:
    """The drawing, with those of the given settings that it knows."""
    known = _settings_of(drawing)
    return drawing(**{name: setting for name, setting in given.items() if name in known})


def predict(
    model: ModelFile,
    file: Data,
    output: Annotated[Path, typer.Option("--out", "-o", help="Where to write the predictions (CSV).", metavar="CSV")],
    as_json: AsJson = False,
) -> None:
    """Predict each row of a table, in the order of the rows: of a tree its class and the probability of every class, of
    clusters the number of its cluster.

    Example: dpmine predict tree.json new.csv --out predicted.csv
    """
    with one_sentence_errors():
        loaded = load(model)
        if not file.exists():
            raise DataError(f"There is no file {str(file)!r}.")
        refuse_taken(output)
        found = loaded.predictions(file)
        rows = list(zip(*found.columns.values(), strict=True))
        with output.open("w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened)
            writer.writerow(found.columns)
            writer.writerows(rows)
        if as_json:
            print_json({"rows": len(rows), "out": str(output)} | found.outcomes)
        else:
            out.print(f"Predicted {len(rows)} rows; written to {escaped(str(output))}.")
