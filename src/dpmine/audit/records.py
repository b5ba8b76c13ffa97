"""Finished rounds on disk, one line of JSON each: a full audit that was stopped goes on where it was.

Rounds of other code are set aside, never mixed in: the fingerprint is a hash of the package's own source.
"""

import hashlib
from pathlib import Path

from dpmine.audit.sampling import Drawn
from dpmine.base.line_files import LineFile


def source_fingerprint() -> str:
    """The same for the same code, whatever its version is called."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


class RoundFile(LineFile):
    """The rounds of one audit."""

    holds = "rounds"

    def read(self) -> list[Drawn]:
        try:
            return [Drawn.from_form(line["round"]) for line in self.lines()]
        except (ValueError, KeyError, TypeError):
            raise self.damaged() from None

    def append(self, drawn: Drawn) -> None:
        self.add({"round": drawn.form()})
