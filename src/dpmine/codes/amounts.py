"""Numbers of rows in whole steps, and how many steps products and sums of them may have."""

from dpmine.codes.domain import require
from dpmine.codes.rows import Rounded

LARGEST_VALUE = 2**30  # of one row; times fewer than 2^31 rows, every exact sum stays below 2^61


def product(amounts: tuple[Rounded, ...]) -> int:
    """The largest product of the steps of one row, which also is by how much one row moves all parts of them together."""
    largest = 1
    for amount in amounts:
        largest *= amount.steps
    return largest


def check_product(amounts: tuple[Rounded, ...]) -> None:
    require(product(amounts) <= LARGEST_VALUE, "exact sums fit 64 bits")
