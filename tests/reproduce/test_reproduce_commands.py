"""`dpmine reproduce` and `dpmine frontier` from end to end, on corners of their grids."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pandas as pd
import pytest
import typer
from support.experiments import write_small_adult
from typer.testing import CliRunner, Result

from dpmine.cli import frontier, reproduce
from dpmine.datasets import RandomTree
from dpmine.reproduce import all_experiments

app = typer.Typer()
app.command()(reproduce.reproduce)
app.add_typer(frontier.app, name="frontier")

CORNERS = {
    "friedman-table1": ["samples=1000"],
    "friedman-fig3": ["samples=100,5000"],
    "friedman-fig4": ["samples=500"],
    "friedman-fig5": ["samples=500,1000"],
    "friedman-fig6": ["samples=1000"],
    "friedman-fig7": ["samples=1000"],
    "friedman-fig8": ["epsilon=0.5,2"],
    "friedman-grid": ["samples=1000", "depth=3", "values=2,3"],
}


def called(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def done(*arguments: object) -> str:
    result = called(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def refused(*arguments: object) -> str:
    result = called(*arguments)
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def small_adult(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_adult(tmp_path / "data")
    monkeypatch.setenv("DPMINE_DATA", str(tmp_path / "data"))


@pytest.mark.usefixtures("small_adult")
@pytest.mark.parametrize("name", list(CORNERS))
def test_every_experiment_runs_through_the_command(name: str, tmp_path: Path) -> None:
    only = [word for corner in CORNERS[name] for word in ("--only", corner)]
    shown = done("reproduce", name, "--runs", 2, "--out", tmp_path, "--workers", 1, *only)
    experiment = all_experiments()[name]
    assert experiment.title[:20] in shown
    rows = rows_of(tmp_path / f"{name}.csv")
    assert {row["algorithm"] for row in rows} == set(experiment.algorithms)
    assert all(row["runs"] == "2" and 0 <= float(row["mean"]) <= 100 for row in rows)
    pictures = list(tmp_path.glob(f"{name}*.png"))
    assert len(pictures) == (3 if name == "friedman-grid" else 1)
    assert all(picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 10_000 for picture in pictures)
    if name == "friedman-table1":
        assert all(row["published_mean"] and row["z_score"] for row in rows)
        assert "90.1 ± 1.5" in shown
        assert "z = " in shown
    if name == "friedman-fig8":
        tests = rows_of(tmp_path / f"{name}.tests.csv")
        assert [(row["first"], row["second"]) for row in tests[:3]] == [
            ("DiffP-C4.5 Max", "DiffP-C4.5 Gini"),
            ("DiffP-C4.5 Max", "DiffP-C4.5 InfoGain"),
            ("DiffP-C4.5 Gini", "DiffP-C4.5 InfoGain"),
        ]
        assert len(tests) == 2 * 3
        assert sum(row["epsilon"] == "" for row in rows) == 1  # the reference knows no budget


def test_a_second_call_runs_nothing_again(tmp_path: Path) -> None:
    command = ["reproduce", "friedman-table1", "--runs", 1, "--only", "samples=1000", "--out", tmp_path, "--json"]
    first, second = json.loads(done(*command)), json.loads(done(*command))
    assert first["fresh_cases"] == 5
    assert second == {**first, "fresh_cases": 0}
    assert {mean["samples"] for mean in first["means"]} == {1000}


def test_the_list_names_every_experiment() -> None:
    shown = json.loads(done("reproduce", "--list", "--json"))
    assert [form["experiment"] for form in shown] == list(all_experiments())
    assert [name for name in all_experiments() if name.startswith("friedman")] == list(CORNERS)
    assert "friedman-table1" in done("reproduce", "--list")


def test_all_goes_on_past_an_experiment_that_lacks_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPMINE_DATA", raising=False)
    wanted = {name: all_experiments()[name] for name in ("friedman-fig8", "friedman-table1")}
    monkeypatch.setattr("dpmine.reproduce.all_experiments", lambda: wanted)
    result = called("reproduce", "all", "--runs", 1, "--quick", "--out", tmp_path, "--workers", 1)
    assert result.exit_code == 2
    assert "friedman-fig8 was left out" in result.stderr
    assert (tmp_path / "friedman-table1.csv").exists()


def test_mistakes_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "friedman-fig3" in refused("reproduce", "friedman-fig99")
    assert "--list" in refused("reproduce")
    assert "NAME=VALUE" in refused("reproduce", "friedman-fig3", "--only", "samples")
    assert "no parameter 'rows'" in refused("reproduce", "friedman-fig3", "--only", "rows=7", "--out", tmp_path)
    assert "both" in refused("frontier", "tree", "--data", "table.csv")
    assert "commas" in refused("frontier", "tree", "--epsilons", "small")
    assert "above 0" in refused("frontier", "tree", "--epsilons", "-1")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "dpmine[plots]" in refused("reproduce", "friedman-table1", "--out", tmp_path)
    assert not list(tmp_path.iterdir())


# -- the frontier --------------------------------------------------------------------------------------------------------


def test_the_frontier_on_generated_data(tmp_path: Path) -> None:
    shown = done("frontier", "tree", "--epsilons", "0.1,2", "--rows", "1000", "--runs", 2, "--out", tmp_path, "--workers", 1)
    assert "Pareto" in shown
    rows = rows_of(tmp_path / "frontier-tree.csv")
    for epsilon in ("0.1", "2.0"):
        there = [row for row in rows if row["epsilon"] == epsilon]
        assert sum(row["best"] == "yes" for row in there) == 1
        assert max(there, key=lambda row: float(row["mean"]))["best"] == "yes"
    assert any(row["on_front"] == "yes" and row["epsilon"] == "0.1" for row in rows)
    assert [row["algorithm"] for row in rows if row["epsilon"] == ""] == ["C4.5"]
    assert {path.name for path in tmp_path.glob("*.png")} == {"frontier-tree.png", "frontier-tree.rows.png"}


def test_the_frontier_on_a_public_table(tmp_path: Path) -> None:
    tree = RandomTree.single_split(nominal=4, numeric=1)
    pd.DataFrame(tree.sample(800, seed=1)).to_csv(tmp_path / "public.csv", index=False)
    (tmp_path / "public.toml").write_text(tree.schema(rows_at_most=1000).to_toml(), encoding="utf-8")
    named = ["--data", tmp_path / "public.csv", "--schema", tmp_path / "public.toml"]
    command = ["frontier", "tree", *named, "--epsilons", "5", "--runs", 1, "--out", tmp_path, "--workers", 1]
    form = json.loads(done(*command, "--json"))
    assert {mean["rows"] for mean in form["means"]} == {40, 160, 640}
    assert Path(form["files"][0]).name == "frontier-tree-random-tree.csv"
    assert "At most 640" in refused(*command, "--rows", 700)
