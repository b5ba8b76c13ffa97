"""What all private choices share: their law, and the rate that follows from it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.kernel.samplers.laplace import Integers
from dpmine.kernel.scores import Score
from dpmine.noise.laws import ChoiceLoss


def loss_of(score: Score, calibration: str, candidates: int, epsilon: Epsilon) -> ChoiceLoss:
    """The law of a choice by that score; the loss is in units of the papers' score."""
    return ChoiceLoss(candidates, str(Fraction(score.range(calibration), score.unit)), epsilon)


def rate_of(law: ChoiceLoss, unit: int) -> Fraction:
    """epsilon / R for integer scores, of which `unit` are one of the law's."""
    return law.epsilon.fraction / (Fraction(law.range) * unit)


def equal_masses(candidates: int) -> Integers:
    return np.ones(candidates, dtype=np.int64)
