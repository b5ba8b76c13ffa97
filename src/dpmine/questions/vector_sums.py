"""Sums of several attributes at once, with one noise for all."""

from __future__ import annotations

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.facts.facts import Facts
from dpmine.language.model_keys import MOST_DIMENSIONS
from dpmine.language.queries import Question, ResolvedQuestion, of_one_cell
from dpmine.language.resolved import Recode
from dpmine.language.resolver import Resolver
from dpmine.questions.value_grids import ValueGrid, largest_fits

BALLS = ("l-infinity", "l1")


@value("vector-sums")
class VectorSums(Question):
    """The sums of several numeric attributes at once, and the number of rows before them if wanted, with one noise for all.

    One row moves every sum, each by at most the attribute's largest absolute value (relative to the middle of its grid
    where centred), and the number of rows by one. With ball "l-infinity" the noise is a staircase over boxes of these
    lengths, `inner` being how far its first level reaches; with "l1" it is independent, for even shares of epsilon.
    """

    attributes: tuple[str, ...]
    with_count: bool
    centred: bool
    ball: str
    inner: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.attributes) <= MOST_DIMENSIONS or len(set(self.attributes)) < len(self.attributes):
            raise RequestError(f"Sums at once are of 1 to {MOST_DIMENSIONS} different attributes.")
        if self.ball not in BALLS:
            raise RequestError(f"The ball must be one of {', '.join(BALLS)}. Got {self.ball!r:.60}.")
        wanted = len(self.attributes) + self.with_count if self.ball == "l-infinity" else 0
        if len(self.inner) != wanted or any(type(steps) is not int for steps in self.inner):
            raise RequestError(f"Sums at once under this ball need {wanted} inner widths, whole numbers.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedVectorSums:
        of_one_cell(cells)
        grids = value_grids(resolver.schema, self.attributes, centred=self.centred)
        if not all(largest_fits(grid.largest) for grid in grids):
            raise RequestError("The values of these attributes are too large for exact sums. Use coarser steps.")
        keys = tuple(resolver.attribute(name) for name in self.attributes)
        return ResolvedVectorSums(keys, self.with_count, self.centred, self.ball, self.inner)


@value("resolved-vector-sums")
class ResolvedVectorSums(ResolvedQuestion):
    """Sums of what the codes of each key stand for, after the number of rows if wanted, with one noise for all."""

    keys: tuple[Recode, ...]
    with_count: bool
    centred: bool
    ball: str
    inner: tuple[int, ...]


def value_grids(schema: Facts, names: tuple[str, ...], *, centred: bool) -> tuple[ValueGrid, ...]:
    """The values of several numeric attributes as whole numbers."""
    return tuple(ValueGrid.of(schema.numeric(name, "its values have no sum"), centred=centred) for name in names)


def lengths_of(grids: tuple[ValueGrid, ...], *, with_count: bool) -> tuple[int, ...]:
    """By how much one row can move each number, in units of the attributes' grids; the number of rows comes first."""
    return ((1,) if with_count else ()) + tuple(grid.largest for grid in grids)
