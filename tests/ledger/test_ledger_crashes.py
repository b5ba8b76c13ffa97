"""Processes that are killed at every step of the protocol and at random moments.

After each crash the ledger opens and verifies, no charge is lost, no answer was free, no charge has two answers, and
the same request asked again gets exactly one stored answer without a second charge.
"""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from support.ledger_auditor import Audit, audit
from support.ledgers import count_query, desk_on, hash_of, open_ledger, python, random_query

from dpmine.base.errors import RequestInProgress
from dpmine.base.wire import to_wire
from dpmine.kernel.ledger.book import Ledger
from dpmine.language.queries import Query
from dpmine.owner.head_files import FileWitness

CAP = 10**12
BEFORE_THE_CHARGE = ("planned", "reserving")
CHARGED = ("reserved", "reserve-anchored", "reserve-witnessed", "computed", "storing")
ANSWERED = ("stored", "store-anchored", "store-witnessed")
STEPS = (*BEFORE_THE_CHARGE, *CHARGED, *ANSWERED)


def witness_of_ledger(path: Path) -> FileWitness | None:
    """A ledger has a witness here if there is a folder for it."""
    folder = path.parent / "elsewhere"
    return FileWitness(folder / "witness") if folder.is_dir() else None


def reopened(path: Path, **options: Any) -> Ledger:
    return open_ledger(path, witness=witness_of_ledger(path), **options)


class Crasher:
    """Runs queries in a process that is killed."""

    def __init__(self) -> None:
        self._process = python("-m", "support.crash_worker")

    def run(self, path: Path, queries: list[Query], **options: Any) -> dict[str, Any]:
        witness = witness_of_ledger(path)
        task = {"ledger": str(path), "cap": CAP, "queries": [to_wire(query).decode() for query in queries]}
        task["witness"] = str(witness.path) if witness else None
        defaults = {"step": None, "kill_after": None, "threads": 1, "eager": False}
        self._process.stdin.write(json.dumps({**task, **defaults, **options}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)


@pytest.fixture(scope="module")
def crasher():
    process = Crasher()
    yield process
    process.close()


def audited_after_reopening(path: Path) -> Audit:
    reopened(path).close()  # verifies, or refuses to open
    return audit(path)


def ask_again(path: Path, query: Query) -> str:
    """Ask the query in this process and return the hash of the answer."""
    ledger = reopened(path)
    try:
        return hash_of(desk_on(ledger).answer(to_wire(query), analyst="ann"))
    finally:
        ledger.close()


# -- at every step --------------------------------------------------------------------------------------------------


def crash_at(crasher: Crasher, path: Path, step: str, crashes: int) -> None:
    """The same ledger lives through all crashes; each one is a new query."""
    draw = random.Random(f"{step} {crashes}")
    paid = 0
    for number in range(crashes):
        query = random_query(draw, 1000 * (number + 1))
        ended = crasher.run(path, [query], step=step)
        assert ended == {"ended": -signal.SIGKILL, "released": []}
        crashed = audited_after_reopening(path)
        assert len(crashed.charged) - number == (step not in BEFORE_THE_CHARGE)
        assert len(crashed.answers) - number == (step in ANSWERED)
        assert (crashed.spent("ann") == paid) if step in BEFORE_THE_CHARGE else (crashed.spent("ann") >= paid)
        paid_by_the_crash = crashed.spent("ann")

        answer = ask_again(path, query)
        after = audited_after_reopening(path)
        assert len(after.charged) == len(after.answers) == number + 1
        assert answer in after.answers.values()
        if step not in BEFORE_THE_CHARGE:
            assert after.spent("ann") == paid_by_the_crash, "the second attempt was charged again"
            assert after.charged == crashed.charged
        if step in ANSWERED:
            assert after.answers == crashed.answers, "the stored answer was drawn again"
        assert ask_again(path, query) == answer
        paid = after.spent("ann")


@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_at_any_step_loses_no_charge_and_frees_no_answer(crasher, tmp_path, step):
    crash_at(crasher, tmp_path / "l.db", step, 10)


@pytest.mark.parametrize("step", STEPS)
def test_a_process_with_a_witness_killed_at_any_step_loses_no_charge_and_frees_no_answer(crasher, tmp_path, step):
    (tmp_path / "elsewhere").mkdir()
    crash_at(crasher, tmp_path / "l.db", step, 4)
    told = FileWitness(tmp_path / "elsewhere" / "witness").path.read_text().splitlines()
    assert [int(line.split()[1]) for line in told][-1] == len(audit(tmp_path / "l.db").digests) - 1


@pytest.mark.parametrize(
    ("step", "told"),
    [("reserve-anchored", False), ("reserve-witnessed", True), ("store-anchored", False), ("store-witnessed", True)],
)
def test_the_witness_is_told_between_the_anchor_and_the_release(crasher, tmp_path, step, told):
    """A ledger put back to before a charge that was told is refused; one that died before telling had released nothing."""
    path = tmp_path / "l.db"
    (tmp_path / "elsewhere").mkdir()
    assert crasher.run(path, [count_query(1000)], step=step)["released"] == []
    newest = f" {len(audit(path).digests) - 1} "
    assert (newest in (tmp_path / "elsewhere" / "witness").read_text()) == told
    reopened(path).close()
    assert newest in (tmp_path / "elsewhere" / "witness").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_100_processes_killed_at_any_step_lose_no_charge_and_free_no_answer(crasher, tmp_path, step):
    crash_at(crasher, tmp_path / "l.db", step, 100)


@pytest.mark.parametrize("step", CHARGED)
def test_a_request_that_died_twice_is_never_charged_or_drawn_again(crasher, tmp_path, step):
    query = count_query(1000)
    for _ in range(2):
        assert crasher.run(tmp_path / "l.db", [query], step=step)["ended"] == -signal.SIGKILL
    with pytest.raises(RequestInProgress):
        ask_again(tmp_path / "l.db", query)
    left = audited_after_reopening(tmp_path / "l.db")
    assert (left.spent("ann"), len(left.charged), left.answers) == (1000, 1, {})


def test_a_process_that_releases_before_it_stores_is_caught(crasher, tmp_path):
    ended = crasher.run(tmp_path / "l.db", [count_query(1000)], step="storing", eager=True)
    (row,) = ended["released"]
    with pytest.raises(AssertionError, match="released that the ledger does not hold"):
        audited_after_reopening(tmp_path / "l.db").check_released(row["sequence"], row["digest"], row["sha256"])


def test_bytes_stored_by_a_process_that_died_before_anchoring_them_are_anchored_before_release(crasher, tmp_path):
    path = tmp_path / "l.db"
    ledger = open_ledger(path, cap=CAP)  # open all along, so that nothing is put right by opening
    ended = crasher.run(path, [count_query(1000)], step="stored")
    assert ended["ended"] == -signal.SIGKILL
    newest = len(audit(path).digests) - 1
    assert f"{newest} " not in _anchored(path)
    reply = desk_on(ledger).answer(to_wire(count_query(1000)), analyst="ann")
    ledger.close()
    assert reply.head.sequence == newest
    assert f"{newest} {reply.head.digest}" in _anchored(path)


@pytest.mark.parametrize("step", ["reserved", "stored"])
def test_opening_anchors_the_row_that_a_dead_process_left_without_anchor(crasher, tmp_path, step):
    path = tmp_path / "l.db"
    crasher.run(path, [count_query(1000)], step=step)
    newest = len(audit(path).digests) - 1
    assert f"{newest} " not in _anchored(path)
    open_ledger(path).close()
    assert f"{newest} " in _anchored(path)


def _anchored(path: Path) -> str:
    return path.with_name(path.name + ".anchor").read_text()


# -- at random moments ----------------------------------------------------------------------------------------------


def crash_at_random(crasher: Crasher, folder: Path, *, crashes: int, ledgers: int, threads: int) -> None:
    """Kill busy processes; whatever any of them released must stand in the ledger, after its charge."""
    draw = random.Random(f"{crashes} {threads}")
    for book in range(ledgers):
        path = folder / f"{book}.db"
        reopened(path, cap=CAP).close()
        released: set[tuple[int, str, str]] = set()
        pool = [random_query(draw, 1000 + place) for place in range(40)]
        for _ in range(crashes // ledgers):
            ended = crasher.run(path, draw.sample(pool, 12), kill_after=draw.uniform(0, 0.06), threads=threads)
            assert ended["ended"] in (-signal.SIGKILL, 0)
            released.update((row["sequence"], row["digest"], row["sha256"]) for row in ended["released"])
            crashed = audited_after_reopening(path)
            for answer in released:
                crashed.check_released(*answer)
        _finish(path, pool)
        finished = audited_after_reopening(path)
        for answer in released:
            finished.check_released(*answer)


def _finish(path: Path, pool: list[Query]) -> None:
    """Ask everything that was ever asked: nothing that was charged is charged again."""
    before = audited_after_reopening(path)
    ledger = reopened(path)
    ledger.grant("ann", CAP)
    desk = desk_on(ledger)
    stuck = 0
    for query in pool:
        try:
            desk.answer(to_wire(query), analyst="ann")
        except RequestInProgress:
            stuck += 1
    ledger.close()
    after = audited_after_reopening(path)
    assert len(after.unanswered) == stuck
    assert before.charged.items() <= after.charged.items()
    assert before.answers.items() <= after.answers.items()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("with_witness", [False, True])
def test_processes_killed_at_random_lose_no_charge_and_free_no_answer(crasher, tmp_path, threads, with_witness):
    if with_witness:
        (tmp_path / "elsewhere").mkdir()
    crash_at_random(crasher, tmp_path, crashes=40, ledgers=2, threads=threads)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_500_processes_killed_at_random_lose_no_charge_and_free_no_answer(crasher, tmp_path, threads):
    crash_at_random(crasher, tmp_path, crashes=500, ledgers=20, threads=threads)


@pytest.mark.parametrize("with_witness", [False, True])
def test_a_process_killed_while_it_makes_a_ledger_leaves_one_that_opens_or_none(crasher, tmp_path, with_witness):
    if with_witness:
        (tmp_path / "elsewhere").mkdir()
    for number in range(15):
        path = tmp_path / f"{number}.db"
        crasher.run(path, [], kill_after=number * 0.001)
        ledger = reopened(path, cap=CAP)
        ledger.verify()
        ledger.close()
        audit(path)
