"""Phantoms: combinations without any row that noise alone lifts over a threshold."""

import math

from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.spread import log_tail


def phantoms(combinations: int, law: DiscreteLaplace, at_least: int) -> float:
    """How many combinations without rows are expected to reach the threshold by noise alone."""
    return math.exp(min(math.log(combinations) + log_tail(law, at_least), 700))  # no double holds 10^400
