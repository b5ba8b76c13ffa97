"""The slides' comparison of k-means with Laplace k-means: the data, what counts as found, runs, claims and the picture."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dpmine.cli import reproduce
from dpmine.reproduce import all_experiments, xiong
from dpmine.reproduce.claims import checked
from dpmine.reproduce.experiments import AGREES, DISAGREES, Case, Outcome, Point, Scene, grid
from dpmine.reproduce.records import Record

app = typer.Typer()
app.command()(reproduce.reproduce)


def plane(seed: int = 1) -> xiong.Plane:
    return xiong.far_and_close(Scene({}, 0, seed))


# -- the data ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_far_clusters_are_far_and_close_ones_close(seed: int) -> None:
    drawn = plane(seed)
    assert (len(drawn.far), len(drawn.close), len(drawn.points)) == (4, 3, 4 * 2000 + 3 * 200)
    assert distances(drawn.close) == pytest.approx([8.0] * 3)
    assert min(distances(drawn.far)) >= 35
    assert min(np.linalg.norm(drawn.far - drawn.close.mean(axis=0), axis=1)) >= 35
    assert drawn.points.min() >= 0
    assert drawn.points.max() <= 100
    first = drawn.points[:2000] - drawn.far[0]  # false alarm: 6.5 deviations of the mean and of the deviation
    assert np.abs(first.mean(axis=0)).max() < 6.5 * 2 / np.sqrt(2000)
    assert np.abs(first.std(axis=0) - 2).max() < 6.5 * 2 / np.sqrt(4000)


def distances(centres: xiong.Points) -> list[float]:
    gaps = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    return list(gaps[np.triu_indices(len(centres), 1)])


def test_a_scene_is_drawn_again_alike() -> None:
    assert np.array_equal(plane(3).points, plane(3).points)
    assert not np.array_equal(plane(3).far, plane(4).far)


# -- what counts as found --------------------------------------------------------------------------------------------------


def test_a_centre_finds_one_cluster_at_most() -> None:
    """Not even in the middle between two close ones, or in the middle of all three."""
    drawn = plane()
    assert xiong.share_found(drawn.close, drawn.close) == 100
    assert xiong.share_found(drawn.close[:1] + 2.7, drawn.close) == pytest.approx(100 / 3)
    assert xiong.share_found(drawn.close.mean(axis=0, keepdims=True), drawn.close) == 0
    random = np.random.default_rng(0).uniform(0, 100, (10_000, 2))
    both = np.concatenate([drawn.far, drawn.close])
    near = np.linalg.norm(random[:, None] - both[None], axis=2) < xiong.WITHIN
    assert near.any()
    assert near.sum(axis=1).max() == 1


def test_several_centres_in_one_cluster_count_once() -> None:
    drawn = plane()
    assert xiong.share_found(np.repeat(drawn.far[:1], 7, axis=0), drawn.far) == 25


def test_far_and_close_are_read_off_one_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(xiong, "centres_of", lambda name, drawn, epsilon: asked.append((name, epsilon)) or drawn.far)
    drawn = plane()
    scene = Scene({}, 0, 1)
    found = [
        xiong.found_clusters(Case({"clusters": clusters, "epsilon": epsilon}, algorithm, scene), drawn)["found"]
        for algorithm in (xiong.LLOYD, xiong.OURS)
        for epsilon in (0.5, 1.0)
        for clusters in xiong.CLUSTERS
    ]
    assert found == [100, 0] * 4
    assert asked == [(xiong.LLOYD, None), (xiong.OURS, 0.5), (xiong.OURS, 1.0)]


# -- algorithms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_without_noise_dplloyd_is_lloyd_from_the_same_starts(seed: int) -> None:
    """Within what rounding to the grid of 0.1 and to whole noisy sizes makes of it in ten steps."""
    drawn = plane(seed)
    exact = xiong.centres_of(xiong.LLOYD, drawn, None)
    noisy = xiong.centres_of(xiong.DPLLOYD, drawn, 100_000.0)
    away = np.linalg.norm(exact[:, None] - noisy[None], axis=2)
    assert away.min(axis=1).max() < 0.2
    assert away.min(axis=0).max() < 0.2


def test_ordinary_kmeans_and_ours_find_all_at_a_large_epsilon() -> None:
    drawn = plane()
    for algorithm, epsilon in ((xiong.ORDINARY, None), (xiong.OURS, 50.0)):
        centres = xiong.centres_of(algorithm, drawn, epsilon)
        assert [xiong.share_found(centres, true) for true in (drawn.far, drawn.close)] == [100, 100]


# -- from end to end -------------------------------------------------------------------------------------------------------


def test_the_experiment_runs_through_the_command(tmp_path: Path) -> None:
    command = ["xiong-kmeans", "--runs", "2", "--only", "epsilon=0.1,5", "--out", str(tmp_path), "--workers", "1"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, (result.output, result.exception)
    assert result.stdout.count("Paper: Laplace k-means") == 2
    experiment = all_experiments()["xiong-kmeans"]
    with (tmp_path / "xiong-kmeans.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * len(experiment.algorithms)
    assert all(row["runs"] == "2" and 0 <= float(row["mean"]) <= 100 for row in rows)
    assert (tmp_path / "xiong-kmeans.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)["fresh_cases"] == 0


def test_the_experiment_is_that_of_the_slide() -> None:
    (experiment,) = xiong.xiong_experiments()
    assert all(point in experiment.points for point in experiment.quick_points)
    assert set(experiment.algorithms) == set(experiment.picture.styles) == {*xiong.PRIVATE, *xiong.WITHOUT_PRIVACY}
    laplace = xiong.PRIVATE[xiong.DPLLOYD](1.0, 0)
    assert (laplace.iterations, laplace.starts, laplace.shares) == (10, "random", "equal")  # type: ignore[attr-defined]
    scenes = {experiment.scene(point, 0).seed for point in experiment.points}
    assert len(scenes) == 1  # all algorithms, at every epsilon, meet the same points


def test_the_picture_of_points_and_centres(tmp_path: Path) -> None:
    path = xiong.draw_centres(tmp_path / "new", epsilon=2.0)
    assert path.name == "xiong-kmeans.centres.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000


# -- what claims make of runs ----------------------------------------------------------------------------------------------


def outcome_of(far: dict[str, float], close: dict[str, float], points: tuple[Point, ...] | None = None) -> Outcome:
    """Five runs of each algorithm, which differ a little, the same at every epsilon."""
    experiment = all_experiments()["xiong-kmeans"]
    points = experiment.points if points is None else points
    records = [
        Record(point, name, run, run, {"found": (far if point["clusters"] == "far" else close)[name] + run * wiggle})
        for point in points
        for wiggle, name in enumerate(far)
        for run in range(5)
    ]
    return Outcome(experiment, points, tuple(records), len(records))


SEEN = {xiong.ORDINARY: 95.0, xiong.LLOYD: 85.0}


@pytest.mark.parametrize(
    ("far", "close", "verdicts"),
    [
        (90.0, 10.0, [AGREES, AGREES]),
        (20.0, 10.0, [DISAGREES, AGREES]),
        (90.0, 99.0, [AGREES, DISAGREES]),
    ],
)
def test_claims_follow_the_shares_found(far: float, close: float, verdicts: list[str]) -> None:
    outcome = outcome_of({**SEEN, xiong.DPLLOYD: far}, {**SEEN, xiong.DPLLOYD: close})
    assert [claim.verdict for claim in checked(outcome)] == verdicts
    assert "at epsilon 0.25" in checked(outcome)[0].found


def test_a_run_over_one_kind_of_clusters_leaves_the_other_claim_open() -> None:
    points = grid(clusters=("far",), epsilon=(1.0,))
    outcome = outcome_of({**SEEN, xiong.DPLLOYD: 90.0}, {}, points)
    assert [claim.verdict for claim in checked(outcome)] == [AGREES, "not judged"]
