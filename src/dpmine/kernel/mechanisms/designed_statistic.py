"""One statistic of a view, through noise that was designed for it: a table of whole numbers, or noise on a lattice."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.codes.designed_statistic import ResolvedDesignedStatistic, sensitivity_of
from dpmine.codes.domain import Domain, Grid
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.samplers.finite_rows import drawn_output
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
        moves = sensitivity_of(question.statistic, _grid(question, domain))
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
        question, grid = asked.question, _grid(asked.question, asked.domain)
        (exact_counts,) = asked.engine.counts(asked.cells, [() if question.key is None else (question.key,)])
        numbers = exact_counts.reshape(-1).tolist()  # Python's integers: sums and quotients stay exact
        low, step = (Fraction(0), Fraction(1)) if grid is None else (grid.low, grid.step)
        exact_value = exact_statistic(question.statistic, numbers, low, step)
        (law,) = asked.laws[asked.units[0]]
        if isinstance(law, FiniteLaw):
            return [(drawn_output(asked.entropy, law.table, exact_value),)]
        assert isinstance(question.noise, LatticeNoise)
        exact_steps = lattice_point(exact_value, Fraction(question.noise.step))
        return [asked.noisy([exact_steps], [law])]


def _grid(question: ResolvedDesignedStatistic, domain: Domain) -> Grid | None:
    return None if question.key is None else domain.grid(question.key.attribute)


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
