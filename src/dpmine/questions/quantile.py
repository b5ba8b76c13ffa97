"""A value at or near a quantile."""

import datetime as dt
import math
from dataclasses import dataclass
from fractions import Fraction

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.quantile import MOST_POINTS, ResolvedQuantile
from dpmine.codes.queries import MOST_COUNTS
from dpmine.facts.kinds.dates import Dated
from dpmine.facts.schema import Schema
from dpmine.language.queries import Question
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import ChoiceLoss
from dpmine.noise.spread import loss_bound
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt

NO_QUANTILES = "it has no quantiles and no intervals"  # what is not numeric


@value("quantile")
class Quantile(Question):
    """A value at or near the quantile of order numerator / denominator, by the exponential mechanism.

    The score of a value is minus how many rows (times the denominator) it is away from being that quantile, among the rows
    that have one. Where gaps are possible a twentieth of epsilon tells how many these are. More than 2^20 values are rounded
    to so many points, and to fewer where many cells are asked at once.
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
        amount = resolver.amount(self.attribute, NO_QUANTILES, most=_most_steps(cells), dates=True)
        return ResolvedQuantile(amount, self.numerator, self.denominator)


def _most_steps(cells: int) -> int:
    """Between the points that compete: cells times points have a limit, which follows from public sizes."""
    return max(min(MOST_POINTS, MOST_COUNTS // cells) - 2, 1)


@dataclass(frozen=True)
class ChosenQuantile:
    """A value chosen privately at or near a quantile: a number, or of a date column a date, datetime or time.

    rounded  how far the values stood apart that were chosen from (seconds, of dates), where they are fewer than there are; else None
    rows     about how many rows have a value, where that was told
    """

    value: float | dt.date | dt.time
    order: Fraction
    law: ChoiceLoss
    receipt: Receipt
    rounded: float | None = None
    rows: int | None = None

    @property
    def rows_away(self) -> float:
        """From being that quantile, at most, in 95 % of the cases."""
        return loss_bound(self.law, 0.95)

    def __float__(self) -> float:
        if not isinstance(self.value, float):
            raise TypeError(f"{self.shown} is no number: it stands in .value.")
        return self.value

    @property
    def shown(self) -> str:
        """The value as text."""
        return f"{self.value:g}" if isinstance(self.value, float) else str(self.value)

    def __str__(self) -> str:
        rounded = "" if self.rounded is None else f", rounded to {self.rounded:g}{'' if isinstance(self.value, float) else ' s'}"
        rows = "" if self.rows is None else f", of about {self.rows} rows"
        return (
            f"quantile {float(self.order):g} about {self.shown}{rounded} (within {self.rows_away:.3g} rows of it in 95 % "
            f"of the cases){rows}, epsilon {self.receipt.epsilon}"
        )


@reads(Quantile)
class QuantileReading(Reading[Quantile]):
    def words(self, question: Quantile) -> str:
        return f"quantile {question.numerator}/{question.denominator} of {question.attribute}"

    def expected_error(self, question: Quantile, quote: Quote, schema: Schema) -> str:
        law = quote.laws[0][0]
        assert isinstance(law, ChoiceLoss)
        return f"In 95 % of the cases the answer is at most {loss_bound(law, 0.95):.3g} rows away from being that quantile."

    def read(self, question: Quantile, reply: CellReply, schema: Schema) -> ChosenQuantile:
        attribute = schema.measured(question.attribute, NO_QUANTILES)
        law = reply.laws[0]
        assert isinstance(law, ChoiceLoss)
        steps, numbers = law.candidates - 1, attribute.numbers
        apart = numbers.step * numbers.steps / steps
        place, *counted = reply.numbers
        chosen = numbers.low + place * apart
        return ChosenQuantile(
            attribute.told(chosen) if isinstance(attribute, Dated) else float(chosen),
            Fraction(question.numerator, question.denominator),
            law,
            reply.receipt,
            None if steps == numbers.steps else float(apart),
            counted[0] if counted else None,
        )
