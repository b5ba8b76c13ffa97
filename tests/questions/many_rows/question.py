"""Whether there are at least so many rows."""

from __future__ import annotations

from dataclasses import dataclass

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.domain import MOST_ROWS
from dpmine.facts.schema import Schema
from dpmine.language.queries import Question
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.spread import half_width
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt
from many_rows.codes import ResolvedManyRows


@value("many-rows")
class ManyRows(Question):
    """Whether at least this many rows are in a cell, by one noisy comparison."""

    at_least: int

    def __post_init__(self) -> None:
        if not 1 <= self.at_least <= MOST_ROWS:
            raise RequestError(f"The number of rows to compare with is between 1 and {MOST_ROWS}. Got {self.at_least}.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedManyRows:
        return ResolvedManyRows(self.at_least)


@dataclass(frozen=True)
class SeemsMany:
    """Whether so many rows seem to be there, and how many more or fewer may seem so, too."""

    seems: bool
    at_least: int
    law: DiscreteLaplace
    receipt: Receipt

    def __bool__(self) -> bool:
        return self.seems

    def __str__(self) -> str:
        more_or_fewer = f"give or take {half_width(self.law, 0.95)} (95 %)"
        return f"{'at least' if self.seems else 'fewer than'} {self.at_least} rows, {more_or_fewer}"


@reads(ManyRows)
class ManyRowsReading(Reading[ManyRows]):
    def words(self, question: ManyRows) -> str:
        return f"whether there are {question.at_least} rows"

    def expected_error(self, question: ManyRows, quote: Quote, schema: Schema) -> str:
        law = quote.laws[0][0]
        assert isinstance(law, DiscreteLaplace)
        return f"Where {half_width(law, 0.95)} rows more or fewer decide nothing, the answer is right in 95 % of the cases."

    def read(self, question: ManyRows, reply: CellReply, schema: Schema) -> SeemsMany:
        (law,) = reply.laws
        assert isinstance(law, DiscreteLaplace)
        return SeemsMany(bool(reply.numbers[0]), question.at_least, law, reply.receipt)
