"""Thresholds of sparse histograms that let few combinations without rows through."""

import itertools
import math

from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.phantoms import phantoms
from dpmine.noise.spread import log_tail

FEW_PHANTOMS = 1_000  # that an automatic threshold lets through, about


def threshold_for(combinations: int, law: DiscreteLaplace, most: float = FEW_PHANTOMS) -> int:
    """The smallest threshold, from 1 on, that lets at most so many combinations without rows through, on average."""
    beyond = math.log(combinations) + log_tail(law, 0) - math.log(most)
    lowest = max(math.floor(beyond * float(law.fraction)) - 1, 1)
    return next(level for level in itertools.count(lowest) if phantoms(combinations, law, level) <= most)
