"""Where golden values reach inside the package, and the only place that does: fake random bits, and a look at what is asked.

Whoever moves the source of random bits or the executor changes this file and no other one here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.codes.answers import Quote, Reply
from dpmine.facts.schema import Schema
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.language.queries import Query
from dpmine.results.statements import PaidAnswer, Statement
from dpmine.tables.executor import Executor
from dpmine.tables.private_table import PrivateTable

SPLIT_KEY_BYTES = 32


class Stream:
    """The same bytes for the same name, for ever: BLAKE2b of a counter. What was not asked for is kept for the next call."""

    def __init__(self, name: str) -> None:
        self._key = hashlib.blake2b(name.encode(), digest_size=32).digest()
        self._block = 0
        self._left = b""

    def bytes(self, count: int) -> bytes:
        while len(self._left) < count:
            self._left += hashlib.blake2b(self._block.to_bytes(8, "little"), key=self._key).digest()
            self._block += 1
        taken, self._left = self._left[:count], self._left[count:]
        return taken


@contextmanager
def pinned(name: str) -> Iterator[None]:
    """Noise and choices from a stream of this name; every new ledger has one and the same split key.

    The kernel's source keeps its own methods and only gets other bytes. What else asks the operating system (a ledger's
    tokens) has a stream apart, so that one token more or less changes no noise; a split key follows from its length alone.
    """
    noise, tokens = Stream(name), Stream("tokens of " + name)
    split_key = Stream("the split key of golden ledgers").bytes(SPLIT_KEY_BYTES)

    def urandom(count: int) -> bytes:
        return split_key if count == SPLIT_KEY_BYTES else tokens.bytes(count)

    with patch.object(Entropy, "bytes", lambda self, count: noise.bytes(count)), patch.object(os, "urandom", urandom):
        yield


class Watching:
    """Passes everything on, and tells of every query that was answered."""

    def __init__(self, executor: Executor, tell: Callable[[Query], None]) -> None:
        self._executor = executor
        self._tell = tell

    @property
    def schema(self) -> Schema:
        return self._executor.schema

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        reply = self._executor.answer(query, key=key)
        self._tell(query)
        return reply

    def preview(self, query: Query) -> Quote:
        return self._executor.preview(query)

    def remaining(self) -> Epsilon:
        return self._executor.remaining()

    def statement(self) -> Statement:
        return self._executor.statement()

    def answers(self) -> tuple[PaidAnswer, ...]:
        return self._executor.answers()


def watched(private: dm.PrivateTable, tell: Callable[[Query], None]) -> dm.PrivateTable:
    return PrivateTable(Watching(private._executor, tell))
