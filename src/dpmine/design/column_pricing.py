"""Which column of a mechanism would pay most: the inner step of the linear programs, solved by dynamic programming.

A column (one output, all inputs) keeps epsilon-DP if entries within the sensitivity differ by at most a factor
exp(epsilon). These columns form a cone, and its extreme rays have entries exp(-epsilon h_i) with whole levels h_i of
which those within the sensitivity differ by at most 1: every ray is held by tight ratios, and each is one level. Such
levels form runs. A run that leads from one level to the next but one has to be at least one sensitivity long; a run
where levels turn back may have any length. So the cheapest ray is found from left to right, one entry at a time.
"""

import numpy as np
from numpy.typing import NDArray

from dpmine.noise.finite_tables import Floats

Levels = NDArray[np.int64]
_DOWN, _UP = 0, 1  # a run was entered from the level before (h - 1) or from the level after (h + 1)


def level_count(points: int, steps: int) -> int:
    """How many levels a column can have: one more for every sensitivity that fits into the range."""
    return -(-(points - 1) // steps) + 1


def cheapest_levels(costs: Floats, steps: int, epsilon: float) -> Levels:
    """For each row of costs the levels h with the least sum of cost_i exp(-epsilon h_i); the smallest level is made 0."""
    walk = _Walk(costs, steps, epsilon)
    levels = walk.back(*walk.forth())
    shifted: Levels = levels - levels.min(axis=1, keepdims=True)
    return shifted


class _Walk:
    """Least costs of all beginnings, by the level they end in and by how their last run was entered."""

    def __init__(self, costs: Floats, steps: int, epsilon: float) -> None:
        self._costs, self._steps = costs, steps
        self._rows, self._points = costs.shape
        self._factors = np.exp(-epsilon * np.arange(level_count(self._points, steps)))
        shape = (self._points, 2, self._rows, len(self._factors))
        self._starts = np.full(shape, np.inf)  # cost before a run that starts here
        self._after_long = np.zeros(shape, dtype=bool)  # ... which continues the way of a long run, instead of turning
        self._is_new = np.zeros(shape, dtype=bool)  # the best run that covers this point starts here
        self._just_long = np.zeros(shape, dtype=bool)  # the best long run has just become long enough

    def forth(self) -> tuple[Floats, Floats]:
        sums = np.concatenate((np.zeros((self._rows, 1)), np.cumsum(self._costs, axis=1)), axis=1)
        first = self._costs[:, :1] * self._factors
        any_run = np.stack((first, first))
        long_run = any_run.copy()  # nothing lies before the first run, so it counts as long
        for point in range(1, self._points):
            here = self._costs[:, point : point + 1] * self._factors
            began = point - self._steps + 1
            next_any, next_long = np.empty_like(any_run), np.empty_like(long_run)
            for way in (_DOWN, _UP):
                turned, passed = _from_before(any_run[1 - way], way), _from_before(long_run[way], way)
                self._starts[point, way] = np.minimum(turned, passed)
                self._after_long[point, way] = passed < turned
                self._is_new[point, way] = self._starts[point, way] < any_run[way]
                next_any[way] = np.minimum(any_run[way], self._starts[point, way]) + here
                next_long[way] = long_run[way] + here
                if began >= 1:
                    stretch = (sums[:, point + 1] - sums[:, began])[:, None] * self._factors
                    whole = self._starts[began, way] + stretch
                    self._just_long[point, way] = whole < next_long[way]
                    next_long[way] = np.minimum(next_long[way], whole)
            any_run, long_run = next_any, next_long
        return any_run, long_run

    def back(self, any_run: Floats, _: Floats) -> Levels:
        """The levels of the best way, from right to left, for all rows at once."""
        width = len(self._factors)
        best = any_run.transpose(1, 0, 2).reshape(self._rows, 2 * width).argmin(axis=1)
        way, level = best // width, best % width
        rows = np.arange(self._rows)
        in_long = np.zeros(self._rows, dtype=bool)  # the run here has to be long, since the way goes on after it
        still = np.zeros(self._rows, dtype=np.int64)  # points until the start of a run that is just long enough
        levels = np.empty((self._rows, self._points), dtype=np.int64)
        for point in range(self._points - 1, -1, -1):
            levels[:, point] = level
            where = (point, way, rows, level)
            still = np.where(in_long & (still == 0) & self._just_long[where], self._steps, still)
            starts = np.where(in_long, still == 1, self._is_new[where])
            still = np.maximum(still - 1, 0)
            passed = self._after_long[where]
            before = np.where(way == _DOWN, level - 1, level + 1)
            way = np.where(starts & ~passed, 1 - way, way)
            level = np.where(starts, before, level)
            in_long = np.where(starts, passed, in_long)
        return levels


def _from_before(costs: Floats, way: int) -> Floats:
    """Costs moved to the level that a new run enters."""
    moved = np.full_like(costs, np.inf)
    if way == _DOWN:
        moved[:, 1:] = costs[:, :-1]
    else:
        moved[:, :-1] = costs[:, 1:]
    return moved
