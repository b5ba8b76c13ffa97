"""Where ledgers lie, and opening them: a store of rows, the anchor beside it, and the witness that the owner names."""

import os
from collections.abc import Callable, Sequence
from glob import has_magic
from pathlib import Path
from typing import Any

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import LedgerError, LedgerTampered, RequestError
from dpmine.base.forking import leave_before_forks
from dpmine.budget.renewal import Renewal
from dpmine.facts.schema import Schema
from dpmine.kernel.ledger.accounts import DATASET
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.ledger.telling import Memory
from dpmine.owner.head_files import AnchorFile, FileWitness
from dpmine.owner.one_ledger import OneLedger, files_of
from dpmine.owner.private_files import make_private
from dpmine.owner.sqlite_store import SQLiteStore
from dpmine.owner.witnesses import witness_of


class Beside:
    """Says that a ledger lies beside the table's file, as far as there is one."""

    def __repr__(self) -> str:
        return "BESIDE_THE_FILE"


BESIDE_THE_FILE = Beside()


def open_ledger(
    schema: Schema,
    ledger: str | Path | None,
    *,
    cap: Epsilon | None = None,
    renewal: Renewal | None = None,
    witness: str | Path | Sequence[str] | None = None,
    create: bool = True,
) -> Ledger:
    """Open or make the ledger of a data set. It is bound to the name in the schema, not to a file name."""
    if not (renewal is None or isinstance(renewal, Renewal)):
        raise RequestError("A renewal is made by dm.Renewal.every(days, epsilon=...).")
    path = None if ledger is None else Path(ledger)
    if cap is None and create and path is not None and not path.exists() and not AnchorFile(path).has_heads():
        raise LedgerError(
            f"There is no ledger {str(path)!r} yet, and a new ledger needs a cap: the epsilon that all analysts together "
            "may ever spend. Give cap=..., or name the existing file with ledger=...."
        )
    return book_at(
        path,
        dataset=schema.name,
        cap=None if cap is None else cap.units,
        neighbours=schema.unit.neighbours,
        renewal=renewal,
        witness=witness_of(witness),
        create=create,
    )


def open_ledger_over(
    table: Any,
    schema: Schema,
    ledger: Path | None,
    *,
    another_ledger: bool = False,
    cap: Epsilon | None = None,
    renewal: Renewal | None = None,
    witness: str | Path | Sequence[str] | None = None,
) -> Ledger:
    """Open or make the ledger that a table's files are opened with, unless they have another one."""
    files = () if ledger is None else files_of(table)
    if ledger is None or not files:
        return open_ledger(schema, ledger, cap=cap, renewal=renewal, witness=witness)
    one = OneLedger(ledger, files, default_ledger(table, schema).parent, another=another_ledger)
    if not ledger.exists():
        one.look()
    book = open_ledger(schema, ledger, cap=cap, renewal=renewal, witness=witness)
    try:
        one.record(book.fact("id"), schema.name)
    except BaseException:
        book.close()
        raise
    return book


def book_at(
    path: Path | None,
    *,
    witness: Memory | None = None,
    create: bool = True,
    kind: Callable[..., Ledger] = Ledger,
    **facts: Any,
) -> Ledger:
    """The ledger in a file with its anchor beside it, or (path None) one in memory, which nobody else remembers."""
    if path is None:
        if witness is not None:
            raise RequestError("A ledger in memory has no witness: nothing of it can be restored.")
        return _across_forks(kind(SQLiteStore(None), **facts))
    anchor = AnchorFile(path)
    _check_elsewhere(witness, path, anchor)
    if not path.exists():
        _make_place(path, anchor, witness, create)
    return _across_forks(kind(SQLiteStore(path), anchor=anchor, witness=witness, create=create, **facts))


def _across_forks(ledger: Ledger) -> Ledger:
    """A ledger that steps aside while the process forks, as long as anybody holds it."""
    leave_before_forks(ledger)
    return ledger


def _check_elsewhere(witness: Memory | None, path: Path, anchor: AnchorFile) -> None:
    if isinstance(witness, FileWitness) and witness.path.resolve() in {path.resolve(), anchor.path.resolve()}:
        raise RequestError("A witness is a file of its own, best on another disk: not the ledger or its anchor.")


def _make_place(path: Path, anchor: AnchorFile, witness: Memory | None, create: bool) -> None:
    """An empty file for a ledger that is not there, unless one is missing."""
    if create and witness is not None:  # before any file is made, so that none is left behind if it cannot be reached
        witness.make()
        witness.heads(os.urandom(16).hex())
    if anchor.has_heads() and not path.exists():
        raise LedgerTampered(f"The ledger {path.name} is missing, but its anchor is there. Put the ledger back.")
    if not create:
        raise LedgerError(f"There is no ledger {str(path)!r}. Make one with: dpmine budget init.")
    if not path.absolute().parent.is_dir():
        raise LedgerError(f"The folder of the ledger {str(path)!r} does not exist.")
    try:
        make_private(path)
    except OSError as error:
        raise LedgerError(f"The ledger {str(path)!r} cannot be made: {error.strerror}.") from None


def ledger_of(table: Any, schema: Schema, ledger: str | Path | Beside | None) -> Path | None:
    """The ledger's file as asked for, or the one beside the table's file; None for a ledger in memory."""
    if isinstance(ledger, Beside):
        return default_ledger(table, schema) if isinstance(table, (str, Path)) else None
    return None if ledger is None else Path(ledger)


def default_ledger(table: str | Path, schema: Schema) -> Path:
    """Beside the data, named after the data set: neither another file name nor a link to it resets the budget.

    For a pattern such as lake/*/*.parquet that is the folder before its first part with a wildcard.
    """
    path = Path(table).absolute()
    if not path.exists():
        wild = [place for place, part in enumerate(path.parts) if has_magic(part)]
        path = Path(*path.parts[: wild[0] + 1]) if wild else path
    folder = path.resolve().parent if path.exists() else path.parent.resolve()
    return folder / f"{schema.name}.ledger.db"


def above_cap(ledger: Ledger, analyst: str, amount: Epsilon) -> str | None:
    """What to say where an analyst was granted more than all together may ever spend; None if that is not so."""
    cap = Epsilon(ledger.account(DATASET).allotment)
    if amount.units <= cap.units or ledger.fact("renewal"):  # a cap that grows may reach it
        return None
    return (
        f"{analyst!r} is granted epsilon {amount}, but the cap on what all analysts together may ever spend is {cap}: "
        f"beyond it every question is refused. Grant at most {cap}."
    )
