"""Phantoms: combinations without any row that noise alone lifts over a threshold."""

from __future__ import annotations

import itertools
import math

from dpmine.noise.laws import DiscreteLaplace

FEW_PHANTOMS = 1_000  # that an automatic threshold lets through, about


def phantoms(combinations: int, law: DiscreteLaplace, at_least: int) -> float:
    """How many combinations without rows are expected to reach the threshold by noise alone."""
    return math.exp(min(math.log(combinations) + law.log_tail(at_least), 700))  # no double holds 10^400


def threshold_for(combinations: int, law: DiscreteLaplace, most: float = FEW_PHANTOMS) -> int:
    """The smallest threshold, from 1 on, that lets at most so many combinations without rows through, on average."""
    beyond = math.log(combinations) + law.log_tail(0) - math.log(most)
    lowest = max(math.floor(beyond * float(law.fraction)) - 1, 1)
    return next(level for level in itertools.count(lowest) if phantoms(combinations, law, level) <= most)
