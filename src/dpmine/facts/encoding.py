"""Columns as whole numbers, each in the smallest unsigned type: the value of each row, and the code that it has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.unsignedinteger]
MOST_LOOKED_UP = 2**20  # values whose codes stand in a table; more are searched for


@dataclass(frozen=True, eq=False, repr=False)
class Lists:
    """A list column: entry i belongs to row `rows[i]` and holds item `items[i]`, in order."""

    rows: NDArray[np.uint32]
    items: Codes


def smallest_type(size: int) -> type[np.unsignedinteger]:
    """The smallest unsigned type that holds 0 .. size - 1."""
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32


def rounded_values(values: Codes, last: int, steps: int) -> NDArray[Any]:
    """Values 0 .. last rounded to the nearest of fewer, even steps 0 .. steps, halves up; a gap lies one step beyond them.

    Below 2^62 on the way: values and steps are at most 2^30.
    """
    if steps == last:
        return values
    rounded = (2 * steps * values.astype(np.int64) + last) // (2 * last)
    return np.where(values > last, steps + 1, rounded).astype(smallest_type(steps + 2))


def positions_of_values(values: Codes, last: int, steps: int, scale: int) -> NDArray[np.int64]:
    """Where rows lie for clustering: rounded values times a scale, and gaps in the middle."""
    rounded = rounded_values(values, last, steps).astype(np.int64)
    return np.where(rounded > steps, steps // 2, rounded) * scale


def codes_of_values(values: Codes, starts: Sequence[int], count: int) -> Codes:
    """The code of each value: code k holds the values from starts[k] on; a gap, which is `count`, has the last code."""
    if len(starts) == count:
        return values
    edges = np.array([*starts, count], dtype=np.int64)
    kind = smallest_type(len(edges))
    if count < MOST_LOOKED_UP:
        table: Codes = (np.searchsorted(edges, np.arange(count + 1), side="right") - 1).astype(kind)
        return np.take(table, values)
    codes: Codes = (np.searchsorted(edges.astype(values.dtype), values, side="right") - 1).astype(kind)
    return codes
