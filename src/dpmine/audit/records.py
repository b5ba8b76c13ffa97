"""Finished rounds on disk, one line of JSON each: a full audit that was stopped goes on where it was.

Rounds of other code are set aside, never mixed in: the fingerprint is a hash of the package's own source.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from dpmine.audit.sampling import Drawn
from dpmine.errors import DataError


def source_fingerprint() -> str:
    """The same for the same code, whatever its version is called."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


class RoundFile:
    """The rounds of one audit."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        self._fingerprint = fingerprint

    def read(self) -> list[Drawn]:
        """The rounds so far. A last line that was torn by a crash is cut off, so that the next one starts clean."""
        if not self._path.exists():
            return []
        stored = self._path.read_bytes()
        whole = stored[: stored.rfind(b"\n") + 1]
        if len(whole) < len(stored):
            with self._path.open("rb+") as file:
                file.truncate(len(whole))
        try:
            lines: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]
            others = {line["fingerprint"] for line in lines} - {self._fingerprint}
            if others:
                self._path.rename(self._path.with_name(f"{self._path.stem}.{sorted(others)[0]}.jsonl"))
                return []
            return [Drawn.from_form(line["round"]) for line in lines]
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{str(self._path)!r} holds lines that are no rounds. Move it away and run again.") from None

    def append(self, drawn: Drawn) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"fingerprint": self._fingerprint, "round": drawn.form()}) + "\n")
