"""The corrected resampled paired t-test, as Weka's experimenter does it (Nadeau and Bengio, Machine Learning 52, 2003).

Folds of a cross-validation share training rows, so their differences are no independent draws and the plain t-test finds
differences that are none. The correction adds the ratio of test to training rows to the variance's 1 / k.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmine.base.errors import DataError
from dpmine.reproduce.experiments import Outcome, Point
from dpmine.reproduce.records import Record


@dataclass(frozen=True)
class Compared:
    """The mean difference (first minus second) over paired runs, t, and the probability of a |t| as large by chance."""

    point: Point
    first: str
    second: str
    runs: int
    difference: float
    t: float
    p_value: float
    level: float

    @property
    def verdict(self) -> str:
        if not self.p_value < self.level:
            return "no significant difference"
        return f"{self.first if self.difference > 0 else self.second} is better"

    def form(self) -> dict[str, Any]:
        """One row of the CSV."""
        return {
            **self.point,
            "first": self.first,
            "second": self.second,
            "runs": self.runs,
            "mean_difference": round(self.difference, 4),
            "t": round(self.t, 3),
            "p_value": float(f"{self.p_value:.3g}"),
            "verdict": self.verdict,
        }


def compare(outcome: Outcome) -> list[Compared]:
    """Every pair of the algorithms that the experiment names, at every point."""
    wanted = outcome.experiment.comparison
    if wanted is None:
        return []
    results = []
    for point, (first, second) in itertools.product(outcome.points, itertools.combinations(wanted.algorithms, 2)):
        differences = paired_differences(outcome.runs(first, point), outcome.runs(second, point), wanted.measure)
        t, p_value = corrected_t_test(differences, wanted.test_share)
        mean = float(np.mean(differences))
        results.append(Compared(point, first, second, len(differences), mean, t, p_value, wanted.level))
    return results


def paired_differences(first: Sequence[Record], second: Sequence[Record], measure: str) -> list[float]:
    """First minus second, repetition by repetition. Refuses pairs that did not see the same data."""
    others = {record.repetition: record for record in second}
    if {record.repetition for record in first} != set(others):
        raise DataError("The two algorithms were not run in the same repetitions, so their runs cannot be paired.")
    for record in first:
        if record.seed != others[record.repetition].seed:
            raise DataError("The two algorithms did not see the same data, so their runs cannot be paired.")
    return [record.measures[measure] - others[record.repetition].measures[measure] for record in first]


def corrected_t_test(differences: Sequence[float], test_share: float) -> tuple[float, float]:
    """t = mean / sqrt((1 / k + test_share) variance) with k - 1 degrees of freedom, and its two-sided p-value."""
    runs = len(differences)
    if runs < 2:
        return 0.0, 1.0
    mean, variance = float(np.mean(differences)), float(np.var(differences, ddof=1))
    if variance == 0:
        return (0.0, 1.0) if mean == 0 else (math.copysign(math.inf, mean), 0.0)
    t = mean / math.sqrt((1 / runs + test_share) * variance)
    return t, two_sided_p_value(t, runs - 1)


def two_sided_p_value(t: float, degrees: int) -> float:
    """The probability of |T| >= |t| under Student's distribution, by its finite series (Abramowitz and Stegun 26.7.3-4)."""
    angle = math.atan(abs(t) / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(2 + odd, degrees + 1, 2):
        total += term
        term *= cosine**2 * (power - 1) / power
    within = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return min(max(1 - within, 0.0), 1.0)
