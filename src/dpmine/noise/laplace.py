"""Discrete Laplace noise, seen from outside: its scale, its deviation, and how far it reaches."""

import math
from fractions import Fraction

from dpmine.noise.confidence import check_confidence


def noise_half_width(scale: Fraction, confidence: float) -> int:
    """The smallest t with P(abs(noise) <= t) >= confidence, for discrete Laplace noise of that scale.

    P(abs(Z) > t) = 2 a^(t+1) / (1 + a) with a = exp(-1/scale).
    """
    check_confidence(confidence)
    rate = float(1 / scale)
    tail = math.log((1 - confidence) * (1 + math.exp(-rate)) / 2)
    return max(0, math.ceil(-tail / rate - 1 - 1e-9))


def noise_deviation(scale: Fraction) -> float:
    """Standard deviation of discrete Laplace noise: sqrt(2a) / (1 - a)."""
    rate = float(1 / scale)
    return math.sqrt(2) * math.exp(-rate / 2) / -math.expm1(-rate)
