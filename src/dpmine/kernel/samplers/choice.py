"""Private choice: the exponential mechanism over any base measure, and permute-and-flip over equal candidates.

Scores are integers, and every score comes with one number, its range R: by how much more one candidate's score can
move than another's when one unit is added or removed. Both mechanisms use the rate epsilon / R.
"""

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.base.exponentials import exp_bounds
from dpmine.kernel.samplers.coins import interval_of, uniform_is_below
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import Integers

BLOCK = 2048  # stretches that one real decides among; of more, a block is chosen first
_EXP_ERROR = 2.0**-40  # relative; numpy's exp on a correctly rounded argument below 745 is a thousand times better
_LARGEST_MASS = 2**50  # of all candidates together: doubles hold every sum of masses exactly


def stretches(scores: Integers, masses: Integers) -> tuple[Integers, Integers, NDArray[np.intp]]:
    """Neighbouring candidates of equal score and equal mass taken together: score, mass of one, first index of each."""
    changes = (np.diff(scores) != 0) | (np.diff(masses) != 0)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1)).astype(np.intp)
    return scores[starts], masses[starts], starts


def exponential(entropy: Entropy, scores: Integers, masses: Integers, *, rate: Fraction) -> int:
    """Choose candidate r with probability proportional to masses[r] * exp(rate * scores[r]), exactly.

    Claim        epsilon-DP with epsilon = rate * R, for adding or removing one unit (also epsilon-bounded-range).
    Sensitivity  R, the range of the score, declared by the score.
    Proof        docs/proofs.md#exponential-mechanism.
    Assumes      integer scores; positive integer masses, below 2^50 in all, that do not depend on the data, unless a mass is
                 that of candidates of equal score taken together.
    Not covered  memory access patterns; with probability below 3e-8, however many candidates there are, a second, slower
                 look at up to 2,048 stretches decides.
    Reference    McSherry, Talwar 2007; bounded range: Dong, Durfee, Rogers 2020.
    """
    if _total(masses) >= _LARGEST_MASS:
        raise RequestError("The masses of a choice must stay below 2^50 in all.")
    score, mass, starts = stretches(scores, masses)
    lengths = np.diff(np.append(starts, scores.size))
    gaps = score.max() - score
    chosen = _chosen_stretch(entropy, gaps, mass * lengths, rate)
    return int(starts[chosen]) + entropy.below(int(lengths[chosen]))


def _total(masses: Integers) -> int:
    """The sum of all masses, whatever they are: upper and lower halves apart, which 64 bits hold for 2^31 of them."""
    return (int((masses >> 32).sum()) << 32) + int((masses & (2**32 - 1)).sum())


def _chosen_stretch(entropy: Entropy, gaps: Integers, weights: Integers, rate: Fraction) -> int:
    """An index drawn with probability proportional to weights[i] * exp(-rate * gaps[i]), its block first."""
    if gaps.size <= BLOCK:
        return _chosen_interval(entropy, gaps, weights, rate)
    first = _chosen_block(entropy, gaps, weights, rate)
    near = gaps[first : first + BLOCK]
    return first + _chosen_interval(entropy, near - near.min(), weights[first : first + BLOCK], rate)


def _chosen_block(entropy: Entropy, gaps: Integers, weights: Integers, rate: Fraction) -> int:
    """Where a block starts, drawn with probability proportional to the sum W of weights[i] * exp(-rate * gaps[i]) in it.

    By rejection: one uniform whole number picks a block in proportion to `upper` >= 2^shift W, and the block is kept with
    probability 2^shift W / upper, by an exact coin; else all is drawn anew. As `lower` <= 2^shift W is close, nearly every
    block is kept without a look at exact exponentials; where one is needed, this one block's are enough.
    """
    lower, upper, shift = _block_bounds(gaps, weights, rate)
    ends = list(accumulate(upper))
    while True:
        block = bisect_right(ends, entropy.below(ends[-1]))
        inside = slice(block * BLOCK, (block + 1) * BLOCK)
        if _keeps(entropy, gaps[inside], weights[inside], rate, lower[block], upper[block], shift):
            return block * BLOCK


def _keeps(entropy: Entropy, gaps: Integers, weights: Integers, rate: Fraction, lower: int, upper: int, shift: int) -> bool:
    """True with probability exactly 2^shift W / upper: at once where 64 bits of a real are below lower / upper."""
    drawn = entropy.bits(64)
    if (drawn + 1) * upper <= lower << 64:
        return True
    return uniform_is_below(entropy, drawn, 64, lambda bits: _kept(bits, gaps, weights, rate, upper, shift))


def _block_bounds(gaps: Integers, weights: Integers, rate: Fraction) -> tuple[list[int], list[int], int]:
    """Whole numbers below and above 2^shift times the sum of each block, and the shift.

    Errors as in `_by_doubles`; a block's sum is that of at most BLOCK terms, in whatever order they are added. What
    exponentials below 2^-1022 are off by is less than 2^-900 after the shift: the one unit more on either side is enough.
    """
    arguments = np.minimum(gaps.astype(np.float64) * float(rate), 745.0)
    sums = np.add.reduceat(weights.astype(np.float64) * np.exp(-arguments), np.arange(0, gaps.size, BLOCK))
    error = 2 * _EXP_ERROR + 4 * BLOCK * 2.0**-53
    shift = 62 - math.frexp(float(sums.sum()))[1]  # the sum is at least 1 and below 2^51: the shift is from 11 to 61
    lower = [max(math.floor(math.ldexp(one, shift) * (1 - error)) - 1, 0) for one in sums.tolist()]
    upper = [math.ceil(math.ldexp(one, shift) * (1 + error)) + 1 for one in sums.tolist()]
    return lower, upper, shift


def _kept(bits: int, gaps: Integers, weights: Integers, rate: Fraction, upper: int, shift: int) -> tuple[int, int]:
    """Enclosure of `bits` bits of the probability 2^shift W / upper that a block is kept."""
    lows, highs = _ends(bits + shift, gaps, weights, rate)
    return lows[-1] // upper, min(-(-highs[-1] // upper), 1 << bits)


def _chosen_interval(entropy: Entropy, gaps: Integers, weights: Integers, rate: Fraction) -> int:
    """An index drawn with probability proportional to weights[i] * exp(-rate * gaps[i]).

    One uniform real u decides: the intervals of the candidates tile [0, total), and u * total lies in one of them.
    Doubles with a proven error bound decide all but a tiny share of the draws; the others are decided by integer
    enclosures that are narrowed, together with u, until one candidate is left. The law is exact either way.
    """
    drawn = entropy.bits(64)
    place = _by_doubles(drawn, gaps, weights, rate)
    if place is not None:
        return place
    return interval_of(entropy, drawn, 64, lambda bits: _ends(bits, gaps, weights, rate))


def _by_doubles(drawn: int, gaps: Integers, weights: Integers, rate: Fraction) -> int | None:
    """The chosen index if doubles can tell, else None.

    The argument has relative error 2^-51 (two roundings), so below 745 the exponential is off by less than 745 * 2^-51
    plus numpy's own few units in the last place: well under _EXP_ERROR. Each of n additions adds at most 2^-53 of the total.
    """
    arguments = np.minimum(gaps.astype(np.float64) * float(rate), 745.0)
    ends = np.cumsum(weights.astype(np.float64) * np.exp(-arguments))
    total = float(ends[-1])
    error = total * (2 * _EXP_ERROR + 4 * len(weights) * 2.0**-53) + len(weights) * 2.0**50 * 5e-324
    point = drawn / 2**64 * total
    place = int(np.searchsorted(ends, point, side="right"))
    below = float(ends[place - 1]) if place else 0.0
    if place == len(weights) or (place and point - below <= 2 * error):
        return None
    if place < len(weights) - 1 and float(ends[place]) - point <= 2 * error + total * 2.0**-62:
        return None
    return place


def _ends(bits: int, gaps: Integers, weights: Integers, rate: Fraction) -> tuple[list[int], list[int]]:
    """Enclosures of `bits` bits of where the intervals of the candidates begin and end."""
    lows, highs = [0], [0]
    for gap, weight in zip(gaps.tolist(), weights.tolist(), strict=True):
        low, high = exp_bounds(rate * gap, bits)
        lows.append(lows[-1] + weight * low)
        highs.append(highs[-1] + weight * high)
    return lows, highs


def permute_and_flip(entropy: Entropy, scores: Integers, *, rate: Fraction) -> int:
    """Visit equal candidates in random order; accept each with probability exp(-rate * (best - score)); first wins.

    Claim        epsilon-DP with epsilon = rate * R, for adding or removing one unit.
    Sensitivity  R, the range of the score, declared by the score.
    Proof        docs/proofs.md#permute-and-flip.
    Assumes      integer scores; every candidate counts once. A weight is only legal as that many copies in `scores`.
    Not covered  memory access patterns. All coins are flipped, also those after the winner.
    Reference    McKenna, Sheldon 2020, Algorithm 1; Ding et al. 2021 for its equality with noisy max.
    """
    order = entropy.order(scores.size)
    gaps = scores.max() - scores
    accepted = _coins(entropy, gaps[order], rate)
    return int(order[np.argmax(accepted)])


def _coins(entropy: Entropy, gaps: Integers, rate: Fraction) -> NDArray[np.bool_]:
    """Independent coins with probabilities exp(-rate * gaps[i]), exactly; doubles first, integers where they can't tell."""
    words = entropy.words(2 * gaps.size).astype(np.uint64)
    drawn = (words[: gaps.size] << np.uint64(32)) | words[gaps.size :]
    uniform = drawn.astype(np.float64) / 2.0**64
    chance = np.exp(-np.minimum(gaps.astype(np.float64) * float(rate), 745.0))
    accepted: NDArray[np.bool_] = (uniform < chance) | (gaps == 0)
    unsure = (np.abs(uniform - chance) <= chance * _EXP_ERROR + 2.0**-50) & (gaps != 0)
    for place in np.flatnonzero(unsure):
        x = rate * int(gaps[place])
        accepted[place] = uniform_is_below(entropy, int(drawn[place]), 64, lambda bits, x=x: exp_bounds(x, bits))  # type: ignore[misc]
    return accepted
