"""Staircase noise over nested boxes: one law for a number (the staircase mechanism) and for a vector (a box as unit ball).

Levels k = 0, 1, 2, ... are the boxes |z_j| <= k L_j + r_j of whole numbers, with L_j the sensitivity of coordinate j and
0 <= r_j < L_j a public choice. A point has probability proportional to exp(-epsilon k), k being the first level that holds
it. See docs/proofs.md#box-staircase.
"""

import itertools
from fractions import Fraction
from functools import lru_cache

from dpmine.base.exponentials import exp_bounds
from dpmine.kernel.samplers.coins import interval_of
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import geometric

Vector = tuple[int, ...]

_MORE = 64  # bits of exp(-rate) beyond those of the uniform real: 1 - exp(-rate) may be as small as 2^-30


def box_staircase(
    entropy: Entropy, lengths: Vector, inner: Vector, *, epsilon: Fraction, size: int = 1
) -> tuple[Vector, ...]:
    """`size` independent vectors Z of whole numbers with P(Z = z) proportional to exp(-epsilon level(z)), exactly.

    Claim        adding a draw to a vector of whole numbers is epsilon-DP, for adding or removing one unit that moves
                 coordinate j by at most lengths[j], all of them at once.
    Sensitivity  lengths, one for each coordinate, declared by the query.
    Proof        if |s_j| <= L_j for all j, z + s lies in the box of level(z) + 1: levels of z and z + s differ by at most
                 one. docs/proofs.md#box-staircase.
    Assumes      whole numbers; lengths >= 1 and 0 <= inner < lengths, all public: the law (`BoxStaircase`) checks it.
    Not covered  time, which follows the size of the numbers drawn in a few steps of big integers.
    Reference    Geng, Viswanath 2014 (one dimension); Hardt, Talwar 2010 (K-norm; here the ball is a box).
    """
    dimensions = len(lengths)
    more = geometric(entropy, epsilon, size * (dimensions + 1))
    drawn = []
    for number in range(size):
        degree = _degree(entropy, lengths, inner, epsilon)
        start = number * (dimensions + 1)
        level = degree + sum(more[start : start + degree + 1].tolist())
        drawn.append(tuple(_uniform(entropy, level * length + r) for length, r in zip(lengths, inner, strict=True)))
    return tuple(drawn)


def _uniform(entropy: Entropy, reach: int) -> int:
    """A whole number from -reach to reach."""
    return entropy.below(2 * reach + 1) - reach


def _degree(entropy: Entropy, lengths: Vector, inner: Vector, epsilon: Fraction) -> int:
    """An i with probability proportional to c_i b^i (1 - b)^(d - i), b = exp(-epsilon): see `volume_in_levels`."""
    return interval_of(entropy, entropy.bits(64), 64, lambda bits: _cumulative(lengths, inner, epsilon, bits))


@lru_cache(maxsize=1024)
def _cumulative(lengths: Vector, inner: Vector, epsilon: Fraction, bits: int) -> tuple[Vector, Vector]:
    """Enclosures of the running sums of c_i b^i (1 - b)^(d - i), all times one power of two. Nothing is rounded but b."""
    width = bits + _MORE
    low, high = exp_bounds(epsilon, width)
    rest_low, rest_high = (1 << width) - high, (1 << width) - low
    dimensions = len(lengths)
    lows, highs = [], []
    for degree, amount in enumerate(volume_in_levels(lengths, inner)):
        lows.append(amount * low**degree * rest_low ** (dimensions - degree))
        highs.append(amount * high**degree * rest_high ** (dimensions - degree))
    return (0, *itertools.accumulate(lows)), (0, *itertools.accumulate(highs))


@lru_cache(maxsize=1024)
def volume_in_levels(lengths: Vector, inner: Vector) -> Vector:
    """Whole numbers c_i >= 0 with (points of the box of level k) = sum over i of c_i binomial(k, i), for every k.

    The points are the product of the sides 2 (k L_j + r_j) + 1. Side after side is multiplied in, by
    k binomial(k, i) = i binomial(k, i) + (i + 1) binomial(k, i + 1).
    """
    amounts = [1]
    for length, r in zip(lengths, inner, strict=True):
        constant, slope = 2 * r + 1, 2 * length
        grown = [0] * (len(amounts) + 1)
        for degree, amount in enumerate(amounts):
            grown[degree] += amount * (constant + slope * degree)
            grown[degree + 1] += amount * slope * (degree + 1)
        amounts = grown
    return tuple(amounts)
