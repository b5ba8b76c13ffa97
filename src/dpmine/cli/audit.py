"""`dpmine audit`: measured epsilon of everything in the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmine.base.errors import RequestError
from dpmine.cli.shared import AsJson, escaped, one_sentence_errors, out, print_json

if TYPE_CHECKING:
    from dpmine.audit.running import Audit, Finding

FULL_FOLDER = Path("audited")


def audit(
    quick: Annotated[bool, typer.Option("--quick", help="A few minutes; the default.")] = False,
    full: Annotated[bool, typer.Option("--full", help="40 times the runs, in under 90 minutes on two cores.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="Only the pair or mutant of this name, or all with this in their names. May be given again.",
            metavar="NAME",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder for JSON, PNG and, with --full, finished rounds.", metavar="DIR"),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", help="Processes.", min=1, metavar="N")] = 2,
    listed: Annotated[bool, typer.Option("--list", help="List pairs and mutants and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Attack every privacy claim of this package on neighbouring tables, and plant bugs that the attack must find.

    A lower confidence bound on epsilon above the claim is a violation. --quick accuses a correct package once in a million
    audits, --full once in a hundred. A full audit that was stopped goes on where it was. Exit code 1 on a violation, or
    if a planted bug was not found.

    Example: dpmine audit --quick --only histogram
    """
    with one_sentence_errors():
        if quick and full:
            raise RequestError("Choose --quick or --full, not both.")
        if listed:
            _show_list(as_json)
            return
        passed = _run(full, only or [], folder or (FULL_FOLDER if full else None), workers, as_json)
    if not passed:
        raise typer.Exit(1)


def _run(full: bool, only: list[str], folder: Path | None, workers: int, as_json: bool) -> bool:
    from dpmine.audit.picture import pyplot
    from dpmine.audit.running import FULL, QUICK, run_audit

    if folder is not None:
        pyplot()  # says now, not after an hour, that it is missing
    done = run_audit(FULL if full else QUICK, only=only, folder=folder, workers=workers)
    files = [] if folder is None else _write(done, folder)
    if as_json:
        print_json(done.form() | {"files": [str(path) for path in files]})
    else:
        _show(done)
        if files:
            out.print(f"Written: {', '.join(escaped(str(path)) for path in files)}")
    return done.passed


def _write(done: Audit, folder: Path) -> list[Path]:
    from dpmine.audit.picture import write_picture

    folder.mkdir(parents=True, exist_ok=True)
    findings, picture = folder / "audit.json", folder / "audit.png"
    findings.write_text(json.dumps(done.form(), indent=1) + "\n", encoding="utf-8")
    if not done.findings:
        return [findings]
    write_picture(done, picture)
    return [findings, picture]


def _show(done: Audit) -> None:
    from rich.table import Table

    if done.findings:
        table = Table(title=f"Measured epsilon ({done.mode.name})", title_justify="left")
        for title in ("pair", "claimed", "measured", "share", "fit", "runs", "verdict"):
            table.add_column(title, justify="left" if title in ("pair", "verdict") else "right", overflow="fold")
        for found in done.findings:
            table.add_row(
                *_cells(found), "passed" if found.passed else f"[bold red]{escaped('; '.join(found.violations))}[/]"
            )
        out.print(table)
    if done.planted:
        kills = Table(title="Planted bugs", title_justify="left")
        for title in ("bug", "pair", "claimed", "charged", "measured", "fit", "verdict"):
            kills.add_column(title, justify="left" if title in ("bug", "pair", "verdict") else "right", overflow="fold")
        for found in done.planted:
            assert found.mutant is not None
            name, claimed, measured, _, fit, _ = _cells(found)
            verdict = "[bold red]NOT FOUND[/]" if found.passed else escaped(_short(found))
            kills.add_row(found.mutant.name, name, claimed, f"{found.charged:g}", measured, fit, verdict)
        out.print(kills)
    for pair, reason in done.skipped:
        out.print(f"Left out: {pair.name} {reason}.")
    _show_verdict(done)


def _cells(found: Finding) -> tuple[str, str, str, str, str, str]:
    fit = "" if found.fit is None else f"{found.fit:.2g}"
    share = f"{found.measured / found.pair.claimed:.2f}"
    return found.pair.name, f"{found.pair.claimed:g}", f"{found.measured:.3f}", share, fit, str(found.runs)


def _short(found: Finding) -> str:
    if found.refused is not None:
        return "found: refused"
    ways = []
    if found.measured > min(found.pair.claimed, found.charged):
        ways.append("epsilon")
    if found.fit is not None and found.fit < found.failure:
        ways.append("fit")
    return f"found: {' and '.join(ways)}"


def _show_verdict(done: Audit) -> None:
    wrong = [found.pair.name for found in done.findings if not found.passed]
    if wrong:
        out.print(f"[bold red]VIOLATED:[/] {', '.join(wrong)}.")
    if done.survivors:
        out.print(f"[bold red]Planted bugs that were not found:[/] {', '.join(done.survivors)}.")
    if done.too_weak:
        out.print(f"Measured less than 0.9 of the claim, so this attack is too weak: {', '.join(done.too_weak)}.")
    if done.passed:
        found = f" All {len({one.mutant for one in done.planted})} planted bugs were found." if done.planted else ""
        out.print(
            f"No violation in {len(done.findings)} pairs.{found} A pass is no proof: see docs/audit.md and docs/proofs.md."
        )


def _show_list(as_json: bool) -> None:
    from rich.table import Table

    from dpmine.audit.catalogue import all_pairs
    from dpmine.audit.mutants import MUTANTS

    pairs = list(all_pairs().values())
    if as_json:
        print_json(
            {
                "pairs": [
                    {"pair": pair.name, "claimed": pair.claimed, "why": pair.why, "covers": list(pair.covers)}
                    for pair in pairs
                ],
                "mutants": [
                    {"mutant": mutant.name, "bug": mutant.bug, "caught_by": list(mutant.caught_by)} for mutant in MUTANTS
                ],
            }
        )
        return
    table = Table(title="Audit pairs", title_justify="left", show_lines=True)
    for title in ("pair", "claimed", "why these neighbours"):
        table.add_column(title, justify="right" if title == "claimed" else "left")
    for pair in pairs:
        table.add_row(pair.name, f"{pair.claimed:g}", escaped(pair.why))
    out.print(table)
    planted = Table(title="Planted bugs", title_justify="left", show_lines=True)
    for title in ("mutant", "bug", "must be found by"):
        planted.add_column(title)
    for mutant in MUTANTS:
        planted.add_row(mutant.name, escaped(mutant.bug), ", ".join(mutant.caught_by))
    out.print(planted)
