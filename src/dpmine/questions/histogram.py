"""Row counts by any keys; by none, the number of rows."""

from __future__ import annotations

import math

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.language.keys import Key
from dpmine.language.queries import Question, ResolvedQuestion
from dpmine.language.resolved import RowKey
from dpmine.language.resolver import Resolver

MOST_NUMBERS = 5_000_000  # in one answer
MOST_HISTOGRAM_KEYS = 16


@value("histogram")
class Histogram(Question):
    """The number of rows for every combination of labels of the keys, each with discrete Laplace noise."""

    keys: tuple[Key, ...]

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedHistogram:
        if len(self.keys) > MOST_HISTOGRAM_KEYS:
            raise RequestError(f"A histogram may have at most {MOST_HISTOGRAM_KEYS} keys.")
        resolved = ResolvedHistogram(tuple(resolver.key(key) for key in self.keys))
        counts = resolved.counts(cells)
        if counts > MOST_NUMBERS:
            raise RequestError(f"This query asks for {counts} counts; one answer holds {MOST_NUMBERS}. Use coarser keys.")
        return resolved


@value("resolved-histogram")
class ResolvedHistogram(ResolvedQuestion):
    """Row counts by the keys (none: the plain count)."""

    keys: tuple[RowKey, ...]

    @property
    def bins(self) -> int:
        return math.prod(key.size for key in self.keys)

    def counts(self, cells: int) -> int:
        return cells * self.bins
