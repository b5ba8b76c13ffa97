"""The experiments of the DiffGen paper: definitions, runs from end to end on a small table, what claims make of runs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from support.experiments import small, write_small_adult
from typer.testing import CliRunner

from dpmine.baselines import C45
from dpmine.cli import reproduce
from dpmine.datasets import adult_schema
from dpmine.facts.kinds.registry import values_of
from dpmine.release.diffgen import DiffGen
from dpmine.reproduce import all_experiments, diffgen, release_runs
from dpmine.reproduce.claims import Checked, Difference, all_above, checked
from dpmine.reproduce.experiments import (
    AGREES,
    DISAGREES,
    UNDECIDED,
    Claim,
    Finding,
    Outcome,
    PairedComparison,
    Point,
    Published,
    Scene,
    grid,
)
from dpmine.reproduce.harness import run
from dpmine.reproduce.records import Record
from dpmine.reproduce.significance import compare
from dpmine.reproduce.summaries import Row, row_form
from dpmine.reproduce.tree_runs import fitted

app = typer.Typer()
app.command()(reproduce.reproduce)

CORNERS = {
    "diffgen-fig3a": ["--only", "specialisations=4,7"],
    "diffgen-fig3b": ["--only", "specialisations=4"],
    "diffgen-fig4": ["--only", "epsilon=1,4"],
    "diffgen-fig5": [],
}


@pytest.fixture
def small_adult(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_adult(tmp_path / "data")
    monkeypatch.setenv("DPMINE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(diffgen, "COMPARED_SPECIALISATIONS", 3)
    monkeypatch.setattr(diffgen, "SIZES", (700, 1400, 2100))


# -- as the paper has it -------------------------------------------------------------------------------------------------


def test_the_experiments_are_those_of_the_paper() -> None:
    found = {experiment.name: experiment for experiment in diffgen.diffgen_experiments()}
    assert list(found) == list(CORNERS) == [name for name in all_experiments() if name.startswith("diffgen")]
    assert [experiment.repetitions for experiment in found.values()] == [10, 10, 100, 5]
    assert [len(experiment.points) for experiment in found.values()] == [5, 5, 5, 5]
    for experiment in found.values():
        assert all(point in experiment.points for point in experiment.quick_points)
        assert set(experiment.algorithms) <= set(experiment.picture.styles)
        assert {printed.algorithm for printed in experiment.published} <= set(experiment.algorithms)
    assert [experiment.timed for experiment in found.values()] == [False, False, False, True]
    assert diffgen.RELEASES["InfoGain, epsilon 0.25"] == ("infogain", 0.25)


def test_the_published_values() -> None:
    """BA 85.3, LA 75.5, and at epsilon 1 and h = 10 CA - LA = 6.74; no deviations are printed."""
    figure_3a = diffgen.diffgen_experiments()[0]
    printed = {(p.algorithm, p.point.get("specialisations")): p.mean for p in figure_3a.published}
    assert printed == {
        ("C4.5 on raw rows (BA)", None): 85.3,
        ("majority class (LA)", None): 75.5,
        ("Max, epsilon 1", 10): pytest.approx(82.24),
    }
    assert {(p.std, p.runs, p.step) for p in figure_3a.published} == {(None, 10, 0.1)}
    assert "epsilon 0.5: CA spans from 80.5 to 81.7 %" in [claim.says for claim in figure_3a.claims]


# -- from end to end -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_adult")
@pytest.mark.parametrize("name", list(CORNERS))
def test_every_experiment_runs_through_the_command(name: str, tmp_path: Path) -> None:
    command = ["reproduce", name, "--runs", "2", "--out", str(tmp_path), "--workers", "1", *CORNERS[name]]
    result = CliRunner().invoke(app, command[1:])
    assert result.exit_code == 0, (result.output, result.exception)
    assert "Paper: " in result.stdout
    experiment = all_experiments()[name]
    rows = rows_of(tmp_path / f"{name}.csv")
    assert {row["algorithm"] for row in rows} == set(experiment.algorithms)
    assert all(row["runs"] == "2" and 0 <= float(row["mean"]) <= 100 for row in rows)
    assert [row["paper"] for row in rows_of(tmp_path / f"{name}.claims.csv")] == [claim.says for claim in experiment.claims]
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    again = json.loads(CliRunner().invoke(app, [*command[1:], "--json"]).stdout)
    assert again["fresh_cases"] == 0
    assert len(again["claims"]) == len(experiment.claims)
    levels = [row for row in rows if row["published_mean"]]
    assert len(levels) == (0 if name == "diffgen-fig5" else 2)
    assert all(row["published_std"] == "" and row["z_score"] for row in levels)
    if name == "diffgen-fig4":
        tests = rows_of(tmp_path / f"{name}.tests.csv")
        assert [row["second"] for row in tests[:3]] == ["DiffP-C4.5 Max", "TDS (k = 5)", "TDS (k = 5)"]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("small_adult")
def test_a_split_is_two_thirds_and_the_same_for_both_figures() -> None:
    first, again = (diffgen.adult_split(Scene({}, 3, seed)) for seed in (1, 2))
    assert (first.training.rows, first.test.rows) == (400, 200)
    assert all(np.array_equal(first.test.codes[name], again.test.codes[name]) for name in first.test.codes)
    other = diffgen.adult_split(Scene({}, 4, 1))
    assert not np.array_equal(first.test.codes["age"], other.test.codes["age"])


@pytest.mark.usefixtures("small_adult")
def test_plain_schema_and_taxonomies_have_the_same_codes() -> None:
    """`without_taxonomies` gives codes another schema, so both must number the categories alike."""
    with_trees, plain = (adult_schema(complete=True, taxonomies=taxonomies) for taxonomies in (True, False))
    assert [getattr(a, "categories", None) for a in with_trees.attributes] == [
        getattr(a, "categories", None) for a in plain.attributes
    ]
    sample = diffgen.without_taxonomies(diffgen.adult_split(Scene({}, 0, 0)))
    assert sample.training.schema == plain


@pytest.mark.usefixtures("small_adult")
def test_accuracy_is_that_of_a_tree_on_the_released_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The short cut by codes and weights against rows and frames, on the same release."""
    sample = diffgen.adult_split(Scene({}, 0, 0))
    model = fitted(DiffGen(epsilon=5, specialisations=4), sample.training)
    monkeypatch.setattr(release_runs, "fitted", lambda asked, table: model)
    ours = release_runs.diffgen_accuracy(sample, epsilon=5, specialisations=4, score="max")
    schema = model.release().generalised_schema()
    tree = C45().fit(as_frame(model.rows()), schema=schema)
    names = {a.name: values_of(a) for a in sample.test.schema.attributes}
    test = {name: names[name][codes].tolist() for name, codes in sample.test.codes.items()}
    right = tree.predict(as_frame(model.transform(as_frame(test)))) == np.array(test["income"], dtype=object)
    assert ours == pytest.approx(100 * right.mean())


def as_frame(columns: dict[str, list[Any]]) -> Any:
    import pandas as pd

    return pd.DataFrame(columns)


@pytest.mark.usefixtures("small_adult")
def test_tds_and_the_majority_on_rows_that_education_decides() -> None:
    sample = diffgen.adult_split(Scene({}, 0, 0))
    assert release_runs.tds_accuracy(sample, k=5) > 95
    more = int(np.mean(sample.training.codes["income"]) > 0.5)
    share = float(np.mean(sample.test.codes["income"] == more) * 100)
    assert release_runs.majority_accuracy(sample) == pytest.approx(share)


# -- what claims make of runs --------------------------------------------------------------------------------------------


def outcome_of(experiment: str, accuracies: dict[tuple[str, float], float]) -> Outcome:
    """Five runs of each algorithm at each point, which differ a little, by algorithm and setting of the one parameter."""
    found = all_experiments()[experiment]
    (parameter,) = found.points[0]
    points: tuple[Point, ...] = tuple(
        point for point in found.points if any(setting == point[parameter] for _, setting in accuracies)
    )
    records = []
    for wiggle, ((name, setting), mean) in enumerate(accuracies.items()):
        for number in range(5):
            measures = {found.picture.measure: mean + 0.01 * (number - 2) * wiggle}
            records.append(Record(found.point_for(name, {parameter: setting}), name, number, number, measures))
    return Outcome(found, points, tuple(records), len(records))


def accuracies_over_h(*means: float) -> dict[tuple[str, float], float]:
    return {("Max, epsilon 1", h): mean for h, mean in zip(diffgen.SPECIALISATIONS, means, strict=True)}


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((80, 82, 83, 82, 81), AGREES),
        ((80, 81, 82, 83, 84), DISAGREES),
        ((84, 83, 82, 81, 80), DISAGREES),
        ((80, 80, 80, 80, 80), UNDECIDED),
    ],
)
def test_a_rise_and_a_fall_are_both_needed(means: tuple[float, ...], verdict: str) -> None:
    finding = diffgen.rises_then_falls("Max, epsilon 1", outcome_of("diffgen-fig3a", accuracies_over_h(*means)))
    assert finding is not None
    assert finding.verdict == verdict
    assert f"{means[0]:.2f} (h = 4)" in finding.found


def test_a_run_over_a_part_of_the_grid_is_not_judged() -> None:
    outcome = outcome_of("diffgen-fig3a", {("Max, epsilon 1", 4): 80.0, ("Max, epsilon 1", 7): 81.0})
    assert diffgen.rises_then_falls("Max, epsilon 1", outcome) is None
    assert diffgen.cost_about_three(outcome) is None


def test_diffgen_against_others_by_budget() -> None:
    means = {(diffgen.DIFFGEN, 1.0): 83.0, (diffgen.DIFFP_C45, 1.0): 82.0, (diffgen.TDS, 1.0): 83.5}
    outcome = outcome_of("diffgen-fig4", means)
    verdicts = [claim.verdict for claim in checked(outcome)]
    assert verdicts == ["agrees", "not judged", "does not agree"]


def test_run_time_on_a_line_and_off_it() -> None:
    straight = outcome_of("diffgen-fig5", {(diffgen.TOTAL, size): size / 100_000 for size in diffgen.SIZES})
    finding = diffgen.grows_linearly(straight)
    assert finding is not None
    assert finding.verdict == AGREES
    assert "R^2 of the means 1.0000" in finding.found
    bent = outcome_of("diffgen-fig5", {(diffgen.TOTAL, size): (size / 100_000) ** 4 for size in diffgen.SIZES})
    finding = diffgen.grows_linearly(bent)
    assert finding is not None
    assert finding.verdict == DISAGREES


def test_a_difference_needs_significance() -> None:
    assert Difference(1.0, 0.01).is_above
    assert not Difference(1.0, 0.2).is_above
    assert Difference(-1.0, 0.01).is_below
    assert str(Difference(-1.0, 0.01)) == "-1.00 (p = 0.01)"
    clear, open_, contrary = Difference(1.0, 0.01), Difference(1.0, 0.2), Difference(-1.0, 0.01)
    verdicts = [all_above(found) for found in ([clear, clear], [clear, open_], [clear, open_, contrary])]
    assert verdicts == [AGREES, UNDECIDED, DISAGREES]


def test_claims_are_written_with_their_verdicts() -> None:
    outcome = Outcome(small(claims=(Claim("yes", lambda _: Finding(AGREES, "so")), Claim("?", lambda _: None))), (), (), 0)
    assert [claim.form() for claim in checked(outcome)] == [
        {"paper": "yes", "found": "so", "verdict": "agrees"},
        {"paper": "?", "found": "the run lacks points that this is about", "verdict": "not judged"},
    ]
    assert Checked("no", Finding(DISAGREES, "")).verdict == "does not agree"


# -- what the shared parts learned -----------------------------------------------------------------------------------------


def test_an_algorithm_that_knows_no_budget_is_compared_at_every_budget(tmp_path: Path) -> None:
    comparison = PairedComparison(("better", "plain"), 0.5, "score")
    outcome = run(small(indifferent=("plain",), comparison=comparison), tmp_path, workers=1)
    found = compare(outcome)
    assert [compared.point for compared in found] == list(grid(size=(10, 20), epsilon=(0.5, 1.0)))
    assert [compared.difference for compared in found] == pytest.approx([2.5, 3.0, 2.5, 3.0])


def test_without_a_printed_deviation_theirs_is_ours() -> None:
    point = {"size": 10}
    printed = Published(point, "plain", 57.0, None, 25, 0.1, "score")
    row = Row(point, "plain", "score", 100, 60.0, 20.0, 2.0, printed)
    assert row.z_score == pytest.approx(3.0 / np.sqrt(400 / 100 + 400 / 25 + 0.01 / 12))
    assert row_form(row, point)["published_std"] == ""
    assert Row(point, "plain", "score", 1, 60.0, 0.0, 0.0, printed).z_score is None


def test_what_measures_time_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    from dpmine.reproduce import harness

    plain = harness.worked

    def noted(task: Any, items: Any, workers: int, name: str) -> Any:
        asked.append(workers)
        return plain(task, items, workers, name)

    monkeypatch.setattr(harness, "worked", noted)
    run(small(timed=True), tmp_path, workers=2)
    assert asked == [1]
