"""The label that most rows have, chosen privately."""

from dpmine.base.epsilon import Epsilon
from dpmine.codes.choose_label import ResolvedChooseLabel
from dpmine.codes.domain import Domain
from dpmine.kernel.mechanisms.choosing import alike, choices, loss_of
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.scores import CountScore
from dpmine.noise.laws import ChoiceLoss

SCORE = CountScore()


class MostFrequent(Mechanism[ResolvedChooseLabel, ChoiceLoss], answers=ResolvedChooseLabel):
    """The number of the chosen label.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  the range of `CountScore`: one row raises the count of one label by one.
    Proof        docs/proofs.md#choice-of-a-label.
    Assumes      a public key.
    Not covered  how clear the choice was: a near second is as likely.
    Reference    McSherry, Talwar 2007; McKenna, Sheldon 2020.
    """

    def laws(self, question: ResolvedChooseLabel, domain: Domain, epsilon: Epsilon) -> tuple[ChoiceLoss]:
        return (loss_of(SCORE, question.calibration, question.labels, epsilon),)

    def release(self, asked: Asked[ResolvedChooseLabel, ChoiceLoss]) -> list[Numbers | None]:
        question = asked.question
        (exact_counts,) = asked.engine.counts(asked.cells, [(question.key,)])
        return choices(asked, question.mechanism, SCORE.unit, lambda cell: alike(exact_counts[cell, : question.labels]))
