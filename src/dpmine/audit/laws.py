"""The exact laws of noise and choices, written down again from the papers: nothing here calls the kernel."""

import functools
import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Buckets:
    """A number's place among rising edges: 0 below the first, 1 from the first on, and so on."""

    edges: tuple[int, ...]

    def of(self, numbers: Sequence[int]) -> list[int]:
        places: list[int] = np.searchsorted(np.array(self.edges), np.array(numbers), side="right").tolist()
        return places

    def law(self, exact: int, scale: float) -> dict[Hashable, float]:
        """The law of the bucket of an exact number plus discrete Laplace noise of that scale."""
        shifted = [-math.inf, *(edge - exact for edge in self.edges), math.inf]
        return {place: laplace_between(low, high, scale) for place, (low, high) in enumerate(itertools.pairwise(shifted))}


def laplace_between(low: float, high: float, scale: float) -> float:
    """P(low <= Z < high) for P(Z = z) proportional to exp(-abs(z) / scale): the two-sided geometric law."""
    if low > 0:  # by symmetry on the left, where tails are not differences from 1
        return laplace_below(1 - low, scale) - laplace_below(1 - high, scale)
    return laplace_below(high, scale) - laplace_below(low, scale)


def laplace_below(noise: float, scale: float) -> float:
    a = math.exp(-1 / scale)
    return math.exp((noise - 1) / scale) / (1 + a) if noise <= 0 else 1 - math.exp(-noise / scale) / (1 + a)


def box_law(
    lengths: Sequence[int],
    inner: Sequence[int],
    epsilon: float,
    exact: Sequence[int],
    edges: Sequence[Sequence[int]],
) -> dict[tuple[int, ...], float]:
    """The law of the buckets of exact numbers plus staircase noise over boxes, from its definition point by point.

    A point has probability proportional to exp(-epsilon k), k the first level whose box, |z_j| <= k L_j + r_j, holds it.
    What lies beyond level 45 / epsilon is left out: less than 1e-15 in few dimensions.
    """
    far = math.ceil(45 / epsilon)
    reach = [far * length + r for length, r in zip(lengths, inner, strict=True)]
    own = [
        np.ceil(np.maximum(np.abs(np.arange(-m, m + 1)) - r, 0) / length)
        for m, length, r in zip(reach, lengths, inner, strict=True)
    ]
    weights = np.exp(-epsilon * functools.reduce(np.maximum, np.ix_(*own)))
    places = [
        np.searchsorted(np.array(listed), np.arange(-m, m + 1) + number, side="right")
        for m, listed, number in zip(reach, edges, exact, strict=True)
    ]
    law = {}
    for place in itertools.product(*(range(len(listed) + 1) for listed in edges)):
        inside = np.ix_(*(np.flatnonzero(found == wanted) for found, wanted in zip(places, place, strict=True)))
        law[place] = float(weights[inside].sum() / weights.sum())
    return law


def phantom_law(combinations: int, scale: float, at_least: int, most: int) -> dict[Hashable, float]:
    """The law of how many combinations without rows reach the threshold, from `most` on all together."""
    chance = laplace_between(at_least, math.inf, scale)
    law: dict[Hashable, float] = {
        number: math.comb(combinations, number) * chance**number * (1 - chance) ** (combinations - number)
        for number in range(most)
    }
    law[most] = 1 - math.fsum(law.values())
    return law


def binomial_law(trials: int, chance: float) -> dict[Hashable, float]:
    """The law of how many of so many independent events happen."""
    return {
        number: math.comb(trials, number) * chance**number * (1 - chance) ** (trials - number)
        for number in range(trials + 1)
    }


def private_tree_law(rows: Sequence[int], epsilon: float, deepest: int) -> dict[tuple[int, ...], float]:
    """PrivTree (Zhang, Xiao and Xie 2016) for whole numbers: the law of which nodes are cut, parents first.

    `rows` are those of each code of one attribute; a node's codes are halved. With ratio a = exp(-epsilon / 3) of the noise
    and delta the least whole number with a^delta <= 1/2, a node is cut if max(rows - depth delta, -delta) + noise > 0.
    """
    scale = 3 / epsilon
    delta = math.ceil(scale * math.log(2))

    def below(low: int, high: int, depth: int) -> dict[tuple[int, ...], float]:
        if depth == deepest or high - low < 2:
            return {(0,): 1.0}
        exact = max(sum(rows[low:high]) - depth * delta, -delta)
        cut = laplace_between(1 - exact, math.inf, scale)
        middle = (low + high) // 2
        sides = below(low, middle, depth + 1).items(), below(middle, high, depth + 1).items()
        found: dict[tuple[int, ...], float] = {(0,): 1 - cut}
        for (left, one), (right, other) in itertools.product(*sides):
            found[1, *left, *right] = cut * one * other
        return found

    return below(0, len(rows), 0)


def independent(*laws: dict[Hashable, float]) -> dict[Hashable, float]:
    """The law of a tuple of independent outcomes."""
    return {
        tuple(outcomes): math.prod(law[outcome] for law, outcome in zip(laws, outcomes, strict=True))
        for outcomes in itertools.product(*laws)
    }


def exponential_law(scores: Sequence[float], masses: Sequence[float], rate: float) -> Numbers:
    """P(r) proportional to masses[r] exp(rate scores[r])."""
    exponents = rate * (np.asarray(scores, dtype=np.float64) - max(scores))
    weights = np.asarray(masses, dtype=np.float64) * np.exp(exponents)
    law: Numbers = weights / weights.sum()
    return law


def permute_and_flip_law(scores: Sequence[float], rate: float) -> Numbers:
    """P(r) = p_r times the integral over t in [0, 1] of the product of (1 - t p_s) over s != r.

    Give every candidate a uniform time: r wins if it accepts and everyone earlier declines. The integrand is a polynomial,
    so Gauss and Legendre's rule is exact from half its degree on.
    """
    accept = np.exp(rate * (np.asarray(scores, dtype=np.float64) - max(scores)))
    nodes, weights = np.polynomial.legendre.leggauss(len(accept) // 2 + 2)
    times, weights = (nodes + 1) / 2, weights / 2
    declined = 1 - times[:, None] * accept
    everyone = declined.prod(axis=1)
    law: Numbers = accept * (weights @ (everyone[:, None] / declined))
    return law


def by_group(law: Numbers, groups: Sequence[Hashable]) -> dict[Hashable, float]:
    """The law of the group that a chosen candidate belongs to."""
    found: dict[Hashable, float] = {}
    for chance, group in zip(law.tolist(), groups, strict=True):
        found[group] = found.get(group, 0.0) + chance
    return found


# -- what a branch of a split adds to its score, and by how much one row can move it -----------------------------------


def _gini(classes: Sequence[int]) -> float:
    rows = sum(classes)
    return -(rows - sum(count * count for count in classes) / rows) if rows else 0.0


def _entropy(classes: Sequence[int]) -> float:
    rows = sum(classes)
    return sum(count * math.log2(count / rows) for count in classes if count)


def _outside(classes: Sequence[int]) -> float:
    return -float(sum(classes) - max(classes))


BRANCH_SCORES: dict[str, Callable[[Sequence[int]], float]] = {
    "max": lambda classes: float(max(classes)),
    "gini": _gini,
    "infogain": _entropy,
    "mixed": lambda classes: (_gini(classes) / 2 + _outside(classes)) / 2,
}


def score_range(score: str, rows_at_most: int) -> float:
    """R: S for scores of which all candidates move the same way, 2S for gains; the information gain is rounded to 2^-20."""
    if score == "infogain":
        more = rows_at_most + 1
        return more * math.log2(more) - rows_at_most * math.log2(rows_at_most)
    return {"max": 1.0, "gini": 2.0, "mixed": 1.0, "gain": 2.0, "gini-gain": 4.0, "infogain-per-row": 2 + 2**-18}[score]


def split_score(score: str, branches: Sequence[Sequence[int]]) -> float:
    """The score of a split from the class counts of its branches."""
    if score in GAINS:
        return GAINS[score](branches)
    return math.fsum(BRANCH_SCORES[score](classes) for classes in branches)


def _gain(score: str, branches: Sequence[Sequence[int]]) -> float:
    """What a split wins over its rows unsplit."""
    together = [sum(classes) for classes in zip(*branches, strict=True)]
    return split_score(score, branches) - BRANCH_SCORES[score](together)


GAINS: dict[str, Callable[[Sequence[Sequence[int]]], float]] = {
    "gain": lambda branches: _gain("max", branches),
    "gini-gain": lambda branches: _gain("gini", branches),
    "infogain-per-row": lambda branches: _gain("infogain", branches) / max(sum(map(sum, branches)), 1),
}


def rank_scores(counts: Sequence[int], numerator: int, denominator: int) -> list[float]:
    """Minus how many rows (times the denominator) each grid point is away from being the quantile."""
    rows = sum(counts)
    scores = []
    for point in range(len(counts)):
        below, above = sum(counts[:point]), sum(counts[point + 1 :])
        too_high = denominator * below - numerator * rows
        too_low = denominator * above - (denominator - numerator) * rows
        scores.append(-float(max(0, too_high, too_low)))
    return scores
