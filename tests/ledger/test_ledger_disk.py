"""Disks that are full, files that cannot be written, engines that fail: no answer leaves, and the state stays whole."""

from __future__ import annotations

import json
import os
import sqlite3
import traceback
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.ledger_auditor import audit
from support.ledgers import (
    WHOLE,
    Ledger,
    PatientLedger,
    count_query,
    desk_on,
    hash_of,
    open_ledger,
    pay,
    python,
    request,
)

from dpmine.base.errors import AnswerError, LedgerError, LedgerTampered, RequestInProgress
from dpmine.base.wire import to_wire
from dpmine.codes.answers import Reply
from dpmine.kernel.ledger.accounts import DATASET
from dpmine.owner.statements import entries_of


@pytest.fixture
def ledger(tmp_path):
    book = open_ledger(tmp_path / "l.db", cap=10 * WHOLE)
    book.grant("ann", WHOLE)
    pay(book, request(100), b"before the fault")
    yield book
    book.close()


def pragma(ledger: Ledger, text: str) -> Any:
    """Set a fault on the ledger's own connection: SQLite then fails as it does on such a disk."""
    return ledger.kept_in._connection.execute(f"PRAGMA {text}").fetchone()


# -- a database that cannot be written --------------------------------------------------------------------------------


def test_a_read_only_ledger_answers_nothing_and_charges_nothing(ledger):
    desk = desk_on(ledger)
    stored = desk.answer(to_wire(count_query(50)), analyst="ann")
    pragma(ledger, "query_only = 1")
    for use in (
        lambda: desk.answer(to_wire(count_query(60)), analyst="ann"),
        lambda: desk.answer(to_wire(count_query(50)), analyst="ann"),
        lambda: ledger.grant("bob", 5),
        lambda: ledger.revoke("ann"),
    ):
        with pytest.raises(LedgerError, match=r"cannot be used .*readonly.* Nothing is answered"):
            use()
    assert ledger.account("ann").spent == 150
    pragma(ledger, "query_only = 0")
    ledger.verify()
    assert desk.answer(to_wire(count_query(50)), analyst="ann") == stored
    desk.answer(to_wire(count_query(60)), analyst="ann")
    assert audit(ledger.kept_in.path).spent("ann") == 210


def test_a_ledger_that_turns_read_only_after_the_charge_releases_nothing_and_keeps_the_charge(ledger):
    reservation = ledger.reserve(request(200))
    pragma(ledger, "query_only = 1")
    with pytest.raises(LedgerError, match="Nothing is answered"):
        ledger.store(reservation, b"never seen")
    pragma(ledger, "query_only = 0")
    left = audit(ledger.kept_in.path)
    assert (left.spent("ann"), left.unanswered) == (300, {("ann", "count at 200")})
    assert ledger.store(reservation, b"stored later").answer == b"stored later"
    ledger.verify()


def test_a_full_database_charges_nothing_and_goes_on_when_there_is_room(ledger):
    pages = pragma(ledger, "page_count")[0]
    pragma(ledger, f"max_page_count = {pages}")
    desk = desk_on(ledger)
    released: list[Reply] = []

    def ask_on_and_on() -> None:
        for units in range(1000, 2000):
            released.append(desk.answer(to_wire(count_query(units)), analyst="ann"))

    with pytest.raises(LedgerError, match=r"full.* Nothing is answered"):
        ask_on_and_on()
    left = audit(ledger.kept_in.path)
    for reply in released:
        left.check_released(reply.head.sequence, reply.head.digest, hash_of(reply))
    assert left.spent("ann") == 100 + sum(cost for (_, key), cost in left.charged.items() if key != "count at 100")
    pragma(ledger, "max_page_count = 1000000")
    ledger.verify()
    units = 1000 + len(released)
    desk.answer(to_wire(count_query(units)), analyst="ann")
    assert audit(ledger.kept_in.path).spent("ann") == 100 + sum(range(1000, units + 1))


def test_an_answer_for_which_there_is_no_room_is_not_released_and_its_charge_stands(ledger):
    reservation = ledger.reserve(request(200))
    pragma(ledger, f"max_page_count = {pragma(ledger, 'page_count')[0] + 1}")
    with pytest.raises(LedgerError, match="full"):
        ledger.store(reservation, b"x" * 1_000_000)
    assert audit(ledger.kept_in.path).unanswered == {("ann", "count at 200")}
    pragma(ledger, "max_page_count = 1000000")
    again = ledger.reserve(request(200))
    assert ledger.store(again, b"x" * 1_000_000).cost == 200
    assert audit(ledger.kept_in.path).spent("ann") == 300


def test_a_ledger_locked_by_a_stranger_charges_nothing(ledger):
    pragma(ledger, "busy_timeout = 20")
    with closing(sqlite3.connect(ledger.kept_in.path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked"):
            ledger.reserve(request(200))
    pay(ledger, request(200))
    assert audit(ledger.kept_in.path).spent("ann") == 300


def test_a_closed_ledger_answers_nothing(tmp_path):
    book = open_ledger(tmp_path / "l.db", cap=WHOLE)
    book.close()
    book.close()
    for use in (book.verify, lambda: entries_of(book), lambda: book.grant("ann", 5), lambda: book.account(DATASET)):
        with pytest.raises(LedgerError):
            use()


# -- paths that are no ledger -----------------------------------------------------------------------------------------


def test_a_folder_is_no_ledger(tmp_path):
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(LedgerError, match="cannot be used"):
        open_ledger(tmp_path / "folder.db", cap=WHOLE)


def test_a_text_file_is_no_ledger_and_is_left_as_it_is(tmp_path):
    (tmp_path / "notes.txt").write_text("not a database " * 100)
    with pytest.raises(LedgerError, match="cannot be used"):
        open_ledger(tmp_path / "notes.txt", cap=WHOLE)
    assert (tmp_path / "notes.txt").read_text() == "not a database " * 100


def test_another_program_s_database_is_no_ledger(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as database:
        database.execute("CREATE TABLE songs (title TEXT)")
    with pytest.raises(LedgerError):
        open_ledger(tmp_path / "other.db", cap=WHOLE)


def test_an_empty_file_is_no_ledger_unless_one_may_be_made(tmp_path):
    (tmp_path / "l.db").touch()
    with pytest.raises(LedgerError, match="is not a ledger"):
        open_ledger(tmp_path / "l.db", create=False)
    open_ledger(tmp_path / "l.db", cap=WHOLE).close()


def test_an_anchor_that_cannot_be_written_makes_no_ledger(tmp_path):
    (tmp_path / "l.db.anchor").mkdir()
    with pytest.raises(LedgerError, match="anchor cannot be"):
        open_ledger(tmp_path / "l.db", cap=WHOLE)


def test_an_anchor_that_cannot_be_written_any_more_lets_no_answer_out(ledger):
    anchor = ledger.kept_in.path.with_name("l.db.anchor")
    kept = anchor.rename(anchor.with_name("kept"))
    anchor.mkdir()
    desk = desk_on(ledger)
    with pytest.raises(LedgerError, match=r"anchor cannot be written.* Nothing is answered"):
        desk.answer(to_wire(count_query(200)), analyst="ann")
    anchor.rmdir()
    kept.rename(anchor)
    left = audit(ledger.kept_in.path)
    assert (left.spent("ann"), len(left.unanswered)) == (300, 1)
    desk.answer(to_wire(count_query(200)), analyst="ann")  # the same request goes on where it stopped
    assert audit(ledger.kept_in.path).spent("ann") == 300
    ledger.verify()


# -- a disk that is really full ---------------------------------------------------------------------------------------

UNTIL_THE_DISK_IS_FULL = """
import json, resource, signal, sys
from pathlib import Path
from support.ledgers import count_query, hash_of, desk_on, open_ledger
from dpmine.base.errors import LedgerError
from dpmine.base.wire import to_wire

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, limit, first = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
ledger = open_ledger(path)
desk = desk_on(ledger)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    for units in range(first, first + 400):
        reply = desk.answer(to_wire(count_query(units)), analyst="ann")
        print(json.dumps([reply.head.sequence, reply.head.digest, hash_of(reply)]), flush=True)
except LedgerError as error:
    print(json.dumps(str(error)), flush=True)
"""


def until_full(path: Path, limit: int, first: int) -> tuple[list[list[Any]], str]:
    """What a process released before no file could grow beyond the limit, and the error that ended it."""
    with python("-c", UNTIL_THE_DISK_IS_FULL, str(path), str(limit), str(first)) as process:
        printed, _ = process.communicate(timeout=120)
    *released, error = [json.loads(line) for line in printed.splitlines()]
    assert process.returncode == 0
    assert isinstance(error, str), "the disk never filled up"
    return released, error


@pytest.mark.parametrize("room", [0, 100, 30_000, 150_000])
def test_a_full_disk_lets_no_unpaid_answer_out_and_the_ledger_goes_on_afterwards(tmp_path, room):
    path = tmp_path / "l.db"
    ledger = open_ledger(path, cap=10 * WHOLE)
    ledger.grant("ann", WHOLE)
    ledger.close()
    released, error = until_full(path, path.stat().st_size + room, 1000)
    assert error.endswith("Nothing is answered.")
    open_ledger(path).close()
    left = audit(path)
    for sequence, digest, sha256 in released:
        left.check_released(sequence, digest, sha256)
    assert len(left.charged) - len(released) in (0, 1)
    ledger = open_ledger(path)
    desk_on(ledger).answer(to_wire(count_query(1000 + len(released))), analyst="ann")  # the one that found no room
    ledger.close()
    assert audit(path).spent("ann") == sum(range(1000, 1001 + len(released)))


@pytest.mark.parametrize("room", [1, 3, 20, 66, 70])
def test_an_anchor_cut_short_by_a_full_disk_can_be_read_and_written_again(tmp_path, room):
    """Here the anchor is the longest file, so that it is the one to meet the limit, in the middle of a line."""
    path = tmp_path / "l.db"
    ledger = open_ledger(path, cap=10 * WHOLE)
    ledger.grant("ann", WHOLE)
    ledger.close()
    anchor = path.with_name("l.db.anchor")
    anchor.write_bytes(anchor.read_bytes() * 3000)
    released, error = until_full(path, anchor.stat().st_size + room, 1000)
    assert "anchor cannot be written" in error
    assert not anchor.read_bytes().endswith(b"\n")
    assert len(released) <= 1
    for _ in range(2):
        ledger = open_ledger(path)
        desk_on(ledger).answer(to_wire(count_query(1000)), analyst="ann")
        ledger.close()
    left = audit(path)
    assert (left.spent("ann"), len(left.answers)) == (1000, 1)
    assert anchor.read_bytes().endswith(b"\n")


# -- engines that fail after the charge -------------------------------------------------------------------------------


class FailingEngine:
    """Raises, or returns, whatever a test wants instead of counts."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    def ready(self) -> None:
        pass

    def counts(self, cells: Any, groups: Sequence[Any]) -> Any:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


FAILURES = {
    "a value in the message": ValueError("row 17 holds the secret 42"),
    "memory": MemoryError(),
    "recursion": RecursionError("too deep"),
    "arithmetic": ZeroDivisionError("division by zero"),
    "an operating system error": OSError(5, os.strerror(5), "secret-file.csv"),
    "an error of our own": LedgerTampered("from inside the engine"),
    "no counts": [],
    "nothing": None,
}


@pytest.mark.parametrize("name", FAILURES)
def test_any_failure_after_the_charge_looks_the_same_and_the_charge_stands(ledger, name):
    desk = desk_on(ledger, engine=FailingEngine(FAILURES[name]))
    with pytest.raises(AnswerError) as caught:
        desk.answer(to_wire(count_query(300)), analyst="ann")
    assert str(caught.value) == "The query was charged but could not be answered. Ask the data owner."
    assert caught.value.args == (str(caught.value),)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None  # it would hold the exact numbers, in its message and in its frames
    frames = traceback.walk_tb(caught.tb)
    assert {frame.f_code.co_name for frame, _ in frames} <= {
        caught.traceback[0].name,
        "answer",
        "_computed_and_stored",
        "_compute_behind_the_door",
    }
    left = audit(ledger.kept_in.path)
    assert (left.spent("ann"), left.spent(DATASET), len(left.unanswered)) == (400, 400, 1)
    ledger.verify()


def test_a_failed_request_may_be_asked_once_more_without_a_second_charge(ledger):
    with pytest.raises(AnswerError):
        desk_on(ledger, engine=FailingEngine(ValueError())).answer(to_wire(count_query(300)), analyst="ann")
    desk_on(ledger).answer(to_wire(count_query(300)), analyst="ann")
    left = audit(ledger.kept_in.path)
    assert (left.spent("ann"), left.unanswered) == (400, set())


def test_a_request_that_fails_twice_stays_charged_and_closed(ledger):
    desk = desk_on(ledger, engine=FailingEngine(ValueError()))
    for _ in range(2):
        with pytest.raises(AnswerError):
            desk.answer(to_wire(count_query(300)), analyst="ann")
    with pytest.raises(RequestInProgress):
        desk_on(ledger).answer(to_wire(count_query(300)), analyst="ann")
    assert audit(ledger.kept_in.path).spent("ann") == 400


def test_an_interrupted_query_stays_charged(ledger):
    with pytest.raises(KeyboardInterrupt):
        desk_on(ledger, engine=FailingEngine(KeyboardInterrupt())).answer(to_wire(count_query(300)), analyst="ann")
    left = audit(ledger.kept_in.path)
    assert (left.spent("ann"), len(left.unanswered)) == (400, 1)


def test_a_failing_source_of_noise_looks_like_any_other_failure(ledger):
    class NoNoise:
        def discrete_laplace(self, scale: Fraction, size: int) -> Any:
            raise RuntimeError("no entropy")

    desk = desk_on(ledger, noise=NoNoise())
    with pytest.raises(AnswerError, match="charged but could not be answered"):
        desk.answer(to_wire(count_query(300)), analyst="ann")
    assert audit(ledger.kept_in.path).spent("ann") == 400


def test_a_failure_before_the_charge_costs_nothing(ledger):
    def fail(step: str) -> None:
        raise RuntimeError(step)

    with pytest.raises(RuntimeError, match="planned"):
        desk_on(ledger, checkpoint=fail).answer(to_wire(count_query(300)), analyst="ann")
    assert audit(ledger.kept_in.path).spent("ann") == 100


def test_a_failure_inside_the_charging_transaction_costs_nothing(tmp_path):
    def fail(step: str) -> None:
        if step == "reserving":
            raise RuntimeError(step)

    book = open_ledger(tmp_path / "l.db", cap=WHOLE, kind=PatientLedger, at_step=fail)
    book.grant("ann", WHOLE)
    with pytest.raises(RuntimeError, match="reserving"):
        book.reserve(request(100))
    assert book.account("ann").spent == 0
    book.close()
    assert audit(tmp_path / "l.db").charged == {}
