"""One statistic of a view, through noise that was designed for it: a table of whole numbers, or noise on a lattice."""

import math
from fractions import Fraction

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.codes.designed_statistic import ResolvedDesignedStatistic, sensitivity_of
from dpmine.codes.domain import Domain, Values
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.samplers.finite_rows import drawn_output
from dpmine.kernel.samplers.laplace import Integers
from dpmine.noise.finite_tables import FiniteTable, LatticeNoise
from dpmine.noise.laws import BoxStaircase, DiscreteLaplace, FiniteLaw, laplace, staircase

DesignedLaw = FiniteLaw | DiscreteLaplace | BoxStaircase


class DesignedNoise(Mechanism[ResolvedDesignedStatistic, DesignedLaw], answers=ResolvedDesignedStatistic):
    """The number of the output of a table, or the answer in steps of a lattice.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  D of the exact value, from the schema and the statistic; on a lattice of step s, ceil(D / s) steps.
    Proof        docs/proofs.md#told-statistics.
    Assumes      that the noise keeps epsilon for D, which is checked here, exactly, before anything is charged.
    Not covered  what the prior behind the design says: it decides nothing here.
    Reference    Ghosh, Roughgarden, Sundararajan 2009; Geng, Viswanath 2014.
    """

    def laws(self, question: ResolvedDesignedStatistic, domain: Domain, epsilon: Epsilon) -> tuple[DesignedLaw, ...]:
        """Refuse noise that does not keep epsilon, exactly, for the sensitivity that follows from the schema."""
        moves = sensitivity_of(question.statistic, _numbers(question, domain))
        noise = question.noise
        if isinstance(noise, FiniteTable):
            if not noise.keeps(epsilon, moves):
                raise RequestError(f"This table does not keep epsilon {epsilon} where one row moves the answer by {moves}.")
            return (FiniteLaw(noise),)
        steps = max(math.ceil(moves / Fraction(noise.step)), 1)  # of the lattice, by which one row can move the answer
        if noise.kind == "staircase":
            return staircase((steps,), (noise.inner,), epsilon)
        return (laplace(steps, epsilon),)

    def release(self, asked: Asked[ResolvedDesignedStatistic, DesignedLaw]) -> list[Numbers | None]:
        question = asked.question
        exact_value = _exact_value(question, asked)
        (law,) = asked.laws[asked.units[0]]
        if isinstance(law, FiniteLaw):
            return [(drawn_output(asked.entropy, law.table, exact_value),)]
        assert isinstance(question.noise, LatticeNoise)
        exact_steps = lattice_point(exact_value, Fraction(question.noise.step))
        return [asked.noisy([exact_steps], [law])]


def _numbers(question: ResolvedDesignedStatistic, domain: Domain) -> Values | None:
    return None if question.amount is None else domain.numbers(question.amount.attribute)


def _exact_value(question: ResolvedDesignedStatistic, asked: Asked[ResolvedDesignedStatistic, DesignedLaw]) -> Fraction:
    """The exact statistic, in Python's integers and fractions."""
    amount, numbers = question.amount, _numbers(question, asked.domain)
    if amount is None or numbers is None:
        (exact_counts,) = asked.engine.counts(asked.cells, [()])
        return Fraction(int(exact_counts.sum()))
    if question.statistic in ("sum", "mean"):
        rows, steps = asked.engine.sums(asked.cells, (amount,), ((0,), (1,)))[0].tolist()
        if question.statistic == "sum":
            return Fraction(rows * numbers.low + steps * numbers.step)
        return numbers.low + numbers.step * (Fraction(steps, rows) if rows else Fraction(numbers.steps, 2))
    values, exact_counts = asked.engine.occupied(asked.cells, (amount,))
    known = values <= numbers.steps
    return numbers.low + numbers.step * exact_place(question.statistic, values[known], exact_counts[known], numbers.steps)


def exact_place(statistic: str, values: Integers, exact_counts: Integers, last: int) -> int:
    """The largest of the values that rows have, or the one in the middle; where there are none, the lowest or the middle."""
    if statistic == "max":
        return int(values[-1]) if len(values) else 0
    below = np.cumsum(exact_counts)
    if not len(values):
        return last // 2
    middle = (int(below[-1]) + 1) // 2  # of an even number of rows the lower one of the two in the middle
    return int(values[np.searchsorted(below, middle)])


def lattice_point(number: Fraction, step: Fraction) -> int:
    """The number in whole steps: floor(number / step + 1/2), so that halves always go up.

    Then two numbers at most D apart are at most ceil(D / step) steps apart. Halves rounded away from 0, or to even numbers,
    may be one step farther apart.
    """
    return math.floor(number / step + Fraction(1, 2))
