"""Forests, against the variance that Friedman and Schuster name as their open problem.

Rows fall into disjoint parts by keyed hash; every part has a tree of its own, grown with the whole epsilon, and the
probabilities of all trees are averaged. The parts share one price. Which part a row falls into depends on that row alone
and never on its position, so adding a row changes one part and no other.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.progress import Progress
from dpmine.base.public_random import public_generator
from dpmine.budget.plans import PlanStep, StatedBudget, off_by, part_of
from dpmine.codes.queries import MOST_KEYS
from dpmine.codes.rows import MOST_TREES
from dpmine.facts.schema import Schema
from dpmine.language.candidates import candidate, number_of_candidates
from dpmine.language.keys import Part
from dpmine.language.model_keys import ScoreBands
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.parameters import check_number, check_seed
from dpmine.mining.trees.candidates import binary_splits, number_of
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.finishing import smoothed
from dpmine.mining.trees.greedy import GreedyTrees, TreeBudget, counted_rows
from dpmine.mining.trees.growing import MOST_LEAVES, Growth, Sprout
from dpmine.mining.trees.stopping import check_depth
from dpmine.models.trees import MILLION, Node
from dpmine.tables.private_table import PrivateTable

SALT = "forest"
BANDS = 100  # of averaged votes, where the line between two classes may lie


@dataclass(repr=False, eq=False)
class GreedyForest(TreeEstimator):
    """Trees grown as `TreeClassifier` does, each on its own part of the rows, with averaged probabilities.

    epsilon    the whole privacy budget; every tree has all of it, since no row is in two parts
    trees      how many trees, and parts
    max_depth  of each tree; "auto" follows from epsilon and a noisy number of rows
    criterion  "mixed" (half Gini, half Max), "gini", "max" or "infogain"
    schema     the public facts, for fit(X, y)

    Example: dm.GreedyForest(epsilon=1, trees=4).fit(private)
    """

    epsilon: Amount = 1.0
    trees: int = 4
    max_depth: int | str = GreedyTrees.max_depth
    criterion: str = GreedyTrees.criterion
    schema: SchemaLike = None

    def title(self, schema: Schema) -> str:
        return f"GreedyForest of {self.trees} trees ({self.criterion})"

    def check(self, schema: Schema) -> None:
        check_trees(self.trees)
        self._greedy.check()

    @property
    def _greedy(self) -> GreedyTrees:
        return GreedyTrees(self.max_depth, self.criterion)

    def budget_for(self, schema: Schema, rows: float = 0) -> TreeBudget:
        """Of every tree: the rows are those of all its parts."""
        return self._greedy.shares(self.row_budget(schema), schema, rows / self.trees)

    def _learn(self, private: PrivateTable, progress: Progress) -> list[Node]:
        growth = Growth(private, ())
        rows = counted_rows(growth, self.budget_for(private.schema).count)
        budget = self.budget_for(private.schema, rows)
        return self._greedy.grow(growth, parts_of(growth, self.trees), budget, progress)


@dataclass(frozen=True)
class RandomForestBudget(StatedBudget):
    """Nearly all for the leaves; of two classes a little for the line between them."""

    leaves: PlanStep
    threshold: PlanStep | None


@dataclass(repr=False, eq=False)
class RandomForest(TreeEstimator):
    """Trees whose splits are drawn at random, publicly, so that nearly all of epsilon buys class counts in their leaves.

    Averages of such trees rank rows well but stay near the overall share of a class. With two classes a small share of
    epsilon finds where to draw the line: a histogram of the averages by class, from which a constant vote follows that is
    added to the trees'.

    epsilon          the whole privacy budget
    trees            how many trees, and parts of the rows
    max_depth        of each tree
    threshold_share  of epsilon, for the line between two classes; 0 leaves it at one half
    seed             of the public random splits; the same seed draws the same splits
    schema           the public facts, for fit(X, y)

    Reference: Jagannathan, Pillaipakkamnatt, Wright 2009; Fletcher, Islam 2017 for the disjoint parts.
    """

    epsilon: Amount = 1.0
    trees: int = 64
    max_depth: int = 6
    threshold_share: float = 0.1
    seed: int | None = None
    schema: SchemaLike = None

    def title(self, schema: Schema) -> str:
        return f"RandomForest of {self.trees} trees"

    def check(self, schema: Schema) -> None:
        check_trees(self.trees)
        depth = check_depth(self.max_depth)
        check_number("threshold_share", self.threshold_share, 0, 0.999)
        check_seed(self.seed)
        splits = min(self.trees * (2**depth - 1), number_of(binary_splits(schema), schema))
        if self.trees * 2**depth > MOST_LEAVES or splits > MOST_KEYS - 64:
            raise RequestError(f"{self.trees} trees of depth {depth} are too many for one query. Use fewer or smaller ones.")

    def budget_for(self, schema: Schema, rows: float = 0) -> RandomForestBudget:
        two = len(schema.class_labels) == 2
        budget = self.row_budget(schema)
        threshold = part_of(budget, Fraction(str(self.threshold_share))) if two else Epsilon(0)
        leaves = Epsilon(budget.units - threshold.units)
        return RandomForestBudget(
            PlanStep("count the classes of every leaf of every tree", leaves, 1, off_by(leaves)),
            PlanStep.if_any("count averaged votes by class", threshold, 1, off_by(threshold)),
        )

    def _learn(self, private: PrivateTable, progress: Progress) -> list[Node]:
        budget = self.budget_for(private.schema)
        growth = Growth(private, ())
        roots = parts_of(growth, self.trees)
        self._draw_splits(roots, private.schema)
        growth.count_classes(growth.uncounted(), budget.leaves.epsilon)
        trees = [smoothed(root, 1.0) for root in progress.steps(roots, "trees")]
        if budget.threshold is None:
            return trees
        return [*trees, constant_vote(trees, private, budget.threshold.epsilon)]

    def _draw_splits(self, roots: list[Sprout], schema: Schema) -> None:
        draw = public_generator(self.seed)
        candidates = binary_splits(schema)
        growing = list(roots)
        for _ in range(self.max_depth):
            for node in growing:
                family = candidates[int(draw.integers(len(candidates)))]
                key = candidate(family, schema, int(draw.integers(number_of_candidates(family, schema))))
                assert key is not None
                node.split_by(key, schema)
            growing = [child for node in growing for child in node.children if child.reachable]


def constant_vote(trees: list[Node], private: PrivateTable, epsilon: Epsilon) -> Node:
    """A tree that is one leaf: added to the others it moves the line between two classes to where most rows are right.

    The sums of the trees' votes for the second class are cut into bands and counted by class, with noise; the best line lies
    at an edge. With votes v for the second class out of T, a constant vote of T - 2 v for it makes v the line; one millionth
    more sends rows on the line to the second class.
    """
    scored = tuple(tree.scored() for tree in trees)
    edges = tuple(MILLION * len(trees) * place // BANDS for place in range(1, BANDS))
    noisy = private.histogram(ScoreBands(scored, 1, edges), private.schema.require_class(), epsilon=epsilon).counts
    # Right about the first class below an edge, about the second one from it on.
    right = np.cumsum(noisy[:, 0])[:-1] + np.cumsum(noisy[::-1, 1])[::-1][1:]
    shift = MILLION * len(trees) - 2 * edges[int(np.argmax(right))] + 1
    return Node((0, 0), (max(-shift, 0), max(shift, 0)))


def parts_of(growth: Growth, trees: int) -> list[Sprout]:
    """Disjoint parts of the rows, of about equal size, as the nodes from which trees grow."""
    if trees == 1:
        return [growth.root]
    growth.root.split_by(Part(SALT, (1,) * trees), growth.schema)
    return growth.root.children


def check_trees(trees: object) -> None:
    check_number("trees", trees, 1, MOST_TREES - 1, whole=True)  # one more is a constant vote
