"""Occupied combinations: the numbers of those that hold rows, in an array where there are few and by sorting where many."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import Cells, Recode, RowKey
from dpmine.engines.memory import sizes
from dpmine.engines.memory.cells import cell_ids
from dpmine.engines.memory.columns import Column, JointColumn, WeightedColumn
from dpmine.engines.memory.keys import column_of, table_of
from dpmine.engines.memory.rows import Codes, Integers, Rows


def occupied(cells: Cells, keys: tuple[RowKey, ...], rows: Rows) -> tuple[Integers, Integers]:
    """The numbers of the combinations that hold rows, rising, and how many rows each holds.

    A combination's number has the cell as its first digit and the last key's value as its last.
    """
    ids = cell_ids(cells, rows)
    bins = math.prod(key.size for key in keys)
    places = bins * ids.bins
    number_type: Any = np.int32 if places < 2**31 else np.int64  # the same sums over half the bytes where that suffices
    digits = _digits(keys, number_type, rows)
    found: list[Integers] = []
    counts: list[Integers] = []
    dense = np.zeros(places if places <= sizes.DENSE else 0, dtype=np.int64)
    for chunk in rows.chunks(sizes.LONG_CHUNK if dense.size else sizes.CHUNK):
        numbers: NDArray[Any] = np.zeros(chunk.stop - chunk.start, dtype=number_type)
        if ids.ids is not None:
            numbers += ids.ids[chunk].astype(number_type) * number_type(bins)
        for digit in digits:
            numbers += digit.values(chunk)
        if dense.size:
            dense += np.bincount(numbers, minlength=dense.size)
        else:
            chunk_numbers, chunk_counts = np.unique(numbers, return_counts=True)
            found.append(chunk_numbers.astype(np.int64))
            counts.append(chunk_counts)
    if dense.size:
        numbers = np.flatnonzero(dense)
        totals = dense[numbers]
    else:
        numbers, totals = _added_up(found, counts)
    inside = slice(0, np.searchsorted(numbers, bins * ids.cells))
    return numbers[inside], totals[inside]


def _digits(keys: tuple[RowKey, ...], number_type: Any, rows: Rows) -> list[Column]:
    """What the keys add to the number of a row's combination: a value times the number of those of later keys.

    Attributes with few combinations of codes are looked up together.
    """
    digits: list[Column] = []
    together: list[tuple[Codes, NDArray[Any]]] = []
    for place, key in enumerate(keys):
        weight = math.prod(later.size for later in keys[place + 1 :])
        if not isinstance(key, Recode):
            digits.append(WeightedColumn(column_of(key, rows), number_type(weight)))
            continue
        table = table_of(key, rows.source_size(key)).astype(number_type) * number_type(weight)
        if together and table.size * math.prod(other.size for _, other in together) > sizes.FUSED:
            digits.append(JointColumn.of(together))
            together = []
        together.append((rows.codes(key.attribute), table))
    return [*digits, JointColumn.of(together)] if together else digits


def _added_up(numbers: list[Integers], counts: list[Integers]) -> tuple[Integers, Integers]:
    """Counts of the same number added up, for rising numbers."""
    if not numbers:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    together, place = np.unique(np.concatenate(numbers), return_inverse=True)
    totals = np.zeros(len(together), dtype=np.int64)
    np.add.at(totals, place, np.concatenate(counts))
    return together, totals
