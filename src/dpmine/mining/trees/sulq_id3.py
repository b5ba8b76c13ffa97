"""SuLQ-based ID3: information gain from noisy counts, attribute by attribute (Friedman and Schuster 2010, Algorithm 1).

The naive adaptation that the paper starts from: every attribute of every node is counted on its own, so its share of
the budget shrinks with the number of attributes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.progress import Progress
from dpmine.budget.plans import PlanStep, StatedBudget, part_of
from dpmine.facts.schema import Schema
from dpmine.language.keys import Key
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.trees.candidates import require_splits, whole_keys
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.finishing import as_counted
from dpmine.mining.trees.growing import Growth, Sprout
from dpmine.mining.trees.stopping import check_depth, too_few, without
from dpmine.models.trees import Node
from dpmine.tables.private_table import PrivateTable


@dataclass(frozen=True)
class SulqBudget(StatedBudget):
    """A level has two shares: one for the rows of its nodes, one that all counts by its attributes have together."""

    rows: PlanStep
    classes: PlanStep
    by_attribute: PlanStep
    by_class: PlanStep
    attributes: int

    @property
    def of_a_level(self) -> Epsilon:
        """What the counts by the attributes of one level spend. Where fewer are left, each gets more of it."""
        return Epsilon(self.attributes * (self.by_attribute.epsilon.units + self.by_class.epsilon.units))


@dataclass(repr=False, eq=False)
class SulqID3(TreeEstimator):
    """SuLQ-based ID3 as published: the baseline that DiffP-ID3 improves on.

    epsilon    the whole privacy budget B
    max_depth  d, the depth of the tree
    bins       numeric attributes are cut into so many bins of equally many cells of their grid
    schema     the public facts, for fit(X, y)
    """

    epsilon: Amount = 1.0
    max_depth: int = 5
    bins: int = 10
    schema: SchemaLike = None

    def title(self, schema: Schema) -> str:
        return "SuLQ-ID3"

    def check(self, schema: Schema) -> None:
        require_splits(schema)
        check_depth(self.max_depth)
        whole_keys(schema, self.bins)  # says what is wrong with `bins`

    def budget_for(self, schema: Schema, rows: float = 0) -> SulqBudget:
        epsilon = part_of(self.row_budget(schema), 2 * (self.max_depth + 1))  # line 3
        attributes = len(whole_keys(schema, self.bins))
        each = part_of(epsilon, 2 * attributes)
        return SulqBudget(
            PlanStep("count the rows of every node", epsilon, self.max_depth + 1),
            PlanStep("count the classes of every leaf", epsilon),
            PlanStep(f"count by each of {attributes} attributes", each, attributes * self.max_depth),
            PlanStep("count by each attribute and class", each, attributes * self.max_depth),
            attributes,
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
            growth.split(going_on, _best_keys(growth, going_on, budget.of_a_level))  # lines 21 to 23
        growth.count_classes(growth.uncounted(), budget.classes.epsilon)
        return [as_counted(growth.root)]


def _best_keys(growth: Growth, nodes: list[Sprout], epsilon: Epsilon) -> list[Key]:
    """Lines 14 to 21: for every attribute noisy counts, and from them the noisy information gain; the best attribute."""
    best: dict[int, tuple[float, Key]] = {}
    target = growth.schema.require_class()
    for key in dict.fromkeys(key for node in nodes for key in node.keys):
        for attributes in sorted({len(node.keys) for node in nodes}):
            asked = [node for node in nodes if key in node.keys and len(node.keys) == attributes]
            if not asked:
                continue
            each = part_of(epsilon, 2 * attributes)
            by_value = growth.histograms(asked, [key], each)  # line 17
            by_value_and_class = growth.histograms(asked, [key, target], each)  # line 18
            for node, n_j, n_jc in zip(asked, by_value, by_value_and_class, strict=True):
                gain = noisy_gain(n_j, n_jc)
                if id(node) not in best or gain > best[id(node)][0]:
                    best[id(node)] = (gain, key)
    return [best[id(node)][1] for node in nodes]


def noisy_gain(n_j: NDArray[np.int64], n_jc: NDArray[np.int64]) -> float:
    """Line 19: the sum over values j and classes c of N_jc log(N_jc / N_j), without terms whose counts are not positive."""
    positive = (n_jc > 0) & (n_j[:, None] > 0)
    ratio = np.divide(n_jc, np.maximum(n_j, 1)[:, None], where=positive, out=np.ones(n_jc.shape))
    return float(np.sum(np.where(positive, n_jc * np.log2(ratio), 0.0)))
