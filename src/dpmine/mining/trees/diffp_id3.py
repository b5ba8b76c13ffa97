"""DiffP-ID3: the exponential mechanism picks the attribute (Friedman and Schuster 2010, Algorithm 2).

One choice instead of counts for every attribute. The factor 1 / (2 S(q)) of the exponential mechanism is the paper's
(calibration "generic"); that all scores are monotone, and half of it would do, is `TreeClassifier`'s affair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmine.epsilon import Epsilon
from dpmine.errors import RequestError
from dpmine.expressions import Key
from dpmine.mining.budget_plans import BudgetPlan, PlanStep, part_of
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.finishing import as_counted
from dpmine.mining.trees.growing import Growth, Sprout, discretised, nominal_keys, require_splits
from dpmine.progress import Progress
from dpmine.queries import Multiway
from dpmine.schema import Schema
from dpmine.tables import PrivateTable
from dpmine.tree_models import Node

PUBLISHED_SCORES = ("max", "gini", "infogain")


@dataclass(repr=False, eq=False)
class DiffPID3(TreeEstimator):
    """DiffP-ID3 as published: nominal attributes, split by every value, each at most once on a path.

    epsilon    the whole privacy budget B
    max_depth  d, the depth of the tree
    criterion  "max", "gini" or "infogain"; the gain ratio is refused, since its sensitivity has no bound
    bins       numeric attributes are cut into so many bins of equal width
    schema     the public facts, for fit(X, y)
    """

    epsilon: Amount = 1.0
    max_depth: int = 5
    criterion: str = "max"
    bins: int = 10
    schema: SchemaLike = None

    def plan(self, schema: Schema | str | Path, *, rows: int | None = None) -> BudgetPlan:
        check_criterion(self.criterion)
        facts = Schema.load(schema)
        require_splits(facts)
        self._keys(facts)  # says what is wrong with `bins`
        epsilon = part_of(self.row_budget(facts), 2 * (self.check_depth() + 1))
        return BudgetPlan(
            f"DiffP-ID3 ({self.criterion})",
            self.budget,
            (
                PlanStep("count the rows of every node", epsilon, self.max_depth + 1),
                PlanStep("choose the attribute of every inner node", epsilon, self.max_depth),
                PlanStep("count the classes of every leaf", epsilon),
            ),
            facts.rows_per_unit,
        )

    def _keys(self, schema: Schema) -> tuple[Key, ...]:
        return nominal_keys(schema) + discretised(schema, self.bins)

    def _grow(self, private: PrivateTable, progress: Progress) -> list[Node]:
        epsilon = part_of(self.row_budget(private.schema), 2 * (self.check_depth() + 1))  # line 3
        growth = Growth(private, self._keys(private.schema))
        for depth in progress.steps(range(self.max_depth + 1), "levels"):
            level = growth.frontier(depth)
            growth.count(level, epsilon)  # line 8
            stopped = [node for node in level if depth == self.max_depth or too_few(node, epsilon, private.schema)]
            growth.count_classes(stopped, epsilon)  # lines 9 to 12
            going_on = without(level, stopped)
            chosen = growth.choose(  # line 14
                going_on,
                [[Multiway(key) for key in node.keys] for node in going_on],
                epsilon,
                score=self.criterion,
                calibration="generic",
            )
            growth.split(going_on, chosen)  # lines 15 and 16
        growth.count_classes(growth.uncounted(), epsilon)
        return [as_counted(growth.root)]


def check_criterion(criterion: str, allowed: tuple[str, ...] = PUBLISHED_SCORES) -> None:
    """Refuse, before anything is spent, a splitting criterion that the exponential mechanism cannot use."""
    if "".join(letter for letter in str(criterion).lower() if letter.isalpha()) == "gainratio":
        raise RequestError(
            "The gain ratio divides by the information value, which can be as small as you like: its sensitivity has no "
            "bound, so no noise can protect it. Use max, gini or infogain."
        )
    if criterion not in allowed:
        raise RequestError(f"criterion must be one of {', '.join(allowed)}. Got {criterion!r} instead.")


def without(nodes: list[Sprout], stopped: list[Sprout]) -> list[Sprout]:
    left_out = set(stopped)
    return [node for node in nodes if node not in left_out]


def too_few(node: Sprout, epsilon: Epsilon, schema: Schema, numeric: Sequence[str] = ()) -> bool:
    """Line 9 of Algorithms 1 and 2: no attribute is left, or too few rows for the counts below to rise out of the noise.

    t is the largest number of branches that an attribute at hand could make; one that is split at a point makes 2.
    """
    branches = [len(key.labels(schema)) for key in node.keys]
    branches += [2 for name in numeric if node.thresholds(name, schema) is not None]
    if not branches:
        return True
    assert node.rows is not None
    return node.rows / (max(branches) * len(schema.class_labels)) < math.sqrt(2) / float(epsilon)
