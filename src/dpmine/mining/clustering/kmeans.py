"""`KMeans`: the clustering to reach for. A private synopsis is bought once and clustered freely.

    few dimensions   a grid of noisy counts; neighbourhoods that do not rise out of the noise are dropped
    more             noisy histograms of each attribute say where cuts are worth most, a private tree cuts where the rows
                     are, its leaves are counted, and two Lloyd steps on clipped offsets move the centres

Which of the two follows from the number of attributes. Lloyd steps from random starts, as in the course slides, are
`DPLloyd`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.progress import Progress
from dpmine.budget.plans import PlanStep, StatedBudget, off_by, part_of
from dpmine.facts.schema import Schema
from dpmine.mining.clustering.estimator import ClusterEstimator, Clusters, check_clusters
from dpmine.mining.clustering.refining import refined
from dpmine.mining.clustering.space import BOUNDS, Points, Space, check_sums, nearest_of
from dpmine.mining.clustering.synopsis import Synopsis, grid_synopsis, tree_synopsis
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.parameters import check_number, check_seed, check_word
from dpmine.postprocess.weighted_kmeans import weighted_kmeans
from dpmine.tables.private_table import PrivateTable

AUTO = "auto"
GRID, TREE = "grid", "tree"
MOST_GRID_DIMENSIONS = 3
COUNT_SHARE = Fraction(3, 100)  # of epsilon, for the number of rows that the grid's cells follow from
MARGINALS, STRUCTURE, STEP = Fraction(10, 100), Fraction(25, 100), Fraction(20, 100)  # the rest counts the leaves
STEPS = 2


@dataclass(frozen=True)
class GridBudget(StatedBudget):
    """A row is in both counts, so they add up."""

    count: PlanStep
    grid: PlanStep


@dataclass(frozen=True)
class CutTreeBudget(StatedBudget):
    """A row is in the histogram of every attribute, in the tree, in a leaf, and in every Lloyd step."""

    marginals: PlanStep
    structure: PlanStep
    leaves: PlanStep
    moves: PlanStep


@dataclass(repr=False, eq=False)
class KMeans(ClusterEstimator):
    """Private k-means.

    n_clusters    how many clusters; "auto" looks for the number after which more clusters bring little (up to max_clusters)
    epsilon       the whole privacy budget
    attributes    which numeric attributes to cluster by; None: all of the schema
    scaling       "bounds": every attribute equally long by its public bounds; "none": distances in the attributes' own
                  units, for attributes that share one, such as coordinates on a map
    method        "auto", "grid" (up to 3 attributes) or "tree"
    max_clusters  with n_clusters="auto", at most so many
    seed          of the public choices: where ordinary k-means starts on the synopsis
    schema        the public facts, for fit(X)

    Rows that lack a value in any of these attributes are left out.

    Example: dm.KMeans(5, epsilon=1, attributes=["age", "hours"]).fit(private).cluster_centers_
    """

    n_clusters: int | str = 8
    epsilon: Amount = 1.0
    attributes: tuple[str, ...] | list[str] | None = None
    scaling: str = BOUNDS
    method: str = AUTO
    max_clusters: int = 30
    seed: int | None = None
    schema: SchemaLike = None

    # -- the budget plan --------------------------------------------------------------------------------------------

    def title(self, schema: Schema) -> str:
        return f"KMeans ({self.method_for(self.space(schema))})"

    def method_for(self, space: Space) -> str:
        if self.method != AUTO:
            return self.method
        return GRID if space.dimensions <= MOST_GRID_DIMENSIONS else TREE

    def check(self, schema: Schema) -> None:
        space = self.space(schema)
        check_seed(self.seed)
        if self.n_clusters != AUTO:
            check_clusters(self.n_clusters)
        check_number("max_clusters", self.max_clusters, 3, 100, whole=True)
        check_word("method", self.method, (AUTO, GRID, TREE))
        if self.method == GRID and space.dimensions > MOST_GRID_DIMENSIONS:
            raise RequestError(f"A grid is for up to {MOST_GRID_DIMENSIONS} attributes. Use method='tree'.")
        budget = self.budget_for(schema)
        if isinstance(budget, CutTreeBudget) and budget.moves.epsilon.units:
            check_sums(space, budget.moves.epsilon)

    def budget_for(self, schema: Schema, rows: float = 0) -> GridBudget | CutTreeBudget:
        space, budget = self.space(schema), self.row_budget(schema)
        if self.method_for(space) == GRID:
            count = part_of(budget, COUNT_SHARE)
            grid = Epsilon(budget.units - count.units)
            return GridBudget(
                PlanStep("count the rows, for the size of cells", count, 1, off_by(count)),
                PlanStep("count the cells of a grid", grid, 1, off_by(grid)),
            )
        marginal = part_of(budget, MARGINALS / space.dimensions)
        structure, move = part_of(budget, STRUCTURE), part_of(budget, STEP)
        leaves = Epsilon(budget.units - marginal.units * space.dimensions - structure.units - STEPS * move.units)
        return CutTreeBudget(
            PlanStep("count the bins of every attribute", marginal, space.dimensions, off_by(marginal)),
            PlanStep("grow a tree of cuts", structure),
            PlanStep("count its leaves", leaves, 1, off_by(leaves)),
            PlanStep("move the centres", move, STEPS),
        )

    # -- clustering -------------------------------------------------------------------------------------------------

    def _cluster(self, private: PrivateTable, space: Space, progress: Progress) -> Clusters:
        budget = self.budget_for(private.schema)
        if isinstance(budget, GridBudget):
            rows = int(private.count(epsilon=budget.count.epsilon))
            most = self.max_clusters if self.n_clusters == AUTO else int(self.n_clusters)
            synopsis = grid_synopsis(private, space, most, rows, budget.grid.epsilon)
            centres = self._centres(space, synopsis)
        else:
            synopsis = tree_synopsis(
                private,
                space,
                marginals=budget.marginals.epsilon,
                structure=budget.structure.epsilon,
                counts=budget.leaves.epsilon,
            )
            centres = self._centres(space, synopsis)
            for _ in progress.steps(range(budget.moves.times), "Lloyd steps"):
                centres = refined(private, space, centres, synopsis, budget.moves.epsilon)
        self.synopsis_ = synopsis
        sizes = np.bincount(nearest_of(synopsis.points, centres), synopsis.weights, len(centres))
        return centres, sizes.astype(np.float64)

    def _centres(self, space: Space, synopsis: Synopsis) -> Points:
        if not np.any(synopsis.weights > 0):  # nothing rose out of the noise
            number = 1 if self.n_clusters == AUTO else int(self.n_clusters)
            return np.tile(space.extents / 2, (number, 1))
        if self.n_clusters != AUTO:
            return weighted_kmeans(synopsis.points, synopsis.weights, int(self.n_clusters), seed=self.seed).centres
        found = [
            weighted_kmeans(synopsis.points, synopsis.weights, k, seed=self.seed) for k in range(1, self.max_clusters + 2)
        ]
        # What the cells' own extent adds to the cost, however many centres there are: no number can look perfect.
        within = float(np.sum(synopsis.weights[:, None] * synopsis.half**2)) / 3
        return found[elbow([clustering.cost + within for clustering in found]) - 1].centres


def elbow(costs: Sequence[float]) -> int:
    """For the costs of 1, 2, 3, ... clusters the number, from 2 on, at which their logarithm bends most."""
    logarithms = np.log(costs)
    bends = logarithms[:-2] - 2 * logarithms[1:-1] + logarithms[2:]
    return int(np.argmax(bends)) + 2
