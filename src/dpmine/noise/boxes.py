"""Staircase noise over boxes, seen from outside."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.noise.confidence import check_confidence

Floats = NDArray[np.float64]

FEW_LEVELS = 0.02  # levels that are taken together, times epsilon: errors are its square over 24


@dataclass(frozen=True)
class BoxNoise:
    """Staircase noise over the boxes |z_j| <= k lengths[j] + inner[j], seen from outside: doubles, for display and design.

    The noise is uniform on a box whose level k is drawn with probability proportional to exp(-epsilon k) times its points.
    """

    lengths: tuple[int, ...]
    inner: tuple[int, ...]
    epsilon: Epsilon

    def mean_error(self, place: int = 0) -> float:
        """The expected absolute value of one coordinate: m (m + 1) / (2 m + 1) where the box reaches m."""
        reach, chances = self._reach(place)
        return float(chances @ (reach * (reach + 1) / (2 * reach + 1)))

    def deviation(self, place: int = 0) -> float:
        reach, chances = self._reach(place)
        return math.sqrt(float(chances @ (reach * (reach + 1) / 3)))

    def half_width(self, confidence: float, place: int = 0) -> int:
        """The smallest t with P(abs(z) <= t) >= confidence, for one coordinate."""
        check_confidence(confidence)
        reach, chances = self._reach(place)
        low, high = -1, int(reach[-1]) + 1
        while high - low > 1:
            middle = (low + high) // 2
            inside = float(chances @ np.minimum((2 * middle + 1) / (2 * reach + 1), 1.0))
            low, high = (low, middle) if inside >= confidence - 1e-12 else (middle, high)
        return high

    def _reach(self, place: int) -> tuple[Floats, Floats]:
        levels, chances = _box_levels(self.lengths, self.inner, self.epsilon)
        return levels * self.lengths[place] + self.inner[place], chances


@lru_cache(maxsize=64)
def _box_levels(lengths: tuple[int, ...], inner: tuple[int, ...], epsilon: Epsilon) -> tuple[Floats, Floats]:
    """Levels, several together where epsilon is small, and their probabilities."""
    rate = float(epsilon)
    together = max(1, math.floor(FEW_LEVELS / rate))
    last = math.ceil((2 * len(lengths) + 60) / rate) + 3
    levels = np.arange(0, last + together, together, dtype=np.float64) + (together - 1) / 2
    logs = -rate * levels
    for length, r in zip(lengths, inner, strict=True):
        logs = logs + np.log(2 * (levels * length + r) + 1)
    chances = np.exp(logs - logs.max())
    return levels, chances / chances.sum()
