"""The wiring: an owner opens a table, grants budgets, and hands out private tables. Alone imports kernel and engines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.memory import MemoryEngine
from dpmine.engines.persons import capped
from dpmine.epsilon import Epsilon
from dpmine.errors import RequestError
from dpmine.frames import FileSource, reading
from dpmine.kernel.accounts import Account
from dpmine.kernel.door import Engine, Kernel
from dpmine.kernel.ledger import Ledger
from dpmine.kernel.noise import NoiseSource
from dpmine.kernel.replay import DATASET
from dpmine.queries import Preview, Query, Reply
from dpmine.renewal import Renewal
from dpmine.schema import Schema
from dpmine.statements import Allotment, Spending, Statement
from dpmine.tables import PrivateTable, install_opener

if TYPE_CHECKING:
    from dpmine.engines.duckdb import DuckDBTable

Amount = Epsilon | str | int | float | Decimal


def open(  # noqa: A001 (dm.open is the name users type)
    table: Any,
    *,
    schema: Schema | str | Path,
    ledger: str | Path | None = None,
    cap: Amount | None = None,
    renewal: Renewal | None = None,
    version: str = "1",
    noise: str = "exact",
    engine: str = "memory",
    memory_limit: str | None = None,
) -> DataSet:
    """Open a table as its owner.

    table    a CSV or Parquet file, or a pandas, Polars or Arrow frame
    schema   the public facts: a Schema or its TOML file
    ledger   the ledger's file; None keeps it in memory, for this process only
    cap      the epsilon that all analysts together may ever spend; needed for a new ledger
    renewal  how much the cap grows every so many days (`dm.Renewal.every(365, epsilon=1)`); stated once, with a new ledger
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
        book = open_ledger(facts, ledger, cap=cap, renewal=renewal)
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
    create: bool = True,
) -> Ledger:
    """Open or make the ledger of a data set. It is bound to the name in the schema, not to a file name."""
    units = None if cap is None else Epsilon.parse(cap, name="cap").units
    return Ledger(
        None if ledger is None else Path(ledger),
        dataset=schema.name,
        cap=units,
        neighbours=schema.unit.neighbours,
        renewal=renewal,
        create=create,
    )


def default_ledger(table: str | Path, schema: Schema) -> Path:
    """Beside the data, named after the data set: renaming the data file does not reset the budget."""
    return Path(table).absolute().parent / f"{schema.name}.ledger.db"


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
        """Let an analyst spend up to `epsilon` in all, and return what to hand over. Granting again sets, not adds."""
        self._ledger.grant(analyst, Epsilon.parse(epsilon).units)
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


class LocalExecutor:
    """Hands an analyst's queries to the kernel in this process."""

    def __init__(self, kernel: Kernel, analyst: str) -> None:
        self._kernel = kernel
        self._analyst = analyst

    @property
    def schema(self) -> Schema:
        return self._kernel.schema

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        return self._kernel.answer(query, analyst=self._analyst, key=key)

    def preview(self, query: Query) -> Preview:
        return self._kernel.preview(query, analyst=self._analyst)

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
    with open(table, schema=schema, cap=epsilon) as data:
        yield data.grant("fit", epsilon=epsilon)


install_opener(_open_in_memory)
