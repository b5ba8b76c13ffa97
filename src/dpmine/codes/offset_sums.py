"""Sums of clipped offsets from centres: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.domain import require
from dpmine.codes.queries import ResolvedQuestion, one_cell
from dpmine.codes.rows import LARGEST_POSITION, MOST_DIMENSIONS, Checker, NearestCentre

LARGEST_RADIUS = LARGEST_POSITION * MOST_DIMENSIONS


@value("resolved-offset-sums")
class ResolvedOffsetSums(ResolvedQuestion):
    """For each centre the sum of its rows' positions less its origin, shortened to its radius (in L1)."""

    nearest: NearestCentre
    origins: tuple[tuple[int, ...], ...]
    radii: tuple[int, ...]

    def check(self, see: Checker, cells: int) -> None:
        one_cell(cells)
        see(self.nearest)
        clusters, dimensions = self.nearest.size, len(self.nearest.places)
        require(len(self.origins) == len(self.radii) == clusters, "every cluster has an origin and a radius")
        require(all(len(origin) == dimensions for origin in self.origins), "an origin has a position in every attribute")
        places = (place for origin in self.origins for place in origin)
        require(all(abs(place) <= LARGEST_POSITION for place in places), "origins are positions")
        require(all(1 <= radius <= LARGEST_RADIUS for radius in self.radii), "radii are at least 1")
