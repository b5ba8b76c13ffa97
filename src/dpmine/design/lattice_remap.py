"""What a prior makes of an answer with noise on a lattice: the best guess within public bounds, after the noise.

Where a range has more points than a mechanism's table can hold, noise is added on the fine lattice of the statistic's own
values, and what is known beforehand comes in afterwards: post-processing of a private answer.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.design.priors import Prior
from dpmine.design.staircase_costs import geometric_loss, staircase_loss
from dpmine.noise.finite_tables import Floats, LatticeNoise

MOST_KNOWN = 200_000  # points of a lattice on which a prior is written out
MOST_WEIGHED = 2_001  # and up to which all answers are weighed beforehand, to know what the remap brings
SURELY = 30  # noise scales that noise hardly ever exceeds
NEVER = 1e-18  # of the likeliest point's probability: points that are less likely, at either end, are left out


@dataclass(frozen=True, eq=False)
class KnownRange:
    """A prior on the lattice points from `first` on (in steps), and the noise that an answer on that lattice has had."""

    noise: LatticeNoise
    steps: int
    """The sensitivity, in lattice steps."""
    epsilon: Epsilon
    first: int
    probabilities: Floats
    loss: str
    remap: bool
    """Whether the best guess is told; else the answer is only brought within the bounds."""

    @property
    def last(self) -> int:
        return self.first + len(self.probabilities) - 1

    def told(self, answer: int) -> int:
        """What to tell of an answer, in steps."""
        answer = self._near(answer)
        if not self.remap:
            return max(self.first, min(answer, self.last))
        return self.first + int(self._best(self.posterior(answer)[None, :])[0])

    def posterior(self, answer: int) -> Floats:
        """The probabilities of the lattice points once this was answered."""
        after: Floats = self._posteriors(np.array([self._near(answer)]))[0][0]
        return after

    def surprising(self, answer: int) -> bool:
        """Whether the answer lies farther outside than noise would take it once in a hundred thousand times."""
        reach = math.ceil(12 * self.steps / float(self.epsilon))
        return not self.first - reach <= answer <= self.last + reach

    def _near(self, answer: int) -> int:
        """An answer far outside tells no more than one as many stairs nearer, for which doubles are good enough."""
        reach = math.ceil(SURELY * self.steps / float(self.epsilon))
        lowest, highest = self.first - reach, self.last + reach
        if answer > highest:
            return highest + (answer - highest) % self.steps
        return lowest - (lowest - answer) % self.steps if answer < lowest else answer

    def alone(self) -> float:
        """The expected loss, in steps, of the prior's best guess."""
        places = np.arange(len(self.probabilities))
        away = np.abs(places - self._best(self.probabilities[None, :])[0])
        return float(self.probabilities @ {"absolute": away, "squared": away**2, "miss": away > 0}[self.loss])

    def expected_loss(self) -> float:
        """In steps. Where too much would have to be weighed: of the noise before it is brought within the bounds."""
        if self.remap:
            return self._weighed()
        if self.loss == "absolute" and self.noise.kind == "geometric":
            rate = float(self.epsilon) / self.steps
            places = np.arange(len(self.probabilities))
            ends = np.exp(-rate * places) + np.exp(-rate * places[::-1])
            # The sum over t >= 1 of P(noise >= t), up to either end.
            return float(self.probabilities @ (2 - ends)) * math.exp(-rate) / -math.expm1(-2 * rate)
        if self.noise.kind == "geometric":
            return geometric_loss(self.steps, self.epsilon, self.loss)
        return staircase_loss(self.steps, self.noise.inner, self.epsilon, self.loss)

    def _weighed(self) -> float:
        reach = math.ceil(SURELY * self.steps / float(self.epsilon))
        total, places = 0.0, np.arange(len(self.probabilities))
        answers = np.arange(self.first - reach, self.last + reach + 1)
        for start in range(0, len(answers), 512):
            posteriors, chances = self._posteriors(answers[start : start + 512])
            away = np.abs(places[None, :] - self._best(posteriors)[:, None])
            lost = {"absolute": away, "squared": away**2, "miss": away > 0}[self.loss]
            total += float(chances @ (posteriors * lost).sum(axis=1))
        return total

    def _posteriors(self, answers: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """For each answer the posterior on the lattice points, and how likely the answer is."""
        points = np.arange(self.first, self.last + 1)
        distances = np.abs(answers[:, None] - points[None, :])
        with np.errstate(divide="ignore"):
            logs = np.log(self.probabilities)[None, :] + self._log_law(distances)
        largest = logs.max(axis=1, keepdims=True)
        joint = np.exp(logs - largest)
        sums = joint.sum(axis=1)
        return joint / sums[:, None], sums * np.exp(largest[:, 0])

    def _log_law(self, distances: NDArray[np.int64]) -> Floats:
        rate = float(self.epsilon)
        if self.noise.kind == "geometric":
            slower = rate / self.steps
            law: Floats = (-slower * distances + math.log(math.tanh(slower / 2))).astype(np.float64)
            return law
        levels = np.maximum(-(-(distances - self.noise.inner) // self.steps), 0)
        mass = 2 * self.noise.inner + 1 + 2 * self.steps / math.expm1(rate)
        stairs: Floats = -rate * levels - math.log(mass)
        return stairs

    def _best(self, posteriors: Floats) -> NDArray[np.intp]:
        """The place of least expected loss: median, mean (rounded) or likeliest point."""
        if self.loss == "squared":
            return np.floor(posteriors @ np.arange(posteriors.shape[1]) + 0.5).astype(np.intp)
        wanted = np.cumsum(posteriors, axis=1) >= 0.5 - 1e-12 if self.loss == "absolute" else posteriors
        best: NDArray[np.intp] = np.argmax(wanted, axis=1)
        return best


def known_range(
    noise: LatticeNoise, steps: int, epsilon: Epsilon, low: Fraction, high: Fraction, prior: Prior
) -> KnownRange | None:
    """What bounds and prior make of such noise; None where the lattice has too many points between the bounds."""
    step = Fraction(noise.step)
    likely_range = prior.support()
    if likely_range is not None and max(low, likely_range[0]) + step <= min(high, likely_range[1]):
        low, high = max(low, likely_range[0]), min(high, likely_range[1])
    first, last = math.ceil(low / step), math.floor(high / step)
    points = last - first + 1
    if not 1 <= points <= MOST_KNOWN:
        return None
    probabilities = prior.probabilities([place * step for place in range(first, last + 1)])
    likely = np.flatnonzero(probabilities > NEVER * probabilities.max())
    window = probabilities[likely[0] : likely[-1] + 1]
    if len(window) <= MOST_WEIGHED and SURELY * steps <= MOST_WEIGHED * float(epsilon):
        return KnownRange(noise, steps, epsilon, first + int(likely[0]), window / window.sum(), prior.loss, remap=True)
    return KnownRange(noise, steps, epsilon, first, probabilities, prior.loss, remap=False)
