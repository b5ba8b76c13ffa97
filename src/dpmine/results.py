"""What a miner gets back: noisy counts with their labels and intervals, and private choices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmine.epsilon import Epsilon
from dpmine.errors import RequestError
from dpmine.expressions import Key
from dpmine.finite import FiniteMechanism, LatticeNoise
from dpmine.intervals import BoxNoise, Interval, check_confidence, noise_deviation, noise_half_width, noise_scale
from dpmine.queries import Reply, ValueGrid, shares


@dataclass(frozen=True)
class Receipt:
    """How an answer came about: its epsilon in this cell, what the whole query cost, and the ledger's head."""

    epsilon: Epsilon
    cost: Epsilon
    sequence: int
    digest: str

    @classmethod
    def of(cls, reply: Reply, cell: int) -> Receipt:
        return cls(reply.answer.epsilon[cell], reply.cost, reply.head.sequence, reply.head.digest)


@dataclass(frozen=True)
class NoisyCount:
    """A count with discrete Laplace noise. It may be negative: clamping would make averages of counts too large."""

    value: int
    scale: Fraction
    receipt: Receipt

    def __int__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    @property
    def standard_deviation(self) -> float:
        return noise_deviation(self.scale)

    def interval(self, confidence: float = 0.95) -> Interval:
        return interval_of(self.value, self.scale, confidence)

    def __str__(self) -> str:
        return f"{self.value} +- {noise_half_width(self.scale, 0.95)} (95 %), epsilon {self.receipt.epsilon}"


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """Noisy counts for every combination of public labels, empty ones too."""

    titles: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    counts: NDArray[np.int64]
    scale: Fraction
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
        return noise_deviation(self.scale)

    def interval(self, label: str | tuple[str, ...], confidence: float = 0.95) -> Interval:
        """For one count on its own; over many counts at once some intervals will miss."""
        return interval_of(self[label], self.scale, confidence)

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
        lines.append(f"Each +- {noise_half_width(self.scale, 0.95)} (95 %), epsilon {self.receipt.epsilon}.")
        return "\n".join(lines)


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
    scale: Fraction
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
        return noise_deviation(self.scale)

    def __str__(self) -> str:
        return (
            f"{len(self)} of {self.combinations} combinations of {', '.join(self.titles)} with a noisy count of at least "
            f"{self.at_least}, each +- {noise_half_width(self.scale, 0.95)} (95 %), epsilon {self.receipt.epsilon}"
        )


@dataclass(frozen=True)
class Estimate:
    """A number computed from noisy sums, with an interval that holds the clamped truth with the stated confidence.

    Values outside the attribute's public bounds were clamped to them, and floored to the grid, before anything was summed.
    """

    what: str
    value: float
    low: float
    high: float
    confidence: float
    note: str
    receipt: Receipt

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        shown = f"{self.what} about {self.value:.6g}, {self.low:.6g} to {self.high:.6g} ({self.confidence:.0%})"
        return shown + (f"; {self.note}" if self.note else "") + f", epsilon {self.receipt.epsilon}"


@dataclass(frozen=True)
class NoisyMoments:
    """Noisy sums of powers of one attribute: what sums, means and variances are computed from, for free."""

    grid: ValueGrid
    powers: tuple[int, ...]
    sums: tuple[int, ...]
    scales: tuple[Fraction, ...]
    receipt: Receipt

    def _span(self, power: int, confidence: float) -> tuple[int, int, int]:
        """A noisy sum and the ends of its interval; all intervals together hold with the stated confidence."""
        place = self.powers.index(power)
        half = noise_half_width(self.scales[place], 1 - (1 - confidence) / len(self.powers))
        return self.sums[place], self.sums[place] - half, self.sums[place] + half

    def total(self, confidence: float = 0.95) -> Estimate:
        """The sum of the clamped values."""
        unit = float(self.grid.unit)
        value, low, high = (number * unit for number in self._span(1, confidence))
        return Estimate("sum", value, low, high, confidence, self._clamping(""), self.receipt)

    def mean(self, confidence: float = 0.95) -> Estimate:
        """The mean of the clamped values; the middle of the grid where there are too few rows to tell."""
        value, low, high, note = self._mean_in_units(confidence)
        value, low, high = (float(self.grid.centre + Fraction(end) * self.grid.unit) for end in (value, low, high))
        return Estimate("mean", value, low, high, confidence, self._clamping(note), self.receipt)

    def _mean_in_units(self, confidence: float) -> tuple[float, float, float, str]:
        return _mean_of_spans(self.grid, self._span(0, confidence), self._span(1, confidence))

    def variance(self, confidence: float = 0.95) -> Estimate:
        """The variance (over n) of the clamped values."""
        rows, few, many = self._span(0, confidence)
        squares, low_squares, high_squares = self._span(2, confidence)
        mean, low_mean, high_mean, note = self._mean_in_units(confidence)
        most = ((self.grid.last - self.grid.first) / 2) ** 2
        value = _clamped(squares / max(rows, 1) - mean**2, 0, most)
        if few < 1:
            low, high = 0.0, most
        else:
            nearest = _clamped(0, low_mean, high_mean)
            low = _clamped(min(low_squares / few, low_squares / many) - max(low_mean**2, high_mean**2), 0, most)
            high = _clamped(max(high_squares / few, high_squares / many) - nearest**2, 0, most)
        unit = float(self.grid.unit) ** 2
        return Estimate("variance", value * unit, low * unit, high * unit, confidence, self._clamping(note), self.receipt)

    def _clamping(self, note: str) -> str:
        return _clamping(self.grid, note)


Span = tuple[int, int, int]
"""A noisy number and the ends of its interval."""


def _mean_of_spans(grid: ValueGrid, rows_span: Span, total_span: Span) -> tuple[float, float, float, str]:
    """The mean in units of the grid from its middle, the ends of its interval, and what to note about it."""
    rows, few, many = rows_span
    total, low, high = total_span
    bottom, top = grid.first, grid.last
    mean = _clamped(total / max(rows, 1), bottom, top)
    if few < 1:
        return float(mean), bottom, top, "too few rows to say more than the bounds"
    ends = [end / number for end in (low, high) for number in (few, many)]
    note = "" if bottom <= total / max(rows, 1) <= top else "clamped to the attribute's bounds"
    return mean, _clamped(min(ends), bottom, top), _clamped(max(ends), bottom, top), note


def _clamping(grid: ValueGrid, note: str) -> str:
    """What was done to the values before they were summed, and what else shifts the answer."""
    low, high = (float(grid.centre + end * grid.unit) for end in (grid.first, grid.last))
    return f"values outside {low:g} to {high:g} count as these bounds" + (f"; {note}" if note else "")


@dataclass(frozen=True)
class NoisyVector:
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
    lengths: tuple[int, ...]
    inner: tuple[int, ...]
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
        epsilon = self.receipt.epsilon
        if self.ball == "l-infinity":
            return BoxNoise(self.lengths, self.inner, epsilon).half_width(confidence, place)
        share = shares(epsilon.units, len(self.lengths))[place]
        return noise_half_width(noise_scale(self.lengths[place], Epsilon(share)), confidence)

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
            return Estimate("sum", value, low, high, confidence, _clamping(grid, ""), self.receipt)
        both = 1 - (1 - confidence) / 2
        few, half = self.half_width(0, both), self.half_width(place + 1, both)
        rows_span, span = (self.rows, self.rows - few, self.rows + few), (total, total - half, total + half)
        mean, low, high, note = _mean_of_spans(grid, rows_span, span)
        mean, low, high = (float(grid.centre + Fraction(end) * grid.unit) for end in (mean, low, high))
        return Estimate("mean", mean, low, high, confidence, _clamping(grid, note), self.receipt)

    def __str__(self) -> str:
        lines = []
        for name in self.attributes:
            found = self.estimate(name)
            lines.append(f"{self.what} of {name} about {found.value:.6g}, {found.low:.6g} to {found.high:.6g} (95 %)")
        return "\n".join((*lines, f"One noise for all, by the {self.ball} ball, epsilon {self.receipt.epsilon}."))


@dataclass(frozen=True)
class CredibleInterval:
    """A range that holds the true value with the stated probability, for whoever believed the prior beforehand."""

    low: float
    high: float
    confidence: float
    note: str

    def __str__(self) -> str:
        return f"{self.low:.6g} to {self.high:.6g} ({self.confidence:.0%}, {self.note})"


class Known(Protocol):
    """What is known beforehand of an answer with noise on a lattice."""

    @property
    def first(self) -> int:
        """The first lattice point that can be, in steps."""
        ...

    def posterior(self, answer: int) -> NDArray[np.float64]:
        """The probabilities of the points from there on, once this was answered."""
        ...

    def surprising(self, answer: int) -> bool:
        """Whether the answer lies far outside of what can be."""
        ...


@dataclass(frozen=True, eq=False)
class DesignedAnswer:
    """A statistic told through noise that was designed for it.

    released       the exact answer; `value` is the nearest double
    mechanism      the name of the noise, and `why` it was taken
    expected_loss  of the answer under the prior and loss it was designed for (doubles)
    prior_loss     of answering the prior's best guess without looking at rows; None where there is no bounded range
    prior          the prior in words, and its probabilities for the points of the mechanism's grid
    known          for noise on a lattice within bounds what the prior makes of it, and `answered`, in steps, before that
    """

    what: str
    released: Fraction
    mechanism: str
    why: str
    loss: str
    expected_loss: float
    prior_loss: float | None
    noise: FiniteMechanism | LatticeNoise
    steps: int
    prior: str
    probabilities: NDArray[np.float64] | None
    coarse: bool
    receipt: Receipt
    known: Known | None = None
    answered: int = 0

    @property
    def value(self) -> float:
        return float(self.released)

    def __float__(self) -> float:
        return self.value

    def interval(self, confidence: float = 0.95) -> CredibleInterval:
        """The shortest range of values with that probability after the answer; by the noise alone where no prior is."""
        check_confidence(confidence)
        if self.known is not None:
            assert isinstance(self.noise, LatticeNoise)
            first, last = _shortest(self.known.posterior(self.answered), confidence)
            note = f"under the prior {self.prior}"
            note += ", far outside of which the answer lay" if self.known.surprising(self.answered) else ""
            around = Fraction(self.noise.step) / 2 if self.coarse else Fraction(0)
            ends = tuple((self.known.first + place) * Fraction(self.noise.step) for place in (first, last))
            return CredibleInterval(float(ends[0] - around), float(ends[1] + around), confidence, note)
        if isinstance(self.noise, LatticeNoise):
            half = self._half_width(confidence) * Fraction(self.noise.step)
            half += Fraction(self.noise.step) / 2 if self.coarse else 0
            ends = self.released - half, self.released + half
            return CredibleInterval(float(ends[0]), float(ends[1]), confidence, "by the noise alone, a flat prior")
        assert self.probabilities is not None
        output, note = self.noise.released.index(self.released), f"under the prior {self.prior}"
        chances = self.probabilities
        if not (chances * self.noise.matrix()[:, output]).sum() > 0:
            chances, note = np.ones(len(chances)), f"under a flat prior, since this answer contradicts {self.prior}"
        first, last = _shortest(self.noise.posterior(chances, output), confidence)
        # A grid coarser than the statistic stands for all values that are rounded to it.
        around = Fraction(self.noise.step) / 2 if self.coarse else Fraction(0)
        low = max(self.noise.inputs[first] - around, self.noise.inputs[0])
        high = min(self.noise.inputs[last] + around, self.noise.inputs[-1])
        return CredibleInterval(float(low), float(high), confidence, note)

    def _half_width(self, confidence: float) -> int:
        assert isinstance(self.noise, LatticeNoise)
        epsilon = self.receipt.epsilon
        if self.noise.kind == "staircase":
            return BoxNoise((self.steps,), (self.noise.inner,), epsilon).half_width(confidence)
        return noise_half_width(noise_scale(self.steps, epsilon), confidence)

    def __str__(self) -> str:
        found = self.interval()
        alone = "" if self.prior_loss is None else f" ({self.prior_loss:.4g} by the prior alone)"
        return (
            f"{self.what} about {self.value:.6g}, {found}, by {self.mechanism}; expected {self.loss} loss "
            f"{self.expected_loss:.4g}{alone}, epsilon {self.receipt.epsilon}. {self.why}"
        )


def _shortest(chances: NDArray[np.float64], confidence: float) -> tuple[int, int]:
    """The first and last place of the shortest run with that much probability; of equally short ones the likeliest."""
    ends = np.concatenate(([0.0], np.cumsum(chances)))
    firsts = np.arange(len(chances))
    afters = np.searchsorted(ends, ends[:-1] + confidence - 1e-12, side="left")
    enough = afters <= len(chances)
    if not enough.any():
        return 0, len(chances) - 1
    firsts, afters = firsts[enough], afters[enough]
    best = np.lexsort((firsts, -(ends[afters] - ends[firsts]), afters - firsts))[0]
    return int(firsts[best]), int(afters[best]) - 1


@dataclass(frozen=True, eq=False)
class NoisyOffsets:
    """Noisy sums of clipped offsets, for each cluster (row) and attribute (column), in positions, and their noise scales."""

    sums: NDArray[np.int64]
    scales: tuple[Fraction, ...]
    receipt: Receipt


@dataclass(frozen=True)
class GrownTree:
    """Which nodes of a private tree are cut: parents first, from left to right."""

    bits: tuple[int, ...]
    receipt: Receipt


def _clamped(number: float, low: float, high: float) -> float:
    return min(max(number, low), high)


@dataclass(frozen=True)
class ChosenPoint:
    """A grid point chosen privately at or near a quantile."""

    value: float
    order: Fraction
    rows_away: float
    receipt: Receipt

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            f"quantile {float(self.order):g} about {self.value:g} (within {self.rows_away:.3g} rows of it in 95 % of the "
            f"cases), epsilon {self.receipt.epsilon}"
        )


@dataclass(frozen=True)
class ChosenLabel:
    """The label a private choice picked; most often, not always, the most frequent one."""

    label: str
    index: int
    receipt: Receipt

    def __str__(self) -> str:
        return f"{self.label} (chosen privately, epsilon {self.receipt.epsilon})"


@dataclass(frozen=True)
class ChosenSplit:
    """The split a private choice picked, as the key to split by."""

    key: Key
    family: int
    labels: tuple[str, ...]
    receipt: Receipt

    def __str__(self) -> str:
        shown = ", ".join(self.labels[:6]) + (", ..." if len(self.labels) > 6 else "")
        return f"{self.key.title}: {shown} (chosen privately, epsilon {self.receipt.epsilon})"


@dataclass(frozen=True)
class Stayed:
    """The private choice was not to split."""

    receipt: Receipt

    def __str__(self) -> str:
        return f"no split (chosen privately, epsilon {self.receipt.epsilon})"


@dataclass(frozen=True)
class ChosenModel:
    """Which of several models a private choice picked: most often one that is right about most rows."""

    index: int
    receipt: Receipt

    def __str__(self) -> str:
        return f"model {self.index} (chosen privately, epsilon {self.receipt.epsilon})"


def interval_of(value: int, scale: Fraction, confidence: float) -> Interval:
    """The interval for a true count, cut at 0, with a note where the cut shifts it."""
    half = noise_half_width(scale, confidence)
    low, high = value - half, value + half
    if low >= 0:
        return Interval(low, high, confidence)
    note = "cut at 0, since no count is negative" if high >= 0 else "the noise pushed this count far below 0"
    return Interval(0, max(high, 0), confidence, note)
