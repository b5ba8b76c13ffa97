"""A grid point at or near a quantile."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpmine.facts.schema import Schema
from dpmine.language.answers import Quote
from dpmine.noise.laws import ChoiceLoss
from dpmine.questions.quantile import Quantile
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt


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
        return self.law.bound(0.95)

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
        (law,) = quote.laws[0]
        assert isinstance(law, ChoiceLoss)
        return f"In 95 % of the cases the answer is at most {law.bound(0.95):.3g} rows away from being that quantile."

    def read(self, question: Quantile, reply: CellReply, schema: Schema) -> ChosenQuantile:
        (law,) = reply.laws
        assert isinstance(law, ChoiceLoss)
        attribute = schema.numeric(question.attribute, "it has no quantiles and no intervals")
        order = Fraction(question.numerator, question.denominator)
        return ChosenQuantile(float(attribute.point(reply.numbers[0])), order, law, reply.receipt)
