"""Row counts with discrete Laplace noise."""

from dpmine.base.epsilon import Epsilon
from dpmine.codes.domain import Domain
from dpmine.codes.histogram import ResolvedHistogram
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.samplers.laplace import add_noise
from dpmine.noise.laws import DiscreteLaplace, laplace


class NoisyCounts(Mechanism[ResolvedHistogram, DiscreteLaplace], answers=ResolvedHistogram):
    """Every count of every cell with noise of its own.

    Claim        epsilon-DP for adding or removing one row, whatever the number of combinations.
    Sensitivity  L1 1: a row lies in at most one cell, and there in exactly one combination.
    Proof        docs/proofs.md#count-and-histogram.
    Assumes      disjoint cells, public keys.
    Not covered  what a cell whose epsilon is 0 holds: it is not asked, and nothing of it is drawn.
    Reference    Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009 (the discrete law).
    """

    def laws(self, question: ResolvedHistogram, domain: Domain, epsilon: Epsilon) -> tuple[DiscreteLaplace]:
        return (laplace(1, epsilon),)

    def release(self, asked: Asked[ResolvedHistogram, DiscreteLaplace]) -> list[Numbers | None]:
        (exact_counts,) = asked.engine.counts(asked.cells, [asked.question.keys])
        exact_counts = exact_counts.reshape(len(asked.units), asked.question.bins)
        cells_at: dict[int, list[int]] = {}
        for cell, units in enumerate(asked.units):
            cells_at.setdefault(units, []).append(cell)
        cells_at.pop(0, None)  # not asked
        numbers: list[Numbers | None] = [None] * len(asked.units)
        for units, cells in cells_at.items():
            (law,) = asked.laws[units]
            noisy_counts = add_noise(exact_counts[cells], asked.noise, law.fraction)
            for cell, row in zip(cells, noisy_counts.tolist(), strict=True):
                numbers[cell] = tuple(row)
        return numbers
