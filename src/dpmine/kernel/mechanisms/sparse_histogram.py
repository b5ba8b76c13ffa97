"""Noisy counts of any number of combinations, of which only those above a public threshold are shown."""

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.codes.domain import Domain
from dpmine.codes.sparse_histogram import ResolvedSparseHistogram
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.samplers.sparse import sparse_counts
from dpmine.noise.laws import DiscreteLaplace, laplace


class ThresholdedCounts(Mechanism[ResolvedSparseHistogram, DiscreteLaplace], answers=ResolvedSparseHistogram):
    """For each cell place, count, place, count, ... of what reaches the threshold.

    Claim        epsilon-DP for adding or removing one row, whatever the threshold and the number of combinations.
    Sensitivity  L1 1: a row lies in at most one cell, and there in exactly one combination.
    Proof        `sparse_counts`; docs/proofs.md#sparse-histogram.
    Assumes      disjoint cells, public keys and threshold.
    Not covered  time and memory, which follow the number of combinations with rows and of those that noise lifts: whoever
                 translates the question sees to it that these fit an answer.
    Reference    Cormode, Procopiuc, Srivastava, Tran 2012.
    """

    def laws(self, question: ResolvedSparseHistogram, domain: Domain, epsilon: Epsilon) -> tuple[DiscreteLaplace]:
        return (laplace(1, epsilon),)

    def release(self, asked: Asked[ResolvedSparseHistogram, DiscreteLaplace]) -> list[Numbers | None]:
        question = asked.question
        places, exact_counts = asked.engine.occupied(asked.cells, question.keys)

        def shown(cell: int, units: int) -> Numbers:
            here = slice(*np.searchsorted(places, (cell * question.bins, (cell + 1) * question.bins)))
            (law,) = asked.laws[units]
            rows = places[here] - cell * question.bins, exact_counts[here], question.bins
            kept = sparse_counts(asked.entropy, asked.noise, *rows, scale=law.fraction, at_least=question.at_least)
            return tuple(np.stack(kept, axis=1).ravel().tolist())

        return asked.each(shown)
