"""Statistics of a view that are told as one number: their exact values from counts, and how far one row moves them.

A view without rows has values too, or its answer would tell that it is empty: the mean is the middle of the range, the
largest value the lower end, the median the grid point at the middle.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from dpmine.errors import RequestError
from dpmine.schema import Numeric, Schema

STATISTICS = ("count", "sum", "mean", "max", "median")
BOUNDED = ("mean", "max", "median")


def told_attribute(statistic: str, name: str | None, schema: Schema) -> Numeric | None:
    """The attribute that a statistic is about; a count is about none."""
    if name is None:
        return None
    attribute = schema.single(name)
    if not isinstance(attribute, Numeric):
        raise RequestError(f"{name!r} is not numeric, so it has no {statistic}.")
    return attribute


def value_range(attribute: Numeric) -> tuple[Fraction, Fraction, Fraction]:
    """Lowest and highest value that rows can have, and the step of the grid between them."""
    low, step = Fraction(attribute.low), Fraction(attribute.step)
    return low, low + step * (attribute.size - 1), step


def sensitivity_of(statistic: str, attribute: Numeric | None) -> Fraction:
    """By how much adding or removing one row can move the exact value. docs/proofs.md#told-statistics."""
    if attribute is None:
        return Fraction(1)
    low, high, step = value_range(attribute)
    if statistic == "sum":
        return max(abs(low), abs(high)) or step
    width = high - low or step  # a grid of one point moves nothing; then there is more noise than needed
    return width / 2 if statistic == "mean" else width


def largest_value(attribute: Numeric | None) -> Fraction:
    """The largest absolute value of one row, where a row of a count is 1."""
    if attribute is None:
        return Fraction(1)
    low, high, _ = value_range(attribute)
    return max(abs(low), abs(high))


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
