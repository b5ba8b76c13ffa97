"""What a miner holds: a private table that only builds queries and hands them to an executor.

The executor is the kernel next to the data, or a client across the network; algorithms cannot tell. Every method that
spends takes `epsilon`; most say cost and expected error instead of spending with `dry_run=True`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal, Protocol, overload

import numpy as np

from dpmine import designed
from dpmine.design.priors import Named
from dpmine.epsilon import Epsilon
from dpmine.errors import BudgetError, RequestError
from dpmine.expression_text import parse_predicate
from dpmine.expressions import Column, Key, Part, Predicate, key_of
from dpmine.intervals import noise_scale
from dpmine.model_keys import Nearest, Predicted
from dpmine.queries import (
    FEW_PHANTOMS,
    LEAF,
    MOST_FITTED_STEPS,
    Cell,
    ChooseLabel,
    ChooseModel,
    ChooseSplit,
    Count,
    CutRule,
    Histogram,
    Leaf,
    Moments,
    Multiway,
    OffsetSums,
    Preview,
    PrivateTree,
    Quantile,
    Query,
    Question,
    Reply,
    Rules,
    SparseHistogram,
    Split,
    Splits,
    Thresholds,
    View,
    Where,
    leaf_paths,
    shares,
    threshold_for,
)
from dpmine.results import (
    ChosenLabel,
    ChosenModel,
    ChosenPoint,
    ChosenSplit,
    DesignedAnswer,
    Estimate,
    GrownTree,
    NoisyCount,
    NoisyHistogram,
    NoisyMoments,
    NoisyOffsets,
    NoisySparseHistogram,
    NoisyVector,
    Receipt,
    Stayed,
)
from dpmine.schema import MOST_ROWS, Numeric, Schema
from dpmine.statements import Statement

Amount = Epsilon | str | int | float | Decimal
Amounts = Amount | Sequence[Amount]
"""One epsilon for all cells, or one for each."""
Keyed = str | Column | Key | Predicate
Chosen = ChosenLabel | ChosenSplit | Stayed
CellCandidates = Keyed | Sequence[Keyed | Splits] | Sequence[Sequence[Keyed | Splits]]
LOWEST, HIGHEST = "0.005", "0.995"


class Executor(Protocol):
    """Where queries go."""

    @property
    def schema(self) -> Schema: ...

    def answer(self, query: Query, *, key: str | None = None) -> Reply: ...

    def preview(self, query: Query) -> Preview: ...

    def remaining(self) -> Epsilon: ...

    def statement(self) -> Statement: ...


Opener = Callable[[Any, Schema, Epsilon], AbstractContextManager["PrivateTable"]]
_opener: Opener | None = None


def install_opener(opener: Opener) -> None:
    """The wiring says how a table in hand becomes a private table; what builds on this module never sees the kernel."""
    global _opener
    _opener = opener


def open_in_memory(table: Any, schema: Schema, epsilon: Epsilon) -> AbstractContextManager[PrivateTable]:
    """A private table over rows in hand, with a ledger of its own in memory that holds just this budget.

    It is open inside the `with` alone: afterwards the ledger is closed, and nothing can be asked any more.
    """
    assert _opener is not None, "dpmine.dataset installs the opener"
    return _opener(table, schema, epsilon)


class PrivateTable:
    """A view of a private table. It holds no rows; every answer is charged and noisy."""

    def __init__(self, executor: Executor, view: View = View(), rules: Rules = LEAF) -> None:  # noqa: B008 (frozen)
        self._executor = executor
        self._view = view
        self._rules = rules

    @property
    def schema(self) -> Schema:
        return self._executor.schema

    def remaining(self) -> Epsilon:
        """What of the allotment is left."""
        return self._executor.remaining()

    def statement(self) -> Statement:
        """What was granted and spent, and what that guarantees."""
        return self._executor.statement()

    # -- views ------------------------------------------------------------------------------------------------------

    def with_room_for(self, epsilon: Epsilon) -> PrivateTable:
        """This view, which refuses its first new question unless what is left is enough for all that follow.

        `epsilon`, a row's, is the sum of the prices of all questions. So work in many questions fails before it spends, and
        not halfway. Questions that were answered before are free: work that is done again costs nothing, and work that was
        interrupted goes on for the rest of its price.
        """
        self._without_cells("fit")
        if len(self._view.steps) > MOST_FITTED_STEPS:
            raise RequestError(f"Models are fitted to views of at most {MOST_FITTED_STEPS} steps: they split them further.")
        # Asked of a part that nobody asks about: a count of this very view may be answered already, and would seem free.
        unasked = self._view.then(Cell(Part("room for all that follows", (1, 1)), 0))
        return PrivateTable(_RoomFirst(self._executor, unasked, epsilon), self._view)

    def where(self, predicate: Predicate | str) -> PrivateTable:
        """The rows for which the predicate holds. Costs on different `where` views add up; see `partition`."""
        self._without_cells("where")
        predicate = parse_predicate(predicate) if isinstance(predicate, str) else predicate
        if not isinstance(predicate, Predicate):
            raise RequestError("where needs a predicate such as dm.col('age') >= 40, or its text.")
        return PrivateTable(self._executor, self._view.then(Where(predicate)))

    def partition(self, by: Keyed) -> dict[str, PrivateTable]:
        """Disjoint views, one for each label of a key. Together they cost the maximum over the views, not the sum."""
        self._without_cells("partition")
        key = key_of(by)
        labels = key.labels(self.schema)
        return {label: PrivateTable(self._executor, self._view.then(Cell(key, index))) for index, label in enumerate(labels)}

    def split(self, *, test: float | str | Decimal = "0.2", salt: str = "train-test") -> tuple[PrivateTable, PrivateTable]:
        """Two disjoint views, train and test, by keyed hash: about a share `test` of the rows is in the second."""
        train, tested = self.partition(Part(salt, _shares(test))).values()
        return train, tested

    def cells(self, rules: Rules | Keyed) -> PrivateTable:
        """The same view split into the cells of a rule tree (or of one key): each question then asks every cell."""
        self._without_cells("cells")
        if not isinstance(rules, Rules):
            key = key_of(rules)
            rules = Split(key, (LEAF,) * len(key.labels(self.schema)))
        return PrivateTable(self._executor, self._view, rules)

    def _without_cells(self, what: str) -> None:
        if not isinstance(self._rules, Leaf):
            raise RequestError(f"Call {what} on the table before it is split into cells: those can only be asked.")

    # -- questions --------------------------------------------------------------------------------------------------

    @overload
    def count(
        self, *, epsilon: Amount, mechanism: None = ..., dry_run: Literal[False] = ..., request_key: str | None = ...
    ) -> NoisyCount: ...
    @overload
    def count(
        self, *, epsilon: Amount, mechanism: Named, dry_run: Literal[False] = ..., request_key: str | None = ...
    ) -> DesignedAnswer: ...
    @overload
    def count(self, *, epsilon: Amount, mechanism: Named | None = ..., dry_run: Literal[True]) -> Preview: ...
    def count(
        self, *, epsilon: Amount, mechanism: Named | None = None, dry_run: bool = False, request_key: str | None = None
    ) -> NoisyCount | DesignedAnswer | Preview:
        """The number of rows in this view, with noise of scale 1/epsilon. For each cell: `count_cells`.

        With `mechanism`, through noise designed for it; "optimal" and others need public bounds: dm.prior(..., low, high).
        """
        self._without_cells("count")
        if mechanism is not None:
            return self._told("count", None, epsilon, mechanism, dry_run, request_key)
        query = self._query(Count(), epsilon)
        if dry_run:
            return self._executor.preview(query)
        return _counts_of(self._executor.answer(query, key=request_key))[0]  # type: ignore[return-value]

    @overload
    def count_cells(
        self, *, epsilon: Amounts, dry_run: Literal[False] = ..., request_key: str | None = ...
    ) -> list[NoisyCount | None]: ...
    @overload
    def count_cells(self, *, epsilon: Amounts, dry_run: Literal[True]) -> Preview: ...
    def count_cells(
        self, *, epsilon: Amounts, dry_run: bool = False, request_key: str | None = None
    ) -> list[NoisyCount | None] | Preview:
        """The number of rows in each cell; None where that cell's epsilon is 0."""
        query = self._query(Count(), epsilon)
        if dry_run:
            return self._executor.preview(query)
        return _counts_of(self._executor.answer(query, key=request_key))

    @overload
    def histogram(
        self, *by: Keyed, epsilon: Amount, dry_run: Literal[False] = ..., request_key: str | None = ...
    ) -> NoisyHistogram: ...
    @overload
    def histogram(self, *by: Keyed, epsilon: Amount, dry_run: Literal[True]) -> Preview: ...
    def histogram(
        self, *by: Keyed, epsilon: Amount, dry_run: bool = False, request_key: str | None = None
    ) -> NoisyHistogram | Preview:
        """The number of rows for every combination of the keys' labels. For each cell: `histogram_cells`."""
        self._without_cells("histogram")
        keys, query = self._histogram(by, epsilon)
        if dry_run:
            return self._executor.preview(query)
        return self._histograms_of(keys, self._executor.answer(query, key=request_key))[0]  # type: ignore[return-value]

    @overload
    def histogram_cells(
        self, *by: Keyed, epsilon: Amounts, dry_run: Literal[False] = ..., request_key: str | None = ...
    ) -> list[NoisyHistogram | None]: ...
    @overload
    def histogram_cells(self, *by: Keyed, epsilon: Amounts, dry_run: Literal[True]) -> Preview: ...
    def histogram_cells(
        self, *by: Keyed, epsilon: Amounts, dry_run: bool = False, request_key: str | None = None
    ) -> list[NoisyHistogram | None] | Preview:
        """The histogram of each cell; None where that cell's epsilon is 0."""
        keys, query = self._histogram(by, epsilon)
        if dry_run:
            return self._executor.preview(query)
        return self._histograms_of(keys, self._executor.answer(query, key=request_key))

    @overload
    def sparse_histogram(
        self,
        *by: Keyed,
        epsilon: Amount,
        at_least: int | None = ...,
        dry_run: Literal[False] = ...,
        request_key: str | None = ...,
    ) -> NoisySparseHistogram: ...
    @overload
    def sparse_histogram(
        self, *by: Keyed, epsilon: Amount, at_least: int | None = ..., dry_run: Literal[True]
    ) -> Preview: ...
    def sparse_histogram(
        self,
        *by: Keyed,
        epsilon: Amount,
        at_least: int | None = None,
        dry_run: bool = False,
        request_key: str | None = None,
    ) -> NoisySparseHistogram | Preview:
        """The noisy counts that reach a public threshold, of as many combinations of labels as you like.

        Combinations without rows get noise too, but are not listed one by one. By default `at_least` is the smallest
        threshold that lets about 1,000 of them through by noise alone (1 where there are so few).
        """
        self._without_cells("sparse_histogram")
        keys = tuple(key_of(item) for item in by)
        labels = tuple(key.labels(self.schema) for key in keys)
        combinations = math.prod(map(len, labels))
        if at_least is None:
            at_least = threshold_for(combinations, Epsilon.parse(epsilon), FEW_PHANTOMS)
            if at_least > MOST_ROWS:
                raise RequestError("Epsilon is too small for so many combinations: no count would reach the threshold.")
        query = self._query(SparseHistogram(keys, at_least), epsilon)
        if dry_run:
            return self._executor.preview(query)
        reply = self._executor.answer(query, key=request_key)
        numbers, counts = np.array(reply.answer.numbers[0] or (), dtype=np.int64).reshape(-1, 2).T
        titles = tuple(key.title for key in keys)
        scale, receipt = reply.answer.scale(0), Receipt.of(reply, 0)
        return NoisySparseHistogram(titles, labels, numbers, counts, at_least, combinations, scale, receipt)

    def crosstab(self, rows: Keyed, columns: Keyed, *, epsilon: Amount, request_key: str | None = None) -> NoisyHistogram:
        """The histogram by two keys; `to_frame(wide=True)` lays it out as a table."""
        return self.histogram(rows, columns, epsilon=epsilon, request_key=request_key)

    @overload
    def sum(
        self,
        column: str,
        *,
        epsilon: Amount,
        mechanism: None = ...,
        dry_run: Literal[False] = ...,
        request_key: str | None = ...,
    ) -> Estimate: ...
    @overload
    def sum(
        self, column: str, *, epsilon: Amount, mechanism: Named, dry_run: Literal[False] = ..., request_key: str | None = ...
    ) -> DesignedAnswer: ...
    @overload
    def sum(self, column: str, *, epsilon: Amount, mechanism: Named | None = ..., dry_run: Literal[True]) -> Preview: ...
    def sum(
        self,
        column: str,
        *,
        epsilon: Amount,
        mechanism: Named | None = None,
        dry_run: bool = False,
        request_key: str | None = None,
    ) -> Estimate | DesignedAnswer | Preview:
        """The sum of a numeric column, clamped to its public bounds and floored to its grid."""
        if mechanism is not None:
            return self._told("sum", column, epsilon, mechanism, dry_run, request_key)
        asked = self._moments(Moments(column, (1,), centred=False), epsilon, dry_run, request_key)
        return asked if isinstance(asked, Preview) else asked.total()

    @overload
    def mean(
        self,
        column: str,
        *,
        epsilon: Amount,
        mechanism: None = ...,
        dry_run: Literal[False] = ...,
        request_key: str | None = ...,
    ) -> Estimate: ...
    @overload
    def mean(
        self, column: str, *, epsilon: Amount, mechanism: Named, dry_run: Literal[False] = ..., request_key: str | None = ...
    ) -> DesignedAnswer: ...
    @overload
    def mean(self, column: str, *, epsilon: Amount, mechanism: Named | None = ..., dry_run: Literal[True]) -> Preview: ...
    def mean(
        self,
        column: str,
        *,
        epsilon: Amount,
        mechanism: Named | None = None,
        dry_run: bool = False,
        request_key: str | None = None,
    ) -> Estimate | DesignedAnswer | Preview:
        """The mean of a numeric column, from a noisy count and a noisy sum around the middle of the grid.

        With `mechanism`, the mean itself through noise designed for its range: better where a view may hold few rows.
        """
        if mechanism is not None:
            return self._told("mean", column, epsilon, mechanism, dry_run, request_key)
        asked = self._moments(Moments(column, (0, 1), centred=True), epsilon, dry_run, request_key)
        return asked if isinstance(asked, Preview) else asked.mean()

    @overload
    def sums(
        self,
        columns: Sequence[str],
        *,
        epsilon: Amount,
        ball: str | None = ...,
        dry_run: Literal[False] = ...,
        request_key: str | None = ...,
    ) -> NoisyVector: ...
    @overload
    def sums(
        self, columns: Sequence[str], *, epsilon: Amount, ball: str | None = ..., dry_run: Literal[True]
    ) -> Preview: ...
    def sums(
        self,
        columns: Sequence[str],
        *,
        epsilon: Amount,
        ball: str | None = None,
        dry_run: bool = False,
        request_key: str | None = None,
    ) -> NoisyVector | Preview:
        """The sums of several numeric columns with one noise for all: about half the noise of one after the other."""
        return self._vector("sum", columns, epsilon, ball, dry_run, request_key)

    @overload
    def means(
        self,
        columns: Sequence[str],
        *,
        epsilon: Amount,
        ball: str | None = ...,
        dry_run: Literal[False] = ...,
        request_key: str | None = ...,
    ) -> NoisyVector: ...
    @overload
    def means(
        self, columns: Sequence[str], *, epsilon: Amount, ball: str | None = ..., dry_run: Literal[True]
    ) -> Preview: ...
    def means(
        self,
        columns: Sequence[str],
        *,
        epsilon: Amount,
        ball: str | None = None,
        dry_run: bool = False,
        request_key: str | None = None,
    ) -> NoisyVector | Preview:
        """The means of several numeric columns, from a noisy count and noisy sums with one noise for all."""
        return self._vector("mean", columns, epsilon, ball, dry_run, request_key)

    @overload
    def variance(
        self, column: str, *, epsilon: Amount, dry_run: Literal[False] = ..., request_key: str | None = ...
    ) -> Estimate: ...
    @overload
    def variance(self, column: str, *, epsilon: Amount, dry_run: Literal[True]) -> Preview: ...
    def variance(
        self, column: str, *, epsilon: Amount, dry_run: bool = False, request_key: str | None = None
    ) -> Estimate | Preview:
        """The variance of a numeric column, from a noisy count, sum and sum of squares."""
        asked = self._moments(Moments(column, (0, 1, 2), centred=True), epsilon, dry_run, request_key)
        return asked if isinstance(asked, Preview) else asked.variance()

    @overload
    def quantile(
        self,
        column: str,
        order: float | str | Decimal,
        *,
        epsilon: Amount,
        dry_run: Literal[False] = ...,
        request_key: str | None = ...,
    ) -> ChosenPoint: ...
    @overload
    def quantile(self, column: str, order: float | str | Decimal, *, epsilon: Amount, dry_run: Literal[True]) -> Preview: ...
    def quantile(
        self,
        column: str,
        order: float | str | Decimal,
        *,
        epsilon: Amount,
        dry_run: bool = False,
        request_key: str | None = None,
    ) -> ChosenPoint | Preview:
        """A grid point at or near the quantile of that order (0.5 is the median), chosen privately."""
        self._without_cells("quantile")
        fraction = _order(order)
        query = self._query(Quantile(column, fraction.numerator, fraction.denominator), epsilon)
        if dry_run:
            return self._executor.preview(query)
        reply = self._executor.answer(query, key=request_key)
        (chosen,) = reply.answer.numbers[0] or ()
        attribute = self.schema.single(column)
        assert isinstance(attribute, Numeric)
        per_row = reply.answer.sensitivity / fraction.denominator / float(reply.answer.epsilon[0])
        away = per_row * (math.log(attribute.size) + math.log(20))
        return ChosenPoint(float(attribute.point(chosen)), fraction, away, Receipt.of(reply, 0))

    def offset_sums(
        self,
        nearest: Nearest,
        origins: Sequence[Sequence[int]],
        radii: Sequence[int],
        *,
        epsilon: Amount,
        request_key: str | None = None,
    ) -> NoisyOffsets:
        """For each cluster of the nearest centres the noisy sum of its rows' offsets from an origin, clipped to a radius."""
        self._without_cells("offset_sums")
        question = OffsetSums(nearest, tuple(map(tuple, origins)), tuple(radii))
        reply = self._executor.answer(self._query(question, epsilon), key=request_key)
        sums = np.array(reply.answer.numbers[0], dtype=np.int64).reshape(len(nearest.centres), len(nearest.attributes))
        scales = tuple(noise_scale(radius, reply.answer.epsilon[0]) for radius in question.radii)
        return NoisyOffsets(sums, scales, Receipt.of(reply, 0))

    def private_tree(
        self, rules: Sequence[CutRule], *, epsilon: Amount, deepest: int = 40, request_key: str | None = None
    ) -> GrownTree:
        """A tree of cuts that is finer where more rows are; which nodes are cut is all that is told."""
        self._without_cells("private_tree")
        reply = self._executor.answer(self._query(PrivateTree(tuple(rules), deepest), epsilon), key=request_key)
        return GrownTree(reply.answer.numbers[0] or (), Receipt.of(reply, 0))

    @overload
    def median(
        self,
        column: str,
        *,
        epsilon: Amount,
        mechanism: None = ...,
        dry_run: Literal[False] = ...,
        request_key: str | None = ...,
    ) -> ChosenPoint: ...
    @overload
    def median(
        self, column: str, *, epsilon: Amount, mechanism: Named, dry_run: Literal[False] = ..., request_key: str | None = ...
    ) -> DesignedAnswer: ...
    @overload
    def median(self, column: str, *, epsilon: Amount, mechanism: Named | None = ..., dry_run: Literal[True]) -> Preview: ...
    def median(
        self,
        column: str,
        *,
        epsilon: Amount,
        mechanism: Named | None = None,
        dry_run: bool = False,
        request_key: str | None = None,
    ) -> ChosenPoint | DesignedAnswer | Preview:
        """A grid point at or near the median, chosen privately.

        With `mechanism`, the (lower) median itself through noise designed for its range.
        """
        if mechanism is not None:
            return self._told("median", column, epsilon, mechanism, dry_run, request_key)
        if dry_run:
            return self.quantile(column, "0.5", epsilon=epsilon, dry_run=True)
        return self.quantile(column, "0.5", epsilon=epsilon, request_key=request_key)

    def min(self, column: str, *, epsilon: Amount, request_key: str | None = None) -> ChosenPoint:
        """The 0.5 % quantile: the true minimum is one row's value, which no private answer may follow."""
        return self.quantile(column, LOWEST, epsilon=epsilon, request_key=request_key)

    @overload
    def max(
        self,
        column: str,
        *,
        epsilon: Amount,
        mechanism: None = ...,
        dry_run: Literal[False] = ...,
        request_key: str | None = ...,
    ) -> ChosenPoint: ...
    @overload
    def max(
        self, column: str, *, epsilon: Amount, mechanism: Named, dry_run: Literal[False] = ..., request_key: str | None = ...
    ) -> DesignedAnswer: ...
    @overload
    def max(self, column: str, *, epsilon: Amount, mechanism: Named | None = ..., dry_run: Literal[True]) -> Preview: ...
    def max(
        self,
        column: str,
        *,
        epsilon: Amount,
        mechanism: Named | None = None,
        dry_run: bool = False,
        request_key: str | None = None,
    ) -> ChosenPoint | DesignedAnswer | Preview:
        """The 99.5 % quantile: the true maximum is one row's value, which no private answer may follow.

        With `mechanism`, the largest value itself through noise designed for its range, which hides any one row's.
        """
        if mechanism is not None:
            return self._told("max", column, epsilon, mechanism, dry_run, request_key)
        if dry_run:
            return self.quantile(column, HIGHEST, epsilon=epsilon, dry_run=True)
        return self.quantile(column, HIGHEST, epsilon=epsilon, request_key=request_key)

    @overload
    def choose(
        self,
        among: Keyed,
        *,
        epsilon: Amount,
        score: Literal["count"] = ...,
        mechanism: str | None = ...,
        calibration: str = ...,
        dry_run: Literal[False] = ...,
        request_key: str | None = ...,
    ) -> ChosenLabel: ...
    @overload
    def choose(
        self,
        among: Sequence[Keyed | Splits],
        *,
        epsilon: Amount,
        score: Literal["max", "gini", "infogain", "mixed", "gain", "gini-gain", "infogain-per-row"],
        mechanism: str | None = ...,
        calibration: str = ...,
        dry_run: Literal[False] = ...,
        request_key: str | None = ...,
    ) -> ChosenSplit | Stayed: ...
    @overload
    def choose(
        self,
        among: Keyed | Sequence[Keyed | Splits],
        *,
        epsilon: Amount,
        score: str = ...,
        mechanism: str | None = ...,
        calibration: str = ...,
        dry_run: Literal[True],
    ) -> Preview: ...
    def choose(
        self,
        among: Keyed | Sequence[Keyed | Splits],
        *,
        epsilon: Amount,
        score: str = "count",
        mechanism: str | None = None,
        calibration: str = "monotone",
        dry_run: bool = False,
        request_key: str | None = None,
    ) -> Chosen | Preview:
        """Choose privately. For each cell: `choose_cells`.

        With score "count", `among` is one key, and the label that most rows have is the likeliest choice. With score
        such as "max", "gini" or "mixed", `among` lists columns (numeric ones stand for all their thresholds) or
        families of splits, and the choice is the split that best separates the class. The mechanism is permute-and-flip
        for labels and the exponential mechanism for splits unless stated; calibration "generic" is the papers' 2S.
        """
        self._without_cells("choose")
        query = self._choice([among], score, mechanism, calibration, epsilon)
        if dry_run:
            return self._executor.preview(query)
        chosen = self._chosen(query, self._executor.answer(query, key=request_key))[0]
        assert chosen is not None
        return chosen

    @overload
    def choose_cells(
        self,
        among: CellCandidates,
        *,
        epsilon: Amounts,
        score: str = ...,
        mechanism: str | None = ...,
        calibration: str = ...,
        dry_run: Literal[False] = ...,
        request_key: str | None = ...,
    ) -> list[Chosen | None]: ...
    @overload
    def choose_cells(
        self,
        among: CellCandidates,
        *,
        epsilon: Amounts,
        score: str = ...,
        mechanism: str | None = ...,
        calibration: str = ...,
        dry_run: Literal[True],
    ) -> Preview: ...
    def choose_cells(
        self,
        among: CellCandidates,
        *,
        epsilon: Amounts,
        score: str = "count",
        mechanism: str | None = None,
        calibration: str = "monotone",
        dry_run: bool = False,
        request_key: str | None = None,
    ) -> list[Chosen | None] | Preview:
        """One choice in each cell; `among` may be a list with one entry for each cell. None where epsilon is 0."""
        nested = not isinstance(among, (str, Column, Key, Predicate)) and bool(among) and isinstance(among[0], (list, tuple))
        listed: Any = among if nested else [among]
        query = self._choice(listed, score, mechanism, calibration, epsilon)
        if dry_run:
            return self._executor.preview(query)
        return self._chosen(query, self._executor.answer(query, key=request_key))

    def choose_model(
        self,
        models: Sequence[Predicted],
        *,
        epsilon: Amount,
        mechanism: str = "permute-and-flip",
        calibration: str = "monotone",
        request_key: str | None = None,
    ) -> ChosenModel:
        """Choose privately among fitted models the one that is right about most rows of this view."""
        self._without_cells("choose_model")
        query = self._query(ChooseModel(tuple(models), mechanism, calibration), epsilon)
        reply = self._executor.answer(query, key=request_key)
        (index,) = reply.answer.numbers[0] or ()
        return ChosenModel(index, Receipt.of(reply, 0))

    # -- building and reading ---------------------------------------------------------------------------------------

    def _query(self, question: Question, epsilon: Amounts) -> Query:
        if isinstance(epsilon, (list, tuple)):
            amounts = tuple(Epsilon.parse_or_zero(amount) for amount in epsilon)
            if not amounts:
                raise RequestError("Give one epsilon, or one for each cell.")
        else:
            amounts = (Epsilon.parse(epsilon),)  # type: ignore[arg-type]
        return Query(self._view, self._rules, question, amounts)

    def _told(
        self,
        statistic: str,
        column: str | None,
        epsilon: Amount,
        mechanism: Named,
        dry_run: bool,
        request_key: str | None,
    ) -> DesignedAnswer | Preview:
        self._without_cells(statistic)
        return designed.told(
            self._executor,
            self._query,
            statistic,
            column,
            epsilon=Epsilon.parse(epsilon),
            mechanism=mechanism,
            dry_run=dry_run,
            request_key=request_key,
        )

    def _vector(
        self, what: str, columns: Sequence[str], epsilon: Amount, ball: str | None, dry_run: bool, request_key: str | None
    ) -> NoisyVector | Preview:
        self._without_cells(f"{what}s")
        return designed.vector(
            self._executor,
            self._query,
            what,
            columns,
            epsilon=Epsilon.parse(epsilon),
            ball=ball,
            dry_run=dry_run,
            request_key=request_key,
        )

    def _moments(self, question: Moments, epsilon: Amount, dry_run: bool, request_key: str | None) -> NoisyMoments | Preview:
        self._without_cells("sums")
        grid = question.grid(self.schema)
        query = self._query(question, epsilon)
        if dry_run:
            return self._executor.preview(query)
        reply = self._executor.answer(query, key=request_key)
        paid = shares(reply.answer.epsilon[0].units, len(question.powers))
        scales = tuple(
            noise_scale(grid.sensitivity(power), Epsilon(share)) for power, share in zip(question.powers, paid, strict=True)
        )
        return NoisyMoments(grid, question.powers, reply.answer.numbers[0] or (), scales, Receipt.of(reply, 0))

    def _histogram(self, by: tuple[Keyed, ...], epsilon: Amounts) -> tuple[tuple[Key, ...], Query]:
        keys = tuple(key_of(item) for item in by)
        return keys, self._query(Histogram(keys), epsilon)

    def _choice(
        self,
        among: Sequence[Keyed | Sequence[Keyed | Splits]],
        score: str,
        mechanism: str | None,
        calibration: str,
        epsilon: Amounts,
    ) -> Query:
        if score == "count":
            if len(among) != 1 or isinstance(among[0], (list, tuple)):
                raise RequestError("With score 'count', name one key whose labels compete.")
            key = key_of(among[0])  # type: ignore[arg-type]
            return self._query(ChooseLabel(key, mechanism or "permute-and-flip", calibration), epsilon)
        candidates = []
        for cell in among:
            listed = cell if isinstance(cell, (list, tuple)) else [cell]
            candidates.append(tuple(splits_of(item, self.schema) for item in listed))  # type: ignore[arg-type]
        return self._query(ChooseSplit(tuple(candidates), score, mechanism or "exponential", calibration), epsilon)

    def _histograms_of(self, keys: tuple[Key, ...], reply: Reply) -> list[NoisyHistogram | None]:
        titles = tuple(key.title for key in keys)
        labels = tuple(key.labels(self.schema) for key in keys)
        shape = tuple(len(known) for known in labels)
        found: list[NoisyHistogram | None] = []
        for cell, numbers in enumerate(reply.answer.numbers):
            if numbers is None:
                found.append(None)
                continue
            counts = np.array(numbers, dtype=np.int64).reshape(shape)
            found.append(NoisyHistogram(titles, labels, counts, reply.answer.scale(cell), Receipt.of(reply, cell)))
        return found

    def _chosen(self, query: Query, reply: Reply) -> list[Chosen | None]:
        question = query.question
        found: list[Chosen | None] = []
        for cell, numbers in enumerate(reply.answer.numbers):
            if numbers is None:
                found.append(None)
            elif isinstance(question, ChooseLabel):
                label = question.key.labels(self.schema)[numbers[0]]
                found.append(ChosenLabel(label, numbers[0], Receipt.of(reply, cell)))
            else:
                assert isinstance(question, ChooseSplit)
                family, key = _candidate(question.families(cell), numbers[0], self.schema)
                receipt = Receipt.of(reply, cell)
                found.append(Stayed(receipt) if key is None else ChosenSplit(key, family, key.labels(self.schema), receipt))
        return found


class _RoomFirst:
    """An executor that checks, before the first new answer, that a whole amount could be spent on a view."""

    def __init__(self, executor: Executor, unasked: View, epsilon: Epsilon) -> None:
        self._executor = executor
        self._unasked = unasked
        self._in_all = self._needed = epsilon.units
        self._checked = False

    @property
    def schema(self) -> Schema:
        return self._executor.schema

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        if not self._checked:
            if self._executor.preview(query).cached:
                self._needed -= max(epsilon.units for epsilon in query.epsilon)  # paid, by whoever began this before
            else:
                self._check()
                self._checked = True
        return self._executor.answer(query, key=key)

    def _check(self) -> None:
        """One question at the whole amount costs at least what several ones cost that share it."""
        if self._needed <= 0:
            return
        needed = self._executor.preview(Query(self._unasked, LEAF, Count(), (Epsilon(self._needed),)))
        if needed.cached or (needed.cost <= needed.remaining and needed.dataset_suffices):
            return
        what = (
            "Cannot begin: this needs epsilon {} in all"
            if self._needed == self._in_all
            else "Cannot go on: the rest needs epsilon {}"
        )
        short = needed.cost > needed.remaining
        left = f"{needed.remaining} remains" if short else "the data set's cap over all analysts has less left"
        raise BudgetError(
            f"{what.format(needed.cost)} and {left}. Nothing was spent. Use a smaller epsilon, or ask the data owner for "
            "more.",
            requested=str(needed.cost),
            remaining=str(needed.remaining) if short else None,
        )

    def preview(self, query: Query) -> Preview:
        return self._executor.preview(query)

    def remaining(self) -> Epsilon:
        return self._executor.remaining()

    def statement(self) -> Statement:
        return self._executor.statement()


def splits_of(item: Keyed | Splits, schema: Schema) -> Splits:
    """What a user may name where candidate splits are wanted: a numeric column means all its thresholds."""
    if isinstance(item, Splits):
        return item
    if isinstance(item, (str, Column)):
        name = item if isinstance(item, str) else item.name
        if isinstance(schema.single(name), Numeric):
            return Thresholds(name)
    return Multiway(key_of(item))


def cell_labels(rules: Rules, schema: Schema) -> list[str]:
    """A readable name for each cell of a rule tree."""
    return [
        ", ".join(f"{key.title}: {key.labels(schema)[index]}" for key, index in path) or "all rows"
        for path in leaf_paths(rules)
    ]


def _counts_of(reply: Reply) -> list[NoisyCount | None]:
    return [
        None if numbers is None else NoisyCount(numbers[0], reply.answer.scale(cell), Receipt.of(reply, cell))
        for cell, numbers in enumerate(reply.answer.numbers)
    ]


def _candidate(families: tuple[Splits, ...], index: int, schema: Schema) -> tuple[int, Key | None]:
    for number, family in enumerate(families):
        size = family.size(schema)
        if index < size:
            return number, family.candidate(schema, index)
        index -= size
    raise RequestError("The answer names a candidate that was not asked for.")


def _order(order: float | str | Decimal) -> Fraction:
    try:
        fraction = Fraction(Decimal(str(order)))
    except (InvalidOperation, ValueError, OverflowError):
        fraction = Fraction(-1)
    if not 0 <= fraction <= 1 or 1000 % fraction.denominator:
        raise RequestError(f"A quantile's order is between 0 and 1, with at most 3 decimals. Got {order!r} instead.")
    return fraction


def _shares(test: float | str | Decimal) -> tuple[int, int]:
    try:
        share = Decimal(str(test))
    except InvalidOperation:
        raise RequestError(f"'test' must be a share between 0 and 1. Got {test!r} instead.") from None
    parts = int((share * 1_000_000).to_integral_value(ROUND_HALF_EVEN)) if share.is_finite() else 0
    if not 0 < parts < 1_000_000:
        raise RequestError(f"'test' must be a share between 0 and 1. Got {test!r} instead.")
    common = math.gcd(parts, 1_000_000)
    return (1_000_000 - parts) // common, parts // common
