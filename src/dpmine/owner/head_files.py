"""Append-only files of heads: the anchor beside a ledger, and a witness that is a file elsewhere.

Each head is one short line. A line that a crash or a full disk cut short is marked by the next one, and nobody relied on it.
"""

import errno
import os
import re
from io import FileIO
from pathlib import Path

from dpmine.base.errors import LedgerError, LedgerTampered
from dpmine.codes.answers import Head
from dpmine.owner.private_files import make_private, tighten

TORN = b" torn"  # ends a line that was cut short
_LINE = re.compile(rb"([0-9a-f]{32}) (0|[1-9][0-9]{0,17}) ([0-9a-f]{64})")


def unreachable() -> LedgerError:
    """One sentence for every reason that a witness cannot be asked or told: an analyst may see it."""
    return LedgerError("The ledger's witness cannot be reached. Nothing is answered; what was charged stays charged.")


class AnchorFile:
    """Beside the only ledger that it knows: a line `sequence digest` a head."""

    def __init__(self, ledger: Path) -> None:
        self.path = ledger.absolute().with_name(ledger.name + ".anchor")  # a later chdir must not move it

    def make(self) -> None:
        try:
            make_private(self.path)
        except OSError as error:
            raise LedgerError(f"The ledger's anchor cannot be written: {error.strerror}.") from None

    def tell(self, ledger: str, head: Head) -> list[Head]:
        try:
            append_line(self.path, f"{head.sequence} {head.digest}\n".encode())
        except OSError as error:
            raise LedgerError(f"The ledger's anchor cannot be written: {error.strerror}. Nothing is answered.") from None
        return []

    def news(self, ledger: str) -> list[Head]:
        return []  # nobody else tells it anything that the log does not hold

    def has_heads(self) -> bool:
        return self.path.exists() and bool(self.heads(""))

    def heads(self, ledger: str, since: int = 0) -> list[Head]:
        tighten(self.path)
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            raise LedgerTampered(
                f"The ledger's anchor {self.path.name} is missing. Put it back beside the ledger."
            ) from None
        except OSError as error:
            raise LedgerError(f"The ledger's anchor cannot be read: {error.strerror}.") from None
        try:
            return [_head_of(line) for line in complete_lines(content) if int(line.partition(b" ")[0]) >= since]
        except ValueError:
            raise LedgerTampered(f"The ledger's anchor {self.path.name} holds a line that is not a head.") from None


def _head_of(line: bytes) -> Head:
    sequence, digest = line.decode("ascii").split(" ")
    return Head(int(sequence), digest)


class FileWitness:
    """Best on another disk or machine: a line `id sequence digest` a head, of any number of ledgers."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()  # a later chdir must not move it
        self._read = 0  # everything before this byte was handed out

    def make(self) -> None:
        try:
            make_private(self.path)
        except OSError as error:
            raise LedgerError(f"The witness {str(self.path)!r} cannot be made: {error.strerror}.") from None

    def heads(self, ledger: str, since: int = 0) -> list[Head]:
        if not self.path.is_file():
            raise LedgerError(f"There is no witness {str(self.path)!r}. Name the one that the ledger was made with.")
        self._read = 0
        return self._new_heads(ledger, since)

    def tell(self, ledger: str, head: Head) -> list[Head]:
        try:
            append_line(self.path, f"{ledger} {head.sequence} {head.digest}\n".encode())
        except OSError:
            raise unreachable() from None
        news = self.news(ledger)
        if head not in news:
            raise LedgerTampered("The ledger's witness lost lines while it was in use.")
        return news

    def news(self, ledger: str) -> list[Head]:
        """What was written since we last looked: a copy of the ledger that is used elsewhere tells the same witness."""
        return self._new_heads(ledger, 0)

    def _new_heads(self, ledger: str, since: int) -> list[Head]:
        try:
            with open(self.path, "rb") as file:
                file.seek(self._read)
                content = file.read()
        except OSError:
            raise unreachable() from None
        heads = []
        for line in complete_lines(content):
            parts = _LINE.fullmatch(line)
            if parts is None:
                raise LedgerTampered("The ledger's witness holds a line that is not a head.")
            if parts[1] == ledger.encode() and int(parts[2]) >= since:
                heads.append(Head(int(parts[2]), parts[3].decode()))
        self._read += content.rfind(b"\n") + 1
        return heads


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
    """All lines but those that were cut short."""
    complete, _, _ = content.rpartition(b"\n")
    return [line for line in complete.split(b"\n") if not line.endswith(TORN)] if complete else []
