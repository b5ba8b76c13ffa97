"""What every release offers: fit, the released groups, rows to mine, the same generalisation for other rows, a sheet."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.budget.plans import BudgetPlan
from dpmine.facts.encoding import Codes, smallest_type
from dpmine.mining.estimators import Estimator, named_columns
from dpmine.mining.parameters import check_seed
from dpmine.models.trees import encode_rows
from dpmine.release.released import Columns, ReleasedTable
from dpmine.release.sheet import release_sheet


class ReleaseEstimator(Estimator[ReleasedTable]):
    """A way to release a table for classification.

    After fit: `released_` (groups and noisy counts) and `plan_` (the budget plan that was carried out), beside what every
    estimator has. Nothing else about the rows is kept.
    """

    doing = "Releasing by"
    about_class = True
    raw_by_default = False
    """Whether rows are drawn back into the raw domains unless told otherwise."""

    released_: ReleasedTable
    plan_: BudgetPlan

    def _groups_of(self, rows: dict[str, Codes], count: int) -> NDArray[np.int64]:
        """For each row the number of its value of each attribute, as in `ReleasedTable.groups`."""
        raise NotImplementedError

    def _keep(self, found: ReleasedTable) -> None:
        self.released_ = found
        self.plan_ = self.plan(self.schema_, rows=found.planned_rows)
        given = {name: item.item() if isinstance(item, np.generic) else item for name, item in self.get_params().items()}
        self._fitted_with = {name: item for name, item in given.items() if name != "schema"} | {"epsilon": str(self.budget)}

    def release(self) -> ReleasedTable:
        """The released groups with their noisy counts."""
        if not hasattr(self, "released_"):
            raise RequestError(f"This {type(self).__name__} is not fitted yet. Call fit first.")
        return self.released_

    def rows(self, *, raw: bool | None = None, seed: int | None = None) -> Columns:
        """The released table as records, a dict of columns: generalised, or with `raw` drawn back into the raw domains.

        Where `raw` is not given, it is as the algorithm is meant: `TreeRelease` draws, the others generalise.
        """
        check_seed(seed)
        released = self.release()
        return released.raw_rows(seed) if (self.raw_by_default if raw is None else raw) else released.rows()

    def transform(self, X: Any) -> Columns:
        """Other rows, such as a test set, generalised by the same cuts. Other columns, and the class, are left out."""
        values = self.release().values
        rows, count = encode_rows(named_columns(X, self.schema_), self.schema_, list(values))
        return {
            name: np.array([value.name for value in values[name]], dtype=object)[codes].tolist()
            for name, codes in self.transform_codes(rows, count).items()
        }

    def transform_codes(self, rows: dict[str, Codes], count: int) -> dict[str, Codes]:
        """The same for encoded rows, `count` of them: codes of the generalised values, as in `generalised_schema()`."""
        values = self.release().values
        groups = self._groups_of(rows, count)
        return {name: groups[:, place].astype(smallest_type(len(values[name]))) for place, name in enumerate(values)}

    # -- the sheet --------------------------------------------------------------------------------------------------

    def sheet(self, *, raw: bool | None = None) -> dict[str, Any]:
        """What to hand out with the table, as plain JSON: its cost, cuts and noise, and what the numbers mean.

        `raw` says that the rows handed out are drawn back into the raw domains.
        """
        return release_sheet(
            self.release(),
            algorithm=type(self).__name__,
            parameters=self._fitted_with,
            plan=self.plan_,
            charged=self.charged_,
            raw=self.raw_by_default if raw is None else raw,
        )
