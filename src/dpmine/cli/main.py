"""The `dpmine` command."""

from importlib.metadata import version
from typing import Annotated

import typer

from dpmine.cli import audit, budget, design, frontier, kmeans, mine, models, query, release, reproduce, schema
from dpmine.cli.shared import AnotherLedger, Witness, allow_another_ledger, name_witness, one_sentence_errors

app = typer.Typer(
    name="dpmine",
    help="Differentially private data mining: one private door to a table.\n\nStart with: dpmine demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(schema.app, name="schema")
app.add_typer(budget.app, name="budget")
app.add_typer(query.app, name="query")
mine.app.command("kmeans")(kmeans.mine_kmeans)
mine.plan_app.command("kmeans")(kmeans.plan_kmeans)
app.add_typer(mine.app, name="mine")
app.add_typer(mine.plan_app, name="plan")
app.add_typer(release.app, name="release")
app.add_typer(frontier.app, name="frontier")
app.command()(models.show)
app.command()(models.predict)
app.command(name="design")(design.design)
app.command(name="reproduce")(reproduce.reproduce)
app.command(name="audit")(audit.audit)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpmine {version('dpmine')}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
    witness: Witness = None,
    another_ledger: AnotherLedger = False,
) -> None:
    """Differentially private data mining: one private door to a table."""
    context.call_on_close(name_witness(witness))
    context.call_on_close(allow_another_ledger(another_ledger))


@app.command()
def demo(
    rows: Annotated[int, typer.Option(help="How many patients to generate.", min=100, max=2_000_000)] = 50_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """The whole story on generated patients: schema, grant, private questions, a refusal, the statement.

    Example: dpmine demo --rows 50000
    """
    from dpmine.cli.demo import run_demo

    with one_sentence_errors():
        run_demo(rows, as_json=as_json)


def run() -> None:
    """The entry point."""
    app()


if __name__ == "__main__":
    run()
