"""Exact sums of products of rows' amounts, by cell, in 64-bit integers from the first step to the last."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import Cells, Rounded
from dpmine.engines.memory import sizes
from dpmine.engines.memory.cells import cell_ids
from dpmine.engines.memory.columns import Column
from dpmine.engines.memory.keys import column_of
from dpmine.engines.memory.rows import Codes, Integers, Rows


def sums(cells: Cells, amounts: tuple[Rounded, ...], powers: Sequence[tuple[int, ...]], rows: Rows) -> Integers:
    """[cells, powers]: over rows without a gap in any of the amounts the sums of their products."""
    ids = cell_ids(cells, rows)
    columns = [column_of(amount, rows) for amount in amounts]
    if ids.ids is None and len(amounts) == 1 and max(map(max, powers)) <= 1:
        number, total = _number_and_total(amounts[0], columns[0], rows)
        return np.array([[total if power else number for (power,) in powers]], dtype=np.int64)
    totals = np.zeros((ids.bins, len(powers)), dtype=np.int64)
    for chunk in rows.chunks():
        numbers: list[Integers] = [column.values(chunk).astype(np.int64) for column in columns]
        labels = None if ids.ids is None else ids.ids[chunk]
        known = np.ones(chunk.stop - chunk.start, dtype=bool)
        for each, amount in zip(numbers, amounts, strict=True):
            known &= each <= amount.steps
        if not known.all():
            numbers = [each[known] for each in numbers]
            labels = None if labels is None else labels[known]
        for place, power in enumerate(powers):
            totals[:, place] += _summed(_product(numbers, power), labels, ids.bins)
    return totals[: ids.cells]


def _number_and_total(amount: Rounded, column: Column, rows: Rows) -> tuple[int, int]:
    """How many rows have a number, and the sum of these: read once as they are, and gaps taken away again."""
    narrow = (amount.steps + 1) * sizes.CHUNK < 2**32  # then a chunk's sum fits 32 bits, which are added twice as fast
    exact: type[np.integer] = np.uint32 if narrow else np.int64
    total, gaps = 0, 0
    for chunk in rows.chunks():
        numbers = column.values(chunk)
        total += int(numbers.sum(dtype=exact))
        if amount.size > amount.steps + 1:
            gaps += int(np.count_nonzero(numbers > amount.steps))
    return rows.count - gaps, total - gaps * (amount.steps + 1)


def _product(numbers: Sequence[Integers], power: tuple[int, ...]) -> Integers:
    """For each row the product of its numbers to their powers."""
    found = np.ones(len(numbers[0]), dtype=np.int64)
    for each, times in zip(numbers, power, strict=True):
        for _ in range(times):
            found = found * each
    return found


def _summed(products: Integers, labels: Codes | None, bins: int) -> NDArray[np.int64]:
    """The sum for each label; without labels all rows have the first."""
    totals = np.zeros(bins, dtype=np.int64)
    if labels is None:
        totals[0] = products.sum()
    else:
        np.add.at(totals, labels.astype(np.intp), products)  # never a sum of weights, which would be of floats
    return totals
