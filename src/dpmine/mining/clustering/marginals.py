"""What is known of each attribute alone: where a tree should cut it, and where in an interval its rows are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.codes.private_tree import LARGEST_CUT_SCORE, run_number
from dpmine.facts.kinds.numeric import MOST_GRID_POINTS, Numeric
from dpmine.language.keys import LAST, Bins
from dpmine.mining.clustering.space import Space
from dpmine.questions.private_tree import CutRule
from dpmine.tables.private_table import PrivateTable

BINS = 32  # of each attribute
UNEVEN_BINS = 128  # that cuts keep to where cells are unequally wide: then hardly any bin holds several of them
FLOOR = 0.05  # deviations of noise that a bin counts at least when cuts are weighed
LEAST = 1e-3  # rows that it counts in any case, so that no interval is without mass where there is hardly any noise
SEEN = 2.0  # deviations of noise above which a bin says where rows are
LEAST_ENTROPY = 0.02  # bits: no cut is divided by less

Sums = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Marginals:
    """Noisy histograms of the attributes, as running sums by code of mass and of mass x position.

    weighed  with a floor in every bin, for cutting
    seen     only the bins that rise out of the noise, for the positions of leaves
    """

    space: Space
    weighed: tuple[Sums, ...]
    seen: tuple[Sums, ...]

    @classmethod
    def of(cls, private: PrivateTable, space: Space, epsilon: Epsilon) -> Marginals:
        weighed, seen = [], []
        for attribute, edges in zip(space.attributes, space.edges, strict=True):
            starts = _bin_starts(attribute, BINS)
            counted = private.histogram(bins_of(attribute, starts[1:].tolist()), epsilon=epsilon)
            noisy, deviation = counted.counts.astype(np.float64), counted.standard_deviation
            clear = np.where(noisy > SEEN * deviation, noisy, 0)
            weighed.append(_running(np.maximum(noisy, max(FLOOR * deviation, LEAST)), starts, attribute, edges))
            seen.append(_running(clear if clear.sum() > 0 else np.ones(len(starts)), starts, attribute, edges))
        return cls(space, tuple(weighed), tuple(seen))

    def cut_rules(self) -> tuple[CutRule, ...]:
        """For each attribute and each run of its bins where to cut it, and what that is worth, in whole numbers.

        Worth: how much of the variance a cut takes away, for each bit that it tells about the rows. A bit costs tree: what
        splits off few rows that lie far out is cheap, what halves a dense crowd is dear.
        """
        found = [self._runs(place) for place in range(self.space.dimensions)]
        largest = max(max(scores.max(), inside * MOST_GRID_POINTS**2) for scores, _, inside in found)
        unit = LARGEST_CUT_SCORE / max(largest, 1e-300)
        rules = []
        for attribute, (scores, cuts, inside) in zip(self.space.attributes, found, strict=True):
            starts = tuple(_rule_starts(attribute).tolist())
            whole = tuple(int(score) for score in np.floor(scores * unit))
            rules.append(CutRule(attribute.name, starts, whole, tuple(cuts.tolist()), max(int(inside * unit), 0)))
        return tuple(rules)

    def _runs(self, place: int) -> tuple[NDArray[np.float64], NDArray[np.int64], float]:
        attribute, sums = self.space.attributes[place], self.weighed[place]
        starts = _rule_starts(attribute)
        bins = len(starts)
        ends = np.append(starts, attribute.cells)
        scores = np.zeros(bins * (bins + 1) // 2)
        cuts = np.zeros(len(scores), dtype=np.int64)
        for first in range(bins):
            for after in range(first + 2, bins + 1):
                inner = np.arange(first + 1, after)
                worth = _worth(sums, int(ends[first]), ends[inner], int(ends[after]))
                number = run_number(first, after, bins)
                scores[number], cuts[number] = worth.max(), inner[np.argmax(worth)]
        # A bin is taken as evenly filled: halving w codes, each so wide, takes away (w width)^2 / 16 of variance, for one
        # bit. Where they are not equally wide, a bin holds one or a few that are nearly so, and the typical width will do.
        width = float(np.median(np.diff(self.space.edges[place])))
        return scores, cuts, width**2 / 16

    def middle(self, lows: Sequence[int], highs: Sequence[int]) -> list[float]:
        """Where the rows of a box are, attribute by attribute; its middle where nothing is known."""
        middles = []
        for place, (low, high) in enumerate(zip(lows, highs, strict=True)):
            mass, moment = self.seen[place][:, high] - self.seen[place][:, low]
            empty = (self.space.edges[place][low] + self.space.edges[place][high]) / 2
            middles.append(float(moment / mass) if mass > 1e-9 else empty)
        return middles


def bins_of(attribute: Numeric, codes: Sequence[int]) -> Bins:
    """Of rows that have a value: there are no gaps to be told apart."""
    return Bins(attribute.name, tuple(attribute.label(code) for code in codes), LAST)


def _bin_starts(attribute: Numeric, bins: int) -> NDArray[np.int64]:
    """The first codes of about so many bins with equally many codes."""
    return np.unique(attribute.cells * np.arange(bins, dtype=np.int64) // bins)


def _rule_starts(attribute: Numeric) -> NDArray[np.int64]:
    """The first codes of the bins that a tree's cuts keep to."""
    return _bin_starts(attribute, BINS if attribute.step is not None else UNEVEN_BINS)


def _running(masses: NDArray[np.float64], starts: NDArray[np.int64], attribute: Numeric, edges: NDArray[np.float64]) -> Sums:
    """Running sums over codes, each bin's mass spread evenly over its values."""
    values = np.diff(np.array([*attribute.starts, attribute.values]))
    in_bins = np.add.reduceat(values, starts)
    each = np.repeat(masses / in_bins, np.diff(np.append(starts, attribute.cells))) * values
    positions = (edges[:-1] + edges[1:]) / 2
    return np.concatenate([np.zeros((2, 1)), np.cumsum([each, each * positions], axis=1)], axis=1)


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
