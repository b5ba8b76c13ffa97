"""An analyst's own paid questions and their answers, looked up again."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from support.executors import granted
from support.ledger_auditor import audit
from support.ledgers import SCHEMA, count_query, desk_on, open_ledger, random_query, request, small_table

import dpmine as dm
from dpmine.base.errors import LedgerError, RequestError
from dpmine.base.json_values import to_text
from dpmine.base.wire import to_wire
from dpmine.kernel.ledger.book import Ledger
from dpmine.language.queries import Query
from dpmine.owner.local_executor import LocalExecutor
from dpmine.owner.statements import entries_of, paid


@pytest.fixture
def ledger(tmp_path):
    book = open_ledger(tmp_path / "l.db", cap=10**12)
    for analyst in ("ann", "bob"):
        book.grant(analyst, 10**11)
    yield book
    book.verify()
    book.close()


def executor_on(ledger: Ledger) -> LocalExecutor:
    return LocalExecutor(desk_on(ledger), "ann", SCHEMA)


def asked_by(executor: LocalExecutor, number: int, seed: int) -> list[tuple[Query, object]]:
    draw = random.Random(seed)
    queries = [random_query(draw, 1000 * seed + place) for place in range(number)]
    return [(query, executor.answer(query)) for query in dict.fromkeys(queries)]


def test_everybody_sees_their_own_questions_with_the_stored_replies_bit_for_bit_and_pays_nothing(ledger):
    desk = desk_on(ledger)
    ann, bob = LocalExecutor(desk, "ann", SCHEMA), LocalExecutor(desk, "bob", SCHEMA)
    first, second, third = asked_by(ann, 5, 1), asked_by(bob, 5, 2), asked_by(ann, 5, 3)
    rows, left = len(entries_of(ledger)), ann.remaining()
    found = {ann: first + third, bob: second}
    for executor, asked in found.items():
        answers = executor.answers()
        assert [(one.query, one.reply) for one in answers] == asked
        assert [to_text(one.reply) for one in answers] == [to_text(executor.answer(query)) for query, _ in asked]
        times = [one.at for one in answers]
        assert times == sorted(times)
    assert ann.remaining() == left
    assert len(entries_of(ledger)) == rows


@pytest.mark.parametrize("over", ["local", "json"])
def test_an_analyst_s_answers_come_across_a_wire_as_they_are(over):
    with dm.open(small_table(), schema=SCHEMA, cap=1) as data:
        private = granted(data, "ann", epsilon=1, over=over)
        private.where("age >= 2").count(epsilon=0.25)
        private.cells("ward").count(epsilon=["0.1", 0, "0.2"])
        assert private._executor.answers() == data.private("ann")._executor.answers()
        assert len(private._executor.answers()) == 2


def test_a_question_that_was_never_answered_is_not_among_the_answers(ledger):
    ann = executor_on(ledger)
    ledger.reserve(request(100))
    assert ann.answers() == ()
    ann.answer(count_query(50))
    assert [one.query for one in ann.answers()] == [count_query(50)]


def test_a_question_asked_twice_is_one_answer_in_the_words_of_the_first(tmp_path):
    with dm.open(small_table(), schema=SCHEMA, cap=1) as data:
        private = data.grant("ann", epsilon=1)
        private.where("age >= 2").count(epsilon=0.25)
        private.where("age > 1").count(epsilon="0.250")
        (one,) = private._executor.answers()
        assert '">="' in to_text(one.query)
        assert str(one.reply.cost) == "0.25"


def test_a_question_s_text_is_that_of_the_value_however_its_request_was_spelled(ledger):
    query = count_query(100)
    spelled = b" " + to_wire(query).replace(b",", b" , ").replace(b'"0.0000001"', b'"1.0e-7"')
    assert spelled != to_wire(query)
    desk = desk_on(ledger)
    desk.answer(spelled, analyst="ann")
    (entry,) = [entry for entry in entries_of(ledger) if entry["do"] == "reserve"]
    assert entry["question"].encode() == to_wire(query)
    assert entry["currency"] == "pure epsilon, in units of 1e-9"
    assert desk.answer(to_wire(query), analyst="ann").cost.units == 100


def test_answers_survive_reopening_and_other_versions_of_the_table(tmp_path):
    path = Path(tmp_path) / "l.db"
    for version in ("1", "2"):
        with dm.open(small_table(), schema=SCHEMA, ledger=path, cap=4, version=version) as data:
            data.grant("ann", epsilon=1).count(epsilon="0.25")
    with dm.open(small_table(), schema=SCHEMA, ledger=path) as data:
        answers = data.private("ann")._executor.answers()
        assert [str(one.reply.cost) for one in answers] == ["0.25", "0.25"]
        assert answers[0].reply.head.sequence < answers[1].reply.head.sequence


def test_a_revoked_analyst_sees_no_answers_and_a_stranger_is_told_that_nothing_was_granted(ledger):
    desk = desk_on(ledger)
    ann = LocalExecutor(desk, "ann", SCHEMA)
    ann.answer(count_query(50))
    ledger.revoke("ann")
    with pytest.raises(RequestError, match="has revoked the access of 'ann'"):
        ann.answers()
    for name in ("eve", ""):
        with pytest.raises(RequestError, match="granted nothing"):
            LocalExecutor(desk, name, SCHEMA).answers()


def test_answers_that_could_not_be_told_are_told_before_they_are_shown(ledger):
    """Stored by an attempt that died before the anchor knew: what is shown must never be taken back."""

    def die(name: str) -> None:
        if name == "stored":
            raise KeyboardInterrupt

    dying = open_ledger(ledger.kept_in.path, at_step=die)
    with pytest.raises(KeyboardInterrupt):
        desk_on(dying).answer(to_wire(count_query(100)), analyst="ann")
    newest = len(audit(ledger.kept_in.path).digests) - 1
    anchor = ledger.kept_in.path.with_name("l.db.anchor")
    assert f"{newest} " not in anchor.read_text()
    ((_, _, one),) = paid(ledger, "ann")
    assert f"{newest} {one.head.digest}" in anchor.read_text()


def test_a_ledger_in_another_currency_charges_nothing(ledger):
    with pytest.raises(RequestError, match="counts in 'pure epsilon, in units of 1e-9', not in 'zCDP'"):
        ledger.reserve(replace(request(100), currency="zCDP"))
    assert ledger.account("ann").spent == 0


def test_answers_are_refused_where_the_ledger_is_closed(ledger):
    ann = executor_on(ledger)
    other = executor_on(open_ledger(ledger.kept_in.path))
    other._desk.ledger.close()
    with pytest.raises(LedgerError, match="was closed"):
        other.answers()
    assert ann.answers() == ()
