"""What all commands share: one error sentence with its exit code, options, and output as text or JSON."""

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from dpmine.base.errors import DataError, DpmineError, DpmineWarning, LedgerError, OwnerWarning, RequestError
from dpmine.facts.schema import Schema
from dpmine.owner import DataSet, default_ledger
from dpmine.owner import open as open_table

out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

Data = Annotated[Path, typer.Argument(help="A CSV, TSV, JSON lines, Excel or Parquet file.", metavar="FILE")]
SchemaFile = Annotated[Path, typer.Option("--schema", help="The schema: public facts in TOML.", metavar="TOML")]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="The ledger's file. Default: beside the data, named after the data set.", metavar="DB"),
]
Witness = Annotated[
    str | None,
    typer.Option(
        "--witness",
        envvar="DPMINE_WITNESS",
        help="The witness of the ledger that a command opens: a file on another disk, or 'command:PROGRAM ARGUMENTS'.",
        metavar="WITNESS",
    ),
]
AnotherLedger = Annotated[
    bool,
    typer.Option(
        "--another-ledger",
        help="Allow a second ledger over a file that has one: what is spent in both adds up. Once is enough.",
    ),
]
Analyst = Annotated[str, typer.Option("--as", help="The analyst whose allotment is charged.", metavar="NAME")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Budget = Annotated[str, typer.Option("--epsilon", help="The epsilon to spend, such as 0.1.", metavar="EPS")]
EngineName = Annotated[
    str, typer.Option("--engine", help="memory, or duckdb for files larger than memory.", metavar="ENGINE")
]
Version = Annotated[str, typer.Option("--version-label", help="The owner's label of this state of the data.")]


@contextmanager
def one_sentence_errors() -> Iterator[None]:
    """Turn dpmine's errors into one sentence on stderr and the exit code of their kind, and its warnings into sentences."""
    try:
        with _warnings_as_sentences():
            yield
    except DpmineError as error:
        err.print(f"[bold red]Error:[/] {escaped(str(error))}")
        raise typer.Exit(error.exit_code) from None
    except OSError as error:  # a folder that is not there, a file that may not be written
        err.print(f"[bold red]Error:[/] {escaped(error.strerror or type(error).__name__)}: {escaped(str(error.filename))}.")
        raise typer.Exit(2) from None


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Without the place in the code, which says nothing to who types commands."""
    with warnings.catch_warnings():
        elsewhere = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, DpmineWarning):
                warn(str(message))
            else:
                elsewhere(message, category, *place, **more)

        warnings.showwarning = show
        warnings.simplefilter("always", DpmineWarning)
        yield


def warn(sentence: str) -> None:
    """A sentence on stderr about what was done but may not be meant."""
    err.print(f"[bold yellow]Warning:[/] {escaped(sentence)}")


def escaped(text: str) -> str:
    return escape(text)


def print_json(form: Any) -> None:
    sys.stdout.write(json.dumps(form, indent=2, ensure_ascii=False) + "\n")


def refuse_taken(*outputs: Path | None) -> None:
    """Files that are there already, and folders that are not, before anything is spent."""
    for path in outputs:
        if path is None:
            continue
        if path.exists():
            raise RequestError(f"{str(path)!r} exists already. Choose another name or remove it first.")
        if not path.absolute().parent.is_dir():
            raise RequestError(f"There is no folder {str(path.absolute().parent)!r} to write {path.name!r} to.")


def ledger_path(table: Path, schema: Schema, ledger: Path | None) -> Path:
    return ledger or default_ledger(table, schema)


_witness: ContextVar[str | None] = ContextVar("witness", default=None)


def name_witness(witness: str | None) -> Callable[[], None]:
    """What `dpmine --witness ...`, or the environment, says for the command that follows; returns what forgets it again."""
    before = _witness.set(witness or None)
    return lambda: _witness.reset(before)


def named_witness() -> str | None:
    return _witness.get()


_another_ledger: ContextVar[bool] = ContextVar("another_ledger", default=False)


def allow_another_ledger(allowed: bool) -> Callable[[], None]:
    """What `dpmine --another-ledger ...` says for the command that follows; returns what forgets it again."""
    before = _another_ledger.set(allowed)
    return lambda: _another_ledger.reset(before)


def another_ledger_is_allowed() -> bool:
    return _another_ledger.get()


def open_data(table: Path, schema_file: Path, ledger: Path | None, version: str, engine: str) -> DataSet:
    """Open a table whose ledger exists; a missing ledger says how to make one."""
    schema = Schema.load(schema_file)
    if not table.exists():
        raise DataError(f"There is no file {str(table)!r}.")
    path = ledger_path(table, schema, ledger)
    if not path.exists():
        raise LedgerError(
            f"There is no ledger {str(path)!r}. The owner makes one with: "
            f"dpmine budget init {table} --schema {schema_file} --cap EPSILON"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OwnerWarning)  # what a command prints may be passed on; `schema check` tells owners
        return open_table(
            table,
            schema=schema,
            ledger=path,
            witness=named_witness(),
            another_ledger=another_ledger_is_allowed(),
            version=version,
            engine=engine,
        )
