"""What a paper says in words about its figures, judged by the records of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmine.reproduce.experiments import AGREES, DISAGREES, UNDECIDED, Finding, Outcome, Point
from dpmine.reproduce.significance import corrected_t_test, paired_differences


@dataclass(frozen=True)
class Checked:
    """A claim and what was found."""

    says: str
    finding: Finding | None

    @property
    def verdict(self) -> str:
        return "not judged" if self.finding is None else self.finding.verdict

    @property
    def found(self) -> str:
        return "the run lacks points that this is about" if self.finding is None else self.finding.found

    def form(self) -> dict[str, Any]:
        """One row of the CSV."""
        return {"paper": self.says, "found": self.found, "verdict": self.verdict}


def checked(outcome: Outcome) -> list[Checked]:
    """Every claim of the experiment, judged by the records."""
    return [Checked(claim.says, claim.look(outcome)) for claim in outcome.experiment.claims]


# -- what claims look at -----------------------------------------------------------------------------------------------


def mean_of(outcome: Outcome, algorithm: str, point: Point) -> float:
    """The mean over the runs; NaN where there are none."""
    measure = outcome.experiment.picture.measure
    numbers = [record.measures[measure] for record in outcome.runs(algorithm, point)]
    return float(np.mean(numbers)) if numbers else float("nan")


def error_of(outcome: Outcome, algorithm: str, point: Point) -> float:
    """The standard error of that mean; infinite where there is one run, which says nothing about others."""
    measure = outcome.experiment.picture.measure
    numbers = [record.measures[measure] for record in outcome.runs(algorithm, point)]
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else float("inf")


@dataclass(frozen=True)
class Difference:
    """First minus second over paired runs, and the probability of a difference as large by chance."""

    mean: float
    p_value: float
    level: float = 0.05

    @property
    def is_above(self) -> bool:
        return self.mean > 0 and self.p_value < self.level

    @property
    def is_below(self) -> bool:
        return self.mean < 0 and self.p_value < self.level

    def __str__(self) -> str:
        return f"{self.mean:+.2f} (p = {self.p_value:.2g})"


def within(deviation: float, most: float, error: float = 0.0) -> str:
    """The verdict on a number that is printed roughly, and that was measured with a standard error."""
    if abs(deviation) <= most:
        return AGREES
    return DISAGREES if abs(deviation) > most + 2 * error else UNDECIDED


def all_above(differences: Sequence[Difference]) -> str:
    """The verdict on "better": all significantly above, or one significantly below, or too few runs to tell."""
    if all(found.is_above for found in differences):
        return AGREES
    return DISAGREES if any(found.is_below for found in differences) else UNDECIDED


def difference(outcome: Outcome, first: tuple[str, Point], second: tuple[str, Point], test_share: float) -> Difference:
    """Two algorithms, or one at two points that share their data, compared by the corrected paired t-test."""
    differences = paired_differences(outcome.runs(*first), outcome.runs(*second), outcome.experiment.picture.measure)
    return Difference(float(np.mean(differences)), corrected_t_test(differences, test_share)[1])


def at_each_point(
    outcome: Outcome, first: str, second: str, points: Sequence[Point], test_share: float
) -> tuple[list[Difference], str]:
    """Two algorithms compared at each of the points, and the same as text."""
    found = [difference(outcome, (first, point), (second, point), test_share) for point in points]
    where = [" ".join(f"{name} {setting}" for name, setting in point.items()) for point in points]
    shown = ", ".join(f"{gap} at {place}" for gap, place in zip(found, where, strict=True))
    return found, f"{first} minus {second}: {shown}"
