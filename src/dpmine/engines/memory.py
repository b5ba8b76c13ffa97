"""The memory engine: exact counts over a dictionary-encoded table, by chunked bincount.

The embedded default, and the executable specification that every other engine is held to. Row ids of cells are cached
and refined as a rule tree grows; counts are memoised by value. All of it stays inside the trust boundary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmine.codes import smallest_type
from dpmine.engines.cache import cache_name, cached_counts
from dpmine.engines.cutting import RowCutting
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.hashing import row_parts
from dpmine.plans import (
    All,
    Any_,
    BandedDistance,
    BandedSum,
    Branch,
    Cells,
    ClippedSums,
    Enter,
    HashedPart,
    Holds,
    InCodes,
    Keep,
    LargestSum,
    LeafScores,
    NearestCentre,
    Negation,
    Recode,
    RowKey,
    RowRules,
    RowScores,
    RowStep,
    RowTest,
    ScoreBranch,
    Tested,
)

CHUNK = 65_536
NEAREST_AT_ONCE = 8_192  # rows whose distances to all centres are held at a time
FUSED = 2**15  # combinations of keys that are counted at once instead of key by key
LONG_CHUNK = 4 * CHUNK  # where an array as long as all combinations is added for each chunk
DENSE = 2**20  # combinations that are counted in an array; more are sorted

Integers = NDArray[np.int64]
Ids = NDArray[np.unsignedinteger]


@dataclass(frozen=True, eq=False, repr=False)
class CellIds:
    """The cell of every row; rows outside all cells have the id `cells`. None: every row is in cell 0."""

    ids: Ids | None
    cells: int

    @property
    def bins(self) -> int:
        return self.cells if self.ids is None else self.cells + 1


class MemoryEngine:
    """Exact counts over an encoded table."""

    def __init__(self, table: EncodedTable, split_key: bytes) -> None:
        self._table = table
        self._split_key = split_key
        self._cache = table.cache

    def counts(self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> list[Integers]:
        """For each group of keys the exact row counts, of shape [cells, *key sizes]."""
        return cached_counts(self._cache, self._split_key, cells, groups, self._count)

    def occupied(self, cells: Cells, keys: tuple[RowKey, ...]) -> tuple[Integers, Integers]:
        """The numbers of the combinations (cell, key values) that hold rows, rising, and how many rows each holds.

        A combination's number has the cell as its first digit and the last key's value as its last.
        """
        cell_ids = self.cell_ids(cells)
        bins = math.prod(key.size for key in keys)
        places = bins * cell_ids.bins
        number_type: Any = np.int32 if places < 2**31 else np.int64  # the same sums over half the bytes where that suffices
        digits = self._digits(keys, number_type)
        found: list[Integers] = []
        counts: list[Integers] = []
        dense = np.zeros(places if places <= DENSE else 0, dtype=np.int64)
        for rows in self._chunks(LONG_CHUNK if dense.size else CHUNK):
            numbers: NDArray[Any] = np.zeros(rows.stop - rows.start, dtype=number_type)
            if cell_ids.ids is not None:
                numbers += cell_ids.ids[rows].astype(number_type) * number_type(bins)
            for digit in digits:
                numbers += digit.values(rows)
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
        inside = slice(0, np.searchsorted(numbers, bins * cell_ids.cells))
        return numbers[inside], totals[inside]

    def _digits(self, keys: tuple[RowKey, ...], number_type: Any) -> list[AnyColumn]:
        """What the keys add to the number of a row's combination: a value times the number of those of later keys.

        Attributes with few combinations of codes are looked up together.
        """
        digits: list[AnyColumn] = []
        together: list[tuple[NDArray[np.unsignedinteger], NDArray[Any]]] = []
        for place, key in enumerate(keys):
            weight = math.prod(later.size for later in keys[place + 1 :])
            if not isinstance(key, Recode):
                digits.append(_WeightedColumn(self._column(key), number_type(weight)))
                continue
            table = _table_of(key, self._source_size(key)).astype(number_type) * number_type(weight)
            if together and table.size * math.prod(other.size for _, other in together) > FUSED:
                digits.append(_JointColumn.of(together))
                together = []
            together.append((self._table.columns[key.attribute], table))
        return [*digits, _JointColumn.of(together)] if together else digits

    def clipped_sums(self, cells: Cells, question: ClippedSums) -> Integers:
        """For each centre the exact sums of its rows' clipped offsets, of shape [centres, attributes]."""
        nearest = question.nearest
        cell_ids = self.cell_ids(cells)
        label_column = self._column(nearest)
        columns = [self._table.columns[name] for name in nearest.attributes]
        origins = np.array(question.origins, dtype=np.int64)
        radii = np.array(question.radii, dtype=np.int64)
        totals = np.zeros(origins.shape, dtype=np.int64)
        for rows in self._chunks():
            inside = self._chunk_ids(cell_ids, rows) == 0
            labels = label_column.values(rows)[inside].astype(np.intp)
            positions = [codes[rows][inside] * np.int64(scale) for codes, scale in zip(columns, nearest.scales, strict=True)]
            offsets = _shortened(np.stack(positions) - origins[labels].T, radii[labels])
            for place, along in enumerate(offsets):
                # Sums of 65,536 numbers below 2^24 are exact in doubles.
                totals[:, place] += np.bincount(labels, weights=along, minlength=len(radii)).astype(np.int64)
        return totals

    def cutting(self, steps: tuple[RowStep, ...], attributes: tuple[str, ...]) -> RowCutting:
        """A tree of halves of a view, which will be cut at codes of these attributes."""

        def keep(rules: RowRules | None, ids: Ids, leaves: int) -> None:
            self._cache.put(cache_name("ids", Cells(steps, rules), (), self._split_key), CellIds(ids, leaves), ids.nbytes)

        view = self.cell_ids(Cells(steps, None)).ids
        rows = np.arange(self._table.rows) if view is None else np.flatnonzero(view == 0)
        return RowCutting({name: self._table.columns[name] for name in attributes}, rows, keep)

    def ready(self) -> None:
        """Rows in memory do not change."""

    # -- counting ---------------------------------------------------------------------------------------------------

    def _count(self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> list[Integers]:
        """One pass over the rows for all groups. Groups that differ in their last key only are counted together."""
        cell_ids = self.cell_ids(cells)
        tallies = _tallies(groups, cell_ids.bins, self._table.rows)
        columns = {key: self._column(key) for group in groups for key in group}
        for rows in self._chunks():
            ids = None if cell_ids.ids is None else cell_ids.ids[rows]
            values = {key: column.values(rows) for key, column in columns.items()}
            for tally in tallies:
                tally.add(ids, values, rows.stop - rows.start)
        counted = {group: counts for tally in tallies for group, counts in tally.by_group(cell_ids.cells)}
        return [counted[group] for group in groups]

    def _chunks(self, length: int | None = None) -> Iterator[slice]:
        length = length or CHUNK  # looked up now, so that tests can make it small
        for start in range(0, self._table.rows, length):
            yield slice(start, min(start + length, self._table.rows))

    def _chunk_ids(self, cell_ids: CellIds, rows: slice) -> NDArray[np.intp]:
        if cell_ids.ids is None:
            return np.zeros(rows.stop - rows.start, dtype=np.intp)
        return cell_ids.ids[rows].astype(np.intp)

    def _column(self, key: RowKey) -> AnyColumn:
        """Where a key's values come from, chunk by chunk."""
        if isinstance(key, Recode):
            codes = self._table.columns[key.attribute]
            return _Column(codes, _table_of(key, self._source_size(key)) if key.runs else None)
        if isinstance(key, Tested):
            return _TestColumn(self._test, key.test)
        if isinstance(key, (LargestSum, BandedSum)):
            return _ModelColumn(key, {split: self._column(split) for split in _splits_of(key.trees)})
        if isinstance(key, NearestCentre):
            return _NearestColumn(key, [self._table.columns[name] for name in key.attributes])
        if isinstance(key, BandedDistance):
            return _DistanceColumn(key, [self._table.columns[name] for name in key.nearest.attributes])
        assert isinstance(key, HashedPart)
        return _Column(self._parts(key), None)

    # -- cells ------------------------------------------------------------------------------------------------------

    def cell_ids(self, cells: Cells) -> CellIds:
        """The cell of every row, refined from the cached ids of the rule tree without its deepest level."""
        name = cache_name("ids", cells, (), self._split_key)
        cached: CellIds | None = self._cache.get(name)
        if cached is not None:
            return cached
        coarser = _without_deepest_level(cells.rules)
        if cells.rules is not None:
            ids = self._refine(self.cell_ids(Cells(cells.steps, coarser)), coarser, cells.rules)
        elif cells.steps:
            ids = self._narrow(self.cell_ids(Cells(cells.steps[:-1], None)), cells.steps[-1])
        else:
            return CellIds(None, 1)
        self._cache.put(name, ids, ids.ids.nbytes if ids.ids is not None else 0)
        return ids

    def _narrow(self, before: CellIds, step: object) -> CellIds:
        """Keep the rows of cell 0 that a step keeps; all others go outside."""
        column = _TestColumn(self._test, step.test) if isinstance(step, Keep) else None
        wanted = 1
        if isinstance(step, Enter):
            column, wanted = self._column(step.key), step.index  # type: ignore[assignment]
        assert column is not None
        ids: Ids = np.empty(self._table.rows, dtype=np.uint8)
        for rows in self._chunks():
            outside = column.values(rows) != wanted
            ids[rows] = outside if before.ids is None else outside | (before.ids[rows] != 0)
        return CellIds(ids, 1)

    def _refine(self, before: CellIds, coarser: RowRules | None, finer: RowRules) -> CellIds:
        """Send every row from its old cell to its new one.

        new cell = first new cell of the old one + label of the old cell's key, looked up by (key, code of its attribute).
        """
        splits = list(_leaf_splits(coarser, finer))
        keys = list({key: None for key in splits if key is not None})
        sources = list({_source_of(key): None for key in keys})
        columns = [self._column(source) for source in sources]
        wide = max(self._source_size(source) for source in sources)
        labels = np.zeros((len(keys) + 1, wide), dtype=np.int64)  # the last row is for cells that are not split
        for place, key in enumerate(keys):
            size = self._source_size(key)
            labels[place, :size] = _table_of(key, size) if isinstance(key, Recode) else np.arange(size)
        place_of_key = {key: place for place, key in enumerate(keys)}
        place_of_source = {source: place for place, source in enumerate(sources)}
        key_of_cell = np.full(len(splits) + 1, len(keys), dtype=np.intp)
        source_of_cell = np.zeros(len(splits) + 1, dtype=np.intp)
        sizes = np.ones(len(splits), dtype=np.int64)
        for old, split in enumerate(splits):
            if split is not None:
                key_of_cell[old] = place_of_key[split]
                source_of_cell[old] = place_of_source[_source_of(split)]
                sizes[old] = split.size
        first = np.concatenate(([0], np.cumsum(sizes)))  # its last entry is the id of rows outside all cells
        cells = int(first[-1])
        label_table = labels.ravel()
        ids: Ids = np.empty(self._table.rows, dtype=smallest_type(cells + 1))
        for rows in self._chunks():
            old_ids = self._chunk_ids(before, rows)
            index = key_of_cell[old_ids]
            index *= wide
            index += _codes_by_cell(old_ids, source_of_cell, columns, rows)
            ids[rows] = label_table[index] + first[old_ids]
        return CellIds(ids, cells)

    def _source_size(self, source: RowKey) -> int:
        return self._table.schema.single(source.attribute).size if isinstance(source, Recode) else source.size

    # -- rows -------------------------------------------------------------------------------------------------------

    def _test(self, test: RowTest, rows: slice) -> NDArray[np.bool_]:
        """The rows of a chunk for which a test holds."""
        if isinstance(test, InCodes):
            member = np.zeros(self._table.schema.single(test.attribute).size, dtype=bool)
            for low, high in test.ranges:
                member[low:high] = True
            return member[self._table.columns[test.attribute][rows]]
        if isinstance(test, Holds):
            return self._holds(test, rows)
        if isinstance(test, Negation):
            return ~self._test(test.part, rows)
        assert isinstance(test, (All, Any_))
        combined = np.full(rows.stop - rows.start, isinstance(test, All), dtype=bool)
        for part in test.parts:
            if isinstance(test, All):
                combined &= self._test(part, rows)
            else:
                combined |= self._test(part, rows)
        return combined

    def _holds(self, test: Holds, rows: slice) -> NDArray[np.bool_]:
        column = self._table.lists[test.attribute]
        entries = slice(*np.searchsorted(column.rows, (rows.start, rows.stop)))
        owners, items = column.rows[entries] - rows.start, column.items[entries]
        holds = np.ones(rows.stop - rows.start, dtype=bool)
        for item in test.items:
            has_item = np.zeros(len(holds), dtype=bool)
            has_item[owners[items == item]] = True
            holds &= has_item
        return holds

    def _parts(self, key: HashedPart) -> NDArray[np.unsignedinteger]:
        name = cache_name("parts", key, (), self._split_key)
        parts: NDArray[np.unsignedinteger] | None = self._cache.get(name)
        if parts is None:
            parts = row_parts(self._table, self._split_key, key.salt, key.weights)
            self._cache.put(name, parts, parts.nbytes)
        return parts


class AnyColumn(Protocol):
    """The values of a key, chunk by chunk."""

    def values(self, rows: slice) -> NDArray[Any]: ...


@dataclass(frozen=True, eq=False, repr=False)
class _Column:
    codes: NDArray[np.unsignedinteger]
    table: NDArray[Any] | None

    def values(self, rows: slice) -> NDArray[Any]:
        codes = self.codes[rows]
        return codes if self.table is None else np.take(self.table, codes)


@dataclass(frozen=True, eq=False, repr=False)
class _JointColumn:
    """The sum of what several columns' codes stand for, looked up by the number of their combination."""

    columns: list[NDArray[np.unsignedinteger]]
    sizes: list[int]
    table: NDArray[Any]

    @classmethod
    def of(cls, parts: Sequence[tuple[NDArray[np.unsignedinteger], NDArray[Any]]]) -> _JointColumn:
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
class _WeightedColumn:
    """The values of a key times a weight, in the weight's type."""

    column: AnyColumn
    weight: Any

    def values(self, rows: slice) -> NDArray[Any]:
        weighted: NDArray[Any] = self.column.values(rows).astype(self.weight.dtype) * self.weight
        return weighted


@dataclass(frozen=True, eq=False, repr=False)
class _TestColumn:
    """A test as a column of 0 and 1, evaluated only for the chunk at hand."""

    evaluate: Callable[[RowTest, slice], NDArray[np.bool_]]
    test: RowTest

    def values(self, rows: slice) -> NDArray[np.unsignedinteger]:
        return self.evaluate(self.test, rows).view(np.uint8)


@dataclass(frozen=True, eq=False, repr=False)
class _ModelColumn:
    """A model's labels, evaluated only for the chunk at hand."""

    key: LargestSum | BandedSum
    columns: dict[Recode, Any]

    def values(self, rows: slice) -> NDArray[np.unsignedinteger]:
        count = rows.stop - rows.start
        labels = {split: column.values(rows) for split, column in self.columns.items()}
        scores = self.key.size if isinstance(self.key, LargestSum) else 1
        sums = np.zeros((count, scores), dtype=np.int64)
        for tree in self.key.trees:
            _add_scores(tree, np.arange(count), labels, sums)
        if isinstance(self.key, LargestSum):
            places = np.argmax(sums, axis=1)  # of equal sums the first
        else:
            places = np.searchsorted(np.array(self.key.edges, dtype=np.int64), sums[:, 0], side="right")
        found: NDArray[np.unsignedinteger] = places.astype(smallest_type(self.key.size))
        return found


@dataclass(frozen=True, eq=False, repr=False)
class _NearestColumn:
    """The nearest centre of each row, by the part of the squared distance that differs between centres.

    Doubles hold it exactly: products of positions are at most 2^46, sums of 32 of them doubled at most 2^52. All parts of a
    sum are whole numbers within +-2^52, so its order does not matter.
    """

    key: NearestCentre
    columns: Sequence[NDArray[np.unsignedinteger]]

    def values(self, rows: slice) -> NDArray[np.unsignedinteger]:
        found = np.empty(rows.stop - rows.start, dtype=smallest_type(self.key.size))
        for part, _, distances in _to_centres(self.key, self.columns, rows):
            found[part] = np.argmin(distances, axis=1)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class _DistanceColumn:
    """The band of each row's squared distance to its nearest centre.

    Doubles hold it exactly. Positions x and c of row and centre lie in 0 .. 2^23, so a square is at most 2^46 and a sum of
    at most 32 of them at most 2^51: |x|^2 is exact. What `_to_centres` gives is exact (above); it is |x - c|^2 - |x|^2, and
    |x - c|^2 is at most 2^51 too, since no coordinate differs by more than 2^23. So their sum is exact: it is a whole
    number below 2^53 of two such. Edges are at most 2^51, so doubles hold them as well.
    """

    key: BandedDistance
    columns: Sequence[NDArray[np.unsignedinteger]]

    def values(self, rows: slice) -> NDArray[np.unsignedinteger]:
        edges = np.array(self.key.edges, dtype=np.float64)
        found = np.empty(rows.stop - rows.start, dtype=smallest_type(self.key.size))
        for part, positions, distances in _to_centres(self.key.nearest, self.columns, rows):
            squared = np.sum(positions * positions, axis=1) + distances.min(axis=1)
            found[part] = np.searchsorted(edges, squared, side="right")
        return found


def _to_centres(
    key: NearestCentre, columns: Sequence[NDArray[np.unsignedinteger]], rows: slice
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64]]]:
    """Some rows at a time: their places in the chunk, positions x, and |c|^2 - 2 x c for every centre c."""
    centres = np.array(key.centres, dtype=np.float64)
    lengths = np.sum(centres * centres, axis=1)
    for start in range(rows.start, rows.stop, NEAREST_AT_ONCE):
        part = slice(start, min(start + NEAREST_AT_ONCE, rows.stop))
        scaled = [codes[part].astype(np.float64) * scale for codes, scale in zip(columns, key.scales, strict=True)]
        positions = np.stack(scaled, axis=1)
        yield slice(part.start - rows.start, part.stop - rows.start), positions, lengths - 2 * (positions @ centres.T)


def _add_scores(
    tree: RowScores, places: NDArray[np.intp], labels: dict[Recode, NDArray[np.unsignedinteger]], sums: Integers
) -> None:
    if isinstance(tree, LeafScores):
        sums[places] += np.array(tree.scores, dtype=np.int64)
        return
    assert isinstance(tree, ScoreBranch)
    here = labels[tree.key][places]
    for label, child in enumerate(tree.children):
        _add_scores(child, places[here == label], labels, sums)


def _splits_of(trees: Sequence[RowScores]) -> dict[Recode, None]:
    """Every key that a model's trees split by."""
    keys: dict[Recode, None] = {}
    waiting = list(trees)
    while waiting:
        tree = waiting.pop()
        if isinstance(tree, ScoreBranch):
            keys[tree.key] = None
            waiting.extend(tree.children)
    return keys


@dataclass(frozen=True, eq=False, repr=False)
class _Tally:
    """Row counts by cell and some keys at once, of which the counts of several groups of keys are sums.

    A group has all the `common` keys and one of the `single` ones.
    """

    groups: Mapping[tuple[RowKey, ...], int | None]
    """Each group with the place of its last key among the single ones; None for the group without keys."""
    common: tuple[RowKey, ...]
    single: tuple[RowKey, ...]
    total: Integers

    def add(self, ids: Ids | None, values: dict[RowKey, NDArray[Any]], rows: int) -> None:
        """Count a chunk: rows are numbered by cell and keys in mixed radix."""
        # Every number, and every step on the way to it, is below total.size, so 16 bits hold it where they hold that.
        number_type: Any = np.uint16 if self.total.size < 2**16 else np.intp
        numbers = None if ids is None else ids.astype(number_type)
        for key in (*self.common, *self.single):
            if numbers is None:
                numbers = values[key].astype(number_type)
            else:
                numbers *= number_type(key.size)
                numbers += values[key]
        if numbers is None:
            self.total[0] += rows
        else:
            self.total[...] += np.bincount(numbers, minlength=self.total.size).reshape(self.total.shape)

    def by_group(self, cells: int) -> Iterator[tuple[tuple[RowKey, ...], Integers]]:
        first = 1 + len(self.common)
        for group, place in self.groups.items():
            others = tuple(first + other for other in range(len(self.single)) if other != place)
            yield group, self.total[:cells].sum(axis=others) if others else self.total[:cells]


def _tallies(groups: Sequence[tuple[RowKey, ...]], bins: int, rows: int) -> list[_Tally]:
    """Which groups to count together: as many as make few combinations, and no more than there are rows."""
    by_common: dict[tuple[RowKey, ...], dict[RowKey, None]] = {}
    tallies = []
    for group in dict.fromkeys(groups):
        if group:
            by_common.setdefault(group[:-1], {})[group[-1]] = None
        else:
            tallies.append(_Tally({(): None}, (), (), np.zeros(bins, dtype=np.int64)))
    for common, keys in by_common.items():
        smallest = bins * math.prod(key.size for key in common)
        together: list[list[RowKey]] = []
        for key in keys:
            size = smallest * math.prod(other.size for other in together[-1]) * key.size if together else 0
            if together and size <= min(FUSED, rows):
                together[-1].append(key)
            else:
                together.append([key])
        for single in together:
            shape = (bins, *(key.size for key in (*common, *single)))
            of = {(*common, key): place for place, key in enumerate(single)}
            tallies.append(_Tally(of, common, tuple(single), np.zeros(shape, dtype=np.int64)))
    return tallies


def _added_up(numbers: list[Integers], counts: list[Integers]) -> tuple[Integers, Integers]:
    """Counts of the same number added up, for rising numbers."""
    if not numbers:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    together, place = np.unique(np.concatenate(numbers), return_inverse=True)
    totals = np.zeros(len(together), dtype=np.int64)
    np.add.at(totals, place, np.concatenate(counts))
    return together, totals


def _shortened(offsets: Integers, radii: Integers) -> Integers:
    """[attributes, rows]: offsets whose absolute values add up to more than the radius, times radius / sum, towards 0."""
    lengths = np.abs(offsets).sum(axis=0)
    long = lengths > radii
    result: Integers = offsets.copy()
    parts = offsets[:, long]
    result[:, long] = np.sign(parts) * (np.abs(parts) * radii[long] // lengths[long])
    return result


def _source_of(key: RowKey) -> RowKey:
    """What a row is looked up by: the plain codes of a recoded attribute, or the key itself."""
    return Recode(key.attribute, (), 0) if isinstance(key, Recode) else key


def _table_of(key: Recode, size: int) -> NDArray[np.unsignedinteger]:
    """The value of a recoding key for every code of its attribute."""
    return np.array(key.table(size), dtype=smallest_type(key.size))


def _codes_by_cell(
    old_ids: NDArray[np.intp], which: NDArray[np.intp], columns: list[AnyColumn], rows: slice
) -> NDArray[np.unsignedinteger]:
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
