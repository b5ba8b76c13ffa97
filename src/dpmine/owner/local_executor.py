"""The executor next to the data: it hands an analyst's queries to the kernel in this process."""

from __future__ import annotations

from dpmine.base.epsilon import Epsilon
from dpmine.base.wire import from_wire, to_wire
from dpmine.base.wire_values import from_text
from dpmine.facts.schema import Schema
from dpmine.kernel.door import Kernel
from dpmine.kernel.ledger.accounts import Paid
from dpmine.language.answers import Answer, Quote, Reply
from dpmine.language.queries import Query
from dpmine.owner.statements import statement_of
from dpmine.results.statements import PaidAnswer, Statement


class LocalExecutor:
    """Hands an analyst's queries to the kernel in this process."""

    def __init__(self, kernel: Kernel, analyst: str, schema: Schema) -> None:
        self._kernel = kernel
        self._analyst = analyst
        self.schema = schema

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        return self._kernel.answer(to_wire(query), analyst=self._analyst, key=key)

    def preview(self, query: Query) -> Quote:
        return self._kernel.preview(to_wire(query), analyst=self._analyst)

    def remaining(self) -> Epsilon:
        return Epsilon(self._kernel.ledger.account(self._analyst).remaining)

    def statement(self) -> Statement:
        return statement_of(self._kernel.ledger, self.schema, self._kernel.version, self._analyst)

    def answers(self) -> tuple[PaidAnswer, ...]:
        return tuple(_paid_answer(paid) for paid in self._kernel.ledger.paid(self._analyst))


def _paid_answer(paid: Paid) -> PaidAnswer:
    reply = Reply(from_text(paid.stored.answer, Answer), Epsilon(paid.stored.cost), paid.stored.head)
    return PaidAnswer(from_wire(paid.question, Query), reply, paid.at)
