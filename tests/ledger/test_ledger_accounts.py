"""What is granted, what is spent, and who pays: two accounts for every query."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ledger_auditor import audit
from support.ledgers import SCHEMA, WHOLE, cell_request, count_query, desk_on, open_ledger, pay, request, small_table

import dpmine as dm
from dpmine.base.epsilon import UNITS, Epsilon, format_units
from dpmine.base.errors import BudgetError, EpsilonError, LedgerError, RequestError
from dpmine.base.wire import to_wire
from dpmine.facts.facts import Unit
from dpmine.kernel.ledger.accounts import DATASET
from dpmine.owner.ledgers import book_at
from dpmine.owner.statements import accounts_of, entries_of


@pytest.fixture
def ledger(tmp_path):
    book = open_ledger(tmp_path / "l.db", cap=2 * WHOLE)
    yield book
    book.close()


# -- the price ------------------------------------------------------------------------------------------------------


def test_ten_queries_at_a_tenth_cost_exactly_one(tmp_path):
    with dm.open(small_table(), schema=SCHEMA, ledger=tmp_path / "l.db", cap=5) as dataset:
        table = dataset.grant("ann", epsilon=1)
        for number in range(10):
            table.where(f"age >= {number % 4}").where(f"sex == {'fm'[number % 2]}").histogram(
                *(("ward", "sex", "age")[: 1 + number // 4]), epsilon=0.1
            )
        assert table.remaining() == Epsilon(0)
        assert dataset.statement().dataset_spent == Epsilon(UNITS)
        with pytest.raises(BudgetError):
            table.count(epsilon="0.000000001")


@pytest.mark.parametrize(
    ("written", "units"),
    [
        (0.1, 10**8),
        ("0.1", 10**8),
        (Decimal("0.1"), 10**8),
        (1, 10**9),
        ("1e-9", 1),
        ("0.1234567899999", 123456789),
        (1 / 3, 333333333),
        (0.1 + 0.2, 300000000),
        (" 2.50 ", 2500000000),
    ],
)
def test_epsilon_is_read_as_decimal_text_and_rounded_down_to_whole_units(written, units):
    assert Epsilon.parse(written).units == units


@pytest.mark.parametrize("written", [0, -1, "0", "1e-10", "nan", "inf", "-inf", "", "x", True, None, [1], "1e7", "9" * 65])
def test_an_epsilon_that_is_no_positive_number_is_refused(written):
    with pytest.raises(EpsilonError):
        Epsilon.parse(written)


@given(st.decimals(min_value="1e-9", max_value="1e6", allow_nan=False, allow_infinity=False, places=12))
def test_rounding_never_raises_epsilon_and_never_loses_a_whole_unit(amount):
    epsilon = Epsilon.parse(amount)
    assert epsilon.fraction <= amount < epsilon.fraction + Epsilon(1).fraction
    assert Epsilon.parse(str(epsilon)) == epsilon


def test_amounts_are_written_as_the_shortest_exact_decimal():
    assert [format_units(units) for units in (0, 1, 10**8, 10**9, 1234567890)] == [
        "0",
        "0.000000001",
        "0.1",
        "1",
        "1.23456789",
    ]


def test_a_unit_that_owns_several_rows_pays_for_each(ledger):
    ledger.grant("ann", WHOLE)
    pay(ledger, request(10, rows_per_unit=3))
    assert ledger.account("ann").spent == ledger.account(DATASET).spent == 30
    ledger.verify()


# -- short budgets --------------------------------------------------------------------------------------------------


def test_ledger_refuses_a_query_that_exceeds_the_budget(ledger):
    ledger.grant("ann", WHOLE)
    pay(ledger, request(WHOLE * 8 // 10))
    before = entries_of(ledger)
    with pytest.raises(BudgetError, match=r"needs epsilon 0\.5 and 0\.2 remains\.$") as caught:
        ledger.reserve(request(WHOLE // 2))
    assert (caught.value.requested, caught.value.remaining) == ("0.5", "0.2")
    assert ledger.account("ann").spent == ledger.account(DATASET).spent == WHOLE * 8 // 10
    assert entries_of(ledger) == before
    pay(ledger, request(WHOLE * 2 // 10))
    assert ledger.account("ann").remaining == 0
    ledger.verify()


def test_an_empty_budget_advises_to_ask_the_owner(ledger):
    ledger.grant("ann", WHOLE)
    pay(ledger, request(WHOLE))
    with pytest.raises(BudgetError, match=r"0 remains\. Ask the data owner for more\."):
        desk_on(ledger).answer(to_wire(count_query(1)), analyst="ann")


def test_a_query_that_no_cell_can_pay_for_is_refused_as_a_whole(ledger):
    ledger.grant("ann", 100)
    pay(ledger, cell_request(90, 0))
    with pytest.raises(BudgetError) as caught:
        ledger.reserve(cell_request(101, 1))
    assert (caught.value.requested, caught.value.remaining) == ("0.000000011", "0.00000001")
    pay(ledger, cell_request(100, 1))
    assert ledger.account("ann").spent == 100


def test_advice_to_persons_with_several_rows_is_what_they_could_ask(ledger):
    """A question's epsilon is a row's: three rows cost three times as much."""
    ledger.grant("dora", WHOLE)
    desk = desk_on(ledger, schema=replace(SCHEMA, unit=Unit("name", 3)))

    def ask(units: int) -> None:
        desk.answer(to_wire(count_query(units)), analyst="dora")

    with pytest.raises(BudgetError, match=r"needs epsilon 3 and 1 remains\. Ask with at most 0\.333333333, or") as short:
        ask(WHOLE)
    assert (short.value.requested, short.value.remaining) == ("3", "1")
    ask(333_333_333)
    with pytest.raises(BudgetError, match=r"0\.000000001 remains\. Ask the data owner for more\."):
        ask(1)


def test_a_closed_ledger_says_so(ledger):
    ledger.close()
    with pytest.raises(LedgerError, match="was closed"):
        ledger.reserve(request(7))


def test_the_cap_of_the_data_set_binds_all_analysts_together(ledger):
    for analyst in ("ann", "bob", "cleo"):
        ledger.grant(analyst, WHOLE)
    pay(ledger, request(WHOLE, analyst="ann"))
    pay(ledger, request(WHOLE * 7 // 10, analyst="bob"))
    with pytest.raises(BudgetError, match="of the data set's cap over all analysts, which has less left") as caught:
        ledger.reserve(request(WHOLE * 4 // 10, analyst="cleo"))
    assert (caught.value.requested, caught.value.remaining) == ("0.4", None)
    assert ledger.account("cleo").spent == 0
    pay(ledger, request(WHOLE * 3 // 10, analyst="cleo"))
    assert ledger.account(DATASET).spent == 2 * WHOLE
    ledger.verify()


# -- two odometers --------------------------------------------------------------------------------------------------


def test_an_analyst_does_not_learn_for_free_in_cells_that_others_paid_for(ledger):
    ledger.grant("ann", WHOLE)
    ledger.grant("bob", WHOLE)
    pay(ledger, cell_request(500, 1, analyst="ann"))
    assert ledger.account(DATASET).spent == 500
    assert ledger.preview(cell_request(500, 2, analyst="bob")) == (500, True, False)
    paid = pay(ledger, cell_request(500, 2, analyst="bob"))
    assert paid.cost == 500
    assert ledger.account("bob").spent == 500
    assert ledger.account(DATASET).spent == 500  # the cells are disjoint: no row lost more


def test_two_analysts_who_ask_the_same_cell_both_pay_and_the_data_set_pays_twice(ledger):
    ledger.grant("ann", WHOLE)
    ledger.grant("bob", WHOLE)
    first = pay(ledger, cell_request(500, 1, analyst="ann"), b"for ann")
    second = pay(ledger, cell_request(500, 1, analyst="bob"), b"for bob")
    assert (first.answer, second.answer) == (b"for ann", b"for bob")
    assert [ledger.account(name).spent for name in ("ann", "bob", DATASET)] == [500, 500, 1000]


def test_a_free_query_is_answered_even_when_the_budget_is_exhausted(ledger):
    ledger.grant("ann", 500)
    pay(ledger, cell_request(500, 1))
    assert pay(ledger, cell_request(500, 2)).cost == 0


# -- grants ---------------------------------------------------------------------------------------------------------


def test_a_grant_sets_the_allotment_and_granting_the_same_again_changes_nothing(ledger):
    ledger.grant("ann", 100)
    pay(ledger, request(60))
    before = entries_of(ledger)
    ledger.grant("ann", 100)
    assert entries_of(ledger) == before
    ledger.grant("ann", 150)
    assert (ledger.account("ann").spent, ledger.account("ann").remaining) == (60, 90)
    ledger.grant("ann", 50)
    assert (ledger.account("ann").spent, ledger.account("ann").remaining) == (60, 0)
    with pytest.raises(BudgetError):
        ledger.reserve(request(1))
    ledger.verify()


def test_a_revoked_analyst_gets_no_answer_not_even_a_stored_one_until_granted_again(ledger):
    ledger.grant("ann", 100)
    stored = pay(ledger, request(60))
    ledger.revoke("ann")
    assert (ledger.account("ann").revoked, ledger.account("ann").spent, ledger.account("ann").remaining) == (True, 60, 0)
    for asked in (request(60), request(10)):
        with pytest.raises(RequestError, match="has revoked the access of 'ann'"):
            ledger.reserve(asked)
        with pytest.raises(RequestError, match="has revoked the access of 'ann'"):
            ledger.preview(asked)
    ledger.verify()
    ledger.grant("ann", 100)
    assert ledger.account("ann").remaining == 40
    assert pay(ledger, request(60)) == stored


def test_an_answer_that_is_under_way_is_still_stored_after_a_revocation(ledger):
    ledger.grant("ann", 100)
    reservation = ledger.reserve(request(60))
    ledger.revoke("ann")
    assert ledger.store(reservation, b"late").answer == b"late"
    ledger.verify()


def test_an_unknown_analyst_is_told_that_nothing_was_granted(ledger):
    for ask in (ledger.reserve, ledger.preview):
        with pytest.raises(RequestError, match="The owner has granted nothing to 'eve'"):
            ask(request(1, analyst="eve"))
    for look in (ledger.account, ledger.revoke):
        with pytest.raises(RequestError, match="The owner has granted nothing to 'eve'"):
            look("eve")


@pytest.mark.parametrize("name", ["", "a\nb", "\0", "x" * 201, "\ud800"])
def test_an_analyst_needs_a_printable_name(ledger, name):
    with pytest.raises(RequestError, match="printable"):
        ledger.grant(name, 1)


def test_nobody_can_ask_or_be_revoked_in_the_name_of_the_data_set_itself(ledger):
    with pytest.raises(RequestError):
        ledger.reserve(request(1, analyst=DATASET))
    with pytest.raises(RequestError):
        ledger.revoke(DATASET)
    assert ledger.account(DATASET).remaining == 2 * WHOLE


def test_accounts_lists_the_analysts_by_name(ledger):
    for analyst in ("cleo", "ann", "bob"):
        ledger.grant(analyst, 7)
    assert [account.name for account in accounts_of(ledger)] == ["ann", "bob", "cleo"]


# -- which ledger ---------------------------------------------------------------------------------------------------


def test_a_ledger_names_its_currency_and_what_neighbours_are(ledger):
    assert ledger.fact("currency") == "pure epsilon, in units of 1e-9"
    assert ledger.fact("neighbours") == "add or remove one row"
    assert ledger.fact("format") == "dpmine-ledger-3"


def test_a_ledger_belongs_to_the_data_set_it_was_made_for(tmp_path):
    open_ledger(tmp_path / "l.db", cap=5).close()
    with pytest.raises(LedgerError, match="belongs to the data set 'clinic', not to 'other'"):
        book_at(tmp_path / "l.db", dataset="other", cap=None)


def test_a_ledger_keeps_the_cap_it_was_made_with(tmp_path):
    open_ledger(tmp_path / "l.db", cap=WHOLE).close()
    with pytest.raises(LedgerError, match="cap is epsilon 1, not 2"):
        open_ledger(tmp_path / "l.db", cap=2 * WHOLE)
    for cap in (None, WHOLE):
        book = open_ledger(tmp_path / "l.db", cap=cap)
        assert book.account(DATASET).allotment == WHOLE
        book.close()


def test_a_new_ledger_needs_a_cap_and_leave_to_be_made(tmp_path):
    with pytest.raises(LedgerError, match="needs a cap"):
        open_ledger(tmp_path / "l.db")
    with pytest.raises(LedgerError, match="There is no ledger"):
        open_ledger(tmp_path / "other.db", cap=5, create=False)
    assert not (tmp_path / "other.db").exists()
    with pytest.raises(LedgerError, match="does not exist"):
        open_ledger(tmp_path / "no" / "folder.db", cap=5)


def test_everything_survives_closing_and_opening(tmp_path):
    book = open_ledger(tmp_path / "l.db", cap=WHOLE)
    book.grant("ann", 100)
    stored = pay(book, request(60), b"kept")
    pay(book, cell_request(30, 1))
    book.close()
    book = open_ledger(tmp_path / "l.db")
    assert (book.account("ann").spent, book.account(DATASET).spent) == (90, 90)
    assert pay(book, request(60), b"another draw") == stored
    assert pay(book, cell_request(30, 2)).cost == 0
    book.close()
    assert audit(tmp_path / "l.db").spent("ann") == 90


def test_a_ledger_opened_by_a_relative_path_keeps_its_anchor_when_the_process_changes_folder(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    book = dm.open(small_table(), schema=SCHEMA, ledger="l.db", cap=5)
    monkeypatch.chdir(tmp_path / "elsewhere")
    book.grant("ann", epsilon=1).count(epsilon="0.1")
    book.close()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert len((tmp_path / "l.db.anchor").read_text().splitlines()) == len(audit(tmp_path / "l.db").digests)


def test_a_ledger_in_memory_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = open_ledger(None, cap=5)
    book.grant("ann", 5)
    pay(book, request(5))
    book.verify()
    book.close()
    assert list(tmp_path.iterdir()) == []
