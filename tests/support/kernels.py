"""Kernels over encoded tables: the real one or a deliberately broken one, with what a test hands it."""

from __future__ import annotations

from typing import Any, TypeVar

from dpmine.engines.encoding import EncodedTable
from dpmine.engines.memory import MemoryEngine
from dpmine.kernel.door import Kernel
from dpmine.kernel.ledger.book import Ledger
from dpmine.owner.ledgers import book_at

K = TypeVar("K", bound=Kernel)
SPLIT_KEY = bytes(range(32))
UNTOUCHED = book_at(None, dataset="untouched", cap=10**9)
"""For kernels of which only what comes after the charge is watched."""


def kernel_over(table: EncodedTable, ledger: Ledger, kind: type[K], **sources: Any) -> K:
    counting = MemoryEngine(table, SPLIT_KEY)
    return kind(table.schema, counting, ledger, version="1", encoding=table.encoding, **sources)
