"""Sums of several attributes at once, with one noise for all."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.rows import MOST_DIMENSIONS
from dpmine.codes.value_grids import ValueGrid, largest_fits
from dpmine.codes.vector_sums import BALLS, ResolvedVectorSums
from dpmine.facts.facts import Facts
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.queries import Question, of_one_cell
from dpmine.language.resolver import Resolver
from dpmine.noise.confidence import check_confidence
from dpmine.noise.laws import NoiseLaw
from dpmine.noise.spread import deviation, half_width
from dpmine.questions.total import NO_SUM
from dpmine.results.estimates import Estimate, clamped, clamping_note
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt


def value_grids(schema: Facts, names: tuple[str, ...], *, centred: bool) -> tuple[ValueGrid, ...]:
    """The values of several numeric attributes as whole numbers."""
    return tuple(ValueGrid.of(schema.numeric(name, NO_SUM).numbers, centred=centred) for name in names)


@value("vector-sums")
class VectorSums(Question):
    """The sums of several numeric attributes at once, and the number of rows before them if wanted, with one noise for all.

    One row moves every sum, each by at most the attribute's largest absolute value (relative to the middle of its range
    where centred), and the number of rows by one. With the number of rows all are about the rows that have every attribute,
    else each sum is about those that have its own. With ball "l-infinity" the noise is a staircase over boxes of these
    lengths, `inner` being how far its first level reaches; with "l1" it is independent, for even shares of epsilon.
    """

    attributes: tuple[str, ...]
    with_count: bool
    centred: bool
    ball: str
    inner: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.attributes) <= MOST_DIMENSIONS or len(set(self.attributes)) < len(self.attributes):
            raise RequestError(f"Sums at once are of 1 to {MOST_DIMENSIONS} different attributes.")
        if self.ball not in BALLS:
            raise RequestError(f"The ball must be one of {', '.join(BALLS)}. Got {self.ball!r:.60}.")
        wanted = len(self.attributes) + self.with_count if self.ball == "l-infinity" else 0
        if len(self.inner) != wanted or any(type(steps) is not int for steps in self.inner):
            raise RequestError(f"Sums at once under this ball need {wanted} inner widths, whole numbers.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedVectorSums:
        of_one_cell(cells)
        grids = value_grids(resolver.schema, self.attributes, centred=self.centred)
        if not all(largest_fits(grid.largest) for grid in grids):
            raise RequestError(
                "The values of these attributes are too large for exact sums. Set lower bounds that are multiples of the "
                "resolutions, or coarser resolutions."
            )
        amounts = tuple(resolver.amount(name, NO_SUM) for name in self.attributes)
        return ResolvedVectorSums(amounts, self.with_count, self.centred, self.ball, self.inner)


@dataclass(frozen=True)
class NoisyVectorSums:
    """Noisy sums of several attributes with one noise for all: their sums, or their means, each with an interval.

    what      "sum" or "mean"
    rows      the noisy number of rows where means are asked, else None
    sums      noisy sums in units of each attribute's grid, from its middle where means are asked
    """

    what: str
    attributes: tuple[str, ...]
    facts: tuple[Numeric, ...]
    grids: tuple[ValueGrid, ...]
    rows: int | None
    sums: tuple[int, ...]
    ball: str
    laws: tuple[NoiseLaw, ...]
    receipt: Receipt

    def __getitem__(self, attribute: str) -> Estimate:
        return self.estimate(attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def to_dict(self) -> dict[str, float]:
        return {name: float(self.estimate(name)) for name in self.attributes}

    def half_width(self, place: int, confidence: float) -> int:
        """How far the noise of one of the numbers reaches; the number of rows comes first where there is one."""
        return half_width(self.laws[place], confidence)

    def estimate(self, attribute: str, confidence: float = 0.95) -> Estimate:
        """The sum or mean of one attribute; its interval holds on its own, not together with those of the others."""
        if attribute not in self.attributes:
            raise RequestError(f"{attribute!r} was not asked for. There are: {', '.join(self.attributes)}.")
        check_confidence(confidence)
        place = self.attributes.index(attribute)
        grid, total, note = self.grids[place], self.sums[place], clamping_note(self.facts[place : place + 1])
        if self.rows is None:
            half = self.half_width(place, confidence)
            value, low, high = (float(number * grid.unit) for number in (total, total - half, total + half))
            return Estimate("sum", value, low, high, confidence, note, self.receipt)
        both = 1 - (1 - confidence) / 2
        few, half = self.half_width(0, both), self.half_width(place + 1, both)
        rows_span, span = (self.rows, self.rows - few, self.rows + few), (total, total - half, total + half)
        mean, low, high, more = _mean_of_spans(grid, rows_span, span)
        mean, low, high = (float(grid.centre + Fraction(end) * grid.unit) for end in (mean, low, high))
        note = clamping_note(self.facts[place : place + 1], more, together=self.facts)
        return Estimate("mean", mean, low, high, confidence, note, self.receipt, self.rows)

    def __str__(self) -> str:
        lines = []
        for name in self.attributes:
            found = self.estimate(name)
            lines.append(f"{self.what} of {name} about {found.value:.6g}, {found.low:.6g} to {found.high:.6g} (95 %)")
        return "\n".join((*lines, f"One noise for all, by the {self.ball} ball, epsilon {self.receipt.epsilon}."))


Span = tuple[int, int, int]
"""A noisy number and the ends of its interval."""


def _mean_of_spans(grid: ValueGrid, rows_span: Span, total_span: Span) -> tuple[float, float, float, str]:
    """The mean in units of the grid from its middle, the ends of its interval, and what to note about it."""
    rows, few, many = rows_span
    total, low, high = total_span
    bottom, top = grid.first, grid.last
    mean = clamped(total / max(rows, 1), bottom, top)
    if few < 1:
        return float(mean), bottom, top, "too few rows to say more than the bounds"
    ends = [end / number for end in (low, high) for number in (few, many)]
    note = "" if bottom <= total / max(rows, 1) <= top else "clamped to the attribute's bounds"
    return mean, clamped(min(ends), bottom, top), clamped(max(ends), bottom, top), note


@reads(VectorSums)
class VectorSumsReading(Reading[VectorSums]):
    def words(self, question: VectorSums) -> str:
        counted = "number of rows and " if question.with_count else ""
        return f"{counted}sums of {', '.join(question.attributes)} at once, noise by the {question.ball} ball"

    def expected_error(self, question: VectorSums, quote: Quote, schema: Schema) -> str:
        names = ["number of rows"] * question.with_count + [f"sum of {name}" for name in question.attributes]
        grids = value_grids(schema, question.attributes, centred=question.centred)
        units = [1.0] * question.with_count + [float(grid.unit) for grid in grids]
        laws = [law for law in quote.laws[0] if isinstance(law, NoiseLaw)]
        parts = [f"{name} {deviation(law) * unit:.3g}" for name, law, unit in zip(names, laws, units, strict=True)]
        return f"Standard deviations of the noise: {', '.join(parts)}."

    def read(self, question: VectorSums, reply: CellReply, schema: Schema) -> NoisyVectorSums:
        counted = int(question.with_count)
        return NoisyVectorSums(
            what="mean" if question.with_count else "sum",
            attributes=question.attributes,
            facts=tuple(schema.numeric(name, NO_SUM) for name in question.attributes),
            grids=value_grids(schema, question.attributes, centred=question.centred),
            rows=reply.numbers[0] if counted else None,
            sums=reply.numbers[counted:],
            ball=question.ball,
            laws=tuple(law for law in reply.laws if isinstance(law, NoiseLaw)),
            receipt=reply.receipt,
        )
