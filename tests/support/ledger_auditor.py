"""A second opinion on a ledger file: reads it with plain SQLite and recomputes everything from the log by brute force.

Shares no code with the ledger. The odometer is recomputed from its definition, over all charges so far, at every row.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DATASET = ""


class Tree:
    """All charges below one view, added up in place: own units, `where` views, partitions into cells."""

    def __init__(self) -> None:
        self.own = 0
        self.wheres: dict[str, Tree] = {}
        self.partitions: dict[str, dict[str, Tree]] = {}

    def add(self, form: list[Any]) -> None:
        """A charge as the log has it: (parent, kind, name, own units) of each node, parents first."""
        found: list[Any] = []
        for parent, kind, name, own in form:
            if kind == "partition":
                found.append(found[parent].partitions.setdefault(name, {}))
                assert own == 0, "a partition was charged as if it were a view"
                continue
            siblings = {"where": lambda above: above.wheres, "cell": lambda above: above}
            node = self if kind == "view" else siblings[kind](found[parent]).setdefault(name, Tree())
            node.own += own
            found.append(node)

    def total(self) -> int:
        """The definition: own queries, plus all `where` views, plus for each partition its dearest cell."""
        parts = [max(cell.total() for cell in cells.values()) for cells in self.partitions.values()]
        return self.own + sum(inner.total() for inner in self.wheres.values()) + sum(parts)


@dataclass
class Book:
    """One account: what it may spend, and its trees by root."""

    allotment: int
    revoked: bool = False
    roots: dict[str, Tree] = field(default_factory=dict)

    def total(self) -> int:
        return sum(tree.total() for tree in self.roots.values())


@dataclass
class Audit:
    """What the log says, after everything was found to agree."""

    books: dict[str, Book]
    digests: list[str]
    entries: list[dict[str, Any]]
    charged: dict[tuple[str, str], int]
    answers: dict[tuple[str, str], str]

    def spent(self, analyst: str = DATASET) -> int:
        return self.books[analyst].total()

    @property
    def unanswered(self) -> set[tuple[str, str]]:
        return set(self.charged) - set(self.answers)

    def check_released(self, sequence: int, digest: str, sha256: str) -> None:
        """An answer that somebody holds must stand in the ledger, at its row, after its charge."""
        assert sha256 in self.answers.values(), "bytes were released that the ledger does not hold"
        assert self.digests[sequence] == digest, f"row {sequence} is not the row that was released"
        entry = self.entries[sequence]
        assert entry["do"] == "answer", f"row {sequence} is no answer"
        assert entry["sha256"] == sha256, f"the ledger holds other bytes than were released from row {sequence}"
        charges = [
            row
            for row, earlier in enumerate(self.entries[:sequence])
            if earlier["do"] == "reserve" and (earlier["analyst"], earlier["key"]) == (entry["analyst"], entry["key"])
        ]
        assert len(charges) == 1, f"the answer of row {sequence} has {len(charges)} charges before it"


def audit(path: Path) -> Audit:
    """Recompute a ledger from its log and assert that what is kept beside it agrees."""
    with closing(sqlite3.connect(path, timeout=60)) as database:
        database.execute("BEGIN")
        log = database.execute("SELECT sequence, entry, digest FROM log ORDER BY sequence").fetchall()
        kept = database.execute("SELECT sequence, answer FROM answers").fetchall()
        checkpoints = database.execute("SELECT sequence, text FROM checkpoints ORDER BY sequence").fetchall()
        database.execute("COMMIT")
    digests = _chain(log)
    entries = [json.loads(entry) for _, entry, _ in log]
    books, charged, answers = _replay(entries)
    _check_answers(entries, kept)
    _check_checkpoints(entries, checkpoints)
    _check_anchor(path, digests)
    return Audit(books, digests, entries, charged, answers)


def _chain(log: list[tuple[int, str, str]]) -> list[str]:
    digests: list[str] = []
    for row, (sequence, entry, digest) in enumerate(log):
        before = digests[-1] if digests else "0" * 64
        assert sequence == row, f"row {row} is missing"
        assert hashlib.sha256(f"{before}\n{sequence}\n{entry}".encode()).hexdigest() == digest, f"row {row} was edited"
        digests.append(digest)
    return digests


def _replay(entries: list[dict[str, Any]]) -> tuple[dict[str, Book], dict[tuple[str, str], int], dict[tuple[str, str], str]]:
    books: dict[str, Book] = {}
    charged: dict[tuple[str, str], int] = {}
    answers: dict[tuple[str, str], str] = {}
    for entry in entries:
        if entry["do"] == "create":
            books[DATASET] = Book(entry["cap"])
        elif entry["do"] == "grant":
            book = books.setdefault(entry["analyst"], Book(0))
            book.allotment, book.revoked = entry["units"], False
        elif entry["do"] == "revoke":
            books[entry["analyst"]].revoked = True
        elif entry["do"] == "reserve":
            request = (entry["analyst"], entry["key"])
            assert request not in charged, f"{request} was charged twice"
            charged[request] = _charge(books, entry)
        elif entry["do"] == "answer":
            request = (entry["analyst"], entry["key"])
            assert request in charged, f"{request} was answered before it was charged"
            assert request not in answers, f"{request} was answered twice"
            answers[request] = entry["sha256"]
        elif entry["do"] != "checkpoint":
            assert entry["do"] == "resume", f"an entry does {entry['do']!r}"
            assert (entry["analyst"], entry["key"]) in charged, "a request was resumed that was never charged"
    return books, charged, answers


def _charge(books: dict[str, Book], entry: dict[str, Any]) -> int:
    assert entry["currency"] == "pure epsilon, in units of 1e-9", "this auditor only knows pure epsilon"
    assert json.loads(entry["question"]), "a charge does not say what was asked"
    costs = []
    for name in (entry["analyst"], DATASET):
        book = books[name]
        before = book.total()
        book.roots.setdefault(entry["root"], Tree()).add(entry["charge"])
        after = book.total()
        assert not book.revoked, f"{name!r} was charged after being revoked"
        assert after <= book.allotment, f"{name!r} spent {after} of {book.allotment}"
        costs.append(after - before)
    assert entry["cost"] == costs, f"a query cost {entry['cost']} where the odometers rose by {costs}"
    return costs[0]


def _check_answers(entries: list[dict[str, Any]], kept: list[tuple[int, bytes]]) -> None:
    stated = {row: entry["sha256"] for row, entry in enumerate(entries) if entry["do"] == "answer"}
    found = {row: hashlib.sha256(answer).hexdigest() for row, answer in kept}
    assert found == stated, "the stored answers are not those of the log"


def _check_checkpoints(entries: list[dict[str, Any]], checkpoints: list[tuple[int, str]]) -> None:
    """Texts are those that the log names, each names the one before, and none is about rows after it."""
    stated = {row: entry["sha256"] for row, entry in enumerate(entries) if entry["do"] == "checkpoint"}
    found = {row: hashlib.sha256(text.encode()).hexdigest() for row, text in checkpoints}
    assert found == stated, "the checkpoints are not those of the log"
    previous = ""
    for row, text in checkpoints:
        form = json.loads(text)
        assert (form["previous"], form["newest"]) == (previous, row - 1)
        previous = found[row]


def _check_anchor(path: Path, digests: list[str]) -> None:
    complete, _, _ = path.with_name(path.name + ".anchor").read_text().rpartition("\n")
    for line in complete.splitlines():
        if not line.endswith(" torn"):
            sequence, digest = line.split()
            assert digests[int(sequence)] == digest, f"the anchor has seen another row {sequence}"
