"""`dpmine schema`: draft, check and show the public facts. Draft and check look at the data, so they are for the owner."""

from pathlib import Path
from typing import Annotated

import typer

from dpmine.base.errors import RequestError
from dpmine.cli.shared import AsJson, Data, err, escaped, one_sentence_errors, out, print_json, refuse_taken, warn
from dpmine.facts.checking import check_table, require_read
from dpmine.facts.drafting import propose_facts
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.facts.sources.detecting import looks_like_a_number, told_of
from dpmine.facts.sources.lines_read import UNREAD_AT_MOST
from dpmine.report.words import clean

app = typer.Typer(help="Draft, check and show schemas (draft and check look at the data: for owners).", no_args_is_help=True)
Facts = Annotated[Path, typer.Argument(help="The schema file.", metavar="SCHEMA")]


@app.command()
def draft(
    file: Data,
    output: Annotated[Path | None, typer.Option("--out", "-o", help="Write the draft here instead of printing it.")] = None,
    name: Annotated[str | None, typer.Option(help="The data set's name; default: the file's name.")] = None,
    sep: Annotated[
        str | None, typer.Option(help="What stands between values, such as ';' or tab. Default: looked for.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="The text's encoding, such as latin-1. Default: looked for.")] = None,
    as_json: AsJson = False,
) -> None:
    """Propose a schema by looking at the data. Review every line before using it.

    Example: dpmine schema draft patients.csv --out patients.toml
    """
    with one_sentence_errors():
        refuse_taken(output)
        given = {"sep": {"tab": "\t", "\\t": "\t"}.get(sep or "", sep), "encoding": encoding}
        proposed = propose_facts(file, name=name, read={key: said for key, said in given.items() if said is not None})
        text = Schema.of_proposed(proposed).to_toml()
        if output is not None:
            try:
                output.write_text(text, encoding="utf-8")
            except OSError as error:
                raise RequestError(f"Cannot write {str(output)!r}: {error.strerror}.") from None
        if as_json:
            form = {"toml": text, "out": str(output) if output else None, "looked_at_data": True}
            print_json(form | {"read": proposed.read.form(), "unread_lines": proposed.lines.form()})
        elif output is None:
            _print_as_it_is(text)
        for sentence in proposed.lines.sentences():
            warn(f"For the owner only: {sentence}")
        if any(looks_like_a_number(column) for column in proposed.columns):
            warn("A column is named by a number: if the first line holds values, write the columns' names above it.")
        if found := told_of(proposed.read):
            err.print(escaped(f"{found} Look at [read] in the draft, and correct what is wrong."))
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
    """Show the taxonomies of a schema file as indented text. Reads no data.

    Example: dpmine schema show patients.toml
    """
    with one_sentence_errors():
        facts = Schema.load(schema)
        nominal = [item for item in facts.of_kind(Nominal) if item.name != facts.class_attribute]
        if as_json:
            taxonomies = {item.name: item.form().get("taxonomy") for item in nominal}
            print_json({"name": facts.name, "drafted": facts.drafted, "taxonomies": taxonomies})
            return
        _print_as_it_is("\n".join(_taxonomy_lines(facts, nominal)) + "\n")


def _taxonomy_lines(facts: Schema, nominal: list[Nominal]) -> list[str]:
    lines = [f"Taxonomies of {facts.name}" + (" (a draft: correct each by public knowledge)" if facts.drafted else "")]
    flat = []
    for attribute in nominal:
        if attribute.taxonomy is None:
            flat.append(f"  {clean(attribute.name)} ({attribute.size} categories)")
        else:
            lines += ["", clean(attribute.name), *_indented(attribute.taxonomy, "  ")]
    return [*lines, "", "No taxonomy, so every category stands right below the root:", *flat] if flat else lines


def _indented(node: TaxonomyNode, indent: str) -> list[str]:
    size = f" ({len(node.leaves())} categories)" if node.children else ""
    return [
        f"{indent}{clean(node.name)}{size}",
        *(line for child in node.children for line in _indented(child, indent + "  ")),
    ]


def _print_as_it_is(text: str) -> None:
    """Names of categories are no markup: a draft must be read back as it was drafted."""
    out.print(text, end="", markup=False)
