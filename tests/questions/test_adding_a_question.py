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

import pytest

HERE = Path(__file__).resolve().parent
STEM = HERE / "many_rows"


@pytest.fixture(scope="module")
def came() -> dict[str, Any]:
    """What came of the question, as many_rows/asked.py tells it."""
    paths = [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    command = [sys.executable, "-m", "many_rows.asked"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_three_files_and_an_audit_pair_are_all_that_it_has() -> None:
    assert {path.name for path in STEM.glob("*.py")} == {
        "__init__.py",
        "question.py",
        "mechanism.py",
        "reading.py",
        "pair.py",
        "asked.py",  # what this test runs
    }


@pytest.mark.parametrize("over", ["local", "json"])
def test_it_is_asked_and_read_by_what_it_declared(came: dict[str, Any], over: str) -> None:
    """With 1,000 rows the answers are wrong once in exp(450) times."""
    assert came[over]["answer"] == [True, "at least 100 rows, give or take 6 (95 %)", "discrete Laplace noise of scale 2"]
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
