"""A lower confidence bound on epsilon from outcomes on two neighbouring tables.

For an epsilon-DP mechanism every set E of outcomes has P(E on one table) <= exp(epsilon) P(E on the other). So the log of
the ratio of the two is at most epsilon, for whichever E; the set with the largest ratio is a likelihood-ratio event. It is
chosen on some of the runs, and its two probabilities are bounded on the others (Clopper and Pearson 1934), so that what was
chosen for its luck is not judged by the same luck. Only one event in one direction is judged: nothing else to correct for.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.postprocess.error_limits import upper_error

LUCK = 1.5  # deviations by which runs that choose an event are taken to flatter it
RARE = 5  # outcomes seen less often than this in choosing, on both tables together, count as one

Counts = Mapping[Any, int]
"""How often each outcome was seen."""
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Event:
    """A set of outcomes that is likelier on one of the two tables (0 or 1)."""

    outcomes: frozenset[Hashable]
    with_rare: bool
    """Whether outcomes that were rare or not seen at all in choosing belong to it."""
    rare: frozenset[Hashable]
    known: frozenset[Hashable]
    likelier: int

    def hits(self, counts: Counts) -> int:
        return sum(times for outcome, times in counts.items() if self.holds(outcome))

    def holds(self, outcome: Hashable) -> bool:
        if outcome in self.rare or outcome not in self.known:
            return self.with_rare
        return outcome in self.outcomes


@dataclass(frozen=True)
class Bound:
    """Epsilon is at least this, but for the failure probability that was asked for; with the evidence."""

    epsilon: float
    event: Event
    hits: tuple[int, int]
    """Of the event, on the table where it is likelier and on the other."""
    runs: tuple[int, int]


def clopper_pearson(hits: int, runs: int, failure: float) -> tuple[float, float]:
    """Limits of a probability after so many hits; each of the two is wrong with probability at most `failure`."""
    return 1 - upper_error(runs - hits, runs, failure), upper_error(hits, runs, failure)


def lower_bound(
    chosen_on: tuple[Counts, Counts],
    judged_on: tuple[Counts, Counts],
    *,
    confidence: float | None = None,
    failure: float = 0,
) -> Bound:
    """The bound from the event that looks best in the first pair of counts, judged on the second pair.

    State the confidence, or, where it is too close to 1 to be written, the failure probability.
    """
    failure = 1 - confidence if confidence is not None else failure
    if not 0 < failure < 1:
        raise RequestError("The confidence must lie between 0 and 1.")
    runs = tuple(sum(counts.values()) for counts in judged_on)
    if min(runs) < 1 or min(sum(counts.values()) for counts in chosen_on) < 1:
        raise RequestError("A bound needs runs on both tables, to choose an event and to judge it.")
    event = choose_event(chosen_on, failure=failure, runs=min(runs))
    first, second = (judged_on[side] for side in (event.likelier, 1 - event.likelier))
    hits = event.hits(first), event.hits(second)
    totals = runs[event.likelier], runs[1 - event.likelier]
    low = clopper_pearson(hits[0], totals[0], failure / 2)[0]
    high = clopper_pearson(hits[1], totals[1], failure / 2)[1]
    return Bound(max(math.log(low / high), 0.0) if low > 0 else 0.0, event, hits, totals)


def choose_event(counts: tuple[Counts, Counts], *, failure: float, runs: int) -> Event:
    """The likelihood-ratio event with the best bound to expect, if it is judged on so many runs.

    Outcomes are ordered by their ratio of smoothed frequencies; every beginning and every end of that order is an event.
    What is expected is lowered by the luck that runs which choose may have had: else a few lucky outcomes would be taken.
    """
    known = frozenset(counts[0]) | frozenset(counts[1])
    rare = frozenset(outcome for outcome in known if counts[0].get(outcome, 0) + counts[1].get(outcome, 0) < RARE)
    listed: list[Hashable] = sorted(known - rare, key=repr)
    seen = np.array([[_times(side, outcome) for outcome in listed] for side in counts], dtype=np.float64).reshape(2, -1)
    pooled = np.array([[sum(_times(side, outcome) for outcome in rare)] for side in counts], dtype=np.float64)
    seen = np.concatenate((seen, pooled), axis=1)  # the last place is for rare outcomes
    totals = seen.sum(axis=1)
    ratio = (seen[0] + 0.5) / (seen[1] + 0.5) * (totals[1] / totals[0])
    order = np.argsort(-ratio, kind="stable")
    z = NormalDist().inv_cdf(1 - failure / 2)
    best: tuple[float, int, list[int]] = (-math.inf, 0, [])
    for likelier, places in ((0, order), (1, order[::-1])):
        inside = np.cumsum(seen[:, places], axis=1)[:, :-1]  # the set of all outcomes is no evidence
        if not inside.size:
            continue
        expected = _expected_bound(inside[likelier], totals[likelier], inside[1 - likelier], totals[1 - likelier], z, runs)
        place = int(np.argmax(expected))
        if expected[place] > best[0]:
            best = (float(expected[place]), likelier, places[: place + 1].tolist())
    chosen = {listed[place] for place in best[2] if place < len(listed)}
    return Event(frozenset(chosen), len(listed) in best[2], rare, known, best[1])


def _times(counts: Counts, outcome: Hashable) -> int:
    return counts.get(outcome, 0)


def _expected_bound(hits: Numbers, runs: float, other_hits: Numbers, other_runs: float, z: float, judged: int) -> Numbers:
    """Roughly the bound: Wilson's limits stand in for the exact ones, since any way to choose is allowed."""
    low = _wilson(hits, runs, judged, -z, -LUCK)
    high = _wilson(other_hits, other_runs, judged, z, LUCK)
    return np.log(np.maximum(low, 1e-300)) - np.log(np.minimum(high, 1))


def _wilson(hits: Numbers, runs: float, judged: int, z: float, luck: float) -> Numbers:
    """Wilson's limit on so many judged runs, for a share that is itself off by some deviations of those that choose."""
    share = (hits + 0.5) / (runs + 1)
    spread = z * np.sqrt(share * (1 - share) / judged + z * z / (4 * judged * judged))
    limits: Numbers = (share + z * z / (2 * judged) + spread) / (1 + z * z / judged)
    return limits + luck * np.sqrt(share * (1 - share) / runs)


def merged(parts: Sequence[Counts]) -> dict[Hashable, int]:
    """Counts of several rounds added up."""
    total: dict[Hashable, int] = {}
    for part in parts:
        for outcome, times in part.items():
            total[outcome] = total.get(outcome, 0) + times
    return total
