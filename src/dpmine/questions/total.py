"""The sum of one attribute."""

from dataclasses import dataclass

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.total import ResolvedTotal
from dpmine.codes.value_grids import ValueGrid, largest_fits
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.queries import Question
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.spread import deviation, half_width
from dpmine.results.estimates import Estimate, clamping_note
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt

NO_SUM = "its values have no sum"  # what is not numeric
COUNTED = " A twentieth of epsilon tells how many rows have a value."


@value("total")
class Total(Question):
    """The sum of a numeric attribute's values, each clamped to its bounds, with discrete Laplace noise.

    Where gaps are possible a twentieth of epsilon tells how many rows it is of.
    """

    attribute: str

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedTotal:
        amount = resolver.amount(self.attribute, NO_SUM)
        numbers = resolver.schema.numeric(self.attribute, NO_SUM).numbers
        if not largest_fits(ValueGrid.of(numbers, centred=False).largest):
            raise RequestError(
                f"The values of {self.attribute!r} are too large for exact sums. Set a lower bound that is a multiple of "
                "the resolution, or a coarser resolution."
            )
        return ResolvedTotal(amount)


@dataclass(frozen=True)
class NoisyTotal:
    """A noisy sum, and where gaps are possible the noisy number of rows that it is of."""

    attribute: Numeric
    sum: int
    rows: int | None
    laws: tuple[DiscreteLaplace, ...]
    receipt: Receipt

    def total(self, confidence: float = 0.95) -> Estimate:
        """The sum, with the interval of its noise alone."""
        unit = ValueGrid.of(self.attribute.numbers, centred=False).unit
        half = half_width(self.laws[0], confidence)
        value, low, high = (float(number * unit) for number in (self.sum, self.sum - half, self.sum + half))
        note = clamping_note((self.attribute,), self._rows_note(confidence))
        return Estimate("sum", value, low, high, confidence, note, self.receipt, self.rows)

    def _rows_note(self, confidence: float) -> str:
        if self.rows is None:
            return ""
        half = half_width(self.laws[1], confidence)
        return f"of about {max(self.rows, 0)} rows (+- {half}, told by a twentieth of epsilon)"


@reads(Total)
class TotalReading(Reading[Total]):
    def words(self, question: Total) -> str:
        return f"sum of {question.attribute}"

    def expected_error(self, question: Total, quote: Quote, schema: Schema) -> str:
        attribute = schema.numeric(question.attribute, NO_SUM)
        unit, law = float(ValueGrid.of(attribute.numbers, centred=False).unit), quote.laws[0][0]
        assert isinstance(law, DiscreteLaplace)
        counted = "" if attribute.gap is None else COUNTED
        return (
            f"The sum will be off by {deviation(law) * unit:.3g} (standard deviation), within "
            f"{half_width(law, 0.95) * unit:.6g} in 95 % of the cases.{counted}"
        )

    def read(self, question: Total, reply: CellReply, schema: Schema) -> NoisyTotal:
        laws = tuple(law for law in reply.laws if isinstance(law, DiscreteLaplace))
        rows = reply.numbers[1] if len(reply.numbers) > 1 else None
        return NoisyTotal(schema.numeric(question.attribute, NO_SUM), reply.numbers[0], rows, laws, reply.receipt)
