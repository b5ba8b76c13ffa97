"""Row counts by any keys; by none, the number of rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.histogram import ResolvedHistogram
from dpmine.codes.queries import MOST_NUMBERS
from dpmine.facts.schema import Schema
from dpmine.language.keys import Key
from dpmine.language.queries import Question
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.spread import deviation, half_width
from dpmine.results.intervals import Interval
from dpmine.results.reading import Reading, key_name, reads, shown_labels
from dpmine.results.receipts import CellReply, Receipt

MOST_HISTOGRAM_KEYS = 16


@value("histogram")
class Histogram(Question):
    """The number of rows for every combination of labels of the keys, each with discrete Laplace noise."""

    keys: tuple[Key, ...]

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedHistogram:
        if len(self.keys) > MOST_HISTOGRAM_KEYS:
            raise RequestError(f"A histogram may have at most {MOST_HISTOGRAM_KEYS} keys.")
        resolved = ResolvedHistogram(tuple(resolver.key(key) for key in self.keys))
        counts = resolved.counts(cells)
        if counts > MOST_NUMBERS:
            raise RequestError(f"This query asks for {counts} counts; one answer holds {MOST_NUMBERS}. Use coarser keys.")
        return resolved


@dataclass(frozen=True)
class NoisyCount:
    """A count with discrete Laplace noise. It may be negative: clamping would make averages of counts too large."""

    value: int
    law: DiscreteLaplace
    receipt: Receipt

    def __int__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    @property
    def standard_deviation(self) -> float:
        return deviation(self.law)

    def interval(self, confidence: float = 0.95) -> Interval:
        return interval_of(self.value, self.law, confidence)

    def __str__(self) -> str:
        return f"{self.value} +- {half_width(self.law, 0.95)} (95 %), epsilon {self.receipt.epsilon}"


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """Noisy counts for every combination of public labels, empty ones too."""

    titles: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    counts: NDArray[np.int64]
    law: DiscreteLaplace
    receipt: Receipt

    def __getitem__(self, label: str | tuple[str, ...]) -> int:
        return int(self.counts[self._place(label)])

    def _place(self, label: str | tuple[str, ...]) -> tuple[int, ...]:
        wanted = (label,) if isinstance(label, str) else label
        if len(wanted) != len(self.labels):
            raise RequestError(f"This histogram is by {', '.join(self.titles)}: name one label of each.")
        place = []
        for text, known, title in zip(wanted, self.labels, self.titles, strict=True):
            if text not in known:
                raise RequestError(f"{title!r} has no label {text!r} here.")
            place.append(known.index(text))
        return tuple(place)

    def items(self) -> Iterator[tuple[tuple[str, ...], int]]:
        for place in np.ndindex(self.counts.shape):
            yield tuple(known[i] for known, i in zip(self.labels, place, strict=True)), int(self.counts[place])

    def to_dict(self) -> dict[Any, int]:
        """Label (or tuple of labels) to noisy count."""
        return {labels if len(labels) > 1 else labels[0]: count for labels, count in self.items()}

    def to_frame(self, *, wide: bool = False) -> Any:
        """A pandas frame with one row for each combination of labels; `wide` lays the last key out as columns."""
        try:
            import pandas as pd
        except ImportError:
            raise RequestError("to_frame needs pandas. Run: pip install pandas; or use to_dict.") from None
        rows = [(*labels, count) for labels, count in self.items()]
        if not wide:
            return pd.DataFrame(rows, columns=[*self.titles, "noisy_count"])
        if len(self.titles) != 2:
            raise RequestError("Only a histogram by two keys can be laid out as a table.")
        index, columns = (pd.Index(known, name=title) for known, title in zip(self.labels, self.titles, strict=True))
        return pd.DataFrame(self.counts, index=index, columns=columns)

    @property
    def standard_deviation(self) -> float:
        """Of each count's noise."""
        return deviation(self.law)

    def interval(self, label: str | tuple[str, ...], confidence: float = 0.95) -> Interval:
        """For one count on its own; over many counts at once some intervals will miss."""
        return interval_of(self[label], self.law, confidence)

    def nonnegative(self) -> NDArray[np.int64]:
        """The counts with negative ones set to 0. Small counts are then too large on average."""
        return np.maximum(self.counts, 0)

    def __str__(self) -> str:
        width = max([len(title) for title in self.titles] + [len(text) for known in self.labels for text in known])
        lines = ["  ".join(title.ljust(width) for title in self.titles) + "  noisy count"]
        for number, (labels, count) in enumerate(self.items()):
            if number == 50:
                lines.append(f"... {self.counts.size - 50} more")
                break
            lines.append("  ".join(label.ljust(width) for label in labels) + f"  {count:>11}")
        lines.append(f"Each +- {half_width(self.law, 0.95)} (95 %), epsilon {self.receipt.epsilon}.")
        return "\n".join(lines)


def interval_of(value: int, law: DiscreteLaplace, confidence: float) -> Interval:
    """The interval for a true count, cut at 0, with a note where the cut shifts it."""
    half = half_width(law, confidence)
    low, high = value - half, value + half
    if low >= 0:
        return Interval(low, high, confidence)
    note = "cut at 0, since no count is negative" if high >= 0 else "the noise pushed this count far below 0"
    return Interval(0, max(high, 0), confidence, note)


@reads(Histogram)
class HistogramReading(Reading[Histogram]):
    def words(self, question: Histogram) -> str:
        return "histogram by " + ", ".join(map(key_name, question.keys)) if question.keys else "count"

    def expected_error(self, question: Histogram, quote: Quote, schema: Schema) -> str:
        law = quote.laws[0][0]
        assert isinstance(law, DiscreteLaplace)
        each = "Each count" if question.keys or len(quote.price) > 1 else "The count"
        return (
            f"{each} will be off by {deviation(law):.3g} (standard deviation), within {half_width(law, 0.95)} in 95 % of "
            "the cases."
        )

    def read(self, question: Histogram, reply: CellReply, schema: Schema) -> NoisyCount | NoisyHistogram:
        (law,) = reply.laws
        assert isinstance(law, DiscreteLaplace)
        if not question.keys:
            return NoisyCount(reply.numbers[0], law, reply.receipt)
        counts = np.array(reply.numbers, dtype=np.int64).reshape([len(key.labels(schema)) for key in question.keys])
        labels = shown_labels(question.keys, schema)
        counts = counts[tuple(slice(len(known)) for known in labels)]
        return NoisyHistogram(tuple(key.title for key in question.keys), labels, counts, law, reply.receipt)
