"""DiffP-C4.5: numeric attributes and pruning on top of DiffP-ID3 (Friedman and Schuster 2010, sections 4.2 and 4.3).

Before the attribute is chosen, every numeric attribute's split point is chosen by the exponential mechanism, with the
length of a range as base measure. The printed formula for ranges lacks the factor 1 / (2 S(q)); it is here.
"""

from dataclasses import dataclass

from dpmine.base.progress import Progress
from dpmine.budget.plans import PlanStep, StatedBudget, part_of
from dpmine.facts.schema import Schema
from dpmine.language.keys import Key
from dpmine.language.splits import Multiway
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.parameters import check_number
from dpmine.mining.trees.candidates import nominal_keys, numeric_names, require_splits
from dpmine.mining.trees.criteria import check_criterion
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.finishing import as_counted, pruned
from dpmine.mining.trees.growing import Growth, Sprout
from dpmine.mining.trees.stopping import check_depth, too_few, without
from dpmine.models.trees import Node
from dpmine.tables.private_table import PrivateTable


@dataclass(frozen=True)
class DiffPC45Budget(StatedBudget):
    """All steps at one epsilon; split points where there are numeric attributes."""

    rows: PlanStep
    points: PlanStep | None
    attribute: PlanStep
    classes: PlanStep


@dataclass(repr=False, eq=False)
class DiffPC45(TreeEstimator):
    """DiffP-C4.5 as published: split points by the exponential mechanism, then the attribute; pruned by Algorithm 3.

    epsilon     the whole privacy budget B
    max_depth   d, the depth of the tree
    criterion   "max", "gini" or "infogain"; the gain ratio is refused, since its sensitivity has no bound
    pruning     prune by noisy counts, at no further cost
    confidence  CF, the certainty factor of error-based pruning
    schema      the public facts, for fit(X, y)
    """

    epsilon: Amount = 1.0
    max_depth: int = 5
    criterion: str = "max"
    pruning: bool = True
    confidence: float = 0.25
    schema: SchemaLike = None

    def title(self, schema: Schema) -> str:
        return f"DiffP-C4.5 ({self.criterion})"

    def check(self, schema: Schema) -> None:
        check_criterion(self.criterion)
        require_splits(schema)
        check_number("confidence", self.confidence, 0.001, 0.5)
        check_depth(self.max_depth)

    def budget_for(self, schema: Schema, rows: float = 0) -> DiffPC45Budget:
        d, n = self.max_depth, len(numeric_names(schema))
        epsilon = part_of(self.row_budget(schema), (2 + n) * d + 2)  # line 3 of Algorithm 2, with n numeric attributes
        points = PlanStep(f"choose a split point of each of {n} numeric attributes", epsilon, n * d)
        return DiffPC45Budget(
            PlanStep("count the rows of every node", epsilon, d + 1),
            points if n else None,
            PlanStep("choose the attribute of every inner node", epsilon, d),
            PlanStep("count the classes of every leaf", epsilon),
        )

    def _learn(self, private: PrivateTable, progress: Progress) -> list[Node]:
        schema = private.schema
        budget = self.budget_for(schema)
        numeric = numeric_names(schema)
        growth = Growth(private, nominal_keys(schema))
        for depth in progress.steps(range(self.max_depth + 1), "levels"):
            level = growth.frontier(depth)
            growth.count(level, budget.rows.epsilon)
            last = depth == self.max_depth
            stopped = [node for node in level if last or too_few(node, budget.rows.epsilon, schema, numeric)]
            growth.count_classes(stopped, budget.classes.epsilon)
            going_on = without(level, stopped)
            points = self._split_points(growth, going_on, budget.points)
            chosen = growth.choose(
                going_on,
                [[Multiway(key) for key in (*node.keys, *points[id(node)])] for node in going_on],
                budget.attribute.epsilon,
                score=self.criterion,
                calibration="generic",
            )
            growth.split(going_on, chosen)
        growth.count_classes(growth.uncounted(), budget.classes.epsilon)
        return [pruned(growth.root, self.confidence) if self.pruning else as_counted(growth.root)]

    def _split_points(self, growth: Growth, nodes: list[Sprout], step: PlanStep | None) -> dict[int, list[Key]]:
        """For each node a split point of every numeric attribute whose domain, on the way to the node, still has one."""
        points: dict[int, list[Key]] = {id(node): [] for node in nodes}
        if step is None:
            return points
        for name in numeric_names(growth.schema):
            families = [(node, node.thresholds(name, growth.schema)) for node in nodes]
            asked = [node for node, family in families if family is not None]
            chosen = growth.choose(
                asked,
                [[family] for _, family in families if family is not None],
                step.epsilon,
                score=self.criterion,
                calibration="generic",
            )
            for node, key in zip(asked, chosen, strict=True):
                assert key is not None
                points[id(node)].append(key)
        return points
