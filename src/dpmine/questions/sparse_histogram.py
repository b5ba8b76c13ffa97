"""Row counts of any number of combinations, where they reach a public threshold."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.domain import MOST_ROWS
from dpmine.codes.sparse_histogram import MOST_COMBINATIONS, ResolvedSparseHistogram
from dpmine.facts.schema import Schema
from dpmine.language.keys import Key
from dpmine.language.queries import Question
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.phantoms import phantoms
from dpmine.noise.spread import deviation, half_width, of_counts
from dpmine.results.reading import Reading, key_name, reads, shown_labels
from dpmine.results.receipts import CellReply, Receipt, laws_by_price

Numbers = NDArray[np.int64]

MOST_SPARSE_KEYS = 128
MOST_PHANTOMS = 1_000_000  # combinations without rows that a sparse histogram may be expected to show


@value("sparse-histogram")
class SparseHistogram(Question):
    """Of a histogram with any number of combinations, the noisy counts that reach a public threshold.

    Combinations without rows are never listed one by one, so there may be 10^18 of them.
    """

    keys: tuple[Key, ...]
    at_least: int

    def __post_init__(self) -> None:
        if not self.keys:
            raise RequestError("A histogram needs at least one key.")
        if type(self.at_least) is not int or not 1 <= self.at_least <= MOST_ROWS:
            raise RequestError(f"The threshold 'at_least' is a whole number from 1 to {MOST_ROWS}. Got {self.at_least}.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedSparseHistogram:
        resolved = ResolvedSparseHistogram(tuple(resolver.key(key) for key in self.keys), self.at_least)
        if len(self.keys) > MOST_SPARSE_KEYS:
            raise RequestError(f"A sparse histogram may have at most {MOST_SPARSE_KEYS} keys.")
        if cells * resolved.bins > MOST_COMBINATIONS:
            raise RequestError(f"A sparse histogram has at most {MOST_COMBINATIONS} combinations. Use coarser keys.")
        return resolved

    def check_prices(self, resolver: Resolver, units: tuple[int, ...]) -> None:
        """Refuse a threshold so low that noise alone would fill the answer."""
        bins = math.prod(resolver.key(key).size for key in self.keys)
        cells = Counter(units)
        expected = sum(
            cells[paid] * phantoms(bins, of_counts(Epsilon(paid)), self.at_least) for paid in sorted(set(units) - {0})
        )
        if expected > MOST_PHANTOMS:
            raise RequestError(
                f"With {bins} combinations and a threshold of {self.at_least}, noise alone would show about {expected:.3g} "
                f"of them; at most {MOST_PHANTOMS} fit one answer. Raise 'at_least', or use coarser keys."
            )


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
        return deviation(self.law)

    def __str__(self) -> str:
        return (
            f"{len(self)} of {self.combinations} combinations of {', '.join(self.titles)} with a noisy count of at least "
            f"{self.at_least}, epsilon {self.receipt.epsilon}; of all counts, shown or not, 95 % are within "
            f"{half_width(self.law, 0.95)}, but those shown were picked for being large"
        )


@reads(SparseHistogram)
class SparseHistogramReading(Reading[SparseHistogram]):
    def words(self, question: SparseHistogram) -> str:
        return f"sparse histogram by {', '.join(map(key_name, question.keys))}, from {question.at_least} on"

    def expected_error(self, question: SparseHistogram, quote: Quote, schema: Schema) -> str:
        cheapest = quote.laws[0][0]
        assert isinstance(cheapest, DiscreteLaplace)
        combinations = combinations_of(question, schema)
        by_price = laws_by_price(quote)
        laws = [by_price[paid][0] for paid in quote.price if paid.units]
        shown = sum(phantoms(combinations, law, question.at_least) for law in laws if isinstance(law, DiscreteLaplace))
        return (
            f"Every count, shown or not, gets noise of {deviation(cheapest):.3g} (standard deviation), and those shown are "
            f"picked for being large; about {shown:.3g} combinations without any row will be shown, and counts below "
            f"{question.at_least} left out."
        )

    def read(self, question: SparseHistogram, reply: CellReply, schema: Schema) -> NoisySparseHistogram:
        (law,) = reply.laws
        assert isinstance(law, DiscreteLaplace)
        numbers, counts = np.array(reply.numbers, dtype=np.int64).reshape(-1, 2).T
        titles = tuple(key.title for key in question.keys)
        sizes = [len(key.labels(schema)) for key in question.keys]
        labels = shown_labels(question.keys, schema)
        if sizes != list(map(len, labels)):
            numbers, counts = _without_hidden(numbers, counts, sizes, list(map(len, labels)))
        combinations = combinations_of(question, schema)
        return NoisySparseHistogram(titles, labels, numbers, counts, question.at_least, combinations, law, reply.receipt)


def combinations_of(question: SparseHistogram, schema: Schema) -> int:
    """Of the labels that are shown."""
    return math.prod(map(len, shown_labels(question.keys, schema)))


def _without_hidden(numbers: Numbers, counts: Numbers, sizes: list[int], shown: list[int]) -> tuple[Numbers, Numbers]:
    """The combinations whose labels are all shown, numbered among those; the hidden label of a key is its last."""
    kept, among = np.ones(len(numbers), dtype=bool), np.zeros(len(numbers), dtype=np.int64)
    weight = 1
    for size, end in zip(reversed(sizes), reversed(shown), strict=True):
        numbers, place = np.divmod(numbers, size)
        kept &= place < end
        among += weight * place
        weight *= end
    return among[kept], counts[kept]
