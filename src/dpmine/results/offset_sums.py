"""Sums of clipped offsets from centres: a step of k-means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.facts.schema import Schema
from dpmine.language.answers import Quote
from dpmine.noise.laws import DiscreteLaplace
from dpmine.questions.offset_sums import OffsetSums
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt


@dataclass(frozen=True, eq=False)
class NoisyOffsetSums:
    """Noisy sums of clipped offsets, for each cluster (row) and attribute (column), in positions; a law for each cluster."""

    sums: NDArray[np.int64]
    laws: tuple[DiscreteLaplace, ...]
    receipt: Receipt


@reads(OffsetSums)
class OffsetSumsReading(Reading[OffsetSums]):
    def words(self, question: OffsetSums) -> str:
        return f"sums of offsets from {len(question.radii)} centres"

    def expected_error(self, question: OffsetSums, quote: Quote, schema: Schema) -> str:
        widths = sorted({law.deviation() for law in quote.laws[0] if isinstance(law, DiscreteLaplace)})
        return f"Standard deviations of the noise of each sum, in positions: {widths[0]:.3g} to {widths[-1]:.3g}."

    def read(self, question: OffsetSums, reply: CellReply, schema: Schema) -> NoisyOffsetSums:
        dimensions = len(question.nearest.attributes)
        sums = np.array(reply.numbers, dtype=np.int64).reshape(len(question.nearest.centres), dimensions)
        laws = tuple(law for law in reply.laws[::dimensions] if isinstance(law, DiscreteLaplace))
        return NoisyOffsetSums(sums, laws, reply.receipt)
