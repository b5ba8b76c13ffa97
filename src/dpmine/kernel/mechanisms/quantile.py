"""A grid point at or near a quantile, by the exponential mechanism."""

from __future__ import annotations

from fractions import Fraction

from dpmine.base.epsilon import Epsilon
from dpmine.facts.facts import Facts
from dpmine.kernel.mechanisms.choosing import equal_masses, rate_of
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers, answers
from dpmine.kernel.scores import RankScore
from dpmine.noise.laws import ChoiceLoss
from dpmine.questions.quantile import ResolvedQuantile


@answers(ResolvedQuantile)
class NearestRank(Mechanism[ResolvedQuantile, ChoiceLoss]):
    """The code of the chosen grid point.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  the range of `RankScore`: 2 max(p, q - p) for the quantile of order p / q, in rows times q.
    Proof        docs/proofs.md#quantile.
    Assumes      a public grid.
    Not covered  how far two grid points lie apart: the answer is one of them.
    Reference    Smith 2011; McSherry, Talwar 2007.
    """

    def laws(self, question: ResolvedQuantile, facts: Facts, epsilon: Epsilon) -> tuple[ChoiceLoss]:
        in_rows = Fraction(_score(question).range, question.denominator)
        return (ChoiceLoss(question.key.size, str(in_rows), epsilon),)

    def release(self, asked: Asked[ResolvedQuantile, ChoiceLoss]) -> list[Numbers | None]:
        question, score = asked.question, _score(asked.question)
        (exact_counts,) = asked.engine.counts(asked.cells, [(question.key,)])

        def nearest(cell: int, units: int) -> Numbers:
            (law,) = asked.laws[units]
            scores = score.of(exact_counts[cell])
            rate = rate_of(law, question.denominator)
            return (asked.choose("exponential", scores, equal_masses(scores.size), rate),)

        return asked.each(nearest)


def _score(question: ResolvedQuantile) -> RankScore:
    return RankScore(question.numerator, question.denominator)
