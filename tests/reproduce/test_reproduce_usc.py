"""The talk's two figures: losses beside reference numbers, colluders beside exact sums, claims, and the way to files."""

from __future__ import annotations

import csv
import importlib.util
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from dpmine.base.errors import RequestError
from dpmine.cli import reproduce
from dpmine.design import caching
from dpmine.design.constructions import heuristic
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.reproduce import all_experiments, usc
from dpmine.reproduce.claims import checked
from dpmine.reproduce.experiments import AGREES, DISAGREES, Case, Outcome, Point, Scene
from dpmine.reproduce.harness import run
from dpmine.reproduce.records import Record

app = typer.Typer()
app.command()(reproduce.reproduce)


@pytest.fixture(scope="module")
def tradeoff(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run(all_experiments()["usc-tradeoff"], tmp_path_factory.mktemp("tradeoff"), workers=1)


@pytest.fixture(scope="module")
def collusion(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run(all_experiments()["usc-collusion"], tmp_path_factory.mktemp("collusion"), repetitions=3, workers=1)


def mean(outcome: Outcome, algorithm: str, point: Point) -> float:
    (measure,) = {name for record in outcome.records for name in record.measures}
    return float(np.mean([record.measures[measure] for record in outcome.runs(algorithm, point)]))


# -- the trade-off -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deviation", "epsilon", "wanted"),
    [
        (1, 1.0, (5.72, 0.73, 6.30, 0.73, 0.68)),
        (1, 4.0, (1.06, 0.73, 2.45, 0.73, 0.13)),
        (3, 2.0, (3.92, 2.31, 4.19, 2.37, 1.64)),
        (6, 1.0, (5.94, 3.74, 5.86, 4.07, 3.53)),
    ],
)
def test_losses_are_the_reference_numbers(
    tradeoff: Outcome, deviation: int, epsilon: float, wanted: tuple[float, ...]
) -> None:
    names = ("heuristic", "heuristic + remap", "laplace, clamped", "prior alone", "optimal")
    point = {"deviation": deviation, "epsilon": epsilon}
    assert tuple(round(mean(tradeoff, name, point), 2) for name in names) == wanted


def test_nothing_beats_the_optimum_and_remaps_never_hurt(tradeoff: Outcome) -> None:
    for point in tradeoff.points:
        losses = {name: mean(tradeoff, name, point) for name in tradeoff.experiment.algorithms}
        assert min(losses, key=lambda name: losses[name] - 1e-6 * (name == "optimal")) == "optimal"
        for name in ("heuristic", "geometric"):
            assert losses[f"{name} + remap"] <= losses[name] + 1e-9
            assert losses[f"{name} + remap"] <= losses["prior alone"] + 1e-9


def test_claims_of_the_tradeoff_are_judged_by_numbers(tradeoff: Outcome) -> None:
    gains, narrow, high, good = checked(tradeoff)
    assert [claim.verdict for claim in (gains, narrow, high, good)] == [AGREES, AGREES, AGREES, DISAGREES]
    assert "1.06 against 2.45 at epsilon 4 (-57%)" in gains.found
    assert "5.94 against 5.86 at epsilon 1 (+1%)" in narrow.found
    assert "optimum 0.73 and prior alone 0.73" in high.found
    assert "loses to the prior alone (0.73) at 9 of 9 epsilons" in good.found
    assert "1.06 (remapped 0.73, optimum 0.13) at epsilon 4" in good.found


def changed(outcome: Outcome, algorithm: str, factor: float) -> Outcome:
    records = tuple(
        Record(r.point, r.algorithm, r.repetition, r.seed, {k: v * factor for k, v in r.measures.items()})
        if r.algorithm == algorithm
        else r
        for r in outcome.records
    )
    return Outcome(outcome.experiment, outcome.points, records, 0)


def test_claims_can_come_out_otherwise(tradeoff: Outcome, collusion: Outcome) -> None:
    assert checked(changed(tradeoff, "heuristic", 3.0))[0].verdict == DISAGREES
    assert checked(changed(tradeoff, "heuristic", 3.0))[2].verdict == DISAGREES
    assert checked(changed(tradeoff, "heuristic", 0.01))[3].verdict == AGREES
    assert checked(changed(collusion, "heuristic", 0.5))[0].verdict == DISAGREES


def test_claims_about_points_that_were_not_run_are_not_judged(tradeoff: Outcome, collusion: Outcome) -> None:
    few = Outcome(tradeoff.experiment, ({"deviation": 3, "epsilon": 1.0},), tradeoff.records, 0)
    assert {claim.verdict for claim in checked(few)} == {"not judged"}
    lone = Outcome(collusion.experiment, ({"deviation": 3, "colluders": 5},), collusion.records, 0)
    assert {claim.verdict for claim in checked(lone)} == {"not judged"}


# -- collusion -----------------------------------------------------------------------------------------------------------


def exact_error(count: int, deviation: int, *, ties: float = 1e-9) -> float:
    """The heuristic's colluders without simulation: all multisets of answers, each with the likeliest point, lower of two.

    Powers of one number make likelihoods that are equal but for rounding: at 20 colluders in 3 % of the cases.
    """
    pooled = usc.pool(Scene({"deviation": deviation}, 0, 1))
    together = pooled.rough.repeated(count)
    chances = np.array([[weight / together.total for weight in row] for row in together.weights])
    logs = np.log(chances)
    tied = logs >= logs.max(axis=0) - ties * np.maximum(1.0, np.abs(logs.max(axis=0)))
    ranks = np.cumsum(tied, axis=0)
    guesses = np.array([-10.0, 0.0, 10.0])[np.argmax(ranks >= (ranks[-1] + 1) // 2, axis=0)]
    errors = [chances[place] @ np.abs(guesses - true) for place, true in zip(pooled.rounded, pooled.grid, strict=True)]
    return float(pooled.prior @ errors)


NEAR = 6 * 5 / np.sqrt(200_000)  # errors have deviations below 5: a mean of so many is farther off once in 5e8 times


@pytest.mark.parametrize("deviation", usc.DEVIATIONS)
@pytest.mark.parametrize("count", [1, 5, 20])
def test_colluders_are_simulated_as_exact_sums_say(deviation: int, count: int) -> None:
    pooled = usc.pool(Scene({"deviation": deviation}, 0, 1))
    mechanism = pooled.found["heuristic"].mechanism
    assert isinstance(mechanism, FiniteMechanism)
    found = mechanism.colluders_error(count, pooled.prior, runs=200_000, seed=count)
    assert found == pytest.approx(exact_error(count, deviation), abs=NEAR)


def test_ties_left_to_rounding_would_be_noticed() -> None:
    assert exact_error(20, 3) == pytest.approx(2.367, abs=0.001)
    assert abs(exact_error(20, 3, ties=0.0) - exact_error(20, 3)) > NEAR


def test_one_colluder_has_the_loss_of_one_answer(tradeoff: Outcome) -> None:
    for deviation in usc.DEVIATIONS:
        loss = mean(tradeoff, "heuristic", {"deviation": deviation, "epsilon": 1.0})
        assert exact_error(1, deviation) == pytest.approx(loss, abs=1e-9)


def test_geometric_noise_wears_off_and_rounding_stays(collusion: Outcome) -> None:
    for deviation in usc.DEVIATIONS:
        points = [{"deviation": deviation, "colluders": count} for count in usc.COLLUDERS]
        geometric = [mean(collusion, "geometric", point) for point in points]
        assert geometric == sorted(geometric, reverse=True)
        assert geometric[-1] < 0.4
        floor = mean(collusion, usc.ROUNDING, points[0])
        assert mean(collusion, "heuristic", points[-1]) == pytest.approx(floor, abs=0.15)
        assert mean(collusion, usc.INFORMED, points[-1]) <= floor + 0.1  # who knows the prior is never farther off


def test_claims_of_collusion_are_judged_by_numbers(collusion: Outcome) -> None:
    level, proof = checked(collusion)
    assert (level.verdict, proof.verdict) == (AGREES, DISAGREES)
    assert "rounding alone 2.15" in level.found
    assert "5 answers of epsilon 1 need epsilon 5.00 together" in proof.found


def test_five_answers_cost_five_times_epsilon_exactly() -> None:
    five = heuristic(usc.question(1.0)).repeated(5)
    assert five.epsilon(Fraction(10)) == pytest.approx(5.0, abs=1e-6)


def test_the_rough_mechanism_is_the_heuristic() -> None:
    pooled = usc.pool(Scene({"deviation": 3}, 0, 1))
    whole = pooled.found["heuristic"].mechanism
    assert isinstance(whole, FiniteMechanism)
    assert whole.outputs == pooled.rough.outputs == ("-10", "0", "10")
    assert np.allclose(whole.matrix(), pooled.rough.matrix()[pooled.rounded], atol=1e-12)
    assert pooled.roughly[[4, 5, 10, 14, 15]].tolist() == [-10, 0, 0, 0, 10]  # -6, -5, 0, 4, 5: halves go up


def test_a_run_is_drawn_again_alike() -> None:
    pooled = usc.pool(Scene({"deviation": 3}, 0, 1))
    for algorithm in usc.COLLUSION_STYLES:
        cases = [Case({"deviation": 3, "colluders": 5}, algorithm, Scene({"deviation": 3}, 0, seed)) for seed in (7, 7, 8)]
        first, again, other = (usc.guess_error(case, pooled)["error"] for case in cases)
        assert first == again
        assert (first == other) == (algorithm == usc.ROUNDING)


# -- from end to end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "only", "claims"), [("usc-tradeoff", "epsilon=0.1,4", 4), ("usc-collusion", "colluders=1,400", 2)]
)
def test_the_experiments_run_through_the_command(name: str, only: str, claims: int, tmp_path: Path) -> None:
    command = [name, "--runs", "1", "--only", only, "--out", str(tmp_path), "--workers", "1"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, (result.output, result.exception)
    assert result.stdout.count("Paper: ") == claims
    assert "1 run a point" in result.stdout
    with (tmp_path / f"{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    experiment = all_experiments()[name]
    assert {row["algorithm"] for row in rows} == set(experiment.algorithms)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / f"{name}.claims.csv").exists()
    assert json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)["fresh_cases"] == 0


@pytest.mark.parametrize("name", ["usc-tradeoff", "usc-collusion"])
def test_the_experiments_are_those_of_the_talk(name: str) -> None:
    experiment = all_experiments()[name]
    assert all(point in experiment.points for point in experiment.quick_points)
    assert set(experiment.algorithms) == set(experiment.picture.styles)
    assert {point["deviation"] for point in experiment.points} == {1, 3, 6}
    assert "ours" in experiment.picture.note


def test_without_a_solver_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    caching.forget()
    with pytest.raises(RequestError, match=r"dpmine\[design\]"):
        usc.designs(Scene({"deviation": 1, "epsilon": 1.0}, 0, 1))
