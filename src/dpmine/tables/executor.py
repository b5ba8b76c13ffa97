"""Where queries go: the kernel next to the data, or a client across the network. Algorithms cannot tell."""

from typing import Protocol

from dpmine.base.epsilon import Epsilon
from dpmine.codes.answers import Quote, Reply
from dpmine.facts.schema import Schema
from dpmine.language.queries import Query
from dpmine.results.statements import PaidAnswer, Statement


class Executor(Protocol):
    """What answers queries on behalf of one analyst."""

    @property
    def schema(self) -> Schema: ...

    def answer(self, query: Query, *, key: str | None = None) -> Reply: ...

    def preview(self, query: Query) -> Quote: ...

    def remaining(self) -> Epsilon: ...

    def statement(self) -> Statement: ...

    def answers(self) -> tuple[PaidAnswer, ...]:
        """The analyst's own paid questions and their replies, oldest answer first."""
        ...
