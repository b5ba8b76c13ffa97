"""The ledger's memory of itself: a hash chain over its log, and heads of it that somebody else has seen.

A hash chain shows an edited row but not a truncated tail or a restored backup, because an older chain is a valid chain. So
each new head is told to an anchor beside the ledger, and to a witness if there is one: a ledger behind them is refused.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from dpmine.base.errors import LedgerTampered
from dpmine.codes.answers import Head
from dpmine.kernel.ledger.store import Row

BEFORE_FIRST = "0" * 64


def digest_of(previous: str, sequence: int, entry: str) -> str:
    """The digest of a log row: it covers the row, its place and everything before it."""
    return hashlib.sha256(f"{previous}\n{sequence}\n{entry}".encode()).hexdigest()


def answer_hash(answer: Any) -> str:
    """What the log states of an answer's bytes; no hash at all for what is not bytes."""
    return hashlib.sha256(answer).hexdigest() if type(answer) is bytes else ""


def checked_chain(rows: Iterable[Row], *, first: int = 0, before: str = BEFORE_FIRST) -> Iterator[Row]:
    """The rows, each found to follow from the one before; `before` is the digest before the first of them."""
    for sequence, entry, digest in rows:
        if sequence != first or digest != digest_of(before, sequence, entry):
            raise LedgerTampered(f"The ledger's hash chain breaks at row {first}: it was edited outside dpmine.")
        yield sequence, entry, digest
        first, before = first + 1, digest


class Seen:
    """The heads that an anchor or a witness has seen, from a row on: a log must hold each of them."""

    def __init__(self, who: str, heads: Iterable[Head], since: int = 0) -> None:
        self.who = who
        self._digests: dict[int, str] = {}
        for head in heads:
            if head.sequence >= since and self._digests.setdefault(head.sequence, head.digest) != head.digest:
                raise self._another_row(head.sequence)

    @property
    def newest(self) -> int:
        return max(self._digests, default=-1)

    def check(self, row: Row) -> None:
        """Refuse a row in the place of the one that was seen."""
        if self._digests.get(row[0], row[2]) != row[2]:
            raise self._another_row(row[0])

    def check_end(self, last: int) -> None:
        """Refuse a log that ends before a row that was seen."""
        if self.newest > last:
            raise LedgerTampered(
                f"The ledger ends at row {last}, but its {self.who} has seen row {self.newest}: "
                "it was truncated or restored from a backup. Put the newest ledger file back."
            )

    def _another_row(self, sequence: int) -> LedgerTampered:
        return LedgerTampered(f"Row {sequence} of the ledger is not the one its {self.who} has seen.")
