"""A ledger that is opened or used where the stack is almost used up answers nothing, and holds no lock afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from support.ledger_auditor import audit
from support.ledgers import WHOLE, cell_request, count_query, desk_on, open_ledger, pay, request

from dpmine.base.errors import LedgerError
from dpmine.base.wire import to_wire
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.ledger.replay import Replay
from dpmine.owner.head_files import FileWitness

HEADROOMS = (*range(3, 40), *range(40, 160, 2))


def depth() -> int:
    frame, found = sys._getframe(), 0
    while frame is not None:
        frame, found = frame.f_back, found + 1
    return found


def with_headroom(frames: int, use: Callable[[], Any]) -> Any:
    """Call with so many frames left."""

    def down(left: int) -> Any:
        return use() if left <= 0 else down(left - 1)

    return down(sys.getrecursionlimit() - depth() - frames)


def refused_or_done(use: Callable[[], Any]) -> list[str]:
    """How each headroom ended; anything but an answer or a ledger's error is a failure of the test."""
    ended = []
    for frames in HEADROOMS:
        try:
            with_headroom(frames, use)
            ended.append("done")
        except LedgerError:
            ended.append("refused")
        except RecursionError:
            assert frames < 24, "an error escaped from inside the ledger"
            ended.append("never begun")
    return ended


@pytest.fixture
def path(tmp_path):
    ledger = open_ledger(tmp_path / "l.db", cap=10 * WHOLE, witness=FileWitness(tmp_path / "witness"))
    ledger.grant("ann", WHOLE)
    pay(ledger, cell_request(50, 1))
    desk_on(ledger).answer(to_wire(count_query(100)), analyst="ann")
    ledger.close()
    return tmp_path / "l.db"


def opened(path: Any) -> Ledger:
    return open_ledger(path, witness=FileWitness(path.with_name("witness")))


def test_opening_from_a_deep_stack_works_or_is_refused_and_leaves_nothing_half_open(path):
    books = []
    ended = refused_or_done(lambda: books.append(opened(path)))
    for book in books:
        book.close()
    assert "refused" in ended
    assert ended[-1] == "done"
    ledger = opened(path)
    pay(ledger, request(7))
    ledger.close()
    audit(path)


def test_using_an_open_ledger_from_a_deep_stack_answers_or_refuses_and_it_goes_on_afterwards(path):
    ledger, other = opened(path), opened(path)
    prices = iter(range(1000, 2000))
    ended = refused_or_done(lambda: pay(ledger, request(next(prices))))
    assert ended[-1] == "done"
    assert "refused" in ended
    pay(ledger, request(7))
    pay(other, request(8))  # no lock was left behind
    other.close()
    ledger.verify()
    ledger.close()
    audit(path)


def test_verifying_from_a_deep_stack_is_refused_and_the_ledger_goes_on(path):
    ledger = opened(path)
    ended = refused_or_done(ledger.verify)
    assert ended[-1] == "done"
    assert "refused" in ended
    pay(ledger, request(7))
    ledger.close()
    audit(path)


@pytest.mark.parametrize("error", [RecursionError, MemoryError])
@pytest.mark.parametrize("step", ["follow", "check_answers"])
def test_running_out_of_stack_or_memory_while_opening_is_a_ledger_error(path, monkeypatch, step, error):
    def fail(*unused: Any) -> None:
        raise error

    monkeypatch.setattr(Replay, step, fail)
    with pytest.raises(LedgerError, match="Nothing is answered"):
        opened(path)
    monkeypatch.undo()
    opened(path).close()


@pytest.mark.parametrize("error", [RecursionError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["follow", "add"])
def test_a_state_that_was_changed_in_part_is_rebuilt_before_anything_else_is_charged(path, monkeypatch, step, error):
    ledger, other = opened(path), opened(path)

    def fail(self: Any, *unused: Any) -> None:
        self.state.accounts.clear()
        raise error

    pay(other, request(30))
    monkeypatch.setattr(Replay, step, fail)
    with pytest.raises((LedgerError, KeyboardInterrupt)):
        ledger.reserve(request(40))
    monkeypatch.undo()
    pay(ledger, request(40))
    pay(ledger, request(50))
    assert ledger.account("ann").spent == 270
    other.close()
    ledger.close()
    opened(path).close()
    audit(path)
