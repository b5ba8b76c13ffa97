"""Trees grown greedily, level by level: one private choice a node among all (attribute, split) pairs.

`TreeClassifier` grows one over all rows, `GreedyForest` one over each part of them, `TreeRelease` one whose leaves it
publishes. What is new here against the papers stands in `TreeClassifier`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log, log2

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import EpsilonError, RequestError
from dpmine.base.progress import Progress
from dpmine.budget.plans import PlanStep, StatedBudget, off_by, part_of
from dpmine.codes.splits import MOST_BONUS
from dpmine.facts.schema import Schema
from dpmine.language.candidates import number_of_candidates
from dpmine.language.splits import Multiway, Splits, Stay
from dpmine.mining.parameters import check_number
from dpmine.mining.trees.candidates import binary_splits, nominal_keys, number_of, require_splits, thresholds
from dpmine.mining.trees.criteria import PUBLISHED_SCORES, check_criterion
from dpmine.mining.trees.finishing import smoothed
from dpmine.mining.trees.growing import Growth, Sprout
from dpmine.mining.trees.stopping import check_depth
from dpmine.models.trees import Node
from dpmine.noise.finite_tables import exact_text
from dpmine.noise.laws import ChoiceLoss
from dpmine.noise.spread import loss_bound, loss_scale

AUTO = "auto"
COUNT_SHARE = Fraction(1, 50)  # of epsilon, for the number of rows that an automatic depth follows from
FEW_CATEGORIES = 5  # of an attribute that may be split by all of them at once
SHALLOWEST, DEEPEST_AUTO = 2, 10


@dataclass(frozen=True)
class TreeBudget(StatedBudget):
    """The whole budget of one tree, from its root to any of its leaves."""

    count: PlanStep | None
    """Of all rows, where the depth follows from them."""
    levels: tuple[PlanStep, ...]
    inner: PlanStep | None
    leaves: PlanStep


@dataclass(frozen=True)
class GreedyTrees:
    """How trees are grown. The fields are the parameters of `TreeClassifier`, which says what they mean."""

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

    def check(self) -> None:
        """Refuse, before anything is spent, parameters that cannot be."""
        check_criterion(self.criterion, (*PUBLISHED_SCORES, "mixed"))
        if self.max_depth != AUTO:
            check_depth(self.max_depth)
        check_number("leaf_share", self.leaf_share, 0.001, 0.999)
        check_number("inner_share", self.inner_share, 0, 0.999)
        check_number("level_ratio", self.level_ratio, 0.1, 10)
        check_number("stopping", self.stopping, 0, 1000)
        check_number("smoothing", self.smoothing, 0, 1000)
        if self.splits not in ("any", "binary", "multiway"):
            raise RequestError(f"splits must be 'any', 'binary' or 'multiway'. Got {self.splits!r} instead.")
        if self.calibration not in ("monotone", "generic"):
            raise RequestError(f"calibration must be 'monotone' or 'generic'. Got {self.calibration!r} instead.")

    # -- the budget -------------------------------------------------------------------------------------------------

    def shares(self, budget: Epsilon, schema: Schema, rows: float) -> TreeBudget:
        """Who gets what of a row's budget, for about so many rows. Everything adds up to it along every path."""
        count = part_of(budget, COUNT_SHARE) if self.max_depth == AUTO else Epsilon(0)
        left = Epsilon(budget.units - count.units)
        weights = [Fraction(str(self.level_ratio)) ** place for place in range(self.depth(budget, rows))]
        choosing = 1 - Fraction(str(self.leaf_share))
        levels = [part_of(left, choosing * weight / sum(weights)) for weight in weights]
        counting = Epsilon(left.units - sum(level.units for level in levels))
        inner = part_of(counting, Fraction(str(self.inner_share)))
        if min(level.units for level in levels) < 1 or counting.units <= inner.units:
            raise EpsilonError(f"epsilon {budget} is too small for this plan: a level or a leaf would get less than 1e-9.")
        leaves = Epsilon(counting.units - inner.units)
        return TreeBudget(
            PlanStep.if_any("count all rows, to choose a depth", count, 1, off_by(count)),
            tuple(
                PlanStep(f"choose the splits of level {depth}", level, 1, self._expected(level, schema))
                for depth, level in enumerate(levels, start=1)
            ),
            PlanStep.if_any("count the classes in the middle", inner, 1, off_by(inner)),
            PlanStep("count the classes of every leaf", leaves, 1, off_by(leaves)),
        )

    def depth(self, budget: Epsilon, rows: float) -> int:
        """max_depth, or a level more for every fourfold of rows times epsilon: as deep as noise lets splits be seen."""
        if self.max_depth != AUTO:
            return check_depth(self.max_depth)
        levels = round((log2(max(rows * float(budget), 1)) - 3) / 2)
        return min(max(levels, SHALLOWEST), DEEPEST_AUTO)

    def _expected(self, epsilon: Epsilon, schema: Schema) -> str:
        return f"within {loss_bound(self.loss(epsilon, schema), 0.95):,.0f} rows of the best (95 %)"

    # -- what a node chooses from, and by what ----------------------------------------------------------------------

    def candidates(self, schema: Schema) -> list[Splits]:
        """Every split that a node may choose from; families of one attribute each, equally likely beforehand."""
        require_splits(schema)
        if self.splits == "multiway":
            return [Multiway(key) for key in nominal_keys(schema)] + thresholds(schema)
        few = [key for key in nominal_keys(schema) if 2 < len(key.labels(schema)) <= FEW_CATEGORIES and self.splits == "any"]
        return [Multiway(key) for key in few] + binary_splits(schema)

    def loss(self, epsilon: Epsilon, schema: Schema) -> ChoiceLoss:
        """By how many rows a node's choice may miss the best split. Each family has the same share of the base measure."""
        ranges = {"max": 1.0, "mixed": 1.0, "gini": 2.0, "infogain": log2(schema.rows_at_most + 1) + 1 / log(2)}
        in_rows = ranges[self.criterion] * (1 if self.calibration == "monotone" else 2)
        families = self.candidates(schema)
        as_if = len(families) * max(number_of_candidates(family, schema) for family in families)
        return ChoiceLoss(as_if, exact_text(Fraction(in_rows)), epsilon)

    def staying(self, epsilon: Epsilon, schema: Schema) -> list[Splits]:
        """Staying whole, with a bonus in rows: a multiple of what noise gives the best of useless splits."""
        if self.stopping == 0:
            return []
        among = log(number_of(self.candidates(schema), schema))
        bonus = round(self.stopping * loss_scale(self.loss(epsilon, schema)) * among)
        return [Stay(min(max(bonus, 1), MOST_BONUS))]

    # -- growing ----------------------------------------------------------------------------------------------------

    def grow(self, growth: Growth, roots: Sequence[Sprout], budget: TreeBudget, progress: Progress) -> list[Node]:
        """Grow a tree from each of some disjoint nodes; together they cost what one costs."""
        schema = growth.schema
        candidates = self.candidates(schema)
        middle, inner = len(budget.levels) // 2, 0 if budget.inner is None else budget.inner.epsilon.units
        growing = list(roots)
        saved: dict[int, int] = {}  # what a branch that stopped did not spend on choices, in units
        for depth, level in enumerate(progress.steps(budget.levels, "levels")):
            if budget.inner is not None and depth == middle:
                growth.count_classes(growing, budget.inner.epsilon)
            families = [*candidates, *self.staying(level.epsilon, schema)]
            chosen = growth.choose(
                growing, [families] * len(growing), level.epsilon, score=self.criterion, calibration=self.calibration
            )
            asked, growing = growing, growth.split(growing, chosen)
            left = sum(later.epsilon.units for later in budget.levels[depth + 1 :]) + (inner if depth < middle else 0)
            saved |= {id(node): left for node in asked if node.split is None}
            saved |= dict.fromkeys(map(id, growing), 0)  # a node whose split was void goes on choosing
        leaves = [leaf for root in roots for leaf in root.leaves() if leaf.reachable]
        on_top = [saved.get(id(leaf), 0) if self.leftover else 0 for leaf in leaves]
        growth.count_classes(leaves, [Epsilon(budget.leaves.epsilon.units + more) for more in on_top])
        return [smoothed(root, self.smoothing) for root in roots]


def counted_rows(growth: Growth, count: PlanStep | None) -> float:
    """A noisy number of rows where the budget has a step for it; else 0, and nothing follows from it."""
    if count is None:
        return 0.0
    growth.count([growth.root], count.epsilon)
    assert growth.root.rows is not None
    return float(growth.root.rows)
