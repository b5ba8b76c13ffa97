"""Whether there are at least so many rows."""

from __future__ import annotations

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.facts.facts import MOST_ROWS
from dpmine.language.queries import Question, ResolvedQuestion
from dpmine.language.resolver import Resolver


@value("many-rows")
class ManyRows(Question):
    """Whether at least this many rows are in a cell, by one noisy comparison."""

    at_least: int

    def __post_init__(self) -> None:
        if not 1 <= self.at_least <= MOST_ROWS:
            raise RequestError(f"The number of rows to compare with is between 1 and {MOST_ROWS}. Got {self.at_least}.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedManyRows:
        return ResolvedManyRows(self.at_least)


@value("resolved-many-rows")
class ResolvedManyRows(ResolvedQuestion):
    """The same: it has no words of a schema in it."""

    at_least: int

    def counts(self, cells: int) -> int:
        return cells
