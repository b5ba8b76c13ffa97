"""`dpmine budget`: the owner's ledger."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import DataError, RequestError
from dpmine.base.json_values import to_json
from dpmine.budget.renewal import Renewal
from dpmine.cli.shared import (
    AnotherLedger,
    AsJson,
    Data,
    LedgerFile,
    SchemaFile,
    Witness,
    another_ledger_is_allowed,
    escaped,
    ledger_path,
    named_witness,
    one_sentence_errors,
    out,
    print_json,
    warn,
)
from dpmine.facts.schema import Schema
from dpmine.owner import open_ledger, open_ledger_over
from dpmine.owner.ledgers import above_cap
from dpmine.owner.statements import statement_of

app = typer.Typer(help="Set up, grant, revoke and look up budgets (for owners).", no_args_is_help=True)
Who = Annotated[str, typer.Argument(help="The analyst's name.", metavar="NAME")]


def _ledger(file: Any, schema_file: Any, ledger: Any) -> tuple[Any, Any]:
    """The existing ledger of a data set, and its schema."""
    schema = Schema.load(schema_file)
    return open_ledger(schema, ledger_path(file, schema, ledger), witness=named_witness(), create=False), schema


@app.command()
def init(
    file: Data,
    schema: SchemaFile,
    cap: Annotated[str, typer.Option(help="The epsilon that all analysts together may ever spend.", metavar="EPS")],
    renew: Annotated[str | None, typer.Option(help="Let the cap grow by this much ...", metavar="EPS")] = None,
    every: Annotated[int, typer.Option(help="... every so many days.", metavar="DAYS")] = 365,
    ledger: LedgerFile = None,
    witness: Witness = None,
    another_ledger: AnotherLedger = False,
    as_json: AsJson = False,
) -> None:
    """Make the ledger of a data set. The owner gets the whole cap under the name 'owner'.

    A ledger with a witness answers only while the witness can be reached, and must be told of it every time:
    dpmine --witness WITNESS query ..., or the environment variable DPMINE_WITNESS.

    A file that has a ledger already is refused, whatever its schema is named, unless --another-ledger allows a second one.

    Example: dpmine budget init patients.parquet --schema patients.toml --cap 4
    """
    with one_sentence_errors():
        facts = Schema.load(schema)
        if not file.exists():
            raise DataError(f"There is no file {str(file)!r}.")
        amount = Epsilon.parse(cap, name="cap")
        path = ledger_path(file, facts, ledger)
        if path.exists():
            raise RequestError(f"The ledger {str(path)!r} exists already. Look at it with: dpmine budget show.")
        renewal = None if renew is None else Renewal.every(every, epsilon=renew)
        remembers = witness or named_witness()
        if remembers is not None and not remembers.startswith("command:"):
            remembers = str(Path(remembers).absolute())  # it will be named from other folders
        book = open_ledger_over(
            file,
            facts,
            path,
            another_ledger=another_ledger or another_ledger_is_allowed(),
            cap=amount,
            renewal=renewal,
            witness=remembers,
        )
        with closing(book):
            book.grant("owner", amount.units)
        if as_json:
            grows = None if renewal is None else str(renewal)
            print_json({"ledger": str(path), "dataset": facts.name, "cap": str(amount), "renewal": grows})
        else:
            out.print(f"Made the ledger {escaped(str(path))} of data set {facts.name!r} with cap epsilon {amount}.")
            out.print(f"Keep {escaped(path.name)} and {escaped(path.name)}.anchor together, and back up both.")
            if remembers is not None:
                out.print(f"Name its witness whenever you use it: dpmine --witness {escaped(repr(remembers))} ...")


@app.command()
def grant(
    file: Data,
    analyst: Who,
    schema: SchemaFile,
    epsilon: Annotated[str, typer.Option(help="What the analyst may spend in all.", metavar="EPS")],
    ledger: LedgerFile = None,
    as_json: AsJson = False,
) -> None:
    """Set what an analyst may spend in all. Granting again sets the sum; it does not add. More than the cap is warned of.

    Example: dpmine budget grant patients.parquet alice --schema patients.toml --epsilon 1
    """
    with one_sentence_errors():
        amount = Epsilon.parse(epsilon)
        book, _ = _ledger(file, schema, ledger)
        with closing(book):
            book.grant(analyst, amount.units)
            doubt = above_cap(book, analyst, amount)
        if doubt is not None:
            warn(doubt)
        if as_json:
            print_json({"analyst": analyst, "allotment": str(amount), "above_cap": doubt is not None})
        else:
            out.print(f"{escaped(analyst)} may spend epsilon {amount} in all.")


@app.command()
def revoke(file: Data, analyst: Who, schema: SchemaFile, ledger: LedgerFile = None, as_json: AsJson = False) -> None:
    """End an analyst's access. What was spent stays spent.

    Example: dpmine budget revoke patients.parquet alice --schema patients.toml
    """
    with one_sentence_errors():
        book, _ = _ledger(file, schema, ledger)
        with closing(book):
            book.revoke(analyst)
        if as_json:
            print_json({"analyst": analyst, "revoked": True})
        else:
            out.print(f"{escaped(analyst)} can ask nothing more.")


@app.command()
def show(file: Data, schema: SchemaFile, ledger: LedgerFile = None, as_json: AsJson = False) -> None:
    """Show the cap and every analyst's allotment, spending and rest.

    Example: dpmine budget show patients.parquet --schema patients.toml
    """
    from rich.table import Table

    with one_sentence_errors():
        book, facts = _ledger(file, schema, ledger)
        with closing(book):
            statement = statement_of(book, facts, "all")
        if as_json:
            form = to_json(statement)
            print_json(
                {
                    "dataset": form["dataset"],
                    "cap": form["cap"],
                    "spent": form["dataset_spent"],
                    "analysts": {
                        one.analyst: {
                            "allotment": str(one.allotment),
                            "spent": str(one.spent),
                            "remaining": str(one.remaining),
                        }
                        for one in statement.allotments
                    },
                }
            )
            return
        table = Table(title=f"{statement.dataset}: epsilon {statement.dataset_spent} of {statement.cap} spent")
        for heading in ("analyst", "allotment", "spent", "remaining"):
            table.add_column(heading, justify="left" if heading == "analyst" else "right")
        for one in statement.allotments:
            name = escaped(one.analyst) + (" (revoked)" if one.revoked else "")
            table.add_row(name, str(one.allotment), str(one.spent), str(one.remaining))
        out.print(table)


@app.command()
def statement(
    file: Data,
    schema: SchemaFile,
    analyst: Annotated[str | None, typer.Option("--as", help="Only this analyst's part.", metavar="NAME")] = None,
    ledger: LedgerFile = None,
    as_json: AsJson = False,
) -> None:
    """Print every charge and what it guarantees, in plain sentences.

    Example: dpmine budget statement patients.parquet --schema patients.toml
    """
    with one_sentence_errors():
        book, facts = _ledger(file, schema, ledger)
        with closing(book):
            found = statement_of(book, facts, "all", analyst)
        if as_json:
            print_json({**to_json(found), "guarantee": found.guarantee})
        else:
            out.print(escaped(str(found)))


@app.command()
def verify(file: Data, schema: SchemaFile, ledger: LedgerFile = None, as_json: AsJson = False) -> None:
    """Check the ledger's hash chain, anchor, odometers and stored answers.

    Example: dpmine budget verify patients.parquet --schema patients.toml
    """
    with one_sentence_errors():
        book, _ = _ledger(file, schema, ledger)
        with closing(book):
            rows = book.verify()
        if as_json:
            print_json({"rows": rows, "sound": True})
        else:
            out.print(f"The ledger is sound: {rows} rows, each following from the one before, none missing.")
