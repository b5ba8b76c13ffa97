"""Kernels over encoded tables: the real one or a deliberately broken one, with what a test hands it."""

from __future__ import annotations

from typing import Any, TypeVar

from dpmine.codes.queries import ResolvedQuery
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.memory import MemoryEngine
from dpmine.facts.facts import Facts
from dpmine.kernel.door import Kernel
from dpmine.kernel.ledger.book import Ledger
from dpmine.language.queries import Query, resolve
from dpmine.owner.desk import Desk
from dpmine.owner.ledgers import book_at

K = TypeVar("K", bound=Kernel)
SPLIT_KEY = bytes(range(32))
UNTOUCHED = book_at(None, dataset="untouched", cap=10**9)
"""For kernels of which only what comes after the charge is watched."""


class Watching(Kernel):
    """A kernel that tests look into, with the schema that they ask in."""

    schema: Facts

    def plan(self, query: Query) -> ResolvedQuery:
        plan = resolve(query, self.schema)
        plan.check(self.domain)
        return plan


def kernel_over(table: EncodedTable, ledger: Ledger, kind: type[K], **sources: Any) -> K:
    counting = MemoryEngine(table, SPLIT_KEY)
    kernel = kind(table.schema.domain, counting, ledger, version="1", encoding=table.encoding, **sources)
    if isinstance(kernel, Watching):
        kernel.schema = table.schema
    return kernel


def desk_over(table: EncodedTable, ledger: Ledger, kind: type[Kernel] = Kernel, **sources: Any) -> Desk:
    """A desk before such a kernel, for queries in names."""
    return Desk(kernel_over(table, ledger, kind, **sources), table.schema)
