"""Keyed-hash parts: which part of a split each row belongs to, from the row's own codes and a secret key.

h = sum of k_i * (c_i + 1) modulo the prime 2^31 - 1 over a row's codes and its number among identical rows, then three
rounds of a quadratic in h. Every product stays below 2^62, so any SQL engine computes the same integers. Privacy needs only
that the part of a row is a fixed function of the row: the odometer's maximum over parts holds for every key. The key
and the quadratics make parts balanced and splits with different salts independent.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from dpmine.engines.encoding import EncodedTable, smallest_type

PRIME = 2**31 - 1


def multipliers(split_key: bytes, salt: str, count: int) -> list[int]:
    """`count` numbers in 1 .. PRIME - 1, drawn by keyed BLAKE2b."""
    numbers = []
    for place in range(count):
        digest = hashlib.blake2b(f"{place}:{salt}".encode(), key=split_key, digest_size=16).digest()
        numbers.append(int.from_bytes(digest, "big") % (PRIME - 1) + 1)
    return numbers


def row_parts(table: EncodedTable, split_key: bytes, salt: str, weights: tuple[int, ...]) -> NDArray[np.unsignedinteger]:
    """The part of every row, in shares proportional to the weights."""
    names = list(table.columns)
    first, second, third, shift, *factors = multipliers(split_key, salt, len(names) + 5)
    hashed = np.full(table.rows, factors[-1], dtype=np.int64)
    for name, factor in zip(names, factors[:-1], strict=True):
        hashed = (hashed + (table.columns[name].astype(np.int64) + 1) * factor) % PRIME
    hashed = (hashed + (table.occurrence % PRIME + 1) * shift) % PRIME
    for factor in (first, second, third):  # a sum alone would put rows that lie on a line into one part
        hashed = (hashed * ((hashed + factor) % PRIME) + factor) % PRIME
    ends = np.cumsum(np.array(weights, dtype=np.int64)) * PRIME // sum(weights)
    return np.searchsorted(ends[:-1], hashed, side="right").astype(smallest_type(len(weights)))
