"""What a ledger asks of the place that keeps its rows: a file of SQLite, a server, memory.

Three kinds of rows: the log, the bytes of answers by the log row that holds their hash, and the texts of checkpoints by the
log row that names their digest. A store is trusted to let one writer in at a time and to keep what was committed. What it
returns is not trusted: the ledger holds it against the chain.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

Row = tuple[int, str, str]
"""A row of the log: its sequence, its entry's text and its digest."""


class Rows(Protocol):
    """The rows inside one transaction."""

    def are_new(self) -> bool:
        """Whether nothing was ever made here."""

    def make(self) -> None:
        """Make place for a new ledger's rows."""

    def log(self, first: int) -> Iterator[Row]:
        """The log from a sequence on, rising."""

    def digest(self, sequence: int) -> str | None:
        """The digest that a log row states; None where there is no such row."""

    def append(self, row: Row) -> None: ...

    def answer(self, sequence: int) -> bytes | None: ...

    def answers(self, first: int) -> Iterator[tuple[int, bytes]]:
        """All answers from a sequence on, rising."""

    def keep_answer(self, sequence: int, answer: bytes) -> None: ...

    def checkpoints(self, first: int) -> Iterator[tuple[int, str]]:
        """All texts of checkpoints from a sequence on, rising."""

    def checkpoint_places(self) -> list[int]:
        """The sequences that checkpoints are kept by, rising."""

    def keep_checkpoint(self, sequence: int, text: str) -> None: ...


class Store(Protocol):
    """Where rows are kept. Whatever goes wrong in it is a `LedgerError`."""

    @property
    def name(self) -> str:
        """What owners know it by."""

    def writing(self) -> AbstractContextManager[Rows]:
        """A transaction that no other one of any process overlaps: durable at its end, and undone whole by an error."""

    def reading(self) -> AbstractContextManager[Rows]:
        """A view that does not change, waits for nobody and stops nobody."""

    def let_go(self) -> None:
        """Before a fork: hold nothing that must not reach a child. The next transaction takes it up again."""

    def close(self) -> None: ...
