"""A Lloyd step on private rows by offsets from known centres: noise follows the clusters' radii, not the whole domain."""

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.mining.clustering.space import Points, Space, nearest_of
from dpmine.mining.clustering.synopsis import Synopsis
from dpmine.noise.spread import deviation
from dpmine.tables.private_table import PrivateTable

WITHIN = 0.9  # of a cluster's rows lie inside the radius that offsets are clipped to
MARGIN = 0.1  # of the cells' half extents, added to the radius


def refined(private: PrivateTable, space: Space, centres: Points, synopsis: Synopsis, epsilon: Epsilon) -> Points:
    """The centres after one Lloyd step: each moves by the noisy mean of its rows' clipped offsets, as far as noise allows.

    Sizes and radii of clusters come from the synopsis, so all of epsilon goes to the sums.
    """
    labels = nearest_of(synopsis.points, centres)
    sizes = np.bincount(labels, synopsis.weights, len(centres))
    radii = _radii(space, centres, labels, synopsis)
    nearest = space.nearest(centres)
    origins = np.array(nearest.centres, dtype=np.float64)
    answer = private.offset_sums(nearest, nearest.centres, radii, epsilon=epsilon)
    means = answer.sums / np.maximum(sizes, 1)[:, None]
    noise = np.array([deviation(law) for law in answer.laws]) / np.maximum(sizes, 1)
    seen = np.sum(means**2, axis=1)
    kept = np.maximum(seen - space.dimensions * noise**2, 0) / np.maximum(seen, 1e-300)  # James and Stein
    moved = np.where((sizes > 0)[:, None], origins + means * kept[:, None], origins)
    return np.clip(moved, 0, space.extents)


def _radii(space: Space, centres: Points, labels: NDArray[np.intp], synopsis: Synopsis) -> list[int]:
    """For each cluster the distance (sum over attributes) within which most of its rows are."""
    away = np.abs(synopsis.points - centres[labels]).sum(axis=1)
    radii = []
    for number in range(len(centres)):
        mine = (labels == number) & (synopsis.weights > 0)
        if not mine.any():
            radii.append(float(space.extents.sum()) / 4)
            continue
        order = np.argsort(away[mine])
        mass = np.cumsum(synopsis.weights[mine][order])
        place = int(np.searchsorted(mass, WITHIN * mass[-1]))
        radii.append(away[mine][order][place] + MARGIN * float(synopsis.half[mine].sum(axis=1).mean()))
    return [max(round(radius), 1) for radius in radii]
