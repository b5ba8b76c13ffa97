"""Sums of several attributes at once: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.domain import Domain, require
from dpmine.codes.queries import ResolvedQuestion, one_cell
from dpmine.codes.rows import MOST_DIMENSIONS, Checker, Rounded
from dpmine.codes.value_grids import ValueGrid, largest_fits

BALLS = ("l-infinity", "l1")


@value("resolved-vector-sums")
class ResolvedVectorSums(ResolvedQuestion):
    """Sums of what the values of each attribute stand for, with one noise for all.

    With the number of rows before them they are about the rows without a gap in any attribute, and that is their number;
    else each sum is about the rows that have that attribute.
    """

    amounts: tuple[Rounded, ...]
    with_count: bool
    centred: bool
    ball: str
    inner: tuple[int, ...]

    def check(self, see: Checker, cells: int) -> None:
        one_cell(cells)
        see(*self.amounts)
        names = {amount.attribute for amount in self.amounts}
        require(1 <= len(names) == len(self.amounts) <= MOST_DIMENSIONS, "sums are of different attributes")
        full = [see.domain.numbers(amount.attribute).steps == amount.steps for amount in self.amounts]
        require(all(full), "sums are of values as they are")
        require(self.ball in BALLS, "there is no such ball")
        widths = len(self.amounts) + self.with_count if self.ball == "l-infinity" else 0
        require(len(self.inner) == widths, "a staircase over boxes has a width for each number")
        require(all(largest_fits(grid.largest) for grid in self.grids(see.domain)), "exact sums fit 64 bits")

    def grids(self, domain: Domain) -> tuple[ValueGrid, ...]:
        return tuple(ValueGrid.of(domain.numbers(amount.attribute), centred=self.centred) for amount in self.amounts)


def lengths_of(grids: tuple[ValueGrid, ...], *, with_count: bool) -> tuple[int, ...]:
    """By how much one row can move each number, in units of the attributes' grids; the number of rows comes first."""
    return ((1,) if with_count else ()) + tuple(grid.largest for grid in grids)
