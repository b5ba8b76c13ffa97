"""Sums of several attributes at once, after the number of rows if wanted, with one noise for all of them."""

import numpy as np

from dpmine.base.epsilon import Epsilon, shares
from dpmine.codes.domain import Domain
from dpmine.codes.vector_sums import ResolvedVectorSums, lengths_of
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.noise.laws import BoxStaircase, DiscreteLaplace, laplace, staircase

VectorLaw = BoxStaircase | DiscreteLaplace


class SumsAtOnce(Mechanism[ResolvedVectorSums, VectorLaw], answers=ResolvedVectorSums):
    """All sums with noise for a box of changes, or each with noise of its own.

    Claim        epsilon-DP for adding or removing one row, for all numbers together.
    Sensitivity  one row moves number j by at most L_j, all of them at once: the largest absolute value between its bounds
                 (from the middle where centred), and 1 for the number of rows. A row with a gap moves some of them by 0.
    Price        with ball "l1", even shares of epsilon, in whole units, which add up to it.
    Proof        docs/proofs.md#sums-at-once.
    Assumes      values clamped to public bounds, as every engine has them.
    Not covered  values outside the bounds, which count as the bounds.
    Reference    Geng, Viswanath 2014; Hardt, Talwar 2010.
    """

    def laws(self, question: ResolvedVectorSums, domain: Domain, epsilon: Epsilon) -> tuple[VectorLaw, ...]:
        lengths = lengths_of(question.grids(domain), with_count=question.with_count)
        if question.ball == "l1":
            paid = shares(epsilon.units, len(lengths))
            return tuple(laplace(length, Epsilon(share)) for length, share in zip(lengths, paid, strict=True))
        return staircase(lengths, question.inner, epsilon)

    def release(self, asked: Asked[ResolvedVectorSums, VectorLaw]) -> list[Numbers | None]:
        question, amounts = asked.question, asked.question.amounts
        number, each = (0,) * len(amounts), np.eye(len(amounts), dtype=int).tolist()
        if question.with_count:
            (sums,) = asked.engine.sums(asked.cells, amounts, (number, *map(tuple, each))).tolist()
            pairs = [(sums[0], steps) for steps in sums[1:]]
        else:
            pairs = [asked.engine.sums(asked.cells, (amount,), ((0,), (1,)))[0].tolist() for amount in amounts]
        grids = question.grids(asked.domain)
        exact_sums = [pairs[0][0]] if question.with_count else []
        exact_sums += [grid.total(rows, steps) for grid, (rows, steps) in zip(grids, pairs, strict=True)]
        return [asked.noisy(exact_sums, asked.laws[asked.units[0]])]
