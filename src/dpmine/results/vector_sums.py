"""Sums of several attributes at once, with one noise for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dpmine.base.errors import RequestError
from dpmine.facts.schema import Schema
from dpmine.language.answers import Quote
from dpmine.noise.confidence import check_confidence
from dpmine.noise.laws import NoiseLaw
from dpmine.questions.value_grids import ValueGrid
from dpmine.questions.vector_sums import VectorSums, value_grids
from dpmine.results.estimates import Estimate, clamping_note, mean_of_spans
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt


@dataclass(frozen=True)
class NoisyVectorSums:
    """Noisy sums of several attributes with one noise for all: their sums, or their means, each with an interval.

    what      "sum" or "mean"
    rows      the noisy number of rows where means are asked, else None
    sums      noisy sums in units of each attribute's grid, from its middle where means are asked
    """

    what: str
    attributes: tuple[str, ...]
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
        return self.laws[place].half_width(confidence)

    def estimate(self, attribute: str, confidence: float = 0.95) -> Estimate:
        """The sum or mean of one attribute; its interval holds on its own, not together with those of the others."""
        if attribute not in self.attributes:
            raise RequestError(f"{attribute!r} was not asked for. There are: {', '.join(self.attributes)}.")
        check_confidence(confidence)
        place = self.attributes.index(attribute)
        grid, total = self.grids[place], self.sums[place]
        if self.rows is None:
            half = self.half_width(place, confidence)
            value, low, high = (float(number * grid.unit) for number in (total, total - half, total + half))
            return Estimate("sum", value, low, high, confidence, clamping_note(grid, ""), self.receipt)
        both = 1 - (1 - confidence) / 2
        few, half = self.half_width(0, both), self.half_width(place + 1, both)
        rows_span, span = (self.rows, self.rows - few, self.rows + few), (total, total - half, total + half)
        mean, low, high, note = mean_of_spans(grid, rows_span, span)
        mean, low, high = (float(grid.centre + Fraction(end) * grid.unit) for end in (mean, low, high))
        return Estimate("mean", mean, low, high, confidence, clamping_note(grid, note), self.receipt)

    def __str__(self) -> str:
        lines = []
        for name in self.attributes:
            found = self.estimate(name)
            lines.append(f"{self.what} of {name} about {found.value:.6g}, {found.low:.6g} to {found.high:.6g} (95 %)")
        return "\n".join((*lines, f"One noise for all, by the {self.ball} ball, epsilon {self.receipt.epsilon}."))


@reads(VectorSums)
class VectorSumsReading(Reading[VectorSums]):
    def words(self, question: VectorSums) -> str:
        counted = "number of rows and " if question.with_count else ""
        return f"{counted}sums of {', '.join(question.attributes)} at once, noise by the {question.ball} ball"

    def expected_error(self, question: VectorSums, quote: Quote, schema: Schema) -> str:
        names = ["number of rows"] * question.with_count + list(question.attributes)
        laws = [law for law in quote.laws[0] if isinstance(law, NoiseLaw)]
        parts = [f"{name} {law.deviation():.3g}" for name, law in zip(names, laws, strict=True)]
        return f"Standard deviations of the noise, in units of the grids: {', '.join(parts)}."

    def read(self, question: VectorSums, reply: CellReply, schema: Schema) -> NoisyVectorSums:
        counted = int(question.with_count)
        return NoisyVectorSums(
            what="mean" if question.with_count else "sum",
            attributes=question.attributes,
            grids=value_grids(schema, question.attributes, centred=question.centred),
            rows=reply.numbers[0] if counted else None,
            sums=reply.numbers[counted:],
            ball=question.ball,
            laws=tuple(law for law in reply.laws if isinstance(law, NoiseLaw)),
            receipt=reply.receipt,
        )
