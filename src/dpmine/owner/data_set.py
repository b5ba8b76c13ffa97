"""The owner's handle on an opened table and its ledger: grants, revocations, statements."""

from __future__ import annotations

import warnings
from decimal import Decimal

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import DpmineWarning, RequestError
from dpmine.engines.opened import OpenedTable
from dpmine.facts.schema import Schema
from dpmine.kernel.door import Kernel
from dpmine.kernel.ledger.accounts import DATASET
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.samplers.laplace import NoiseSource
from dpmine.owner.desk import Desk
from dpmine.owner.ledgers import above_cap
from dpmine.owner.local_executor import LocalExecutor
from dpmine.owner.statements import statement_of
from dpmine.results.statements import Statement
from dpmine.tables.private_table import PrivateTable

Amount = Epsilon | str | int | float | Decimal


class DataSet:
    """An opened table with its ledger: the owner's handle."""

    def __init__(self, table: OpenedTable, ledger: Ledger, *, version: str, noise: NoiseSource | None = None) -> None:
        self._table = table
        self._ledger = ledger
        engine = table.engine(bytes.fromhex(ledger.fact("split_key")))
        kernel = Kernel(table.schema.domain, engine, ledger, version=version, encoding=table.encoding, noise=noise)
        self._desk = Desk(kernel, table.schema)

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
        return PrivateTable(LocalExecutor(self._desk, analyst, self.schema))

    def revoke(self, analyst: str) -> None:
        """End an analyst's access. What was spent stays spent."""
        self._ledger.revoke(analyst)

    def statement(self) -> Statement:
        """All grants and spendings, for the owner."""
        return statement_of(self._ledger, self.schema, self._desk.version)

    def close(self) -> None:
        """Close the ledger and the table's files. One that is dropped without this is closed when it is forgotten."""
        self._ledger.close()
        self._table.close()

    def __enter__(self) -> DataSet:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()
