"""Races for ten times the budget: threads and processes together never overspend, and nothing is lost.

The same checker that passes the real ledger must catch a twin that computes its prices outside the lock.
"""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from support.ledger_auditor import DATASET, Audit, audit
from support.ledgers import (
    SEX,
    WARD,
    WHOLE,
    PatientLedger,
    cell_request,
    count_query,
    desk_on,
    open_ledger,
    pay,
    python,
    random_query,
    request,
)
from support.race_worker import ask_all

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import BudgetError, LedgerError, LedgerTampered
from dpmine.base.wire import to_wire
from dpmine.kernel.ledger.accounts import Account, Request
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.ledger.odometer import add_charge
from dpmine.language.queries import Query
from dpmine.language.views import LEAF, Cell, Split, View
from dpmine.owner.statements import accounts_of, entries_of
from dpmine.questions.histogram import Histogram

ANALYSTS = ("ann", "bob", "cleo")
Asked = list[tuple[str, Query]]


def check_race(path: Path, reports: list[dict[str, Any]]) -> Audit:
    """What every race must leave behind: an exact odometer within all limits, and every reported answer in the ledger."""
    audited = audit(path)
    failures = [report["failed"] for report in reports if "failed" in report]
    assert failures == []
    answered = [report for report in reports if "sequence" in report]
    for report in answered:
        audited.check_released(report["sequence"], report["digest"], report["sha256"])
    assert {report["sequence"] for report in answered} == {
        row for row, entry in enumerate(audited.entries) if entry["do"] == "answer"
    }
    assert audited.unanswered == set()
    for name, book in audited.books.items():
        assert book.total() <= book.allotment, f"{name!r} overspent"
    return audited


def counts(total: int, number: int) -> Asked:
    """Plain counts that cost `total` in all, each at a price of its own so that none is cached."""
    return [("ann", count_query(total // number + place - number // 2)) for place in range(number)]


def disjoint_cells(price: int, number: int) -> Asked:
    """Counts in the cells of one partition: most of them cost nothing until their cell is the dearest."""
    draw = random.Random(number)
    asked = []
    for place in range(number):
        view = View((Cell(WARD, draw.randrange(3)), Cell(SEX, draw.randrange(2))))
        asked.append((draw.choice(ANALYSTS), Query(view, LEAF, Histogram(()), (Epsilon(price + place),))))
    return asked


def nested_trees(price: int, number: int) -> Asked:
    """Rule trees that refine each other, with a price for each cell."""
    draw = random.Random(number)
    coarse = Split(WARD, (LEAF,) * 3)
    fine = Split(WARD, (Split(SEX, (LEAF, LEAF)), LEAF, Split(SEX, (LEAF, LEAF))))
    asked = []
    for place in range(number):
        rules, leaves = draw.choice(((coarse, 3), (fine, 5)))
        prices = tuple(Epsilon(draw.choice((0, price // 2, price)) + place) for _ in range(leaves))
        asked.append((draw.choice(ANALYSTS), Query(View(), rules, Histogram(()), prices)))
    return asked


def everything(price: int, number: int) -> Asked:
    """All kinds of queries, a fifth of them asked twice."""
    draw = random.Random(number)
    asked = [(draw.choice(ANALYSTS), random_query(draw, price + place)) for place in range(number)]
    asked += draw.sample(asked, number // 5)
    draw.shuffle(asked)
    return asked


BUDGET = WHOLE
RACES = {
    "counts": counts(10 * BUDGET, 640),
    "disjoint cells": disjoint_cells(BUDGET // 4, 160),
    "nested trees": nested_trees(BUDGET // 5, 120),
    "everything": everything(BUDGET // 8, 120),
}


def new_ledger(path: Path) -> None:
    """Three analysts whose allotments together are more than the cap."""
    ledger = open_ledger(path, cap=2 * BUDGET)
    for analyst in ANALYSTS:
        ledger.grant(analyst, BUDGET)
    ledger.close()


def reopen_and_verify(path: Path) -> None:
    ledger = open_ledger(path)
    ledger.verify()
    ledger.close()


def check_exhausted(name: str, audited: Audit, reports: list[dict[str, Any]]) -> None:
    assert any("refused" in report for report in reports), "the race never reached the limit"
    if name == "counts":
        dearest = max(query.epsilon[0].units for _, query in RACES["counts"])
        assert audited.spent("ann") > BUDGET - dearest, "money was left that some query could have had"


@pytest.mark.parametrize("name", RACES)
def test_32_threads_that_race_for_a_ledger_in_a_file_never_overspend_it(tmp_path, name):
    new_ledger(tmp_path / "l.db")
    ledger = open_ledger(tmp_path / "l.db", kind=PatientLedger)
    reports = ask_all(desk_on(ledger), RACES[name], 32)
    ledger.close()
    check_exhausted(name, check_race(tmp_path / "l.db", reports), reports)
    reopen_and_verify(tmp_path / "l.db")


@pytest.mark.parametrize("name", ["counts", "nested trees"])
def test_32_threads_that_race_for_a_ledger_in_memory_never_overspend_it(name):
    ledger = open_ledger(None, cap=2 * BUDGET, kind=PatientLedger)
    for analyst in ANALYSTS:
        ledger.grant(analyst, BUDGET)
    reports = ask_all(desk_on(ledger), RACES[name], 32)
    assert [report for report in reports if "failed" in report] == []
    assert any("refused" in report for report in reports)
    for account in (*accounts_of(ledger), ledger.account(DATASET)):
        assert account.spent <= account.allotment
    answers = sum(entry["do"] == "answer" for entry in entries_of(ledger))
    assert answers == len({report["sequence"] for report in reports if "sequence" in report})
    ledger.verify()
    ledger.close()


def race_processes(path: Path, asked: Asked, *, processes: int, threads: int) -> list[dict[str, Any]]:
    workers = [python("-m", "support.race_worker", str(path), str(threads)) for _ in range(processes)]
    try:
        for worker in workers:
            assert worker.stdout.readline() == "ready\n"
        for number, worker in enumerate(workers):
            for analyst, query in asked[number::processes]:
                worker.stdin.write(json.dumps({"analyst": analyst, "query": to_wire(query).decode()}) + "\n")
            worker.stdin.flush()
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        return [report for worker in workers for report in json.loads(worker.stdout.readline())]
    finally:
        for worker in workers:
            worker.stdin.close()
            worker.stdout.close()
            worker.wait(timeout=60)


@pytest.mark.parametrize("name", RACES)
def test_4_processes_with_4_threads_each_never_overspend_a_ledger(tmp_path, name):
    new_ledger(tmp_path / "l.db")
    reports = race_processes(tmp_path / "l.db", RACES[name], processes=4, threads=4)
    assert len(reports) == len(RACES[name])
    check_exhausted(name, check_race(tmp_path / "l.db", reports), reports)
    reopen_and_verify(tmp_path / "l.db")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["counts", "everything"])
def test_8_processes_with_8_threads_each_never_overspend_a_ledger(tmp_path, name):
    new_ledger(tmp_path / "l.db")
    asked = {"counts": counts(10 * BUDGET, 4000), "everything": everything(BUDGET // 50, 2000)}[name]
    reports = race_processes(tmp_path / "l.db", asked, processes=8, threads=8)
    check_race(tmp_path / "l.db", reports)
    reopen_and_verify(tmp_path / "l.db")


MAKE_AND_GRANT = """
import sys
from pathlib import Path
from support.ledgers import open_ledger, pay, request

print("ready", flush=True)
sys.stdin.readline()
ledger = open_ledger(Path(sys.argv[1]), cap=1000)
ledger.grant(sys.argv[2], 100)
pay(ledger, request(10, analyst=sys.argv[2]))
ledger.close()
print("done", flush=True)
"""


def test_processes_that_make_one_ledger_at_once_make_one_ledger(tmp_path):
    for attempt in range(3):
        path = tmp_path / f"{attempt}.db"
        workers = [python("-c", MAKE_AND_GRANT, str(path), f"analyst {number}") for number in range(5)]
        for worker in workers:
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            printed, _ = worker.communicate(timeout=60)
            assert (worker.returncode, printed) == (0, "done\n")
        audited = audit(path)
        assert [entry["do"] for entry in audited.entries].count("create") == 1
        assert (audited.spent(), len(audited.answers)) == (50, 5)
        reopen_and_verify(path)


# -- the planted twin: prices computed outside the lock -------------------------------------------------------------


class StaleLedger(Ledger):
    """Reads odometers and accounts before the lock. The barrier makes two requests do so at the same moment."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.barrier = threading.Barrier(1)
        self.early = threading.local()
        super().__init__(*arguments, **options)

    def _try_reserve(self, request: Request, *, take_over: bool) -> Any:
        self.early.increases = super()._increases(request)
        self.early.account = self.account(request.analyst)
        self.early.dataset = self.account(DATASET)
        self.barrier.wait()
        return super()._try_reserve(request, take_over=take_over)

    def _charge(self, rows: Any, request: Request, account: Account, token: str) -> Any:
        return super()._charge(rows, request, self.early.account, token)

    def _increases(self, request: Request) -> Any:
        return self.early.increases

    def _dataset_account(self) -> Account:
        return self.early.dataset


def race_two(ledger: Ledger, asked: list[Request]) -> None:
    def ask(request: Request) -> None:
        try:
            pay(ledger, request)
        except (BudgetError, LedgerError):
            refused.append(request)

    refused: list[Request] = []
    ledger.barrier = threading.Barrier(len(asked))
    threads = [threading.Thread(target=ask, args=(request,)) for request in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


TWINS = {
    "both counts fit the budget that each of them saw": [request(800), request(801)],
    "both queries of a cell see that another cell is dearer": [cell_request(500, 2), cell_request(501, 2)],
}


def after_the_race(path: Path, kind: type[Ledger], asked: list[Request]) -> None:
    ledger = open_ledger(path, cap=1000, kind=kind)
    ledger.barrier = threading.Barrier(1)
    ledger.grant("ann", 1000)
    if any(node.kind == "partition" for node in asked[0].charge.nodes):
        pay(ledger, cell_request(501, 1))
    race_two(ledger, asked)
    ledger.close()


@pytest.mark.parametrize("name", TWINS)
def test_a_ledger_that_computes_prices_outside_the_lock_is_caught(tmp_path, name):
    after_the_race(tmp_path / "l.db", StaleLedger, TWINS[name])
    with pytest.raises(AssertionError, match=r"spent \d+ of|where the odometers rose by"):
        check_race(tmp_path / "l.db", [])


def test_verify_itself_refuses_what_stale_prices_left_behind(tmp_path):
    after_the_race(tmp_path / "l.db", StaleLedger, TWINS["both queries of a cell see that another cell is dearer"])
    with pytest.raises(LedgerTampered, match="states a cost that its odometers do not imply"):
        open_ledger(tmp_path / "l.db")


@pytest.mark.parametrize("name", TWINS)
def test_the_real_ledger_passes_the_race_in_which_its_twin_is_caught(tmp_path, name):
    after_the_race(tmp_path / "l.db", Ledger, TWINS[name])
    audit(tmp_path / "l.db")
    reopen_and_verify(tmp_path / "l.db")


def test_the_price_of_a_charge_depends_on_the_moment_so_it_must_be_computed_under_the_lock():
    totals: dict[str, int] = {}
    add_charge(totals, "root", cell_request(500, 1).charge)
    early = dict(totals)
    first, second = cell_request(300, 2).charge, cell_request(301, 2).charge
    assert add_charge(dict(early), "root", first) + add_charge(dict(early), "root", second) == 0
    assert add_charge(totals, "root", first) + add_charge(totals, "root", second) == 101
