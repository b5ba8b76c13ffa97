"""Sums of powers of one attribute: what sums, means and variances are made of."""

from dataclasses import dataclass
from fractions import Fraction

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.moments import POWERS, ResolvedMoments
from dpmine.codes.value_grids import ValueGrid, largest_fits
from dpmine.facts.schema import Schema
from dpmine.language.queries import Question
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.spread import deviation, half_width
from dpmine.results.estimates import Estimate, clamped, clamping_note, mean_of_spans
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt


@value("moments")
class Moments(Question):
    """Sums of powers of a numeric attribute's values, each clamped to the public grid, with discrete Laplace noise.

    Values are whole multiples of the grid's unit. `powers` are the sums asked for: (1,) the sum, (0, 1) what a mean needs,
    (0, 1, 2) what a variance needs. With `centred`, values are taken relative to the middle of the grid, which makes the
    sums' sensitivities smaller.
    """

    attribute: str
    powers: tuple[int, ...]
    centred: bool

    def __post_init__(self) -> None:
        if self.powers not in POWERS:
            raise RequestError("Moments are asked as (1,), (0, 1) or (0, 1, 2).")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedMoments:
        attribute = resolver.numeric(self.attribute, "its values have no sum")
        if not largest_fits(ValueGrid.of(attribute.grid, centred=self.centred).largest ** max(self.powers)):
            raise RequestError(f"The values of {self.attribute!r} are too large for exact sums. Use a coarser step.")
        return ResolvedMoments(resolver.attribute(self.attribute), self.powers, self.centred)


@dataclass(frozen=True)
class NoisyMoments:
    """Noisy sums of powers of one attribute: what sums, means and variances are computed from, for free."""

    grid: ValueGrid
    powers: tuple[int, ...]
    sums: tuple[int, ...]
    laws: tuple[DiscreteLaplace, ...]
    receipt: Receipt

    def _span(self, power: int, confidence: float) -> tuple[int, int, int]:
        """A noisy sum and the ends of its interval; all intervals together hold with the stated confidence."""
        if power not in self.powers:
            raise RequestError(f"Moments asked with powers {self.powers} do not tell this: power {power} is not among them.")
        place = self.powers.index(power)
        half = half_width(self.laws[place], 1 - (1 - confidence) / len(self.powers))
        return self.sums[place], self.sums[place] - half, self.sums[place] + half

    def total(self, confidence: float = 0.95) -> Estimate:
        """The sum of the clamped values; around the middle of the grid it needs the number of rows too."""
        unit, centre = float(self.grid.unit), float(self.grid.centre)
        value, low, high = (number * unit for number in self._span(1, confidence))
        if centre:
            rows, *ends = (number * centre for number in self._span(0, confidence))
            value, low, high = value + rows, low + min(ends), high + max(ends)
        return Estimate("sum", value, low, high, confidence, self._note(""), self.receipt)

    def mean(self, confidence: float = 0.95) -> Estimate:
        """The mean of the clamped values; the middle of the grid where there are too few rows to tell."""
        value, low, high, note = self._mean_in_units(confidence)
        value, low, high = (float(self.grid.centre + Fraction(end) * self.grid.unit) for end in (value, low, high))
        return Estimate("mean", value, low, high, confidence, self._note(note), self.receipt)

    def _mean_in_units(self, confidence: float) -> tuple[float, float, float, str]:
        return mean_of_spans(self.grid, self._span(0, confidence), self._span(1, confidence))

    def variance(self, confidence: float = 0.95) -> Estimate:
        """The variance (over n) of the clamped values."""
        rows, few, many = self._span(0, confidence)
        squares, low_squares, high_squares = self._span(2, confidence)
        mean, low_mean, high_mean, note = self._mean_in_units(confidence)
        most = ((self.grid.last - self.grid.first) / 2) ** 2
        value = clamped(squares / max(rows, 1) - mean**2, 0, most)
        if few < 1:
            low, high = 0.0, most
        else:
            nearest = clamped(0, low_mean, high_mean)
            low = clamped(min(low_squares / few, low_squares / many) - max(low_mean**2, high_mean**2), 0, most)
            high = clamped(max(high_squares / few, high_squares / many) - nearest**2, 0, most)
        unit = float(self.grid.unit) ** 2
        return Estimate("variance", value * unit, low * unit, high * unit, confidence, self._note(note), self.receipt)

    def _note(self, note: str) -> str:
        return clamping_note(self.grid, note)


NAMES = {(1,): "sum", (0, 1): "mean", (0, 1, 2): "variance"}


POWER_NAMES = {0: "count", 1: "sum", 2: "sum of squares"}


@reads(Moments)
class MomentsReading(Reading[Moments]):
    def words(self, question: Moments) -> str:
        return f"{NAMES[question.powers]} of {question.attribute}"

    def expected_error(self, question: Moments, quote: Quote, schema: Schema) -> str:
        laws = [law for law in quote.laws[0] if isinstance(law, DiscreteLaplace)]
        parts = [f"{POWER_NAMES[power]} {deviation(law):.3g}" for power, law in zip(question.powers, laws, strict=True)]
        return f"Standard deviations of the noise, in units of the grid: {', '.join(parts)}."

    def read(self, question: Moments, reply: CellReply, schema: Schema) -> NoisyMoments:
        grid = ValueGrid.of(schema.numeric(question.attribute, "its values have no sum").grid, centred=question.centred)
        laws = tuple(law for law in reply.laws if isinstance(law, DiscreteLaplace))
        return NoisyMoments(grid, question.powers, reply.numbers, laws, reply.receipt)
