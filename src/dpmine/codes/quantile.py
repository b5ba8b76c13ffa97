"""A value at or near a quantile: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.domain import require
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Checker, Rounded

FINEST_ORDER = 1_000  # the largest denominator: scores are rows times that
MOST_POINTS = 2**20  # that may be chosen: with as many stretches between them, masses stay far below 2^50 in all


@value("resolved-quantile")
class ResolvedQuantile(ResolvedQuestion):
    """The point, of rounded numbers, at which an attribute has that quantile among the rows without a gap."""

    amount: Rounded
    numerator: int
    denominator: int

    def check(self, see: Checker, cells: int) -> None:
        see(self.amount)
        require(self.amount.steps < MOST_POINTS, "a quantile is chosen among few points")
        p, q = self.numerator, self.denominator
        require(0 <= p <= q <= FINEST_ORDER and q > 0, "an order is a fraction from 0 to 1")

    def counts(self, cells: int) -> int:
        """At most so many points are occupied."""
        return cells * self.amount.size
