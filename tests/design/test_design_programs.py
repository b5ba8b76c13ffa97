"""Every builder's matrix keeps epsilon exactly; the linear programs meet brute force; choosing and caching."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.json_values import from_text, to_text
from dpmine.design import caching, linear_programs
from dpmine.design.candidates import PRIOR_ALONE, candidates, pick
from dpmine.design.column_pricing import cheapest_levels, level_count
from dpmine.design.constructions import clamped_staircase, heuristic, randomised_response, truncated_geometric
from dpmine.design.finite_mechanisms import FiniteMechanism, loss_table
from dpmine.design.linear_programs import Program, bayesian_optimum, risk_averse_optimum, solve
from dpmine.design.priors import MECHANISMS, Prior, prior
from dpmine.design.repair import unrepaired
from dpmine.design.setting import Setting
from dpmine.noise.finite_tables import FiniteTable, Floats


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMINE_CACHE", str(tmp_path))
    caching.forget()


def setting(points: int, steps: int, epsilon: str = "1") -> Setting:
    return Setting(Fraction(0), Fraction(points - 1), Fraction(1), Fraction(steps), Epsilon.parse(epsilon))


def brute_force(losses: Floats, steps: int, epsilon: float, prior: Floats | None, among: Floats | None) -> float:
    """All pairs within the sensitivity written out."""
    points = len(losses)
    pairs = [(i, k) for i in range(points) for k in range(points) if i != k and abs(i - k) <= steps]
    rows, columns, entries = [], [], []
    for number, (i, k) in enumerate(pairs):
        for r in range(points):
            rows += [number * points + r] * 2
            columns += [i * points + r, k * points + r]
            entries += [1.0, -math.exp(epsilon)]
    unknowns = points**2
    ratios = sparse.csr_matrix((entries, (rows, columns)), shape=(len(pairs) * points, unknowns + 1))
    sums = sparse.hstack((sparse.kron(sparse.eye(points), np.ones((1, points))), sparse.csr_matrix((points, 1))))
    risks = sparse.hstack((sparse.block_diag([row[None, :] for row in losses]), -np.ones((points, 1)))).tocsr()
    costs = np.zeros(unknowns + 1)
    if prior is not None:
        costs[:-1] = (prior[:, None] * losses).ravel()
        upper = ratios
    else:
        costs[-1] = 1
        upper = sparse.vstack((ratios, risks[np.flatnonzero(among)]))
    found = linprog(costs, A_ub=upper, b_ub=np.zeros(upper.shape[0]), A_eq=sums, b_eq=np.ones(points), method="highs")
    return float(found.fun)


@pytest.mark.parametrize(
    ("points", "steps", "epsilon"), [(5, 1, 1.0), (8, 2, 0.5), (9, 4, 0.1), (10, 3, 2.0), (11, 10, 1.0)]
)
@pytest.mark.parametrize("loss", ["absolute", "squared", "miss"])
def test_the_programs_meet_brute_force(points: int, steps: int, epsilon: float, loss: str) -> None:
    losses = loss_table(loss, setting(points, steps).grid, setting(points, steps).grid)
    generator = np.random.default_rng(points)
    symmetric = np.exp(-((np.arange(points) - (points - 1) / 2) ** 2) / 8)
    for probabilities in (generator.dirichlet(np.ones(points)), symmetric / symmetric.sum()):
        found = solve(Program(losses, steps, epsilon, probabilities, None))
        assert found.value == pytest.approx(brute_force(losses, steps, epsilon, probabilities, None), rel=1e-7, abs=1e-9)
        assert found.bound <= found.value + 1e-9
    for among in (np.ones(points, dtype=bool), np.arange(points) < points // 2):
        found = solve(Program(losses, steps, epsilon, None, among))
        assert found.value == pytest.approx(brute_force(losses, steps, epsilon, None, among), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(("points", "steps"), [(4, 1), (5, 2), (6, 3), (6, 5)])
def test_cheapest_levels_are_those_of_all_levels(points: int, steps: int) -> None:
    grids = np.indices((level_count(points, steps),) * points).reshape(points, -1).T
    legal = np.ones(len(grids), dtype=bool)
    for i in range(points):
        for k in range(i + 1, min(points, i + steps + 1)):
            legal &= np.abs(grids[:, i] - grids[:, k]) <= 1
    columns = np.exp(-0.7 * grids[legal])
    costs = np.random.default_rng(steps).normal(size=(200, points))
    found = cheapest_levels(costs, steps, 0.7)
    least = np.minimum((costs @ columns.T).min(axis=1), 0)
    value = (costs * np.exp(-0.7 * found)).sum(axis=1)
    assert np.minimum(value, 0) == pytest.approx(least)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.integers(1, 40), st.sampled_from(["0.000000001", "0.01", "0.3", "1", "7", "60", "900"]))
def test_every_construction_keeps_epsilon_exactly(points: int, steps: int, epsilon: str) -> None:
    facts = setting(points, steps, epsilon)
    made = [truncated_geometric(facts), heuristic(facts), randomised_response(facts)]
    made += [clamped_staircase(facts, inner) for inner in {0, facts.steps // 2, facts.steps - 1}]
    for mechanism in made:
        assert mechanism.keeps(facts.epsilon, facts.sensitivity)


@pytest.mark.parametrize(("points", "steps"), [(2, 1), (7, 3), (12, 5), (12, 11)])
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "2", "8"])
def test_every_candidate_keeps_epsilon_exactly(points: int, steps: int, epsilon: str) -> None:
    facts = setting(points, steps, epsilon)
    for stated in (prior("flat"), prior("normal:3:2", loss="squared"), prior("triangle:0:1:4", loss="miss")):
        for each in candidates(facts, stated):
            if each.mechanism is not None:
                assert isinstance(each.mechanism, FiniteMechanism)
                assert each.mechanism.keeps(facts.epsilon, facts.sensitivity), each.name


def test_a_sum_of_columns_from_the_solver_fails_without_repair() -> None:
    facts = setting(21, 10)
    probabilities = prior("normal:10:3").probabilities(facts.grid)
    losses = loss_table("absolute", facts.grid, facts.grid)
    solution = solve(Program(losses, facts.steps, 1.0, probabilities, None))
    assert not unrepaired(solution.matrix, facts).keeps(facts.epsilon, facts.sensitivity)
    best = bayesian_optimum(facts, probabilities)
    assert best.mechanism.keeps(facts.epsilon, facts.sensitivity)
    assert best.mechanism.expected_loss(probabilities, "absolute") == pytest.approx(solution.value, abs=1e-8)
    assert 0 < best.mixed < 1e-6


def test_two_hundred_points_are_solved_to_the_bound() -> None:
    facts = setting(201, 100)
    best = bayesian_optimum(facts, prior("normal:100:40").probabilities(facts.grid))
    assert best.loss == pytest.approx(best.bound, rel=1e-6)
    assert best.mechanism.keeps(facts.epsilon, facts.sensitivity)


def test_auto_takes_the_least_loss_and_says_so() -> None:
    facts = setting(21, 10)
    chosen = pick(facts, prior("normal:10:3"))
    assert chosen.candidate.name == "optimal"
    assert chosen.candidate.expected_loss == min(each.expected_loss for each in chosen.all)
    assert "least expected loss" in chosen.why
    assert pick(facts, prior("normal:10:3")) == chosen


def test_one_step_needs_no_program() -> None:
    chosen = pick(setting(21, 1), prior("normal:10:3"))
    assert chosen.candidate.name == "geometric + remap"
    assert "optimal for every prior" in chosen.why


def test_what_loses_to_the_prior_alone_says_so() -> None:
    facts = setting(21, 10, "0.01")
    assert "answers the same whatever the data" in pick(facts, prior("normal:10:1")).why
    by_name = pick(facts, prior("normal:10:1", by="risk-averse"))
    assert by_name.candidate.name == "risk-averse"
    assert "loses to answering the prior alone" in by_name.why
    assert PRIOR_ALONE in {each.name for each in by_name.all}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_name_is_picked(name: str) -> None:
    chosen = pick(setting(9, 4), prior("flat", by=name))
    assert name == "auto" or chosen.candidate.name.startswith(name)


def test_without_scipy_the_optimum_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_programs, "has_solver", lambda: False)
    with pytest.raises(RequestError, match=r"dpmine\[design\]"):
        risk_averse_optimum(setting(5, 2))


def test_designs_are_solved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts, stated = setting(9, 4), prior("normal:4:2", by="optimal")
    first = pick(facts, stated)
    (file,) = tmp_path.glob("*.json")
    monkeypatch.setattr("dpmine.design.candidates.bayesian_optimum", lambda *_: pytest.fail("solved again"))
    assert pick(facts, stated) == first
    caching.forget()
    assert pick(facts, stated) == first
    assert from_text(file.read_text(), FiniteTable) == first.candidate.mechanism


@pytest.mark.parametrize("spoilt", ["", "{}", "other"])
def test_a_file_that_does_not_pass_is_written_again(tmp_path: Path, spoilt: str) -> None:
    facts, stated = setting(9, 4), prior("normal:4:2", by="optimal")
    first = pick(facts, stated)
    (file,) = tmp_path.glob("*.json")
    whole = file.read_text()
    leaky = FiniteMechanism("0", "1", facts.labels, tuple(tuple(int(i == r) for r in range(9)) for i in range(9)))
    file.write_text(to_text(leaky) if spoilt == "other" else spoilt)
    caching.forget()
    assert pick(facts, stated) == first
    assert file.read_text() == whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        "normal",
        "normal:1",
        "normal:1:0",
        "normal:1:x",
        "triangle:3:2:1",
        "weights:",
        "weights:0,0",
        "cauchy:1:2",
        "flat:",
    ],
)
def test_what_is_no_prior_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        prior(text)


def test_priors_on_a_grid() -> None:
    grid = tuple(map(Fraction, range(5)))
    assert prior("flat").probabilities(grid) == pytest.approx([0.2] * 5)
    assert prior("weights:1,0,2,0,1").probabilities(grid) == pytest.approx([0.25, 0, 0.5, 0, 0.25])
    assert prior("triangle:0:2:4").probabilities(grid) == pytest.approx([0, 0.25, 0.5, 0.25, 0])
    ratio = prior("laplace:2:1").probabilities(grid)
    assert ratio[2] / ratio[1] == pytest.approx(math.e)
    assert prior("normal:1e3:1").probabilities(grid)[-1] > 0.99
    stated = prior("normal:40:10", low=0.1, high="99/2", step=Fraction(1, 5), loss="squared", by="optimal")
    assert (stated.low, stated.high, stated.step) == ("1/10", "99/2", "1/5")
    assert from_text(to_text(stated), Prior) == stated


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("epsilon", ["0.1", "5"])
def test_the_optimum_does_not_depend_on_units(loss: str, epsilon: str) -> None:
    """Incomes in cents or in millions: a solver's tolerances are absolute, the answers' units are not."""
    found = []
    for unit in (Fraction(1, 10**6), Fraction(1), Fraction(5000), Fraction(10**6)):
        setting = Setting(Fraction(0), 20 * unit, unit, 10 * unit, Epsilon.parse(epsilon))
        flat = np.full(21, 1 / 21)
        scale = float(unit) ** (1 if loss == "absolute" else 2)
        for optimum in (bayesian_optimum(setting, flat, loss), risk_averse_optimum(setting, loss)):
            assert optimum.bound <= optimum.loss * (1 + 1e-9)
            found.append((optimum.loss / scale, optimum.bound / scale))
    for place, pair in enumerate(found):
        assert pair == pytest.approx(found[place % 2], rel=1e-6)


def test_a_program_for_a_large_grid_is_refused_and_one_for_a_tiny_epsilon_is_one_candidate_less() -> None:
    large = Setting(Fraction(0), Fraction(202), Fraction(1), Fraction(50), Epsilon.parse(1))
    with pytest.raises(RequestError, match="at most 201 points"):
        bayesian_optimum(large, np.ones(203))
    assert pick(large, prior("normal:100:30")).candidate.name != "optimal"
    assert pick(setting(21, 10, "0.000000001"), prior("normal:10:3")).candidate.name != "optimal"


def test_points_that_hardly_ever_are_true_are_clamped_to_likely_ones() -> None:
    """On 61 points the optimum on all of them is known from the program written out; the tails may be copies."""
    facts = setting(61, 12, "1")
    likely = prior("normal:20:4").probabilities(facts.grid)
    found = bayesian_optimum(facts, likely)
    assert found.bound <= found.loss <= found.bound * (1 + 3e-4)
    weights = found.mechanism.weights
    assert weights[-1] == weights[-2]
    assert found.mechanism.keeps(facts.epsilon, facts.sensitivity)
