"""`dpmine reproduce`: experiments of published papers, run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmine.base.errors import DpmineError, RequestError
from dpmine.cli.shared import AsJson, err, escaped, one_sentence_errors, out, print_json

if TYPE_CHECKING:
    from dpmine.reproduce.experiments import Experiment, Outcome
    from dpmine.reproduce.summaries import Row

Quick = Annotated[bool, typer.Option("--quick", help="Fewer points and runs: about a minute on two cores.")]
Runs = Annotated[int | None, typer.Option("--runs", help="Runs a point. Default: the paper's.", min=1, metavar="N")]
Folder = Annotated[Path, typer.Option("--out", "-o", help="The folder for records, CSV and PNG files.", metavar="DIR")]
Workers = Annotated[int | None, typer.Option("--workers", help="Processes. Default: 2 at most.", min=1, metavar="N")]


def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment, or all.", metavar="NAME|all")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments and stop.")] = False,
    quick: Quick = False,
    runs: Runs = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only these points: samples=1000,2000. May be given again.", metavar="NAME=VALUES"),
    ] = None,
    folder: Folder = Path("reproduced"),
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Run an experiment of a published paper again, on generated or public data, beside the published numbers.

    A run that was stopped goes on where it was. Results: NAME.csv (means), NAME.png, NAME.jsonl (every single run).

    Example: dpmine reproduce friedman-table1 --quick
    """
    with one_sentence_errors():
        if listed:
            _show_list(as_json)
            return
        if name is None:
            raise RequestError("Name an experiment, or all. See them with: dpmine reproduce --list")
        chosen = _chosen(name)
        points = _parsed(only or [])
        forms: list[dict[str, Any]] = []
        failed: list[DpmineError] = []
        for experiment in chosen:
            try:
                forms.append(_run(experiment, quick, runs, points, folder, workers, as_json))
            except DpmineError as error:  # with `all`, what one experiment lacks must not stop the others
                failed.append(error)
                if len(chosen) > 1:
                    err.print(f"{experiment.name} was left out: {escaped(str(error))}")
        if as_json and forms:
            print_json(forms[0] if len(chosen) == 1 else forms)
        if failed:
            raise failed[0]


def _chosen(name: str) -> list[Experiment]:
    from dpmine.reproduce import all_experiments, experiment

    return list(all_experiments().values()) if name == "all" else [experiment(name)]


def _parsed(only: list[str]) -> dict[str, list[Any]]:
    """`samples=1000,2000` as the name and the numbers (or texts)."""
    points: dict[str, list[Any]] = {}
    for text in only:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise RequestError(f"--only is written as NAME=VALUE or NAME=VALUE,VALUE. Got {text!r} instead.")
        points.setdefault(name.strip(), []).extend(_value(value) for value in values.split(","))
    return points


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def _run(
    experiment: Experiment,
    quick: bool,
    runs: int | None,
    points: dict[str, list[Any]],
    folder: Path,
    workers: int | None,
    as_json: bool,
) -> dict[str, Any]:
    from dpmine.reproduce.claims import checked
    from dpmine.reproduce.files import write_files
    from dpmine.reproduce.harness import run
    from dpmine.reproduce.plots import pyplot
    from dpmine.reproduce.significance import compare
    from dpmine.reproduce.summaries import row_form, summarise

    pyplot()  # says now, not after an hour, that it is missing
    outcome = run(experiment, folder, quick=quick, repetitions=runs, only=points, workers=workers)
    files = write_files(outcome, folder)
    if not as_json:
        _show(outcome)
        out.print(f"Written: {', '.join(escaped(str(path)) for path in files)}")
    return {
        "experiment": experiment.name,
        "source": experiment.source,
        "fresh_cases": outcome.fresh,
        "means": [row_form(row, row.point) for row in summarise(outcome)],
        "tests": [compared.form() for compared in compare(outcome)],
        "claims": [claim.form() for claim in checked(outcome)],
        "files": [str(path) for path in files],
    }


def _show(outcome: Outcome) -> None:
    """A line for each point, a column for each algorithm; below our mean the published one."""
    from rich.table import Table

    from dpmine.reproduce.claims import checked
    from dpmine.reproduce.significance import compare
    from dpmine.reproduce.summaries import summarise

    by_point: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in summarise(outcome):
        by_point.setdefault(tuple(row.point.items()), {})[row.algorithm] = row
    names = list(dict.fromkeys(name for point in by_point for name, _ in point))
    table = Table(title=escaped(outcome.experiment.title), title_justify="left", show_lines=True)
    for name in (*names, *outcome.experiment.algorithms):
        table.add_column(escaped(name), justify="right")
    digits = outcome.experiment.decimals
    for point, rows in by_point.items():
        settings = [str(dict(point).get(name, "any")) for name in names]
        table.add_row(*settings, *(_cell(rows.get(algorithm), digits) for algorithm in outcome.experiment.algorithms))
    out.print(table)
    most = max(row.runs for rows in by_point.values() for row in rows.values())
    paper = " Below it what the paper prints, and the difference in its standard errors (z)."
    printed = any(row.published is not None for rows in by_point.values() for row in rows.values())
    out.print(f"{f'Mean ± standard deviation over {most} runs' if most > 1 else '1 run a point'}.{paper if printed else ''}")
    for compared in compare(outcome):
        where = ", ".join(f"{name} {setting}" for name, setting in compared.point.items())
        out.print(f"{where}: {compared.first} against {compared.second}: {compared.verdict} (p = {compared.p_value:.2g}).")
    for claim in checked(outcome):
        out.print(escaped(f"Paper: {claim.says}. Here: {claim.found}. {claim.verdict.capitalize()}."))


def _cell(row: Row | None, digits: int) -> str:
    if row is None:
        return ""
    ours = f"{row.mean:.{digits}f} ± {row.std:.{digits}f}" if row.runs > 1 else f"{row.mean:.{digits}f}"
    if row.published is None:
        return ours
    deviation = "" if row.published.std is None else f" ± {row.published.std:.{digits}f}"
    z = "" if row.z_score is None else f"\nz = {row.z_score:.1f}"
    return f"{ours}\n[dim]{row.published.mean:.{digits}f}{deviation}{z}[/]"


def _show_list(as_json: bool) -> None:
    from rich.table import Table

    from dpmine.reproduce import all_experiments

    found = list(all_experiments().values())
    if as_json:
        print_json([_list_form(experiment) for experiment in found])
        return
    table = Table(show_lines=True)
    for title in ("experiment", "paper", "what there is to see", "full", "quick"):
        table.add_column(title, justify="right" if title in ("full", "quick") else "left")
    for experiment in found:
        times = (_duration(experiment.durations.full), _duration(experiment.durations.quick))
        table.add_row(experiment.name, escaped(experiment.source), escaped(experiment.shows), *times)
    out.print(table)
    out.print("Durations are for one worker; two need about half. A run that was stopped goes on where it was.")


def _list_form(experiment: Experiment) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "source": experiment.source,
        "shows": experiment.shows,
        "points": len(experiment.points),
        "algorithms": list(experiment.algorithms),
        "runs": experiment.repetitions,
        "seconds": experiment.durations.full,
        "seconds_quick": experiment.durations.quick,
    }


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
