"""From values to integer codes, by the public rules of the schema: the same for private rows and for public ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmine.frames import Source
from dpmine.schema import Nominal, Numeric

Codes = NDArray[np.unsignedinteger]


def encode_single(source: Source, attribute: Nominal | Numeric) -> Codes:
    """The code of each row's value."""
    if isinstance(attribute, Nominal):
        return encode_nominal(source, attribute)
    return encode_numbers(source.numbers(attribute.name), attribute)


def encode_nominal(source: Source, attribute: Nominal) -> Codes:
    """Known categories by code; everything else, nulls too, becomes `other`."""
    codes = source.category_codes(attribute.name, attribute.categories)
    return np.where(codes < 0, attribute.other_code, codes).astype(smallest_type(attribute.size))


def encode_numbers(numbers: NDArray[np.float64], attribute: Numeric) -> Codes:
    """Floored to the grid and clamped to its ends; NaN becomes `missing`. Only comparisons, so row-local to the last bit."""
    codes = np.searchsorted(attribute.edges, numbers, side="right") - 1
    codes = np.clip(codes, 0, attribute.size - 1)
    return np.where(np.isnan(numbers), attribute.other_code, codes).astype(smallest_type(attribute.size))


def smallest_type(size: int) -> type[np.unsignedinteger]:
    """The smallest unsigned type that holds 0 .. size - 1."""
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32
