"""`dpmine design`: mechanisms for one bounded answer side by side, from public facts alone."""

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

import dpmine
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.json_values import to_text
from dpmine.base.progress import Progress
from dpmine.cli.shared import AsJson, err, escaped, one_sentence_errors, out, print_json, refuse_taken
from dpmine.design.candidates import Candidate
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.priors import Prior
from dpmine.design.setting import Setting
from dpmine.design.workbench import QUICK_POINTS, Curve, Look, keeps_exactly, look_at

FEWEST_WHOLE, MOST_WHOLE = 3, 201  # points of a grid of whole numbers
ABOUT = 200  # steps of any other grid, or a few less if the sensitivity then is a whole number of steps
FEWEST = 150
ENDINGS = (".html", ".svg")

_NUMBER = re.compile(r"-?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})|-?[0-9]{1,20}/[1-9][0-9]{0,19}")


def design(
    ends: Annotated[
        tuple[str, str], typer.Option("--range", help="Lowest and highest answer, from public facts.", metavar="LOW HIGH")
    ],
    sensitivity: Annotated[str, typer.Option("--sensitivity", help="By how much one row moves the answer.", metavar="D")],
    epsilon: Annotated[str, typer.Option("--epsilon", help="The epsilon of one answer, such as 0.5.", metavar="EPS")],
    prior: Annotated[
        str,
        typer.Option(
            "--prior",
            help="What is known beforehand: flat, normal:MEAN:DEVIATION, laplace:MEAN:SCALE, triangle:LOW:PEAK:HIGH or "
            "weights:W1,W2,...",
            metavar="PRIOR",
        ),
    ] = "flat",
    loss: Annotated[str, typer.Option("--loss", help="absolute, squared or miss.", metavar="LOSS")] = "absolute",
    step: Annotated[
        str | None,
        typer.Option(
            "--step", help="Of the grid. Default: 1 for up to 201 whole numbers, else about 201 points.", metavar="STEP"
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            help="auto takes the least expected loss; or optimal, risk-averse, geometric, staircase, heuristic, "
            "randomised-response.",
            metavar="MECHANISM",
        ),
    ] = "auto",
    colluders: Annotated[
        int | None,
        typer.Option(
            "--colluders", help="Also the error of so many users who pool answers.", min=1, max=10_000, metavar="K"
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="Draw a page (.html) or a picture (.svg).", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Which noise for an answer within public bounds: all mechanisms side by side, and the one to take.

    Looks at no data and spends nothing. The answer is rounded to a grid; losses are what is expected under the prior.

    Example: dpmine design --range -10 10 --sensitivity 10 --epsilon 1 --prior normal:0:3 --loss absolute
    """
    with one_sentence_errors():
        _check_output(output)
        setting = _setting(ends, sensitivity, epsilon, step)
        known = Prior(prior, loss=loss, by=by)
        known.probabilities(setting.grid)  # says now what does not fit the grid
        if by == "risk-averse" and setting.points > QUICK_POINTS:
            err.print(f"The risk-averse optimum on {setting.points} points may take a while; it is kept for later.")
        progress = Progress("dpmine design", shown=False if as_json else None)
        look = look_at(setting, known, colluders=colluders, with_curves=output is not None, progress=progress)
        if output is not None:
            _draw(look, output)
        if as_json:
            print_json(_form(look, output))
        else:
            _show(look, output)


# -- what was asked ------------------------------------------------------------------------------------------------------


def _check_output(output: Path | None) -> None:
    if output is not None and output.suffix.lower() not in ENDINGS:
        raise RequestError(f"--out must end in {' or '.join(ENDINGS)}. Got {str(output)!r} instead.")
    refuse_taken(output)


def _setting(ends: tuple[str, str], sensitivity: str, epsilon: str, step: str | None) -> Setting:
    low, high = (_number(end, "--range") for end in ends)
    if low >= high:
        raise RequestError(f"--range needs the lower end first. Got {low} {high}.")
    moved = _number(sensitivity, "--sensitivity")
    if moved <= 0:
        raise RequestError(f"--sensitivity must be above 0. Got {moved} instead.")
    width = default_step(low, high, moved) if step is None else _number(step, "--step")
    if width <= 0:
        raise RequestError(f"--step must be above 0. Got {width} instead.")
    return Setting(low, high, width, moved, Epsilon.parse(epsilon))


def _number(text: str, option: str) -> Fraction:
    if not _NUMBER.fullmatch(text):
        raise RequestError(f"{option} needs plain numbers such as -10, 0.5 or 1/3. Got {text!r:.60} instead.")
    return Fraction(text)


def default_step(low: Fraction, high: Fraction, sensitivity: Fraction) -> Fraction:
    """1 for a few whole numbers; else about 201 points, with a whole number of steps to the sensitivity if there is one."""
    span = high - low
    is_whole = low.denominator == span.denominator == sensitivity.denominator == 1
    if is_whole and FEWEST_WHOLE <= span + 1 <= MOST_WHOLE:
        return Fraction(1)
    counts = range(ABOUT, FEWEST - 1, -1)
    return span / next((count for count in counts if (sensitivity * count / span).denominator == 1), ABOUT)


# -- what came out -------------------------------------------------------------------------------------------------------


def _draw(look: Look, output: Path) -> None:
    from dpmine.report.mechanism_page import mechanism_page, mechanism_svg

    is_page = output.suffix.lower() == ".html"
    text = mechanism_page(look, dpmine.__version__) if is_page else mechanism_svg(look)
    output.write_text(text, encoding="utf-8")


def _show(look: Look, output: Path | None) -> None:
    from rich.table import Table

    from dpmine.report.mechanism_page import verdict

    setting = look.setting
    out.print(escaped(f"{setting} ({setting.points} points); prior {look.prior}, {look.prior.loss} loss."))
    pooled = [] if look.colluders is None else [f"k = {look.colluders}"]
    table = Table(box=None, padding=(0, 1), collapse_padding=True, pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    for title in ("expected", "worst"):
        table.add_column(title, justify="right")
    table.add_column("epsilon")
    for title in pooled:
        table.add_column(title, justify="right")
    table.add_column("note")
    for each in look.candidates:
        taken = each.name == look.chosen.candidate.name
        errors = [f"{look.colluders_errors[each.name]:.3g}" if each.name in look.colluders_errors else ""] if pooled else []
        cells = [f"{each.expected_loss:.4g}", f"{each.worst_loss:.4g}", verdict(each, look), *errors]
        note = each.note.replace("answering ", "") or "taken" * taken
        table.add_row(each.name, *cells, note, style="bold" if taken else "")
    out.print(table)
    asked = "auto takes" if look.prior.by == "auto" else "Taken:"
    out.print(escaped(f"{asked} {look.chosen.why}"))
    if setting.points > QUICK_POINTS and look.prior.by != "risk-averse":
        out.print("The risk-averse optimum takes long on a grid this fine and was left out: see it with --by risk-averse.")
    if look.colluders is not None:
        total = look.setting.epsilon.units * look.colluders / 10**9
        out.print(
            f"k = {look.colluders}: how far off the guess of so many users is who pool their answers, which cost epsilon "
            f"{total:g} in all."
        )
    if output is not None:
        out.print(f"Drawn to {escaped(str(output))}.")


def _form(look: Look, output: Path | None) -> dict[str, Any]:
    setting, chosen = look.setting, look.chosen.candidate
    assert isinstance(chosen.mechanism, FiniteMechanism)
    form: dict[str, Any] = {
        "range": [str(setting.low), str(setting.high)],
        "step": str(setting.step),
        "points": setting.points,
        "sensitivity": str(setting.sensitivity),
        "epsilon": str(setting.epsilon),
        "prior": look.prior.text,
        "loss": look.prior.loss,
        "by": look.prior.by,
        "colluders": look.colluders,
        "candidates": [_candidate_form(each, look) for each in look.candidates],
        "chosen": {"mechanism": chosen.name, "why": look.chosen.why, "table": json.loads(to_text(chosen.mechanism))},
    }
    if output is not None:
        form["loss_against_epsilon"] = _curves(look.losses)
        form["error_against_colluders"] = _curves(look.collusion)
        form["file"] = str(output)
    return form


def _candidate_form(candidate: Candidate, look: Look) -> dict[str, Any]:
    from dpmine.report.mechanism_page import measured_epsilon

    form = {
        "mechanism": candidate.name,
        "expected_loss": candidate.expected_loss,
        "worst_loss": candidate.worst_loss,
        "epsilon": measured_epsilon(candidate, look),
        "kept_exactly": keeps_exactly(candidate, look.setting),
        "note": candidate.note,
    }
    return form if look.colluders is None else form | {"colluders_error": look.colluders_errors.get(candidate.name)}


def _curves(curves: Sequence[Curve]) -> dict[str, list[list[float]]]:
    """Pairs of where and how much, by the name of the mechanism."""
    return {curve.name: [[x, y] for x, y in zip(curve.xs, curve.ys, strict=True)] for curve in curves}
