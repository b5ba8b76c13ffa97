"""Row counts of any number of combinations, where they reach a public threshold."""

from __future__ import annotations

import math

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.facts.facts import MOST_ROWS
from dpmine.language.keys import Key
from dpmine.language.queries import Question, ResolvedQuestion
from dpmine.language.resolved import RowKey
from dpmine.language.resolver import Resolver

MOST_SPARSE_KEYS = 128
MOST_COMBINATIONS = 2**60  # of a sparse histogram, in all cells together


@value("sparse-histogram")
class SparseHistogram(Question):
    """Of a histogram with any number of combinations, the noisy counts that reach a public threshold.

    Combinations without rows are never listed one by one, so there may be 10^18 of them.
    """

    keys: tuple[Key, ...]
    at_least: int

    def __post_init__(self) -> None:
        if not self.keys:
            raise RequestError("A histogram needs at least one key.")
        if type(self.at_least) is not int or not 1 <= self.at_least <= MOST_ROWS:
            raise RequestError(f"The threshold 'at_least' is a whole number from 1 to {MOST_ROWS}. Got {self.at_least}.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedSparseHistogram:
        resolved = ResolvedSparseHistogram(tuple(resolver.key(key) for key in self.keys), self.at_least)
        if len(self.keys) > MOST_SPARSE_KEYS:
            raise RequestError(f"A sparse histogram may have at most {MOST_SPARSE_KEYS} keys.")
        if cells * resolved.bins > MOST_COMBINATIONS:
            raise RequestError(f"A sparse histogram has at most {MOST_COMBINATIONS} combinations. Use coarser keys.")
        return resolved


@value("resolved-sparse-histogram")
class ResolvedSparseHistogram(ResolvedQuestion):
    """Row counts by the keys, where they reach the threshold after noise.

    What the engine holds for them follows from the rows, not from the combinations.
    """

    keys: tuple[RowKey, ...]
    at_least: int

    @property
    def bins(self) -> int:
        return math.prod(key.size for key in self.keys)
