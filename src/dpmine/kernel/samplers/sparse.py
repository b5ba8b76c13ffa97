"""The sparse histogram: noisy counts of any number of combinations, of which only those above a threshold are shown.

Every combination gets noise, also those without rows: if only combinations with rows were shown, seeing one would prove that
somebody is in it. But combinations without rows all have the same law, so they are not visited one by one: the gaps between
those that noise lifts over the threshold are geometric, and so is what lies above it.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpmine.base.exponentials import exp_bounds
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import LIMIT, Integers, NoiseSource, add_noise, geometric

_RELATIVE, _ABSOLUTE = 2.0**-46, 2.0**-50  # generous bounds on the errors of logarithms and quotients in doubles
_SURELY_RARE = 200  # rate * at_least from which on the chance of a success, below exp(-200), is not computed as a double


def sparse_counts(
    entropy: Entropy,
    noise: NoiseSource,
    places: Integers,
    exact_counts: Integers,
    combinations: int,
    *,
    scale: Fraction,
    at_least: int,
) -> tuple[Integers, Integers]:
    """Places and noisy counts of at least `at_least`, by rising place. `places` are those with rows, rising too.

    Claim        (1/scale)-DP for adding or removing one row: in law, discrete Laplace noise on all combinations, of which
                 those below the threshold are struck out.
    Sensitivity  L1 1: a row falls into exactly one combination.
    Price        epsilon = 1/scale, whatever the threshold and the number of combinations.
    Proof        A combination without rows shows a count c >= at_least >= 1 with the probability of noise c, which is
                 a^c (1 - a) / (1 + a) for a = exp(-1/scale): it passes with p = a^at_least / (1 + a), independently of the
                 others, and what it then lies above the threshold is geometric with ratio a. Gaps between successes of
                 independent coins are geometric with ratio 1 - p. So places and counts of the empty combinations have the
                 law of noising all of them; together with the noisy counts of the others this is the noisy histogram with
                 its small counts struck out, which is a function of a private answer. docs/proofs.md#sparse-histogram.
    Assumes      at_least >= 1 and `combinations` are public; each row is in one combination.
    Not covered  time and memory, which follow the number of combinations with rows and of counts shown.
    Reference    Cormode, Procopiuc, Srivastava, Tran 2012 (sampling empty cells); Mohammed et al. 2011 use at_least = 1.
    """
    scale = noise.actual_scale(scale)  # combinations with and without rows must have the very same noise
    noisy = add_noise(exact_counts, noise, scale)
    shown = noisy >= at_least
    ranks = _successes(entropy, combinations - len(places), Fraction(1) / scale, at_least)
    # The place of the empty combination of rank r: as many occupied ones lie before it as have at most r empty ones before.
    empty = ranks + np.searchsorted(places - np.arange(len(places)), ranks, side="right")
    lifted = np.minimum(geometric(entropy, 1 / scale, len(ranks)) + at_least, LIMIT)
    all_places = np.concatenate((places[shown], empty)).astype(np.int64)
    order = np.argsort(all_places, kind="stable")  # which only merges, as both parts rise
    return all_places[order], np.concatenate((noisy[shown], lifted))[order]


def _successes(entropy: Entropy, trials: int, rate: Fraction, at_least: int) -> Integers:
    """The numbers of the trials, out of 0 .. trials - 1, that succeed: each on its own with p = a^at_least / (1 + a)."""
    ended, found = 0, [np.zeros(0, dtype=np.int64)]
    while ended < trials:
        expected = _chance(rate, at_least) * (trials - ended)
        gaps = _gaps(entropy, round(expected + 5 * math.sqrt(expected)) + 4, rate, at_least, trials)
        ranks = ended + np.cumsum(gaps + 1) - 1  # gaps are cut at `trials`, so the first sum beyond it cannot overflow
        inside = int(np.argmax(ranks >= trials)) if np.any(ranks >= trials) else len(ranks)
        found.append(ranks[:inside])
        ended = trials if inside < len(ranks) else int(ranks[-1]) + 1
    return np.concatenate(found)


def _gaps(entropy: Entropy, size: int, rate: Fraction, at_least: int, most: int) -> Integers:
    """How many trials fail before the next success, `size` times, cut at `most`; exactly.

    A gap is at least j with probability q^j, q = 1 - p: it is the number of j >= 1 with U < q^j, that is the whole part of
    t = log U / log q. Doubles enclose t; where the enclosure holds a whole number, exact integers decide.
    """
    drawn = np.frombuffer(entropy.bytes(8 * size), dtype="<u8")
    uniform = drawn.astype(np.float64) / 2.0**64
    decay = -math.log1p(-_chance(rate, at_least))
    with np.errstate(divide="ignore", invalid="ignore"):  # 64 bits of zeros: infinity less infinity, which says nothing
        logarithm = -np.log(uniform)
        unknown = 2.0**-63 / uniform  # what the bits after the 64th may change in log U
        low = np.maximum(logarithm * (1 - _RELATIVE) - unknown - _ABSOLUTE, 0) / decay
    high = (logarithm * (1 + _RELATIVE) + unknown + _ABSOLUTE) / decay
    low, high = np.minimum(np.nan_to_num(low), 2.0 * most), np.minimum(high, 2.0 * most)  # `most` as a double may lie below
    gaps = np.floor(low).astype(np.int64)
    tops = np.floor(high).astype(np.int64)
    if rate * at_least >= _SURELY_RARE:  # `decay` is then only an upper bound
        tops[gaps < most] = most
    for place in np.flatnonzero(gaps < tops):
        gaps[place] = _exact_gap(entropy, int(drawn[place]), int(gaps[place]), int(tops[place]), rate, at_least)
    return np.minimum(gaps, most)


def _exact_gap(entropy: Entropy, drawn: int, gap: int, top: int, rate: Fraction, at_least: int) -> int:
    """The largest j from `gap` to `top` with U < q^j, where U begins with the 64 bits `drawn` and U < q^gap is known."""
    bits = 64
    while gap < top:
        middle = (gap + top + 1) // 2
        low, high = _power_bounds(rate, at_least, middle, bits)
        if drawn + 1 <= low:
            gap = middle
        elif drawn >= high:
            top = middle - 1
        else:
            drawn = (drawn << 64) | entropy.bits(64)
            bits += 64
    return gap


@lru_cache(maxsize=1024)
def _chance(rate: Fraction, at_least: int) -> float:
    """p = a^at_least / (1 + a) to the last bits of a double; below exp(-200), exp(-200) instead."""
    if rate * at_least >= _SURELY_RARE:
        return math.exp(-_SURELY_RARE)
    low, _ = exp_bounds(rate * at_least, 512)
    base, _ = exp_bounds(rate, 512)
    return float(Fraction(low, (1 << 512) + base))


def _power_bounds(rate: Fraction, at_least: int, power: int, bits: int) -> tuple[int, int]:
    """Integers low <= q^power * 2^bits <= high, for q = 1 - a^at_least / (1 + a) and a = exp(-rate)."""
    width = bits + 2 * power.bit_length() + 32
    one = 1 << width
    base_low, base_high = exp_bounds(rate, width)
    lifted_low, lifted_high = exp_bounds(rate * at_least, width)
    low = max(one - (lifted_high * one // (one + base_low) + 1), 0)
    high = one - lifted_low * one // (one + base_high)
    result_low = result_high = one
    for digit in bin(power)[2:]:
        result_low = (result_low * result_low) >> width
        result_high = -((-result_high * result_high) >> width)
        if digit == "1":
            result_low = (result_low * low) >> width
            result_high = -((-result_high * high) >> width)
    return result_low >> (width - bits), -((-result_high) >> (width - bits))
