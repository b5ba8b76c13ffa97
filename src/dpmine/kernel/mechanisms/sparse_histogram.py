"""Noisy counts of any number of combinations, of which only those above a public threshold are shown."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.facts.facts import Facts
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers, answers
from dpmine.kernel.samplers.sparse import sparse_counts
from dpmine.noise.laws import DiscreteLaplace, laplace
from dpmine.noise.phantoms import phantoms
from dpmine.questions.sparse_histogram import ResolvedSparseHistogram

MOST_PHANTOMS = 1_000_000  # combinations without rows that a sparse histogram may be expected to show


@answers(ResolvedSparseHistogram)
class ThresholdedCounts(Mechanism[ResolvedSparseHistogram, DiscreteLaplace]):
    """For each cell place, count, place, count, ... of what reaches the threshold.

    Claim        epsilon-DP for adding or removing one row, whatever the threshold and the number of combinations.
    Sensitivity  L1 1: a row lies in at most one cell, and there in exactly one combination.
    Proof        `sparse_counts`; docs/proofs.md#sparse-histogram.
    Assumes      disjoint cells, public keys and threshold.
    Not covered  time and memory, which follow the number of combinations with rows.
    Reference    Cormode, Procopiuc, Srivastava, Tran 2012.
    """

    def laws(self, question: ResolvedSparseHistogram, facts: Facts, epsilon: Epsilon) -> tuple[DiscreteLaplace]:
        return (laplace(1, epsilon),)

    def check(
        self,
        question: ResolvedSparseHistogram,
        laws: Mapping[int, tuple[DiscreteLaplace, ...]],
        units: tuple[int, ...],
    ) -> None:
        """Refuse a threshold so low that noise alone would fill the answer."""
        shown = {paid: phantoms(question.bins, law, question.at_least) for paid, (law,) in laws.items()}
        expected = sum(shown[paid] for paid in units if paid)
        if expected > MOST_PHANTOMS:
            raise RequestError(
                f"With {question.bins} combinations and a threshold of {question.at_least}, noise alone would show about "
                f"{expected:.3g} of them; at most {MOST_PHANTOMS} fit one answer. Raise 'at_least', or use coarser keys."
            )

    def release(self, asked: Asked[ResolvedSparseHistogram, DiscreteLaplace]) -> list[Numbers | None]:
        question = asked.question
        places, exact_counts = asked.engine.occupied(asked.cells, question.keys)

        def shown(cell: int, units: int) -> Numbers:
            here = slice(*np.searchsorted(places, (cell * question.bins, (cell + 1) * question.bins)))
            (law,) = asked.laws[units]
            kept = sparse_counts(
                asked.entropy,
                asked.noise,
                places[here] - cell * question.bins,
                exact_counts[here],
                question.bins,
                scale=law.fraction,
                at_least=question.at_least,
            )
            return tuple(np.stack(kept, axis=1).ravel().tolist())

        return asked.each(shown)
