"""Tests of rows: for which rows of a chunk a predicate on codes holds, found by the test's type."""

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import All, Any_, Holds, InCodes, InValues, Negation, RowTest
from dpmine.engines.encoding import EncodedTable

Truths = NDArray[np.bool_]


@singledispatch
def rows_for_which(test: RowTest, table: EncodedTable, rows: slice) -> Truths:
    """For each row of a chunk whether the test holds."""
    raise TypeError(f"the memory engine has no test {type(test).__name__}")


@rows_for_which.register
def _in_codes(test: InCodes, table: EncodedTable, rows: slice) -> Truths:
    member = np.zeros(table.schema.single(test.attribute).size, dtype=bool)
    for low, high in test.ranges:
        member[low:high] = True
    return member[table.codes[test.attribute][rows]]


@rows_for_which.register
def _in_values(test: InValues, table: EncodedTable, rows: slice) -> Truths:
    values = table.values[test.attribute][rows]
    largest = np.iinfo(values.dtype).max  # an end beyond it has no value behind it, and is not needed
    ends = np.array([end for pair in test.ranges for end in pair if end <= largest], dtype=values.dtype)
    within: Truths = np.searchsorted(ends, values, side="right") % 2 == 1
    return within


@rows_for_which.register
def _holds(test: Holds, table: EncodedTable, rows: slice) -> Truths:
    column = table.lists[test.attribute]
    entries = slice(*np.searchsorted(column.rows, (rows.start, rows.stop)))
    owners, items = column.rows[entries] - rows.start, column.items[entries]
    holds = np.ones(rows.stop - rows.start, dtype=bool)
    for item in test.items:
        has_item = np.zeros(len(holds), dtype=bool)
        has_item[owners[items == item]] = True
        holds &= has_item
    return holds


@rows_for_which.register
def _negation(test: Negation, table: EncodedTable, rows: slice) -> Truths:
    return ~rows_for_which(test.part, table, rows)


@rows_for_which.register
def _all(test: All, table: EncodedTable, rows: slice) -> Truths:
    holds = np.ones(rows.stop - rows.start, dtype=bool)
    for part in test.parts:
        holds &= rows_for_which(part, table, rows)
    return holds


@rows_for_which.register
def _any(test: Any_, table: EncodedTable, rows: slice) -> Truths:
    holds = np.zeros(rows.stop - rows.start, dtype=bool)
    for part in test.parts:
        holds |= rows_for_which(part, table, rows)
    return holds
