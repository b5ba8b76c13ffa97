"""The cell of every row, refined from the remembered cells of the rule tree without its deepest level."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import Branch, Cells, Enter, Keep, Recode, RowKey, RowRules, RowStep
from dpmine.engines.memory.columns import Column, TruthColumn
from dpmine.engines.memory.keys import column_of, source_of, table_of
from dpmine.engines.memory.rows import Codes, Rows
from dpmine.facts.encoding import smallest_type


@dataclass(frozen=True, eq=False, repr=False)
class CellIds:
    """The cell of every row; rows outside all cells have the id `cells`. None: every row is in cell 0."""

    ids: Codes | None
    cells: int

    @property
    def bins(self) -> int:
        return self.cells if self.ids is None else self.cells + 1

    def of(self, rows: slice) -> NDArray[np.intp]:
        """Those of a chunk."""
        return np.zeros(rows.stop - rows.start, dtype=np.intp) if self.ids is None else self.ids[rows].astype(np.intp)


def cell_ids(cells: Cells, rows: Rows) -> CellIds:
    """The cell of every row, remembered."""
    name = rows.name("ids", cells)
    cached: CellIds | None = rows.cache.get(name)
    if cached is not None:
        return cached
    if cells.rules is not None:
        coarser = _without_deepest_level(cells.rules)
        ids = _refined(cell_ids(Cells(cells.steps, coarser), rows), coarser, cells.rules, rows)
    elif cells.steps:
        ids = _narrowed(cell_ids(Cells(cells.steps[:-1], None), rows), cells.steps[-1], rows)
    else:
        return CellIds(None, 1)
    rows.cache.put(name, ids, ids.ids.nbytes if ids.ids is not None else 0)
    return ids


def _narrowed(before: CellIds, step: RowStep, rows: Rows) -> CellIds:
    """Keep the rows of cell 0 that a step keeps; all others go outside."""
    column, wanted = _kept_by(step, rows)
    ids: Codes = np.empty(rows.count, dtype=np.uint8)
    for chunk in rows.chunks():
        outside = column.values(chunk) != wanted
        ids[chunk] = outside if before.ids is None else outside | (before.ids[chunk] != 0)
    return CellIds(ids, 1)


@singledispatch
def _kept_by(step: RowStep, rows: Rows) -> tuple[Column, int]:
    """A column, and its value in the rows that a step keeps."""
    raise TypeError(f"the memory engine has no step {type(step).__name__}")


@_kept_by.register
def _by_test(step: Keep, rows: Rows) -> tuple[Column, int]:
    return TruthColumn(step.test, rows.table), 1


@_kept_by.register
def _by_key(step: Enter, rows: Rows) -> tuple[Column, int]:
    return column_of(step.key, rows), step.index


def _refined(before: CellIds, coarser: RowRules | None, finer: RowRules, rows: Rows) -> CellIds:
    """Send every row from its old cell to its new one.

    new cell = first new cell of the old one + label of the old cell's key, looked up by (key, code of its attribute).
    """
    splits = list(_leaf_splits(coarser, finer))
    keys = list({key: None for key in splits if key is not None})
    sources = list({source_of(key): None for key in keys})
    columns = [column_of(source, rows) for source in sources]
    labels = _labels(keys, max(rows.source_size(source) for source in sources), rows)
    place_of_key = {key: place for place, key in enumerate(keys)}
    place_of_source = {source: place for place, source in enumerate(sources)}
    key_of_cell = np.full(len(splits) + 1, len(keys), dtype=np.intp)
    source_of_cell = np.zeros(len(splits) + 1, dtype=np.intp)
    sizes = np.ones(len(splits), dtype=np.int64)
    for old, split in enumerate(splits):
        if split is not None:
            key_of_cell[old] = place_of_key[split]
            source_of_cell[old] = place_of_source[source_of(split)]
            sizes[old] = split.size
    first = np.concatenate(([0], np.cumsum(sizes)))  # its last entry is the id of rows outside all cells
    cells = int(first[-1])
    label_table, wide = labels.ravel(), labels.shape[1]
    ids: Codes = np.empty(rows.count, dtype=smallest_type(cells + 1))
    for chunk in rows.chunks():
        old_ids = before.of(chunk)
        index = key_of_cell[old_ids]
        index *= wide
        index += _codes_by_cell(old_ids, source_of_cell, columns, chunk)
        ids[chunk] = label_table[index] + first[old_ids]
    return CellIds(ids, cells)


def _labels(keys: Sequence[RowKey], wide: int, rows: Rows) -> NDArray[np.int64]:
    """For each key the label of everything that a row is looked up by; the last row is for cells that are not split."""
    labels = np.zeros((len(keys) + 1, wide), dtype=np.int64)
    for place, key in enumerate(keys):
        size = rows.source_size(key)
        labels[place, :size] = table_of(key, size) if isinstance(key, Recode) else np.arange(size)
    return labels


def _codes_by_cell(old_ids: NDArray[np.intp], which: NDArray[np.intp], columns: Sequence[Column], rows: slice) -> Codes:
    """For each row of a chunk the code of the key that its own old cell is split by."""
    if len(columns) == 1:
        return columns[0].values(rows)
    stacked = np.stack([column.values(rows) for column in columns])
    place = which[old_ids]
    place *= stacked.shape[1]
    place += np.arange(stacked.shape[1])
    return stacked.ravel()[place]


def _without_deepest_level(rules: RowRules | None) -> RowRules | None:
    """The rule tree with the branches of its deepest level turned into leaves."""
    return _cut(rules, _depth(rules) - 1)


def _depth(rules: RowRules | None) -> int:
    return 1 + max(map(_depth, rules.children)) if isinstance(rules, Branch) else 0


def _cut(rules: RowRules | None, depth: int) -> RowRules | None:
    if depth <= 0 or not isinstance(rules, Branch):
        return None
    return Branch(rules.key, tuple(_cut(child, depth - 1) for child in rules.children))


def _leaf_splits(coarser: RowRules | None, finer: RowRules | None) -> Iterator[RowKey | None]:
    """For each leaf of the coarser tree the key by which the finer one splits it, or None."""
    if isinstance(coarser, Branch):
        assert isinstance(finer, Branch)
        for child, refined in zip(coarser.children, finer.children, strict=True):
            yield from _leaf_splits(child, refined)
    else:
        yield finer.key if isinstance(finer, Branch) else None
