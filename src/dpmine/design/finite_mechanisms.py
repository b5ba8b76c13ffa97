"""Mechanisms on a finite grid as a designer sees them: what they lose, what they tell, and what colluders make of them.

The kernel needs none of this: it checks and draws from the same numbers as a `FiniteTable`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.exponentials import exp_bounds
from dpmine.base.public_random import public_generator
from dpmine.noise.finite_tables import FiniteTable, Floats, Whole, exact_text, window_maxima

MOST_MULTISETS = 100_000  # times inputs, of several answers taken together
MOST_RUNS = 1_000_000
LOSSES = ("absolute", "squared", "miss")


def loss_table(loss: str, true_values: Sequence[Fraction], released: Sequence[Fraction]) -> Floats:
    """What it costs to release a value (column) when another one is true (row)."""
    if loss not in LOSSES:
        raise RequestError(f"The loss must be one of {', '.join(LOSSES)}. Got {loss!r} instead.")
    if loss == "miss":
        return np.array([[float(true != told) for told in released] for true in true_values])
    rows, columns = np.array([float(x) for x in true_values]), np.array([float(x) for x in released])
    distances = np.abs(rows[:, None] - columns[None, :])
    squares: Floats = distances**2
    return distances if loss == "absolute" else squares


class FiniteMechanism(FiniteTable):
    """A mechanism on a finite grid: row i is the law of what is released when the true value is the i-th grid point.

    low, step   of the input grid, exact text
    outputs     what is released, exact text, rising
    weights     [inputs][outputs]: whole numbers from 0; all rows add up to the same total
    """

    @classmethod
    def of(cls, table: FiniteTable) -> FiniteMechanism:
        """The same numbers, as read from a question or a file."""
        return table if isinstance(table, cls) else cls(table.low, table.step, table.outputs, table.weights)

    def __eq__(self, other: object) -> bool:
        """The same numbers are the same mechanism, whatever else its class can tell of it."""
        if not isinstance(other, FiniteTable):
            return NotImplemented
        numbers = (self.low, self.step, self.outputs, self.weights)
        return numbers == (other.low, other.step, other.outputs, other.weights)

    __hash__ = FiniteTable.__hash__

    @cached_property
    def inputs(self) -> tuple[Fraction, ...]:
        low, step = Fraction(self.low), Fraction(self.step)
        return tuple(low + place * step for place in range(len(self.weights)))

    @cached_property
    def released(self) -> tuple[Fraction, ...]:
        return tuple(map(Fraction, self.outputs))

    @cached_property
    def total(self) -> int:
        return sum(self.weights[0])

    def matrix(self) -> Floats:
        """Probabilities as doubles; every row adds up to 1, up to rounding."""
        return np.array(self.weights, dtype=np.int64) / float(self.total)

    def epsilon(self, sensitivity: Fraction) -> float:
        """The largest log ratio, for what is shown; infinite where a weight of 0 meets a positive one."""
        weights = np.array(self.weights, dtype=np.int64)
        return _largest_log_ratio(weights, window_maxima(weights, self.steps(sensitivity)))

    # -- losses ----------------------------------------------------------------------------------------------------------

    def losses(self, loss: str) -> Floats:
        """The expected loss for each true value of the grid."""
        mean: Floats = (self.matrix() * loss_table(loss, self.inputs, self.released)).sum(axis=1)
        return mean

    def expected_loss(self, prior: Sequence[float] | Floats, loss: str) -> float:
        return float(self._prior(prior) @ self.losses(loss))

    def worst_loss(self, loss: str, among: Sequence[bool] | NDArray[np.bool_] | None = None) -> float:
        """The largest expected loss over the true values of the grid, or over those where `among` is true."""
        losses = self.losses(loss)
        chosen = np.ones(len(losses), dtype=bool) if among is None else np.asarray(among, dtype=bool)
        if chosen.shape != losses.shape or not chosen.any():
            raise RequestError(f"`among` says of each of {len(losses)} inputs whether it counts, and at least one does.")
        return float(losses[chosen].max())

    def posterior(self, prior: Sequence[float] | Floats, output: int) -> Floats:
        """What the prior becomes once the output of that number is seen."""
        if not 0 <= output < len(self.outputs):
            raise RequestError(f"The mechanism has {len(self.outputs)} outputs; there is no output {output}.")
        joint = self._prior(prior) * self.matrix()[:, output]
        if joint.sum() <= 0:
            raise RequestError(f"Under this prior the output {self.outputs[output]} never comes.")
        posterior: Floats = joint / joint.sum()
        return posterior

    def remapped(self, prior: Sequence[float] | Floats, loss: str) -> FiniteMechanism:
        """Release, instead of each output, the grid point of least expected loss given it: post-processing, and exact.

        Of equally good points the lowest. Outputs that never come under the prior are judged by a flat one.
        """
        chosen = best_guesses(self.matrix(), self._prior(prior), loss_table(loss, self.inputs, self.inputs))
        points = sorted(set(chosen.tolist()))
        weights = np.array(self.weights, dtype=np.int64)
        merged = np.stack([weights[:, chosen == point].sum(axis=1) for point in points], axis=1)
        outputs = tuple(exact_text(self.inputs[point]) for point in points)
        return FiniteMechanism(self.low, self.step, outputs, _rows(merged))

    def _prior(self, prior: Sequence[float] | Floats) -> Floats:
        probabilities = np.asarray(prior, dtype=np.float64)
        if probabilities.shape != (len(self.weights),):
            raise RequestError(f"The prior needs a probability for each of {len(self.weights)} inputs.")
        if not (np.isfinite(probabilities).all() and (probabilities >= 0).all() and probabilities.sum() > 0):
            raise RequestError("A prior is not negative, finite, and somewhere positive.")
        normalised: Floats = probabilities / probabilities.sum()
        return normalised

    # -- several answers -------------------------------------------------------------------------------------------------

    def repeated(self, k: int) -> Repeated:
        """k independent answers to one question, as one mechanism: their order tells nothing, so a multiset is released."""
        if type(k) is not int or k < 1:
            raise RequestError(f"A number of answers is a whole number from 1. Got {k!r}.")
        count = math.comb(len(self.outputs) + k - 1, k)
        if count * len(self.weights) > MOST_MULTISETS:
            raise RequestError(f"{k} answers of {len(self.outputs)} outputs are {count} multisets: too many to write out.")
        multisets = tuple(itertools.combinations_with_replacement(range(len(self.outputs)), k))
        orders = [_orders(multiset) for multiset in multisets]
        weights = tuple(
            tuple(
                ways * math.prod(row[output] for output in multiset)
                for ways, multiset in zip(orders, multisets, strict=True)
            )
            for row in self.weights
        )
        return Repeated(self, multisets, weights)

    def most_likely(self, answers: Sequence[int]) -> int:
        """The input under which these outputs (by number) are likeliest together: the guess of users who pool answers.

        Of equally likely inputs one that can be released itself, of several the middle one, of two middle ones the lower.
        """
        counts = np.bincount(np.asarray(answers, dtype=np.int64), minlength=len(self.outputs))
        if counts.size > len(self.outputs):
            raise RequestError(f"The mechanism has {len(self.outputs)} outputs, numbered from 0.")
        return int(self._most_likely(counts[None, :])[0])

    def _most_likely(self, counts: Whole) -> NDArray[np.intp]:
        with np.errstate(divide="ignore"):
            logs = np.log(self.matrix())
        impossible = (counts > 0).astype(np.float64) @ np.isinf(logs).T.astype(np.float64) > 0
        scores = np.where(impossible, -np.inf, counts @ np.where(np.isinf(logs), 0.0, logs).T)
        best = scores.max(axis=1, keepdims=True)
        tied = scores >= best - 1e-9 * np.maximum(1.0, np.abs(best))
        told = set(self.released)
        named = tied & np.array([point in told for point in self.inputs])
        ranks = np.cumsum(np.where(named.any(axis=1, keepdims=True), named, tied), axis=1)
        middle = (ranks[:, -1:] + 1) // 2
        places: NDArray[np.intp] = np.argmax(ranks >= middle, axis=1)
        return places

    def colluders_error(self, k: int, prior: Sequence[float] | Floats, *, runs: int, seed: int) -> float:
        """The mean distance of `most_likely` of k pooled answers from the truth, over simulated truths and answers."""
        if not (k >= 1 and 1 <= runs <= MOST_RUNS):
            raise RequestError(f"Colluders pool at least one answer, in 1 to {MOST_RUNS} runs.")
        generator = public_generator(seed)
        truths = generator.choice(len(self.weights), size=runs, p=self._prior(prior))
        matrix = self.matrix()
        matrix /= matrix.sum(axis=1, keepdims=True)
        counts = generator.multinomial(k, matrix[truths])
        return float(np.mean(np.abs(self._most_likely(counts) - truths)) * float(Fraction(self.step)))


def at_most_ratio(more: int, less: int, epsilon: Epsilon) -> bool:
    """Whether more <= exp(epsilon) * less, exactly, for whole numbers from 0."""
    if more <= less:
        return True
    if less == 0 or epsilon.units <= 0:
        return False
    bits = 64 + more.bit_length()
    while True:
        low, high = exp_bounds(epsilon.fraction, bits)
        if more * high <= less << bits:
            return True
        if more * low > less << bits:
            return False
        bits *= 2


@dataclass(frozen=True)
class Repeated:
    """Several independent answers of one mechanism. Multisets hold numbers of outputs; weights are over total^k."""

    mechanism: FiniteMechanism
    multisets: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[int, ...], ...]

    @property
    def total(self) -> int:
        return int(self.mechanism.total ** len(self.multisets[0]))

    def keeps(self, epsilon: Epsilon, sensitivity: Fraction) -> bool:
        """As for one answer: k answers of an epsilon-DP mechanism need up to k epsilon."""
        steps = self.mechanism.steps(sensitivity)
        for column in zip(*self.weights, strict=True):
            for place, less in enumerate(column):
                near = column[max(0, place - steps) : place + steps + 1]
                if not at_most_ratio(max(near), less, epsilon):
                    return False
        return True

    def epsilon(self, sensitivity: Fraction) -> float:
        """The largest log ratio, for display."""
        steps, largest = self.mechanism.steps(sensitivity), 0.0
        for column in zip(*self.weights, strict=True):
            for place, less in enumerate(column):
                more = max(column[max(0, place - steps) : place + steps + 1])
                if more > less:
                    largest = max(largest, math.log(more) - math.log(less) if less else math.inf)
        return largest


def best_guesses(matrix: Floats, prior: Floats, losses: Floats) -> NDArray[np.intp]:
    """For each column (output) the guess of least expected loss, of equally good ones the lowest."""
    joint = prior[:, None] * matrix
    never = joint.sum(axis=0) <= 0
    joint[:, never] = matrix[:, never]
    joint = joint / np.maximum(joint.sum(axis=0), np.finfo(float).tiny)
    expected = joint.T @ losses
    best = expected.min(axis=1, keepdims=True)
    lowest: NDArray[np.intp] = np.argmax(expected <= best + 1e-12 * np.maximum(best, losses.max()), axis=1)
    return lowest


def _orders(multiset: tuple[int, ...]) -> int:
    """In how many orders these answers can come."""
    ways = math.factorial(len(multiset))
    for count in np.unique(multiset, return_counts=True)[1].tolist():
        ways //= math.factorial(count)
    return ways


def _rows(weights: Whole) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in weights.tolist())


def _largest_log_ratio(weights: Whole, largest: Whole) -> float:
    if bool(np.any((weights == 0) & (largest > 0))):
        return math.inf
    positive = weights > 0
    return float(np.max(np.log(largest[positive]) - np.log(weights[positive]), initial=0.0))
