"""`TreeClassifier`: the tree to reach for. DiffP-C4.5 with everything its authors left for future work.

    one choice        a node is split by one private choice over all (attribute, split) pairs, not one choice an attribute
    monotone scores   all candidates' scores move the same way when a row is added, so R = S instead of 2S
    binary splits     a category or a taxonomy node against the rest, or a threshold: no attribute shatters the rows
    staying whole     is a candidate too, with a public bonus: a tree stops where no split rises out of the noise, without
                      paying for counts of rows
    shares by level   deeper levels have more nodes with fewer rows each
    leftover budget   a branch that stops early spends what it saved on its own class counts
    smoothing         a leaf leans on the nodes above as far as noise drowns its own counts

Each can be switched off, to measure what it is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log, log2
from pathlib import Path

from dpmine.epsilon import Epsilon
from dpmine.errors import RequestError
from dpmine.intervals import noise_deviation, noise_scale
from dpmine.mining.budget_plans import BudgetPlan, PlanStep, part_of
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.trees.diffp_id3 import check_criterion
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.finishing import smoothed
from dpmine.mining.trees.growing import Growth, Sprout, nominal_keys, numeric_names
from dpmine.progress import Progress
from dpmine.queries import MOST_BONUS, Multiway, Splits, Stay, Thresholds, one_versus_rest
from dpmine.schema import Schema
from dpmine.tables import PrivateTable
from dpmine.tree_models import Node

AUTO = "auto"


@dataclass(repr=False, eq=False)
class TreeClassifier(TreeEstimator):
    """A differentially private decision tree for classification.

    epsilon      the whole privacy budget
    max_depth    how deep the tree may grow; "auto" follows from epsilon and the schema's bound on rows
    criterion    "gini", "max" or "infogain"
    leaf_share   the share of epsilon for class counts in leaves; the rest is for choosing splits
    level_ratio  what a level gets for choosing splits, compared to the level above
    stopping     let a node stay whole: how many times the typical noise of a choice a split must gain; 0 never stays
    splits       "binary", or "multiway" as in the papers
    calibration  "monotone", or "generic" for the papers' factor 2S
    leftover     spend what a branch saved on the class counts of its leaves
    smoothing    how strongly leaves lean on the nodes above them, in deviations of their noise; 0 not at all
    schema       the public facts, for fit(X, y)

    Example: dm.TreeClassifier(epsilon=0.5).fit(private)
    """

    epsilon: Amount = 1.0
    max_depth: int | str = AUTO
    criterion: str = "gini"
    leaf_share: float = 0.3
    level_ratio: float = 1.0
    stopping: float = 1.0
    splits: str = "binary"
    calibration: str = "monotone"
    leftover: bool = True
    smoothing: float = 1.0
    schema: SchemaLike = None

    # -- the budget plan --------------------------------------------------------------------------------------------

    def plan(self, schema: Schema | str | Path, *, rows: int | None = None) -> BudgetPlan:
        self._check()
        facts = Schema.load(schema)
        levels = self.level_epsilons(facts, rows)
        leaves = self.leaf_epsilon(facts, rows)
        candidates = self.candidates(facts)
        steps = []
        for depth, epsilon in enumerate(levels):
            away = self.noise(epsilon, facts) * (log(number_of(candidates, facts)) + log(20))
            steps.append(
                PlanStep(
                    f"choose the splits of level {depth + 1}", epsilon, 1, f"within {away:,.0f} rows of the best (95 %)"
                )
            )
        deviation = noise_deviation(noise_scale(1, leaves))
        steps.append(PlanStep("count the classes of every leaf", leaves, 1, f"each off by {deviation:,.3g} rows"))
        return BudgetPlan(f"TreeClassifier ({self.criterion})", self.budget, tuple(steps))

    def leaf_epsilon(self, schema: Schema, rows: int | None = None) -> Epsilon:
        """What every leaf may spend on its class counts: its share, with what rounding left over from the levels."""
        return Epsilon(self.budget.units - sum(epsilon.units for epsilon in self.level_epsilons(schema, rows)))

    def level_epsilons(self, schema: Schema, rows: int | None = None) -> tuple[Epsilon, ...]:
        """What each level may spend on choosing its splits."""
        depth = self.depth(schema, rows)
        weights = [Fraction(str(self.level_ratio)) ** place for place in range(depth)]
        together = 1 - Fraction(str(self.leaf_share))
        return tuple(part_of(self.budget, together * weight / sum(weights)) for weight in weights)

    def depth(self, schema: Schema, rows: int | None = None) -> int:
        """max_depth, or how deep the noise lets a tree of that many rows grow."""
        if self.max_depth != AUTO:
            return self.check_depth()
        signal = max((rows or schema.rows_at_most) * float(self.budget), 1.0)
        return min(max(round(log2(signal) / 2), 2), 10)

    def noise(self, epsilon: Epsilon, schema: Schema) -> float:
        """R / epsilon in rows: by so much a worse split can look like the better one."""
        ranges = {"max": 1.0, "gini": 2.0, "infogain": log2(schema.rows_at_most + 1) + 1 / log(2)}
        return ranges[self.criterion] * (1 if self.calibration == "monotone" else 2) / float(epsilon)

    def candidates(self, schema: Schema) -> list[Splits]:
        """Every split that a node may choose from; families of one attribute each, equally likely beforehand."""
        thresholds: list[Splits] = [Thresholds(name) for name in numeric_names(schema)]
        if self.splits == "multiway":
            return [Multiway(key) for key in nominal_keys(schema)] + thresholds
        names = [key.title for key in nominal_keys(schema)]
        return [one_versus_rest(schema, name) for name in names if schema.single(name).size > 1] + thresholds

    def _check(self) -> None:
        check_criterion(self.criterion)
        if not 0 < self.leaf_share < 1:
            raise RequestError(f"leaf_share lies between 0 and 1. Got {self.leaf_share}.")
        if not 0.1 <= self.level_ratio <= 10:
            raise RequestError(f"level_ratio lies between 0.1 and 10. Got {self.level_ratio}.")
        if not 0 <= self.stopping <= 1000 or not 0 <= self.smoothing <= 1000:
            raise RequestError("stopping and smoothing lie between 0 and 1000.")
        if self.splits not in ("binary", "multiway"):
            raise RequestError(f"splits must be 'binary' or 'multiway'. Got {self.splits!r} instead.")
        if self.calibration not in ("monotone", "generic"):
            raise RequestError(f"calibration must be 'monotone' or 'generic'. Got {self.calibration!r} instead.")

    # -- growing ----------------------------------------------------------------------------------------------------

    def _grow(self, private: PrivateTable, progress: Progress) -> list[Node]:
        growth = Growth(private, ())
        return self.grow_from(growth, [growth.root], progress)

    def grow_from(self, growth: Growth, roots: Sequence[Sprout], progress: Progress) -> list[Node]:
        """Grow a tree from each of some disjoint nodes; together they cost what one costs."""
        levels = self.level_epsilons(growth.schema)
        candidates = self.candidates(growth.schema)
        growing = list(roots)
        saved: dict[int, int] = {}  # what is left to a leaf of what its branch was given for splits, in units
        for depth, epsilon in enumerate(progress.steps(levels, "levels")):
            families = candidates if self.stopping == 0 else [*candidates, Stay(self.bonus(epsilon, growth.schema))]
            chosen = growth.choose(
                growing, [families] * len(growing), epsilon, score=self.criterion, calibration=self.calibration
            )
            for node, key in zip(growing, chosen, strict=True):
                if key is None:
                    saved[id(node)] = sum(later.units for later in levels[depth + 1 :])
                else:
                    node.split_by(key, growth.schema)
            growing = [child for node in growing for child in node.children]
        leaves = [leaf for root in roots for leaf in root.leaves()]
        base = self.leaf_epsilon(growth.schema).units
        amounts = [Epsilon(base + (saved.get(id(leaf), 0) if self.leftover else 0)) for leaf in leaves]
        growth.count_classes(leaves, amounts)
        noise = [noise_deviation(noise_scale(1, amount)) for amount in amounts]
        deviations = {id(leaf): deviation for leaf, deviation in zip(leaves, noise, strict=True)}
        return [smoothed(root, deviations, self.smoothing) for root in roots]

    def bonus(self, epsilon: Epsilon, schema: Schema) -> int:
        """What a split must gain over staying whole, in rows: a multiple of what noise gives the best of useless splits."""
        among = log(number_of(self.candidates(schema), schema))
        return min(max(round(self.stopping * self.noise(epsilon, schema) * among), 1), MOST_BONUS)


def number_of(candidates: Sequence[Splits], schema: Schema) -> int:
    return sum(family.size(schema) for family in candidates)
