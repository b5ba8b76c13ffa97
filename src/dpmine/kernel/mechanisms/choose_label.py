"""The label that most rows have, chosen privately."""

from __future__ import annotations

from dpmine.base.epsilon import Epsilon
from dpmine.facts.facts import Facts
from dpmine.kernel.mechanisms.choosing import equal_masses, loss_of, rate_of
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers, answers
from dpmine.kernel.scores import CountScore
from dpmine.noise.laws import ChoiceLoss
from dpmine.questions.choose_label import ResolvedChooseLabel

SCORE = CountScore()


@answers(ResolvedChooseLabel)
class MostFrequent(Mechanism[ResolvedChooseLabel, ChoiceLoss]):
    """The number of the chosen label.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  the range of `CountScore`: one row raises the count of one label by one.
    Proof        docs/proofs.md#choice-of-a-label.
    Assumes      a public key.
    Not covered  how clear the choice was: a near second is as likely.
    Reference    McSherry, Talwar 2007; McKenna, Sheldon 2020.
    """

    def laws(self, question: ResolvedChooseLabel, facts: Facts, epsilon: Epsilon) -> tuple[ChoiceLoss]:
        return (loss_of(SCORE, question.calibration, question.key.size, epsilon),)

    def release(self, asked: Asked[ResolvedChooseLabel, ChoiceLoss]) -> list[Numbers | None]:
        question = asked.question
        (exact_counts,) = asked.engine.counts(asked.cells, [(question.key,)])

        def label(cell: int, units: int) -> Numbers:
            (law,) = asked.laws[units]
            masses = equal_masses(question.key.size)
            return (asked.choose(question.mechanism, exact_counts[cell], masses, rate_of(law, SCORE.unit)),)

        return asked.each(label)
