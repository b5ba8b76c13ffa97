"""What is known of each attribute alone: where a tree should cut it, and where in an interval its rows are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.codes.private_tree import LARGEST_CUT_SCORE, run_number
from dpmine.facts.kinds.numeric import MOST_GRID_POINTS, Numeric
from dpmine.language.keys import Bins
from dpmine.mining.clustering.space import Space
from dpmine.questions.private_tree import CutRule
from dpmine.tables.private_table import PrivateTable

BINS = 32  # of each attribute
FLOOR = 0.05  # deviations of noise that a bin counts at least when cuts are weighed
LEAST = 1e-3  # rows that it counts in any case, so that no interval is without mass where there is hardly any noise
SEEN = 2.0  # deviations of noise above which a bin says where rows are
LEAST_ENTROPY = 0.02  # bits: no cut is divided by less

Sums = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Marginals:
    """Noisy histograms of the attributes, as running sums by code of mass, mass x position, mass x position squared.

    weighed  with a floor in every bin, for cutting
    seen     only the bins that rise out of the noise, for the positions of leaves
    """

    space: Space
    edges: tuple[NDArray[np.int64], ...]
    weighed: tuple[Sums, ...]
    seen: tuple[Sums, ...]

    @classmethod
    def of(cls, private: PrivateTable, space: Space, epsilon: Epsilon) -> Marginals:
        edges, weighed, seen = [], [], []
        for attribute, scale in zip(space.attributes, space.scales, strict=True):
            starts = np.unique(attribute.size * np.arange(BINS, dtype=np.int64) // BINS)
            counted = private.histogram(bins_of(attribute, starts[1:].tolist()), epsilon=epsilon)
            noisy, deviation = counted.counts.astype(np.float64), counted.standard_deviation
            clear = np.where(noisy > SEEN * deviation, noisy, 0)
            edges.append(starts)
            weighed.append(_running(np.maximum(noisy, max(FLOOR * deviation, LEAST)), starts, attribute.size, scale))
            seen.append(_running(clear if clear.sum() > 0 else np.ones(len(starts)), starts, attribute.size, scale))
        return cls(space, tuple(edges), tuple(weighed), tuple(seen))

    def cut_rules(self) -> tuple[CutRule, ...]:
        """For each attribute and each run of its bins where to cut it, and what that is worth, in whole numbers.

        Worth: how much of the variance a cut takes away, for each bit that it tells about the rows. A bit costs tree: what
        splits off few rows that lie far out is cheap, what halves a dense crowd is dear.
        """
        found = [self._runs(place) for place in range(self.space.dimensions)]
        largest = max(max(scores.max(), inside * MOST_GRID_POINTS**2) for scores, _, inside in found)
        unit = LARGEST_CUT_SCORE / max(largest, 1e-300)
        rules = []
        for attribute, starts, (scores, cuts, inside) in zip(self.space.attributes, self.edges, found, strict=True):
            whole = tuple(int(score) for score in np.floor(scores * unit))
            rules.append(
                CutRule(attribute.name, tuple(starts.tolist()), whole, tuple(cuts.tolist()), max(int(inside * unit), 0))
            )
        return tuple(rules)

    def _runs(self, place: int) -> tuple[NDArray[np.float64], NDArray[np.int64], float]:
        starts, sums = self.edges[place], self.weighed[place]
        bins = len(starts)
        ends = np.append(starts, self.space.attributes[place].size)
        scores = np.zeros(bins * (bins + 1) // 2)
        cuts = np.zeros(len(scores), dtype=np.int64)
        for first in range(bins):
            for after in range(first + 2, bins + 1):
                inner = np.arange(first + 1, after)
                worth = _worth(sums, int(ends[first]), ends[inner], int(ends[after]))
                number = run_number(first, after, bins)
                scores[number], cuts[number] = worth.max(), inner[np.argmax(worth)]
        # A bin is taken as evenly filled: halving w codes takes away (w scale)^2 / 16 of the variance, for one bit.
        return scores, cuts, self.space.scales[place] ** 2 / 16

    def middle(self, lows: Sequence[int], highs: Sequence[int]) -> list[float]:
        """Where the rows of a box are, attribute by attribute; its middle where nothing is known."""
        middles = []
        for place, (low, high) in enumerate(zip(lows, highs, strict=True)):
            mass, moment, _ = self.seen[place][:, high] - self.seen[place][:, low]
            empty = (low + high - 1) / 2 * self.space.scales[place]
            middles.append(float(moment / mass) if mass > 1e-9 else empty)
        return middles


def bins_of(attribute: Numeric, codes: Sequence[int]) -> Bins:
    return Bins(attribute.name, tuple(attribute.label(code) for code in codes))


def _running(masses: NDArray[np.float64], starts: NDArray[np.int64], size: int, scale: int) -> Sums:
    """Running sums over codes, each bin's mass spread evenly over its codes."""
    lengths = np.diff(np.append(starts, size))
    each = np.repeat(masses / lengths, lengths)
    positions = np.arange(size) * float(scale)
    return np.concatenate([np.zeros((3, 1)), np.cumsum([each, each * positions, each * positions**2], axis=1)], axis=1)


def _worth(sums: Sums, low: int, cuts: NDArray[np.int64], high: int) -> NDArray[np.float64]:
    """Variance taken away for each bit, for every cut of an interval."""
    total = sums[:, high] - sums[:, low]
    left = sums[:, cuts] - sums[:, [low]]
    right = total[:, None] - left
    share = np.clip(left[0] / total[0], 1e-12, 1 - 1e-12)
    apart = left[1] / np.maximum(left[0], 1e-12) - right[1] / np.maximum(right[0], 1e-12)
    entropy = -(share * np.log2(share) + (1 - share) * np.log2(1 - share))
    worth: NDArray[np.float64] = share * (1 - share) * apart**2 / np.maximum(entropy, LEAST_ENTROPY)
    return worth
