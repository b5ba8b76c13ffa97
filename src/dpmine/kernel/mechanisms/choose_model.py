"""The model that is right about most rows, chosen privately."""

from __future__ import annotations

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.facts.facts import Facts
from dpmine.kernel.mechanisms.choosing import equal_masses, loss_of, rate_of
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers, answers
from dpmine.kernel.scores import CountScore
from dpmine.noise.laws import ChoiceLoss
from dpmine.questions.choose_model import ResolvedChooseModel

SCORE = CountScore()


@answers(ResolvedChooseModel)
class RightMostOften(Mechanism[ResolvedChooseModel, ChoiceLoss]):
    """The number of the chosen model. The score of a model is how many rows' class it predicts.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  the range of `CountScore`: a row raises the score of every model by 0 or 1.
    Proof        docs/proofs.md#choice-of-a-model.
    Assumes      models that are public values of the query.
    Not covered  where the models come from: what they cost was paid when they were fitted.
    Reference    McSherry, Talwar 2007; McKenna, Sheldon 2020.
    """

    def laws(self, question: ResolvedChooseModel, facts: Facts, epsilon: Epsilon) -> tuple[ChoiceLoss]:
        return (loss_of(SCORE, question.calibration, len(question.models), epsilon),)

    def release(self, asked: Asked[ResolvedChooseModel, ChoiceLoss]) -> list[Numbers | None]:
        question = asked.question
        groups = [(question.target, model) for model in question.models]
        # Of the counts by class and prediction, those on the diagonal.
        right = [np.trace(counts, axis1=1, axis2=2) for counts in asked.engine.counts(asked.cells, groups)]
        exact_counts = np.stack(right, axis=1).astype(np.int64)

        def model(cell: int, units: int) -> Numbers:
            (law,) = asked.laws[units]
            masses = equal_masses(len(question.models))
            return (asked.choose(question.mechanism, exact_counts[cell], masses, rate_of(law, SCORE.unit)),)

        return asked.each(model)
