"""A grid point at or near a quantile: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.domain import require
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Checker, Recode

FINEST_ORDER = 1_000  # the largest denominator: scores are rows times that


@value("resolved-quantile")
class ResolvedQuantile(ResolvedQuestion):
    """The code at which an attribute has that quantile."""

    key: Recode
    numerator: int
    denominator: int

    def check(self, see: Checker, cells: int) -> None:
        see.grid(self.key)
        p, q = self.numerator, self.denominator
        require(0 <= p <= q <= FINEST_ORDER and q > 0, "an order is a fraction from 0 to 1")

    def counts(self, cells: int) -> int:
        return cells * self.key.size
