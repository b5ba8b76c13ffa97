"""The state that a ledger's log implies: rebuilt from its entries alone, or from a checkpoint and the entries after it.

It is all that a ledger knows: there are no tables of accounts or odometers that somebody could edit. Every transaction
brings it up to date with what other processes appended, and refuses what does not follow from what was there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dpmine.base.errors import LedgerTampered, RequestError
from dpmine.base.wire_values import canonical_json
from dpmine.codes.answers import Head
from dpmine.kernel.ledger.accounts import DATASET, Account, Request
from dpmine.kernel.ledger.chain import BEFORE_FIRST, Seen, answer_hash, checked_chain, digest_of
from dpmine.kernel.ledger.checkpoints import Changes, RequestState, State, digest_named, restored, text_digest, text_of
from dpmine.kernel.ledger.odometer import Charge, add_charge
from dpmine.kernel.ledger.store import Row

_NONCE = re.compile("[0-9a-f]{32}")
LETTERS = 8_000_000  # of the log between two checkpoints: replaying as much takes about a second

Increase = tuple[int, dict[str, int]]
"""By how much an account's odometer rises, and the totals that change."""


class Replay:
    """The state that the log implies up to its newest row."""

    def __init__(self) -> None:
        self.state = State()
        self.newest: Row = (-1, "", BEFORE_FIRST)
        self.checkpoints: dict[int, str] = {}
        """The digests of the checkpoints whose entries were read, by row."""
        self._since = Changes()
        self._nonces: set[bytes] = set()

    @classmethod
    def at_checkpoint(cls, row: Row, texts: Iterable[str]) -> Replay:
        """The state at a checkpoint's row, which somebody has vouched for: its digest covers all the texts."""
        replay, digest = cls(), digest_named(row[1])
        replay.state = restored(texts, digest)
        replay.newest = row
        replay.checkpoints = {row[0]: digest}
        replay._since = Changes(previous=digest)
        return replay

    @property
    def head(self) -> Head:
        return Head(self.newest[0], self.newest[2])

    def next_row(self, entry: dict[str, Any]) -> tuple[Row, dict[str, Any]]:
        """The row that an entry becomes if it is the next, and the entry with its time and a nonce.

        Every analyst sees heads: without 128 random bits in each entry, others' answers could be guessed from them.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {**entry, "at": now, "nonce": os.urandom(16).hex()}
        text, sequence = canonical_json(entry).decode(), self.newest[0] + 1
        return (sequence, text, digest_of(self.newest[2], sequence, text)), entry

    # -- taking rows in ---------------------------------------------------------------------------------------------------

    def follow(self, rows: Iterable[Row], seen: Sequence[Seen] = ()) -> None:
        """Take in further rows, none in the place of one that was seen. After an error the state is of no use any more."""
        for row in checked_chain(rows, first=self.newest[0] + 1, before=self.newest[2]):
            for each in seen:
                each.check(row)
            try:
                self.add(row, json.loads(row[1]))
            except (KeyError, AttributeError, TypeError, ValueError):
                raise LedgerTampered("The ledger's log holds an entry that cannot be read.") from None

    def add(self, row: Row, entry: dict[str, Any], increases: list[Increase] | None = None) -> None:
        """Take in one row; if we have just written it ourselves, with the increases that it states, not computed again."""
        self._take_nonce(row, entry)
        if entry["do"] == "reserve":
            self._reserve(row, entry, increases)
        else:
            _HANDLERS[entry["do"]](self, row, entry)
        self._since.letters += len(row[1])
        self.newest = row

    def _take_nonce(self, row: Row, entry: dict[str, Any]) -> None:
        if _NONCE.fullmatch(entry["nonce"]) is None:
            raise ValueError("no nonce")
        nonce = bytes.fromhex(entry["nonce"])
        if nonce in self._nonces:
            raise LedgerTampered(f"Row {row[0]} of the ledger repeats a nonce of an earlier row.")
        self._nonces.add(nonce)

    def _create(self, row: Row, entry: dict[str, Any]) -> None:
        if row[0] != 0:
            raise ValueError("a ledger is made once")
        self.state.facts = {name: str(fact) for name, fact in entry["facts"].items()}
        self.state.accounts[DATASET] = Account(DATASET, entry["cap"])

    def _grant(self, row: Row, entry: dict[str, Any]) -> None:
        if entry["analyst"] == DATASET:
            raise ValueError("nobody grants a cap")
        before = self.state.accounts.get(entry["analyst"], Account(entry["analyst"], 0))
        self.state.accounts[before.name] = replace(before, allotment=entry["units"], revoked=False)

    def _revoke(self, row: Row, entry: dict[str, Any]) -> None:
        self.state.accounts[entry["analyst"]] = replace(self.state.accounts[entry["analyst"]], revoked=True)

    def _reserve(self, row: Row, entry: dict[str, Any], increases: list[Increase] | None) -> None:
        analyst, key, plan = entry["analyst"], entry["key"], entry["plan"]
        if (analyst, key) in self.state.requests or (analyst, plan) in self.state.keys:
            raise ValueError("a request is charged once")
        if increases is None:
            charge = Charge.from_form(entry["charge"])
            increases = [self.increase(name, entry["root"], charge) for name in (analyst, DATASET)]
        if entry["cost"] != [increase for increase, _ in increases]:
            raise LedgerTampered(f"Row {row[0]} of the ledger states a cost that its odometers do not imply.")
        for name, (increase, changed) in zip((analyst, DATASET), increases, strict=True):
            account = self.state.accounts[name]
            self.state.accounts[name] = replace(account, spent=account.spent + increase)
            self.state.totals.setdefault(name, {}).update(changed)
            self._since.totals.setdefault(name, set()).update(changed)
        self.state.requests[analyst, key] = RequestState(plan, entry["cost"][0], entry["token"])
        self.state.keys[analyst, plan] = key
        self._since.requests.add((analyst, key))

    def _resume(self, row: Row, entry: dict[str, Any]) -> None:
        request = self._waiting(entry)
        if request.resumed:
            raise ValueError("a request is resumed once")
        request.resumed, request.token = True, entry["token"]

    def _answer(self, row: Row, entry: dict[str, Any]) -> None:
        request = self._waiting(entry)
        request.answer, request.sequence, request.digest = entry["sha256"], row[0], row[2]

    def _waiting(self, entry: dict[str, Any]) -> RequestState:
        """A request that has no answer yet, about to be changed."""
        request = self.state.requests[entry["analyst"], entry["key"]]
        if request.sequence is not None:
            raise ValueError("a request is answered once")
        self._since.requests.add((entry["analyst"], entry["key"]))
        return request

    def _checkpoint(self, row: Row, entry: dict[str, Any]) -> None:
        if text_digest(self.checkpoint_text()) != entry["sha256"]:
            raise LedgerTampered(f"Row {row[0]} of the ledger names a checkpoint that the rows before it do not imply.")
        self.checkpoints[row[0]] = entry["sha256"]
        self._since = Changes(previous=entry["sha256"])

    # -- what it says -----------------------------------------------------------------------------------------------------

    def increase(self, account: str, root: str, charge: Charge) -> Increase:
        """What a charge would add to an account's odometer now."""
        known = self.state.totals.get(account, {})
        before = {node: known[node] for node in charge.names(root) if node in known}
        totals = dict(before)
        increase = add_charge(totals, root, charge)
        return increase, {node: units for node, units in totals.items() if before.get(node) != units}

    def account_within(self, name: str) -> Account:
        """The account of somebody who may ask."""
        account = self.state.accounts.get(name)
        if account is None or name == DATASET:
            raise RequestError(f"The owner has granted nothing to {name!r}.")
        if account.revoked:
            raise RequestError(f"The owner has revoked the access of {name!r}.")
        return account

    def known_request(self, request: Request) -> tuple[str, RequestState] | None:
        """The request with this plan, under whatever key it was first asked."""
        same_key = self.state.requests.get((request.analyst, request.key))
        if same_key is not None and same_key.plan != request.plan:
            raise RequestError("This request key was used for another query. Choose a new key.")
        key = self.state.keys.get((request.analyst, request.plan))
        return None if key is None else (key, self.state.requests[request.analyst, key])

    @property
    def is_checkpoint_due(self) -> bool:
        return self._since.letters >= LETTERS

    def checkpoint_text(self) -> str:
        """What changed since the last checkpoint, as the next one states it."""
        return text_of(self.state, self._since, self.newest[0])

    def check_answers(self, answers: Iterable[tuple[int, Any]], first: int) -> None:
        """What is kept of answers from a row on: those whose hashes are in the log, and no others."""
        implied = {
            request.sequence: request.answer
            for request in self.state.requests.values()
            if request.sequence is not None and request.sequence >= first
        }
        if {sequence: answer_hash(answer) for sequence, answer in answers} != implied:
            raise not_implied("answers")

    def check_checkpoints(self, texts: Iterable[tuple[int, Any]]) -> None:
        """What is kept of the checkpoints whose entries were read."""
        if {sequence: text_digest(text) for sequence, text in texts} != self.checkpoints:
            raise not_implied("checkpoints")


def not_implied(what: str) -> LedgerTampered:
    return LedgerTampered(f"The ledger's {what} are not what its log implies: it was edited outside dpmine.")


_HANDLERS = {
    "create": Replay._create,
    "grant": Replay._grant,
    "revoke": Replay._revoke,
    "resume": Replay._resume,
    "answer": Replay._answer,
    "checkpoint": Replay._checkpoint,
}
