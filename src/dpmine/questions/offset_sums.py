"""Sums of clipped offsets from centres: a step of k-means."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.offset_sums import LARGEST_RADIUS, ResolvedOffsetSums
from dpmine.codes.rows import LARGEST_POSITION, NearestCentre
from dpmine.facts.schema import Schema
from dpmine.language.model_keys import Nearest
from dpmine.language.queries import Question, of_one_cell
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.spread import deviation
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt


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
        if len(self.radii) != clusters or any(
            type(radius) is not int or not 1 <= radius <= LARGEST_RADIUS for radius in self.radii
        ):
            raise RequestError(f"Every cluster needs a radius, a whole number from 1 to {LARGEST_RADIUS}.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedOffsetSums:
        nearest = resolver.key(self.nearest)
        assert isinstance(nearest, NearestCentre)
        of_one_cell(cells)
        return ResolvedOffsetSums(nearest, self.origins, self.radii)


@dataclass(frozen=True, eq=False)
class NoisyOffsetSums:
    """Noisy sums of clipped offsets, for each cluster (row) and attribute (column), in positions; a law for each cluster."""

    sums: NDArray[np.int64]
    laws: tuple[DiscreteLaplace, ...]
    receipt: Receipt


@reads(OffsetSums)
class OffsetSumsReading(Reading[OffsetSums]):
    def words(self, question: OffsetSums) -> str:
        return f"sums of offsets from {len(question.radii)} centres"

    def expected_error(self, question: OffsetSums, quote: Quote, schema: Schema) -> str:
        widths = sorted({deviation(law) for law in quote.laws[0] if isinstance(law, DiscreteLaplace)})
        return f"Standard deviations of the noise of each sum, in positions: {widths[0]:.3g} to {widths[-1]:.3g}."

    def read(self, question: OffsetSums, reply: CellReply, schema: Schema) -> NoisyOffsetSums:
        dimensions = len(question.nearest.attributes)
        sums = np.array(reply.numbers, dtype=np.int64).reshape(len(question.nearest.centres), dimensions)
        laws = tuple(law for law in reply.laws[::dimensions] if isinstance(law, DiscreteLaplace))
        return NoisyOffsetSums(sums, laws, reply.receipt)
