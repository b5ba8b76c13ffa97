"""Sums of powers of one attribute's values, each with discrete Laplace noise."""

import numpy as np

from dpmine.base.epsilon import Epsilon, shares
from dpmine.codes.domain import Domain
from dpmine.codes.moments import ResolvedMoments
from dpmine.codes.value_grids import ValueGrid
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.noise.laws import DiscreteLaplace, laplace


class NoisySums(Mechanism[ResolvedMoments, DiscreteLaplace], answers=ResolvedMoments):
    """The sum of each power, paid by its own share of epsilon.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  of the sum of v^k: M^k, with M the largest absolute value on the grid (from its middle where centred).
    Price        even shares of epsilon, in whole units, which add up to it.
    Proof        docs/proofs.md#sums-means-and-variances.
    Assumes      values clamped to the public grid, as every engine's codes are.
    Not covered  values outside the bounds, which count as the bounds.
    Reference    Dwork, McSherry, Nissim, Smith 2006.
    """

    def laws(self, question: ResolvedMoments, domain: Domain, epsilon: Epsilon) -> tuple[DiscreteLaplace, ...]:
        paid = shares(epsilon.units, len(question.powers))
        largest = _grid(question, domain).largest
        return tuple(laplace(largest**power, Epsilon(share)) for power, share in zip(question.powers, paid, strict=True))

    def release(self, asked: Asked[ResolvedMoments, DiscreteLaplace]) -> list[Numbers | None]:
        """Exact sums of powers from the counts of every grid point, then noise."""
        question, grid = asked.question, _grid(asked.question, asked.domain)
        (exact_counts,) = asked.engine.counts(asked.cells, [(question.key,)])
        values = grid.first + grid.step * np.arange(question.key.size, dtype=np.int64)
        powers = [values**power for power in question.powers]  # below 2^30, sums over fewer than 2^31 rows below 2^61

        def noisy(cell: int, units: int) -> Numbers:
            return asked.noisy([int(np.sum(exact_counts[cell] * power)) for power in powers], asked.laws[units])

        return asked.each(noisy)


def _grid(question: ResolvedMoments, domain: Domain) -> ValueGrid:
    return ValueGrid.of(domain.grid(question.key.attribute), centred=question.centred)
