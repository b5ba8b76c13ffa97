"""The model that is right about most rows, chosen privately."""

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.codes.choose_model import ResolvedChooseModel
from dpmine.codes.domain import Domain
from dpmine.kernel.mechanisms.choosing import alike, choices, loss_of
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.scores import CountScore
from dpmine.noise.laws import ChoiceLoss

SCORE = CountScore()


class RightMostOften(Mechanism[ResolvedChooseModel, ChoiceLoss], answers=ResolvedChooseModel):
    """The number of the chosen model. The score of a model is how many rows' class it predicts.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  the range of `CountScore`: a row raises the score of every model by 0 or 1.
    Proof        docs/proofs.md#choice-of-a-model.
    Assumes      models that are public values of the query.
    Not covered  where the models come from: what they cost was paid when they were fitted.
    Reference    McSherry, Talwar 2007; McKenna, Sheldon 2020.
    """

    def laws(self, question: ResolvedChooseModel, domain: Domain, epsilon: Epsilon) -> tuple[ChoiceLoss]:
        return (loss_of(SCORE, question.calibration, len(question.models), epsilon),)

    def release(self, asked: Asked[ResolvedChooseModel, ChoiceLoss]) -> list[Numbers | None]:
        question = asked.question
        groups = [(question.target, model) for model in question.models]
        # Of the counts by class and prediction, those on the diagonal.
        right = [np.trace(counts, axis1=1, axis2=2) for counts in asked.engine.counts(asked.cells, groups)]
        exact_counts = np.stack(right, axis=1).astype(np.int64)
        return choices(asked, question.mechanism, SCORE.unit, lambda cell: alike(exact_counts[cell]))
