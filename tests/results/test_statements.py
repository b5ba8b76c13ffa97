"""Statements: what was granted and spent, and the guarantee in one plain sentence."""

from __future__ import annotations

from support.executors import Opener, granted

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.base.json_values import from_text, to_text
from dpmine.datasets import patients, patients_schema
from dpmine.engines.encoding import encode
from dpmine.facts.sources import open_source
from dpmine.results.statements import Allotment

SCHEMA = patients_schema()
TABLE = encode(open_source(patients(200)), SCHEMA)


def test_an_analyst_sees_the_own_part_only() -> None:
    with dm.open(TABLE, schema=SCHEMA, cap=4, version="2024") as data:
        for over in ("local", "json"):
            alice, bob = (granted(data, f"{name} {over}", epsilon=1, over=over) for name in ("alice", "bob"))
            alice.count(epsilon="0.25")
            alice.histogram("ward", "cough", epsilon="0.5")
            bob.choose("ward", epsilon="0.125")
            statement = alice.statement()
            assert (statement.dataset, statement.version, str(statement.cap)) == ("patients", "2024", "4")
            assert statement.dataset_spent is None
            assert [(one.analyst, str(one.spent), str(one.remaining)) for one in statement.allotments] == [
                (f"alice {over}", "0.75", "0.25")
            ]
            assert [(one.what, str(one.cost), one.answered) for one in statement.spendings] == [
                ("count at epsilon 0.25", "0.25", True),
                ("histogram by ward, cough at epsilon 0.5", "0.5", True),
            ]
            assert "bob" not in str(statement)
            assert from_text(to_text(statement), type(statement)) == statement


def test_the_owner_sees_everybody_and_what_the_data_set_lost() -> None:
    with dm.open(TABLE, schema=SCHEMA, cap=4) as data:
        alice, bob = data.grant("alice", epsilon=1), data.grant("bob", epsilon=2)
        alice.count(epsilon="0.25")
        bob.partition("ward")["north"].count(epsilon="0.5")
        bob.cells("ward").choose(["age"], score="gini", epsilon=["0.1", "0.2", 0, 0, 0, 0])
        data.revoke("bob")
        statement = data.statement()
    assert str(statement.dataset_spent) == "0.85"
    assert [(one.analyst, str(one.allotment), str(one.spent), one.revoked) for one in statement.allotments] == [
        ("alice", "1", "0.25", False),
        ("bob", "2", "0.6", True),
    ]
    lines = str(statement).splitlines()
    assert lines[0] == "Data set 'patients', version '1'. Cap over all analysts: epsilon 4."
    assert lines[1] == "Spent by all together: epsilon 0.85."
    assert lines[2] == "alice: granted 1, spent 0.25, remaining 0.75."
    assert lines[3] == "bob: granted 2, spent 0.6, remaining 0, revoked."
    assert lines[-2].endswith("bob  charged 0.1  choice of a split by gini in 6 cells at epsilon 0.1 to 0.2")


def test_the_guarantee_is_one_plain_sentence_with_unit_relation_and_what_changing_costs(opened: Opener) -> None:
    private = opened(TABLE, SCHEMA, epsilon=1)
    private.count(epsilon="0.25")
    guarantee = private.statement().guarantee
    assert guarantee == (
        "The answers given to this analyst are 0.25-differentially private (pure epsilon, delta 0) for adding or removing "
        "one row: no one row makes any outcome more than exp(0.25) times as likely. Changing a row's values counts as "
        "removing one row and adding another, which costs twice. What else an analyst may notice, whether the data set's "
        "cap still has room, follows from what others were answered; all of it together is covered by the cap."
    )
    assert str(private.statement()).endswith(guarantee)


def test_the_owner_s_guarantee_is_for_all_answers_together() -> None:
    with dm.open(TABLE, schema=SCHEMA, cap=4) as data:
        data.grant("alice", epsilon=1).count(epsilon="0.25")
        data.grant("bob", epsilon=1).count(epsilon="0.25")
        assert data.statement().guarantee.startswith("All answers together are 0.5-differentially private")


def test_versions_of_a_table_add_up(tmp_path: object) -> None:
    from pathlib import Path

    ledger = Path(str(tmp_path)) / "ledger.db"
    for version in ("1", "2"):
        with dm.open(TABLE, schema=SCHEMA, ledger=ledger, cap=4, version=version) as data:
            data.grant("alice", epsilon=1).count(epsilon="0.25")
    with dm.open(TABLE, schema=SCHEMA, ledger=ledger) as data:
        statement = data.private("alice").statement()
        assert statement.guarantee.startswith("The answers given to this analyst are 0.5-differentially private")
        assert len(statement.spendings) == 2
        data.private("alice").count(epsilon="0.25")
        assert str(data.private("alice").remaining()) == "0.5"


def test_what_remains_is_never_negative_and_nothing_for_the_revoked() -> None:
    def one(allotment: int, spent: int, revoked: bool) -> Epsilon:
        return Allotment("a", Epsilon(allotment), Epsilon(spent), revoked).remaining

    assert one(5, 3, False) == Epsilon(2)
    assert one(3, 5, False) == Epsilon(0)
    assert one(5, 3, True) == Epsilon(0)
