"""A grid point at or near a quantile, by the exponential mechanism."""

from fractions import Fraction

from dpmine.base.epsilon import Epsilon
from dpmine.codes.domain import Domain
from dpmine.codes.quantile import ResolvedQuantile
from dpmine.kernel.mechanisms.choosing import alike, choices
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.scores import RankScore
from dpmine.noise.laws import ChoiceLoss


class NearestRank(Mechanism[ResolvedQuantile, ChoiceLoss], answers=ResolvedQuantile):
    """The code of the chosen grid point.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  the range of `RankScore`: 2 max(p, q - p) for the quantile of order p / q, in rows times q.
    Proof        docs/proofs.md#quantile.
    Assumes      a public grid.
    Not covered  how far two grid points lie apart: the answer is one of them.
    Reference    Smith 2011; McSherry, Talwar 2007.
    """

    def laws(self, question: ResolvedQuantile, domain: Domain, epsilon: Epsilon) -> tuple[ChoiceLoss]:
        in_rows = Fraction(_score(question).range, question.denominator)
        return (ChoiceLoss(question.key.size, str(in_rows), epsilon),)

    def release(self, asked: Asked[ResolvedQuantile, ChoiceLoss]) -> list[Numbers | None]:
        question, score = asked.question, _score(asked.question)
        (exact_counts,) = asked.engine.counts(asked.cells, [(question.key,)])
        return choices(asked, "exponential", question.denominator, lambda cell: alike(score.of(exact_counts[cell])))


def _score(question: ResolvedQuantile) -> RankScore:
    return RankScore(question.numerator, question.denominator)
