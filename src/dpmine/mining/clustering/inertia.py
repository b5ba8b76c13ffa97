"""How close private rows lie to given centres, from a noisy histogram of their squared distances."""

import math

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.language.model_keys import Nearest, NearestBands
from dpmine.mining.clustering.space import Space
from dpmine.results.estimates import Estimate
from dpmine.tables.private_table import PrivateTable

BANDS = 48  # each reaches from a squared distance to the square root of 2 times as far
CONFIDENCE = 0.95
CLEAR = 3.0  # deviations of noise that a band must rise above to count


def private_inertia(private: PrivateTable, nearest: Nearest, space: Space, unit: float, epsilon: Epsilon) -> Estimate:
    """The sum of squared distances to the nearest centre, of the rows that have a value everywhere.

    `unit` is how long one position is. Rows count as the middle of their band, in bands that rise out of the noise. The
    interval takes every band's ends and the noise of its count together; where there are few rows it is wide, since one row
    far out may matter as much as all others.
    """
    farthest = float(np.sum(space.extents**2))
    edges = sorted({max(round(farthest * 2 ** (-place / 2)), 1) for place in range(BANDS)})
    counted = space.known(private).histogram(NearestBands(nearest, tuple(edges)), epsilon=epsilon)
    lows, highs = np.array([0, *edges], dtype=np.float64), np.array([*edges, farthest], dtype=np.float64)
    highs = np.maximum(highs, lows)
    clear = counted.counts > CLEAR * counted.standard_deviation  # far bands weigh so much that their noise would drown all
    counts = np.where(clear, counted.counts, 0).astype(np.float64)
    middles = (lows + highs) / 2
    noise = counted.standard_deviation * float(np.sqrt(np.sum(highs**2)))
    half = noise / math.sqrt(1 - CONFIDENCE)  # Chebyshev: the sum of few unequal noises is not normal
    value = float(counts @ middles)
    low = max(float(counted.counts @ lows) - half, 0.0)
    high = max(float(np.maximum(counted.counts, 0) @ highs) + half, value)
    scale = unit**2
    note = f"rows count as the middle of their distance's band, {len(lows)} bands"
    return Estimate("inertia", value * scale, low * scale, high * scale, CONFIDENCE, note, counted.receipt)
