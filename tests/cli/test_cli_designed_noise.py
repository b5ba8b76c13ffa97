"""`dpmine query` with designed noise: mechanisms and priors from the command line."""

from __future__ import annotations

import pytest
from support.command_line import Hospital, done, done_json, refused


def test_a_mean_under_a_prior_says_how_it_was_told_and_what_it_cost(hospital: Hospital) -> None:
    told = done_json(*hospital.query("mean"), "--column", "age", "--epsilon", "0.3", "--prior", "normal:50:10")
    assert told["mechanism"] == "optimal"
    assert told["interval_95"][0] <= told["value"] <= told["interval_95"][1]
    assert told["expected_loss"] < told["prior_loss"]
    assert "normal:50:10" in told["note"]
    assert told["remaining"] == "0.7"
    again = done(*hospital.query("mean"), "--column", "age", "--epsilon", "0.3", "--prior", "normal:50:10")
    assert "Epsilon 0.7 remains." in again
    assert "by optimal" in again


@pytest.mark.parametrize("mechanism", ["geometric", "staircase", "heuristic", "randomised-response", "risk-averse"])
@pytest.mark.parametrize("what", ["median", "max"])
def test_every_mechanism_has_a_name_here(hospital: Hospital, what: str, mechanism: str) -> None:
    command = [*hospital.query(what), "--column", "age", "--epsilon", "0.1"]
    if mechanism == "geometric":
        assert done_json(*command, "--design", mechanism)["mechanism"].startswith(mechanism)
        return
    preview = done(*command, "--design", mechanism, "--dry-run")
    assert f"Mechanism: {mechanism}" in preview
    assert hospital.spent().get("alice", "0") == "0"


def test_counts_and_sums_take_bounds(hospital: Hospital) -> None:
    counted = done_json(*hospital.query("count"), "--epsilon", "0.2", "--low", 0, "--high", 5000)
    assert counted["mechanism"].startswith("geometric")
    assert 0 <= counted["value"] <= 5000
    summed = done(*hospital.query("sum"), "--column", "age", "--epsilon", "0.2", "--design", "auto", "--dry-run")
    assert "Mechanism: " in summed


def test_plain_commands_answer_as_before(hospital: Hospital) -> None:
    assert "quantile 0.5 about" in done(*hospital.query("median"), "--column", "age", "--epsilon", "0.1")
    assert "quantile 0.995 about" in done(*hospital.query("max"), "--column", "age", "--epsilon", "0.1")
    assert "noisy_count" in done_json(*hospital.query("count"), "--epsilon", "0.1")


@pytest.mark.parametrize(
    ("what", "more", "words"),
    [
        ("mean", ["--design", "magic"], "must be one of"),
        ("mean", ["--prior", "bell"], "A prior is"),
        ("mean", ["--loss", "cubic"], "must be one of"),
        ("sum", ["--design", "optimal"], "give them by"),
        ("sum", ["--low", "5"], "both low and high"),
        ("mean", ["--low", "x"], "must be a decimal number"),
    ],
)
def test_what_cannot_be_designed_is_refused_before_it_is_paid(
    hospital: Hospital, what: str, more: list[str], words: str
) -> None:
    assert words in refused(*hospital.query(what), "--column", "age", "--epsilon", "0.1", *more)
    assert hospital.spent().get("alice", "0") == "0"
