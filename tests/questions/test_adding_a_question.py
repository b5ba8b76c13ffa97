"""A question is added by three files of one stem and an audit pair, and by nothing else (docs/adding-a-question.md).

It runs in a process of its own: what a question declares when it is imported stays declared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpmine as dm

HERE = Path(__file__).resolve().parent
STEM = HERE / "many_rows"


def run(*arguments: str) -> str:
    """What another Python prints, which can import the question."""
    paths = [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def came() -> dict[str, Any]:
    """What came of the question, as many_rows/asked.py tells it."""
    found: dict[str, Any] = json.loads(run("-m", "many_rows.asked"))
    return found


def test_three_files_and_an_audit_pair_are_all_that_it_has() -> None:
    assert {path.name for path in STEM.glob("*.py")} == {
        "__init__.py",
        "question.py",
        "codes.py",
        "mechanism.py",
        "pair.py",
        "asked.py",  # what this test runs
    }


@pytest.mark.parametrize("over", ["local", "json"])
def test_it_is_asked_and_read_by_what_it_declared(came: dict[str, Any], over: str) -> None:
    """With 1,000 rows the answers are wrong once in exp(450) times."""
    assert came[over]["answer"] == [True, "at least 100 rows, give or take 6 (95 %)", "2"]
    assert came[over]["few"] is False


@pytest.mark.parametrize("over", ["local", "json"])
def test_its_preview_says_what_it_would_cost_and_how_wrong_it_may_be(came: dict[str, Any], over: str) -> None:
    cost, expected_error = came[over]["preview"]
    assert cost == "0.5"
    assert expected_error.startswith("Where 6 rows more or fewer decide nothing")
    assert came[over]["free again"] == "0"


@pytest.mark.parametrize("over", ["local", "json"])
def test_all_cells_are_asked_at_once_each_at_its_own_price(came: dict[str, Any], over: str) -> None:
    assert came[over]["cells"] == ["0.5", "0.25", None, None, None, None]
    assert came[over]["spent"] == "1.5"  # 0.5 for the view, as much for its cells together, and for a `where` view


@pytest.mark.parametrize("over", ["local", "json"])
def test_statements_show_it_in_words(came: dict[str, Any], over: str) -> None:
    assert came[over]["statement"] == [
        "whether there are 100 rows at epsilon 0.5",
        "whether there are 100 rows in 6 cells at epsilon 0.25 to 0.5",
        "whether there are 10000 rows at epsilon 0.5",
    ]


@pytest.mark.parametrize("over", ["local", "json"])
def test_what_was_paid_is_read_again(came: dict[str, Any], over: str) -> None:
    assert came[over]["paid"] == 3
    assert came[over]["the same again"] is True


def test_what_is_too_dear_or_makes_no_sense_is_refused(came: dict[str, Any]) -> None:
    too_dear, no_sense = came["refused"]
    assert too_dear.startswith("Cannot answer: this query needs epsilon 100 and 0.5 remains.")
    assert no_sense == "The number of rows to compare with is between 1 and 2147483647. Got 0."


def test_the_quick_audit_finds_nothing_against_it(came: dict[str, Any]) -> None:
    """Three tests that alarm at most once in about 1e8 times each, as in `dpmine audit --quick`."""
    assert came["audit"] == []


def test_the_quick_audit_finds_noise_of_half_the_scale(came: dict[str, Any]) -> None:
    measured, misfit = came["planted"]
    assert measured.startswith("epsilon is at least 1.")
    assert measured.endswith("claimed 1")
    assert misfit.startswith("outcomes do not follow the exact law")


ASKED_OF_A_FILE = """
import dpmine as dm
from many_rows.question import ManyRows
{more}
with dm.open({path!r}, schema={schema!r}, cap=2) as data:
    private = data.grant("alice", epsilon=1)
    try:
        print(private.ask(ManyRows(1), epsilon="0.5").seems, private.remaining())
    except dm.DpmineError as error:
        print(error, private.remaining())
"""


@pytest.fixture
def table(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "patients.toml").write_text(dm.datasets.patients_schema().to_toml())
    pd.DataFrame(dm.datasets.patients(100)).to_csv(tmp_path / "patients.csv", index=False)
    return {"path": str(tmp_path / "patients.csv"), "schema": str(tmp_path / "patients.toml")}


def test_a_question_whose_mechanism_nobody_imported_is_refused_before_it_is_charged(table: dict[str, str]) -> None:
    said = run("-c", ASKED_OF_A_FILE.format(more="", **table))
    assert "no mechanism was imported that answers ResolvedManyRows" in said
    assert said.endswith(" 1\n")


def test_a_question_whose_answer_nobody_could_read_is_refused_before_it_is_charged(table: dict[str, str]) -> None:
    more = "import many_rows.mechanism; from dpmine.results import reading; del reading._READINGS[ManyRows]"
    said = run("-c", ASKED_OF_A_FILE.format(more=more, **table))
    assert said == "Nothing reads the answers to ManyRows. Import the module with its reading. 1\n"


def test_a_statement_shows_it_where_it_is_not_known(table: dict[str, str]) -> None:
    """The owner reads the ledger with the command line, which imports no package of an analyst's."""
    assert run("-c", ASKED_OF_A_FILE.format(more="import many_rows.mechanism", **table)) == "True 0.5\n"
    with dm.open(table["path"], schema=table["schema"]) as data:
        (spending,) = data.statement().spendings
    assert spending.what == "a question 'many-rows' of a package that is not loaded here"
    assert str(spending.cost) == "0.5"
    shown = run("-m", "dpmine.cli.main", "budget", "show", table["path"], "--schema", table["schema"])
    assert "alice" in shown
