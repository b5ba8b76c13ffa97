"""What databases call differently. A dialect is a table of functions by name, each of which says one thing in SQL."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

One = Callable[[exp.Expression], exp.Expression]


@dataclass(frozen=True, eq=False, repr=False)
class Dialect:
    """One database's way of saying what SQLGlot does not say alike for all of them."""

    name: str
    """SQLGlot's name of it."""
    wide: One
    """A whole number in 64 bits: codes and products are never added in the type that just holds them."""
    quotient: Callable[[exp.Expression, exp.Expression], exp.Expression]
    """How often one whole number fits into another, both positive or 0."""
    pick: Callable[[Sequence[int], exp.Expression], exp.Expression]
    """Of written numbers the one at a place, counted from 0."""
    holds: Callable[[exp.Expression, int], exp.Expression]
    """Whether a list of item codes holds this one."""
    sum_of_picked: Callable[[Sequence[int], exp.Expression], exp.Expression]
    """The sum of the written numbers at the places in a list; 0 for an empty one."""
    name_hash: One
    """The first 8 bytes of a text's MD5, the least first, as a whole number."""
