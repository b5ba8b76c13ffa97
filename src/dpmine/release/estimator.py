"""What every release offers: fit, the released groups, rows to mine, the same generalisation for other rows, a sheet."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmine.codes import Codes
from dpmine.epsilon import Epsilon
from dpmine.errors import RequestError
from dpmine.mining.estimators import Estimator, SchemaLike, named_columns
from dpmine.progress import Progress
from dpmine.release.released import Columns, ReleasedTable
from dpmine.schema import Schema
from dpmine.tables import PrivateTable
from dpmine.tree_models import encode_rows


class ReleaseEstimator(Estimator):
    """A way to release a table for classification.

    After fit: `released_` (groups and noisy counts), `schema_` (the public facts), `cost_` (the epsilon that the release
    discloses), `charged_` (by how much the budget fell: less where answers were free). Nothing else about the rows is kept.
    """

    released_: ReleasedTable
    schema_: Schema
    cost_: Epsilon
    charged_: Epsilon

    def _release(self, private: PrivateTable, progress: Progress) -> ReleasedTable:
        """Ask the private table, spend at most the budget, and return what may be released."""
        raise NotImplementedError

    def _groups_of(self, rows: dict[str, Codes], count: int) -> NDArray[np.int64]:
        """For each row the number of its value of each attribute, as in `ReleasedTable.groups`."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, *, schema: SchemaLike = None, progress: bool | None = None) -> Self:
        """Learn what to release from a private table, or from rows in hand: fit(private) or fit(X, y, schema=...)."""
        private = self._private(X, y, schema)
        plan = self.plan(private.schema)  # states every mistake in the parameters before anything is spent
        before = private.remaining().units
        guarded = private.with_room_for(Epsilon(plan.cost.units // plan.rows_per_unit))
        self.released_ = self._release(guarded, Progress(f"Releasing by {plan.algorithm}", shown=progress))
        self.schema_, self.cost_ = private.schema, plan.cost
        self.charged_ = Epsilon(before - private.remaining().units)
        return self

    def release(self) -> ReleasedTable:
        """The released groups with their noisy counts."""
        if not hasattr(self, "released_"):
            raise RequestError(f"This {type(self).__name__} is not fitted yet. Call fit first.")
        return self.released_

    def rows(self, *, raw: bool = False, seed: int | None = None) -> Columns:
        """The released table as records, a dict of columns: generalised, or with `raw` drawn back into the raw domains."""
        return self.release().raw_rows(seed) if raw else self.release().rows()

    def transform(self, X: Any) -> Columns:
        """Other rows, such as a test set, generalised by the same cuts. Other columns, and the class, are left out."""
        released = self.release()
        names = list(released.values)
        rows, count = encode_rows(named_columns(X, self.schema_), self.schema_, names)
        groups = self._groups_of(rows, count)
        columns: Columns = {}
        for place, (name, values) in enumerate(released.values.items()):
            columns[name] = np.array([value.name for value in values], dtype=object)[groups[:, place]].tolist()
        return columns
