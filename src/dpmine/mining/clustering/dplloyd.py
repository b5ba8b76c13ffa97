"""DPLloyd: Lloyd's algorithm with noisy sizes and sums in every step, as in the course slides (Blum and others 2005).

The slides divide the sum of a cluster's points, with noise of scale |Dom| T / epsilon, by its noisy size. For points in d
dimensions |Dom| must bound the sum of all coordinates' absolute values: d r, not r, for coordinates within +-r.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.base.progress import Progress
from dpmine.base.public_random import public_generator
from dpmine.budget.plans import PlanStep, StatedBudget, off_by, part_of
from dpmine.facts.schema import Schema
from dpmine.mining.clustering.estimator import ClusterEstimator, Clusters, check_clusters
from dpmine.mining.clustering.space import BOUNDS, Points, Space, check_sums
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.parameters import check_number, check_seed, check_word
from dpmine.tables.private_table import PrivateTable

AUTO = "auto"
TYPICAL = 0.225  # distance of a centre from the middle of the box, in half extents (Su and others 2016)
MOST_ITERATIONS = 100
RETRIES = 100  # for each start that must keep its distance


@dataclass(frozen=True)
class LloydBudget(StatedBudget):
    """Each of the T iterations has the same."""

    sizes: PlanStep
    sums: PlanStep


@dataclass(repr=False, eq=False)
class DPLloyd(ClusterEstimator):
    """k-means by noisy Lloyd steps.

    n_clusters   k
    epsilon      the whole privacy budget, the same for every step
    iterations   T; "auto" takes 2 to 7, by epsilon, k and rows (Su and others 2016)
    starts       "random" points of the box, or "spread": as far apart as possible; public either way
    shares       "equal": one half of a step for sizes, one for sums; "optimal": what makes the error of centres smallest
    attributes   which numeric attributes to cluster by; None: all of the schema
    scaling      "bounds" or "none", as in KMeans
    rows         about how many rows, for iterations="auto"; None: the schema's bound
    seed         of the starts
    schema       the public facts, for fit(X)

    Rows that lack a value in any of these attributes are left out.

    Example: dm.DPLloyd(5, epsilon=1, iterations=10).fit(private).cluster_centers_
    """

    n_clusters: int = 8
    epsilon: Amount = 1.0
    iterations: int | str = 10
    starts: str = "random"
    shares: str = "equal"
    attributes: tuple[str, ...] | list[str] | None = None
    scaling: str = BOUNDS
    rows: int | None = None
    seed: int | None = None
    schema: SchemaLike = None

    def title(self, schema: Schema) -> str:
        return "DPLloyd"

    def check(self, schema: Schema) -> None:
        check_seed(self.seed)
        check_clusters(self.n_clusters)
        if self.iterations != AUTO:
            check_number("iterations", self.iterations, 1, MOST_ITERATIONS, whole=True)
        if self.rows is not None:
            check_number("rows", self.rows, 1, 2**31, whole=True)
        check_word("starts", self.starts, ("random", "spread"))
        check_word("shares", self.shares, ("equal", "optimal"))
        check_sums(self.space(schema), self.budget_for(schema).sums.epsilon)

    def budget_for(self, schema: Schema, rows: float = 0) -> LloydBudget:
        """The rows that automatic iterations follow from are a parameter."""
        space = self.space(schema)
        turns = self.turns(schema, space)
        one = part_of(self.row_budget(schema), turns)
        weight = _size_weight(space.dimensions)
        optimal = Fraction(str(round(weight / (space.dimensions + weight), 6)))
        sizes = part_of(one, Fraction(1, 2) if self.shares == "equal" else optimal)
        return LloydBudget(
            PlanStep("count the rows of every cluster", sizes, turns, off_by(sizes)),
            PlanStep("sum the points of every cluster", Epsilon(one.units - sizes.units), turns),
        )

    def turns(self, schema: Schema, space: Space) -> int:
        """T."""
        if self.iterations != AUTO:
            return int(self.iterations)
        d, k = space.dimensions, int(self.n_clusters)
        rows = self.rows or schema.rows_at_most
        least = math.sqrt(500 * k**3 / rows**2 * (d + _size_weight(d)) ** 3)
        return int(min(max(float(self.row_budget(schema)) / least, 2), 7))

    def _cluster(self, private: PrivateTable, space: Space, progress: Progress) -> Clusters:
        budget = self.budget_for(private.schema)
        middle = np.rint(space.extents / 2).astype(np.int64).tolist()
        radius = math.ceil(float(space.extents.sum()) / 2) + space.dimensions  # d r: no point is clipped
        centres = self._starts(space)
        sizes = np.zeros(len(centres))
        for _ in progress.steps(range(budget.sizes.times), "iterations"):
            nearest = space.nearest(centres)
            counted = private.histogram(nearest, epsilon=budget.sizes.epsilon)
            sizes = counted.counts.astype(np.float64)
            asked = nearest, [middle] * len(centres), [radius] * len(centres)
            sums = private.offset_sums(*asked, epsilon=budget.sums.epsilon).sums
            known = sizes > counted.standard_deviation  # a size that may be noise says nothing: the centre stays
            moved = np.array(middle) + sums / np.maximum(sizes, 1)[:, None]
            centres = np.where(known[:, None], np.clip(moved, 0, space.extents), centres)
        return centres, np.maximum(sizes, 0)

    def _starts(self, space: Space) -> Points:
        random = public_generator(self.seed)
        k = int(self.n_clusters)
        if self.starts == "random":
            return random.uniform(0, 1, (k, space.dimensions)) * space.extents
        apart = 0.5
        while True:
            points: list[Points] = []
            for _ in range(RETRIES * k):
                point = random.uniform(apart, 1 - apart, space.dimensions) if apart < 0.5 else np.full(space.dimensions, 0.5)
                if all(np.linalg.norm(point - other) >= 2 * apart for other in points):
                    points.append(point)
                if len(points) == k:
                    return np.array(points) * space.extents
            apart *= 0.9


def _size_weight(dimensions: int) -> float:
    """What sizes get of a step for each 1 that sums get of a coordinate (Su and others 2016)."""
    return float((4 * dimensions * TYPICAL**2) ** (1 / 3))
