"""Row counts by any keys: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.domain import require
from dpmine.codes.queries import MOST_NUMBERS, ResolvedQuestion
from dpmine.codes.rows import Checker, RowKey, combinations


@value("resolved-histogram")
class ResolvedHistogram(ResolvedQuestion):
    """Row counts by the keys (none: the plain count)."""

    keys: tuple[RowKey, ...]

    @property
    def bins(self) -> int:
        return combinations(self.keys)

    def check(self, see: Checker, cells: int) -> None:
        see(*self.keys)
        require(self.counts(cells) <= MOST_NUMBERS, "one answer holds them")

    def counts(self, cells: int) -> int:
        return cells * self.bins
