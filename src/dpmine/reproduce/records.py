"""Finished cases on disk, one line of JSON each, so that a run can be stopped at any moment and go on later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpmine.errors import DataError


@dataclass(frozen=True)
class Record:
    """What one algorithm measured at one point in one repetition; the seed tells which data it saw."""

    point: Mapping[str, Any]
    algorithm: str
    repetition: int
    seed: int
    measures: Mapping[str, float]


class RecordFile:
    """The records of one experiment. Those of other settings or another version are set aside, never mixed in."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        self._fingerprint = fingerprint

    def read(self) -> list[Record]:
        """The records so far. A last line that was torn by a crash is cut off, so that the next one starts clean."""
        if not self._path.exists():
            return []
        lines = self._whole_lines()
        prints = {str(line.get("fingerprint")) for line in lines}
        if prints - {self._fingerprint}:
            self._set_aside(sorted(prints)[0])
            return []
        return [_record(line, self._path) for line in lines]

    def append(self, record: Record) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"fingerprint": self._fingerprint, **asdict(record)}, ensure_ascii=False)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

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
            raise DataError(f"{str(self._path)!r} holds lines that are no records. Move it away and run again.")
        return lines

    def _set_aside(self, fingerprint: str) -> None:
        name = "".join(letter for letter in fingerprint if letter.isalnum())[:16]
        self._path.rename(self._path.with_name(f"{self._path.stem}.{name or 'other'}.jsonl"))


def _record(line: dict[str, Any], path: Path) -> Record:
    try:
        return Record(line["point"], line["algorithm"], line["repetition"], line["seed"], line["measures"])
    except KeyError:
        raise DataError(f"{str(path)!r} holds lines that are no records. Move it away and run again.") from None
