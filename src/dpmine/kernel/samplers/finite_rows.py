"""Drawing from a finite mechanism: whole weights, one uniform whole number, no rounding anywhere."""

import bisect
import itertools
from fractions import Fraction

from dpmine.kernel.samplers.entropy import Entropy
from dpmine.noise.finite_tables import FiniteTable


def drawn_output(entropy: Entropy, mechanism: FiniteTable, exact_value: Fraction) -> int:
    """The number of the output that is released where the exact value is this: output r with chance weight / total.

    Claim        epsilon-DP for every epsilon with `mechanism.keeps(epsilon, sensitivity)`, for adding or removing one unit.
    Sensitivity  of the exact value, derived from the schema and the statistic; the door checks `keeps` before it charges.
    Proof        values within the sensitivity fall on inputs at most `steps(sensitivity)` apart, since the whole part of
                 x + 1/2 is monotone; rows that near differ by at most exp(epsilon). docs/proofs.md#told-statistics.
    Assumes      a public mechanism whose rows are whole weights that add up to one total.
    Not covered  time and memory access patterns of the search in a row.
    Reference    Ghosh, Roughgarden, Sundararajan 2009 (oblivious mechanisms as matrices).
    """
    row = mechanism.weights[mechanism.input_of(exact_value)]
    ends = list(itertools.accumulate(row))
    return bisect.bisect_right(ends, entropy.below(ends[-1]))
