"""Sums of clipped offsets from centres, with discrete Laplace noise."""

from dpmine.base.epsilon import Epsilon
from dpmine.codes.domain import Domain
from dpmine.codes.offset_sums import ResolvedOffsetSums
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.samplers.laplace import add_noise
from dpmine.noise.laws import DiscreteLaplace, laplace


class ClippedOffsets(Mechanism[ResolvedOffsetSums, DiscreteLaplace], answers=ResolvedOffsetSums):
    """The sums of cluster after cluster, each with noise for its own radius.

    Claim        epsilon-DP for adding or removing one row, for the sums of all clusters together.
    Sensitivity  L1, of the sums of cluster j: its radius. A row is in one cluster, its offset shortened to that radius.
    Proof        docs/proofs.md#offset-sums.
    Assumes      public centres, origins and radii.
    Not covered  how much clipping shortens: choose radii that leave most rows as they are.
    Reference    McSherry 2009; Su, Cao, Li, Bertino, Jin 2016.
    """

    def laws(self, question: ResolvedOffsetSums, domain: Domain, epsilon: Epsilon) -> tuple[DiscreteLaplace, ...]:
        """One for each number: the coordinates of cluster after cluster."""
        dimensions = len(question.nearest.places)
        return tuple(law for radius in question.radii for law in (laplace(radius, epsilon),) * dimensions)

    def release(self, asked: Asked[ResolvedOffsetSums, DiscreteLaplace]) -> list[Numbers | None]:
        question = asked.question
        exact_sums = asked.engine.clipped_sums(asked.cells, question.nearest, question.origins, question.radii)
        laws = asked.laws[asked.units[0]][:: len(question.nearest.places)]  # one a cluster
        noisy = [add_noise(sums, asked.noise, law.fraction) for sums, law in zip(exact_sums, laws, strict=True)]
        return [tuple(int(number) for sums in noisy for number in sums)]
