"""What all private choices share: their law, and one choice in each cell by the rate that follows from it."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.kernel.mechanisms.mechanism import Asked, Numbers
from dpmine.kernel.samplers.laplace import Integers
from dpmine.kernel.scores import Score
from dpmine.noise.laws import ChoiceLoss


def loss_of(score: Score, calibration: str, candidates: int, epsilon: Epsilon) -> ChoiceLoss:
    """The law of a choice by that score; the loss is in units of the papers' score."""
    return ChoiceLoss(candidates, str(Fraction(score.range(calibration), score.unit)), epsilon)


def alike(scores: Integers) -> tuple[Integers, Integers]:
    """Candidates that weigh the same: their scores and masses."""
    return scores, np.ones(scores.size, dtype=np.int64)


def choices(
    asked: Asked[Any, ChoiceLoss], mechanism: str, unit: int, candidates: Callable[[int], tuple[Integers, Integers]]
) -> list[Numbers | None]:
    """The number of the chosen candidate in each cell, by the scores and masses of its candidates.

    Scores are whole numbers, of which `unit` are one of the law's: the rate is epsilon / R.
    """

    def chosen(cell: int, units: int) -> Numbers:
        (law,) = asked.laws[units]
        return (asked.choose(mechanism, *candidates(cell), law.epsilon.fraction / (Fraction(law.range) * unit)),)

    return asked.each(chosen)
