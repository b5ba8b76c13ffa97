"""One statistic of a view, through noise that was designed for it beforehand: on codes."""

from fractions import Fraction

from dpmine.base.wire_values import value
from dpmine.codes.domain import Values, require
from dpmine.codes.queries import ResolvedQuestion, one_cell
from dpmine.codes.rows import Checker, Rounded
from dpmine.codes.value_grids import largest_fits
from dpmine.noise.finite_tables import FiniteTable, LatticeNoise

STATISTICS = ("count", "sum", "mean", "max", "median")


def largest_value(grid: Values | None) -> Fraction:
    """The largest absolute value of one row, where a row of a count is 1."""
    return Fraction(1) if grid is None else max(abs(grid.low), abs(grid.high))


def sensitivity_of(statistic: str, grid: Values | None) -> Fraction:
    """By how much adding or removing one row can move the exact value. docs/proofs.md#told-statistics."""
    if grid is None:
        return Fraction(1)
    if statistic == "sum":
        return largest_value(grid) or grid.step
    width = grid.high - grid.low or grid.step  # a grid of one point moves nothing; then there is more noise than needed
    return width / 2 if statistic == "mean" else width


@value("resolved-designed-statistic")
class ResolvedDesignedStatistic(ResolvedQuestion):
    """One statistic of the numbers of the rows that have one; of no attribute, the number of rows."""

    statistic: str
    amount: Rounded | None
    noise: FiniteTable | LatticeNoise

    def check(self, see: Checker, cells: int) -> None:
        one_cell(cells)
        require(
            self.statistic in STATISTICS and (self.amount is None) == (self.statistic == "count"),
            "there is such a statistic",
        )
        see(self.amount)
        numbers = None if self.amount is None else see.domain.numbers(self.amount.attribute)
        require(numbers is None or self.amount is None or self.amount.steps == numbers.steps, "values are as they are")
        if isinstance(self.noise, LatticeNoise):
            require(largest_fits(largest_value(numbers) / Fraction(self.noise.step)), "exact values fit 64 bits")
