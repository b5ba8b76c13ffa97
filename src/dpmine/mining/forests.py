"""Forests, against the variance that Friedman and Schuster name as their open problem.

Rows fall into disjoint parts by keyed hash; every part has a tree of its own, grown with the whole epsilon, and the
probabilities of all trees are averaged. The parts share one price. Which part a row falls into depends on that row alone
and never on its position, so adding a row changes one part and no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpmine.errors import RequestError
from dpmine.expressions import Part
from dpmine.intervals import noise_deviation, noise_scale
from dpmine.mining.budget_plans import BudgetPlan, PlanStep
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.trees.classifier import AUTO, TreeClassifier
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.finishing import smoothed
from dpmine.mining.trees.growing import Growth, Sprout
from dpmine.model_keys import MOST_TREES
from dpmine.progress import Progress
from dpmine.public_random import public_generator
from dpmine.queries import Splits
from dpmine.schema import Schema
from dpmine.tables import PrivateTable
from dpmine.tree_models import Node

SALT = "forest"


@dataclass(repr=False, eq=False)
class GreedyForest(TreeEstimator):
    """Trees grown as `TreeClassifier` does, each on its own part of the rows, with averaged probabilities.

    epsilon    the whole privacy budget; every tree has all of it, since no row is in two parts
    trees      how many trees, and parts
    max_depth  of each tree; "auto" follows from epsilon and the schema's bound on rows
    criterion  "gini", "max" or "infogain"
    schema     the public facts, for fit(X, y)

    Example: dm.GreedyForest(epsilon=1, trees=4).fit(private)
    """

    epsilon: Amount = 1.0
    trees: int = 4
    max_depth: int | str = AUTO
    criterion: str = "gini"
    schema: SchemaLike = None

    def plan(self, schema: Schema | str | Path, *, rows: int | None = None) -> BudgetPlan:
        facts = Schema.load(schema)
        tree = self._tree_like(facts, rows).plan(facts, rows=self._rows(facts, rows))
        return BudgetPlan(f"GreedyForest of {self._trees()} trees ({self.criterion})", self.budget, tree.steps)

    def _trees(self) -> int:
        return check_trees(self.trees)

    def _rows(self, schema: Schema, rows: int | None) -> int:
        """About so many rows fall into one part."""
        return max((rows or schema.rows_at_most) // self._trees(), 1)

    def _tree_like(self, schema: Schema, rows: int | None = None) -> TreeClassifier:
        tree = TreeClassifier(self.budget, self.max_depth, self.criterion)
        tree.max_depth = tree.depth(schema, self._rows(schema, rows))
        return tree

    def _grow(self, private: PrivateTable, progress: Progress) -> list[Node]:
        growth = Growth(private, ())
        return self._tree_like(private.schema).grow_from(growth, parts_of(growth, self._trees()), progress)


@dataclass(repr=False, eq=False)
class RandomForest(TreeEstimator):
    """Trees whose splits are drawn at random, publicly, so that the whole epsilon buys class counts in their leaves.

    epsilon    the whole privacy budget; every tree has all of it, since no row is in two parts
    trees      how many trees, and parts
    max_depth  of each tree
    seed       of the public random splits; the same seed draws the same splits
    schema     the public facts, for fit(X, y)

    Reference: Jagannathan, Pillaipakkamnatt, Wright 2009; Fletcher, Islam 2017 for the disjoint parts.
    """

    epsilon: Amount = 1.0
    trees: int = 16
    max_depth: int = 6
    seed: int | None = None
    schema: SchemaLike = None

    def plan(self, schema: Schema | str | Path, *, rows: int | None = None) -> BudgetPlan:
        self.check_depth()
        expect = f"each off by {noise_deviation(noise_scale(1, self.budget)):,.3g} rows"
        step = PlanStep("count the classes of every leaf of every tree", self.budget, 1, expect)
        return BudgetPlan(f"RandomForest of {check_trees(self.trees)} trees", self.budget, (step,))

    def _grow(self, private: PrivateTable, progress: Progress) -> list[Node]:
        growth = Growth(private, ())
        draw = public_generator(self.seed)
        candidates = TreeClassifier().candidates(private.schema)
        roots = parts_of(growth, check_trees(self.trees))
        growing = list(roots)
        for _ in range(self.check_depth()):
            for node in growing:
                family: Splits = candidates[int(draw.integers(len(candidates)))]
                key = family.candidate(private.schema, int(draw.integers(family.size(private.schema))))
                assert key is not None
                node.split_by(key, private.schema)
            growing = [child for node in growing for child in node.children]
        leaves = [leaf for root in roots for leaf in root.leaves()]
        growth.count_classes(leaves, self.budget)
        deviation = noise_deviation(noise_scale(1, self.budget))
        deviations = {id(leaf): deviation for leaf in leaves}
        return [smoothed(root, deviations, 1.0) for root in progress.steps(roots, "trees")]


def parts_of(growth: Growth, trees: int) -> list[Sprout]:
    """Disjoint parts of the rows, of about equal size, as the nodes from which trees grow."""
    if trees == 1:
        return [growth.root]
    growth.root.split_by(Part(SALT, (1,) * trees), growth.schema)
    return growth.root.children


def check_trees(trees: int) -> int:
    if isinstance(trees, bool) or not isinstance(trees, int) or not 1 <= trees <= MOST_TREES:
        raise RequestError(f"trees must be a whole number from 1 to {MOST_TREES}. Got {trees!r} instead.")
    return trees
