"""Every analyst sees heads. Without random bits in each entry, others' answers can be guessed from them.

The attack is played on the real ledger and on one whose nonces can be foretold: there it finds the answer.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from support.ledgers import WHOLE, count_query, desk_on, hash_of, open_ledger

from dpmine.base.wire import to_wire
from dpmine.codes.answers import Answer, Head, Reply
from dpmine.kernel.ledger import replay as replay_module
from dpmine.owner.statements import entries_of

GUESSES = range(-300, 600)


def played(path: Any) -> tuple[list[dict[str, Any]], Head, Head, Reply]:
    """Ann asks before and after bob. Returns the log, ann's two heads and what bob got."""
    ledger = open_ledger(path, cap=10 * WHOLE)
    for analyst in ("ann", "bob"):
        ledger.grant(analyst, WHOLE)
    desk = desk_on(ledger)
    before = desk.answer(to_wire(count_query(WHOLE // 10)), analyst="ann").head
    bobs = desk.answer(to_wire(count_query(WHOLE // 2)), analyst="bob")
    after = desk.answer(to_wire(count_query(WHOLE // 5)), analyst="ann").head
    entries = entries_of(ledger)
    ledger.close()
    return entries, before, after, bobs


def guessed(
    entries: list[dict[str, Any]], before: Head, after: Head, nonces: list[str | None], public: Answer
) -> str | None:
    """The hash of bob's answer, if some guess of it leads from ann's first head to her second.

    She is given more than she has: everything in the log but bob's answer and the nonces of his rows, down to the
    millisecond, and what is public of his answer, its laws and its price. For these nonces she tries what `nonces` says,
    None for a row without one.
    """
    rows = [dict(entry) for entry in entries[before.sequence + 1 : after.sequence + 1]]
    for guess in GUESSES:
        answer = hashlib.sha256(to_wire(replace(public, numbers=((guess,),)))).hexdigest()
        digest = before.digest
        for place, row in enumerate(rows):
            entry = dict(row)
            if entry["analyst"] == "bob":
                entry.pop("nonce", None)
                nonce = nonces[place]
                entry |= {} if nonce is None else {"nonce": nonce}
                entry |= {"sha256": answer} if entry["do"] == "answer" else {}
            text = json.dumps(entry, sort_keys=True, separators=(",", ":"))
            digest = hashlib.sha256(f"{digest}\n{before.sequence + 1 + place}\n{text}".encode()).hexdigest()
        if digest == after.digest:
            return answer
    return None


def foretold(number: int) -> str:
    return number.to_bytes(16, "big").hex()


@pytest.mark.parametrize("in_a_file", [True, False], ids=["in a file", "in memory"])
def test_nobody_can_guess_another_analyst_s_answer_from_the_heads_of_their_own(tmp_path, in_a_file):
    entries, before, after, bobs = played(tmp_path / "l.db" if in_a_file else None)
    others = [None if entry["analyst"] == "ann" else entry for entry in entries[before.sequence + 1 : after.sequence + 1]]
    assert [entry is None for entry in others] == [False, False, True, True]
    numbered = [foretold(number) for number in range(before.sequence + 1, after.sequence + 1)]
    for nonces in ([None] * 4, numbered):
        assert guessed(entries, before, after, nonces, bobs.answer) is None
    # The nonces are all that stands in the way: who has them finds the answer.
    leaked = [entry["nonce"] if entry else None for entry in others]
    assert guessed(entries, before, after, leaked, bobs.answer) == hash_of(bobs)


def test_a_ledger_whose_nonces_can_be_foretold_is_caught_by_the_same_attack(tmp_path, monkeypatch):
    numbers = count()

    def urandom(size: int) -> bytes:
        return next(numbers).to_bytes(size, "big")

    monkeypatch.setattr(replay_module, "os", SimpleNamespace(urandom=urandom))
    entries, before, after, bobs = played(tmp_path / "l.db")
    monkeypatch.undo()
    seen = [int(entry["nonce"], 16) for entry in entries if entry.get("analyst") == "ann"]  # her own: they are just numbers
    assert seen == sorted(seen)
    for start in range(seen[-1]):
        nonces = [foretold(start), foretold(start + 1), None, None]
        if (found := guessed(entries, before, after, nonces, bobs.answer)) is not None:
            assert found == hash_of(bobs)
            return
    pytest.fail("the attack is too weak: it did not find an answer behind nonces that it knew")


def test_every_entry_has_a_nonce_of_its_own(tmp_path):
    entries, *_ = played(tmp_path / "l.db")
    nonces = [entry["nonce"] for entry in entries]
    assert len(set(nonces)) == len(nonces) == 9
    assert all(len(bytes.fromhex(nonce)) == 16 for nonce in nonces)
