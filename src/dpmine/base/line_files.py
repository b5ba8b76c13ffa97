"""Finished pieces of long work on disk, one line of JSON each: a run can be stopped at any moment and go on later."""

import json
from pathlib import Path
from typing import Any

from dpmine.base.errors import DataError


class LineFile:
    """The lines of one run. Those of another fingerprint are set aside, never mixed in."""

    holds = "records"
    """What a line is, for the sentence about one that is none."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        self._fingerprint = fingerprint

    def lines(self) -> list[dict[str, Any]]:
        """All so far. A last line that was torn by a crash is cut off, so that the next one starts clean."""
        if not self._path.exists():
            return []
        lines = self._whole_lines()
        prints = {str(line.get("fingerprint")) for line in lines}
        if prints - {self._fingerprint}:
            self._set_aside(sorted(prints - {self._fingerprint})[0])
            return []
        return lines

    def add(self, form: dict[str, Any]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"fingerprint": self._fingerprint, **form}, ensure_ascii=False)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def damaged(self) -> DataError:
        """What to say of a line that is none of ours."""
        return DataError(f"{str(self._path)!r} holds lines that are no {self.holds}. Move it away and run again.")

    def _whole_lines(self) -> list[dict[str, Any]]:
        stored = self._path.read_bytes()
        whole = stored[: stored.rfind(b"\n") + 1]
        if len(whole) < len(stored):
            with self._path.open("rb+") as file:
                file.truncate(len(whole))
        try:
            lines = [json.loads(line) for line in whole.splitlines()]
        except ValueError:
            lines = [None]
        if not all(isinstance(line, dict) for line in lines):
            raise self.damaged()
        return lines

    def _set_aside(self, fingerprint: str) -> None:
        name = "".join(letter for letter in fingerprint if letter.isalnum())[:16]
        self._path.rename(self._path.with_name(f"{self._path.stem}.{name or 'other'}.jsonl"))
