"""`dpmine frontier`: which algorithm is on the Pareto front of accuracy, epsilon and rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmine.base.errors import RequestError
from dpmine.cli.reproduce import Folder, Quick, Workers
from dpmine.cli.shared import AsJson, escaped, one_sentence_errors, out, print_json

if TYPE_CHECKING:
    from dpmine.reproduce.experiments import Outcome
    from dpmine.reproduce.frontier import Standing

app = typer.Typer(help="Accuracy against epsilon and rows: which algorithm to take.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Accuracy against epsilon and rows: which algorithm to take."""


@app.command()
def tree(
    data: Annotated[
        Path | None,
        typer.Option("--data", help="A PUBLIC table to measure on; its true labels are used.", metavar="FILE"),
    ] = None,
    schema: Annotated[Path | None, typer.Option("--schema", help="The schema of that table.", metavar="TOML")] = None,
    epsilons: Annotated[str, typer.Option("--epsilons", help="Such as 0.1,0.5,2.", metavar="LIST")] = "",
    rows: Annotated[str, typer.Option("--rows", help="Sizes of the training set, such as 1000,20000.", metavar="LIST")] = "",
    depth: Annotated[int, typer.Option("--depth", help="Of the algorithms that do not choose it.", min=1, max=20)] = 5,
    runs: Annotated[int | None, typer.Option("--runs", help="Runs a point. Default: 20.", min=1, metavar="N")] = None,
    quick: Quick = False,
    folder: Folder = Path("reproduced"),
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Decision trees and forests, on generated data or on a public table that you name.

    Never name a private table here: accuracies are computed from true labels and no budget is charged for them.

    Example: dpmine frontier tree --epsilons 0.1,0.5,2 --rows 1000,20000 --quick
    """
    from dpmine.reproduce.frontier import standing_form, standings, tree_frontier, write_frontier
    from dpmine.reproduce.harness import run
    from dpmine.reproduce.plots import pyplot

    with one_sentence_errors():
        pyplot()  # says now, not after an hour, that it is missing
        experiment = tree_frontier(
            data=data, schema=schema, epsilons=_numbers(epsilons, float), rows=_numbers(rows, int), depth=depth
        )
        outcome = run(experiment, folder, quick=quick, repetitions=runs, workers=workers)
        files = write_frontier(outcome, folder)
        found = standings(outcome)
        if as_json:
            forms = [standing_form(standing) for standing in found]
            print_json({"experiment": experiment.name, "means": forms, "files": [str(path) for path in files]})
        else:
            _show(outcome, found)
            out.print(f"Written: {', '.join(escaped(str(path)) for path in files)}")


def _numbers(text: str, kind: type[int] | type[float]) -> list[Any]:
    try:
        return [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise RequestError(f"A list of {what} separated by commas was expected. Got {text!r} instead.") from None


def _show(outcome: Outcome, found: list[Standing]) -> None:
    """A line for each epsilon, a column for each size: the best algorithm there, and those that are as good."""
    from rich.table import Table

    epsilons = list(dict.fromkeys(point["epsilon"] for point in outcome.points))
    sizes = list(dict.fromkeys(point["rows"] for point in outcome.points))
    table = Table(title="The best private algorithm at each point", title_justify="left", show_lines=True)
    table.add_column("epsilon", justify="right")
    for size in sizes:
        table.add_column(f"{size} rows")
    for epsilon in epsilons:
        points = [{"epsilon": epsilon, "rows": size} for size in sizes]
        table.add_row(str(epsilon), *(_cell([s for s in found if dict(s.row.point) == point]) for point in points))
    out.print(table)
    out.print("* on the Pareto front: nothing as accurate needs less epsilon or fewer rows. = as good within the error.")
    depth = outcome.experiment.settings["depth"]
    out.print(f"DiffP-C4.5, DiffP-ID3 and SuLQ-ID3 have depth {depth} everywhere; the others choose their own: try --depth.")


def _cell(there: list[Standing]) -> str:
    best = next(standing for standing in there if standing.best)
    mark = " *" if best.on_front else ""
    as_good = [f"[dim]= {standing.row.algorithm}[/]" for standing in there if standing.as_good and not standing.best]
    return "\n".join([f"[bold]{best.row.algorithm}[/] {best.row.mean:.1f} %{mark}", *as_good])
