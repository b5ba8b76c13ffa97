"""Means, z-scores and the corrected t-test against numbers worked out by hand, and the Pareto front."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest
from scipy import stats
from support.experiments import small

from dpmine.reproduce.claims import within
from dpmine.reproduce.experiments import AGREES, DISAGREES, UNDECIDED, Outcome, PairedComparison, Published, grid
from dpmine.reproduce.friedman import friedman_experiments
from dpmine.reproduce.frontier import beats, is_as_good
from dpmine.reproduce.records import Record
from dpmine.reproduce.significance import Compared, compare, corrected_t_test, two_sided_p_value
from dpmine.reproduce.summaries import Row, summarise, write_summary

POINT = {"size": 10, "epsilon": 0.5}


def outcome_of(plain: list[float], better: list[float], **changes: object) -> Outcome:
    records = [
        Record(POINT, name, number, number, {"score": score})
        for name, scores in (("plain", plain), ("better", better))
        for number, score in enumerate(scores)
    ]
    return Outcome(small(**changes), (POINT,), tuple(records), len(records))


def test_mean_deviation_and_standard_error_are_those_of_the_textbook() -> None:
    plain, better = summarise(outcome_of([1.0, 2.0, 3.0, 6.0], [5.0, 5.0, 5.0, 5.0]))
    assert (plain.algorithm, plain.runs, plain.mean) == ("plain", 4, 3.0)
    assert plain.std == pytest.approx(math.sqrt(14 / 3))  # squares 4 + 1 + 0 + 9 over 4 - 1
    assert plain.standard_error == pytest.approx(math.sqrt(14 / 12))
    assert (better.mean, better.std, better.standard_error) == (5.0, 0.0, 0.0)
    (single, _) = summarise(outcome_of([7.0], [7.0]))
    assert (single.runs, single.mean, single.std) == (1, 7.0, 0.0)


def test_the_z_score_counts_both_deviations_and_the_rounding() -> None:
    printed = Published(POINT, "plain", 57.0, 17.3, 200, 0.1, "score")
    row = Row(POINT, "plain", "score", 100, 60.0, 20.0, 2.0, printed)
    by_hand = 3.0 / math.sqrt(400 / 100 + 17.3**2 / 200 + 0.01 / 12)
    assert row.z_score == pytest.approx(by_hand)
    assert by_hand == pytest.approx(1.279, abs=1e-3)
    certain = Row(POINT, "plain", "score", 200, 100.0, 0.0, 0.0, Published(POINT, "plain", 100.0, 0.0, 200))
    assert certain.z_score == 0
    assert Row(POINT, "plain", "score", 200, 100.0, 0.0, 0.0).z_score is None


def test_the_table_holds_published_numbers_beside_ours(tmp_path: Path) -> None:
    published = (Published(POINT, "plain", 2.5, 1.0, 4, 0.1, "score"),)
    rows = summarise(outcome_of([1.0, 2.0, 3.0, 6.0], [5.0] * 4, published=published))
    write_summary(rows, tmp_path / "means.csv")
    with (tmp_path / "means.csv").open(encoding="utf-8") as file:
        plain, better = csv.DictReader(file)
    parameters = {"size": "10", "epsilon": "0.5", "algorithm": "plain", "measure": "score"}
    ours = {"runs": "4", "mean": "3.0", "std": "2.1602", "standard_error": "1.0801"}
    assert plain == parameters | ours | {"published_mean": "2.5", "published_std": "1.0", "z_score": "0.42"}
    assert better["published_mean"] == better["z_score"] == ""


def test_the_corrected_t_test_is_that_of_nadeau_and_bengio() -> None:
    differences = [1.0, 2.0, 3.0, 2.0, 2.0, 1.0, 3.0, 2.0, 2.0, 2.0]
    mean, variance = 2.0, 4 / 9
    t, p_value = corrected_t_test(differences, 1 / 9)
    assert t == pytest.approx(mean / math.sqrt((1 / 10 + 1 / 9) * variance))
    assert t == pytest.approx(6.5292, abs=1e-4)
    assert p_value == pytest.approx(2 * stats.t.sf(t, 9), rel=1e-9)
    plain, _ = corrected_t_test(differences, 0.0)
    assert plain == pytest.approx(stats.ttest_1samp(differences, 0).statistic)
    assert plain > t


def test_the_t_test_without_variance_or_runs() -> None:
    assert corrected_t_test([0.0, 0.0], 1 / 9) == (0.0, 1.0)
    assert corrected_t_test([-1.0, -1.0], 1 / 9) == (-math.inf, 0.0)
    assert corrected_t_test([3.0], 1 / 9) == (0.0, 1.0)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 10, 99])
def test_p_values_are_students(degrees: int) -> None:
    for t in (0.0, 0.3, -1.0, 2.0, 3.5, 8.0):
        assert two_sided_p_value(t, degrees) == pytest.approx(2 * stats.t.sf(abs(t), degrees), rel=1e-9, abs=1e-14)


def test_every_pair_is_compared_and_judged() -> None:
    comparison = PairedComparison(("better", "plain"), 1 / 9, "score")
    (clear,) = compare(outcome_of([1.0, 2.0, 3.0, 4.0, 5.0], [3.0, 4.1, 5.0, 6.1, 7.0], comparison=comparison))
    assert clear.verdict == "better is better"
    assert clear.difference == pytest.approx(2.04)
    (open_,) = compare(outcome_of([1.0, 2.0, 3.0], [0.0, 3.0, 3.0], comparison=comparison))
    assert open_.verdict == "no significant difference"
    worse = Compared(POINT, "a", "b", 10, -1.0, -9.0, 1e-9, 0.05)
    assert worse.verdict == "b is better"
    assert worse.form()["p_value"] == 1e-9


# -- the front ---------------------------------------------------------------------------------------------------------


def row(epsilon: float, rows: int, mean: float) -> Row:
    return Row({"epsilon": epsilon, "rows": rows}, "tree", "accuracy", 10, mean, 1.0, 0.3)


def test_a_pareto_improvement_costs_nothing() -> None:
    here = row(0.5, 1000, 80.0)
    assert beats(row(0.5, 1000, 81.0), here)
    assert beats(row(0.1, 1000, 80.0), here)
    assert beats(row(0.5, 500, 80.0), here)
    assert not beats(here, here)
    assert not beats(row(0.1, 1000, 79.0), here)
    assert not beats(row(1.0, 1000, 90.0), here)
    assert not beats(row(0.1, 2000, 90.0), here)


def test_two_algorithms_are_as_good_when_their_paired_runs_leave_it_open() -> None:
    def runs(scores: list[float]) -> list[Record]:
        return [Record(POINT, "tree", number, number, {"accuracy": score}) for number, score in enumerate(scores)]

    best = runs([80.0, 90.0, 85.0, 95.0])
    assert is_as_good(best, runs([81.0, 88.0, 86.0, 94.0]))
    assert not is_as_good(best, runs([79.0, 88.8, 84.0, 93.9]))
    assert is_as_good(runs([80.0]), runs([70.0]))  # one run leaves everything open


# -- the experiments as described ------------------------------------------------------------------------------------------


def test_the_experiments_are_those_of_the_paper() -> None:
    found = {experiment.name: experiment for experiment in friedman_experiments()}
    assert [experiment.repetitions for experiment in found.values()] == [200, 200, 200, 200, 200, 200, 100, 200]
    table = found["friedman-table1"]
    assert len(table.published) == 25
    assert all(dict(printed.point) in [dict(point) for point in table.points] for printed in table.published)
    assert len(found["friedman-grid"].points) == 3 * 3 * 3 * 6
    for experiment in found.values():
        assert all(point in experiment.points for point in experiment.quick_points)
        assert len({str(sorted(point.items())) for point in experiment.points}) == len(experiment.points)
        assert set(experiment.algorithms) <= set(experiment.picture.styles)
    assert grid(a=(1, 2), b=(3,)) == ({"a": 1, "b": 3}, {"a": 2, "b": 3})


@pytest.mark.parametrize(
    ("deviation", "error", "verdict"),
    [
        (0.9, 0.0, AGREES),
        (-1.0, 5.0, AGREES),
        (1.1, 0.0, DISAGREES),
        (-1.1, 0.1, UNDECIDED),
        (1.3, 0.1, DISAGREES),
        (50, math.inf, UNDECIDED),
    ],
)
def test_a_number_off_by_less_than_its_error_is_not_said_to_disagree(deviation: float, error: float, verdict: str) -> None:
    assert within(deviation, 1.0, error) == verdict
