"""DiffP-C4.5: numeric attributes and pruning on top of DiffP-ID3 (Friedman and Schuster 2010, sections 4.2 and 4.3).

Before the attribute is chosen, every numeric attribute's split point is chosen by the exponential mechanism, with the
length of a range as base measure. The printed formula for ranges lacks the factor 1 / (2 S(q)); it is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpmine.epsilon import Epsilon
from dpmine.expressions import Key
from dpmine.mining.budget_plans import BudgetPlan, PlanStep, part_of
from dpmine.mining.estimators import Amount, SchemaLike, check_number
from dpmine.mining.trees.diffp_id3 import check_criterion, too_few, without
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.finishing import as_counted, pruned
from dpmine.mining.trees.growing import Growth, Sprout, nominal_keys, numeric_names, require_splits
from dpmine.progress import Progress
from dpmine.queries import Multiway
from dpmine.schema import Schema
from dpmine.tables import PrivateTable
from dpmine.tree_models import Node


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

    def plan(self, schema: Schema | str | Path, *, rows: int | None = None) -> BudgetPlan:
        check_criterion(self.criterion)
        facts = Schema.load(schema)
        require_splits(facts)
        numeric = len(numeric_names(facts))
        check_number("confidence", self.confidence, 0.001, 0.5)
        epsilon = self._each(facts)
        points = PlanStep(f"choose a split point of each of {numeric} numeric attributes", epsilon, numeric * self.max_depth)
        return BudgetPlan(
            f"DiffP-C4.5 ({self.criterion})",
            self.budget,
            (
                PlanStep("count the rows of every node", epsilon, self.max_depth + 1),
                *((points,) if numeric else ()),
                PlanStep("choose the attribute of every inner node", epsilon, self.max_depth),
                PlanStep("count the classes of every leaf", epsilon),
            ),
            facts.rows_per_unit,
        )

    def _each(self, schema: Schema) -> Epsilon:
        """Line 3 of Algorithm 2 with n numeric attributes: B / ((2 + n) d + 2)."""
        return part_of(self.row_budget(schema), (2 + len(numeric_names(schema))) * self.check_depth() + 2)

    def _grow(self, private: PrivateTable, progress: Progress) -> list[Node]:
        numeric = numeric_names(private.schema)
        epsilon = self._each(private.schema)
        growth = Growth(private, nominal_keys(private.schema))
        for depth in progress.steps(range(self.max_depth + 1), "levels"):
            level = growth.frontier(depth)
            growth.count(level, epsilon)
            stopped = [node for node in level if depth == self.max_depth or too_few(node, epsilon, private.schema, numeric)]
            growth.count_classes(stopped, epsilon)
            going_on = without(level, stopped)
            points = self._split_points(growth, going_on, epsilon)
            chosen = growth.choose(
                going_on,
                [[Multiway(key) for key in (*node.keys, *points[id(node)])] for node in going_on],
                epsilon,
                score=self.criterion,
                calibration="generic",
            )
            growth.split(going_on, chosen)
        growth.count_classes(growth.uncounted(), epsilon)
        return [pruned(growth.root, self.confidence) if self.pruning else as_counted(growth.root)]

    def _split_points(self, growth: Growth, nodes: list[Sprout], epsilon: Epsilon) -> dict[int, list[Key]]:
        """For each node a split point of every numeric attribute whose domain, on the way to the node, still has one."""
        points: dict[int, list[Key]] = {id(node): [] for node in nodes}
        for name in numeric_names(growth.schema):
            families = [(node, node.thresholds(name, growth.schema)) for node in nodes]
            asked = [node for node, family in families if family is not None]
            chosen = growth.choose(
                asked,
                [[family] for _, family in families if family is not None],
                epsilon,
                score=self.criterion,
                calibration="generic",
            )
            for node, key in zip(asked, chosen, strict=True):
                assert key is not None
                points[id(node)].append(key)
        return points
