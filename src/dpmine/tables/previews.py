"""What questions would cost and how far off their answers would be: one method for each question of a private table."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from dpmine.design.priors import Named
from dpmine.facts.schema import Schema
from dpmine.language.model_keys import Nearest, Predicted
from dpmine.language.queries import Question
from dpmine.language.splits import Splits
from dpmine.language.views import LEAF, View
from dpmine.questions.choose_model import ChooseModel
from dpmine.questions.histogram import Histogram
from dpmine.questions.offset_sums import OffsetSums
from dpmine.questions.private_tree import CutRule, PrivateTree
from dpmine.results.preview import Preview
from dpmine.results.reading import preview_of
from dpmine.tables import asking
from dpmine.tables.asking import Amount, ColumnName, Keyed, query_of
from dpmine.tables.executor import Executor


class Previews:
    """The questions of a private table, without asking them: no row is looked at and nothing is spent."""

    def __init__(self, executor: Executor, view: View) -> None:
        self._executor = executor
        self._view = view

    @property
    def _schema(self) -> Schema:
        return self._executor.schema

    def count(self, *, epsilon: Amount, design: Named | None = None) -> Preview:
        return self._statistic("count", None, epsilon, design, Histogram(()))

    def histogram(self, *by: Keyed, epsilon: Amount) -> Preview:
        return self.ask(asking.histogram(by), epsilon=epsilon)

    def crosstab(self, rows: Keyed, columns: Keyed, *, epsilon: Amount) -> Preview:
        return self.histogram(rows, columns, epsilon=epsilon)

    def sparse_histogram(self, *by: Keyed, epsilon: Amount, at_least: int | None = None) -> Preview:
        return self.ask(asking.sparse_histogram(self._schema, by, epsilon, at_least), epsilon=epsilon)

    def sum(self, column: ColumnName, *, epsilon: Amount, design: Named | None = None) -> Preview:
        return self._statistic("sum", column, epsilon, design, asking.total(column))

    def mean(self, column: ColumnName, *, epsilon: Amount, design: Named | None = None) -> Preview:
        return self._statistic("mean", column, epsilon, design, asking.mean(column))

    def variance(self, column: ColumnName, *, epsilon: Amount) -> Preview:
        return self.ask(asking.variance(column), epsilon=epsilon)

    def std(self, column: ColumnName, *, epsilon: Amount) -> Preview:
        return self.variance(column, epsilon=epsilon)

    def covariance(self, first: ColumnName, second: ColumnName, *, epsilon: Amount) -> Preview:
        return self.ask(asking.covariance(first, second), epsilon=epsilon)

    def sums(self, columns: Sequence[ColumnName], *, epsilon: Amount, ball: str | None = None) -> Preview:
        return self.ask(asking.vector_sums(self._schema, columns, epsilon, ball, means=False), epsilon=epsilon)

    def means(self, columns: Sequence[ColumnName], *, epsilon: Amount, ball: str | None = None) -> Preview:
        return self.ask(asking.vector_sums(self._schema, columns, epsilon, ball, means=True), epsilon=epsilon)

    def quantile(self, column: ColumnName, order: float | str | Decimal, *, epsilon: Amount) -> Preview:
        return self.ask(asking.quantile(column, order), epsilon=epsilon)

    def median(self, column: ColumnName, *, epsilon: Amount, design: Named | None = None) -> Preview:
        return self._statistic("median", column, epsilon, design, asking.quantile(column, asking.MEDIAN))

    def min(self, column: ColumnName, *, epsilon: Amount) -> Preview:
        return self.quantile(column, asking.LOWEST, epsilon=epsilon)

    def max(self, column: ColumnName, *, epsilon: Amount, design: Named | None = None) -> Preview:
        return self._statistic("max", column, epsilon, design, asking.quantile(column, asking.HIGHEST))

    def choose(
        self,
        among: Keyed | Sequence[Keyed | Splits],
        *,
        epsilon: Amount,
        score: str = "count",
        mechanism: str | None = None,
        calibration: str = "monotone",
    ) -> Preview:
        return self.ask(asking.choice(self._schema, [among], score, mechanism, calibration), epsilon=epsilon)

    def choose_model(
        self,
        models: Sequence[Predicted],
        *,
        epsilon: Amount,
        mechanism: str = "permute-and-flip",
        calibration: str = "monotone",
    ) -> Preview:
        return self.ask(ChooseModel(tuple(models), mechanism, calibration), epsilon=epsilon)

    def offset_sums(
        self, nearest: Nearest, origins: Sequence[Sequence[int]], radii: Sequence[int], *, epsilon: Amount
    ) -> Preview:
        return self.ask(OffsetSums(nearest, tuple(map(tuple, origins)), tuple(radii)), epsilon=epsilon)

    def private_tree(self, rules: Sequence[CutRule], *, epsilon: Amount, deepest: int = 40) -> Preview:
        return self.ask(PrivateTree(tuple(rules), deepest), epsilon=epsilon)

    def ask(self, question: Question, *, epsilon: Amount) -> Preview:
        """What any question would cost."""
        query = query_of(self._schema, self._view, LEAF, question, epsilon)
        return preview_of(query, self._executor.preview(query), self._schema)

    def _statistic(
        self, statistic: str, column: ColumnName | None, epsilon: Amount, design: Named | None, plain: Question
    ) -> Preview:
        """Of the plain question, or of the one with designed noise and why that would be taken."""
        if design is None:
            return self.ask(plain, epsilon=epsilon)
        made, question = asking.designed(self._schema, statistic, column, epsilon, design)
        preview = self.ask(question, epsilon=epsilon)
        return replace(preview, expected_error=f"{preview.expected_error} {made.in_words()}")
