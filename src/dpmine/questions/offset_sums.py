"""Sums of clipped offsets from centres: a step of k-means."""

from __future__ import annotations

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.language.model_keys import LARGEST_POSITION, MOST_DIMENSIONS, Nearest
from dpmine.language.queries import Question, ResolvedQuestion, of_one_cell
from dpmine.language.resolved import NearestCentre
from dpmine.language.resolver import Resolver


@value("offset-sums")
class OffsetSums(Question):
    """For each cluster the sum of its rows' offsets from an origin, clipped, with discrete Laplace noise.

    Clusters are those of the nearest centres. An offset is the row's position less the cluster's origin, attribute by
    attribute; if the absolute values add up to more than the cluster's radius, it is shortened to that, each part rounded
    towards 0. So a row changes the sums of one cluster, by at most its radius in all: L1 sensitivity.
    """

    nearest: Nearest
    origins: tuple[tuple[int, ...], ...]
    radii: tuple[int, ...]

    def __post_init__(self) -> None:
        clusters, dimensions = len(self.nearest.centres), len(self.nearest.attributes)
        if len(self.origins) != clusters or any(len(origin) != dimensions for origin in self.origins):
            raise RequestError("Every cluster needs an origin, with a position in every attribute.")
        if any(type(place) is not int or abs(place) > LARGEST_POSITION for origin in self.origins for place in origin):
            raise RequestError(f"An origin's positions are whole numbers within +-{LARGEST_POSITION}.")
        largest = LARGEST_POSITION * MOST_DIMENSIONS
        if len(self.radii) != clusters or any(
            type(radius) is not int or not 1 <= radius <= largest for radius in self.radii
        ):
            raise RequestError(f"Every cluster needs a radius, a whole number from 1 to {largest}.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedOffsetSums:
        nearest = resolver.key(self.nearest)
        assert isinstance(nearest, NearestCentre)
        of_one_cell(cells)
        return ResolvedOffsetSums(nearest, self.origins, self.radii)


@value("resolved-offset-sums")
class ResolvedOffsetSums(ResolvedQuestion):
    """For each centre the sum of its rows' positions less its origin, shortened to its radius (in L1)."""

    nearest: NearestCentre
    origins: tuple[tuple[int, ...], ...]
    radii: tuple[int, ...]
