"""What leaves the door: answers with their laws, what they cost, and the ledger's head."""

from typing import ClassVar

from dpmine.base.epsilon import Epsilon
from dpmine.base.wire_values import value
from dpmine.noise.laws import Law


@value("head")
class Head:
    """The ledger's newest row when the answer was stored: keep it, and a ledger that lost rows cannot deny it."""

    sequence: int
    digest: str


@value("answer")
class Answer:
    """What leaves the door: noisy integers, or choices, for each cell that was asked (None where its price is 0)."""

    MOST_PARTS: ClassVar[int] = 2**40  # on the wire: what was stored can always be read back
    numbers: tuple[tuple[int, ...] | None, ...]
    laws: tuple[tuple[Law, ...], ...]
    """For each price, from the lowest one on, the laws of a cell's numbers: one for each, or one for all of them."""
    price: tuple[Epsilon, ...]
    """Of each cell; 0 where it was not asked."""


@value("reply")
class Reply:
    """What an executor hands back: the answer, what it cost the analyst, and the ledger's head at its row."""

    answer: Answer
    cost: Epsilon
    head: Head


@value("quote")
class Quote:
    """What a query would cost and by which laws it would be answered, from public facts and the ledger's own state.

    Of the data set's cap it says only whether it has room: how much is left follows from what others asked.
    """

    cost: Epsilon
    remaining: Epsilon
    dataset_suffices: bool
    cached: bool
    laws: tuple[tuple[Law, ...], ...]
    price: tuple[Epsilon, ...]
