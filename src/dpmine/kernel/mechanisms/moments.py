"""Sums of products of one or two attributes, each with discrete Laplace noise; one row moves all of them by one number."""

from dpmine.base.epsilon import Epsilon
from dpmine.codes.domain import Domain
from dpmine.codes.moments import ResolvedMoments
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.noise.laws import DiscreteLaplace, laplace


class NoisySums(Mechanism[ResolvedMoments, DiscreteLaplace], answers=ResolvedMoments):
    """With x in 0 .. S of each row: sums of x and S - x; of x^2, 2x(S - x) and (S - x)^2; or of xy, x(T - y), (S - x)y and
    (S - x)(T - y).

    Claim        epsilon-DP for adding or removing one row, for all sums of a cell together.
    Sensitivity  L1: S, S^2 or S T. None of a row's parts is negative, and together they are exactly that.
    Price        epsilon, for all sums at once: no shares.
    Proof        docs/proofs.md#means-variances-and-covariances.
    Assumes      amounts between 0 and their steps, and rows with a gap in any of them left out, as every engine has them.
    Not covered  values outside the bounds, which count as the bounds.
    Reference    Dwork, McSherry, Nissim, Smith 2006.
    """

    def laws(self, question: ResolvedMoments, domain: Domain, epsilon: Epsilon) -> tuple[DiscreteLaplace, ...]:
        return (laplace(question.together, epsilon),) * question.numbers

    def release(self, asked: Asked[ResolvedMoments, DiscreteLaplace]) -> list[Numbers | None]:
        question = asked.question
        amounts = tuple(dict.fromkeys(question.amounts))
        exact_sums = asked.engine.sums(asked.cells, amounts, POWERS[question.numbers]).tolist()
        steps = tuple(amount.steps for amount in question.amounts)

        def noisy(cell: int, units: int) -> Numbers:
            return asked.noisy(parts_of(steps, exact_sums[cell]), asked.laws[units])

        return asked.each(noisy)


POWERS = {2: ((0,), (1,)), 3: ((0,), (1,), (2,)), 4: ((0, 0), (1, 0), (0, 1), (1, 1))}
"""What an engine is asked for, by the number of sums."""


def parts_of(steps: tuple[int, ...], exact_sums: list[int]) -> list[int]:
    """The sums of all parts, from the number of rows and the sums of x and x^2, or of x, y and x y; in Python's integers."""
    rows, x, *more = exact_sums
    if not more:
        return [x, steps[0] * rows - x]
    (s, t), y, xy = steps, more[0] if len(more) > 1 else x, more[-1]
    both, one, other, neither = xy, t * x - xy, s * y - xy, s * t * rows - t * x - s * y + xy
    return [both, one, other, neither] if len(more) > 1 else [both, one + other, neither]
