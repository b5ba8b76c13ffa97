"""Nearest centres, row by row: which centre it is, and in which band of distances the row lies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import BandedDistance, NearestCentre
from dpmine.engines.memory import sizes
from dpmine.engines.memory.columns import PositionColumn
from dpmine.engines.memory.rows import Codes
from dpmine.facts.encoding import smallest_type


@dataclass(frozen=True, eq=False, repr=False)
class NearestColumn:
    """The nearest centre of each row, by the part of the squared distance that differs between centres.

    Doubles hold it exactly: products of positions are at most 2^46, sums of 32 of them doubled at most 2^52. All parts of a
    sum are whole numbers within +-2^52, so its order does not matter.
    """

    key: NearestCentre
    columns: Sequence[PositionColumn]

    def values(self, rows: slice) -> Codes:
        found = np.empty(rows.stop - rows.start, dtype=smallest_type(self.key.size))
        for part, _, distances in _to_centres(self.key, self.columns, rows):
            found[part] = np.argmin(distances, axis=1)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class DistanceColumn:
    """The band of each row's squared distance to its nearest centre.

    Doubles hold it exactly. Positions x and c of row and centre lie in 0 .. 2^23, so a square is at most 2^46 and a sum of
    at most 32 of them at most 2^51: |x|^2 is exact. What `_to_centres` gives is exact (above); it is |x - c|^2 - |x|^2, and
    |x - c|^2 is at most 2^51 too, since no coordinate differs by more than 2^23. So their sum is exact: it is a whole
    number below 2^53 of two such. Edges are at most 2^51, so doubles hold them as well.
    """

    key: BandedDistance
    columns: Sequence[PositionColumn]

    def values(self, rows: slice) -> Codes:
        edges = np.array(self.key.edges, dtype=np.float64)
        found = np.empty(rows.stop - rows.start, dtype=smallest_type(self.key.size))
        for part, positions, distances in _to_centres(self.key.nearest, self.columns, rows):
            squared = np.sum(positions * positions, axis=1) + distances.min(axis=1)
            found[part] = np.searchsorted(edges, squared, side="right")
        return found


def _to_centres(
    key: NearestCentre, columns: Sequence[PositionColumn], rows: slice
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64]]]:
    """Some rows at a time: their places in the chunk, positions x, and |c|^2 - 2 x c for every centre c."""
    centres = np.array(key.centres, dtype=np.float64)
    lengths = np.sum(centres * centres, axis=1)
    for start in range(rows.start, rows.stop, sizes.NEAREST_AT_ONCE):
        part = slice(start, min(start + sizes.NEAREST_AT_ONCE, rows.stop))
        positions = np.stack([column.values(part) for column in columns], axis=1).astype(np.float64)
        yield slice(part.start - rows.start, part.stop - rows.start), positions, lengths - 2 * (positions @ centres.T)
