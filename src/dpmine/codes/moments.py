"""Means, variances and covariances as sums of products that add up to one number for every row: on codes."""

import math

from dpmine.base.wire_values import value
from dpmine.codes.domain import require
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Checker, Rounded
from dpmine.codes.value_grids import largest_fits


@value("resolved-moments")
class ResolvedMoments(ResolvedQuestion):
    """Of x in whole steps 0 .. S, over rows without a gap: the sums of x and S - x; of two amounts those of all products.

    One amount is what a mean needs, the same twice a variance (where the two mixed products are one), two a covariance.
    """

    amounts: tuple[Rounded, ...]

    def check(self, see: Checker, cells: int) -> None:
        see(*self.amounts)
        require(1 <= len(self.amounts) <= 2, "moments are of one attribute, of its square, or of two")
        names = {amount.attribute for amount in self.amounts}
        require(len(names) == len(self.amounts) or len(set(self.amounts)) == 1, "a square is of equal amounts")
        require(largest_fits(self.together), "exact sums fit 64 bits")

    @property
    def together(self) -> int:
        """By how much one row moves all sums of a cell together: S, S^2, or S T."""
        return math.prod(amount.steps for amount in self.amounts)

    @property
    def numbers(self) -> int:
        """How many sums there are in a cell."""
        return 2 if len(self.amounts) == 1 else 3 if self.amounts[0] == self.amounts[1] else 4

    def counts(self, cells: int) -> int:
        return cells * self.numbers
