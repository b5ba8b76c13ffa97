"""One statistic of a view, through noise that was designed for it: a table of whole numbers, or noise on a lattice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.facts.facts import Facts
from dpmine.facts.kinds.numeric import Numeric
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers, answers
from dpmine.kernel.samplers.finite_rows import drawn_output
from dpmine.kernel.samplers.laplace import add_noise, clipped
from dpmine.kernel.samplers.staircase import box_staircase
from dpmine.noise.finite_tables import FiniteTable, LatticeNoise
from dpmine.noise.laws import BoxStaircase, DiscreteLaplace, FiniteLaw, laplace, staircase
from dpmine.questions.designed_statistic import ResolvedDesignedStatistic, attribute_of, sensitivity_of, value_range

DesignedLaw = FiniteLaw | DiscreteLaplace | BoxStaircase


@answers(ResolvedDesignedStatistic)
class DesignedNoise(Mechanism[ResolvedDesignedStatistic, DesignedLaw]):
    """The number of the output of a table, or the answer in steps of a lattice.

    Claim        epsilon-DP for adding or removing one row.
    Sensitivity  D of the exact value, from the schema and the statistic; on a lattice of step s, ceil(D / s) steps.
    Proof        docs/proofs.md#told-statistics.
    Assumes      that the noise keeps epsilon for D, which is checked here, exactly, before anything is charged.
    Not covered  what the prior behind the design says: it decides nothing here.
    Reference    Ghosh, Roughgarden, Sundararajan 2009; Geng, Viswanath 2014.
    """

    def laws(self, question: ResolvedDesignedStatistic, facts: Facts, epsilon: Epsilon) -> tuple[DesignedLaw, ...]:
        """Refuse noise that does not keep epsilon, exactly, for the sensitivity that follows from the schema."""
        moves = sensitivity_of(question.statistic, _attribute(question, facts))
        noise = question.noise
        if isinstance(noise, FiniteTable):
            if not noise.keeps(epsilon, moves):
                raise RequestError(
                    f"This mechanism does not keep epsilon {epsilon} where one row can move the {question.statistic} by "
                    f"{moves}: it needs {noise.epsilon(moves):.9g}. Design it for that sensitivity."
                )
            return (FiniteLaw(noise),)
        steps = _steps(moves, noise)
        if not 0 <= noise.inner < steps:
            raise RequestError(f"The inner width of this staircase is a whole number below {steps}, in steps.")
        if noise.kind == "staircase":
            return staircase((steps,), (noise.inner,), epsilon)
        return (laplace(steps, epsilon),)

    def release(self, asked: Asked[ResolvedDesignedStatistic, DesignedLaw]) -> list[Numbers | None]:
        question, attribute = asked.question, _attribute(asked.question, asked.facts)
        (exact_counts,) = asked.engine.counts(asked.cells, [() if question.key is None else (question.key,)])
        numbers = exact_counts.reshape(-1).tolist()  # Python's integers: sums and quotients stay exact
        low, _, step = (Fraction(0), Fraction(0), Fraction(1)) if attribute is None else value_range(attribute)
        exact_value = exact_statistic(question.statistic, numbers, low, step)
        (law,) = asked.laws[asked.units[0]]
        if isinstance(law, FiniteLaw):
            return [(drawn_output(asked.entropy, law.table, exact_value),)]
        assert isinstance(question.noise, LatticeNoise)
        exact_steps = lattice_point(exact_value, Fraction(question.noise.step))
        if isinstance(law, BoxStaircase):
            ((noise,),) = box_staircase(asked.entropy, law.lengths, law.inner, epsilon=law.epsilon.fraction)
            return [(clipped(exact_steps + noise),)]
        return [(int(add_noise(np.array([exact_steps], dtype=np.int64), asked.noise, law.fraction)[0]),)]


def _attribute(question: ResolvedDesignedStatistic, facts: Facts) -> Numeric | None:
    return attribute_of(question.statistic, None if question.key is None else question.key.attribute, facts)


def _steps(moves: Fraction, noise: LatticeNoise) -> int:
    """By how many steps of the lattice one row can move the answer."""
    return max(math.ceil(moves / Fraction(noise.step)), 1)


def exact_statistic(statistic: str, exact_counts: Sequence[int], low: Fraction, step: Fraction) -> Fraction:
    """The exact value, from how many rows have each grid point: low, low + step, and so on."""
    rows = sum(exact_counts)
    if statistic == "count":
        return Fraction(rows)
    weighted = sum(code * count for code, count in enumerate(exact_counts))
    if statistic == "sum":
        return rows * low + weighted * step
    last = len(exact_counts) - 1
    if statistic == "mean":
        return low + step * (Fraction(weighted, rows) if rows else Fraction(last, 2))
    if statistic == "max":
        return low + step * max((code for code, count in enumerate(exact_counts) if count), default=0)
    if not rows:
        return low + step * (last // 2)
    middle = (rows + 1) // 2  # of an even number of rows the lower one of the two in the middle
    return low + step * next(code for code, below in enumerate(itertools.accumulate(exact_counts)) if below >= middle)


def lattice_point(number: Fraction, step: Fraction) -> int:
    """The number in whole steps: floor(number / step + 1/2), so that halves always go up.

    Then two numbers at most D apart are at most ceil(D / step) steps apart. Halves rounded away from 0, or to even numbers,
    may be one step farther apart.
    """
    return math.floor(number / step + Fraction(1, 2))
