"""A count with discrete Laplace noise, compared with a public number."""

from __future__ import annotations

from dpmine.base.epsilon import Epsilon
from dpmine.codes.domain import Domain
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.samplers.laplace import add_noise
from dpmine.noise.laws import DiscreteLaplace, laplace
from many_rows.codes import ResolvedManyRows


class NoisyComparison(Mechanism[ResolvedManyRows, DiscreteLaplace], answers=ResolvedManyRows):
    """1 where the noisy number of rows reaches the public number, else 0.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  1, of the number of rows.
    Proof        a noisy count (docs/proofs.md#count-and-histogram), compared with a public number afterwards.
    Assumes      disjoint cells.
    Not covered  how far the number is from what it is compared with.
    Reference    Dwork, McSherry, Nissim, Smith 2006.
    """

    def laws(self, question: ResolvedManyRows, domain: Domain, epsilon: Epsilon) -> tuple[DiscreteLaplace]:
        return (laplace(1, epsilon),)

    def release(self, asked: Asked[ResolvedManyRows, DiscreteLaplace]) -> list[Numbers | None]:
        (exact_counts,) = asked.engine.counts(asked.cells, [()])
        exact_counts = exact_counts.reshape(-1)

        def compared(cell: int, units: int) -> Numbers:
            (law,) = asked.laws[units]
            noisy_counts = add_noise(exact_counts[[cell]], asked.noise, law.fraction)
            return (int(noisy_counts[0] >= asked.question.at_least),)

        return asked.each(compared)
