"""Columns of numbers that are read chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import Cyclic, RowTest
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.memory.row_tests import rows_for_which
from dpmine.engines.memory.rows import Codes
from dpmine.facts.encoding import positions_of_values, rounded_values, smallest_type


class Column(Protocol):
    """One number for each row."""

    def values(self, rows: slice) -> NDArray[Any]: ...


@dataclass(frozen=True, eq=False, repr=False)
class CodeColumn:
    """Codes as they are, or what a table says of each."""

    codes: Codes
    table: NDArray[Any] | None

    def values(self, rows: slice) -> NDArray[Any]:
        codes = self.codes[rows]
        return codes if self.table is None else np.take(self.table, codes)


@dataclass(frozen=True, eq=False, repr=False)
class RunsColumn:
    """What the run of each row's value says."""

    numbers: Codes
    firsts: NDArray[Any]
    labels: NDArray[Any]

    def values(self, rows: slice) -> NDArray[Any]:
        return np.take(self.labels, np.searchsorted(self.firsts, self.numbers[rows], side="right") - 1)


@dataclass(frozen=True, eq=False, repr=False)
class RoundedColumn:
    """Each row's number, rounded to fewer steps than its values have; a gap is one step beyond the last."""

    numbers: Codes
    last: int
    steps: int

    def values(self, rows: slice) -> NDArray[Any]:
        return rounded_values(self.numbers[rows], self.last, self.steps)


@dataclass(frozen=True, eq=False, repr=False)
class CyclicColumn:
    """The stretch that each row's value lies in, counted round and round; a gap is one beyond the last."""

    numbers: Codes
    last: int
    key: Cyclic

    def values(self, rows: slice) -> NDArray[Any]:
        numbers = self.numbers[rows].astype(np.int64)
        stretches = (numbers + self.key.offset) // self.key.unit % self.key.period
        return np.where(numbers > self.last, self.key.period, stretches).astype(smallest_type(self.key.size))


@dataclass(frozen=True, eq=False, repr=False)
class PositionColumn:
    """Where each row lies: its rounded number times a scale, and a gap in the middle."""

    rounded: RoundedColumn
    scale: int

    def values(self, rows: slice) -> NDArray[np.int64]:
        return positions_of_values(self.rounded.numbers[rows], self.rounded.last, self.rounded.steps, self.scale)


@dataclass(frozen=True, eq=False, repr=False)
class JointColumn:
    """The sum of what several columns' codes stand for, looked up by the number of their combination."""

    columns: list[Codes]
    sizes: list[int]
    table: NDArray[Any]

    @classmethod
    def of(cls, parts: Sequence[tuple[Codes, NDArray[Any]]]) -> JointColumn:
        table = parts[0][1]
        for _, further in parts[1:]:
            table = np.add.outer(table, further).ravel()
        return cls([codes for codes, _ in parts], [own.size for _, own in parts], table)

    def values(self, rows: slice) -> NDArray[Any]:
        numbers: NDArray[Any] = self.columns[0][rows]
        if len(self.columns) > 1:
            numbers = numbers.astype(np.uint16)  # FUSED combinations fit
        for codes, size in zip(self.columns[1:], self.sizes[1:], strict=True):
            numbers *= np.uint16(size)
            numbers += codes[rows]
        return np.take(self.table, numbers)


@dataclass(frozen=True, eq=False, repr=False)
class WeightedColumn:
    """The values of a column times a weight, in the weight's type."""

    column: Column
    weight: Any

    def values(self, rows: slice) -> NDArray[Any]:
        weighted: NDArray[Any] = self.column.values(rows).astype(self.weight.dtype) * self.weight
        return weighted


@dataclass(frozen=True, eq=False, repr=False)
class TruthColumn:
    """A test as a column of 0 and 1, evaluated only for the chunk at hand."""

    test: RowTest
    table: EncodedTable

    def values(self, rows: slice) -> Codes:
        return rows_for_which(self.test, self.table, rows).view(np.uint8)
