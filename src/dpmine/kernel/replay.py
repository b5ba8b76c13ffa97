"""The state that a ledger's log implies, rebuilt from its entries alone and compared with what its tables say.

It is rebuilt when a ledger is opened and kept: every transaction brings it up to date and charges, answers and releases
only where the rows that it touches are what the log implies, so that an edit of the file is noticed while it is open, too.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpmine.errors import LedgerTampered
from dpmine.kernel.chain import BEFORE_FIRST, digest_of
from dpmine.kernel.odometer import Charge, add_charge
from dpmine.queries import Head
from dpmine.values import canonical_json

DATASET = ""  # the account of the data set itself; analysts have names
_NONCE = re.compile("[0-9a-f]{32}")

Row = tuple[int, str, str]
"""A row of the log: its sequence, its entry's text and its digest."""


@dataclass(slots=True)
class RequestState:
    """A row of the table of requests, with its answer by hash. The token is the one field that no log entry implies."""

    plan: str
    cost: int
    state: str = "RESERVED"
    resumed: int = 0
    answer: str | None = None
    sequence: int | None = None
    digest: str = field(default="", compare=False)
    """That of the answer's log row."""


class Replay:
    """The state that the log implies, rebuilt from its entries alone."""

    def __init__(self) -> None:
        self.accounts: dict[str, tuple[int, int, int]] = {}
        self.totals: dict[str, dict[str, int]] = {}
        self.requests: dict[tuple[str, str], RequestState] = {}
        self.keys: dict[tuple[str, str], str] = {}
        """The key of each (analyst, plan)."""
        self.facts_digest = ""
        self.newest: Row = (-1, "", BEFORE_FIRST)
        self._nonces: set[bytes] = set()
        self._row = self.newest

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Replay:
        """Replay the log's rows, whose chain was checked."""
        replay = cls()
        for row in rows:
            replay._read(row)
        return replay

    @property
    def head(self) -> Head:
        return Head(self.newest[0], self.newest[2])

    # -- taking rows in ---------------------------------------------------------------------------------------------------

    def follow(self, rows: Iterable[Row]) -> None:
        """Take in rows that others appended. After an error the state is of no use any more."""
        for row in rows:
            sequence, text, digest = row
            if sequence != self.newest[0] + 1 or digest != digest_of(self.newest[2], sequence, text):
                raise LedgerTampered(
                    f"The ledger's hash chain breaks at row {self.newest[0] + 1}: it was edited outside dpmine."
                )
            self._read(row)

    def add_own(self, row: Row, entry: dict[str, Any], totals: Mapping[str, Mapping[str, int]]) -> None:
        """Take in a row that we have just written ourselves, with the totals that changed: nothing is computed again."""
        self._row = row
        self._take_nonce(entry)
        if entry["do"] == "reserve":
            for account, changed in totals.items():
                self.totals.setdefault(account, {}).update(changed)
            self._charged(entry, entry["cost"])
        else:
            _HANDLERS[entry["do"]](self, entry)
        self.newest = row

    def _read(self, row: Row) -> None:
        self._row = row
        try:
            entry = json.loads(row[1])
            self._take_nonce(entry)
            _HANDLERS[entry["do"]](self, entry)
        except (KeyError, AttributeError, TypeError, ValueError):
            raise LedgerTampered("The ledger's log holds an entry that cannot be read.") from None
        self.newest = row

    def _take_nonce(self, entry: dict[str, Any]) -> None:
        """Every analyst sees heads: without 128 random bits in each entry, others' answers could be guessed from them."""
        if _NONCE.fullmatch(entry["nonce"]) is None:
            raise ValueError("no nonce")
        nonce = bytes.fromhex(entry["nonce"])
        if nonce in self._nonces:
            raise LedgerTampered(f"Row {self._row[0]} of the ledger repeats a nonce of an earlier row.")
        self._nonces.add(nonce)

    def _create(self, entry: dict[str, Any]) -> None:
        self.accounts[DATASET] = (entry["cap"], 0, 0)
        self.facts_digest = entry["facts"]

    def _grant(self, entry: dict[str, Any]) -> None:
        spent = self.accounts.get(entry["analyst"], (0, 0, 0))[2]
        self.accounts[entry["analyst"]] = (entry["units"], 0, spent)

    def _revoke(self, entry: dict[str, Any]) -> None:
        allotment, _, spent = self.accounts[entry["analyst"]]
        self.accounts[entry["analyst"]] = (allotment, 1, spent)

    def _reserve(self, entry: dict[str, Any]) -> None:
        charge = Charge.from_form(entry["charge"])
        costs = [
            add_charge(self.totals.setdefault(name, {}), entry["root"], charge) * entry["rows_per_unit"]
            for name in (entry["analyst"], DATASET)
        ]
        if entry["cost"] != costs:
            raise LedgerTampered(f"Row {self._row[0]} of the ledger states a cost that its odometers do not imply.")
        self._charged(entry, costs)

    def _charged(self, entry: dict[str, Any], costs: list[int]) -> None:
        for name, cost in zip((entry["analyst"], DATASET), costs, strict=True):
            allotment, revoked, spent = self.accounts[name]
            self.accounts[name] = (allotment, revoked, spent + cost)
        self.requests[entry["analyst"], entry["key"]] = RequestState(entry["plan"], costs[0])
        self.keys[entry["analyst"], entry["plan"]] = entry["key"]

    def _resume(self, entry: dict[str, Any]) -> None:
        self.requests[entry["analyst"], entry["key"]].resumed = 1

    def _answer(self, entry: dict[str, Any]) -> None:
        request = self.requests[entry["analyst"], entry["key"]]
        request.state, request.answer = "ANSWERED", entry["sha256"]
        request.sequence, request.digest = self._row[0], self._row[2]

    # -- comparing --------------------------------------------------------------------------------------------------------

    def check_account(self, name: str, stated: tuple[Any, ...] | None) -> None:
        """One row (allotment, revoked, spent) of the table of accounts, or None where there is none."""
        if stated != self.accounts.get(name):
            raise not_implied("accounts")

    def check_totals(self, account: str, nodes: Iterable[str], stated: dict[str, Any]) -> None:
        """What the table of odometers says of some nodes."""
        known = self.totals.get(account, {})
        if stated != {node: known[node] for node in nodes if node in known}:
            raise not_implied("odometers")

    def check_request(self, analyst: str, key: str, stated: tuple[Any, ...] | None) -> RequestState | None:
        """One row (plan, cost, state, resumed, sequence) of the table of requests, or None where there is none."""
        known = self.requests.get((analyst, key))
        implied = None if known is None else (known.plan, known.cost, known.state, known.resumed, known.sequence)
        if stated != implied:
            raise not_implied("requests")
        return known

    def check_against(self, database: sqlite3.Connection) -> None:
        """All tables."""
        try:
            for what, stated, implied in (
                ("facts", facts_digest(dict(database.execute("SELECT name, value FROM facts"))), self.facts_digest),
                ("accounts", _accounts_in(database), self.accounts),
                ("odometers", _totals_in(database), self.totals),
                ("requests", _requests_in(database), self.requests),
            ):
                if stated != implied:
                    raise not_implied(what)
        except TypeError:
            raise LedgerTampered("The ledger holds a value of the wrong type: it was edited outside dpmine.") from None


def not_implied(what: str) -> LedgerTampered:
    return LedgerTampered(f"The ledger's {what} are not what its log implies: it was edited outside dpmine.")


def answer_hash(answer: Any) -> str:
    """What the log keeps of an answer's bytes; raises a TypeError for anything else that a table may hold."""
    return hashlib.sha256(answer).hexdigest()


def _accounts_in(database: sqlite3.Connection) -> dict[str, tuple[int, int, int]]:
    rows = database.execute("SELECT name, allotment, revoked, spent FROM accounts")
    return {name: (allotment, revoked, spent) for name, allotment, revoked, spent in rows}


def _totals_in(database: sqlite3.Connection) -> dict[str, dict[str, int]]:
    totals: dict[str, dict[str, int]] = {}
    for account, node, units in database.execute("SELECT account, node, units FROM totals"):
        totals.setdefault(account, {})[node] = units
    return totals


def _requests_in(database: sqlite3.Connection) -> dict[tuple[str, str], RequestState]:
    rows = database.execute("SELECT analyst, key, plan, cost, state, resumed, answer, sequence FROM requests")
    return {
        (analyst, key): RequestState(plan, cost, state, resumed, None if answer is None else answer_hash(answer), sequence)
        for analyst, key, plan, cost, state, resumed, answer, sequence in rows
    }


_HANDLERS = {
    "create": Replay._create,
    "grant": Replay._grant,
    "revoke": Replay._revoke,
    "reserve": Replay._reserve,
    "resume": Replay._resume,
    "answer": Replay._answer,
}


def facts_digest(facts: dict[str, str]) -> str:
    return hashlib.sha256(canonical_json(facts)).hexdigest()
