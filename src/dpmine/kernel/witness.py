"""A witness: somebody elsewhere who remembers each head of a ledger, so that restoring the ledger and its anchor is noticed.

It is told each new head after the commit and before anything is released, and asked whenever the ledger is opened. One
that cannot be reached lets nothing out. Who the witness is, the owner says at every opening: a ledger from elsewhere must
not be able to name a command that runs here. Two kinds: a file on another disk, and a command that reaches another machine.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from dpmine.errors import LedgerError, LedgerTampered, RequestError
from dpmine.kernel.chain import append_line, complete_lines
from dpmine.kernel.private_files import make_private
from dpmine.queries import Head

COMMAND = "command:"
PATIENCE = 20.0  # seconds that a command may take
_LINE = re.compile(rb"([0-9a-f]{32}) (0|[1-9][0-9]{0,17}) ([0-9a-f]{64})")
_NEWEST = re.compile(rb"(0|[1-9][0-9]{0,17}) ([0-9a-f]{64})\s*")


class Witness(Protocol):
    """What a ledger asks of a witness. Every method raises a `LedgerError` if the witness cannot be reached."""

    def make(self) -> None:
        """Get ready for a ledger that is being made."""
        ...

    def heads(self, ledger: str) -> list[Head]:
        """The heads that it was told of a ledger: all, or only the newest."""
        ...

    def news(self, ledger: str) -> list[Head]:
        """What others told it about this ledger since it was last looked at, as far as it says so."""
        ...

    def tell(self, ledger: str, head: Head) -> list[Head]:
        """Make it remember a head; returns that one and what others told it meanwhile, as far as it says so."""
        ...


def witness_of(named: str | Path | Sequence[str] | None) -> Witness | None:
    """The witness that an owner names: the path of a file, or a command as a list or as text behind `command:`."""
    if named is None:
        return None
    if isinstance(named, str) and named.startswith(COMMAND):
        try:
            return CommandWitness(shlex.split(named.removeprefix(COMMAND)))
        except ValueError:
            raise RequestError(f"The witness {named!r} has a quote that is not closed.") from None
    if isinstance(named, Path) or (isinstance(named, str) and named):
        return FileWitness(Path(named))
    if isinstance(named, (list, tuple)):
        return CommandWitness(named)
    raise RequestError("A witness is the path of a file, or a command: a list such as ['ssh', 'archive', 'witness'].")


def unreachable() -> LedgerError:
    """One sentence for every reason: an analyst may see it."""
    return LedgerError("The ledger's witness cannot be reached. Nothing is answered; what was charged stays charged.")


class FileWitness:
    """An append-only file, best on another disk or machine: a line `id sequence digest` a head, of any number of ledgers."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()  # a later chdir must not move it
        self._read = 0  # everything before this byte was handed out

    def make(self) -> None:
        try:
            make_private(self.path)
        except OSError as error:
            raise LedgerError(f"The witness {str(self.path)!r} cannot be made: {error.strerror}.") from None

    def heads(self, ledger: str) -> list[Head]:
        if not self.path.is_file():
            raise LedgerError(f"There is no witness {str(self.path)!r}. Name the one that the ledger was made with.")
        self._read = 0
        return self.news(ledger)

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
            if parts[1] == ledger.encode():
                heads.append(Head(int(parts[2]), parts[3].decode()))
        self._read += content.rfind(b"\n") + 1
        return heads


class CommandWitness:
    """A command, run without a shell: `COMMAND tell ID SEQUENCE DIGEST` and `COMMAND ask ID`.

    `ask` prints `SEQUENCE DIGEST`, the newest head it was told of that ledger, or nothing. `tell` succeeds only when the
    head is safe, and must fail if it was told another digest for that sequence; heads may come out of order. Another exit
    code than 0, other output of `ask` or more than 20 seconds mean that the witness cannot be reached.
    """

    def __init__(self, command: Sequence[str]) -> None:
        if not command or not all(isinstance(part, str) for part in command) or not command[0]:
            raise RequestError("A witness's command is a list of texts, the program first.")
        self._command = list(command)

    def make(self) -> None:
        pass  # being asked shows that it can be reached

    def heads(self, ledger: str) -> list[Head]:
        printed = self._run("ask", ledger)
        if not printed.strip():
            return []
        newest = _NEWEST.fullmatch(printed)
        if newest is None:
            raise unreachable()
        return [Head(int(newest[1]), newest[2].decode())]

    def news(self, ledger: str) -> list[Head]:
        return []  # it refuses another digest for a sequence when it is told

    def tell(self, ledger: str, head: Head) -> list[Head]:
        self._run("tell", ledger, str(head.sequence), head.digest)
        return []

    def _run(self, *arguments: str) -> bytes:
        try:
            done = subprocess.run(
                [*self._command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=PATIENCE,
                check=True,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            raise unreachable() from None
        return done.stdout
