"""The sum of one attribute's values: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.domain import Domain, require
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Checker, Rounded
from dpmine.codes.value_grids import ValueGrid, largest_fits


@value("resolved-total")
class ResolvedTotal(ResolvedQuestion):
    """The sum of the numbers of the rows that have one; where gaps are possible, also how many these are."""

    amount: Rounded

    def check(self, see: Checker, cells: int) -> None:
        see(self.amount)
        require(self.amount.steps == see.domain.numbers(self.amount.attribute).steps, "a sum is of values as they are")
        require(largest_fits(self.grid(see.domain).largest), "exact sums fit 64 bits")

    def grid(self, domain: Domain) -> ValueGrid:
        return ValueGrid.of(domain.numbers(self.amount.attribute), centred=False)

    def counts(self, cells: int) -> int:
        return cells * 2
