"""Finished cases of an experiment, as they are kept on disk."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dpmine.base.line_files import LineFile


@dataclass(frozen=True)
class Record:
    """What one algorithm measured at one point in one repetition; the seed tells which data it saw."""

    point: Mapping[str, Any]
    algorithm: str
    repetition: int
    seed: int
    measures: Mapping[str, float]


class RecordFile(LineFile):
    """The records of one experiment."""

    def read(self) -> list[Record]:
        try:
            return [
                Record(line["point"], line["algorithm"], line["repetition"], line["seed"], line["measures"])
                for line in self.lines()
            ]
        except KeyError:
            raise self.damaged() from None

    def append(self, record: Record) -> None:
        self.add(asdict(record))
