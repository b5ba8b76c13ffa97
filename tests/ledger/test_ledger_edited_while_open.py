"""Somebody edits the database while our process has it open: no charge, no draw and no release follows from the edit.

Each edit would win something: a budget back, a second draw, other bytes. What the process knows follows from the log that it
has read, so that an edit of a row behind it changes nothing, and one of the newest row or of an answer is noticed.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from support.ledger_auditor import audit
from support.ledgers import cell_request, count_query, desk_on, open_ledger, pay, request

from dpmine.base.errors import BudgetError, LedgerError, LedgerTampered
from dpmine.base.wire import to_wire
from dpmine.kernel.ledger.accounts import Stored
from dpmine.owner.statements import entries_of, paid


@pytest.fixture
def ledger(tmp_path):
    """Ann has spent all of her 1000, of which 500 in a cell."""
    book = open_ledger(tmp_path / "l.db", cap=2000)
    book.grant("ann", 1000)
    book.grant("bob", 1000)
    pay(book, request(500), b"five hundred")
    pay(book, cell_request(500, 1), b"cell one")
    yield book
    book.close()


def run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            assert database.execute(statement).rowcount != 0, f"{statement} changed nothing"


BUDGET_BACK = {
    "the last row's text": "UPDATE log SET entry = entry || ' ' WHERE sequence = (SELECT max(sequence) FROM log)",
    "the last row's digest": "UPDATE log SET digest = '00' WHERE sequence = (SELECT max(sequence) FROM log)",
    "a new row": "INSERT INTO log SELECT max(sequence) + 1, '{}', '00' FROM log",
    "a new row far away": "INSERT INTO log SELECT max(sequence) + 100, entry, digest FROM log",
    "the newest row's place": "UPDATE log SET sequence = sequence + 1 WHERE sequence = (SELECT max(sequence) FROM log)",
}


@pytest.mark.parametrize("name", BUDGET_BACK)
def test_an_edit_that_gives_budget_back_is_noticed_by_the_next_charge(ledger, name):
    with pytest.raises(BudgetError):
        ledger.reserve(request(400))
    run_sql(ledger.kept_in.path, BUDGET_BACK[name])
    for _ in range(2):
        with pytest.raises(LedgerTampered):
            ledger.reserve(request(400))


OLD_ROWS = {
    "a charge": "UPDATE log SET entry = replace(entry, '500', '001') WHERE sequence = 3",
    "a lost charge": "DELETE FROM log WHERE sequence = 3",
    "a larger cap": "UPDATE log SET entry = replace(entry, '2000', '9000') WHERE sequence = 0",
    "a larger grant": "UPDATE log SET entry = replace(entry, '1000', '9000') WHERE sequence = 1",
}


@pytest.mark.parametrize("name", OLD_ROWS)
def test_an_edit_of_an_old_row_gives_nothing_back_and_is_noticed_when_the_log_is_read_again(ledger, name):
    run_sql(ledger.kept_in.path, OLD_ROWS[name])
    with pytest.raises(BudgetError):
        ledger.reserve(request(400))
    assert ledger.account("ann").remaining == 0
    pay(ledger, cell_request(400, 2, analyst="bob"))
    for look in (lambda: entries_of(ledger), ledger.verify, lambda: open_ledger(ledger.kept_in.path)):
        with pytest.raises(LedgerTampered, match="hash chain breaks"):
            look()


OTHER_ANSWERS = {
    "a lost answer": "DELETE FROM answers WHERE sequence = 4",
    "other bytes": "UPDATE answers SET answer = x'00' WHERE sequence = 4",
    "bytes of another answer": "UPDATE answers SET answer = CAST('cell one' AS BLOB) WHERE sequence = 4",
    "text": "UPDATE answers SET answer = 'five hundred' WHERE sequence = 4",
    "another row": "UPDATE answers SET sequence = 1 WHERE sequence = 4",
}


@pytest.mark.parametrize("name", OTHER_ANSWERS)
def test_an_edit_that_would_draw_or_release_something_else_is_noticed(ledger, name):
    assert pay(ledger, request(500)).answer == b"five hundred"
    run_sql(ledger.kept_in.path, OTHER_ANSWERS[name])
    for look in (lambda: pay(ledger, request(500), b"a second draw"), lambda: list(paid(ledger, "ann"))):
        with pytest.raises(LedgerTampered, match="answers are not what its log implies"):
            look()


def test_an_answer_that_is_taken_away_between_charge_and_answer_is_not_drawn_again(ledger):
    """Its token is still good: but the log says that it was answered."""
    first = ledger.reserve(request(100, analyst="bob"))
    ledger.store(first, b"first")
    run_sql(ledger.kept_in.path, "DELETE FROM answers WHERE sequence = (SELECT max(sequence) FROM answers)")
    with pytest.raises(LedgerTampered, match="answers"):
        ledger.store(first, b"second")


THIEVES = {
    "DELETE FROM answers": "answers",
    "UPDATE answers SET answer = x'00'": "answers",
    "DELETE FROM log": "log",
}


@pytest.mark.parametrize(("undo", "table"), THIEVES.items())
def test_a_trigger_that_undoes_what_is_written_is_noticed_by_the_charge_after(ledger, undo, table):
    with closing(sqlite3.connect(ledger.kept_in.path, isolation_level=None)) as database:
        database.execute(f"CREATE TRIGGER thief AFTER INSERT ON {table} BEGIN {undo}; END")
    with suppress(LedgerTampered):  # the first may be noticed itself
        pay(ledger, request(100, analyst="bob"))
    with pytest.raises(LedgerTampered):
        pay(ledger, request(100, analyst="bob"))


def test_what_honest_processes_append_is_no_edit(ledger):
    other = open_ledger(ledger.kept_in.path)
    for turn in range(5):
        pay(other, cell_request(10 + turn, turn % 3, analyst="bob"))
        other.grant("cleo", 100 + turn)
        pay(ledger, cell_request(20 + turn, turn % 3, analyst="bob"))
        assert pay(other, cell_request(20 + turn, turn % 3, analyst="bob"), b"not drawn").answer == b"answer"
    other.reserve(request(7, analyst="bob"))
    assert isinstance(pay(ledger, request(7, analyst="bob")), Stored)
    ledger.revoke("cleo")
    assert other.verify() == ledger.verify()
    other.close()
    audit(ledger.kept_in.path)


def test_a_stranger_s_row_with_a_good_chain_but_another_cost_is_noticed(ledger):
    """As by a process of a patched dpmine: it appends what the odometers do not imply."""
    with closing(sqlite3.connect(ledger.kept_in.path, isolation_level=None)) as database:
        sequence, _, digest = database.execute("SELECT * FROM log ORDER BY sequence DESC LIMIT 1").fetchone()
        row: dict[str, Any] = json.loads(
            database.execute("SELECT entry FROM log WHERE entry LIKE '%\"cost\"%'").fetchone()[0]
        )
        row |= {"cost": [0, 0], "key": "free", "plan": "free", "nonce": "ab" * 16}
        forged = json.dumps(row, sort_keys=True, separators=(",", ":"))
        chained = hashlib.sha256(f"{digest}\n{sequence + 1}\n{forged}".encode()).hexdigest()
        database.execute("INSERT INTO log VALUES (?, ?, ?)", (sequence + 1, forged, chained))
    for _ in range(2):
        with pytest.raises(LedgerTampered, match="states a cost"):
            ledger.reserve(request(1, analyst="bob"))


def test_a_ledger_goes_on_when_the_owner_has_put_right_what_a_stranger_did(ledger):
    run_sql(ledger.kept_in.path, "INSERT INTO log SELECT max(sequence) + 1, '{}', '00' FROM log")
    with pytest.raises(LedgerTampered):
        pay(ledger, request(1, analyst="bob"))
    run_sql(ledger.kept_in.path, "DELETE FROM log WHERE entry = '{}'")
    pay(ledger, request(1, analyst="bob"))
    audit(ledger.kept_in.path)


def test_the_analyst_learns_nothing_but_that_the_ledger_was_edited(ledger):
    desk = desk_on(ledger)
    run_sql(ledger.kept_in.path, BUDGET_BACK["the last row's text"])
    with pytest.raises(LedgerError) as caught:
        desk.answer(to_wire(count_query(10)), analyst="bob")
    assert str(caught.value) == (
        "The ledger was edited or lost rows while it was open: it was edited outside dpmine, replaced or restored."
    )
