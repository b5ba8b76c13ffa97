"""A point at or near a quantile, by the exponential mechanism over stretches of points of equal rank."""

from fractions import Fraction

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.codes.domain import Domain
from dpmine.codes.quantile import ResolvedQuantile
from dpmine.kernel.mechanisms.counted import counted_share
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.samplers.laplace import Integers
from dpmine.kernel.scores import RankScore
from dpmine.noise.laws import ChoiceLoss, Law, laplace


class NearestRank(Mechanism[ResolvedQuantile, Law], answers=ResolvedQuantile):
    """The number of the chosen point, and where gaps are possible how many rows have a value.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  the range of `RankScore`: 2 max(p, q - p) for the order p / q, in rows times q; 1 for the number of rows.
    Price        where gaps are possible a twentieth of epsilon counts the rows, and the rest is for the choice.
    Proof        docs/proofs.md#quantile.
    Assumes      public points. Those between two occupied ones share a rank: they are chosen together, by how many they are.
    Not covered  how far two points lie apart: the answer is one of them. Time and memory, which follow the occupied points.
    Reference    Smith 2011; McSherry, Talwar 2007.
    """

    def laws(self, question: ResolvedQuantile, domain: Domain, epsilon: Epsilon) -> tuple[Law, ...]:
        in_rows = Fraction(_score(question).range, question.denominator)
        chosen, *counted = counted_share(question.amount, domain, epsilon)
        loss = ChoiceLoss(question.amount.steps + 1, str(in_rows), chosen)
        return (loss, *(laplace(1, share) for share in counted))

    def release(self, asked: Asked[ResolvedQuantile, Law]) -> list[Numbers | None]:
        question, score = asked.question, _score(asked.question)
        amount = question.amount
        numbers, exact_counts = asked.engine.occupied(asked.cells, (amount,))
        ends = np.searchsorted(numbers, np.arange(len(asked.units) + 1) * amount.size)

        def chosen(cell: int, units: int) -> Numbers:
            loss, *counted = asked.laws[units]
            assert isinstance(loss, ChoiceLoss)
            points, rows = (
                numbers[ends[cell] : ends[cell + 1]] - cell * amount.size,
                exact_counts[ends[cell] : ends[cell + 1]],
            )
            points, rows = points[points <= amount.steps], rows[points <= amount.steps]  # without gaps
            firsts, lengths, counts = stretches_of_points(points, rows, amount.steps + 1)
            rate = loss.epsilon.fraction / (Fraction(loss.range) * question.denominator)
            place = asked.choose("exponential", score.of(counts), lengths, rate)
            point = int(firsts[place]) + asked.entropy.below(int(lengths[place]))
            return (point, *(asked.noisy([int(rows.sum())], counted) if counted else ()))

        return asked.each(chosen)


def stretches_of_points(points: Integers, exact_counts: Integers, size: int) -> tuple[Integers, Integers, Integers]:
    """All points below `size` in stretches: an occupied point by itself, and those between two of them together.

    Of each its first point, how many points it has, and how many rows they hold.
    """
    firsts = np.zeros(2 * len(points) + 1, dtype=np.int64)
    firsts[1::2], firsts[2::2] = points, points + 1
    lengths, counts = np.diff(np.append(firsts, size)), np.zeros_like(firsts)
    counts[1::2] = exact_counts
    return firsts[lengths > 0], lengths[lengths > 0], counts[lengths > 0]


def _score(question: ResolvedQuantile) -> RankScore:
    return RankScore(question.numerator, question.denominator)
