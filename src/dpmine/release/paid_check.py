"""A check of a release against the private rows that may be published, because it is paid for.

Half of its epsilon buys a noisy confusion matrix of a tree that the release taught, the other half a noisy histogram of
each attribute, the class among them.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpmine.cuts import predictors
from dpmine.epsilon import Epsilon
from dpmine.intervals import noise_half_width, noise_scale
from dpmine.mining.budget_plans import BudgetPlan, PlanStep, off_by
from dpmine.mining.evaluation import CONFIDENCE, evaluate
from dpmine.model_keys import Predicted, ScoreLeaf
from dpmine.release.bars import axes_of
from dpmine.release.learning import LEARNER, learned_tree
from dpmine.release.released import ReleasedTable
from dpmine.report.release_page import NoisyBars, NoisyJudgement, PaidCheck
from dpmine.schema import Schema
from dpmine.tables import PrivateTable


@dataclass(frozen=True)
class CheckBudget:
    """What a check spends along one row."""

    matrix: Epsilon
    histogram: Epsilon
    """Of each attribute."""

    @classmethod
    def of(cls, epsilon: Epsilon, schema: Schema) -> CheckBudget:
        row = epsilon.units // schema.rows_per_unit
        histogram = row // 2 // _histograms(schema)
        return cls(Epsilon(row - histogram * _histograms(schema)), Epsilon(histogram))


def plan_check(epsilon: Epsilon, schema: Schema) -> BudgetPlan:
    """What a check will spend; refuses now what could not be asked later."""
    budget = CheckBudget.of(epsilon, schema)
    classes = schema.class_labels
    Predicted((ScoreLeaf((0,) * len(classes)),), classes)  # refuses classes that nothing can be predicted for
    steps = [
        PlanStep("check: count predictions by class", budget.matrix, 1, off_by(budget.matrix)),
        PlanStep("check: count each attribute", budget.histogram, _histograms(schema), off_by(budget.histogram)),
    ]
    return BudgetPlan("Check against the rows", epsilon, tuple(steps), schema.rows_per_unit)


def buy_check(private: PrivateTable, released: ReleasedTable, *, epsilon: Epsilon, seed: int) -> PaidCheck:
    """Ask the private table. The same release, seed and epsilon ask the same questions, which are then free."""
    schema = private.schema
    budget = CheckBudget.of(epsilon, schema)
    plan = plan_check(epsilon, schema)
    guarded = private.with_room_for(Epsilon(plan.cost.units // plan.rows_per_unit))
    for_matrix = Epsilon(budget.matrix.units * schema.rows_per_unit)
    judged = evaluate(learned_tree(released, seed).trees_, guarded, epsilon=for_matrix, auc=False)
    bars = {}
    for axis in axes_of(released):
        counts = guarded.histogram(axis.key, epsilon=budget.histogram).counts
        bars[axis.name] = NoisyBars(axis.labels, tuple(counts.tolist()), _half_width(budget.histogram))
    judgement = NoisyJudgement(
        learner=LEARNER,
        classes=judged.classes,
        confusion=tuple(map(tuple, judged.confusion.tolist())),
        half_width=_half_width(budget.matrix),
        accuracy=(judged.accuracy.value, judged.accuracy.low, judged.accuracy.high),
        majority=judged.majority,
    )
    return PaidCheck(str(plan.cost), bars, judgement)


def _histograms(schema: Schema) -> int:
    return len(predictors(schema)) + 1


def _half_width(epsilon: Epsilon) -> int:
    return noise_half_width(noise_scale(1, epsilon), CONFIDENCE)
