"""What every estimator shares: parameters as scikit-learn's users know them, and the ways to hand over data.

An estimator is a dataclass whose fields are its parameters, stored as given and checked when it is fitted. It follows
scikit-learn's habits without importing it.
"""

from __future__ import annotations

import dataclasses
import warnings
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpmine.epsilon import Epsilon
from dpmine.errors import DpmineWarning, RequestError
from dpmine.frames import FrameSource
from dpmine.mining.budget_plans import BudgetPlan
from dpmine.mining.labels import words_of
from dpmine.schema import ItemList, Schema
from dpmine.tables import PrivateTable, open_in_memory

Amount = Epsilon | str | int | float | Decimal
SchemaLike = Schema | str | Path | None

_warned_of_folds = False


class Estimator:
    """Parameters, and the private table to learn from. Subclasses are dataclasses with at least these two fields."""

    epsilon: Amount
    schema: SchemaLike

    @property
    def budget(self) -> Epsilon:
        """All that fitting may cost."""
        return Epsilon.parse(self.epsilon)

    def row_budget(self, schema: Schema) -> Epsilon:
        """What queries may spend along one row: a person with several rows is charged for each."""
        return Epsilon(self.budget.units // schema.rows_per_unit)

    def plan(self, schema: Schema | str | Path, *, rows: int | None = None) -> BudgetPlan:
        """What fitting will spend, step by step. Spends nothing and looks at no row."""
        raise NotImplementedError

    # -- parameters -------------------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameter names and values; `deep` is for scikit-learn, no parameter holds further ones."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change parameters; what was fitted stays as it is until the next fit."""
        known = self.get_params()
        for name, setting in params.items():
            if name not in known:
                raise RequestError(f"{type(self).__name__} has no parameter {name!r}. It has {', '.join(known)}.")
            setattr(self, name, setting)
        return self

    def __repr__(self) -> str:
        shown = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            setting = getattr(self, field.name)
            if setting != field.default:
                shown.append(f"{field.name}={setting.name if isinstance(setting, Schema) else setting!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy. Cross-validation fits such copies, and is told once what that costs."""
        copy = type(self)(**self.get_params())
        copy._is_a_clone = True
        return copy

    _is_a_clone = False

    # -- data -------------------------------------------------------------------------------------------------------

    def _private(self, data: Any, y: Any, schema: SchemaLike) -> AbstractContextManager[PrivateTable]:
        """The private table to learn from: as given, or opened for this one fit from a table in hand and closed after it."""
        if isinstance(data, PrivateTable):
            if y is not None or schema is not None:
                raise RequestError("A private table brings its class and schema along: call fit(private) alone.")
            return nullcontext(data)
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


def check_number(name: str, number: object, low: float, high: float, *, whole: bool = False) -> None:
    """A parameter must be a number in a range, or the error says which one is not."""
    kind = Integral if whole else Real
    if isinstance(number, bool) or not isinstance(number, kind) or not low <= float(number) <= high:
        sort = "a whole number" if whole else "a number"
        raise RequestError(f"{name} must be {sort} from {low:g} to {high:g}. Got {number!r} instead.")


def check_seed(seed: object) -> None:
    """The seed of public choices, or None. Checked before anything is spent: what needs it comes last."""
    if seed is not None:
        check_number("seed", seed, 0, 2**63, whole=True)


def named_columns(data: Any, schema: Schema) -> Any:
    """A table whose columns have names: those of an array are the schema's attributes, in order, without the class."""
    if not isinstance(data, np.ndarray):
        return data
    if any(isinstance(attribute, ItemList) for attribute in schema.attributes):
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
