"""A check of a release against the private rows that may be published, because it is paid for.

Half of its epsilon buys a noisy confusion matrix of a tree that the release taught, the other half a noisy histogram of
each attribute, the class among them.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpmine.base.epsilon import Epsilon
from dpmine.budget.plans import BudgetPlan, PlanStep, StatedBudget, off_by
from dpmine.budget.rows import per_row, per_unit
from dpmine.facts.schema import Schema
from dpmine.language.model_keys import Predicted, ScoreLeaf
from dpmine.mining.evaluation import CONFIDENCE, evaluate
from dpmine.models.cuts import predictors
from dpmine.noise.spread import half_width
from dpmine.release.bars import axes_of
from dpmine.release.learning import LEARNER, learned_tree
from dpmine.release.released import ReleasedTable
from dpmine.report.release_page import NoisyBars, NoisyJudgement, PaidCheck
from dpmine.tables.private_table import PrivateTable


@dataclass(frozen=True)
class CheckBudget(StatedBudget):
    """Half for the matrix, half for the histograms together; the matrix has what rounding leaves."""

    matrix: PlanStep
    histograms: PlanStep

    @classmethod
    def of(cls, epsilon: Epsilon, schema: Schema) -> CheckBudget:
        row, attributes = per_row(epsilon, schema), len(predictors(schema)) + 1
        histogram = Epsilon(row.units // 2 // attributes)
        matrix = Epsilon(row.units - histogram.units * attributes)
        return cls(
            PlanStep("check: count predictions by class", matrix, 1, off_by(matrix)),
            PlanStep("check: count each attribute", histogram, attributes, off_by(histogram)),
        )


def plan_check(epsilon: Epsilon, schema: Schema) -> BudgetPlan:
    """What a check will spend; refuses now what could not be asked later."""
    classes = schema.class_labels
    Predicted((ScoreLeaf((0,) * len(classes)),), classes)  # refuses classes that nothing can be predicted for
    return BudgetPlan("Check against the rows", epsilon, CheckBudget.of(epsilon, schema).steps, schema.rows_per_unit)


def buy_check(private: PrivateTable, released: ReleasedTable, *, epsilon: Epsilon, seed: int) -> PaidCheck:
    """Ask the private table. The same release, seed and epsilon ask the same questions, which are then free."""
    schema = private.schema
    budget = CheckBudget.of(epsilon, schema)
    plan = plan_check(epsilon, schema)
    guarded = private.with_class().with_room_for(plan.row_cost)
    for_matrix = per_unit(budget.matrix.epsilon, schema)
    judged = evaluate(learned_tree(released, seed).trees_, guarded, epsilon=for_matrix, auc=False)
    bars = {}
    for axis in axes_of(released):
        counted = guarded.histogram(axis.key, epsilon=budget.histograms.epsilon)
        bars[axis.name] = NoisyBars(axis.labels, tuple(counted.counts.tolist()), half_width(counted.law, CONFIDENCE))
    judgement = NoisyJudgement(
        learner=LEARNER,
        classes=judged.classes,
        confusion=tuple(map(tuple, judged.confusion.tolist())),
        half_width=half_width(judged.law, CONFIDENCE),
        accuracy=(judged.accuracy.value, judged.accuracy.low, judged.accuracy.high),
        majority=judged.majority,
    )
    return PaidCheck(str(plan.cost), bars, judgement)
