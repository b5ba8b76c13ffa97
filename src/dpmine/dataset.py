"""The wiring: an owner opens a table, grants budgets, and hands out private tables. Alone imports kernel and engines."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.memory import MemoryEngine
from dpmine.engines.persons import capped
from dpmine.epsilon import Epsilon
from dpmine.errors import DpmineWarning, LedgerError, RequestError
from dpmine.frames import FileSource, reading
from dpmine.kernel.accounts import Account
from dpmine.kernel.chain import Anchor
from dpmine.kernel.door import Engine, Kernel
from dpmine.kernel.ledger import Ledger
from dpmine.kernel.noise import NoiseSource
from dpmine.kernel.replay import DATASET
from dpmine.kernel.witness import witness_of
from dpmine.queries import Preview, Query, Reply
from dpmine.renewal import Renewal
from dpmine.schema import Schema
from dpmine.statements import Allotment, Spending, Statement
from dpmine.tables import PrivateTable, install_opener
from dpmine.wire import to_wire

if TYPE_CHECKING:
    from dpmine.engines.duckdb import DuckDBTable

Amount = Epsilon | str | int | float | Decimal


class Beside:
    """Says that a ledger lies beside the table's file, as far as there is one."""

    def __repr__(self) -> str:
        return "BESIDE_THE_FILE"


BESIDE_THE_FILE = Beside()


def open(  # noqa: A001 (dm.open is the name users type)
    table: Any,
    *,
    schema: Schema | str | Path,
    ledger: str | Path | Beside | None = BESIDE_THE_FILE,
    cap: Amount | None = None,
    renewal: Renewal | None = None,
    witness: str | Path | Sequence[str] | None = None,
    version: str = "1",
    noise: str = "exact",
    engine: str = "memory",
    memory_limit: str | None = None,
) -> DataSet:
    """Open a table as its owner.

    table    a CSV or Parquet file, or a pandas, Polars or Arrow frame
    schema   the public facts: a Schema or its TOML file
    ledger   the ledger's file; left out it lies beside the table's file and is named after the data set, as on the command
             line, so that no second session starts with an unspent budget. None keeps it in memory, for this process only,
             and so does leaving it out where there is no file but a frame
    cap      the epsilon that all analysts together may ever spend; needed for a new ledger, an existing one knows its cap
    renewal  how much the cap grows every so many days (`dm.Renewal.every(365, epsilon=1)`); stated once, with a new ledger
    witness  who remembers the ledger's heads elsewhere, so that restored backups are noticed: a file on another disk, or a
             command as a list such as ["ssh", "archive", "witness"]; named with a new ledger, and at every opening after
    version  the owner's label of this state of the data; another label is another root of the odometer, and roots add
    noise    "exact" (ours) or "opendp"
    engine   "memory" (rows encoded in memory) or "duckdb" (rows stay in their files, which may be larger than memory)
    memory_limit   what DuckDB may use, such as "2GB"
    """
    facts = Schema.load(schema)
    if not isinstance(version, str) or not 1 <= len(version) <= 200 or not version.isprintable():
        raise RequestError("The version must be a label of 1 to 200 printable characters.")
    if isinstance(table, EncodedTable) and table.schema != facts:
        raise RequestError("This table was encoded under another schema. Open it with the schema that it was encoded under.")
    source = noise_source(noise)
    with ExitStack() as if_it_fails:
        opened = table if isinstance(table, EncodedTable) else open_table(table, facts, engine, memory_limit)
        if_it_fails.callback(close_table, opened)
        book = open_ledger(facts, ledger_of(table, facts, ledger), cap=cap, renewal=renewal, witness=witness)
        if_it_fails.callback(book.close)
        data = DataSet(opened, book, version=version, noise=source)
        if_it_fails.pop_all()
    return data


def open_table(table: Any, schema: Schema, engine: str, memory_limit: str | None) -> EncodedTable | DuckDBTable:
    """Read a table for one of the engines."""
    if engine == "memory":
        with reading(table) as source:
            return encode(source, schema)
    if engine != "duckdb":
        raise RequestError(f"engine must be 'memory' or 'duckdb'. Got {engine!r} instead.")
    if not isinstance(table, (str, Path)):
        raise RequestError("The DuckDB engine reads files: give a path or a pattern such as 'lake/*.parquet'.")
    from dpmine.engines.duckdb import DuckDBTable

    files = FileSource(table, keep_in_files=True, memory_limit=memory_limit)
    try:
        return DuckDBTable(schema, files)
    except BaseException:
        files.close()
        raise


def close_table(table: EncodedTable | DuckDBTable) -> None:
    """Let go of a table's files; one that is encoded in memory holds none."""
    if not isinstance(table, EncodedTable):
        table.source.close()


def engine_of(table: EncodedTable | DuckDBTable, split_key: bytes) -> Engine:
    """The engine that answers for an opened table."""
    if isinstance(table, EncodedTable):
        return MemoryEngine(capped(table, split_key), split_key)
    from dpmine.engines.duckdb import DuckDBEngine

    return DuckDBEngine(table, split_key)


def open_ledger(
    schema: Schema,
    ledger: str | Path | None,
    *,
    cap: Amount | None = None,
    renewal: Renewal | None = None,
    witness: str | Path | Sequence[str] | None = None,
    create: bool = True,
) -> Ledger:
    """Open or make the ledger of a data set. It is bound to the name in the schema, not to a file name."""
    units = None if cap is None else Epsilon.parse(cap, name="cap").units
    path = None if ledger is None else Path(ledger)
    if units is None and create and path is not None and not path.exists() and not Anchor(path).has_heads():
        raise LedgerError(
            f"There is no ledger {str(path)!r} yet, and a new ledger needs a cap: the epsilon that all analysts together "
            "may ever spend. Give cap=..., or name the existing file with ledger=...."
        )
    return Ledger(
        path,
        dataset=schema.name,
        cap=units,
        neighbours=schema.unit.neighbours,
        renewal=renewal,
        witness=witness_of(witness),
        create=create,
    )


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


def noise_source(name: str) -> NoiseSource | None:
    """The provider of that name; None for the kernel's own exact noise."""
    if name == "exact":
        return None
    if name == "opendp":
        from dpmine.kernel.opendp_noise import OpenDPNoise

        return OpenDPNoise()
    raise RequestError(f"noise must be 'exact' or 'opendp'. Got {name!r} instead.")


class DataSet:
    """An opened table with its ledger: the owner's handle."""

    def __init__(
        self, table: EncodedTable | DuckDBTable, ledger: Ledger, *, version: str, noise: NoiseSource | None = None
    ) -> None:
        self._table = table
        self._ledger = ledger
        engine = engine_of(table, bytes.fromhex(ledger.fact("split_key")))
        self._kernel = Kernel(table.schema, engine, ledger, version=version, encoding=table.encoding, noise=noise)

    @property
    def schema(self) -> Schema:
        return self._table.schema

    def grant(self, analyst: str, *, epsilon: Amount) -> PrivateTable:
        """Let an analyst spend up to `epsilon` in all, and return what to hand over. Granting again sets, not adds.

        More than the cap may be granted, but a warning says that it can never be spent, unless the cap grows.
        """
        amount = Epsilon.parse(epsilon)
        if (doubt := above_cap(self._ledger, analyst, amount)) is not None:
            warnings.warn(doubt, DpmineWarning, stacklevel=2)  # first: where warnings are errors, nothing was granted
        self._ledger.grant(analyst, amount.units)
        return self.private(analyst)

    def private(self, analyst: str) -> PrivateTable:
        """The private table of an analyst who has a grant."""
        if analyst == DATASET:
            raise RequestError("An analyst needs a name.")
        self._ledger.account(analyst)
        return PrivateTable(LocalExecutor(self._kernel, analyst))

    def revoke(self, analyst: str) -> None:
        """End an analyst's access. What was spent stays spent."""
        self._ledger.revoke(analyst)

    def statement(self) -> Statement:
        """All grants and spendings, for the owner."""
        return statement_of(self._ledger, self._kernel.schema, self._kernel.version)

    def close(self) -> None:
        """Close the ledger and the table's files. One that is dropped without this is closed when it is forgotten."""
        self._ledger.close()
        close_table(self._table)

    def __enter__(self) -> DataSet:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()


def above_cap(ledger: Ledger, analyst: str, amount: Epsilon) -> str | None:
    """What to say where an analyst was granted more than all together may ever spend; None if that is not so."""
    cap = Epsilon(ledger.account(DATASET).allotment)
    if amount.units <= cap.units or ledger.fact("renewal"):  # a cap that grows may reach it
        return None
    return (
        f"{analyst!r} is granted epsilon {amount}, but the cap on what all analysts together may ever spend is {cap}: "
        f"beyond it every question is refused. Grant at most {cap}."
    )


class LocalExecutor:
    """Hands an analyst's queries to the kernel in this process."""

    def __init__(self, kernel: Kernel, analyst: str) -> None:
        self._kernel = kernel
        self._analyst = analyst

    @property
    def schema(self) -> Schema:
        return self._kernel.schema

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        return self._kernel.answer(to_wire(query), analyst=self._analyst, key=key)

    def preview(self, query: Query) -> Preview:
        return self._kernel.preview(to_wire(query), analyst=self._analyst)

    def remaining(self) -> Epsilon:
        return Epsilon(self._kernel.ledger.account(self._analyst).remaining)

    def statement(self) -> Statement:
        return statement_of(self._kernel.ledger, self._kernel.schema, self._kernel.version, self._analyst)


def statement_of(ledger: Ledger, schema: Schema, version: str, analyst: str | None = None) -> Statement:
    """The ledger in plain sentences: all of it for the owner, an analyst's own part for an analyst."""
    whole = ledger.account(DATASET)
    entries = ledger.entries()
    reserved = [entry for entry in entries if entry["do"] == "reserve" and analyst in (None, entry["analyst"])]
    answered = {(entry["analyst"], entry["key"]) for entry in entries if entry["do"] == "answer"}
    accounts = ledger.accounts() if analyst is None else [ledger.account(analyst)]
    return Statement(
        dataset=ledger.fact("dataset"),
        version=version,
        currency=ledger.fact("currency"),
        neighbours=ledger.fact("neighbours"),
        unit=schema.unit.name,
        renewal=ledger.fact("renewal"),
        schema_drafted=schema.drafted or any(entry["drafted"] for entry in reserved),
        cap=Epsilon(whole.allotment),
        dataset_spent=Epsilon(whole.spent) if analyst is None else None,
        allotments=tuple(_allotment(account) for account in accounts),
        spendings=tuple(_spending(entry, answered) for entry in reserved),
    )


def _allotment(account: Account) -> Allotment:
    return Allotment(account.name, Epsilon(account.allotment), Epsilon(account.spent), account.revoked)


def _spending(entry: dict[str, Any], answered: set[tuple[str, str]]) -> Spending:
    who, key = entry["analyst"], entry["key"]
    return Spending(who, entry["what"], Epsilon(entry["cost"][0]), entry["at"], (who, key) in answered)


@contextmanager
def _open_in_memory(table: Any, schema: Schema, epsilon: Epsilon) -> Iterator[PrivateTable]:
    with open(table, schema=schema, ledger=None, cap=epsilon) as data:
        yield data.grant("fit", epsilon=epsilon)


install_opener(_open_in_memory)
