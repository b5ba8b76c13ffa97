"""The audit of the package: resumable, honest about survivors, and with the exit code that a build server needs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from dpmine.audit import running, sampling
from dpmine.audit.catalogue import all_pairs
from dpmine.audit.mutants import MUTANTS, mutant_named
from dpmine.audit.pairs import AuditPair
from dpmine.audit.records import RoundFile
from dpmine.audit.running import FULL, QUICK, run_audit
from dpmine.base.errors import DataError, RequestError
from dpmine.cli.audit import audit

APP = typer.Typer()
APP.command()(audit)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> dict[str, AuditPair]:
    """The same pairs with few runs and three rounds.

    A planted bug has half of the runs: with 4,000 the bound that tells of a stale price is 0.79 +- 0.03 and must be above
    0.5, ten deviations below. With 1,000 it is 0.58 +- 0.05, which misses it now and then.
    """
    pairs = {name: dataclasses.replace(pair, runs=min(pair.runs, 8000), rounds=3) for name, pair in all_pairs().items()}
    monkeypatch.setattr(running, "all_pairs", lambda: pairs)
    monkeypatch.setattr(sampling, "all_pairs", lambda: pairs)
    return pairs


def test_a_full_audit_goes_on_where_it_was(
    small: dict[str, AuditPair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = dataclasses.replace(FULL, false_alarms=QUICK.false_alarms)  # a full audit may accuse more often than a test
    first = run_audit(full, only=["count", "stale-price"], folder=tmp_path, workers=1)
    assert first.passed
    assert first.findings[0].runs == 24_000
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert len(lines) == 4  # three rounds, and one of the mutant
    torn = "\n".join(lines[:3]) + "\n" + lines[3][:50]
    (tmp_path / "audit.jsonl").write_text(torn)
    asked: list[str] = []
    monkeypatch.setattr(running, "work", lambda task: asked.append(task.pair) or sampling.work(task))
    again = run_audit(full, only=["count", "stale-price"], folder=tmp_path, workers=1)
    assert again.passed
    assert asked == ["count"]
    assert len((tmp_path / "audit.jsonl").read_text().splitlines()) == 4


def test_rounds_of_other_code_are_set_aside(tmp_path: Path) -> None:
    file = RoundFile(tmp_path / "audit.jsonl", "old")
    file.append(sampling.Drawn(sampling.Task("count", 1)))
    assert len(file.read()) == 1
    assert RoundFile(tmp_path / "audit.jsonl", "new").read() == []
    assert (tmp_path / "audit.old.jsonl").exists()


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_text("no round\n")
    with pytest.raises(DataError):
        RoundFile(tmp_path / "audit.jsonl", "new").read()


def test_two_workers_find_what_one_finds() -> None:
    """In processes of their own, with the planted bug planted there."""
    done = run_audit(QUICK, only=["row-position-subsets", "sum-on-a-small-grid"], workers=2, progress=False)
    assert [found.pair.name for found in done.findings] == ["sum-on-a-small-grid"]
    assert done.passed
    assert not done.planted[0].passed


def test_a_bug_that_is_not_found_fails_the_audit(small: dict[str, AuditPair], monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = dataclasses.replace(MUTANTS[0], plant=sampling.no_bug, caught_by=("count",))
    monkeypatch.setattr(running, "MUTANTS", (harmless,))
    monkeypatch.setattr(sampling, "mutant_named", lambda name: harmless)
    done = run_audit(QUICK, only=["halved-noise"], workers=1)
    assert done.survivors == ["halved-noise"]
    assert not done.passed


def test_a_pair_that_cannot_run_is_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = {"count": dataclasses.replace(all_pairs()["count"], needs="no_such_module")}
    monkeypatch.setattr(running, "all_pairs", lambda: pairs)
    done = run_audit(QUICK, only=["count"], workers=1)
    assert [(pair.name, reason) for pair, reason in done.skipped] == [
        ("count", "needs no_such_module, which is not installed")
    ]


def test_false_alarms_are_shared_by_all_tests_even_where_some_run() -> None:
    tests = running.number_of_tests(list(all_pairs().values()))
    assert tests > 100
    done = run_audit(QUICK, only=["families-by-permute-and-flip"], workers=1)
    assert done.findings[0].failure == pytest.approx(1e-6 / tests)


def test_mistakes_in_names_are_refused() -> None:
    with pytest.raises(RequestError, match="--list"):
        run_audit(QUICK, only=["nothing like this"])


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_lists_every_pair_and_mutant() -> None:
    result = run("--list")
    assert result.exit_code == 0
    listed = json.loads(run("--list", "--json").stdout)
    assert [item["pair"] for item in listed["pairs"]] == list(all_pairs())
    assert [item["mutant"] for item in listed["mutants"]] == [mutant.name for mutant in MUTANTS]


def test_the_command_writes_what_it_found(small: dict[str, AuditPair], tmp_path: Path) -> None:
    result = run("--only", "partition", "--only", "stale-price", "--workers", 1, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    form = json.loads(result.stdout)
    assert form["passed"]
    assert form["mutants"][0]["charged"] == 0.5
    assert json.loads((tmp_path / "audit.json").read_text())["pairs"] == form["pairs"]
    assert (tmp_path / "audit.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_shows_a_table(small: dict[str, AuditPair]) -> None:
    result = run("--only", "partition", "--only", "stale-price", "--workers", 1)
    assert result.exit_code == 0
    assert "No violation in 1 pairs. All 1 planted bugs were found." in result.stdout


def test_a_violation_is_exit_code_1(small: dict[str, AuditPair]) -> None:
    with mutant_named("halved-noise").plant():
        result = run("--only", "partition", "--workers", 1)
    assert result.exit_code == 1
    assert "VIOLATED" in result.stdout


@pytest.mark.parametrize("arguments", [("--quick", "--full"), ("--only", "nothing like this")])
def test_mistakes_are_exit_code_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
