"""How an answer came about, and what one cell of a reply holds."""

from __future__ import annotations

from dataclasses import dataclass

from dpmine.base.epsilon import Epsilon
from dpmine.language.answers import Reply
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

    @classmethod
    def of(cls, reply: Reply, cell: int) -> CellReply | None:
        """None where the cell was not asked."""
        numbers = reply.answer.numbers[cell]
        if numbers is None:
            return None
        receipt = Receipt(reply.answer.price[cell], reply.cost, reply.head.sequence, reply.head.digest)
        return cls(cell, numbers, reply.answer.laws_of(cell), receipt)
