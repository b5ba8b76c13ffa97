"""The ledger's memory of itself: a hash chain over its log, and the chain's head kept outside the database.

A hash chain shows an edited row but not a truncated tail or a restored backup, because an older chain is a valid
chain. So each new head is also appended to an anchor file beside the database, and a ledger behind its anchor is refused.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable
from io import FileIO
from pathlib import Path

from dpmine.errors import LedgerError, LedgerTampered
from dpmine.kernel.private_files import make_private
from dpmine.queries import Head

BEFORE_FIRST = "0" * 64
TORN = b" torn"  # ends a line that a crash or a full disk cut short


def digest_of(previous: str, sequence: int, entry: str) -> str:
    """The digest of a log row: it covers the row, its place and everything before it."""
    return hashlib.sha256(f"{previous}\n{sequence}\n{entry}".encode()).hexdigest()


def check_chain(rows: Iterable[tuple[int, str, str]]) -> list[str]:
    """The digests of all rows, after checking that each follows from the one before."""
    digests: list[str] = []
    previous = BEFORE_FIRST
    for sequence, entry, digest in rows:
        if sequence != len(digests) or digest != digest_of(previous, sequence, entry):
            raise LedgerTampered(f"The ledger's hash chain breaks at row {len(digests)}: it was edited outside dpmine.")
        digests.append(digest)
        previous = digest
    if not digests:
        raise LedgerTampered("The ledger's log is empty: it was edited outside dpmine.")
    return digests


class Anchor:
    """An append-only file of heads (`sequence digest` a line)."""

    def __init__(self, ledger: Path) -> None:
        self.path = ledger.with_name(ledger.name + ".anchor")

    def append(self, head: Head) -> None:
        try:
            append_line(self.path, f"{head.sequence} {head.digest}\n".encode())
        except OSError as error:
            raise LedgerError(f"The ledger's anchor cannot be written: {error.strerror}. Nothing is answered.") from None

    def make(self) -> None:
        """Make the file before the ledger, so that a crash in between leaves no ledger without an anchor."""
        try:
            make_private(self.path)
        except OSError as error:
            raise LedgerError(f"The ledger's anchor cannot be written: {error.strerror}.") from None

    def has_heads(self) -> bool:
        return self.path.exists() and bool(self.heads())

    def heads(self) -> list[Head]:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            raise LedgerTampered(
                f"The ledger's anchor {self.path.name} is missing. Put it back beside the ledger."
            ) from None
        except OSError as error:
            raise LedgerError(f"The ledger's anchor cannot be read: {error.strerror}.") from None
        try:
            return [_head_of(line) for line in complete_lines(content)]
        except ValueError:
            raise LedgerTampered(f"The ledger's anchor {self.path.name} holds a line that is not a head.") from None


def _head_of(line: bytes) -> Head:
    sequence, digest = line.decode("ascii").split(" ")
    return Head(int(sequence), digest)


def append_line(path: Path, line: bytes) -> None:
    """Append one short line, durably, to a file that exists. Such appends do not tear each other on a local disk."""
    with open(path, "a+b", buffering=0, opener=_without_making) as file:
        if _ends_torn(file):
            line = TORN + b"\n" + line
        if file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())


def _without_making(path: str, flags: int) -> int:
    """A file that was taken away must be missed, not silently begun anew."""
    return os.open(path, flags & ~os.O_CREAT)


def _ends_torn(file: FileIO) -> bool:
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"


def complete_lines(content: bytes) -> list[bytes]:
    """All lines but those that a crash cut short, which nobody relied on."""
    complete, _, _ = content.rpartition(b"\n")
    return [line for line in complete.split(b"\n") if not line.endswith(TORN)] if complete else []


def check_seen(heads: Iterable[Head], digests: list[str], who: str) -> None:
    """Refuse a ledger that lacks a row its anchor or witness has seen, or has another row in its place."""
    for head in heads:
        if head.sequence >= len(digests):
            raise LedgerTampered(
                f"The ledger ends at row {len(digests) - 1}, but its {who} has seen row {head.sequence}: "
                "it was truncated or restored from a backup. Put the newest ledger file back."
            )
        if digests[head.sequence] != head.digest:
            raise LedgerTampered(f"Row {head.sequence} of the ledger is not the one its {who} has seen.")
