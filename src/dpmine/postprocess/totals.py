"""Noisy counts made to add up: never negative, whole, and with the total that a better count of all rows says."""

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def with_total(noisy: Counts, total: int) -> Counts:
    """The non-negative whole counts nearest to noisy ones (least squares) among those that add up to `total`.

    With a known total the nearest counts are max(0, noisy - t) for one t: what noise added to many small counts is taken off
    all of them alike, so that combinations without rows vanish first. Counts that already add up to less than the total are
    raised in proportion, since those that a threshold struck out are missing.
    """
    shape = noisy.shape
    positive = np.maximum(noisy.ravel().astype(np.float64), 0)
    total = max(total, 0)
    if positive.sum() <= 0 or total == 0:
        return np.zeros(shape, dtype=np.int64)
    if positive.sum() <= total:
        return whole_with_total(positive * (total / positive.sum()), total).reshape(shape)
    falling = np.sort(positive)[::-1]
    taken_off = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    last = int(np.flatnonzero(falling > taken_off)[-1])
    return whole_with_total(np.maximum(positive - taken_off[last], 0), total).reshape(shape)


def whole_with_total(exact: NDArray[np.float64], total: int) -> Counts:
    """Non-negative numbers that add up to a whole total, rounded down or up so that they still do; ties by place."""
    whole = np.floor(exact).astype(np.int64)
    missing = total - int(whole.sum())
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[:missing]] += 1
    return whole
