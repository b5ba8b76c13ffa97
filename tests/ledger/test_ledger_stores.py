"""A ledger needs nothing of a store but what `dpmine.kernel.ledger.store` says: here one keeps its rows in plain dicts."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from support.ledgers import SCHEMA, WHOLE, ImpatientLedger, cell_request, count_query, desk_on, pay, request

from dpmine.base.errors import BudgetError, LedgerError
from dpmine.base.wire import to_wire
from dpmine.kernel.ledger import replay as replay_module
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.ledger.store import Row, Rows, Store
from dpmine.owner.head_files import AnchorFile
from dpmine.owner.sqlite_store import SQLiteStore
from dpmine.owner.statements import entries_of, paid


class DictRows:
    def __init__(self) -> None:
        self.made = False
        self.kept: dict[str, dict[int, Any]] = {"log": {}, "answers": {}, "checkpoints": {}}

    def are_new(self) -> bool:
        return not self.made

    def make(self) -> None:
        self.made = True

    def _from(self, kind: str, first: int) -> Iterator[Any]:
        return iter([(place, self.kept[kind][place]) for place in sorted(self.kept[kind]) if place >= first])

    def log(self, first: int) -> Iterator[Row]:
        return (row for _, row in self._from("log", first))

    def digest(self, sequence: int) -> str | None:
        row = self.kept["log"].get(sequence)
        return None if row is None else row[2]

    def append(self, row: Row) -> None:
        assert row[0] not in self.kept["log"]
        self.kept["log"][row[0]] = row

    def answer(self, sequence: int) -> bytes | None:
        return self.kept["answers"].get(sequence)

    def answers(self, first: int) -> Iterator[tuple[int, bytes]]:
        return self._from("answers", first)

    def keep_answer(self, sequence: int, answer: bytes) -> None:
        self.kept["answers"][sequence] = answer

    def checkpoints(self, first: int) -> Iterator[tuple[int, str]]:
        return self._from("checkpoints", first)

    def checkpoint_places(self) -> list[int]:
        return sorted(self.kept["checkpoints"])

    def keep_checkpoint(self, sequence: int, text: str) -> None:
        self.kept["checkpoints"][sequence] = text


class DictStore:
    """One transaction at a time, of which an error leaves nothing."""

    name = "a dict"

    def __init__(self) -> None:
        self.rows = DictRows()
        self._lock = threading.RLock()

    @contextmanager
    def _transaction(self, keep: bool) -> Iterator[Rows]:
        with self._lock:
            rows = copy.deepcopy(self.rows)
            yield rows
            self.rows = rows if keep else self.rows

    def writing(self) -> AbstractContextManager[Rows]:
        return self._transaction(True)

    def reading(self) -> AbstractContextManager[Rows]:
        return self._transaction(False)

    def let_go(self) -> None:
        pass

    def close(self) -> None:
        pass


STORES: dict[str, Callable[[], Store]] = {"dicts": DictStore, "SQLite in memory": lambda: SQLiteStore(None)}


@pytest.fixture(params=STORES)
def store(request: Any) -> Store:
    return STORES[request.param]()


def ledger_in(store: Store, **options: Any) -> Ledger:
    return ImpatientLedger(store, dataset=SCHEMA.name, **options)


def test_a_ledger_keeps_its_promises_in_any_store(store):
    ledger = ledger_in(store, cap=2 * WHOLE)
    ledger.grant("ann", 1000)
    assert pay(ledger, request(600), b"first").cost == 600
    assert pay(ledger, request(600), b"second").answer == b"first"
    pay(ledger, cell_request(400, 1))
    assert pay(ledger, cell_request(400, 2)).cost == 0
    with pytest.raises(BudgetError):
        ledger.reserve(request(1))
    first = ledger.reserve(cell_request(300, 0))
    second = ledger.reserve(cell_request(300, 0))
    assert ledger.store(second, b"took over") == ledger.store(first, b"too late")
    assert ledger.verify() == len(entries_of(ledger)) == 11
    assert [stored.answer for _, _, stored in paid(ledger, "ann")] == [b"first", b"answer", b"answer", b"took over"]
    ledger.close()


def test_the_door_answers_over_any_store(store):
    ledger = ledger_in(store, cap=2 * WHOLE)
    ledger.grant("ann", WHOLE)
    desk = desk_on(ledger)
    reply = desk.answer(to_wire(count_query(1000)), analyst="ann")
    assert desk.answer(to_wire(count_query(1000)), analyst="ann") == reply
    ledger.close()


def test_a_failing_step_leaves_nothing_in_any_store(store):
    def fail(step: str) -> None:
        if step == "reserving":
            raise RuntimeError(step)

    ledger = ledger_in(store, cap=2 * WHOLE, at_step=fail)
    ledger.grant("ann", WHOLE)
    with pytest.raises(RuntimeError):
        ledger.reserve(request(10))
    assert (ledger.account("ann").spent, ledger.verify()) == (0, 2)
    ledger.close()


def test_a_ledger_in_another_store_opens_from_its_checkpoints_too(tmp_path, monkeypatch):
    monkeypatch.setattr(replay_module, "LETTERS", 3000)
    store, anchor = DictStore(), AnchorFile(tmp_path / "l")
    ledger = ledger_in(store, cap=2 * WHOLE, anchor=anchor)
    ledger.grant("ann", WHOLE)
    for units in range(100, 130):
        pay(ledger, request(units))
    ledger.close()
    assert len(store.rows.checkpoint_places()) >= 3
    again = ledger_in(store, cap=None, anchor=anchor)
    assert again.account("ann").spent == sum(range(100, 130))
    assert min(again._log.known.checkpoints) == store.rows.checkpoint_places()[-1]  # no earlier one was looked at
    again.close()


@pytest.mark.parametrize(
    ("options", "complaint"), [({"cap": 5, "create": False}, "is not a ledger"), ({"cap": None}, "needs a cap")]
)
def test_an_empty_store_makes_no_ledger_unless_one_may_be_made(store, options, complaint):
    with pytest.raises(LedgerError, match=complaint):
        ledger_in(store, **options)
