"""What every estimator shares: one way from data in hand or a private table to what is learned, and what that cost.

An estimator is a dataclass whose fields are its parameters, stored as given and checked when it is fitted. It follows
scikit-learn's habits without importing it. An algorithm states its budget once, in `budget_for`: the plan lists the steps of
that, and learning asks by them.
"""

import warnings
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import DpmineWarning, RequestError
from dpmine.base.progress import Progress
from dpmine.budget.plans import BudgetPlan, StatedBudget
from dpmine.budget.rows import per_row
from dpmine.facts.class_labels import words_of
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FrameSource
from dpmine.mining.parameters import Parameters
from dpmine.tables.opening import open_in_memory
from dpmine.tables.private_cells import PrivateCells
from dpmine.tables.private_table import PrivateTable

Amount = Epsilon | str | int | float | Decimal
SchemaLike = Schema | str | Path | None
Found = TypeVar("Found")
"""What learning finds: trees, centres with sizes, a released table."""

_warned_of_folds = False


class Estimator(Parameters, Generic[Found]):
    """A way to learn from a private table. Subclasses are dataclasses with at least these two fields.

    After fit: `schema_` (the public facts), `cost_` (the epsilon that what was learned discloses, whatever else was asked),
    `charged_` (by how much the budget fell: less where answers were free).
    """

    epsilon: Amount
    schema: SchemaLike

    schema_: Schema
    cost_: Epsilon
    charged_: Epsilon

    # -- what an algorithm brings -----------------------------------------------------------------------------------

    doing: ClassVar[str]
    """What its progress bar says before the plan's title."""
    about_class: ClassVar[bool] = False
    """Whether it learns about the class: rows without one are then left out."""

    def title(self, schema: Schema) -> str:
        """The algorithm's name in its plan."""
        raise NotImplementedError

    def check(self, schema: Schema) -> None:
        """Refuse, before anything is spent, parameters that cannot be."""
        raise NotImplementedError

    def budget_for(self, schema: Schema, rows: float = 0) -> StatedBudget:
        """Who gets what of a row's budget, worked out here alone. It may follow from about how many rows there are."""
        raise NotImplementedError

    def _learn(self, private: PrivateTable, progress: Progress) -> Found:
        """Ask the private table, each question by a step of the budget, and return what was found."""
        raise NotImplementedError

    def _keep(self, found: Found) -> None:
        """What is known from now on; `schema_`, `cost_` and `charged_` are."""
        raise NotImplementedError

    # -- planned and fitted -----------------------------------------------------------------------------------------

    @property
    def budget(self) -> Epsilon:
        """All that fitting may cost."""
        return Epsilon.parse(self.epsilon)

    def row_budget(self, schema: Schema) -> Epsilon:
        """What queries may spend along one row: a person with several rows is charged for each."""
        return per_row(self.budget, schema)

    def plan(self, schema: Schema | str | Path, *, rows: int | None = None) -> BudgetPlan:
        """What fitting will spend, step by step. Spends nothing and looks at no row."""
        facts = Schema.load(schema)
        self.check(facts)
        stated = self.budget_for(facts, facts.rows_at_most if rows is None else rows)
        return BudgetPlan(self.title(facts), self.budget, stated.steps, facts.rows_per_unit)

    def fit(self, X: Any, y: Any = None, *, schema: SchemaLike = None, progress: bool | None = None) -> Self:
        """Learn from a private table, or from rows in hand: fit(private) or fit(X, y, schema=...).

        `progress=True` shows a bar, `False` none; by default it appears on a terminal when a fit takes long.
        """
        with self._private(X, y, schema) as private:
            plan = self.plan(private.schema)  # states every mistake in the parameters before anything is spent
            before = private.remaining().units
            bar = Progress(f"{self.doing} {plan.algorithm}", shown=progress)
            rows = private.with_class() if self.about_class else private
            found = self._learn(rows.with_room_for(plan.row_cost), bar)
            self.schema_, self.cost_ = private.schema, plan.cost
            self.charged_ = Epsilon(before - private.remaining().units)
        self._keep(found)
        return self

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy. Cross-validation fits such copies, and is told once what that costs."""
        copy = type(self)(**self.get_params())
        copy._is_a_clone = True
        return copy

    _is_a_clone = False

    # -- data -------------------------------------------------------------------------------------------------------

    def _private(self, data: Any, y: Any, schema: SchemaLike) -> AbstractContextManager[PrivateTable]:
        """The private table to learn from: as given, or opened for this one fit from a table in hand and closed after it."""
        if isinstance(data, PrivateCells):
            raise RequestError("Call fit on the table before it is split into cells: those can only be asked.")
        if not isinstance(data, PrivateTable):
            return self._opened(data, y, schema)
        if y is not None or schema is not None:
            raise RequestError("A private table brings its schema along, and its class: call fit(private) alone.")
        return nullcontext(data)

    def _opened(self, data: Any, y: Any, schema: SchemaLike) -> AbstractContextManager[PrivateTable]:
        """A private table over rows in hand: the class is a column of them, or y."""
        facts = self._facts(schema)
        target = facts.require_class()
        if self._is_a_clone:
            _warn_of_folds()
        table = named_columns(data, facts)
        if y is not None:
            table = FrameSource(table, {target: words_of(y, facts.class_labels)})
        return open_in_memory(table, facts, self.budget)

    def _facts(self, schema: SchemaLike) -> Schema:
        given = schema if schema is not None else self.schema
        if given is None:
            raise RequestError(
                f"{type(self).__name__} needs the public facts about this table: fit(X, y, schema=...). Draft them with "
                "dm.Schema.draft(table) or `dpmine schema draft FILE`, then correct what may not be learned from rows."
            )
        return Schema.load(given)


def named_columns(data: Any, schema: Schema) -> Any:
    """A table whose columns have names: those of an array are the schema's attributes, in order, without the class."""
    if not isinstance(data, np.ndarray):
        return data
    if schema.lists:
        raise RequestError("An array cannot hold the schema's lists. Give a data frame or a dict of columns.")
    names = [a.name for a in schema.attributes if a.name != schema.class_attribute]
    if data.ndim != 2 or data.shape[1] != len(names):
        raise RequestError(
            f"An array must have one column for each of the schema's {len(names)} attributes ({', '.join(names)}). "
            f"Got shape {data.shape}; or give a data frame, whose columns have names."
        )
    return {name: data[:, place].tolist() for place, name in enumerate(names)}


def _warn_of_folds() -> None:
    global _warned_of_folds
    if not _warned_of_folds:
        _warned_of_folds = True
        warnings.warn(
            "Fitting copies of this model on rows in hand, as cross-validation does, spends epsilon once for every copy "
            "that sees a row, and scores computed from true labels are not private. Use it on public data; on private "
            "data use split() and evaluate().",
            DpmineWarning,
            stacklevel=4,
        )
