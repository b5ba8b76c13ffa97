"""How an answer came about, and what one cell of a reply holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpmine.base.epsilon import Epsilon
from dpmine.codes.answers import Answer, Quote, Reply
from dpmine.noise.laws import Law


@dataclass(frozen=True)
class Receipt:
    """How an answer came about: its epsilon in this cell, what the whole query cost, and the ledger's head."""

    epsilon: Epsilon
    cost: Epsilon
    sequence: int
    digest: str


@dataclass(frozen=True)
class CellReply:
    """What a reply says of one cell: its numbers, and the laws of their noise."""

    cell: int
    numbers: tuple[int, ...]
    laws: tuple[Law, ...]
    receipt: Receipt


def cell_replies(reply: Reply) -> Iterator[CellReply | None]:
    """What a reply says of each cell; None where it was not asked."""
    answer, laws = reply.answer, laws_by_price(reply.answer)
    for cell, (numbers, price) in enumerate(zip(answer.numbers, answer.price, strict=True)):
        receipt = Receipt(price, reply.cost, reply.head.sequence, reply.head.digest)
        yield None if numbers is None else CellReply(cell, numbers, laws[price], receipt)


def laws_by_price(priced: Answer | Quote) -> dict[Epsilon, tuple[Law, ...]]:
    """The laws of a cell that was asked at a price: of each of its numbers, or one for all of them."""
    prices = sorted(paid for paid in set(priced.price) if paid.units)
    return dict(zip(prices, priced.laws, strict=True))
