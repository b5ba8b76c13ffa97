"""The sum of one attribute's numbers with discrete Laplace noise, and where gaps are possible the number of its rows."""

from dpmine.base.epsilon import Epsilon
from dpmine.codes.domain import Domain
from dpmine.codes.total import ResolvedTotal
from dpmine.kernel.mechanisms.counted import counted_share
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.noise.laws import DiscreteLaplace, laplace


class NoisyTotal(Mechanism[ResolvedTotal, DiscreteLaplace], answers=ResolvedTotal):
    """The sum, and where gaps are possible how many rows it is of.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  the largest absolute value between the bounds; 1 for the number of rows.
    Price        where gaps are possible a twentieth of epsilon counts the rows, and the rest is for the sum.
    Proof        docs/proofs.md#sums.
    Assumes      values clamped to public bounds, as every engine has them.
    Not covered  values outside the bounds, which count as the bounds.
    Reference    Dwork, McSherry, Nissim, Smith 2006.
    """

    def laws(self, question: ResolvedTotal, domain: Domain, epsilon: Epsilon) -> tuple[DiscreteLaplace, ...]:
        largest, shares = question.grid(domain).largest, counted_share(question.amount, domain, epsilon)
        return tuple(laplace(moved, share) for moved, share in zip((largest, 1), shares, strict=False))

    def release(self, asked: Asked[ResolvedTotal, DiscreteLaplace]) -> list[Numbers | None]:
        question, grid = asked.question, asked.question.grid(asked.domain)
        exact_sums = asked.engine.sums(asked.cells, (question.amount,), ((0,), (1,))).tolist()

        def noisy(cell: int, units: int) -> Numbers:
            rows, steps = exact_sums[cell]
            laws = asked.laws[units]
            return asked.noisy([grid.total(rows, steps), rows][: len(laws)], laws)

        return asked.each(noisy)
