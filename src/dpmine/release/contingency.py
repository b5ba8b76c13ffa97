"""The noisy contingency table: every combination of raw values with its noisy count, what DiffGen is compared to.

It is private and it is simple, but the combinations far outnumber the rows: nearly every count is noise.
"""

from dataclasses import dataclass

from dpmine.base.errors import RequestError
from dpmine.base.progress import Progress
from dpmine.budget.plans import PlanStep, StatedBudget, off_by
from dpmine.facts.kinds.kind import Ordered
from dpmine.facts.kinds.numeric import MOST_GRID_POINTS
from dpmine.facts.schema import Schema
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.parameters import check_number
from dpmine.models.cuts import Cut, combinations, evenly_cut, finest_cut, predictors
from dpmine.release.counting import AUTO, at_least, check_attributes, check_threshold, count_groups, most_groups
from dpmine.release.cut_release import CutRelease
from dpmine.release.released import ReleasedTable
from dpmine.tables.private_table import PrivateTable


@dataclass(frozen=True)
class ContingencyBudget(StatedBudget):
    """All of it for the one count."""

    counts: PlanStep


@dataclass(repr=False, eq=False)
class ContingencyTable(CutRelease):
    """Every combination of values with its noisy count.

    epsilon    the whole privacy budget, all of it for the counts
    bins       numeric attributes are cut into so many bins of equally many cells of their grid
    threshold  the smallest count that is released; "auto": so high that about 1,000 empty combinations pass it
    schema     the public facts, for fit(X, y)

    Example: dm.ContingencyTable(epsilon=1).fit(private).rows()
    """

    epsilon: Amount = 1.0
    bins: int = 10
    threshold: int | str = AUTO
    schema: SchemaLike = None

    def title(self, schema: Schema) -> str:
        return "Contingency table"

    def check(self, schema: Schema) -> None:
        check_number("bins", self.bins, 2, MOST_GRID_POINTS, whole=True)
        if self.threshold != AUTO:
            check_number("threshold", self.threshold, 1, 1_000_000_000, whole=True)
        cuts = self._cuts(schema)
        check_attributes(cuts)
        cells, budget = combinations(cuts, len(schema.class_labels)), self.row_budget(schema)
        most = most_groups(self.threshold, budget)
        if cells > most:
            advice = "Use fewer bins" if self.threshold == AUTO else "Use threshold='auto', or fewer bins"
            raise RequestError(
                f"This table has {cells} combinations; with threshold {self.threshold!r} at most {most} "
                f"can be released. {advice}."
            )
        check_threshold(self.threshold, budget)

    def budget_for(self, schema: Schema, rows: float = 0) -> ContingencyBudget:
        cells, budget = combinations(self._cuts(schema), len(schema.class_labels)), self.row_budget(schema)
        expect = f"{off_by(budget)}; shown from {at_least(self.threshold, cells, budget)} on"
        return ContingencyBudget(PlanStep(f"count {cells} combinations of values", budget, 1, expect))

    def _cuts(self, schema: Schema) -> list[Cut]:
        if not predictors(schema):
            raise RequestError("The schema has no attribute but the class that could be released.")
        return [evenly_cut(a, self.bins) if isinstance(a, Ordered) else finest_cut(a) for a in predictors(schema)]

    def _learn(self, private: PrivateTable, progress: Progress) -> ReleasedTable:
        budget, cuts = self.budget_for(private.schema), self._cuts(private.schema)
        groups, counts, counting = count_groups(private, cuts, budget.counts.epsilon, self.threshold)
        self.cuts_ = {cut.attribute.name: cut for cut in cuts}
        values = {cut.attribute.name: cut.values() for cut in cuts}
        return ReleasedTable(private.schema, values, groups, counts, counting=counting)
