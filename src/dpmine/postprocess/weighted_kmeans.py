"""Ordinary k-means on weighted points: what a private synopsis is clustered by, as often as one likes, for free.

Lloyd's algorithm from a few k-means++ starts, then swaps: the centre that is missed least moves to where much is lost, and
stays there if that is better. Swaps leave the poor optima that restarts alone keep finding when there are many clusters.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.base.public_random import PublicGenerator, public_generator

Points = NDArray[np.float64]
Weights = NDArray[np.float64]
Labels = NDArray[np.intp]

STARTS = 3
SWAPS = 60
FAILED_SWAPS = 25  # in a row, after which no more are tried
SHORT, LONG = 4, 100  # Lloyd steps after a swap, and at the end
BLOCK = 2**22  # distances held at a time


@dataclass(frozen=True, eq=False)
class Clustering:
    """Centres, and the weighted sum of squared distances to the nearest of them."""

    centres: Points
    cost: float


def weighted_kmeans(points: Points, weights: Weights, k: int, *, seed: int | None = None) -> Clustering:
    """k centres with a small weighted sum of squared distances. Points without weight do not count.

    With fewer points than centres some centres are the same.
    """
    used = weights > 0
    points, weights = points[used], weights[used]
    if len(points) == 0:
        raise ValueError("there is no point with a weight to cluster")
    if len(points) <= k:
        return Clustering(points[np.arange(k) % len(points)], 0.0)
    random = public_generator(seed)
    middle = np.average(points, axis=0, weights=weights)
    spread = float(np.abs(points - middle).max()) or 1.0
    scaled = (points - middle) / spread
    search = _Search(scaled, weights, k, random)
    centres, cost = search.best()
    return Clustering(centres * spread + middle, cost * spread**2)


class _Search:
    def __init__(self, points: Points, weights: Weights, k: int, random: PublicGenerator) -> None:
        self.points, self.weights, self.k, self.random = points, weights, k, random
        self.lengths = np.sum(points * points, axis=1)

    def best(self) -> tuple[Points, float]:
        started = [self.lloyd(self.plus_plus(), LONG) for _ in range(STARTS)]
        centres, cost = min(started, key=lambda found: found[1])
        failed = 0
        for _ in range(SWAPS if self.k > 1 else 0):
            swapped, swapped_cost = self.lloyd(self.swapped(centres, anywhere=failed % 2 == 1), SHORT)
            if swapped_cost < cost * (1 - 1e-6):
                centres, cost, failed = swapped, swapped_cost, 0
            else:
                failed += 1
            if failed > FAILED_SWAPS:
                break
        return self.lloyd(centres, LONG)

    def plus_plus(self) -> Points:
        """Centres drawn among the points, each in proportion to the squared distance to those before (k-means++)."""
        centres = np.empty((self.k, self.points.shape[1]))
        centres[0] = self.points[self.drawn(self.weights)]
        nearest = np.sum((self.points - centres[0]) ** 2, axis=1)
        for number in range(1, self.k):
            centres[number] = self.points[self.drawn(self.weights * nearest)]
            nearest = np.minimum(nearest, np.sum((self.points - centres[number]) ** 2, axis=1))
        return centres

    def drawn(self, chances: Weights) -> int:
        total = chances.sum()
        return int(self.random.choice(len(chances), p=chances / total if total > 0 else None))

    def lloyd(self, centres: Points, steps: int) -> tuple[Points, float]:
        """Some steps of Lloyd's algorithm; a centre without points stays where it is."""
        for _ in range(steps):
            labels, _ = self.nearest(centres)
            masses = np.bincount(labels, self.weights, self.k)
            moved = centres.copy()
            for place in range(centres.shape[1]):
                sums = np.bincount(labels, self.weights * self.points[:, place], self.k)
                np.divide(sums, masses, out=moved[:, place], where=masses > 0)
            if np.abs(moved - centres).max() <= 1e-12:
                break
            centres = moved
        _, distances = self.nearest(centres)
        return centres, float(np.sum(self.weights * distances))

    def nearest(self, centres: Points) -> tuple[Labels, Points]:
        labels, first, _ = self.two_nearest(centres, second=False)
        return labels, first

    def two_nearest(self, centres: Points, *, second: bool) -> tuple[Labels, Points, Points]:
        """The nearest centre of each point, the squared distance to it, and to the second nearest."""
        labels = np.empty(len(self.points), dtype=np.intp)
        first = np.empty(len(self.points))
        other = np.zeros(len(self.points))
        block = max(BLOCK // self.k, 1)
        for start in range(0, len(self.points), block):
            part = slice(start, start + block)
            away = self.points[part] @ (-2 * centres.T)
            away += np.sum(centres * centres, axis=1)  # what differs between centres; the rest is added to the least
            labels[part] = np.argmin(away, axis=1)
            rows = np.arange(len(away))
            first[part] = np.maximum(away[rows, labels[part]] + self.lengths[part], 0)
            if second:
                away[rows, labels[part]] = np.inf
                other[part] = np.maximum(away.min(axis=1) + self.lengths[part], 0)
        return labels, first, other

    def swapped(self, centres: Points, *, anywhere: bool) -> Points:
        """One of the centres that are missed least, moved to a point that is far from its centre.

        That point lies in one of the costliest clusters, or `anywhere`.
        """
        labels, first, other = self.two_nearest(centres, second=True)
        missed = np.bincount(labels, self.weights * (other - first), self.k)
        cost = np.bincount(labels, self.weights * first, self.k)
        dropped = np.argsort(missed)[min(int(self.random.geometric(0.5)) - 1, self.k - 1)]
        chances = self.weights * first * (labels != dropped)
        if not anywhere:
            costly = np.argsort(-cost)[min(int(self.random.geometric(0.3)) - 1, self.k - 1)]
            within = np.where(labels == costly, self.weights * first, 0)
            chances = within if within.sum() > 0 else chances
        moved = centres.copy()
        moved[dropped] = self.points[self.drawn(chances)]
        return moved
