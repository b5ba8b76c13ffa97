"""The memory engine: exact aggregates over an encoded table.

Row ids of cells are cached and refined as a rule tree grows; counts are memoised by value. All of it stays inside the
trust boundary.
"""

from collections.abc import Sequence

import numpy as np

from dpmine.codes.rows import Cells, NearestCentre, Rounded, RowKey, RowRules, RowStep
from dpmine.engines.cache import cache_name, cached_counts
from dpmine.engines.cutting import RowCutting
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.memory.cells import CellIds, cell_ids
from dpmine.engines.memory.keys import column_of
from dpmine.engines.memory.occupied import occupied
from dpmine.engines.memory.offsets import clipped_sums
from dpmine.engines.memory.rows import Codes, Integers, Rows
from dpmine.engines.memory.sums import sums
from dpmine.engines.memory.tallies import tallies_of


class MemoryEngine:
    """Exact aggregates over an encoded table."""

    def __init__(self, table: EncodedTable, split_key: bytes) -> None:
        self._rows = Rows(table, split_key)

    def counts(self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> list[Integers]:
        """For each group of keys the exact row counts, of shape [cells, *key sizes]."""
        return cached_counts(self._rows.cache, self._rows.split_key, cells, groups, self._count)

    def occupied(self, cells: Cells, keys: tuple[RowKey, ...]) -> tuple[Integers, Integers]:
        """The numbers of the combinations (cell, key values) that hold rows, rising, and how many rows each holds."""
        name = cache_name("occupied", cells, keys, self._rows.split_key)
        numbers, counts = self._rows.cache.remembered(name, lambda: occupied(cells, keys, self._rows))
        return numbers, counts

    def sums(self, cells: Cells, amounts: tuple[Rounded, ...], powers: Sequence[tuple[int, ...]]) -> Integers:
        """Over the rows of each cell without a gap in any of these exact sums of products, of shape [cells, powers]."""
        name = cache_name(f"sums {powers}", cells, amounts, self._rows.split_key)
        (found,) = self._rows.cache.remembered(name, lambda: (sums(cells, amounts, powers, self._rows),))
        return found

    def clipped_sums(
        self, cells: Cells, nearest: NearestCentre, origins: Sequence[Sequence[int]], radii: Sequence[int]
    ) -> Integers:
        """For each centre the exact sums of its rows' clipped offsets, of shape [centres, attributes]."""
        return clipped_sums(cells, nearest, origins, radii, self._rows)

    def cutting(self, steps: tuple[RowStep, ...], attributes: tuple[str, ...]) -> RowCutting:
        """A tree of halves of a view, which will be cut at codes of these attributes."""

        def keep(rules: RowRules | None, ids: Codes, leaves: int) -> None:
            self._rows.cache.put(self._rows.name("ids", Cells(steps, rules)), CellIds(ids, leaves), ids.nbytes)

        view = cell_ids(Cells(steps, None), self._rows).ids
        places = np.arange(self._rows.count) if view is None else np.flatnonzero(view == 0)
        return RowCutting({name: self._rows.codes(name) for name in attributes}, places, keep)

    def ready(self) -> None:
        """Rows in memory do not change."""

    def _count(self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> list[Integers]:
        """One pass over the rows for all groups. Groups that differ in their last key only are counted together."""
        ids = cell_ids(cells, self._rows)
        tallies = tallies_of(groups, ids.bins, self._rows.count)
        columns = {key: column_of(key, self._rows) for group in groups for key in group}
        for chunk in self._rows.chunks():
            of_chunk = None if ids.ids is None else ids.ids[chunk]
            values = {key: column.values(chunk) for key, column in columns.items()}
            for tally in tallies:
                tally.add(of_chunk, values, chunk.stop - chunk.start)
        counted = {group: counts for tally in tallies for group, counts in tally.by_group(ids.cells)}
        return [counted[group] for group in groups]
