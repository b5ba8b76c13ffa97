"""Executors that send everything as JSON text, record what is asked, or replay what was answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from dpmine.base.epsilon import Epsilon
from dpmine.base.json_values import from_text, to_text
from dpmine.base.wire import from_wire, to_wire
from dpmine.codes.answers import Quote, Reply
from dpmine.facts.schema import Schema
from dpmine.language.queries import Query, received
from dpmine.owner import DataSet
from dpmine.questions.choose_split import ChooseSplit
from dpmine.results.statements import PaidAnswer, Statement
from dpmine.tables.executor import Executor
from dpmine.tables.private_table import PrivateTable

Send = Callable[[str], str]
Opener = Callable[..., PrivateTable]
"""Opens a table and grants alice an allotment: the fixture `opened`."""


def wire_to(executor: Executor) -> Send:
    """The far end: text in, text out. Errors pass as they are; a server would turn them into status codes."""

    def send(text: str) -> str:
        request = json.loads(text)
        if request["do"] == "schema":
            return executor.schema.to_toml()
        if request["do"] == "answer":
            return to_text(executor.answer(received(request["query"]), key=request["key"]))
        if request["do"] == "preview":
            return to_text(executor.preview(received(request["query"])))
        if request["do"] == "remaining":
            return str(executor.remaining())
        if request["do"] == "answers":
            return json.dumps([_sent(paid) for paid in executor.answers()])
        assert request["do"] == "statement"
        return to_text(executor.statement())

    return send


def _sent(paid: PaidAnswer) -> dict[str, str]:
    return {"query": to_wire(paid.query).decode(), "reply": to_text(paid.reply), "at": paid.at}


class JsonExecutor:
    """An executor whose every query, reply, preview and statement travels as JSON text, as it would across a network.

    This is the near end: it holds the schema and a wire, nothing else.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.schema = Schema.from_toml(self._ask(do="schema"))

    def _ask(self, **request: str | None) -> str:
        answer = self._send(json.dumps(request))
        assert isinstance(answer, str)
        return answer

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        return from_text(self._ask(do="answer", query=to_wire(query).decode(), key=key), Reply)

    def preview(self, query: Query) -> Quote:
        return from_text(self._ask(do="preview", query=to_wire(query).decode()), Quote)

    def remaining(self) -> Epsilon:
        return Epsilon.parse_or_zero(self._ask(do="remaining"))

    def statement(self) -> Statement:
        return from_text(self._ask(do="statement"), Statement)

    def answers(self) -> tuple[PaidAnswer, ...]:
        sent = json.loads(self._ask(do="answers"))
        return tuple(
            PaidAnswer(from_wire(each["query"], Query), from_text(each["reply"], Reply), each["at"]) for each in sent
        )


def across_the_wire(table: PrivateTable) -> PrivateTable:
    """The same private table, seen from the other end of a wire."""
    return PrivateTable(JsonExecutor(wire_to(table._executor)))


def granted(data: DataSet, analyst: str, *, epsilon: object, over: str) -> PrivateTable:
    """What a miner gets: next to the data ("local") or across a wire ("json")."""
    table = data.grant(analyst, epsilon=epsilon)  # type: ignore[arg-type]
    return table if over == "local" else across_the_wire(table)


class Recorder:
    """Passes everything on, and keeps every query with its reply."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.asked: list[tuple[Query, Reply]] = []

    @property
    def schema(self) -> Schema:
        return self._executor.schema

    @property
    def queries(self) -> list[Query]:
        return [query for query, _ in self.asked]

    @property
    def choices(self) -> list[ChooseSplit]:
        return [query.question for query in self.queries if isinstance(query.question, ChooseSplit)]

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        reply = self._executor.answer(query, key=key)
        self.asked.append((query, reply))
        return reply

    def preview(self, query: Query) -> Quote:
        return self._executor.preview(query)

    def remaining(self) -> Epsilon:
        return self._executor.remaining()

    def statement(self) -> Statement:
        return self._executor.statement()

    def answers(self) -> tuple[PaidAnswer, ...]:
        return self._executor.answers()


class Replayer:
    """Has no table: it hands out fixed replies in their order, whatever is asked, and keeps the queries."""

    def __init__(self, schema: Schema, replies: Sequence[Reply], epsilon: Epsilon) -> None:
        self.schema = schema
        self._replies = list(replies)
        self._left = epsilon.units
        self.queries: list[Query] = []

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        reply = self._replies[len(self.queries)]
        if query not in self.queries:  # asked again it is free, as where the replies come from
            self._left -= reply.cost.units
        self.queries.append(query)
        return reply

    def preview(self, query: Query) -> Quote:
        left = Epsilon(self._left)
        return Quote(Epsilon(0), left, True, False, (), ())

    def remaining(self) -> Epsilon:
        return Epsilon(self._left)

    def statement(self) -> Statement:
        raise NotImplementedError

    def answers(self) -> tuple[PaidAnswer, ...]:
        raise NotImplementedError
