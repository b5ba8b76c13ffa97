"""`dpmine query`: private questions through the door."""

import csv
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmine.base.errors import RequestError
from dpmine.base.json_values import to_json
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
    refuse_taken,
)
from dpmine.design.priors import prior
from dpmine.language.parsing import parse_key
from dpmine.noise.spread import half_width

app = typer.Typer(help="Ask private questions; each one is charged.", no_args_is_help=True)
Condition = Annotated[
    str | None, typer.Option("--where", help=r'Only rows like this: "age >= 40 and ward in \[north, south]".')
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say cost and expected error; spend nothing.")]
DesignedNoise = Annotated[
    str | None,
    typer.Option(
        "--design",
        help="Design the noise: auto, geometric, staircase, optimal, risk-averse, heuristic or randomised-response.",
        metavar="NAME",
    ),
]
Known = Annotated[
    str | None, typer.Option("--prior", help="What is publicly known beforehand, such as normal:40:10.", metavar="PRIOR")
]
Low = Annotated[str | None, typer.Option("--low", help="The lowest the answer can be, if known.", metavar="NUMBER")]
High = Annotated[str | None, typer.Option("--high", help="The highest the answer can be, if known.", metavar="NUMBER")]
Loss = Annotated[str | None, typer.Option("--loss", help="What is to be small: absolute, squared or miss.", metavar="LOSS")]


def _table(data: Any, analyst: str, where: str | None) -> Any:
    private = data.private(analyst)
    return private if where is None else private.where(where)


def _show_preview(preview: Any, as_json: bool) -> None:
    if as_json:
        print_json(to_json(preview))
    else:
        out.print(escaped(str(preview)))


def _receipt(receipt: Any, remaining: Any) -> dict[str, Any]:
    return {
        "epsilon": str(receipt.epsilon),
        "cost": str(receipt.cost),
        "remaining": str(remaining),
        "ledger_head": {"sequence": receipt.sequence, "digest": receipt.digest},
    }


def _designed(design: str | None, known: str | None, low: str | None, high: str | None, loss: str | None) -> Any:
    """How the noise is to be designed; None where nothing was said of it."""
    if (design, known, low, high, loss) == (None,) * 5:
        return None
    return prior(known or "flat", low=low, high=high, loss=loss or "absolute", by=design or "auto")


def _show_designed(answer: Any, remaining: Any, as_json: bool) -> None:
    """An answer through designed noise, with why that noise was taken."""
    if as_json:
        interval = answer.interval()
        form = {
            "value": answer.value,
            "interval_95": [interval.low, interval.high],
            "note": interval.note,
            "mechanism": answer.mechanism,
            "why": answer.why,
            "loss": answer.loss,
            "expected_loss": answer.expected_loss,
            "prior_loss": answer.prior_loss,
        }
        print_json({**form, **_receipt(answer.receipt, remaining)})
    else:
        out.print(f"{escaped(str(answer))} Epsilon {remaining} remains.")


@app.command()
def count(
    file: Data,
    schema: SchemaFile,
    epsilon: Budget,
    where: Condition = None,
    design: DesignedNoise = None,
    known: Known = None,
    low: Low = None,
    high: High = None,
    loss: Loss = None,
    analyst: Analyst = "owner",
    ledger: LedgerFile = None,
    version: Version = "1",
    engine: EngineName = "memory",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Count rows, with noise.

    Example: dpmine query count patients.parquet --schema patients.toml --where "age >= 40" --epsilon 0.1
    """
    with one_sentence_errors(), closing(open_data(file, schema, ledger, version, engine)) as data:
        private = _table(data, analyst, where)
        noise = _designed(design, known, low, high, loss)
        if dry_run:
            _show_preview(private.preview.count(epsilon=epsilon, design=noise), as_json)
            return
        answer = private.count(epsilon=epsilon, design=noise)
        if noise is not None:
            _show_designed(answer, private.remaining(), as_json)
            return
        interval = answer.interval()
        if as_json:
            form = {"noisy_count": answer.value, "interval_95": [interval.low, interval.high], "note": interval.note}
            print_json({**form, **_receipt(answer.receipt, private.remaining())})
        else:
            out.print(f"About {answer.value} rows; {interval}. Epsilon {private.remaining()} remains.")


@app.command()
def histogram(
    file: Data,
    schema: SchemaFile,
    by: Annotated[
        list[str], typer.Option("--by", help="A column, column:cut:cut for bins, or column:month. May be given again.")
    ],
    epsilon: Budget,
    where: Condition = None,
    analyst: Analyst = "owner",
    ledger: LedgerFile = None,
    version: Version = "1",
    engine: EngineName = "memory",
    dry_run: DryRun = False,
    output: Annotated[Path | None, typer.Option("--out", "-o", help="Also write the noisy counts to this CSV file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Count rows for every combination of labels, with noise.

    Example: dpmine query histogram patients.parquet --schema patients.toml --by ward --by age:18:65 --epsilon 0.1
    """
    with one_sentence_errors(), closing(open_data(file, schema, ledger, version, engine)) as data:
        private = _table(data, analyst, where)
        keys = [parse_key(text) for text in by]
        refuse_taken(output)
        if dry_run:
            _show_preview(private.preview.histogram(*keys, epsilon=epsilon), as_json)
            return
        answer = private.histogram(*keys, epsilon=epsilon)
        if output is not None:
            _write_csv(answer, output)
        if as_json:
            rows = [{"labels": list(labels), "noisy_count": number} for labels, number in answer.items()]
            form = {"by": list(answer.titles), "standard_deviation": answer.standard_deviation, "counts": rows}
            print_json({**form, **_receipt(answer.receipt, private.remaining())})
        else:
            _print_histogram(answer)
            out.print(f"Epsilon {private.remaining()} remains.")


def _print_histogram(answer: Any) -> None:
    """A table with bars: people would rather look than read."""
    from rich.table import Table

    table = Table()
    for title in answer.titles:
        table.add_column(escaped(title))
    table.add_column("noisy count", justify="right")
    table.add_column("")
    largest = max(int(answer.counts.max()), 1)
    for number, (labels, counted) in enumerate(answer.items()):
        if number == 60:
            table.add_row(*["..."] * len(answer.titles), f"{answer.counts.size - 60} more", "")
            break
        bar = "█" * round(30 * max(counted, 0) / largest)
        table.add_row(*map(escaped, labels), str(counted), f"[cyan]{bar}[/]")
    out.print(table)
    out.print(f"Each count is within {half_width(answer.law, 0.95)} of the truth in 95 % of the cases.")


def _write_csv(answer: Any, path: Path) -> None:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*answer.titles, "noisy_count"])
            writer.writerows([*labels, counted] for labels, counted in answer.items())
    except OSError as error:
        raise RequestError(
            f"The answer was paid but {str(path)!r} cannot be written: {error.strerror}. Ask again: it is free."
        ) from None


@app.command()
def choose(
    file: Data,
    schema: SchemaFile,
    among: Annotated[list[str], typer.Option("--among", help="The column whose labels compete; or columns to split by.")],
    epsilon: Budget,
    score: Annotated[str, typer.Option(help="count (most frequent label), or max, gini, infogain (best split).")] = "count",
    where: Condition = None,
    analyst: Analyst = "owner",
    ledger: LedgerFile = None,
    version: Version = "1",
    engine: EngineName = "memory",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Choose a label or a split privately.

    Example: dpmine query choose patients.parquet --schema patients.toml --among age --among ward --score gini --epsilon 0.1
    """
    with one_sentence_errors(), closing(open_data(file, schema, ledger, version, engine)) as data:
        private = _table(data, analyst, where)
        if score == "count" and len(among) > 1:
            raise RequestError("With score 'count', give --among once: the labels of that column compete.")
        candidates: Any = (
            parse_key(among[0]) if score == "count" else [parse_key(text) if ":" in text else text for text in among]
        )
        if dry_run:
            _show_preview(private.preview.choose(candidates, score=score, epsilon=epsilon), as_json)
            return
        chosen = private.choose(candidates, score=score, epsilon=epsilon)
        if as_json:
            label = {"label": chosen.label} if score == "count" else {"by": chosen.key.title, "labels": list(chosen.labels)}
            print_json({**label, **_receipt(chosen.receipt, private.remaining())})
        else:
            out.print(escaped(str(chosen)))
            out.print(f"Epsilon {private.remaining()} remains.")


Column = Annotated[str, typer.Option("--column", help="The numeric column.", metavar="NAME")]


def _ask_number(
    what: str,
    file: Path,
    schema: Path,
    column: str,
    epsilon: str,
    where: str | None,
    analyst: str,
    ledger: Path | None,
    version: str,
    engine: str,
    dry_run: bool,
    as_json: bool,
    **more: Any,
) -> None:
    """Ask for one number of a column and show it with its interval."""
    with one_sentence_errors(), closing(open_data(file, schema, ledger, version, engine)) as data:
        private = _table(data, analyst, where)
        if dry_run:
            _show_preview(getattr(private.preview, what)(column, **more, epsilon=epsilon), as_json)
            return
        answer = getattr(private, what)(column, **more, epsilon=epsilon)
        if more.get("design") is not None:
            _show_designed(answer, private.remaining(), as_json)
        elif as_json:
            names = ("value", "low", "high", "confidence", "note", "rows_away", "rows", "rounded")
            form = {name: _told(getattr(answer, name)) for name in names if hasattr(answer, name)}
            print_json({**form, **_receipt(answer.receipt, private.remaining())})
        else:
            out.print(f"{escaped(str(answer))}. Epsilon {private.remaining()} remains.")


def _told(item: Any) -> Any:
    """Dates as text."""
    return item.isoformat() if hasattr(item, "isoformat") else item


def _number_command(what: str, summary: str) -> None:
    """Add the command that asks for one number of a column."""

    def command(
        file: Data,
        schema: SchemaFile,
        column: Column,
        epsilon: Budget,
        where: Condition = None,
        design: DesignedNoise = None,
        known: Known = None,
        low: Low = None,
        high: High = None,
        loss: Loss = None,
        analyst: Analyst = "owner",
        ledger: LedgerFile = None,
        version: Version = "1",
        engine: EngineName = "memory",
        dry_run: DryRun = False,
        as_json: AsJson = False,
    ) -> None:
        with one_sentence_errors():
            noise = _designed(design, known, low, high, loss)
        more = {} if noise is None else {"design": noise}
        _ask_number(what, file, schema, column, epsilon, where, analyst, ledger, version, engine, dry_run, as_json, **more)

    example = f"dpmine query {what} patients.parquet --schema patients.toml --column age --epsilon 0.1"
    known_before = f"{example} --prior normal:50:10" if what in ("mean", "median", "max") else f"{example} --design auto"
    command.__doc__ = f"{summary}, clamped to its public bounds, with noise.\n\nExample: {example}\n\nOr: {known_before}"
    app.command(name=what)(command)


for _what, _summary in (
    ("sum", "The sum of a numeric column"),
    ("mean", "The mean of a numeric column"),
    ("median", "A value at or near the median of a numeric column"),
    ("max", "The 99.5 % quantile of a numeric column, or through designed noise the largest value"),
):
    _number_command(_what, _summary)


@app.command()
def variance(
    file: Data,
    schema: SchemaFile,
    column: Column,
    epsilon: Budget,
    where: Condition = None,
    analyst: Analyst = "owner",
    ledger: LedgerFile = None,
    version: Version = "1",
    engine: EngineName = "memory",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """The variance of a numeric column, clamped to its public bounds, with noise.

    Example: dpmine query variance patients.parquet --schema patients.toml --column age --epsilon 0.1
    """
    _ask_number("variance", file, schema, column, epsilon, where, analyst, ledger, version, engine, dry_run, as_json)


@app.command()
def std(
    file: Data,
    schema: SchemaFile,
    column: Column,
    epsilon: Budget,
    where: Condition = None,
    analyst: Analyst = "owner",
    ledger: LedgerFile = None,
    version: Version = "1",
    engine: EngineName = "memory",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """The standard deviation of a numeric column, clamped to its public bounds, with noise. It comes with the variance.

    Example: dpmine query std patients.parquet --schema patients.toml --column age --epsilon 0.1
    """
    _ask_number("std", file, schema, column, epsilon, where, analyst, ledger, version, engine, dry_run, as_json)


@app.command()
def covariance(
    file: Data,
    schema: SchemaFile,
    column: Column,
    other: Annotated[str, typer.Option("--with", help="The other numeric column.", metavar="NAME")],
    epsilon: Budget,
    where: Condition = None,
    analyst: Analyst = "owner",
    ledger: LedgerFile = None,
    version: Version = "1",
    engine: EngineName = "memory",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """The covariance of two numeric columns over the rows that have both, clamped to their public bounds, with noise.

    Example: dpmine query covariance trips.csv --schema trips.toml --column distance --with delay --epsilon 0.1
    """
    asked = (file, schema, column, epsilon, where, analyst, ledger, version, engine, dry_run, as_json)
    _ask_number("covariance", *asked, second=other)


@app.command()
def quantile(
    file: Data,
    schema: SchemaFile,
    column: Column,
    epsilon: Budget,
    order: Annotated[str, typer.Option(help="Between 0 and 1; 0.5 is the median.", metavar="SHARE")] = "0.5",
    where: Condition = None,
    analyst: Analyst = "owner",
    ledger: LedgerFile = None,
    version: Version = "1",
    engine: EngineName = "memory",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """A value at or near a quantile of a numeric column, chosen privately.

    Example: dpmine query quantile patients.parquet --schema patients.toml --column age --order 0.9 --epsilon 0.1
    """
    _ask_number(
        "quantile", file, schema, column, epsilon, where, analyst, ledger, version, engine, dry_run, as_json, order=order
    )
