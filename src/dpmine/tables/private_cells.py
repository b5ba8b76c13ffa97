"""A view split into disjoint cells: one question asks all of them at once, and its price is that of the dearest cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpmine.base.errors import RequestError
from dpmine.facts.schema import Schema
from dpmine.language.columns import Column
from dpmine.language.keys import Key
from dpmine.language.predicates import Predicate
from dpmine.language.queries import Question
from dpmine.language.rule_trees import leaf_paths
from dpmine.language.splits import Splits
from dpmine.language.views import Rules, View
from dpmine.questions.choose_label import ChooseLabel, ChosenLabel
from dpmine.questions.choose_split import ChooseSplit, ChosenSplit, Stayed
from dpmine.questions.histogram import Histogram, NoisyCount, NoisyHistogram
from dpmine.results.preview import Preview
from dpmine.results.reading import preview_of, results_of
from dpmine.tables import asking
from dpmine.tables.asking import Amounts, Keyed, query_of
from dpmine.tables.executor import Executor

CellCandidates = Keyed | Sequence[Keyed | Splits] | Sequence[Sequence[Keyed | Splits]]


class NotOfCells(RequestError, AttributeError):
    """A question that only a table knows: an error of dpmine, and what Python expects where an attribute is missing."""


class PrivateCells:
    """The cells of a rule tree, from left to right. `epsilon` is for all of them, or one for each: 0 asks nothing of a cell.

    What a question would cost is told for free by the same method of `preview`.
    """

    def __init__(self, executor: Executor, view: View, rules: Rules) -> None:
        self._executor = executor
        self._view = view
        self._rules = rules
        self._schema = executor.schema

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def preview(self) -> CellPreviews:
        return CellPreviews(self._executor, self._view, self._rules)

    def labels(self) -> list[str]:
        """A readable name for each cell."""
        return [
            ", ".join(f"{key.title}: {key.labels(self.schema)[index]}" for key, index in path) or "all rows"
            for path in leaf_paths(self._rules)
        ]

    def count(self, *, epsilon: Amounts, request_key: str | None = None) -> list[NoisyCount | None]:
        """The number of rows in each cell; None where that cell's epsilon is 0."""
        return self.ask(Histogram(()), epsilon=epsilon, request_key=request_key)

    def histogram(self, *by: Keyed, epsilon: Amounts, request_key: str | None = None) -> list[NoisyHistogram | None]:
        """The histogram of each cell; None where that cell's epsilon is 0."""
        return self.ask(asking.histogram(by), epsilon=epsilon, request_key=request_key)

    def choose(
        self,
        among: CellCandidates,
        *,
        epsilon: Amounts,
        score: str = "count",
        mechanism: str | None = None,
        calibration: str = "monotone",
        request_key: str | None = None,
    ) -> list[ChosenLabel | ChosenSplit | Stayed | None]:
        """One choice in each cell; `among` may be a list with one entry for each cell. None where epsilon is 0."""
        question = _choice(self.schema, among, score, mechanism, calibration)
        return self.ask(question, epsilon=epsilon, request_key=request_key)

    def ask(self, question: Question, *, epsilon: Amounts, request_key: str | None = None) -> list[Any]:
        """Ask any question of every cell."""
        query = query_of(self._schema, self._view, self._rules, question, epsilon)
        return results_of(query, self._executor.answer(query, key=request_key), self.schema)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what to do instead of what only a table knows."""
            raise NotOfCells(
                f"Cells know count, histogram, choose and ask, not {name!r}: call that on the table before it is split into "
                "cells."
            )


class CellPreviews:
    """What questions of all cells would cost, and how far off their answers would be. Nothing is asked."""

    def __init__(self, executor: Executor, view: View, rules: Rules) -> None:
        self._executor = executor
        self._view = view
        self._rules = rules
        self._schema = executor.schema

    def count(self, *, epsilon: Amounts) -> Preview:
        return self.ask(Histogram(()), epsilon=epsilon)

    def histogram(self, *by: Keyed, epsilon: Amounts) -> Preview:
        return self.ask(asking.histogram(by), epsilon=epsilon)

    def choose(
        self,
        among: CellCandidates,
        *,
        epsilon: Amounts,
        score: str = "count",
        mechanism: str | None = None,
        calibration: str = "monotone",
    ) -> Preview:
        return self.ask(_choice(self._schema, among, score, mechanism, calibration), epsilon=epsilon)

    def ask(self, question: Question, *, epsilon: Amounts) -> Preview:
        query = query_of(self._schema, self._view, self._rules, question, epsilon)
        return preview_of(query, self._executor.preview(query), self._schema)


def _choice(
    schema: Schema, among: CellCandidates, score: str, mechanism: str | None, calibration: str
) -> ChooseLabel | ChooseSplit:
    nested = not isinstance(among, (str, Column, Key, Predicate)) and bool(among) and isinstance(among[0], (list, tuple))
    listed: Any = among if nested else [among]
    return asking.choice(schema, listed, score, mechanism, calibration)
