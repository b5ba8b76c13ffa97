"""Audit a mechanism of your own: run it on two neighbouring tables and see whether its outcomes tell them apart too well.

result = dm.audit(run, neighbours=(a, b), epsilon=1)
print(result)
assert result.passed
"""

import bisect
import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from dpmine.audit.bounds import Bound, lower_bound
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError

CHOOSING = 3  # one run in so many chooses the event
FEWEST_RUNS = 30
MOST_WHOLE = 40  # different whole numbers that are told apart; more are put into bins
BINS = (32, 8, 4)  # for outcomes of one number, of two, of more
RUNS_A_BIN = 50  # that choose the event, at least: a few runs are put into few bins


@dataclass(frozen=True)
class AuditResult:
    """What an audit measured. `str(result)` says it in words."""

    claimed: float
    epsilon_lower: float
    """Epsilon is at least this, with the stated confidence."""
    confidence: float
    runs: int
    """On each table, those that chose the event included."""
    bound: Bound

    @property
    def passed(self) -> bool:
        """Whether the claim was not refuted."""
        return self.epsilon_lower <= self.claimed

    @property
    def most_to_see(self) -> float:
        """The largest epsilon that this many runs could have shown: an outcome always there and never here."""
        return math.log((1 - self.confidence) / 2) / self.bound.runs[0] - math.log(
            -math.expm1(math.log((1 - self.confidence) / 2) / self.bound.runs[1])
        )

    def __str__(self) -> str:
        hits, runs, side = self.bound.hits, self.bound.runs, ("first", "second")[self.bound.event.likelier]
        verdict = (
            f"PASSED: no violation of epsilon {self.claimed:g} was found."
            if self.passed
            else f"FAILED: epsilon is above the claimed {self.claimed:g}."
        )
        return "\n".join(
            (
                verdict,
                f"Epsilon is at least {self.epsilon_lower:.3f} with confidence {self.confidence:g}: an event chosen on "
                f"other runs came {hits[0]} times in {runs[0]} runs on the {side} table and {hits[1]} times in {runs[1]} "
                "on the other.",
                f"The most that so many runs could have shown is {self.most_to_see:.2f}.",
                "A pass does not prove the claim: other neighbours, other events or more runs may still refute it.",
            )
        )


def audit(
    run: Callable[[Any], Any],
    *,
    neighbours: tuple[Any, Any],
    epsilon: Epsilon | str | float,
    runs: int = 10_000,
    confidence: float = 0.999,
) -> AuditResult:
    """Measure how well the outcomes of `run(table)` tell two neighbouring tables apart.

    run         a function of a table whose outcome is claimed to be epsilon-DP: a number, a label, or a tuple of these
    neighbours  two tables that differ by one protected unit, chosen so that the outcome should differ most
    epsilon     the claim
    runs        on each table; a third of them chooses the event, the others judge it
    confidence  of the bound: a correct mechanism fails with probability at most 1 - confidence

    Every run must be a fresh one: an answer that was cached, or a seed that is set anew, is no second run.
    """
    claimed = float(Epsilon.parse(epsilon))
    if runs < FEWEST_RUNS:
        raise RequestError(f"An audit needs at least {FEWEST_RUNS} runs on each table. Got {runs} instead.")
    if not 0 < confidence < 1:
        raise RequestError(f"The confidence must lie between 0 and 1. Got {confidence} instead.")
    if not isinstance(neighbours, (tuple, list)) or len(neighbours) != 2:
        raise RequestError("Give two neighbouring tables: neighbours=(a, b).")
    choosing = max(runs // CHOOSING, 1)
    drawn = [[_fields(run(table)) for _ in range(runs)] for table in neighbours]
    classes = _Classes([outcome for outcomes in drawn for outcome in outcomes[:choosing]])
    chosen_on, judged_on = (
        tuple(Counter(map(classes.of, outcomes[part])) for outcomes in drawn)
        for part in (slice(None, choosing), slice(choosing, None))
    )
    bound = lower_bound((chosen_on[0], chosen_on[1]), (judged_on[0], judged_on[1]), confidence=confidence)
    return AuditResult(claimed, bound.epsilon, confidence, runs, bound)


Fields = tuple[Hashable, ...]


def _fields(outcome: Any) -> Fields:
    """An outcome as a tuple of numbers and labels."""
    listed = outcome.tolist() if isinstance(outcome, np.ndarray) else outcome
    parts = tuple(listed) if isinstance(listed, (tuple, list)) else (listed,)
    try:
        hash(parts)
    except TypeError:
        raise RequestError(
            f"An outcome must be a number, a label or a tuple of these. Got {type(outcome).__name__} instead: "
            "let run() return what may be seen of it, as numbers and labels."
        ) from None
    return parts


class _Classes:
    """Sorts outcomes into classes: labels as they are, fractions (and many whole numbers) by bins.

    The edges of the bins are quantiles of the runs that choose the event, on both tables together.
    """

    def __init__(self, outcomes: Sequence[Fields]) -> None:
        self._edges: dict[tuple[int, int], list[float]] = {}
        for length in {len(outcome) for outcome in outcomes}:
            alike = [outcome for outcome in outcomes if len(outcome) == length]
            bins = max(min(BINS[min(length, len(BINS)) - 1], len(alike) // RUNS_A_BIN), 2)
            for place in range(length):
                edges = _edges([outcome[place] for outcome in alike], bins)
                if edges:
                    self._edges[length, place] = edges

    def of(self, outcome: Fields) -> Hashable:
        return tuple(self._class(field, self._edges.get((len(outcome), place))) for place, field in enumerate(outcome))

    def _class(self, field: Hashable, edges: list[float] | None) -> Hashable:
        if not _is_number(field):
            return field
        number = float(field)  # type: ignore[arg-type]
        if math.isnan(number):
            return "not a number"
        return number if edges is None else bisect.bisect_right(edges, number)


def _edges(fields: Sequence[Hashable], bins: int) -> list[float]:
    """Edges between bins of about as many outcomes; none where there are few different whole numbers, or no numbers."""
    numbers = [float(field) for field in fields if _is_number(field)]  # type: ignore[arg-type]
    finite = [number for number in numbers if math.isfinite(number)]
    if not finite or (all(number.is_integer() for number in finite) and len(set(finite)) <= MOST_WHOLE):
        return []
    edges: list[float] = np.unique(np.quantile(finite, np.arange(1, bins) / bins)).tolist()
    return edges


def _is_number(field: Hashable) -> bool:
    return isinstance(field, (Integral, Real)) and not isinstance(field, (bool, np.bool_))
