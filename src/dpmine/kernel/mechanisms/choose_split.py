"""The split that best separates the class, by one joint choice over all candidates of all families."""

from collections.abc import Mapping

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.codes.choose_split import CELLS_AT_ONCE, ResolvedChooseSplit
from dpmine.codes.domain import Domain
from dpmine.codes.rows import RowKey
from dpmine.codes.splits import ResolvedSplits
from dpmine.kernel.mechanisms.choosing import choices, loss_of
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.samplers.laplace import Integers
from dpmine.kernel.scores import Score, score_named
from dpmine.noise.laws import ChoiceLoss

FAMILY_MASS = 2**32  # of the base measure; shared evenly by the candidates of a family


class BestSplit(Mechanism[ResolvedChooseSplit, ChoiceLoss], answers=ResolvedChooseSplit):
    """The number of the chosen candidate, counted through the families of its cell.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  the range of the score: `dpmine.kernel.scores` has one for each, proved there.
    Proof        docs/proofs.md#choice-of-a-split.
    Assumes      public candidates; disjoint cells.
    Not covered  time, which follows how many different scores there are.
    Reference    Friedman, Schuster 2010; Mohammed, Chen, Fung, Yu 2011.
    """

    def laws(self, question: ResolvedChooseSplit, domain: Domain, epsilon: Epsilon) -> tuple[ChoiceLoss]:
        return (loss_of(_score(question, domain), question.calibration, question.even_candidates, epsilon),)

    def release(self, asked: Asked[ResolvedChooseSplit, ChoiceLoss]) -> list[Numbers | None]:
        question, score = asked.question, _score(asked.question, asked.domain)
        keys = list({family.key: None for families in question.families for family in families})
        groups = [(question.target, key) for key in keys]
        exact = dict(zip(keys, asked.engine.counts(asked.cells, groups), strict=True))
        blocks: dict[int, BlockScores] = {}

        def candidates(cell: int) -> tuple[Integers, Integers]:
            start = cell - cell % CELLS_AT_ONCE
            if start not in blocks:
                blocks.clear()  # cells come in order: scores of one block are held at a time
                blocks[start] = BlockScores(
                    score, {key: counts[start : start + CELLS_AT_ONCE] for key, counts in exact.items()}
                )
            families = question.families_of(cell)
            scores = [blocks[start].of(family, cell - start) for family in families]
            return np.concatenate(scores), np.concatenate([family_masses(family) for family in families])

        return choices(asked, question.mechanism, score.unit, candidates)


def _score(question: ResolvedChooseSplit, domain: Domain) -> Score:
    return score_named(question.score, domain.rows_at_most)


def family_masses(family: ResolvedSplits) -> Integers:
    """The base measure: public, the same for every family in all, even within it (up to rounding, which is public too)."""
    return np.full(family.candidates, FAMILY_MASS // family.candidates, dtype=np.int64)


class BlockScores:
    """Scores of candidate splits for a block of cells, each family's computed once for all cells."""

    def __init__(self, score: Score, exact_counts: Mapping[RowKey, Integers]) -> None:
        self._score = score
        self._exact_counts = exact_counts
        self._done: dict[ResolvedSplits, Integers] = {}

    def of(self, family: ResolvedSplits, cell: int) -> Integers:
        every = family.scored_as
        if every not in self._done:
            self._done[every] = self._score.split(every.branches(self._exact_counts[every.key]))
        return family.among(self._done[every][cell]) + family.bonus * self._score.unit
