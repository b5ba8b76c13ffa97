"""The split that best separates the class, by one joint choice over all candidates of all families."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.facts.facts import Facts
from dpmine.kernel.mechanisms.choosing import loss_of, rate_of
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers, answers
from dpmine.kernel.samplers.laplace import Integers
from dpmine.kernel.scores import (
    Score,
    children_scores,
    multiway_scores,
    score_named,
    subset_scores,
    threshold_scores,
    whole_scores,
)
from dpmine.language.resolved import RowKey
from dpmine.noise.laws import ChoiceLoss
from dpmine.questions.choose_split import CELLS_AT_ONCE, ResolvedChooseSplit
from dpmine.questions.splits import (
    ResolvedDivide,
    ResolvedMultiway,
    ResolvedSpecialise,
    ResolvedSplits,
    ResolvedStay,
    ResolvedSubsets,
    ResolvedThresholds,
)

FAMILY_MASS = 2**32  # of the base measure; shared evenly by the candidates of a family


@answers(ResolvedChooseSplit)
class BestSplit(Mechanism[ResolvedChooseSplit, ChoiceLoss]):
    """The number of the chosen candidate, counted through the families of its cell.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  the range of the score: `dpmine.kernel.scores` has one for each, proved there.
    Proof        docs/proofs.md#choice-of-a-split.
    Assumes      public candidates; disjoint cells.
    Not covered  time, which follows how many different scores there are.
    Reference    Friedman, Schuster 2010; Mohammed, Chen, Fung, Yu 2011.
    """

    def laws(self, question: ResolvedChooseSplit, facts: Facts, epsilon: Epsilon) -> tuple[ChoiceLoss]:
        """As if every family had as many candidates as the largest: each has the same share of the base measure."""
        candidates = max(len(families) * max(f.candidates for f in families) for families in question.families)
        return (loss_of(_score(question, facts), question.calibration, candidates, epsilon),)

    def release(self, asked: Asked[ResolvedChooseSplit, ChoiceLoss]) -> list[Numbers | None]:
        question, score = asked.question, _score(asked.question, asked.facts)
        keys = list({family.key: None for families in question.families for family in families})
        groups = [(question.target, key) for key in keys]
        exact = dict(zip(keys, asked.engine.counts(asked.cells, groups), strict=True))
        blocks: dict[int, BlockScores] = {}

        def split(cell: int, units: int) -> Numbers:
            start = cell - cell % CELLS_AT_ONCE
            if start not in blocks:
                blocks.clear()  # cells come in order: scores of one block are held at a time
                blocks[start] = BlockScores(
                    score, {key: counts[start : start + CELLS_AT_ONCE] for key, counts in exact.items()}
                )
            families = question.families_of(cell)
            scores = np.concatenate([blocks[start].of(family, cell - start) for family in families])
            masses = np.concatenate([family_masses(family) for family in families])
            (law,) = asked.laws[units]
            return (asked.choose(question.mechanism, scores, masses, rate_of(law, score.unit)),)

        return asked.each(split)


def _score(question: ResolvedChooseSplit, facts: Facts) -> Score:
    return score_named(question.score, facts.rows_at_most)


def family_masses(family: ResolvedSplits) -> Integers:
    """The base measure: public, the same for every family in all, even within it (up to rounding, which is public too)."""
    return np.full(family.candidates, FAMILY_MASS // family.candidates, dtype=np.int64)


class BlockScores:
    """Scores of candidate splits for a block of cells, each key's computed once for all cells."""

    def __init__(self, score: Score, exact_counts: Mapping[RowKey, Integers]) -> None:
        self._score = score
        self._exact_counts = exact_counts
        self._done: dict[object, Integers] = {}

    def of(self, family: ResolvedSplits, cell: int) -> Integers:
        return _SCORES[type(family)](self, family, cell)

    def _multiway(self, family: ResolvedMultiway, cell: int) -> Integers:
        name = ResolvedMultiway, family.key
        return self._once(name, cell, lambda: multiway_scores(self._score, self._of_key(family)))

    def _thresholds(self, family: ResolvedThresholds, cell: int) -> Integers:
        # Cells may ask for different stretches of one attribute: all thresholds are scored once, then cut.
        name = ResolvedThresholds, family.key
        every = self._once(name, cell, lambda: threshold_scores(self._score, self._of_key(family)))
        return every[family.first - 1 : family.first - 1 + family.points]

    def _subsets(self, family: ResolvedSubsets, cell: int) -> Integers:
        members = np.zeros((len(family.subsets), family.key.size), dtype=bool)
        for number, subset in enumerate(family.subsets):
            members[number, list(subset)] = True
        return self._once(family, cell, lambda: subset_scores(self._score, self._of_key(family), members))

    def _specialise(self, family: ResolvedSpecialise, cell: int) -> Integers:
        return self._once(family, cell, lambda: children_scores(self._score, self._of_key(family), family.children))

    def _divide(self, family: ResolvedDivide, cell: int) -> Integers:
        inside = self._of_key(family)[:, :, family.first : family.end]
        return self._once(family, cell, lambda: threshold_scores(self._score, inside))

    def _stay(self, family: ResolvedStay, cell: int) -> Integers:
        whole = self._once(ResolvedStay, cell, lambda: whole_scores(self._score, self._of_key(family)))
        return whole + family.bonus * self._score.unit

    def _of_key(self, family: ResolvedSplits) -> Integers:
        return self._exact_counts[family.key]

    def _once(self, name: object, cell: int, compute: Callable[[], Integers]) -> Integers:
        if name not in self._done:
            self._done[name] = compute()
        scores: Integers = self._done[name][cell]
        return scores


_SCORES: dict[type[ResolvedSplits], Callable[[BlockScores, Any, int], Integers]] = {
    ResolvedMultiway: BlockScores._multiway,
    ResolvedThresholds: BlockScores._thresholds,
    ResolvedSubsets: BlockScores._subsets,
    ResolvedSpecialise: BlockScores._specialise,
    ResolvedDivide: BlockScores._divide,
    ResolvedStay: BlockScores._stay,
}
