"""Somebody edits the database while our process has it open: no charge, no draw and no release follows from the edit.

Each edit would win something: a budget back, a second draw, other bytes. The process keeps what the log implies in memory
and compares the rows that it touches.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from ledger_auditor import audit
from ledger_worlds import cell_request, count_query, kernel_on, open_ledger, pay, request

from dpmine.errors import BudgetError, LedgerError, LedgerTampered
from dpmine.kernel.accounts import Stored
from dpmine.wire import to_wire


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
    "the money spent": "UPDATE accounts SET spent = 0 WHERE name = 'ann'",
    "an allotment": "UPDATE accounts SET allotment = 9000 WHERE name = 'ann'",
    "both of them": "UPDATE accounts SET allotment = 9000, spent = spent - 1 WHERE name = 'ann'",
    "a type": "UPDATE accounts SET spent = '-inf' WHERE name = 'ann'",
    "the cap": "UPDATE accounts SET allotment = 9000",
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
    run_sql(ledger.path, BUDGET_BACK[name])
    for _ in range(2):
        with pytest.raises(LedgerTampered):
            ledger.reserve(request(400))


@pytest.mark.parametrize("analyst", ["bob", ""])
def test_an_edit_of_a_total_that_makes_a_cell_free_is_noticed(ledger, analyst):
    pay(ledger, cell_request(300, 1, analyst="bob"))
    run_sql(ledger.path, f"UPDATE totals SET units = units + 5000 WHERE account = '{analyst}'")
    with pytest.raises(LedgerTampered, match="odometers"):
        ledger.reserve(cell_request(400, 2, analyst="bob"))


def test_lost_totals_are_noticed(ledger):
    run_sql(ledger.path, "DELETE FROM totals WHERE account = ''")
    with pytest.raises(LedgerTampered, match="odometers"):
        ledger.reserve(cell_request(400, 2, analyst="bob"))


SECOND_DRAWS = {
    "a lost request": "DELETE FROM requests WHERE plan = 'count at 500'",
    "another plan": "UPDATE requests SET plan = 'other' WHERE plan = 'count at 500'",
    "another key": "UPDATE requests SET key = 'other' WHERE plan = 'count at 500'",
    "another analyst": "UPDATE requests SET analyst = 'bob' WHERE plan = 'count at 500'",
    "a state": "UPDATE requests SET state = 'RESERVED', answer = NULL WHERE plan = 'count at 500'",
    "a second chance": "UPDATE requests SET state = 'RESERVED', resumed = 0, sequence = NULL WHERE plan = 'count at 500'",
    "other bytes": "UPDATE requests SET answer = x'00' WHERE plan = 'count at 500'",
    "bytes of another answer": "UPDATE requests SET answer = CAST('cell one' AS BLOB) WHERE plan = 'count at 500'",
    "text": "UPDATE requests SET answer = 'five hundred' WHERE plan = 'count at 500'",
    "another row": "UPDATE requests SET sequence = 1 WHERE plan = 'count at 500'",
    "no cost": "UPDATE requests SET cost = 0 WHERE plan = 'count at 500'",
}


@pytest.mark.parametrize("name", SECOND_DRAWS)
def test_an_edit_that_would_draw_or_release_something_else_is_noticed(ledger, name):
    assert pay(ledger, request(500)).answer == b"five hundred"
    run_sql(ledger.path, SECOND_DRAWS[name])
    with pytest.raises(LedgerTampered, match="requests are not what its log implies"):
        pay(ledger, request(500), b"a second draw")


def test_a_request_that_was_opened_again_between_charge_and_answer_stores_nothing(ledger):
    """Its token is still good: the table alone cannot tell that it was answered before."""
    first = ledger.reserve(request(100, analyst="bob"))
    ledger.store(first, b"first")
    run_sql(ledger.path, "UPDATE requests SET state = 'RESERVED', answer = NULL WHERE plan = 'count at 100'")
    with pytest.raises(LedgerTampered, match="requests"):
        ledger.store(first, b"second")


def test_a_preview_does_not_believe_an_edited_odometer(ledger):
    run_sql(ledger.path, "UPDATE totals SET units = units + 5000 WHERE account = 'bob' OR account = 'ann'")
    with pytest.raises(LedgerTampered):
        ledger.preview(cell_request(400, 1))


@pytest.mark.parametrize("table", ["accounts", "totals", "requests"])
def test_a_trigger_that_undoes_charges_is_noticed_by_the_charge_after(ledger, table):
    undo = {
        "accounts": "UPDATE accounts SET spent = 0 WHERE name = 'bob'",
        "totals": "DELETE FROM totals WHERE account = 'bob'",
        "requests": "DELETE FROM requests WHERE analyst = 'bob'",
    }
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as database:
        database.execute(f"CREATE TRIGGER thief AFTER INSERT ON log BEGIN {undo[table]}; END")
    with suppress(LedgerTampered):  # the first may be noticed itself
        pay(ledger, request(100, analyst="bob"))
    with pytest.raises(LedgerTampered):
        pay(ledger, request(101, analyst="bob"))


def test_what_honest_processes_append_is_no_edit(ledger):
    other = open_ledger(ledger.path)
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
    audit(ledger.path)


def test_a_stranger_s_row_with_a_good_chain_but_another_cost_is_noticed(ledger):
    """As by a process of a patched dpmine: it appends what the odometers do not imply."""
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as database:
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
    run_sql(ledger.path, "INSERT INTO log SELECT max(sequence) + 1, '{}', '00' FROM log")
    with pytest.raises(LedgerTampered):
        pay(ledger, request(1, analyst="bob"))
    run_sql(ledger.path, "DELETE FROM log WHERE entry = '{}'")
    pay(ledger, request(1, analyst="bob"))
    audit(ledger.path)


def test_the_analyst_learns_nothing_but_that_the_ledger_was_edited(ledger):
    kernel = kernel_on(ledger)
    run_sql(ledger.path, "UPDATE accounts SET spent = 0 WHERE name = 'bob' OR name = ''")
    with pytest.raises(LedgerError) as caught:
        kernel.answer(to_wire(count_query(10)), analyst="bob")
    assert str(caught.value) == "The ledger's accounts are not what its log implies: it was edited outside dpmine."
