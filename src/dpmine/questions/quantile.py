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
from dpmine.facts.kinds.kind import Measured
from dpmine.facts.schema import Schema
from dpmine.language.queries import Question
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import ChoiceLoss
from dpmine.noise.spread import loss_bound
from dpmine.questions.total import COUNTED
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
    """A value chosen privately at or near a quantile of the values as they count, clamped to the bounds.

    value    a number; of a column of dates a date, a datetime or a time
    rounded  how far the points stand apart that it was chosen from, and that values were rounded to for it, where points are
             fewer than values; else None. Of dates and times in seconds.
    rows     about how many rows have a value, where gaps are possible; it may be negative
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
            raise TypeError(f"{self.value} is no number: it stands in .value.")
        return self.value

    def __str__(self) -> str:
        value = f"{self.value:.10g}" if isinstance(self.value, float) else str(self.value)
        if self.rounded is not None:
            unit = "" if isinstance(self.value, float) else " s"
            shown = f"{self.value:g}" if isinstance(self.value, float) else value
            value = f"{shown} among values rounded to {self.rounded:g}{unit}"
        rows = "" if self.rows is None else f"; of about {max(self.rows, 0)} rows with a value"
        return (
            f"quantile {float(self.order):g} about {value} (within {self.rows_away:.3g} rows of it in "
            f"95 % of the cases){rows}, epsilon {self.receipt.epsilon}"
        )


@reads(Quantile)
class QuantileReading(Reading[Quantile]):
    def words(self, question: Quantile) -> str:
        return f"quantile {question.numerator}/{question.denominator} of {question.attribute}"

    def expected_error(self, question: Quantile, quote: Quote, schema: Schema) -> str:
        law, *counted = quote.laws[0]
        assert isinstance(law, ChoiceLoss)
        rounded = _rounded_to(law, schema.measured(question.attribute, NO_QUANTILES))
        of_what = "" if rounded is None else f" of the values rounded to {rounded:g}"
        return (
            f"In 95 % of the cases the answer is at most {loss_bound(law, 0.95):.3g} rows away from being that quantile"
            f"{of_what}." + (COUNTED if counted else "")
        )

    def read(self, question: Quantile, reply: CellReply, schema: Schema) -> ChosenQuantile:
        attribute = schema.measured(question.attribute, NO_QUANTILES)
        law = reply.laws[0]
        assert isinstance(law, ChoiceLoss)
        place, *counted = reply.numbers
        chosen = attribute.numbers.low + place * _apart(law, attribute)
        return ChosenQuantile(
            attribute.told(chosen) if isinstance(attribute, Dated) else float(chosen),
            Fraction(question.numerator, question.denominator),
            law,
            reply.receipt,
            _rounded_to(law, attribute),
            counted[0] if counted else None,
        )


def _apart(law: ChoiceLoss, attribute: Measured) -> Fraction:
    """How far neighbouring points are apart."""
    return attribute.numbers.step * attribute.numbers.steps / (law.candidates - 1)


def _rounded_to(law: ChoiceLoss, attribute: Measured) -> float | None:
    """The same where points are fewer than values, else None."""
    return float(_apart(law, attribute)) if law.candidates < attribute.values else None
