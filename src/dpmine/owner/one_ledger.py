"""One file, one ledger: beside each ledger lies a record of the files that it was opened with.

Two ledgers over one file would sell the same rows twice. So whoever opens files looks at the records of all ledgers in their
folders, in the folders above (where the ledger of a pattern lies) and in the ledger's own. No database is touched for it.

A record is an append-only file, a JSON object a line. A file is known again by its resolved path, or as the same file of the
disk under another name. What it holds is not looked at: a copy is another file.
"""

import json
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dpmine.base.errors import DataError, DpmineWarning, LedgerError, RequestError
from dpmine.facts.sources.files import matching_files
from dpmine.owner.head_files import append_line, complete_lines
from dpmine.owner.private_files import make_private, tighten

ENDING = ".files"
_WHERE_OPENED = 4  # frames from here up to whoever called dm.open


class KnownFile(NamedTuple):
    """A file as it was when it was opened."""

    path: str
    device: int
    inode: int
    size: int
    changed: int

    def is_now(self, other: "KnownFile") -> bool:
        """Whether another one, which is there now, is the same file: by its path, or by another name of it.

        The system gives the number of a removed file to a new one. So a number counts where the old name still has it (a
        hard link), or where size and time of the last change are as they were (a file that was renamed).
        """
        if self.path == other.path:
            return True
        if (self.device, self.inode) != (other.device, other.inode):
            return False
        return (self.size, self.changed) == (other.size, other.changed) or _is_at(self.path, self.device, self.inode)


def _is_at(path: str, device: int, inode: int) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == (device, inode)


def files_of(table: Any) -> tuple[KnownFile, ...]:
    """The files of a table, links followed; none where it is in memory, or where there are none to be read."""
    if not isinstance(table, (str, Path)):
        return ()
    try:
        paths = {os.path.realpath(path) for path in matching_files(table)}
        return tuple(_known(path) for path in sorted(paths))
    except (DataError, OSError, ValueError):
        return ()  # opening the table says what is wrong


def _known(path: str) -> KnownFile:
    status = os.stat(path)
    return KnownFile(path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass
class Record:
    """What the newest ledger of a name was opened with."""

    ledger: Path
    name: str = ""
    """The ledger's public id; empty where nothing was recorded."""
    dataset: str = ""
    files: set[KnownFile] = field(default_factory=set)
    beside: set[str] = field(default_factory=set)
    """The ids of the ledgers over the same files that its owner allowed."""
    is_whole: bool = True
    """Whether all of it could be read."""

    def takes(self, line: bytes) -> None:
        try:
            form = json.loads(line)
            name, dataset = form["ledger"], form["dataset"]
            files = {KnownFile(str(path), *map(int, numbers)) for path, *numbers in form["files"]}
            gone = {KnownFile(str(path), *map(int, numbers)) for path, *numbers in form["withdrawn"]}
            beside = {str(other) for other in form["beside"]}
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            self.is_whole = False
            return
        if name != self.name:  # another ledger was here before
            self.name, self.files, self.beside = str(name), set(), set()
        self.dataset = str(dataset)
        self.files = (self.files | files) - gone
        self.beside |= beside

    def shares(self, files: Iterable[KnownFile]) -> KnownFile | None:
        """One of the files that this ledger was opened with, too."""
        paths = {known.path for known in self.files}
        numbers: dict[tuple[int, int], list[KnownFile]] = {}
        for known in self.files:
            numbers.setdefault((known.device, known.inode), []).append(known)
        for file in files:
            same = numbers.get((file.device, file.inode), [])
            if file.path in paths or any(known.is_now(file) for known in same):
                return file
        return None


def record_of(ledger: Path) -> Record:
    """The record beside a ledger; an empty one where there is none."""
    record = Record(ledger)
    try:
        content = _place(ledger).read_bytes()
    except FileNotFoundError:
        return record
    except OSError:
        record.is_whole = False
        return record
    for line in complete_lines(content):
        record.takes(line)
    return record


def _place(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + ENDING)


class OneLedger:
    """The files that are being opened, and the ledger that they are opened with."""

    def __init__(self, ledger: Path, files: tuple[KnownFile, ...], beside: Path, *, another: bool) -> None:
        self._ledger = ledger.absolute()
        self._files = files
        self._another = another
        self._told: set[Path] = set()
        near = {self._ledger.parent.resolve(), beside.resolve(), *(Path(file.path).parent for file in files)}
        above = {folder for each in near for folder in each.parents} - near
        self._folders = [(folder, True) for folder in sorted(near)] + [(folder, False) for folder in sorted(above)]

    def look(self) -> None:
        """Before a ledger is made, so that none is left behind by a refusal."""
        if not self._another:
            for other in self._others(Record(self._ledger)):
                raise self._refusal(other)

    def record(self, name: str, dataset: str) -> None:
        """State the files in the ledger's record, unless another ledger has them.

        First stated, then looked again: of two that are opened at once at least one sees the other.
        """
        stated: set[KnownFile] = set()
        while True:
            own = record_of(self._ledger)
            if own.name != name:
                own = Record(self._ledger, name)
            others = list(self._others(own))
            if others and not self._another:
                if stated:
                    self._write(name, dataset, withdrawn=stated)
                raise self._refusal(others[0])
            new = set(self._files) - own.files
            if not (new or others):
                return
            for other in others:
                warnings.warn(self._doubt(other), DpmineWarning, stacklevel=_WHERE_OPENED)
            self._write(name, dataset, files=new, beside={other.name for other in others})
            stated |= new

    def _others(self, own: Record) -> Iterator[Record]:
        """The records of other ledgers that name one of the files, and that the owner did not allow."""
        for ledger, is_near in self._neighbours():
            if _is_same(ledger, self._ledger):
                continue
            record = record_of(ledger)
            if is_near and not record.is_whole and ledger not in self._told:
                self._told.add(ledger)
                warnings.warn(_unreadable(ledger), DpmineWarning, stacklevel=_WHERE_OPENED + 1)
            is_other = record.name not in {own.name, *own.beside} and own.name not in record.beside
            if is_other and record.shares(self._files) is not None:
                yield record

    def _neighbours(self) -> Iterator[tuple[Path, bool]]:
        """All ledgers that have a record, and whether their folder is one of those that were named."""
        for folder, is_near in self._folders:
            try:
                names = sorted(name for name in os.listdir(folder) if name.endswith(ENDING))
            except OSError:
                continue  # then no ledger of ours is used there either
            for name in names:
                ledger = folder / name.removesuffix(ENDING)
                if ledger.exists() or ledger.with_name(ledger.name + ".anchor").exists():
                    yield ledger, is_near

    def _write(
        self,
        name: str,
        dataset: str,
        *,
        files: Iterable[KnownFile] = (),
        beside: Iterable[str] = (),
        withdrawn: Iterable[KnownFile] = (),
    ) -> None:
        form = {
            "ledger": name,
            "dataset": dataset,
            "files": sorted(files),
            "beside": sorted(beside),
            "withdrawn": sorted(withdrawn),
        }
        place = _place(self._ledger)
        try:
            make_private(place)
            tighten(place)
            append_line(place, json.dumps(form).encode("ascii") + b"\n")
        except OSError as error:
            raise LedgerError(
                f"The record of the ledger's files {place.name!r} cannot be written: {error.strerror}."
            ) from None

    def _refusal(self, other: Record) -> RequestError:
        return RequestError(
            f"{self._shared(other)} is in the ledger {str(other.ledger)!r} of the data set {other.dataset!r} already, and a "
            "second ledger would sell the same rows twice: open it with that ledger and data set, or allow two budgets that "
            "add up with another_ledger=True (dpmine --another-ledger)."
        )

    def _doubt(self, other: Record) -> str:
        return (
            f"{self._shared(other)} is in the ledger {str(other.ledger)!r} of the data set {other.dataset!r}, too: what is "
            f"spent there and in {str(self._ledger)!r} adds up, and neither ledger counts both."
        )

    def _shared(self, other: Record) -> str:
        file = other.shares(self._files)
        return repr(file.path) if file is not None else "This file"


def _unreadable(ledger: Path) -> str:
    return (
        f"What files the ledger {str(ledger)!r} was opened with cannot be read, or not all of it: it is not known whether "
        f"it sells the same rows. If {ledger.name + ENDING!r} is damaged, remove it and open that ledger again."
    )


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
