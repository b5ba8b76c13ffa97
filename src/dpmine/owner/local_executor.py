"""The executor next to the data: it hands an analyst's queries to the desk in this process."""

from dpmine.base.epsilon import Epsilon
from dpmine.base.wire import to_wire
from dpmine.codes.answers import Quote, Reply
from dpmine.facts.schema import Schema
from dpmine.language.queries import Query
from dpmine.owner.desk import Desk
from dpmine.owner.statements import paid_answers, statement_of
from dpmine.results.statements import PaidAnswer, Statement


class LocalExecutor:
    """Hands an analyst's queries to the desk in this process."""

    def __init__(self, desk: Desk, analyst: str, schema: Schema) -> None:
        self._desk = desk
        self._analyst = analyst
        self.schema = schema

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        return self._desk.answer(to_wire(query), analyst=self._analyst, key=key)

    def preview(self, query: Query) -> Quote:
        return self._desk.preview(to_wire(query), analyst=self._analyst)

    def remaining(self) -> Epsilon:
        return Epsilon(self._desk.ledger.account(self._analyst).remaining)

    def statement(self) -> Statement:
        return statement_of(self._desk.ledger, self.schema, self._desk.version, self._analyst)

    def answers(self) -> tuple[PaidAnswer, ...]:
        return paid_answers(self._desk.ledger, self._analyst)
