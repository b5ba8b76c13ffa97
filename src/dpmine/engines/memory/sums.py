"""Exact sums of products of rows' amounts, by cell, in 64-bit integers from the first step to the last."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import Cells, Rounded
from dpmine.engines.memory.cells import cell_ids
from dpmine.engines.memory.keys import column_of
from dpmine.engines.memory.rows import Integers, Rows


def sums(cells: Cells, amounts: tuple[Rounded, ...], powers: Sequence[tuple[int, ...]], rows: Rows) -> Integers:
    """[cells, powers]: over rows without a gap in any of the amounts the sums of their products."""
    ids = cell_ids(cells, rows)
    columns = [column_of(amount, rows) for amount in amounts]
    last = [amount.steps for amount in amounts]
    totals = np.zeros((ids.bins, len(powers)), dtype=np.int64)
    for chunk in rows.chunks():
        numbers = [column.values(chunk) for column in columns]
        known = np.ones(chunk.stop - chunk.start, dtype=bool)
        for each, largest, amount in zip(numbers, last, amounts, strict=True):
            if amount.size > largest + 1:  # gaps are possible
                known &= each <= largest
        whole = bool(known.all())
        wide = [each if len(powers) < 3 and len(amounts) == 1 else each.astype(np.int64) for each in numbers]
        wide = wide if whole else [each[known] for each in wide]
        labels = None if ids.ids is None else (ids.ids[chunk] if whole else ids.ids[chunk][known]).astype(np.intp)
        for place, power in enumerate(powers):
            totals[:, place] += _summed(_product(wide, power), int(known.sum()), labels, ids.bins)
    return totals[: ids.cells]


def _product(numbers: Sequence[NDArray[np.integer]], power: tuple[int, ...]) -> NDArray[np.integer] | None:
    """The product of the numbers to their powers; None where it is 1 for every row."""
    found: NDArray[np.integer] | None = None
    for each, times in zip(numbers, power, strict=True):
        for _ in range(times):
            found = each if found is None else found * each
    return found


def _summed(product: NDArray[np.integer] | None, rows: int, labels: NDArray[np.intp] | None, bins: int) -> Integers | int:
    """The sum for each label, or for all rows together."""
    if labels is None:
        return rows if product is None else int(product.sum(dtype=np.int64))
    if product is None:
        return np.bincount(labels, minlength=bins)
    totals = np.zeros(bins, dtype=np.int64)
    np.add.at(totals, labels, product.astype(np.int64))
    return totals
