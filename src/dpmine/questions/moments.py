"""Sums of powers of one attribute: what sums, means and variances are made of."""

from __future__ import annotations

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.language.queries import Question, ResolvedQuestion
from dpmine.language.resolved import Recode
from dpmine.language.resolver import Resolver
from dpmine.questions.value_grids import ValueGrid, largest_fits


@value("moments")
class Moments(Question):
    """Sums of powers of a numeric attribute's values, each clamped to the public grid, with discrete Laplace noise.

    Values are whole multiples of the grid's unit. `powers` are the sums asked for: (1,) the sum, (0, 1) what a mean needs,
    (0, 1, 2) what a variance needs. With `centred`, values are taken relative to the middle of the grid, which makes the
    sums' sensitivities smaller.
    """

    attribute: str
    powers: tuple[int, ...]
    centred: bool

    def __post_init__(self) -> None:
        if self.powers not in ((1,), (0, 1), (0, 1, 2)):
            raise RequestError("Moments are asked as (1,), (0, 1) or (0, 1, 2).")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedMoments:
        attribute = resolver.numeric(self.attribute, "its values have no sum")
        if not largest_fits(ValueGrid.of(attribute, centred=self.centred).largest ** max(self.powers)):
            raise RequestError(f"The values of {self.attribute!r} are too large for exact sums. Use a coarser step.")
        return ResolvedMoments(resolver.attribute(self.attribute), self.powers, self.centred)


@value("resolved-moments")
class ResolvedMoments(ResolvedQuestion):
    """Sums of powers of what the codes of an attribute stand for, over the rows of each cell."""

    key: Recode
    powers: tuple[int, ...]
    centred: bool

    def counts(self, cells: int) -> int:
        return cells * self.key.size
