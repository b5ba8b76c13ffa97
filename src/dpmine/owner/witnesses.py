"""Who an owner names as a witness: a file on another disk, or a command that reaches another machine.

The owner says so at every opening: a ledger from elsewhere must not be able to name a command that runs here.
"""

import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dpmine.base.errors import RequestError
from dpmine.codes.answers import Head
from dpmine.kernel.ledger.telling import Memory
from dpmine.owner.head_files import FileWitness, unreachable

COMMAND = "command:"
PATIENCE = 20.0  # seconds that a command may take
_NEWEST = re.compile(rb"(0|[1-9][0-9]{0,17}) ([0-9a-f]{64})\s*")


def witness_of(named: str | Path | Sequence[str] | None) -> Memory | None:
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

    def heads(self, ledger: str, since: int = 0) -> list[Head]:
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
