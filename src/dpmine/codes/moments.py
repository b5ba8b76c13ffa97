"""Sums of powers of one attribute: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.domain import require
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Checker, Recode
from dpmine.codes.value_grids import ValueGrid, largest_fits

POWERS = ((1,), (0, 1), (0, 1, 2))  # for a sum, a mean and a variance


@value("resolved-moments")
class ResolvedMoments(ResolvedQuestion):
    """Sums of powers of what the codes of an attribute stand for, over the rows of each cell."""

    key: Recode
    powers: tuple[int, ...]
    centred: bool

    def check(self, see: Checker, cells: int) -> None:
        require(self.powers in POWERS, "these powers are never asked")
        largest = ValueGrid.of(see.grid(self.key), centred=self.centred).largest
        require(largest_fits(largest ** max(self.powers)), "exact sums fit 64 bits")

    def counts(self, cells: int) -> int:
        return cells * self.key.size
