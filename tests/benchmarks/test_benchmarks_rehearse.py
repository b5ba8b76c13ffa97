"""Benchmarks still run on today's code: each is rehearsed on a few hundred rows and prints the keys that it documents."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
import pytest

import dpmine
from dpmine.datasets import adult_schema
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.memory import CellIds

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
BENCHMARKS = [
    "adult_trees",
    "counting",
    "coverage",
    "kmeans",
    "ledger_opening",
    "mechanisms",
    "noise",
    "outofcore",
    "release",
    "starting",
    "sums",
    "tree_speed",
]
SHARED = ["adult", "harness"]
PEERS = {  # what runs in the environment .venv-peers, by the benchmark that starts it
    "peer_diffprivlib": "adult_trees",
    "peer_kmeans": "kmeans",
}
UNREHEARSED = ["peer_dpmm"]  # a fit takes it minutes however few the rows: what costs is the public domain
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # two tests share two cores
ONLY_PEERS = "peers"  # the part of a benchmark, and in its docstring the mark of keys that only this part has
KEY = re.compile(r"^ {4}(?P<name>\w+)(?P<levels>(?:\[[\w ]+\])*)(?: +(?P<text>\S.*)|$)", re.MULTILINE)


def docstring(script: str) -> str:
    return ast.get_docstring(ast.parse((FOLDER / f"{script}.py").read_text())) or ""


def documented(script: str, *, with_peers: bool = False) -> dict[str, int]:
    """The keys listed under "Keys:" in the script's docstring, each with how many levels of names are below it."""
    _, _, listed = docstring(script).partition("\nKeys:\n")
    keys = {each["name"]: each for each in KEY.finditer(listed)}
    return {
        name: each["levels"].count("[")
        for name, each in keys.items()
        if with_peers or not (each["text"] or "").startswith(f"({ONLY_PEERS})")
    }


def reads_data(script: str) -> bool:
    """Whether it says that it needs the public data sets; the others are rehearsed without."""
    return "DPMINE_DATA" in docstring(script)


def run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The script as people start it; it finds dpmine where these tests found it."""
    command = [sys.executable, str(FOLDER / f"{script}.py"), *arguments]
    return subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(Path(dpmine.__file__).parents[1])} | ONE_THREAD | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def last_line(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1], parse_constant=not_a_number)
    assert isinstance(found, dict)
    return found


def not_a_number(text: str) -> NoReturn:
    pytest.fail(f"The last line holds {text}, which is not JSON.")


def levels_below(value: Any) -> int:
    """How many levels of names every path goes through; none at all below an empty dict."""
    return 1 + min(map(levels_below, value.values())) if isinstance(value, dict) and value else 0


# -- the list ----------------------------------------------------------------------------------------------------------


def test_no_script_of_the_benchmarks_is_forgotten_here() -> None:
    assert sorted([*BENCHMARKS, *SHARED, *PEERS, *UNREHEARSED]) == sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("script", BENCHMARKS)
def test_a_benchmark_documents_the_keys_of_its_last_line(script: str) -> None:
    assert len(documented(script)) >= 4


# -- the harness -------------------------------------------------------------------------------------------------------


@pytest.fixture
def harness() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_harness", FOLDER / "harness.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked(harness: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[str]:
    monkeypatch.setattr(sys, "argv", ["benchmark", *arguments])
    names: list[str] = harness.arguments("What it measures.", ["ours", "other", "peers"], peers=("other", "peers")).names
    return names


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("", ["ours", "other", "peers"]),
        ("--quick", ["ours"]),
        ("--rehearse", ["ours", "other"]),
        ("--only other", ["other"]),
        ("--only peers ours", ["ours", "peers"]),
        ("--quick --only other", ["other"]),
        ("--rehearse --only peers", ["peers"]),
    ],
    ids=str,
)
def test_parts_are_those_named_or_all_but_the_peers_of_a_quick_run(
    harness: ModuleType, monkeypatch: pytest.MonkeyPatch, arguments: str, parts: list[str]
) -> None:
    assert asked(harness, monkeypatch, *arguments.split()) == parts


@pytest.mark.parametrize("arguments", ["--only nothing", "--quick --rehearse", "--rehears"])
def test_a_part_that_is_not_there_or_two_sizes_are_refused(
    harness: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        asked(harness, monkeypatch, *arguments.split())
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_a_rehearsal_installs_nothing_and_says_what_is_missing(
    harness: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(harness, "REHEARSAL", True)
    with pytest.raises(SystemExit, match=r"This needs absent-package\. A rehearsal installs nothing"):
        harness.peer("absent_package.part", "absent-package")
    with pytest.raises(SystemExit, match=r"This needs absent-package<2\. A rehearsal installs nothing"):
        harness.peer_python(tmp_path / "peers", "absent_package", "absent-package<2")
    assert list(tmp_path.iterdir()) == []


# -- scripts -----------------------------------------------------------------------------------------------------------


def test_bare_counts_of_a_tree_hold_levels_that_split_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """They once took it that a level has twice the cells of the level above; which trees are like that is up to noise."""
    monkeypatch.syspath_prepend(FOLDER)
    for name in ("adult", "harness", "tree_speed"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    bare_levels = importlib.import_module("tree_speed").bare_levels
    draw, schema = np.random.default_rng(1), adult_schema(bins=8)
    columns = {each.name: draw.integers(0, each.size, 500).astype(np.uint8) for each in schema.attributes}
    table = EncodedTable(schema, 500, columns, {}, "generated")
    levels = [CellIds(draw.integers(0, 3**depth, 500).astype(np.uint8), 3**depth) for depth in range(6)]
    wanted = np.bincount(levels[-1].ids.astype(np.intp) * 2 + columns["income"], minlength=2 * 3**5)
    assert bare_levels(table, levels).tolist() == wanted.tolist()


# -- rehearsals --------------------------------------------------------------------------------------------------------


@pytest.mark.benchmarks
@pytest.mark.parametrize("script", BENCHMARKS)
def test_a_benchmark_rehearses_and_its_last_line_has_the_documented_keys(
    script: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue("data_folder") if reads_data(script) else ""
    found = last_line(run(script, "--rehearse", DPMINE_DATA=str(folder)))
    assert found.pop("rehearsal") is True
    wanted = documented(script)
    assert sorted(found) == sorted(wanted)
    assert [name for name, levels in wanted.items() if levels_below(found[name]) < levels] == []


@pytest.mark.benchmarks
@pytest.mark.parametrize("script", [script for script in BENCHMARKS if reads_data(script)])
def test_a_benchmark_without_its_data_says_what_to_set(script: str) -> None:
    done = run(script, "--rehearse", DPMINE_DATA="")
    assert done.returncode == 1
    assert done.stderr.startswith("Set DPMINE_DATA to the folder with the public data sets")


PARTS = [
    ("noise", "ours", {"size", "runs", "draws_per_second"}),
    ("counting", "duckdb", {"cells", "attributes", "bins", "runs", "seconds"}),
    ("outofcore", "handwritten", {"rows", "cells", "runs", "memory_limit", "peak_resident_gb", "seconds"}),
    ("tree_speed", "sklearn", {"depth", "attributes", "runs", "encode_adult_seconds", "seconds"}),
    ("mechanisms", "vector", {"vector"}),
    ("ledger_opening", "verify", {"entries", "megabytes", "checkpoints", "seconds", "processor_seconds"}),
]


@pytest.mark.benchmarks
@pytest.mark.parametrize(("script", "part", "keys"), PARTS, ids=[f"{script} {part}" for script, part, _ in PARTS])
def test_only_runs_the_named_part_alone(script: str, part: str, keys: set[str], request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue("data_folder") if reads_data(script) else ""
    found = last_line(run(script, "--rehearse", "--only", part, DPMINE_DATA=str(folder)))
    assert set(found) - {"rehearsal"} == keys
    measured = found.get("seconds") or {}
    assert [name for name in measured if isinstance(measured[name], dict) and list(measured[name]) != [part]] == []


@pytest.mark.benchmarks
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.usefixtures("data_folder")
def test_a_peer_runs_where_its_environment_has_been_installed(peer: str) -> None:
    """A full benchmark installs peers into environments of their own; a rehearsal only uses what is there."""
    script, python = PEERS[peer], FOLDER.parent / ".venv-peers" / "bin" / "python"
    if (
        not python.exists()
        or subprocess.run([python, "-E", "-c", "import diffprivlib.models"], capture_output=True).returncode
    ):
        pytest.skip(f"no diffprivlib in .venv-peers: `python benchmarks/{script}.py --only peers` installs and runs it")
    found = last_line(run(script, "--rehearse", "--only", ONLY_PEERS))
    assert set(found) - {"rehearsal"} <= set(documented(script, with_peers=True))
    assert levels_below(found["accuracy" if "accuracy" in found else "ratio"]) >= 2
