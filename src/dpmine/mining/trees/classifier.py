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

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log, log2
from pathlib import Path

from dpmine.epsilon import Epsilon
from dpmine.errors import EpsilonError, RequestError
from dpmine.mining.budget_plans import BudgetPlan, PlanStep, off_by, part_of
from dpmine.mining.estimators import Amount, SchemaLike, check_number
from dpmine.mining.trees.diffp_id3 import PUBLISHED_SCORES, check_criterion
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.finishing import smoothed
from dpmine.mining.trees.growing import Growth, Sprout, nominal_keys, numeric_names, require_splits
from dpmine.progress import Progress
from dpmine.queries import MOST_BONUS, Multiway, Splits, Stay, Thresholds, one_versus_rest
from dpmine.schema import Schema
from dpmine.tables import PrivateTable
from dpmine.tree_models import Node

AUTO = "auto"
COUNT_SHARE = Fraction(1, 50)  # of epsilon, for the number of rows that an automatic depth follows from
FEW_CATEGORIES = 5  # of an attribute that may be split by all of them at once
SHALLOWEST, DEEPEST_AUTO = 2, 10


@dataclass(frozen=True)
class TreeBudget:
    """The whole budget plan of one tree, from its root to any of its leaves."""

    count: Epsilon
    levels: tuple[Epsilon, ...]
    inner: Epsilon
    leaves: Epsilon


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
    max_depth: int | str = AUTO
    criterion: str = "mixed"
    leaf_share: float = 0.2
    level_ratio: float = 1.4
    stopping: float = 0.05
    splits: str = "any"
    calibration: str = "monotone"
    leftover: bool = True
    inner_share: float = 0.0
    smoothing: float = 1.0
    schema: SchemaLike = None

    # -- the budget plan --------------------------------------------------------------------------------------------

    def shares(self, budget: Epsilon, rows: float) -> TreeBudget:
        """Who gets what, for about so many rows. Everything adds up to the budget along every path."""
        count = part_of(budget, COUNT_SHARE) if self.max_depth == AUTO else Epsilon(0)
        left = Epsilon(budget.units - count.units)
        weights = [Fraction(str(self.level_ratio)) ** place for place in range(self.depth(budget, rows))]
        choosing = 1 - Fraction(str(self.leaf_share))
        levels = tuple(part_of(left, choosing * weight / sum(weights)) for weight in weights)
        counting = Epsilon(left.units - sum(level.units for level in levels))
        inner = part_of(counting, Fraction(str(self.inner_share)))
        if min(level.units for level in levels) < 1 or counting.units <= inner.units:
            raise EpsilonError(
                f"epsilon {self.budget} is too small for this plan: a level or a leaf would get less than 1e-9."
            )
        return TreeBudget(count, levels, inner, Epsilon(counting.units - inner.units))

    def depth(self, budget: Epsilon, rows: float) -> int:
        """max_depth, or a level more for every fourfold of rows times epsilon: as deep as noise lets splits be seen."""
        if self.max_depth != AUTO:
            return self.check_depth()
        levels = round((log2(max(rows * float(budget), 1)) - 3) / 2)
        return min(max(levels, SHALLOWEST), DEEPEST_AUTO)

    def plan(self, schema: Schema | str | Path, *, rows: int | None = None) -> BudgetPlan:
        self._check()
        facts = Schema.load(schema)
        among = log(number_of(self.candidates(facts), facts))
        budget = self.shares(self.row_budget(facts), facts.rows_at_most if rows is None else rows)
        steps = []
        if budget.count.units:
            steps.append(PlanStep("count all rows, to choose a depth", budget.count, 1, off_by(budget.count)))
        for depth, epsilon in enumerate(budget.levels):
            away = self.noise(epsilon, facts) * (among + log(20))
            expect = f"within {away:,.0f} rows of the best (95 %)"
            steps.append(PlanStep(f"choose the splits of level {depth + 1}", epsilon, 1, expect))
        if budget.inner.units:
            steps.append(PlanStep("count the classes in the middle", budget.inner, 1, off_by(budget.inner)))
        steps.append(PlanStep("count the classes of every leaf", budget.leaves, 1, off_by(budget.leaves)))
        return BudgetPlan(f"TreeClassifier ({self.criterion})", self.budget, tuple(steps), facts.rows_per_unit)

    def _check(self) -> None:
        check_criterion(self.criterion, (*PUBLISHED_SCORES, "mixed"))
        if self.max_depth != AUTO:
            self.check_depth()
        check_number("leaf_share", self.leaf_share, 0.001, 0.999)
        check_number("inner_share", self.inner_share, 0, 0.999)
        check_number("level_ratio", self.level_ratio, 0.1, 10)
        check_number("stopping", self.stopping, 0, 1000)
        check_number("smoothing", self.smoothing, 0, 1000)
        if self.splits not in ("any", "binary", "multiway"):
            raise RequestError(f"splits must be 'any', 'binary' or 'multiway'. Got {self.splits!r} instead.")
        if self.calibration not in ("monotone", "generic"):
            raise RequestError(f"calibration must be 'monotone' or 'generic'. Got {self.calibration!r} instead.")

    # -- what a node chooses from, and by what ----------------------------------------------------------------------

    def candidates(self, schema: Schema) -> list[Splits]:
        """Every split that a node may choose from; families of one attribute each, equally likely beforehand."""
        require_splits(schema)
        names = [key.title for key in nominal_keys(schema)]
        thresholds: list[Splits] = [Thresholds(name) for name in numeric_names(schema)]
        if self.splits == "multiway":
            return [Multiway(key) for key in nominal_keys(schema)] + thresholds
        few = [key for key in nominal_keys(schema) if 2 < len(key.labels(schema)) <= FEW_CATEGORIES and self.splits == "any"]
        return [Multiway(key) for key in few] + [one_versus_rest(schema, name) for name in names] + thresholds

    def noise(self, epsilon: Epsilon, schema: Schema) -> float:
        """R / epsilon in rows: by so much a worse split can look like the better one."""
        ranges = {"max": 1.0, "mixed": 1.0, "gini": 2.0, "infogain": log2(schema.rows_at_most + 1) + 1 / log(2)}
        return ranges[self.criterion] * (1 if self.calibration == "monotone" else 2) / float(epsilon)

    def staying(self, epsilon: Epsilon, schema: Schema) -> list[Splits]:
        """Staying whole, with a bonus in rows: a multiple of what noise gives the best of useless splits."""
        if self.stopping == 0:
            return []
        among = log(number_of(self.candidates(schema), schema))
        bonus = round(self.stopping * self.noise(epsilon, schema) * among)
        return [Stay(min(max(bonus, 1), MOST_BONUS))]

    # -- growing ----------------------------------------------------------------------------------------------------

    def _grow(self, private: PrivateTable, progress: Progress) -> list[Node]:
        growth = Growth(private, ())
        budget = self.shares(self.row_budget(private.schema), self.counted_rows(growth))
        return self.grow_from(growth, [growth.root], budget, progress)

    def counted_rows(self, growth: Growth, trees: int = 1) -> float:
        """A noisy number of rows a tree, where the depth follows from it."""
        count = self.shares(self.row_budget(growth.schema), 0).count
        if not count.units:
            return 0.0
        growth.count([growth.root], count)
        assert growth.root.rows is not None
        return growth.root.rows / trees

    def grow_from(self, growth: Growth, roots: Sequence[Sprout], budget: TreeBudget, progress: Progress) -> list[Node]:
        """Grow a tree from each of some disjoint nodes; together they cost what one costs."""
        schema = growth.schema
        candidates = self.candidates(schema)
        growing = list(roots)
        saved: dict[int, int] = {}  # what a branch that stopped did not spend on choices, in units
        for depth, epsilon in enumerate(progress.steps(budget.levels, "levels")):
            middle = len(budget.levels) // 2
            if budget.inner.units and depth == middle:
                growth.count_classes(growing, budget.inner)
            families = [*candidates, *self.staying(epsilon, schema)]
            chosen = growth.choose(
                growing, [families] * len(growing), epsilon, score=self.criterion, calibration=self.calibration
            )
            asked, growing = growing, growth.split(growing, chosen)
            left = sum(later.units for later in budget.levels[depth + 1 :]) + (budget.inner.units if depth < middle else 0)
            saved |= {id(node): left for node in asked if node.split is None}
            saved |= dict.fromkeys(map(id, growing), 0)  # a node whose split was void goes on choosing
        leaves = [leaf for root in roots for leaf in root.leaves() if leaf.reachable]
        amounts = [Epsilon(budget.leaves.units + (saved.get(id(leaf), 0) if self.leftover else 0)) for leaf in leaves]
        growth.count_classes(leaves, amounts)
        return [smoothed(root, self.smoothing) for root in roots]


def number_of(candidates: Sequence[Splits], schema: Schema) -> int:
    return sum(family.size(schema) for family in candidates)
