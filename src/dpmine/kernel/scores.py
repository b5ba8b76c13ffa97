"""Integer scores for private choices, each with its range R.

A split sends rows to branches. Most scores add up a function of each branch's class counts; adding a row changes one
branch of each candidate and moves the scores of all candidates the same way (they are *monotone*), so the range R equals
the sensitivity S. The two *gains*, which take off what the rows are worth unsplit, are not monotone: their R is 2S. Scores
are scaled to integers so that R is exact after rounding too: a scaled score divided by `unit` is the score of the papers.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpmine.kernel.samplers.laplace import Integers

SCALE_BITS = 20


class Score:
    """A function of the class counts in the branches of a split."""

    name: str
    unit: int
    """One unit of the papers' score in our integers."""
    sensitivity: int
    """By how much one row can move a candidate's integer score."""
    monotone = True
    """Whether a row moves the scores of all candidates the same way."""

    def split(self, parts: Integers) -> Integers:
        """[..., branches, classes] -> [...]: the score of a split into these branches."""
        added: Integers = self.branch(parts).sum(axis=-1)
        return added

    def branch(self, class_counts: Integers) -> Integers:
        """[..., classes] -> [...]: what one branch adds, in scores that add up."""
        raise NotImplementedError

    def range(self, calibration: str) -> int:
        """R: `monotone` uses that all candidates move the same way where they do, `generic` is the papers' 2S."""
        return self.sensitivity if calibration == "monotone" and self.monotone else 2 * self.sensitivity


class CountScore(Score):
    """The number of rows. Adding a row raises one candidate's score by one: R = 1."""

    name, unit, sensitivity = "count", 1, 1

    def branch(self, class_counts: Integers) -> Integers:
        total: Integers = np.sum(class_counts, axis=-1, dtype=np.int64)
        return total


class MaxScore(Score):
    """The rows of the largest class. Adding a row raises it by 0 or 1 in one branch: R = 1."""

    name, unit, sensitivity = "max", 1, 1

    def branch(self, class_counts: Integers) -> Integers:
        largest: Integers = np.max(class_counts, axis=-1).astype(np.int64)
        return largest


class GiniScore(Score):
    """Minus the rows times the Gini index: -(t - sum t_c^2 / t), floored after scaling by 2^20.

    F(t) = t - sum t_c^2 / t is concave and homogeneous, hence superadditive, and 0 for one row: adding a row never
    lowers F and raises it by at most 2n / (n + 1) < 2. Flooring keeps both: 0 <= change <= 2 * 2^20, so R = 2 * 2^20.
    """

    name, unit, sensitivity = "gini", 2**SCALE_BITS, 2 * 2**SCALE_BITS

    def branch(self, class_counts: Integers) -> Integers:
        counts = class_counts.astype(np.int64)
        total = np.sum(counts, axis=-1)
        # t < 2^31, so t^2 < 2^62; the quotient and the remainder are scaled apart to stay inside 64 bits.
        impurity = total * total - np.sum(counts * counts, axis=-1)
        whole, rest = np.divmod(impurity, np.maximum(total, 1))
        result: Integers = -((whole << SCALE_BITS) + (rest << SCALE_BITS) // np.maximum(total, 1))
        return result


class MixedScore(Score):
    """Half Gini, half Max: minus the mean of half of Gini's F and of the rows outside the largest class.

    Gini tells splits apart that prepare later ones, Max counts what the last one decides. In integers G + 2 M, with Gini's G
    and M = -(t - max t_c) * 2^20. Adding a row lowers G by 0 to 2 * 2^20 (see there). It raises t by one and max t_c by 0 or
    1, so it lowers 2 M by 0 or 2 * 2^20. Both move down together: R = 4 * 2^20, which is one unit of the mean.
    """

    name, unit, sensitivity = "mixed", 4 * 2**SCALE_BITS, 4 * 2**SCALE_BITS

    def branch(self, class_counts: Integers) -> Integers:
        counts = class_counts.astype(np.int64)
        outside = np.sum(counts, axis=-1) - np.max(counts, axis=-1)
        result: Integers = GiniScore().branch(counts) - (outside << (SCALE_BITS + 1))
        return result


@dataclass(frozen=True)
class InfoGainScore(Score):
    """Minus the rows times the entropy of the class: sum L(t_c) - L(t), where L(t) stands for t log2 t.

    L is built from non-decreasing integer increments d(t) = L(t+1) - L(t), d(0) = 0, constant from the public bound N
    on. Adding a row of class c changes a branch by d(t_c) - d(t), which lies in [-d(N), 0] as t_c <= t: R = d(N)
    exactly, whatever the rounding, and a wrong N costs accuracy, never privacy. (Erratum E1: the sign is this one.)
    """

    rows_at_most: int
    name = "infogain"
    unit = 2**SCALE_BITS

    @cached_property
    def _table(self) -> tuple[Integers, Integers, Integers]:
        """L as a convex piecewise linear function: knots, L at the knots, slope after each knot.

        Every integer up to 2^13 is a knot, then 2^12 knots in every octave: L is off by less than 5e-7 t bits,
        nearly all of it from rounding the slopes.
        """
        knots = [np.arange(min(2**13, self.rows_at_most + 1) + 1, dtype=np.int64)]
        start = 2**13
        while start <= self.rows_at_most:
            knots.append(start + (np.arange(1, 2**12 + 1, dtype=np.int64) * start) // 2**12)
            start *= 2
        knot = np.unique(np.concatenate(knots))
        knot = np.append(knot[knot <= self.rows_at_most], self.rows_at_most + 1)
        exact = [t * math.log2(t) if t else 0.0 for t in knot.tolist()]
        lengths = np.diff(knot)
        slopes = np.rint(np.diff(np.array(exact)) / lengths * self.unit).astype(np.int64)
        slopes = np.maximum.accumulate(np.append(slopes, slopes[-1]))
        values = np.concatenate(([0], np.cumsum(slopes[:-1] * lengths)))
        return knot, values, slopes

    @property
    def sensitivity(self) -> int:  # type: ignore[override]
        return int(self._table[2][-1])

    def length_log(self, counts: Integers) -> Integers:
        """L(t) for every count."""
        knot, values, slopes = self._table
        place = np.searchsorted(knot, counts, side="right") - 1
        result: Integers = values[place] + (counts - knot[place]) * slopes[place]
        return result

    def branch(self, class_counts: Integers) -> Integers:
        counts = class_counts.astype(np.int64)
        result: Integers = np.sum(self.length_log(counts), axis=-1) - self.length_log(np.sum(counts, axis=-1))
        return result


MAX = MaxScore()


class GainScore(Score):
    """What a split wins: a score that adds up over branches, less the same score of all their rows unsplit.

    Adding a row moves the branches' sum by 0 to S one way, and the score of the unsplit rows by 0 to S the same way, so it
    moves their difference by at most S either way. Candidates may be about different rows (see `Specialise`), where one
    rises as another falls: R = 2S. For Max the gain is in rows, S = 1; for Gini S = 2.
    """

    monotone = False

    def __init__(self, base: Score = MAX) -> None:
        self.base, self.unit, self.sensitivity = base, base.unit, base.sensitivity
        self.name = "gain" if base is MAX else f"{base.name}-gain"

    def split(self, parts: Integers) -> Integers:
        return self.base.split(parts) - self.base.branch(parts.astype(np.int64).sum(axis=-2))


class InfoGainPerRow(Score):
    """The information gain in bits a row, as DiffGen scores it: the mutual information of branch and class.

    One row moves it by at most 1 bit, either way and whatever the number of classes (docs/proofs.md): S = 1. Rounding to
    2^-20 bits adds less than one step; the doubles behind it are off by less than 2^-38 bits. Hence S = 2^20 + 2 in steps.
    """

    name, unit, sensitivity, monotone = "infogain-per-row", 2**SCALE_BITS, 2**SCALE_BITS + 2, False

    def split(self, parts: Integers) -> Integers:
        counts = parts.astype(np.float64)
        inside = _length_log(counts.sum(axis=-1)).sum(axis=-1) - _length_log(counts).sum(axis=(-2, -1))
        together = counts.sum(axis=-2)
        rows = together.sum(axis=-1)
        outside = _length_log(rows) - _length_log(together).sum(axis=-1)
        scaled = (outside - inside) / np.maximum(rows, 1) * self.unit
        gained: Integers = np.maximum(np.rint(scaled), 0).astype(np.int64)
        return gained


def _length_log(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """t log2 t, 0 for 0."""
    return counts * np.log2(np.maximum(counts, 1))


@lru_cache(maxsize=64)
def score_named(name: str, rows_at_most: int) -> Score:
    """The score of that name; only InfoGain needs the public bound on the number of rows."""
    if name == "infogain":
        return InfoGainScore(rows_at_most)
    gains = (GainScore(), GainScore(GiniScore()))
    scores: tuple[Score, ...] = (CountScore(), MAX, GiniScore(), MixedScore(), *gains, InfoGainPerRow())
    return next(score for score in scores if score.name == name)


@dataclass(frozen=True)
class RankScore:
    """Minus how far a grid point is from being the quantile of order p/q, in rows times q.

    With L and G the rows below and above the point and n all rows, the point is a p/q-quantile exactly if q L <= p n and
    q G <= (q - p) n; d = max(0, q L - p n, q G - (q - p) n) measures by how much it is not. Adding a row below moves the
    two terms by q - p and -(q - p), a row above by -p and p, a row at the point by -p and -(q - p): d moves by at most
    m = max(p, q - p) either way, so R = 2 m (in rows: 2 max(tau, 1 - tau), 1 for the median).

    Points of a gap without rows have the same L and G, so one score: counts may be of *stretches*, each one occupied point
    or one gap of any length, in order. Fewer than 2^31 rows and q <= 1,000 keep products below 2^41, far inside 64 bits.
    """

    numerator: int
    denominator: int

    @property
    def range(self) -> int:
        return 2 * max(self.numerator, self.denominator - self.numerator)

    def of(self, counts: Integers) -> Integers:
        """[codes] -> [codes]: the score of every grid point, or of every stretch of them."""
        p, q = self.numerator, self.denominator
        up_to = np.cumsum(counts, dtype=np.int64)
        rows = up_to[-1]
        too_high = q * (up_to - counts) - p * rows
        too_low = q * (rows - up_to) - (q - p) * rows
        result: Integers = -np.maximum(0, np.maximum(too_high, too_low))
        return result
