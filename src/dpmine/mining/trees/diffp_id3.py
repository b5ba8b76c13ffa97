"""DiffP-ID3: the exponential mechanism picks the attribute (Friedman and Schuster 2010, Algorithm 2).

One choice instead of counts for every attribute. The factor 1 / (2 S(q)) of the exponential mechanism is the paper's
(calibration "generic"); that all scores are monotone, and half of it would do, is `TreeClassifier`'s affair.
"""

from dataclasses import dataclass

from dpmine.base.progress import Progress
from dpmine.budget.plans import PlanStep, StatedBudget, part_of
from dpmine.facts.schema import Schema
from dpmine.language.splits import Multiway
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.trees.candidates import require_splits, whole_keys
from dpmine.mining.trees.criteria import check_criterion
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.finishing import as_counted
from dpmine.mining.trees.growing import Growth
from dpmine.mining.trees.stopping import check_depth, too_few, without
from dpmine.models.trees import Node
from dpmine.tables.private_table import PrivateTable


@dataclass(frozen=True)
class DiffPID3Budget(StatedBudget):
    """All steps at one epsilon."""

    rows: PlanStep
    attribute: PlanStep
    classes: PlanStep


@dataclass(repr=False, eq=False)
class DiffPID3(TreeEstimator):
    """DiffP-ID3 as published: nominal attributes, split by every value, each at most once on a path.

    epsilon    the whole privacy budget B
    max_depth  d, the depth of the tree
    criterion  "max", "gini" or "infogain"; the gain ratio is refused, since its sensitivity has no bound
    bins       numeric attributes are cut into so many bins of equally many cells of their grid
    schema     the public facts, for fit(X, y)
    """

    epsilon: Amount = 1.0
    max_depth: int = 5
    criterion: str = "max"
    bins: int = 10
    schema: SchemaLike = None

    def title(self, schema: Schema) -> str:
        return f"DiffP-ID3 ({self.criterion})"

    def check(self, schema: Schema) -> None:
        check_criterion(self.criterion)
        require_splits(schema)
        whole_keys(schema, self.bins)  # says what is wrong with `bins`
        check_depth(self.max_depth)

    def budget_for(self, schema: Schema, rows: float = 0) -> DiffPID3Budget:
        epsilon = part_of(self.row_budget(schema), 2 * (self.max_depth + 1))  # line 3
        return DiffPID3Budget(
            PlanStep("count the rows of every node", epsilon, self.max_depth + 1),
            PlanStep("choose the attribute of every inner node", epsilon, self.max_depth),
            PlanStep("count the classes of every leaf", epsilon),
        )

    def _learn(self, private: PrivateTable, progress: Progress) -> list[Node]:
        schema = private.schema
        budget = self.budget_for(schema)
        growth = Growth(private, whole_keys(schema, self.bins))
        for depth in progress.steps(range(self.max_depth + 1), "levels"):
            level = growth.frontier(depth)
            growth.count(level, budget.rows.epsilon)  # line 8
            stopped = [node for node in level if depth == self.max_depth or too_few(node, budget.rows.epsilon, schema)]
            growth.count_classes(stopped, budget.classes.epsilon)  # lines 9 to 12
            going_on = without(level, stopped)
            chosen = growth.choose(  # line 14
                going_on,
                [[Multiway(key) for key in node.keys] for node in going_on],
                budget.attribute.epsilon,
                score=self.criterion,
                calibration="generic",
            )
            growth.split(going_on, chosen)  # lines 15 and 16
        growth.count_classes(growth.uncounted(), budget.classes.epsilon)
        return [as_counted(growth.root)]
