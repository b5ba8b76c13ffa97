"""One statistic of a view, through noise that was designed for it beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.designed_statistic import STATISTICS, ResolvedDesignedStatistic, largest_value, sensitivity_of
from dpmine.codes.value_grids import largest_fits
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.statistic_noise import Design, as_asked, numbers_of
from dpmine.facts.schema import Schema
from dpmine.language.queries import Question, of_one_cell
from dpmine.language.resolver import Resolver
from dpmine.noise.confidence import check_confidence
from dpmine.noise.finite_tables import FiniteTable, LatticeNoise
from dpmine.noise.laws import Law, NoiseLaw
from dpmine.noise.spread import deviation, half_width
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt

LONGEST_PRIOR = 16_384  # characters of what is recorded about a public prior


@value("designed-statistic")
class DesignedStatistic(Question):
    """One statistic of a view, told through noise that was designed for it beforehand.

    statistic   count, sum, mean, max or median; all but the count are of a numeric attribute
    noise       a mechanism on a finite grid, or noise on a lattice for an answer without bounds
    prior       what was publicly known beforehand when the noise was designed, for the record: it decides nothing here

    By how much one row moves the statistic follows from the schema; noise that would not keep epsilon for it is refused.
    """

    statistic: str
    attribute: str | None
    noise: FiniteTable | LatticeNoise
    prior: str | None

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise RequestError(f"The statistic must be one of {', '.join(STATISTICS)}. Got {self.statistic!r:.60}.")
        if (self.attribute is None) != (self.statistic == "count"):
            raise RequestError("A count is of no attribute; every other statistic is of one.")
        if self.prior is not None and len(self.prior) > LONGEST_PRIOR:
            raise RequestError(f"A prior is recorded in at most {LONGEST_PRIOR} characters.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedDesignedStatistic:
        of_one_cell(cells)
        grid = numbers_of(self.statistic, self.attribute, resolver.schema)
        if isinstance(self.noise, LatticeNoise) and not largest_fits(largest_value(grid) / Fraction(self.noise.step)):
            raise RequestError(f"A step of {self.noise.step} is too fine for exact values. Use a larger step.")
        amount = None if self.attribute is None else resolver.amount(self.attribute, f"it has no {self.statistic}")
        return ResolvedDesignedStatistic(self.statistic, amount, self.noise)

    def check_prices(self, resolver: Resolver, units: tuple[int, ...]) -> None:
        """The kernel refuses what does not keep epsilon; here it is said what would."""
        if isinstance(self.noise, FiniteTable):
            moves = sensitivity_of(self.statistic, numbers_of(self.statistic, self.attribute, resolver.schema))
            epsilon = Epsilon(units[0])
            if not self.noise.keeps(epsilon, moves):
                needs = FiniteMechanism.of(self.noise).epsilon(moves)
                raise RequestError(
                    f"This mechanism does not keep epsilon {epsilon} where one row can move the {self.statistic} by "
                    f"{moves}: it needs {needs:.9g}. Design it for that sensitivity."
                )


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
    law: Law
    prior: str
    probabilities: NDArray[np.float64] | None
    coarse: bool
    receipt: Receipt
    known: Known | None = None
    answered: int = 0

    @classmethod
    def of(cls, made: Design, question: DesignedStatistic, reply: CellReply) -> DesignedAnswer:
        (number,), (law,) = reply.numbers, reply.laws
        return cls(
            what=question.statistic if question.attribute is None else f"{question.statistic} of {question.attribute}",
            released=made.released(number),
            mechanism=made.name,
            why=made.why,
            loss=made.stated.loss,
            expected_loss=made.expected_loss,
            prior_loss=made.prior_loss,
            noise=made.noise,
            law=law,
            prior=str(made.stated),
            probabilities=made.probabilities,
            coarse=made.coarse,
            known=made.known,
            answered=number,
            receipt=reply.receipt,
        )

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
            assert isinstance(self.law, NoiseLaw)
            half = half_width(self.law, confidence) * Fraction(self.noise.step)
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


@reads(DesignedStatistic)
class DesignedStatisticReading(Reading[DesignedStatistic]):
    def words(self, question: DesignedStatistic) -> str:
        of = "" if question.attribute is None else f" of {question.attribute}"
        noise = question.noise
        if isinstance(noise, LatticeNoise):
            return f"{question.statistic}{of} told by {noise.kind} noise in steps of {noise.step}"
        shape = f"{len(noise.weights)} points and {len(noise.outputs)} answers"
        return f"{question.statistic}{of} told by a finite mechanism of {shape}"

    def expected_error(self, question: DesignedStatistic, quote: Quote, schema: Schema) -> str:
        (law,) = quote.laws[0]
        if isinstance(question.noise, FiniteTable):
            losses = FiniteMechanism.of(question.noise).losses("absolute")
            return (
                f"Over the points of its grid the {question.statistic} will be off by {losses.mean():.3g} on average, and "
                f"by {losses.max():.3g} where it is worst (mean absolute error)."
            )
        assert isinstance(law, NoiseLaw)
        step = float(Fraction(question.noise.step))
        return (
            f"The {question.statistic} will be off by {deviation(law) * step:.3g} (standard deviation), within "
            f"{half_width(law, 0.95) * step:.6g} in 95 % of the cases."
        )

    def read(self, question: DesignedStatistic, reply: CellReply, schema: Schema) -> DesignedAnswer:
        """As if nothing was known beforehand; whoever designed the noise reads it by `DesignedAnswer.of`."""
        grid = numbers_of(question.statistic, question.attribute, schema)
        made = as_asked(question.statistic, grid, question.noise, reply.receipt.epsilon)
        return DesignedAnswer.of(made, question, reply)
