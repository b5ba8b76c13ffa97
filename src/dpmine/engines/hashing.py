"""Keyed-hash parts: which part of a split each row belongs to, from the row's own values and a secret key.

h = sum of k_i * (v_i + 1) modulo the prime 2^31 - 1 over a row's values, of which a gap's is the largest, 2^30 + 1 at most,
and its number among identical rows, then three rounds of a quadratic in h. A list counts as the sum of its items, each plus
1 and put through the same rounds. Values and not codes: rows that share all codes may differ, and are not interchangeable.
Every product stays below 2^62, so any SQL engine computes the same integers. Privacy needs only that the part of a row is
a fixed function of the row: the odometer's maximum over parts holds for every key. The key and the quadratics make
parts balanced and splits with different salts independent.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from dpmine.engines.encoding import EncodedTable
from dpmine.facts.encoding import Lists, smallest_type

PRIME = 2**31 - 1

Integers = NDArray[np.int64]


def multipliers(split_key: bytes, salt: str, count: int) -> list[int]:
    """`count` numbers in 1 .. PRIME - 1, drawn by keyed BLAKE2b."""
    numbers = []
    for place in range(count):
        digest = hashlib.blake2b(f"{place}:{salt}".encode(), key=split_key, digest_size=16).digest()
        numbers.append(int.from_bytes(digest, "big") % (PRIME - 1) + 1)
    return numbers


def row_parts(table: EncodedTable, split_key: bytes, salt: str, weights: tuple[int, ...]) -> NDArray[np.unsignedinteger]:
    """The part of every row, in shares proportional to the weights."""
    drawn = multipliers(split_key, salt, 5 + len(table.values) + len(table.lists))
    hashed = (_content(table, drawn) + (table.occurrence % PRIME + 1) * drawn[3]) % PRIME
    return np.searchsorted(part_ends(weights), _stirred(hashed, drawn[:3]), side="right").astype(smallest_type(len(weights)))


def person_row_hashes(table: EncodedTable, names: Integers, split_key: bytes, salt: str) -> Integers:
    """A hash of every row's values and its person's name: identical rows of one person share it."""
    drawn = multipliers(split_key, salt, 5 + len(table.values) + len(table.lists))
    return _stirred((_content(table, drawn) + (names + 1) * drawn[3]) % PRIME, drawn[:3])


def _content(table: EncodedTable, drawn: list[int]) -> Integers:
    """The keyed sum over a row's values and lists, before the rounds: drawn holds 3 rounds, shift, start and the factors."""
    hashed = np.full(table.rows, drawn[4], dtype=np.int64)
    values = [column.astype(np.int64) for column in table.values.values()]
    sums = [_item_sums(column, table.rows, drawn[:3]) for column in table.lists.values()]
    for numbers, factor in zip([*values, *sums], drawn[5:], strict=True):
        hashed = (hashed + (numbers + 1) * factor) % PRIME
    return hashed


def part_ends(weights: tuple[int, ...]) -> list[int]:
    """Where each part but the last ends among the hashes."""
    ends: list[int] = (np.cumsum(np.array(weights, dtype=np.int64)) * PRIME // sum(weights)).tolist()
    return ends[:-1]


def item_numbers(items: int, rounds: list[int]) -> list[int]:
    """What each item of an alphabet adds to the number of a list."""
    numbers: list[int] = _stirred(np.arange(1, items + 1, dtype=np.int64), rounds).tolist()
    return numbers


def _stirred(numbers: Integers, rounds: list[int]) -> Integers:
    """A sum alone would put rows that lie on a line into one part."""
    for factor in rounds:
        numbers = (numbers * ((numbers + factor) % PRIME) + factor) % PRIME
    return numbers


def _item_sums(column: Lists, rows: int, rounds: list[int]) -> Integers:
    """A number for each row's list: the sum of its stirred items."""
    sums = np.zeros(rows, dtype=np.int64)
    np.add.at(sums, column.rows, _stirred(column.items.astype(np.int64) + 1, rounds))
    return sums % PRIME
