"""Whether there are at least so many rows: on codes."""

from __future__ import annotations

from dpmine.base.wire_values import value
from dpmine.codes.domain import MOST_ROWS, require
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Checker


@value("resolved-many-rows")
class ResolvedManyRows(ResolvedQuestion):
    """The same as is asked: it has no words of a schema in it."""

    at_least: int

    def check(self, see: Checker, cells: int) -> None:
        require(1 <= self.at_least <= MOST_ROWS, "it is compared with a number of rows")

    def counts(self, cells: int) -> int:
        return cells
