"""Columns as integer codes, each in the smallest unsigned type."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True, eq=False, repr=False)
class Lists:
    """A list column: entry i belongs to row `rows[i]` and holds item `items[i]`, in order."""

    rows: NDArray[np.uint32]
    items: Codes


def smallest_type(size: int) -> type[np.unsignedinteger]:
    """The smallest unsigned type that holds 0 .. size - 1."""
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32
