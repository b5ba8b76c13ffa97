"""Keys of rows: for every type of key the column that its values come from."""

from functools import singledispatch

import numpy as np

from dpmine.codes.rows import (
    BandedDistance,
    BandedSum,
    Cyclic,
    HashedPart,
    LargestSum,
    NearestCentre,
    Recode,
    RecodeValues,
    Rounded,
    RowKey,
    Tested,
)
from dpmine.codes.runs import labels_by_code
from dpmine.engines.memory.centres import DistanceColumn, NearestColumn
from dpmine.engines.memory.columns import (
    CodeColumn,
    Column,
    CyclicColumn,
    PositionColumn,
    RoundedColumn,
    RunsColumn,
    TruthColumn,
)
from dpmine.engines.memory.models import BandedSumColumn, LargestSumColumn, splits_of
from dpmine.engines.memory.rows import Codes, Rows
from dpmine.facts.encoding import smallest_type


@singledispatch
def column_of(key: RowKey, rows: Rows) -> Column:
    """Where a key's values come from, chunk by chunk."""
    raise TypeError(f"the memory engine has no key {type(key).__name__}")


@column_of.register
def _recode(key: Recode, rows: Rows) -> Column:
    return CodeColumn(rows.codes(key.attribute), table_of(key, rows.source_size(key)) if key.runs else None)


@column_of.register
def _recode_values(key: RecodeValues, rows: Rows) -> Column:
    values = rows.values(key.attribute)
    firsts, labels = zip(*key.runs, strict=True)
    return RunsColumn(values, np.array(firsts, dtype=values.dtype), np.array(labels, dtype=smallest_type(key.size)))


@column_of.register
def _rounded(key: Rounded, rows: Rows) -> RoundedColumn:
    return RoundedColumn(rows.values(key.attribute), rows.last_value(key.attribute), key.steps)


@column_of.register
def _cyclic(key: Cyclic, rows: Rows) -> Column:
    return CyclicColumn(rows.values(key.attribute), rows.last_value(key.attribute), key)


@column_of.register
def _tested(key: Tested, rows: Rows) -> Column:
    return TruthColumn(key.test, rows.table)


@column_of.register
def _largest_sum(key: LargestSum, rows: Rows) -> Column:
    return LargestSumColumn(key, {split: column_of(split, rows) for split in splits_of(key.trees)})


@column_of.register
def _banded_sum(key: BandedSum, rows: Rows) -> Column:
    return BandedSumColumn(key, {split: column_of(split, rows) for split in splits_of(key.trees)})


@column_of.register
def _nearest_centre(key: NearestCentre, rows: Rows) -> Column:
    return NearestColumn(key, positions_of(key, rows))


@column_of.register
def _banded_distance(key: BandedDistance, rows: Rows) -> Column:
    return DistanceColumn(key, positions_of(key.nearest, rows))


@column_of.register
def _hashed_part(key: HashedPart, rows: Rows) -> Column:
    return CodeColumn(rows.parts(key), None)


def positions_of(key: NearestCentre, rows: Rows) -> list[PositionColumn]:
    """Where the rows lie in each attribute."""
    found = zip(key.places, key.scales, strict=True)
    return [PositionColumn(_rounded(place, rows), scale) for place, scale in found]


def source_of(key: RowKey) -> RowKey:
    """What a row is looked up by: the plain codes of a recoded attribute, or the key itself."""
    return Recode(key.attribute, (), 0) if isinstance(key, Recode) else key


def table_of(key: Recode, size: int) -> Codes:
    """The value of a recoding key for every code of its attribute."""
    return np.array(labels_by_code(key, size), dtype=smallest_type(key.size))
