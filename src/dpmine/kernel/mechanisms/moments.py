"""Sums of products of one or two attributes, each with discrete Laplace noise; one row moves all of them by one number."""

from dpmine.base.epsilon import Epsilon
from dpmine.codes.amounts import product
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
        return (laplace(product(question.amounts), epsilon),) * question.numbers

    def release(self, asked: Asked[ResolvedMoments, DiscreteLaplace]) -> list[Numbers | None]:
        question = asked.question
        amounts = tuple(dict.fromkeys(question.amounts))
        powers, parts = _PARTS[question.numbers]
        exact_sums = asked.engine.sums(asked.cells, amounts, powers).tolist()
        steps = [amount.steps for amount in question.amounts]

        def noisy(cell: int, units: int) -> Numbers:
            return asked.noisy(parts(steps, exact_sums[cell]), asked.laws[units])

        return asked.each(noisy)


def _of_one(steps: list[int], exact_sums: list[int]) -> list[int]:
    (s,), (rows, x) = steps, exact_sums
    return [x, s * rows - x]


def _of_square(steps: list[int], exact_sums: list[int]) -> list[int]:
    (s, _), (rows, x, xx) = steps, exact_sums
    return [xx, 2 * (s * x - xx), s * s * rows - 2 * s * x + xx]


def _of_two(steps: list[int], exact_sums: list[int]) -> list[int]:
    (s, t), (rows, x, y, xy) = steps, exact_sums
    return [xy, t * x - xy, s * y - xy, s * t * rows - t * x - s * y + xy]


_PARTS = {
    2: (((0,), (1,)), _of_one),
    3: (((0,), (1,), (2,)), _of_square),
    4: (((0, 0), (1, 0), (0, 1), (1, 1)), _of_two),
}
"""By the number of sums: what an engine is asked for, and how the parts follow from that, in Python's integers."""
