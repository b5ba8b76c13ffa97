"""Sums of several attributes at once, after the number of rows if wanted, with one noise for all of them."""

from __future__ import annotations

import numpy as np

from dpmine.base.epsilon import Epsilon, shares
from dpmine.base.errors import RequestError
from dpmine.facts.facts import Facts
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers, answers
from dpmine.kernel.samplers.laplace import add_noise, clipped
from dpmine.kernel.samplers.staircase import box_staircase
from dpmine.language.resolved import RowKey
from dpmine.noise.laws import BoxStaircase, DiscreteLaplace, laplace, staircase
from dpmine.questions.value_grids import ValueGrid
from dpmine.questions.vector_sums import ResolvedVectorSums, lengths_of, value_grids

VectorLaw = BoxStaircase | DiscreteLaplace


@answers(ResolvedVectorSums)
class NoisyVector(Mechanism[ResolvedVectorSums, VectorLaw]):
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

    def laws(self, question: ResolvedVectorSums, facts: Facts, epsilon: Epsilon) -> tuple[VectorLaw, ...]:
        lengths = lengths_of(_grids(question, facts), with_count=question.with_count)
        if question.ball == "l1":
            paid = shares(epsilon.units, len(lengths))
            return tuple(laplace(length, Epsilon(share)) for length, share in zip(lengths, paid, strict=True))
        if any(not 0 <= inner < length for inner, length in zip(question.inner, lengths, strict=True)):
            raise RequestError(f"Inner widths are at least 0 and below the lengths {lengths}.")
        return staircase(lengths, question.inner, epsilon)

    def release(self, asked: Asked[ResolvedVectorSums, VectorLaw]) -> list[Numbers | None]:
        question = asked.question
        groups: list[tuple[RowKey, ...]] = [(key,) for key in question.keys]
        exact_counts = [counts.reshape(-1).tolist() for counts in asked.engine.counts(asked.cells, groups)]
        exact_sums = [sum(exact_counts[0])] if question.with_count else []
        for counts, grid in zip(exact_counts, _grids(question, asked.facts), strict=True):
            exact_sums.append(sum(count * (grid.first + grid.step * code) for code, count in enumerate(counts)))
        laws = asked.laws[asked.units[0]]
        first = laws[0]
        if isinstance(first, BoxStaircase):
            (noise,) = box_staircase(asked.entropy, first.lengths, first.inner, epsilon=first.epsilon.fraction)
            return [tuple(clipped(exact + more) for exact, more in zip(exact_sums, noise, strict=True))]
        scales = [law.fraction for law in laws if isinstance(law, DiscreteLaplace)]
        return [
            tuple(
                int(add_noise(np.array([exact], dtype=np.int64), asked.noise, scale)[0])
                for exact, scale in zip(exact_sums, scales, strict=True)
            )
        ]


def _grids(question: ResolvedVectorSums, facts: Facts) -> tuple[ValueGrid, ...]:
    return value_grids(facts, tuple(key.attribute for key in question.keys), centred=question.centred)
