"""Sums of products of one or two attributes: what means, variances and covariances are made of."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.moments import ResolvedMoments
from dpmine.codes.rows import Rounded
from dpmine.facts.facts import Facts
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.queries import Question
from dpmine.language.resolver import Resolver
from dpmine.language.resolving_keys import rounded
from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.ratios import covariance_interval, mean_interval, variance_interval
from dpmine.noise.spread import deviation
from dpmine.questions.total import NO_SUM
from dpmine.results.estimates import Estimate, clamped, clamping_note
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt

MOST_STEPS = 2**15  # of an amount that is multiplied with another
NAMES = {1: "mean", 2: "variance", 3: "covariance"}


@value("moments")
class Moments(Question):
    """Noisy sums from which a mean (of one attribute), a variance (the same one twice) or a covariance (two) follow.

    With x how far a value lies above the lowest, as a part of the range: the sums of x and 1 - x, or of all products of two
    such parts. The parts of a row add up to 1, so all sums together move by 1 where a row is added: none needs a share
    of epsilon, and the number of rows follows from them too. Rows with a gap do not count.
    """

    attributes: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.attributes) <= 2:
            raise RequestError("Moments are of one attribute, of the same twice, or of two.")

    @property
    def what(self) -> str:
        return NAMES[len(self.attributes) + (len(set(self.attributes)) > 1)]

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedMoments:
        return ResolvedMoments(self.amounts(resolver.schema))

    def amounts(self, schema: Facts) -> tuple[Rounded, ...]:
        attributes = [schema.numeric(name, NO_SUM) for name in self.attributes]
        most = [attribute.values - 1 if len(attributes) == 1 else MOST_STEPS for attribute in attributes]
        return tuple(rounded(attribute, steps) for attribute, steps in zip(attributes, most, strict=True))


@dataclass(frozen=True)
class NoisyMoments:
    """Noisy sums of products of parts, in whole steps: what a mean, variance or covariance is computed from, for free."""

    attributes: tuple[Numeric, ...]
    amounts: tuple[Rounded, ...]
    sums: tuple[int, ...]
    law: DiscreteLaplace
    receipt: Receipt

    @property
    def rows(self) -> int:
        """About how many rows have a value: all sums together, in whole rows."""
        return round(Fraction(sum(self.sums), math.prod(amount.steps for amount in self.amounts)))

    @property
    def _ranges(self) -> tuple[float, ...]:
        return tuple(float(attribute.numbers.high - attribute.numbers.low) for attribute in self.attributes)

    def mean(self, confidence: float = 0.95) -> Estimate:
        """The mean of the clamped values; where there are too few rows to tell, about the middle of the range."""
        self._check("mean", 2)
        above, below = self.sums
        share = clamped(above / (above + below), 0, 1) if above + below > 0 else 0.5
        low, high = mean_interval(above, below, self.law.fraction, confidence)
        start, width = float(self.attributes[0].numbers.low), self._ranges[0]
        return self._estimate("mean", (share, low, high), confidence, lambda part: start + part * width)

    def variance(self, confidence: float = 0.95) -> Estimate:
        """The variance (over n) of the clamped values."""
        width = self._ranges[0] ** 2
        return self._estimate("variance", self._spread(confidence), confidence, lambda part: part * width)

    def std(self, confidence: float = 0.95) -> Estimate:
        """The standard deviation (over n) of the clamped values."""
        width = self._ranges[0]
        return self._estimate("std", self._spread(confidence), confidence, lambda part: math.sqrt(part) * width)

    def _spread(self, confidence: float) -> tuple[float, float, float]:
        """The variance and the ends of its interval, as parts of the squared range.

        Rounding to fewer steps moved each value by up to half of one, and so the standard deviation by no more.
        """
        self._check("variance", 3)
        squares, mixed, rest = self.sums
        low, high = variance_interval(squares, mixed, rest, self.law.fraction, confidence)
        half = 1 / (2 * self.amounts[0].steps) if self.amounts[0].steps < self.attributes[0].values - 1 else 0.0
        total = squares + mixed + rest
        found = clamped(squares / total - ((squares + mixed / 2) / total) ** 2, 0, 0.25) if total > 0 else 0.0
        return found, max(math.sqrt(low) - half, 0) ** 2, min(math.sqrt(high) + half, 0.5) ** 2

    def covariance(self, confidence: float = 0.95) -> Estimate:
        """The covariance (over n) of the clamped values, over rows that have both."""
        self._check("covariance", 4)
        both, first, second, neither = self.sums
        total = sum(self.sums)
        share = both / total - (both + first) * (both + second) / total**2 if total > 0 else 0.0
        low, high = covariance_interval(both, first, second, neither, self.law.fraction, confidence)
        pairs = zip(self.amounts, self.attributes, strict=True)
        halves = [0 if amount.steps == each.values - 1 else 1 / (2 * amount.steps) for amount, each in pairs]
        rounding = (halves[0] + halves[1]) / 2 + halves[0] * halves[1]  # deviations are at most 1/2
        width = math.prod(self._ranges)
        ends = clamped(share, -0.25, 0.25), max(low - rounding, -0.25), min(high + rounding, 0.25)
        return self._estimate("covariance", ends, confidence, lambda part: part * width)

    def _check(self, what: str, sums: int) -> None:
        if len(self.sums) != sums:
            raise RequestError(f"These moments do not tell the {what}: ask for it.")

    def _estimate(
        self, what: str, parts: tuple[float, float, float], confidence: float, told: Callable[[float], float]
    ) -> Estimate:
        """From a number and its interval, as parts of the range. Where noise put it outside the interval, the nearer end."""
        value, low, high = map(told, (clamped(parts[0], parts[1], parts[2]), *parts[1:]))
        pairs = zip(self.amounts, self.attributes, strict=True)
        rough = dict.fromkeys(each.name for amount, each in pairs if amount.steps < each.values - 1)
        notes = [f"products of {' and '.join(rough)} are of values rounded to 1/{MOST_STEPS} of the range"] if rough else []
        notes.append(f"of about {self.rows} rows" if self.rows > 0 else "too few rows to tell")
        note = clamping_note(tuple(dict.fromkeys(self.attributes)), "; ".join(notes))
        return Estimate(what, value, low, high, confidence, note, self.receipt, self.rows)


@reads(Moments)
class MomentsReading(Reading[Moments]):
    def words(self, question: Moments) -> str:
        return f"{question.what} of {' and '.join(dict.fromkeys(question.attributes))}"

    def expected_error(self, question: Moments, quote: Quote, schema: Schema) -> str:
        law = quote.laws[0][0]
        assert isinstance(law, DiscreteLaplace)
        rows = deviation(law) / math.prod(amount.steps for amount in question.amounts(schema))
        attributes = [schema.numeric(name, NO_SUM) for name in question.attributes]
        width = math.prod(float(attribute.numbers.high - attribute.numbers.low) for attribute in attributes)
        of = {"mean": "the range", "variance": "the squared range", "covariance": "the product of both ranges"}
        gaps = " Rows without a value do not count." if any(attribute.gap is not None for attribute in attributes) else ""
        return (
            f"Among n rows the {question.what} will be off by at most about {rows * width:.3g} / n (standard deviation): "
            f"{rows:.3g} rows of {of[question.what]}, {width:g}.{gaps}"
        )

    def read(self, question: Moments, reply: CellReply, schema: Schema) -> NoisyMoments:
        attributes = tuple(schema.numeric(name, NO_SUM) for name in question.attributes)
        law = reply.laws[0]
        assert isinstance(law, DiscreteLaplace)
        return NoisyMoments(attributes, question.amounts(schema), reply.numbers, law, reply.receipt)
