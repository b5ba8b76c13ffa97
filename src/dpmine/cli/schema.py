"""`dpmine schema`: draft and check the public facts. Both look at the data, so both are for the owner."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmine.cli.shared import AsJson, Data, err, escaped, one_sentence_errors, out, print_json

app = typer.Typer(help="Draft and check schemas (for owners: both look at the data).", no_args_is_help=True)


@app.command()
def draft(
    file: Data,
    output: Annotated[Path | None, typer.Option("--out", "-o", help="Write the draft here instead of printing it.")] = None,
    name: Annotated[str | None, typer.Option(help="The data set's name; default: the file's name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Propose a schema by looking at the data. Review every line before using it.

    Example: dpmine schema draft patients.csv --out patients.toml
    """
    from dpmine.errors import RequestError
    from dpmine.schema import Schema

    with one_sentence_errors():
        text = Schema.draft(file, name=name).to_toml()
        if output is not None:
            if output.exists():
                raise RequestError(f"{str(output)!r} exists already. Choose another name or remove it first.")
            try:
                output.write_text(text, encoding="utf-8")
            except OSError as error:
                raise RequestError(f"Cannot write {str(output)!r}: {error.strerror}.") from None
        if as_json:
            print_json({"toml": text, "out": str(output) if output else None, "looked_at_data": True})
        elif output is None:
            out.print(escaped(text), end="")
        err.print(
            "[yellow]This draft was made by looking at the data.[/] Bounds, categories and size may reveal rows: replace "
            "each by what is publicly known, then delete the line 'drafted = true'."
        )


@app.command()
def check(
    file: Data,
    schema: Annotated[Path, typer.Argument(help="The schema file.", metavar="SCHEMA")],
    as_json: AsJson = False,
) -> None:
    """Report which values the schema would clamp or send to 'other'. True counts: for the owner's eyes only.

    Example: dpmine schema check patients.csv patients.toml
    """
    from dpmine.checking import check_table
    from dpmine.schema import Schema

    with one_sentence_errors():
        report = check_table(file, Schema.load(schema))
        if as_json:
            print_json(report.form())
            return
        out.print(escaped(str(report)))
