"""Sums of several attributes at once: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.domain import require
from dpmine.codes.queries import ResolvedQuestion, one_cell
from dpmine.codes.rows import MOST_DIMENSIONS, Checker, Recode
from dpmine.codes.value_grids import ValueGrid, largest_fits

BALLS = ("l-infinity", "l1")


@value("resolved-vector-sums")
class ResolvedVectorSums(ResolvedQuestion):
    """Sums of what the codes of each key stand for, after the number of rows if wanted, with one noise for all."""

    keys: tuple[Recode, ...]
    with_count: bool
    centred: bool
    ball: str
    inner: tuple[int, ...]

    def check(self, see: Checker, cells: int) -> None:
        one_cell(cells)
        names = {key.attribute for key in self.keys}
        require(1 <= len(names) == len(self.keys) <= MOST_DIMENSIONS, "sums are of different attributes")
        require(self.ball in BALLS, "there is no such ball")
        widths = len(self.keys) + self.with_count if self.ball == "l-infinity" else 0
        require(len(self.inner) == widths, "a staircase over boxes has a width for each number")
        grids = [ValueGrid.of(see.grid(key), centred=self.centred) for key in self.keys]
        require(all(largest_fits(grid.largest) for grid in grids), "exact sums fit 64 bits")


def lengths_of(grids: tuple[ValueGrid, ...], *, with_count: bool) -> tuple[int, ...]:
    """By how much one row can move each number, in units of the attributes' grids; the number of rows comes first."""
    return ((1,) if with_count else ()) + tuple(grid.largest for grid in grids)
