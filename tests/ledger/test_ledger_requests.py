"""One request, one charge, one answer: request keys, cached answers, and attempts that overtake each other."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
from support.ledgers import SCHEMA, WHOLE, PatientLedger, count_query, desk_on, open_ledger, pay, request, small_table

import dpmine as dm
from dpmine.base.errors import BudgetError, RequestError, RequestInProgress
from dpmine.base.json_values import to_text
from dpmine.base.wire import to_wire
from dpmine.kernel.ledger import book as ledger_module
from dpmine.kernel.ledger.accounts import Reservation, Stored
from dpmine.kernel.ledger.book import Ledger
from dpmine.owner.statements import entries_of


@pytest.fixture
def ledger(tmp_path):
    book = open_ledger(tmp_path / "l.db", cap=10 * WHOLE)
    book.grant("ann", WHOLE)
    yield book
    book.verify()
    book.close()


# -- cached answers -------------------------------------------------------------------------------------------------


def test_the_same_query_again_is_the_same_answer_for_free(ledger):
    desk = desk_on(ledger)
    first = desk.answer(to_wire(count_query(100)), analyst="ann")
    again = desk.answer(to_wire(count_query(100)), analyst="ann")
    assert again == first
    assert to_text(again) == to_text(first)
    assert ledger.account("ann").spent == 100


def test_a_stored_answer_is_free_even_when_the_budget_is_exhausted(ledger):
    desk = desk_on(ledger)
    first = desk.answer(to_wire(count_query(WHOLE)), analyst="ann")
    with pytest.raises(BudgetError):
        desk.answer(to_wire(count_query(1)), analyst="ann")
    assert desk.answer(to_wire(count_query(WHOLE)), analyst="ann") == first
    assert desk.preview(to_wire(count_query(WHOLE)), analyst="ann").cached


def test_two_texts_that_mean_the_same_are_one_query(tmp_path):
    with dm.open(small_table(), schema=SCHEMA, cap=1) as dataset:
        table = dataset.grant("ann", epsilon=1)
        first = table.where("age >= 2").count(epsilon=0.25)
        second = table.where("age > 1").count(epsilon="0.250")
        assert (first.value, first.receipt) == (second.value, second.receipt)
        assert str(table.remaining()) == "0.75"


def test_another_version_encoding_schema_epsilon_or_analyst_is_not_cached(ledger):
    ledger.grant("bob", WHOLE)
    coarser = dm.Schema("clinic", SCHEMA.attributes[:2], rows_at_most=1000)
    asked = [
        (desk_on(ledger), count_query(100), "ann"),
        (desk_on(ledger, version="2"), count_query(100), "ann"),
        (desk_on(ledger, encoding="another"), count_query(100), "ann"),
        (desk_on(ledger, schema=coarser), count_query(100), "ann"),
        (desk_on(ledger), count_query(101), "ann"),
        (desk_on(ledger), count_query(100), "bob"),
    ]
    heads = {desk.answer(to_wire(query), analyst=analyst).head for desk, query, analyst in asked}
    assert len(heads) == len(asked)
    assert (ledger.account("ann").spent, ledger.account("bob").spent) == (501, 100)


# -- request keys ---------------------------------------------------------------------------------------------------


def test_the_same_key_with_the_same_plan_is_the_same_answer(ledger):
    desk = desk_on(ledger)
    first = desk.answer(to_wire(count_query(100)), analyst="ann", key="monday")
    assert desk.answer(to_wire(count_query(100)), analyst="ann", key="monday") == first
    assert ledger.account("ann").spent == 100


def test_the_same_key_with_another_plan_is_a_conflict_and_costs_nothing(ledger):
    desk = desk_on(ledger)
    desk.answer(to_wire(count_query(100)), analyst="ann", key="monday")
    with pytest.raises(RequestError, match="was used for another query"):
        desk.answer(to_wire(count_query(200)), analyst="ann", key="monday")
    with pytest.raises(RequestError, match="was used for another query"):
        desk_on(ledger, version="2").answer(to_wire(count_query(100)), analyst="ann", key="monday")
    assert ledger.account("ann").spent == 100


def test_another_key_is_no_way_to_a_second_draw(ledger):
    desk = desk_on(ledger)
    first = desk.answer(to_wire(count_query(100)), analyst="ann", key="monday")
    assert desk.answer(to_wire(count_query(100)), analyst="ann", key="tuesday") == first
    assert desk.answer(to_wire(count_query(100)), analyst="ann") == first
    assert ledger.account("ann").spent == 100


def test_keys_of_different_analysts_do_not_meet(ledger):
    ledger.grant("bob", WHOLE)
    desk = desk_on(ledger)
    desk.answer(to_wire(count_query(100)), analyst="ann", key="monday")
    desk.answer(to_wire(count_query(200)), analyst="bob", key="monday")
    assert (ledger.account("ann").spent, ledger.account("bob").spent) == (100, 200)


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", "\ud800", "plan:of somebody else"])
def test_a_request_key_has_1_to_200_printable_characters_and_never_looks_like_a_plan(ledger, key):
    with pytest.raises(RequestError, match="1 to 200"):
        desk_on(ledger).answer(to_wire(count_query(100)), analyst="ann", key=key)
    assert ledger.account("ann").spent == 0


# -- attempts at one request ----------------------------------------------------------------------------------------


def test_a_second_attempt_waits_and_gets_the_bytes_of_the_first(ledger):
    first = ledger.reserve(request())
    got: list[Reservation | Stored] = []
    second = threading.Thread(target=lambda: got.append(ledger.reserve(request(), patience=60.0)))
    second.start()
    stored = ledger.store(first, b"first")
    second.join()
    assert got == [stored]
    assert stored.answer == b"first"
    assert [entry["do"] for entry in entries_of(ledger)] == ["create", "grant", "reserve", "answer"]


def test_a_second_attempt_takes_over_once_and_pays_nothing(ledger):
    first = ledger.reserve(request())
    second = ledger.reserve(request(), patience=0.03)
    assert isinstance(second, Reservation)
    assert (second.analyst, second.key) == (first.analyst, first.key)
    assert second.token != first.token
    assert ledger.account("ann").spent == WHOLE // 10
    with pytest.raises(RequestInProgress, match="was charged and is being answered elsewhere"):
        ledger.reserve(request(), patience=0.03)
    assert ledger.store(second, b"second").answer == b"second"
    assert pay(ledger, request(), b"fourth").answer == b"second"
    assert ledger.account("ann").spent == WHOLE // 10


def test_a_slow_first_attempt_cannot_overwrite_the_one_that_took_over(ledger):
    first = ledger.reserve(request())
    second = ledger.reserve(request())
    fast = ledger.store(second, b"fast")
    slow = ledger.store(first, b"slow")
    assert slow == fast
    assert pay(ledger, request()).answer == b"fast"
    assert sum(entry["do"] == "answer" for entry in entries_of(ledger)) == 1


def test_a_slow_first_attempt_that_comes_back_early_waits_for_the_one_that_took_over(ledger):
    first = ledger.reserve(request())
    second = ledger.reserve(request())
    with pytest.raises(RequestInProgress, match="took this request over"):
        ledger.store(first, b"slow", patience=0.0)
    got: list[Stored] = []
    waiting = threading.Thread(target=lambda: got.append(ledger.store(first, b"slow")))
    waiting.start()
    fast = ledger.store(second, b"fast")
    waiting.join()
    assert got == [fast]
    assert fast.answer == b"fast"


def test_storing_twice_keeps_the_first_bytes(ledger):
    reservation = ledger.reserve(request())
    ledger.store(reservation, b"once")
    assert ledger.store(reservation, b"twice").answer == b"once"


def test_a_token_that_nobody_was_given_stores_nothing(ledger):
    reservation = ledger.reserve(request())
    with pytest.raises(RequestInProgress):
        ledger.store(Reservation("ann", reservation.key, "guessed"), b"forged", patience=0.0)
    assert ledger.store(reservation, b"real").answer == b"real"


def test_attempts_from_two_open_ledgers_are_fenced_like_attempts_from_one(ledger):
    other = open_ledger(ledger.kept_in.path)
    try:
        first = ledger.reserve(request())
        second = other.reserve(request())
        with pytest.raises(RequestInProgress):
            ledger.reserve(request())
        fast = other.store(second, b"fast")
        assert ledger.store(first, b"slow") == fast
    finally:
        other.close()


def test_by_default_an_attempt_waits_before_it_takes_over(tmp_path, monkeypatch):
    """The answer arrives while the second attempt waits with the library's own patience, so nothing is taken over.

    The clock stands still, so that the answer is in time however slow the disk is.
    """
    monkeypatch.setattr(ledger_module, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=time.sleep))
    book = open_ledger(tmp_path / "l.db", cap=WHOLE, kind=Ledger)
    book.grant("ann", WHOLE)
    first = book.reserve(request())
    got: list[Reservation | Stored] = []
    second = threading.Thread(target=lambda: got.append(book.reserve(request())))
    second.start()
    stored = book.store(first, b"first")
    second.join()
    assert got == [stored]
    book.close()


def test_a_preview_of_a_request_under_way_says_that_it_costs_no_more(ledger):
    ledger.reserve(request())
    assert ledger.preview(request()) == (0, True, False)


def test_many_threads_with_one_request_are_charged_once_and_get_the_same_bytes(ledger):
    desk = desk_on(open_ledger(ledger.kept_in.path, kind=PatientLedger))
    barrier = threading.Barrier(8)
    got = []

    def ask() -> None:
        barrier.wait()
        got.append(desk.answer(to_wire(count_query(100)), analyst="ann", key="one"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    desk.ledger.close()
    assert len(got) == 8
    assert len({to_text(reply) for reply in got}) == 1
    assert ledger.account("ann").spent == 100
    assert sum(entry["do"] == "answer" for entry in entries_of(ledger)) == 1
