"""A grid point at or near a quantile."""

from __future__ import annotations

import math

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.language.queries import Question, ResolvedQuestion
from dpmine.language.resolved import Recode
from dpmine.language.resolver import Resolver

NO_QUANTILES = "it has no quantiles and no intervals"  # what is not numeric


@value("quantile")
class Quantile(Question):
    """A grid point at or near the quantile of order numerator / denominator, by the exponential mechanism.

    The score of a point is minus how many rows (times the denominator) it is away from being that quantile.
    """

    attribute: str
    numerator: int
    denominator: int

    def __post_init__(self) -> None:
        if not (0 <= self.numerator <= self.denominator <= 1000 and self.denominator > 0):
            raise RequestError("A quantile's order is between 0 and 1, with at most 3 decimals.")
        if math.gcd(self.numerator, self.denominator) != 1:
            raise RequestError("A quantile's order must be a fraction in lowest terms.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedQuantile:
        resolver.numeric(self.attribute, "it has no quantiles and no intervals")
        return ResolvedQuantile(resolver.attribute(self.attribute), self.numerator, self.denominator)


@value("resolved-quantile")
class ResolvedQuantile(ResolvedQuestion):
    """The code at which an attribute has that quantile."""

    key: Recode
    numerator: int
    denominator: int

    def counts(self, cells: int) -> int:
        return cells * self.key.size
