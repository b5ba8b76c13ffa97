"""Sums of clipped offsets: how far the rows of each centre lie from its origin, together."""

from collections.abc import Sequence

import numpy as np

from dpmine.codes.rows import Cells, NearestCentre
from dpmine.engines.memory.cells import cell_ids
from dpmine.engines.memory.keys import column_of, positions_of
from dpmine.engines.memory.rows import Integers, Rows


def clipped_sums(
    cells: Cells, nearest: NearestCentre, origins: Sequence[Sequence[int]], radii: Sequence[int], rows: Rows
) -> Integers:
    """[centres, attributes]: for each centre the sums of its rows' offsets."""
    ids = cell_ids(cells, rows)
    label_column = column_of(nearest, rows)
    columns = positions_of(nearest, rows)
    starts, limits = np.array(origins, dtype=np.int64), np.array(radii, dtype=np.int64)
    totals = np.zeros(starts.shape, dtype=np.int64)
    for chunk in rows.chunks():
        inside = ids.of(chunk) == 0
        labels = label_column.values(chunk)[inside].astype(np.intp)
        positions = [column.values(chunk)[inside] for column in columns]
        offsets = shortened(np.stack(positions) - starts[labels].T, limits[labels])
        for place, along in enumerate(offsets):
            np.add.at(totals[:, place], labels, along)
    return totals


def shortened(offsets: Integers, radii: Integers) -> Integers:
    """[attributes, rows]: offsets whose absolute values add up to more than the radius, times radius / sum, towards 0."""
    lengths = np.abs(offsets).sum(axis=0)
    long = lengths > radii
    result: Integers = offsets.copy()
    parts = offsets[:, long]
    result[:, long] = np.sign(parts) * (np.abs(parts) * radii[long] // lengths[long])
    return result
