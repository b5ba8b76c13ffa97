"""Granting more than the cap: it is done, and said, in Python and on the command line."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from support.command_line import Hospital, done_json, run

import dpmine as dm
from dpmine.datasets import patients, patients_schema


@pytest.fixture
def hospital(tmp_path: Path) -> Hospital:
    hospital = Hospital(tmp_path)
    hospital.open_books()
    return hospital


def grant(hospital: Hospital, amount: str, *more: str) -> list[object]:
    return ["budget", "grant", hospital.data, "bob", "--schema", hospital.schema, "--epsilon", amount, *more]


@pytest.mark.parametrize("amount", ["4.000000001", "5"])
def test_a_grant_above_the_cap_is_warned_of(amount: str) -> None:
    sentence = (
        f"'bob' is granted epsilon {amount}, but the cap on what all analysts together may ever spend is 4: "
        "beyond it every question is refused. Grant at most 4."
    )
    with dm.open(patients(20), schema=patients_schema(), ledger=None, cap=4) as data:
        with pytest.warns(dm.DpmineWarning) as told:
            private = data.grant("bob", epsilon=amount)
        assert [str(one.message) for one in told] == [sentence]
        assert told[0].filename == __file__
        assert str(private.remaining()) == amount
        with pytest.raises(dm.BudgetError):
            private.count(epsilon=amount)


def test_several_grants_that_exceed_the_cap_only_together_are_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with dm.open(patients(20), schema=patients_schema(), ledger=None, cap=4) as data:
            for name in ("alice", "bob", "carol"):
                data.grant(name, epsilon=4)


def test_a_cap_that_grows_may_reach_a_larger_grant_so_nothing_is_warned_of() -> None:
    """Warnings are errors here."""
    renewal = dm.Renewal.every(365, epsilon=1)
    with dm.open(patients(20), schema=patients_schema(), ledger=None, cap=4, renewal=renewal) as data:
        assert str(data.grant("bob", epsilon=5).remaining()) == "5"


def test_the_command_line_warns_in_one_line_and_grants(hospital: Hospital) -> None:
    result = run(*grant(hospital, "5"))
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "Warning: 'bob' is granted epsilon 5, but the cap on what all analysts together may ever spend is 4: "
    )
    assert result.stderr.count("\n") == 1
    assert result.stdout == "bob may spend epsilon 5 in all.\n"


def test_json_has_a_field_for_it_and_the_warning_stays_on_stderr(hospital: Hospital) -> None:
    result = run(*grant(hospital, "5", "--json"))
    assert json.loads(result.stdout) == {"analyst": "bob", "allotment": "5", "above_cap": True}
    assert result.stderr.startswith("Warning: ")
    assert done_json(*grant(hospital, "4")) == {"analyst": "bob", "allotment": "4", "above_cap": False}
    assert run(*grant(hospital, "4")).stderr == ""
