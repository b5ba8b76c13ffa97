"""Row counts of any number of combinations, of which only large ones are shown: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.domain import MOST_ROWS, require
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Checker, RowKey, combinations

MOST_COMBINATIONS = 2**60  # in all cells together: their numbers stay inside 64 bits


@value("resolved-sparse-histogram")
class ResolvedSparseHistogram(ResolvedQuestion):
    """Row counts by the keys, where they reach the threshold after noise.

    What the engine holds for them follows from the rows, not from the combinations.
    """

    keys: tuple[RowKey, ...]
    at_least: int

    def check(self, see: Checker, cells: int) -> None:
        see(*self.keys)
        require(1 <= self.at_least <= MOST_ROWS, "a threshold is a number of rows")
        require(cells * self.bins <= MOST_COMBINATIONS, "there are few enough combinations to number them")

    @property
    def bins(self) -> int:
        return combinations(self.keys)
