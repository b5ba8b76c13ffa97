"""Opening a table as its owner: the wiring that alone joins kernel and engines."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.budget.renewal import Renewal
from dpmine.engines.registry import open_table
from dpmine.facts.schema import Schema
from dpmine.kernel.samplers.laplace import NoiseSource
from dpmine.owner.data_set import Amount, DataSet
from dpmine.owner.ledgers import BESIDE_THE_FILE, Beside, ledger_of, open_ledger_over
from dpmine.owner.opendp_noise import OpenDPNoise
from dpmine.tables.opening import install_opener
from dpmine.tables.private_table import PrivateTable


def open(  # noqa: A001 (dm.open is the name users type)
    table: Any,
    *,
    schema: Schema | str | Path,
    ledger: str | Path | Beside | None = BESIDE_THE_FILE,
    cap: Amount | None = None,
    renewal: Renewal | None = None,
    witness: str | Path | Sequence[str] | None = None,
    another_ledger: bool = False,
    version: str = "1",
    noise: str = "exact",
    engine: str = "memory",
    memory_limit: str | None = None,
) -> DataSet:
    """Open a table as its owner.

    table    a CSV, TSV, JSON lines, Excel or Parquet file, or a pandas, Polars or Arrow frame
    schema   the public facts: a Schema or its TOML file
    ledger   the ledger's file; left out it lies beside the table's file and is named after the data set, as on the command
             line, so that no second session starts with an unspent budget. None keeps it in memory, for this process only,
             and so does leaving it out where there is no file but a frame
    cap      the epsilon that all analysts together may ever spend; needed for a new ledger, an existing one knows its cap
    renewal  how much the cap grows every so many days (`dm.Renewal.every(365, epsilon=1)`); stated once, with a new ledger
    witness  who remembers the ledger's heads elsewhere, so that restored backups are noticed: a file on another disk, or a
             command as a list such as ["ssh", "archive", "witness"]; named with a new ledger, and at every opening after
    another_ledger   allows a second ledger over files that have one already, which is refused otherwise: what is spent in
             both adds up, and neither ledger counts that. It is remembered, so once is enough
    version  the owner's label of this state of the data; another label is another root of the odometer, and roots add
    noise    "exact" (ours) or "opendp"
    engine   "memory" (rows encoded in memory) or "duckdb" (rows stay in their files, which may be larger than memory)
    memory_limit   what DuckDB may use, such as "2GB"
    """
    facts = Schema.load(schema)
    if not isinstance(version, str) or not 1 <= len(version) <= 200 or not version.isprintable():
        raise RequestError("The version must be a label of 1 to 200 printable characters.")
    source = noise_source(noise)
    most = None if cap is None else Epsilon.parse(cap, name="cap")
    with ExitStack() as if_it_fails:
        opened = open_table(table, facts, engine, memory_limit)
        if_it_fails.callback(opened.close)
        path = ledger_of(table, facts, ledger)
        book = open_ledger_over(
            table, facts, path, another_ledger=another_ledger, cap=most, renewal=renewal, witness=witness
        )
        if_it_fails.callback(book.close)
        data = DataSet(opened, book, version=version, noise=source)
        if_it_fails.pop_all()
    return data


def noise_source(name: str) -> NoiseSource | None:
    """The provider of that name; None for the kernel's own exact noise."""
    if name == "exact":
        return None
    if name == "opendp":
        return OpenDPNoise()
    raise RequestError(f"noise must be 'exact' or 'opendp'. Got {name!r} instead.")


@contextmanager
def _open_in_memory(table: Any, schema: Schema, epsilon: Epsilon) -> Iterator[PrivateTable]:
    with open(table, schema=schema, ledger=None, cap=epsilon) as data:
        yield data.grant("fit", epsilon=epsilon)


install_opener(_open_in_memory)
