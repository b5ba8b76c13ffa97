"""Sums of powers of one attribute's values, each with discrete Laplace noise."""

from __future__ import annotations

import numpy as np

from dpmine.base.epsilon import Epsilon, shares
from dpmine.facts.facts import Facts
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers, answers
from dpmine.kernel.samplers.laplace import add_noise
from dpmine.noise.laws import DiscreteLaplace, laplace
from dpmine.questions.moments import ResolvedMoments
from dpmine.questions.value_grids import ValueGrid


@answers(ResolvedMoments)
class NoisySums(Mechanism[ResolvedMoments, DiscreteLaplace]):
    """The sum of each power, paid by its own share of epsilon.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  of the sum of v^k: M^k, with M the largest absolute value on the grid (from its middle where centred).
    Price        even shares of epsilon, in whole units, which add up to it.
    Proof        docs/proofs.md#sums-means-and-variances.
    Assumes      values clamped to the public grid, as every engine's codes are.
    Not covered  values outside the bounds, which count as the bounds.
    Reference    Dwork, McSherry, Nissim, Smith 2006.
    """

    def laws(self, question: ResolvedMoments, facts: Facts, epsilon: Epsilon) -> tuple[DiscreteLaplace, ...]:
        paid = shares(epsilon.units, len(question.powers))
        largest = _grid(question, facts).largest
        return tuple(laplace(largest**power, Epsilon(share)) for power, share in zip(question.powers, paid, strict=True))

    def release(self, asked: Asked[ResolvedMoments, DiscreteLaplace]) -> list[Numbers | None]:
        """Exact sums of powers from the counts of every grid point, then noise."""
        question, grid = asked.question, _grid(asked.question, asked.facts)
        (exact_counts,) = asked.engine.counts(asked.cells, [(question.key,)])
        values = grid.first + grid.step * np.arange(question.key.size, dtype=np.int64)
        powers = [values**power for power in question.powers]  # below 2^30, sums over fewer than 2^31 rows below 2^61

        def noisy(cell: int, units: int) -> Numbers:
            exact_sums = [np.array([np.sum(exact_counts[cell] * power)], dtype=np.int64) for power in powers]
            laws = asked.laws[units]
            return tuple(int(add_noise(s, asked.noise, law.fraction)[0]) for s, law in zip(exact_sums, laws, strict=True))

        return asked.each(noisy)


def _grid(question: ResolvedMoments, facts: Facts) -> ValueGrid:
    attribute = facts.numeric(question.key.attribute, "its values have no sum")
    return ValueGrid.of(attribute, centred=question.centred)
