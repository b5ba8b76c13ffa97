"""Exact laws that the kernel's draws are held to, and the checks that compare draws with a law.

A check returns a p-value; a test raises the alarm below ALARM. Every bin expects at least LEAST_EXPECTED draws, which
keeps the chi-square law close enough far out in its tail: the false-alarm rate of each check is below 1e-6.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.stats import chi2

ALARM = 1e-9
LEAST_EXPECTED = 200
DIGITS = 60


# -- checks ------------------------------------------------------------------------------------------------------------


def p_value(observed: Sequence[int], law: Sequence[float | Decimal]) -> float:
    """Chi-square p-value of draws against a law; rare outcomes are pooled, impossible ones that occur give 0."""
    counts = np.asarray(observed, dtype=np.float64)
    chances = np.array([float(chance) for chance in law])
    assert counts.shape == chances.shape
    assert abs(chances.sum() - 1) < 1e-9
    if np.any(counts[chances == 0] > 0):
        return 0.0
    expected = chances * counts.sum()
    statistic, bins = 0.0, 0
    for seen, wanted in _pooled(counts, expected):
        statistic += (seen - wanted) ** 2 / wanted
        bins += 1
    assert bins > 1, "too few draws to say anything"
    return float(chi2.sf(statistic, bins - 1))


def p_value_of_two(first: Sequence[int], second: Sequence[int]) -> float:
    """Chi-square p-value for two samples from one unknown law."""
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    share = one.sum() / (one.sum() + two.sum())
    both = one + two
    statistic, bins = 0.0, 0
    for (seen, _), (together, _) in zip(_pooled(one, both), _pooled(both, both), strict=True):
        statistic += (seen - together * share) ** 2 / (together * share * (1 - share))
        bins += 1
    assert bins > 1, "too few draws to say anything"
    return float(chi2.sf(statistic, bins - 1))


def _pooled(counts: np.ndarray, expected: np.ndarray) -> list[tuple[float, float]]:
    """Bins merged, rarest first, until each expects enough draws."""
    bins: list[tuple[float, float]] = []
    seen = wanted = 0.0
    for place in np.argsort(expected, kind="stable"):
        seen += float(counts[place])
        wanted += float(expected[place])
        if wanted >= LEAST_EXPECTED:
            bins.append((seen, wanted))
            seen = wanted = 0.0
    if wanted and bins:
        bins[-1] = (bins[-1][0] + seen, bins[-1][1] + wanted)
    return bins


def frequencies(draw: Callable[[], int], outcomes: int, draws: int) -> list[int]:
    """How often each outcome came in repeated draws."""
    seen: list[int] = np.bincount([draw() for _ in range(draws)], minlength=outcomes).tolist()
    return seen


# -- discrete Laplace --------------------------------------------------------------------------------------------------


def laplace_cdf(scale: Fraction, z: int) -> float:
    """P(Z <= z) for P(Z = z) proportional to a^abs(z), a = exp(-1/scale)."""
    rate = float(1 / scale)
    below = math.exp(-rate * (-z if z < 0 else z + 1)) / (1 + math.exp(-rate))
    return below if z < 0 else 1 - below


def laplace_edges(scale: Fraction) -> list[int]:
    """Cut points: every integer where they are few, else quantiles, closer together in the tails."""
    levels = [*np.geomspace(1e-4, 0.005, 12), *np.linspace(0.01, 0.5, 50)]
    negative = {round(float(scale) * math.log(2 * level)) for level in levels} | {-1}
    negative = {edge for edge in negative if edge < 0}
    return sorted(negative | {-edge - 1 for edge in negative})


def laplace_bins(draws: np.ndarray, edges: Sequence[int]) -> list[int]:
    """Counts of draws in (-inf, e0], (e0, e1], ..., (e_last, inf)."""
    seen: list[int] = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=len(edges) + 1).tolist()
    return seen


def laplace_law(scale: Fraction, edges: Sequence[int]) -> list[float]:
    cdf = [0.0, *(laplace_cdf(scale, edge) for edge in edges), 1.0]
    return [after - before for before, after in itertools.pairwise(cdf)]


# -- choices -----------------------------------------------------------------------------------------------------------


def decimal_exp(x: Fraction) -> Decimal:
    """exp(-x) to DIGITS places."""
    with localcontext() as context:
        context.prec = DIGITS + 30
        return (Decimal(-x.numerator) / Decimal(x.denominator)).exp()


def exponential_law(scores: Sequence[int], masses: Sequence[int], rate: Fraction) -> list[Decimal]:
    """P(r) proportional to masses[r] * exp(rate * scores[r])."""
    best = max(int(score) for score in scores)
    with localcontext() as context:
        context.prec = DIGITS
        weights = [int(mass) * decimal_exp(rate * (best - int(score))) for score, mass in zip(scores, masses, strict=True)]
        total = sum(weights)
        return [weight / total for weight in weights]


def permute_and_flip_law(scores: Sequence[int], rate: Fraction) -> list[Decimal]:
    """P(r) = p_r times the integral over t in [0, 1] of the product of (1 - t p_s) over s != r.

    Give every candidate a uniform time: r wins if it accepts and everyone earlier declines.
    """
    best = max(int(score) for score in scores)
    with localcontext() as context:
        context.prec = DIGITS
        accept = [decimal_exp(rate * (best - int(score))) for score in scores]
        return [accept[r] * _integral([chance for s, chance in enumerate(accept) if s != r]) for r in range(len(accept))]


def _integral(chances: list[Decimal]) -> Decimal:
    """The integral over t in [0, 1] of the product of (1 - t p)."""
    polynomial = [Decimal(1)]
    for chance in chances:
        shifted = [Decimal(0), *polynomial]
        polynomial = [here - chance * there for here, there in zip([*polynomial, Decimal(0)], shifted, strict=True)]
    return sum((coefficient / (power + 1) for power, coefficient in enumerate(polynomial)), Decimal(0))


def privacy_loss(law: Sequence[Decimal], neighbour: Sequence[Decimal]) -> float:
    """The largest abs(ln(p / p')) over outcomes."""
    return max(abs(float((one / other).ln())) for one, other in zip(law, neighbour, strict=True))
