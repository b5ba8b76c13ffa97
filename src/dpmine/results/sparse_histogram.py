"""Row counts of any number of combinations, where they reach a public threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmine.facts.schema import Schema
from dpmine.language.answers import Quote
from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.phantoms import phantoms
from dpmine.questions.sparse_histogram import SparseHistogram
from dpmine.results.reading import Reading, key_name, reads
from dpmine.results.receipts import CellReply, Receipt


@dataclass(frozen=True, eq=False)
class NoisySparseHistogram:
    """Noisy counts of the combinations of public labels that reach a threshold; all other counts are below it.

    numbers       the shown combinations, numbered from 0 in the order of their labels, the last key's changing first
    combinations  how many there are in all, shown or not
    """

    titles: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]
    at_least: int
    combinations: int
    law: DiscreteLaplace
    receipt: Receipt

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """For each shown combination the label number of every key."""
        places = np.zeros((len(self.numbers), len(self.labels)), dtype=np.int64)
        left = self.numbers
        for place in range(len(self.labels) - 1, -1, -1):
            left, places[:, place] = np.divmod(left, len(self.labels[place]))
        return places

    def items(self) -> Iterator[tuple[tuple[str, ...], int]]:
        for place, count in zip(self.places.tolist(), self.counts.tolist(), strict=True):
            yield tuple(known[i] for known, i in zip(self.labels, place, strict=True)), count

    def to_dict(self) -> dict[tuple[str, ...], int]:
        """Tuple of labels to noisy count, for the combinations shown."""
        return dict(self.items())

    @property
    def standard_deviation(self) -> float:
        """Of the noise in each count, shown or not."""
        return self.law.deviation()

    def __str__(self) -> str:
        return (
            f"{len(self)} of {self.combinations} combinations of {', '.join(self.titles)} with a noisy count of at least "
            f"{self.at_least}, each +- {self.law.half_width(0.95)} (95 %), epsilon {self.receipt.epsilon}"
        )


@reads(SparseHistogram)
class SparseHistogramReading(Reading[SparseHistogram]):
    def words(self, question: SparseHistogram) -> str:
        return f"sparse histogram by {', '.join(map(key_name, question.keys))}, from {question.at_least} on"

    def expected_error(self, question: SparseHistogram, quote: Quote, schema: Schema) -> str:
        cheapest = quote.laws[0][0]
        assert isinstance(cheapest, DiscreteLaplace)
        combinations = combinations_of(question, schema)
        laws = [quote.law(cell) for cell, paid in enumerate(quote.price) if paid.units]
        shown = sum(phantoms(combinations, law, question.at_least) for law in laws if isinstance(law, DiscreteLaplace))
        return (
            f"Each count shown will be off by {cheapest.deviation():.3g} (standard deviation); about {shown:.3g} "
            f"combinations without any row will be shown, and counts below {question.at_least} left out."
        )

    def read(self, question: SparseHistogram, reply: CellReply, schema: Schema) -> NoisySparseHistogram:
        (law,) = reply.laws
        assert isinstance(law, DiscreteLaplace)
        numbers, counts = np.array(reply.numbers, dtype=np.int64).reshape(-1, 2).T
        titles = tuple(key.title for key in question.keys)
        labels = tuple(key.labels(schema) for key in question.keys)
        combinations = combinations_of(question, schema)
        return NoisySparseHistogram(titles, labels, numbers, counts, question.at_least, combinations, law, reply.receipt)


def combinations_of(question: SparseHistogram, schema: Schema) -> int:
    return math.prod(len(key.labels(schema)) for key in question.keys)
