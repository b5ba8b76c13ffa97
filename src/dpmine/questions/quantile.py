"""A grid point at or near a quantile."""

import math
from dataclasses import dataclass
from fractions import Fraction

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.quantile import ResolvedQuantile
from dpmine.facts.schema import Schema
from dpmine.language.queries import Question
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import ChoiceLoss
from dpmine.noise.spread import loss_bound
from dpmine.questions.choices import choice_law
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt

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
        resolver.numeric(self.attribute, NO_QUANTILES)
        return ResolvedQuantile(resolver.attribute(self.attribute), self.numerator, self.denominator)


@dataclass(frozen=True)
class ChosenQuantile:
    """A grid point chosen privately at or near a quantile."""

    value: float
    order: Fraction
    law: ChoiceLoss
    receipt: Receipt

    @property
    def rows_away(self) -> float:
        """From being that quantile, at most, in 95 % of the cases."""
        return loss_bound(self.law, 0.95)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            f"quantile {float(self.order):g} about {self.value:g} (within {self.rows_away:.3g} rows of it in 95 % of the "
            f"cases), epsilon {self.receipt.epsilon}"
        )


@reads(Quantile)
class QuantileReading(Reading[Quantile]):
    def words(self, question: Quantile) -> str:
        return f"quantile {question.numerator}/{question.denominator} of {question.attribute}"

    def expected_error(self, question: Quantile, quote: Quote, schema: Schema) -> str:
        ((law,), *_) = quote.laws
        assert isinstance(law, ChoiceLoss)
        return f"In 95 % of the cases the answer is at most {loss_bound(law, 0.95):.3g} rows away from being that quantile."

    def read(self, question: Quantile, reply: CellReply, schema: Schema) -> ChosenQuantile:
        attribute = schema.numeric(question.attribute, NO_QUANTILES)
        order = Fraction(question.numerator, question.denominator)
        return ChosenQuantile(float(attribute.point(reply.numbers[0])), order, choice_law(reply), reply.receipt)
