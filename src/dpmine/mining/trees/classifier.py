"""`TreeClassifier`: the tree to reach for. DiffP-C4.5 with what its authors left for future work.

    one choice        a node is split by one private choice over all (attribute, split) pairs, not one choice an attribute
    monotone scores   all candidates' scores move the same way when a row is added, so R = S instead of 2S
    a mixed score     half Gini, which sees splits that prepare later ones, half Max, which sees what the last one decides
    binary splits     a category or a taxonomy node against the rest, or a threshold: no attribute shatters the rows; those
                      with few categories may also be split by all of them
    staying whole     is a candidate too, with a public bonus: a tree stops where no split rises out of the noise, and no
                      count of rows has to be paid for
    shares by level   deeper levels have more nodes with fewer rows each, and get more
    no forced counts  leaves are counted by class only, once
    leftover budget   a branch that stops early spends what it saved on its own class counts
    smoothing         a leaf leans on the nodes above as far as noise drowns its own counts
    least squares     class counts of a level in the middle, where asked for, are reconciled with those of the leaves

Each can be switched off, to measure what it is worth (benchmarks/adult_trees.py).
"""

from dataclasses import dataclass, fields

from dpmine.base.progress import Progress
from dpmine.facts.schema import Schema
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.greedy import GreedyTrees, TreeBudget, counted_rows
from dpmine.mining.trees.growing import Growth
from dpmine.models.trees import Node
from dpmine.tables.private_table import PrivateTable


@dataclass(repr=False, eq=False)
class TreeClassifier(TreeEstimator):
    """A differentially private decision tree for classification.

    epsilon      the whole privacy budget
    max_depth    how deep the tree may grow; "auto" follows from epsilon and a noisy number of rows
    criterion    "mixed" (half Gini, half Max), "gini", "max" or "infogain"
    leaf_share   the share of epsilon for class counts in leaves; the rest is for choosing splits
    level_ratio  what a level gets for choosing splits, compared to the level above
    stopping     how much a split must gain over staying whole, compared to what noise makes of useless splits; 0: anything
    splits       "any", "binary", or "multiway" as in the papers; "any" is binary, and multiway up to 5 categories
    calibration  "monotone", or "generic" for the papers' factor 2S
    leftover     spend what a branch saved on the class counts of its leaves
    inner_share  of what leaves get, the share for class counts in the middle of the tree
    smoothing    how strongly leaves lean on the nodes above them, in deviations of their noise; 0 not at all
    schema       the public facts, for fit(X, y)

    Example: dm.TreeClassifier(epsilon=0.5).fit(private)
    """

    epsilon: Amount = 1.0
    max_depth: int | str = GreedyTrees.max_depth
    criterion: str = GreedyTrees.criterion
    leaf_share: float = GreedyTrees.leaf_share
    level_ratio: float = GreedyTrees.level_ratio
    stopping: float = GreedyTrees.stopping
    splits: str = GreedyTrees.splits
    calibration: str = GreedyTrees.calibration
    leftover: bool = GreedyTrees.leftover
    inner_share: float = GreedyTrees.inner_share
    smoothing: float = GreedyTrees.smoothing
    schema: SchemaLike = None

    def title(self, schema: Schema) -> str:
        return f"TreeClassifier ({self.criterion})"

    def check(self, schema: Schema) -> None:
        self.greedy.check()

    @property
    def greedy(self) -> GreedyTrees:
        """How the tree is grown."""
        return GreedyTrees(**{field.name: getattr(self, field.name) for field in fields(GreedyTrees)})

    def budget_for(self, schema: Schema, rows: float = 0) -> TreeBudget:
        return self.greedy.shares(self.row_budget(schema), schema, rows)

    def _learn(self, private: PrivateTable, progress: Progress) -> list[Node]:
        growth = Growth(private, ())
        rows = counted_rows(growth, self.budget_for(private.schema).count)
        return self.greedy.grow(growth, [growth.root], self.budget_for(private.schema, rows), progress)
