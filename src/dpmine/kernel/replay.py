"""The state that a ledger's log implies, rebuilt from its entries alone and compared with what its tables say."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Any

from dpmine.errors import LedgerTampered
from dpmine.kernel.odometer import Charge, add_charge
from dpmine.values import canonical_json

DATASET = ""  # the account of the data set itself; analysts have names


class Replay:
    """The state that the log implies, rebuilt from its entries alone."""

    def __init__(self) -> None:
        self.accounts: dict[str, tuple[int, int, int]] = {}
        self.totals: dict[str, dict[str, int]] = {}
        self.answers: dict[tuple[str, str], str | None] = {}
        self.resumed: set[tuple[str, str]] = set()
        self.facts_digest = ""

    @classmethod
    def of(cls, entries: list[dict[str, Any]]) -> Replay:
        replay = cls()
        try:
            for entry in entries:
                _HANDLERS[entry["do"]](replay, entry)
        except (KeyError, AttributeError, TypeError):
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
        for name in (entry["analyst"], DATASET):
            increase = add_charge(self.totals.setdefault(name, {}), entry["root"], charge) * entry["rows_per_unit"]
            allotment, revoked, spent = self.accounts[name]
            self.accounts[name] = (allotment, revoked, spent + increase)
        self.answers[entry["analyst"], entry["key"]] = None

    def _resume(self, entry: dict[str, Any]) -> None:
        self.resumed.add((entry["analyst"], entry["key"]))

    def _answer(self, entry: dict[str, Any]) -> None:
        self.answers[entry["analyst"], entry["key"]] = entry["sha256"]

    def check_against(self, database: sqlite3.Connection) -> None:
        """Compare with what the tables say."""
        facts = dict(database.execute("SELECT name, value FROM facts"))
        accounts = {
            row[0]: tuple(row[1:]) for row in database.execute("SELECT name, allotment, revoked, spent FROM accounts")
        }
        totals: dict[str, dict[str, int]] = {}
        for account, node, units in database.execute("SELECT account, node, units FROM totals"):
            totals.setdefault(account, {})[node] = units
        answers, resumed = {}, set()
        for analyst, key, answer, again in database.execute("SELECT analyst, key, answer, resumed FROM requests"):
            answers[analyst, key] = None if answer is None else hashlib.sha256(answer).hexdigest()
            if again:
                resumed.add((analyst, key))
        for what, stated, implied in (
            ("facts", facts_digest(facts), self.facts_digest),
            ("accounts", accounts, self.accounts),
            ("odometers", totals, self.totals),
            ("answers", answers, self.answers),
            ("requests", resumed, self.resumed),
        ):
            if stated != implied:
                raise LedgerTampered(f"The ledger's {what} are not what its log implies: it was edited outside dpmine.")


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
