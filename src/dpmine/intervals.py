"""The noise, seen from outside: how far off a noisy number may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpmine.epsilon import Epsilon
from dpmine.errors import RequestError


def noise_scale(sensitivity: int, epsilon: Epsilon) -> Fraction:
    """The scale of the noise that an amount of epsilon pays for."""
    return sensitivity / epsilon.fraction


@dataclass(frozen=True)
class Interval:
    """An interval that holds the true number with the stated confidence, and what shifts it."""

    low: int
    high: int
    confidence: float
    note: str = ""

    def __str__(self) -> str:
        return f"{self.low} to {self.high} ({self.confidence:.0%} confidence)" + (f"; {self.note}" if self.note else "")


def noise_half_width(scale: Fraction, confidence: float) -> int:
    """The smallest t with P(abs(noise) <= t) >= confidence, for discrete Laplace noise of that scale.

    P(abs(Z) > t) = 2 a^(t+1) / (1 + a) with a = exp(-1/scale).
    """
    if not 0 < confidence < 1:
        raise RequestError(f"The confidence must be between 0 and 1. Got {confidence} instead.")
    rate = float(1 / scale)
    tail = math.log((1 - confidence) * (1 + math.exp(-rate)) / 2)
    return max(0, math.ceil(-tail / rate - 1 - 1e-9))


def noise_deviation(scale: Fraction) -> float:
    """Standard deviation of discrete Laplace noise: sqrt(2a) / (1 - a)."""
    rate = float(1 / scale)
    return math.sqrt(2) * math.exp(-rate / 2) / -math.expm1(-rate)
