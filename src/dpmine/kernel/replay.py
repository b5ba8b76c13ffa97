"""The state that a ledger's log implies, rebuilt from its entries alone and compared with what its tables say."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dpmine.errors import LedgerTampered
from dpmine.kernel.odometer import Charge, add_charge
from dpmine.values import canonical_json

DATASET = ""  # the account of the data set itself; analysts have names


@dataclass
class _Request:
    """A row of the table of requests, with its answer by hash. The token is the one field that no log entry implies."""

    plan: str
    cost: int
    state: str = "RESERVED"
    resumed: int = 0
    answer: str | None = None
    sequence: int | None = None


class Replay:
    """The state that the log implies, rebuilt from its entries alone."""

    def __init__(self) -> None:
        self.accounts: dict[str, tuple[int, int, int]] = {}
        self.totals: dict[str, dict[str, int]] = {}
        self.requests: dict[tuple[str, str], _Request] = {}
        self.facts_digest = ""
        self._sequence = 0

    @classmethod
    def of(cls, entries: Iterable[str]) -> Replay:
        """Replay the log's entries, given as their texts."""
        replay = cls()
        try:
            for replay._sequence, text in enumerate(entries):
                entry = json.loads(text)
                _HANDLERS[entry["do"]](replay, entry)
        except (KeyError, AttributeError, TypeError, ValueError):
            raise LedgerTampered("The ledger's log holds an entry that cannot be read.") from None
        return replay

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
        costs = []
        for name in (entry["analyst"], DATASET):
            increase = add_charge(self.totals.setdefault(name, {}), entry["root"], charge) * entry["rows_per_unit"]
            allotment, revoked, spent = self.accounts[name]
            self.accounts[name] = (allotment, revoked, spent + increase)
            costs.append(increase)
        if entry["cost"] != costs:
            raise LedgerTampered(f"Row {self._sequence} of the ledger states a cost that its odometers do not imply.")
        self.requests[entry["analyst"], entry["key"]] = _Request(entry["plan"], costs[0])

    def _resume(self, entry: dict[str, Any]) -> None:
        self.requests[entry["analyst"], entry["key"]].resumed = 1

    def _answer(self, entry: dict[str, Any]) -> None:
        request = self.requests[entry["analyst"], entry["key"]]
        request.state, request.answer, request.sequence = "ANSWERED", entry["sha256"], self._sequence

    def check_against(self, database: sqlite3.Connection) -> None:
        """Compare with what the tables say."""
        try:
            for what, stated, implied in (
                ("facts", facts_digest(dict(database.execute("SELECT name, value FROM facts"))), self.facts_digest),
                ("accounts", _accounts_in(database), self.accounts),
                ("odometers", _totals_in(database), self.totals),
                ("requests", _requests_in(database), self.requests),
            ):
                if stated != implied:
                    raise LedgerTampered(f"The ledger's {what} are not what its log implies: it was edited outside dpmine.")
        except TypeError:
            raise LedgerTampered("The ledger holds a value of the wrong type: it was edited outside dpmine.") from None


def _accounts_in(database: sqlite3.Connection) -> dict[str, tuple[int, int, int]]:
    rows = database.execute("SELECT name, allotment, revoked, spent FROM accounts")
    return {name: (allotment, revoked, spent) for name, allotment, revoked, spent in rows}


def _totals_in(database: sqlite3.Connection) -> dict[str, dict[str, int]]:
    totals: dict[str, dict[str, int]] = {}
    for account, node, units in database.execute("SELECT account, node, units FROM totals"):
        totals.setdefault(account, {})[node] = units
    return totals


def _requests_in(database: sqlite3.Connection) -> dict[tuple[str, str], _Request]:
    rows = database.execute("SELECT analyst, key, plan, cost, state, resumed, answer, sequence FROM requests")
    return {
        (analyst, key): _Request(
            plan, cost, state, resumed, None if answer is None else hashlib.sha256(answer).hexdigest(), sequence
        )
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
