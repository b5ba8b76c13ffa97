"""Room for work in many questions: it fails before it spends, and not halfway."""

from collections import Counter

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import BudgetError
from dpmine.codes.answers import Quote, Reply
from dpmine.facts.schema import Schema
from dpmine.language.keys import Part
from dpmine.language.queries import Query
from dpmine.language.views import LEAF, Cell, View
from dpmine.questions.histogram import Histogram
from dpmine.results.statements import PaidAnswer, Statement
from dpmine.tables.executor import Executor


class RoomFirst:
    """An executor that checks, before the first new answer, that a whole amount could be spent on a view."""

    def __init__(self, executor: Executor, view: View, epsilon: Epsilon) -> None:
        self._executor = executor
        # Asked of a part that nobody asks about: a count of this very view may be answered already, and would seem free.
        self._unasked = view.then(Cell(Part("room for all that follows", (1, 1)), 0))
        self._in_all = epsilon.units
        self._paid: Counter[View] = Counter()  # by view: whatever is asked of one adds up, and views may be disjoint
        self._checked = False

    @property
    def schema(self) -> Schema:
        return self._executor.schema

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        if not self._checked:
            if self._executor.preview(query).cached:
                self._paid[query.view] += max(epsilon.units for epsilon in query.epsilon)  # by whoever began this before
            else:
                self._check()
                self._checked = True
        return self._executor.answer(query, key=key)

    def _check(self) -> None:
        """One question at the whole amount costs at least what several ones cost that share it."""
        rest = self._in_all - max(self._paid.values(), default=0)
        if rest <= 0:
            return
        needed = self._executor.preview(Query(self._unasked, LEAF, Histogram(()), (Epsilon(rest),)))
        if needed.cached or (needed.cost <= needed.remaining and needed.dataset_suffices):
            return
        what = (
            "Cannot begin: this needs epsilon {} in all"
            if rest == self._in_all
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

    def preview(self, query: Query) -> Quote:
        return self._executor.preview(query)

    def remaining(self) -> Epsilon:
        return self._executor.remaining()

    def statement(self) -> Statement:
        return self._executor.statement()

    def answers(self) -> tuple[PaidAnswer, ...]:
        return self._executor.answers()
