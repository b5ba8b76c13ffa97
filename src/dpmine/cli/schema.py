"""`dpmine schema`: draft, check and show the public facts. Draft and check look at the data, so they are for the owner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmine.base.errors import RequestError
from dpmine.cli.shared import AsJson, Data, err, escaped, one_sentence_errors, out, print_json, refuse_taken, warn
from dpmine.facts.checking import check_table, require_read
from dpmine.facts.draft_notes import DraftNotes
from dpmine.facts.drafting import Wishes, propose_facts
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.facts.sources.detecting import looks_like_a_number, told_of
from dpmine.facts.sources.lines_read import UNREAD_AT_MOST
from dpmine.report.words import clean

if TYPE_CHECKING:
    from rich.table import Table

FILE_WIDTH = 200  # columns of a table that no terminal shows

app = typer.Typer(help="Draft, check and show schemas (draft and check look at the data: for owners).", no_args_is_help=True)
Facts = Annotated[Path, typer.Argument(help="The schema file.", metavar="SCHEMA")]


@app.command()
def draft(
    file: Data,
    output: Annotated[Path | None, typer.Option("--out", "-o", help="Write the draft here instead of printing it.")] = None,
    name: Annotated[str | None, typer.Option(help="The data set's name; default: the file's name.")] = None,
    target: Annotated[
        str | None, typer.Option("--class", help="The column to predict. Default: one of a name such as diagnosis.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="The column that names the persons to protect. Default: rows are.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column that is never to be read; may be repeated.")] = None,
    sep: Annotated[
        str | None, typer.Option(help="What stands between values, such as ';' or tab. Default: looked for.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="The text's encoding, such as latin-1. Default: looked for.")] = None,
    as_json: AsJson = False,
) -> None:
    """Propose a schema by looking at the data, and say why. Review every line before using it.

    Example: dpmine schema draft patients.csv --out patients.toml
    """
    with one_sentence_errors():
        refuse_taken(output)
        given = {"sep": {"tab": "\t", "\\t": "\t"}.get(sep or "", sep), "encoding": encoding}
        read = {key: said for key, said in given.items() if said is not None}
        proposed = propose_facts(file, name=name, read=read, wishes=Wishes(target, unit, tuple(drop or ())))
        text = Schema.of_proposed(proposed).to_toml()
        if output is not None:
            try:
                output.write_text(text, encoding="utf-8")
            except OSError as error:
                raise RequestError(f"Cannot write {str(output)!r}: {error.strerror}.") from None
        if as_json:
            form = {"toml": text, "out": str(output) if output else None, "looked_at_data": True}
            found = {"read": proposed.read.form(), "unread_lines": proposed.lines.form(), "columns": proposed.notes.form()}
            print_json(form | found)
        elif output is None:
            _print_as_it_is(text)
        if not as_json:
            err.print(_table_of(proposed.notes))
        for sentence in proposed.lines.sentences():
            warn(f"For the owner only: {sentence}")
        if any(looks_like_a_number(column) for column in proposed.columns):
            warn("A column is named by a number: if the first line holds values, write the columns' names above it.")
        if rules := told_of(proposed.read):
            err.print(escaped(f"{rules} Look at [read] in the draft, and correct what is wrong."))
        err.print(
            "[yellow]This draft was made by looking at the data.[/] Bounds, categories and size may reveal rows: replace "
            "each by what is publicly known, then delete the line 'drafted = true'."
        )


@app.command()
def check(
    file: Data,
    schema: Facts,
    unread_at_most: Annotated[
        float,
        typer.Option(help="Fail if a larger share of lines was not read as they stand.", min=0, max=1, metavar="SHARE"),
    ] = UNREAD_AT_MOST,
    as_json: AsJson = False,
) -> None:
    """Report which values the schema would clamp or send to 'other', and which lines of a text file could not be read.

    True counts: for the owner's eyes only. Fails where more lines than a share (1 %) were not read as they stand.

    Example: dpmine schema check patients.csv patients.toml
    """
    with one_sentence_errors():
        report = check_table(file, Schema.load(schema))
        if as_json:
            print_json(report.form())
        else:
            _print_as_it_is(f"{report}\n")
        require_read(report, unread_at_most=unread_at_most)


@app.command()
def show(schema: Facts, as_json: AsJson = False) -> None:
    """Show what a schema file says of its columns to people, and its taxonomies as indented text. Reads no data.

    Example: dpmine schema show patients.toml
    """
    with one_sentence_errors():
        facts = Schema.load(schema)
        nominal = [item for item in facts.of_kind(Nominal) if item.name != facts.class_attribute]
        if as_json:
            taxonomies = {item.name: item.form().get("taxonomy") for item in nominal}
            words = {item.name: item.words for item in facts.attributes if item.words}
            print_json({"name": facts.name, "drafted": facts.drafted, "columns": words, "taxonomies": taxonomies})
            return
        _print_as_it_is("\n".join([*_taxonomy_lines(facts, nominal), *_described(facts)]) + "\n")


def _table_of(notes: DraftNotes) -> Table:
    """What is proposed for each column, why, and what to look at."""
    from rich.table import Table

    width = None if err.is_terminal else FILE_WIDTH
    table = Table(
        "column", "kind", "domain", "why", "to check", box=None, header_style="bold", padding=(0, 2, 0, 0), width=width
    )
    for note in notes.columns:
        cells = (note.name, note.kind, note.domain, note.why, "; ".join(note.checks))
        table.add_row(*(escaped(clean(cell)) for cell in cells))
    return table


def _taxonomy_lines(facts: Schema, nominal: list[Nominal]) -> list[str]:
    lines = [f"Taxonomies of {facts.name}" + (" (a draft: correct each by public knowledge)" if facts.drafted else "")]
    flat = []
    for attribute in nominal:
        if attribute.taxonomy is None:
            flat.append(f"  {clean(attribute.name)} ({attribute.cells} categories)")
        else:
            lines += ["", clean(attribute.name), *_indented(attribute.taxonomy, "  ")]
    return [*lines, "", "No taxonomy, so every category stands right below the root:", *flat] if flat else lines


def _described(facts: Schema) -> list[str]:
    told = [f"  {clean(item.title)}: {clean(item.description)}".rstrip(": ") for item in facts.attributes if item.words]
    return ["", "What columns hold:", *told] if told else []


def _indented(node: TaxonomyNode, indent: str) -> list[str]:
    size = f" ({len(node.leaves())} categories)" if node.children else ""
    return [
        f"{indent}{clean(node.name)}{size}",
        *(line for child in node.children for line in _indented(child, indent + "  ")),
    ]


def _print_as_it_is(text: str) -> None:
    """Names of categories are no markup: a draft must be read back as it was drafted."""
    out.print(text, end="", markup=False)
