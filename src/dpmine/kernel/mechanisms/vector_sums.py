"""Sums of several attributes at once, after the number of rows if wanted, with one noise for all of them."""

from dpmine.base.epsilon import Epsilon, shares
from dpmine.codes.domain import Domain
from dpmine.codes.rows import RowKey
from dpmine.codes.value_grids import ValueGrid
from dpmine.codes.vector_sums import ResolvedVectorSums, lengths_of
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.noise.laws import BoxStaircase, DiscreteLaplace, laplace, staircase

VectorLaw = BoxStaircase | DiscreteLaplace


class SumsAtOnce(Mechanism[ResolvedVectorSums, VectorLaw], answers=ResolvedVectorSums):
    """All sums with noise for a box of changes, or each with noise of its own.

    Claim        epsilon-DP for adding or removing one row, for all numbers together.
    Sensitivity  one row moves number j by at most L_j, all of them at once: the largest absolute value on its grid (from
                 the middle where centred), and 1 for the number of rows.
    Price        with ball "l1", even shares of epsilon, in whole units, which add up to it.
    Proof        docs/proofs.md#sums-at-once.
    Assumes      values clamped to the public grids, as every engine's codes are.
    Not covered  values outside the bounds, which count as the bounds.
    Reference    Geng, Viswanath 2014; Hardt, Talwar 2010.
    """

    def laws(self, question: ResolvedVectorSums, domain: Domain, epsilon: Epsilon) -> tuple[VectorLaw, ...]:
        lengths = lengths_of(_grids(question, domain), with_count=question.with_count)
        if question.ball == "l1":
            paid = shares(epsilon.units, len(lengths))
            return tuple(laplace(length, Epsilon(share)) for length, share in zip(lengths, paid, strict=True))
        return staircase(lengths, question.inner, epsilon)

    def release(self, asked: Asked[ResolvedVectorSums, VectorLaw]) -> list[Numbers | None]:
        question = asked.question
        groups: list[tuple[RowKey, ...]] = [(key,) for key in question.keys]
        exact_counts = [counts.reshape(-1).tolist() for counts in asked.engine.counts(asked.cells, groups)]
        exact_sums = [sum(exact_counts[0])] if question.with_count else []
        for counts, grid in zip(exact_counts, _grids(question, asked.domain), strict=True):
            exact_sums.append(sum(count * (grid.first + grid.step * code) for code, count in enumerate(counts)))
        return [asked.noisy(exact_sums, asked.laws[asked.units[0]])]


def _grids(question: ResolvedVectorSums, domain: Domain) -> tuple[ValueGrid, ...]:
    return tuple(ValueGrid.of(domain.grid(key.attribute), centred=question.centred) for key in question.keys)
