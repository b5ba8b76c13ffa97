"""What the kernel asks of an engine: a handful of exact aggregates over the cells of a view, never a question.

Whatever keeps rows (memory, files, a database) is an engine if it answers these, each with the same integers as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import Cells, NearestCentre, Rounded, RowKey, RowRules, RowStep

Integers = NDArray[np.int64]


class Engine(Protocol):
    """Exact integers about the rows of one table, nothing else."""

    def counts(self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> list[Integers]:
        """For each group of keys the exact row counts, of shape [cells, *key sizes]."""

    def occupied(self, cells: Cells, keys: tuple[RowKey, ...]) -> tuple[Integers, Integers]:
        """The numbers of the combinations (cell, key values) that hold rows, rising, and how many rows each holds.

        A combination's number has the cell as its first digit and the last key's value as its last.
        """

    def sums(self, cells: Cells, amounts: tuple[Rounded, ...], powers: Sequence[tuple[int, ...]]) -> Integers:
        """Over the rows of each cell without a gap in any of these attributes exact sums, of shape [cells, powers].

        Each is the sum of the product of the amounts, every one to its power; of no powers but 0 the number of these rows.
        No product of a row is larger than 2^30.
        """

    def clipped_sums(
        self, cells: Cells, nearest: NearestCentre, origins: Sequence[Sequence[int]], radii: Sequence[int]
    ) -> Integers:
        """For each centre the exact sums of its rows' clipped offsets, of shape [centres, attributes].

        A row's offset is its position less the origin of its nearest centre. If its absolute values add up to more than that
        centre's radius, it is shortened to that, each part rounded towards 0.
        """

    def cutting(self, steps: tuple[RowStep, ...], attributes: tuple[str, ...]) -> Cutting:
        """A tree of halves of a view, which will be cut at codes of these attributes."""

    def ready(self) -> None:
        """Raise, before anything is charged, if the table is no longer the one that was opened."""


class Cutting(Protocol):
    """A tree of halves inside an engine, which knows the exact number of rows in every node."""

    counts: Integers
    """The rows of the newest nodes, from left to right: at first of the root."""

    def cut(self, cuts: Sequence[tuple[str, int] | None]) -> None:
        """Cut each of the newest nodes, at an attribute's code or not at all; the halves are the newest from then on."""

    def keep(self, rules: RowRules | None) -> None:
        """The tree is complete, and its leaves may be asked about."""
