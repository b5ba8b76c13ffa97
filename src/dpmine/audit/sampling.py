"""Runs of an audit pair: both tables opened as an owner would, a new analyst for every run, outcomes counted.

A new analyst has no cached answers, and a grant of exactly the claim: a run that asks for more is refused, and found out.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Hashable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

from dpmine.audit.catalogue import all_pairs
from dpmine.audit.mutants import mutant_named, no_bug
from dpmine.audit.pairs import AuditPair, columns_of
from dpmine.base.epsilon import LARGEST, UNITS
from dpmine.base.errors import AnswerError, BudgetError
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.facts.sources import FrameSource
from dpmine.owner import DataSet
from dpmine.owner import open as open_table

CHOOSING = 3  # one run chooses the event for every so many that judge it

Texts = dict[str, int]
"""How often each outcome was seen, outcomes written as JSON."""


@dataclass(frozen=True)
class Task:
    """One round of a pair, perhaps with a planted bug."""

    pair: str
    runs: int
    round: int = 0
    mutant: str | None = None

    @property
    def key(self) -> str:
        return json.dumps([self.pair, self.mutant, self.round, self.runs])


@dataclass
class Drawn:
    """What a round gave: outcome counts of both tables, to choose an event and to judge it; what a run cost at most."""

    task: Task
    chosen_on: tuple[Texts, Texts] = field(default_factory=lambda: ({}, {}))
    judged_on: tuple[Texts, Texts] = field(default_factory=lambda: ({}, {}))
    charged: float = 0.0
    refused: str | None = None
    seconds: float = 0.0

    def form(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_form(cls, form: dict[str, Any]) -> Drawn:
        chosen_on, judged_on = ((texts[0], texts[1]) for texts in (form["chosen_on"], form["judged_on"]))
        return cls(Task(**form["task"]), chosen_on, judged_on, form["charged"], form["refused"], form["seconds"])


def work(task: Task) -> Drawn:
    """Run one task; a function of a module, since worker processes must find it."""
    with (no_bug if task.mutant is None else mutant_named(task.mutant).plant)():
        return draw(all_pairs()[task.pair], task)


def draw(pair: AuditPair, task: Task) -> Drawn:
    """Outcomes on both tables, and what a run was charged. A bug may also show as a refusal."""
    started = time.perf_counter()
    drawn = Drawn(task)
    try:
        for side in (0, 1):
            with closing(Sampler(pair, side)) as sampler:
                drawn.chosen_on[side].update(sampler.outcomes(max(task.runs // CHOOSING, 1)))
                drawn.judged_on[side].update(sampler.outcomes(task.runs))
                drawn.charged = max(drawn.charged, sampler.charged)
    except BudgetError as error:
        drawn.refused = f"It asked for more than it claimed: {error}"
    except AnswerError as error:
        drawn.refused = f"It failed after the charge: {error}"
    drawn.seconds = round(time.perf_counter() - started, 3)
    return drawn


class Sampler:
    """Asks one table of a pair again and again."""

    def __init__(self, pair: AuditPair, side: int) -> None:
        self._pair = pair
        self._table: EncodedTable = encode(FrameSource(columns_of(pair.schema, pair.tables[side])), pair.schema)
        self._opened: DataSet | None = None
        self._asked = 0
        self.charged = 0.0

    def outcomes(self, runs: int) -> Texts:
        """At least so many outcomes, counted."""
        seen: Counter[Hashable] = Counter()
        drawn = 0
        while drawn < runs:
            outcomes = self._ask()
            seen.update(outcomes)
            drawn += len(outcomes)
        return {text_of(outcome): times for outcome, times in seen.items()}

    def close(self) -> None:
        """Close the table that is open now; asked again, it is opened anew."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _ask(self) -> list[Hashable]:
        private = self._data().grant(f"run {self._asked}", epsilon=self._pair.granted)
        outcomes = list(self._pair.ask(private))
        self._asked += 1
        spent = self._pair.granted.units - private.remaining().units
        self.charged = max(self.charged, spent * self._pair.distance / UNITS)
        return outcomes

    def _data(self) -> DataSet:
        if self._opened is None or self._asked % self._pair.asks == 0:
            self.close()
            self._opened = open_table(
                self._table, schema=self._pair.schema, ledger=None, cap=LARGEST, noise=self._pair.noise
            )
        return self._opened


def text_of(outcome: Hashable) -> str:
    """An outcome as JSON: the same text for equal outcomes, also when read from a file."""
    return json.dumps(outcome, separators=(",", ":"))
