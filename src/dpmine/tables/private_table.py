"""What a miner holds: a private table that only builds queries and hands them to an executor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any, Literal, overload

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.design.priors import Named
from dpmine.facts.schema import Schema
from dpmine.language.columns import key_of
from dpmine.language.keys import Part
from dpmine.language.model_keys import Nearest, Predicted
from dpmine.language.parsing import parse_predicate
from dpmine.language.predicates import Predicate
from dpmine.language.queries import Question
from dpmine.language.resolver import MOST_FITTED_STEPS
from dpmine.language.splits import Splits
from dpmine.language.views import LEAF, Cell, Rules, View, Where
from dpmine.questions.choose_label import ChosenLabel
from dpmine.questions.choose_model import ChooseModel, ChosenModel
from dpmine.questions.choose_split import ChosenSplit, Stayed
from dpmine.questions.designed_statistic import DesignedAnswer
from dpmine.questions.histogram import Histogram, NoisyCount, NoisyHistogram
from dpmine.questions.moments import Moments, NoisyMoments
from dpmine.questions.offset_sums import NoisyOffsetSums, OffsetSums
from dpmine.questions.private_tree import CutRule, GrownPrivateTree, PrivateTree
from dpmine.questions.quantile import ChosenQuantile
from dpmine.questions.sparse_histogram import NoisySparseHistogram
from dpmine.questions.total import NoisyTotal
from dpmine.questions.vector_sums import NoisyVectorSums
from dpmine.results.estimates import Estimate
from dpmine.results.reading import results_of
from dpmine.results.receipts import cell_replies
from dpmine.results.statements import Statement
from dpmine.tables import asking
from dpmine.tables.asking import Amount, ColumnName, Keyed, SplitScore, query_of
from dpmine.tables.executor import Executor
from dpmine.tables.previews import Previews
from dpmine.tables.private_cells import PrivateCells
from dpmine.tables.room import RoomFirst


class PrivateTable:
    """A view of a private table. It holds no rows; every answer is charged and noisy.

    Every question takes `epsilon`, and a `request_key` under which it can be asked again for free. What it would cost, and
    how far off its answer would be, is told for free by the same method of `preview`.
    """

    def __init__(self, executor: Executor, view: View = View()) -> None:  # noqa: B008 (frozen)
        self._executor = executor
        self._view = view
        self._schema = executor.schema

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def preview(self) -> Previews:
        """The same questions, without asking them: `private.preview.histogram("ward", epsilon=0.1)`."""
        return Previews(self._executor, self._view)

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
        if len(self._view.steps) > MOST_FITTED_STEPS:
            raise RequestError(f"Models are fitted to views of at most {MOST_FITTED_STEPS} steps: they split them further.")
        return PrivateTable(RoomFirst(self._executor, self._view, epsilon), self._view)

    def where(self, predicate: Predicate | str) -> PrivateTable:
        """The rows for which the predicate holds. Costs on different `where` views add up; see `partition`."""
        predicate = parse_predicate(predicate) if isinstance(predicate, str) else predicate
        if not isinstance(predicate, Predicate):
            raise RequestError("where needs a predicate such as dm.col('age') >= 40, or its text.")
        return PrivateTable(self._executor, self._view.then(Where(predicate)))

    def with_class(self) -> PrivateTable:
        """The rows that have a class: others teach and judge nothing. This view where the schema gives every row one."""
        return PrivateTable(self._executor, self._view.with_class(self.schema))

    def partition(self, by: Keyed) -> dict[str, PrivateTable]:
        """Disjoint views, one for each label of a key. Together they cost the maximum over the views, not the sum.

        Rows without a value have a view of their own, unless the schema drops them.
        """
        key = key_of(by)
        labels, hidden = key.labels(self.schema), key.hidden(self.schema)
        return {
            label: PrivateTable(self._executor, self._view.then(Cell(key, index)))
            for index, label in enumerate(labels)
            if index != hidden
        }

    def split(self, *, test: float | str | Decimal = "0.2", salt: str = "train-test") -> tuple[PrivateTable, PrivateTable]:
        """Two disjoint views, train and test, by keyed hash: about a share `test` of the rows is in the second."""
        train, tested = self.partition(Part(salt, _shares(test))).values()
        return train, tested

    def cells(self, rules: Rules | Keyed) -> PrivateCells:
        """The same view split into the cells of a rule tree (or of one key): each question then asks every cell."""
        return PrivateCells(self._executor, self._view, asking.rules_of(rules, self.schema))

    # -- counts -----------------------------------------------------------------------------------------------------

    @overload
    def count(self, *, epsilon: Amount, design: None = ..., request_key: str | None = ...) -> NoisyCount: ...
    @overload
    def count(self, *, epsilon: Amount, design: Named, request_key: str | None = ...) -> DesignedAnswer: ...
    def count(
        self, *, epsilon: Amount, design: Named | None = None, request_key: str | None = None
    ) -> NoisyCount | DesignedAnswer:
        """The number of rows in this view, with noise of scale 1/epsilon.

        With `design`, through noise designed for it; "optimal" and others need public bounds: dm.prior(..., low, high).
        """
        if design is not None:
            return self._designed("count", None, epsilon, design, request_key)
        counted: NoisyCount = self.ask(Histogram(()), epsilon=epsilon, request_key=request_key)
        return counted

    def histogram(self, *by: Keyed, epsilon: Amount, request_key: str | None = None) -> NoisyHistogram:
        """The number of rows for every combination of the keys' labels."""
        counted: NoisyHistogram = self.ask(asking.histogram(by), epsilon=epsilon, request_key=request_key)
        return counted

    def crosstab(self, rows: Keyed, columns: Keyed, *, epsilon: Amount, request_key: str | None = None) -> NoisyHistogram:
        """The histogram by two keys; `to_frame(wide=True)` lays it out as a table."""
        return self.histogram(rows, columns, epsilon=epsilon, request_key=request_key)

    def sparse_histogram(
        self, *by: Keyed, epsilon: Amount, at_least: int | None = None, request_key: str | None = None
    ) -> NoisySparseHistogram:
        """The noisy counts that reach a public threshold, of as many combinations of labels as you like.

        Combinations without rows get noise too, but are not listed one by one. By default `at_least` is the smallest
        threshold that lets about 1,000 of them through by noise alone (1 where there are so few).
        """
        question = asking.sparse_histogram(self.schema, by, epsilon, at_least)
        counted: NoisySparseHistogram = self.ask(question, epsilon=epsilon, request_key=request_key)
        return counted

    # -- sums and means ---------------------------------------------------------------------------------------------

    @overload
    def sum(self, column: ColumnName, *, epsilon: Amount, design: None = ..., request_key: str | None = ...) -> Estimate: ...
    @overload
    def sum(
        self, column: ColumnName, *, epsilon: Amount, design: Named, request_key: str | None = ...
    ) -> DesignedAnswer: ...
    def sum(
        self, column: ColumnName, *, epsilon: Amount, design: Named | None = None, request_key: str | None = None
    ) -> Estimate | DesignedAnswer:
        """The sum of a numeric column, clamped to its public bounds.

        Where gaps are possible a twentieth of epsilon tells how many rows it is of.
        """
        if design is not None:
            return self._designed("sum", column, epsilon, design, request_key)
        summed: NoisyTotal = self.ask(asking.total(column), epsilon=epsilon, request_key=request_key)
        return summed.total()

    @overload
    def mean(
        self, column: ColumnName, *, epsilon: Amount, design: None = ..., request_key: str | None = ...
    ) -> Estimate: ...
    @overload
    def mean(
        self, column: ColumnName, *, epsilon: Amount, design: Named, request_key: str | None = ...
    ) -> DesignedAnswer: ...
    def mean(
        self, column: ColumnName, *, epsilon: Amount, design: Named | None = None, request_key: str | None = None
    ) -> Estimate | DesignedAnswer:
        """The mean of a numeric column over the rows that have a value, and about how many these are.

        With `design`, the mean itself through noise designed for its range: better where a view may hold few rows.
        """
        if design is not None:
            return self._designed("mean", column, epsilon, design, request_key)
        return self._moments(asking.mean(column), epsilon, request_key).mean()

    def variance(self, column: ColumnName, *, epsilon: Amount, request_key: str | None = None) -> Estimate:
        """The variance (over n) of a numeric column over the rows that have a value."""
        return self._moments(asking.variance(column), epsilon, request_key).variance()

    def std(self, column: ColumnName, *, epsilon: Amount, request_key: str | None = None) -> Estimate:
        """The standard deviation (over n) of a numeric column. After `variance` at the same epsilon it is free."""
        return self._moments(asking.variance(column), epsilon, request_key).std()

    def covariance(
        self, first: ColumnName, second: ColumnName, *, epsilon: Amount, request_key: str | None = None
    ) -> Estimate:
        """The covariance (over n) of two numeric columns over the rows that have a value in both."""
        return self._moments(asking.covariance(first, second), epsilon, request_key).covariance()

    def sums(
        self, columns: Sequence[ColumnName], *, epsilon: Amount, ball: str | None = None, request_key: str | None = None
    ) -> NoisyVectorSums:
        """The sums of several numeric columns with one noise for all: about half the noise of one after the other."""
        question = asking.vector_sums(self.schema, columns, epsilon, ball, means=False)
        summed: NoisyVectorSums = self.ask(question, epsilon=epsilon, request_key=request_key)
        return summed

    def means(
        self, columns: Sequence[ColumnName], *, epsilon: Amount, ball: str | None = None, request_key: str | None = None
    ) -> NoisyVectorSums:
        """The means of several numeric columns, from a noisy count and noisy sums with one noise for all.

        Rows without a value in any of the columns do not count.
        """
        question = asking.vector_sums(self.schema, columns, epsilon, ball, means=True)
        summed: NoisyVectorSums = self.ask(question, epsilon=epsilon, request_key=request_key)
        return summed

    # -- quantiles --------------------------------------------------------------------------------------------------

    def quantile(
        self, column: ColumnName, order: float | str | Decimal, *, epsilon: Amount, request_key: str | None = None
    ) -> ChosenQuantile:
        """A value at or near the quantile of that order (0.5 is the median), chosen privately.

        Where gaps are possible a twentieth of epsilon tells how many rows have a value.
        """
        chosen: ChosenQuantile = self.ask(asking.quantile(column, order), epsilon=epsilon, request_key=request_key)
        return chosen

    @overload
    def median(
        self, column: ColumnName, *, epsilon: Amount, design: None = ..., request_key: str | None = ...
    ) -> ChosenQuantile: ...
    @overload
    def median(
        self, column: ColumnName, *, epsilon: Amount, design: Named, request_key: str | None = ...
    ) -> DesignedAnswer: ...
    def median(
        self, column: ColumnName, *, epsilon: Amount, design: Named | None = None, request_key: str | None = None
    ) -> ChosenQuantile | DesignedAnswer:
        """A value at or near the median, chosen privately.

        With `design`, the (lower) median itself through noise designed for its range.
        """
        if design is not None:
            return self._designed("median", column, epsilon, design, request_key)
        return self.quantile(column, asking.MEDIAN, epsilon=epsilon, request_key=request_key)

    def min(self, column: ColumnName, *, epsilon: Amount, request_key: str | None = None) -> ChosenQuantile:
        """The 0.5 % quantile: the true minimum is one row's value, which no private answer may follow."""
        return self.quantile(column, asking.LOWEST, epsilon=epsilon, request_key=request_key)

    @overload
    def max(
        self, column: ColumnName, *, epsilon: Amount, design: None = ..., request_key: str | None = ...
    ) -> ChosenQuantile: ...
    @overload
    def max(
        self, column: ColumnName, *, epsilon: Amount, design: Named, request_key: str | None = ...
    ) -> DesignedAnswer: ...
    def max(
        self, column: ColumnName, *, epsilon: Amount, design: Named | None = None, request_key: str | None = None
    ) -> ChosenQuantile | DesignedAnswer:
        """The 99.5 % quantile: the true maximum is one row's value, which no private answer may follow.

        With `design`, the largest value itself through noise designed for its range, which hides any one row's.
        """
        if design is not None:
            return self._designed("max", column, epsilon, design, request_key)
        return self.quantile(column, asking.HIGHEST, epsilon=epsilon, request_key=request_key)

    # -- choices ----------------------------------------------------------------------------------------------------

    @overload
    def choose(
        self,
        among: Keyed,
        *,
        epsilon: Amount,
        score: Literal["count"] = ...,
        mechanism: str | None = ...,
        calibration: str = ...,
        request_key: str | None = ...,
    ) -> ChosenLabel: ...
    @overload
    def choose(
        self,
        among: Sequence[Keyed | Splits],
        *,
        epsilon: Amount,
        score: SplitScore,
        mechanism: str | None = ...,
        calibration: str = ...,
        request_key: str | None = ...,
    ) -> ChosenSplit | Stayed: ...
    def choose(
        self,
        among: Keyed | Sequence[Keyed | Splits],
        *,
        epsilon: Amount,
        score: str = "count",
        mechanism: str | None = None,
        calibration: str = "monotone",
        request_key: str | None = None,
    ) -> ChosenLabel | ChosenSplit | Stayed:
        """Choose privately.

        With score "count", `among` is one key, and the label that most rows have is the likeliest choice. With score
        such as "max", "gini" or "mixed", `among` lists columns (numeric ones stand for all their thresholds) or
        families of splits, and the choice is the split that best separates the class. The mechanism is permute-and-flip
        for labels and the exponential mechanism for splits unless stated; calibration "generic" is the papers' 2S.
        """
        question = asking.choice(self.schema, [among], score, mechanism, calibration)
        chosen: ChosenLabel | ChosenSplit | Stayed = self.ask(question, epsilon=epsilon, request_key=request_key)
        return chosen

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
        question = ChooseModel(tuple(models), mechanism, calibration)
        chosen: ChosenModel = self.ask(question, epsilon=epsilon, request_key=request_key)
        return chosen

    # -- steps of algorithms ----------------------------------------------------------------------------------------

    def offset_sums(
        self,
        nearest: Nearest,
        origins: Sequence[Sequence[int]],
        radii: Sequence[int],
        *,
        epsilon: Amount,
        request_key: str | None = None,
    ) -> NoisyOffsetSums:
        """For each cluster of the nearest centres the noisy sum of its rows' offsets from an origin, clipped to a radius."""
        question = OffsetSums(nearest, tuple(map(tuple, origins)), tuple(radii))
        summed: NoisyOffsetSums = self.ask(question, epsilon=epsilon, request_key=request_key)
        return summed

    def private_tree(
        self, rules: Sequence[CutRule], *, epsilon: Amount, deepest: int = 40, request_key: str | None = None
    ) -> GrownPrivateTree:
        """A tree of cuts that is finer where more rows are; which nodes are cut is all that is told."""
        grown: GrownPrivateTree = self.ask(PrivateTree(tuple(rules), deepest), epsilon=epsilon, request_key=request_key)
        return grown

    # -- any question -----------------------------------------------------------------------------------------------

    def ask(self, question: Question, *, epsilon: Amount, request_key: str | None = None) -> Any:
        """Ask any question of this view; what comes back is how its kind is read."""
        query = query_of(self._schema, self._view, LEAF, question, epsilon)
        return results_of(query, self._executor.answer(query, key=request_key), self.schema)[0]

    def _moments(self, question: Moments, epsilon: Amount, request_key: str | None) -> NoisyMoments:
        summed: NoisyMoments = self.ask(question, epsilon=epsilon, request_key=request_key)
        return summed

    def _designed(
        self, statistic: str, column: ColumnName | None, epsilon: Amount, named: Named, request_key: str | None
    ) -> DesignedAnswer:
        made, question = asking.designed(self.schema, statistic, column, epsilon, named)
        query = query_of(self._schema, self._view, LEAF, question, epsilon)
        (told,) = cell_replies(self._executor.answer(query, key=request_key))
        assert told is not None
        return DesignedAnswer.of(made, question, told)


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
