"""What leaves the door: answers with their laws, what they cost, and the ledger's head."""

from __future__ import annotations

from functools import cached_property

from dpmine.base.epsilon import Epsilon
from dpmine.base.wire_values import value
from dpmine.noise.laws import Law


@value("head")
class Head:
    """The ledger's newest row when the answer was stored: keep it, and a ledger that lost rows cannot deny it."""

    sequence: int
    digest: str


def prices_of(price: tuple[Epsilon, ...]) -> list[Epsilon]:
    """The different prices that are paid, from the lowest one on."""
    return [Epsilon(units) for units in sorted({paid.units for paid in price} - {0})]


class Priced:
    """Cells with a price each, and the laws of their numbers."""

    laws: tuple[tuple[Law, ...], ...]
    """For each price, from the lowest one on, the laws of a cell's numbers: one for each, or one for all of them."""
    price: tuple[Epsilon, ...]
    """Of each cell; 0 where it was not asked."""

    @cached_property
    def _place(self) -> dict[Epsilon, int]:
        return {epsilon: place for place, epsilon in enumerate(prices_of(self.price))}

    def laws_of(self, cell: int) -> tuple[Law, ...]:
        """The laws of a cell that was asked."""
        return self.laws[self._place[self.price[cell]]]

    def law(self, cell: int = 0, number: int = 0) -> Law:
        """The law of one number of a cell that was asked."""
        laws = self.laws_of(cell)
        return laws[number] if len(laws) > 1 else laws[0]


@value("answer")
class Answer(Priced):
    """What leaves the door: noisy integers, or choices, for each cell that was asked (None where its price is 0)."""

    numbers: tuple[tuple[int, ...] | None, ...]
    laws: tuple[tuple[Law, ...], ...]
    price: tuple[Epsilon, ...]


@value("reply")
class Reply:
    """What an executor hands back: the answer, what it cost the analyst, and the ledger's head at its row."""

    answer: Answer
    cost: Epsilon
    head: Head


@value("quote")
class Quote(Priced):
    """What a query would cost and by which laws it would be answered, from public facts and the ledger's own state.

    Of the data set's cap it says only whether it has room: how much is left follows from what others asked.
    """

    cost: Epsilon
    remaining: Epsilon
    dataset_suffices: bool
    cached: bool
    laws: tuple[tuple[Law, ...], ...]
    price: tuple[Epsilon, ...]
