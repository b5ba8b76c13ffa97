"""An executor whose every query, reply, preview and statement travels as JSON text, as it would across a network."""

from __future__ import annotations

import json
from collections.abc import Callable

from dpmine.dataset import DataSet
from dpmine.epsilon import Epsilon
from dpmine.queries import Preview, Query, Reply
from dpmine.schema import Schema
from dpmine.statements import Statement
from dpmine.tables import Executor, PrivateTable
from dpmine.values import from_text, to_text
from dpmine.wire import LONGEST_REQUEST, from_wire, to_wire

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
            return to_text(executor.answer(from_wire(request["query"], Query, longest=LONGEST_REQUEST), key=request["key"]))
        if request["do"] == "preview":
            return to_text(executor.preview(from_wire(request["query"], Query, longest=LONGEST_REQUEST)))
        if request["do"] == "remaining":
            return str(executor.remaining())
        assert request["do"] == "statement"
        return to_text(executor.statement())

    return send


class JsonExecutor:
    """The near end: it holds the schema and a wire, nothing else."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.schema = Schema.from_toml(self._ask(do="schema"))

    def _ask(self, **request: str | None) -> str:
        answer = self._send(json.dumps(request))
        assert isinstance(answer, str)
        return answer

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        return from_text(self._ask(do="answer", query=to_wire(query).decode(), key=key), Reply)

    def preview(self, query: Query) -> Preview:
        return from_text(self._ask(do="preview", query=to_wire(query).decode()), Preview)

    def remaining(self) -> Epsilon:
        return Epsilon.parse_or_zero(self._ask(do="remaining"))

    def statement(self) -> Statement:
        return from_text(self._ask(do="statement"), Statement)


def across_the_wire(table: PrivateTable) -> PrivateTable:
    """The same private table, seen from the other end of a wire."""
    return PrivateTable(JsonExecutor(wire_to(table._executor)))


def granted(data: DataSet, analyst: str, *, epsilon: object, over: str) -> PrivateTable:
    """What a miner gets: next to the data ("local") or across a wire ("json")."""
    table = data.grant(analyst, epsilon=epsilon)  # type: ignore[arg-type]
    return table if over == "local" else across_the_wire(table)
