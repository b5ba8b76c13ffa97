"""A ledger's rows in a file of SQLite, or in memory: write-ahead log, every commit on disk before it returns."""

import os
import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from dpmine.base.errors import LedgerError, LedgerTampered
from dpmine.kernel.ledger.store import Row, Rows
from dpmine.owner.private_files import tighten

LOCK_PATIENCE = 60.0  # seconds to wait for other processes' transactions
POLL = 0.01

_TABLES = """
CREATE TABLE log (sequence INTEGER PRIMARY KEY, entry TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE answers (sequence INTEGER PRIMARY KEY, answer BLOB NOT NULL);
CREATE TABLE checkpoints (sequence INTEGER PRIMARY KEY, text TEXT NOT NULL);
"""


class SQLiteStore:
    """Rows in a file that exists, or (path None) in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = None if path is None else path.absolute()
        self._connection: sqlite3.Connection | None = None
        self._connect()
        self._file = self._file_now()

    @property
    def name(self) -> str:
        return str(self.path or "in memory")

    def _connect(self) -> sqlite3.Connection:
        if self.path is not None:
            if not self.path.exists():
                raise LedgerTampered("The ledger was moved, removed or replaced while it was open.")
            for ending in ("", "-wal", "-shm"):  # SQLite gives its own files beside the ledger the ledger's mode
                tighten(self.path.with_name(self.path.name + ending))
        with _as_ledger_error():
            connection = sqlite3.connect(
                self.path or ":memory:", timeout=LOCK_PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                _use_wal(connection)
                connection.execute("PRAGMA synchronous=FULL")
            except BaseException:
                connection.close()
                raise
        self._connection = connection
        self._pid = os.getpid()
        owner = None if self.path is None else self._pid
        self._closing = weakref.finalize(self, _close_connection, connection, owner)  # of a ledger that is just dropped
        return connection

    def _file_now(self) -> tuple[int, int] | None:
        """Which file the path names now."""
        if self.path is None:
            return None
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def writing(self) -> AbstractContextManager[Rows]:
        return self._transaction("BEGIN IMMEDIATE")

    def reading(self) -> AbstractContextManager[Rows]:
        return self._transaction("BEGIN")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Rows]:
        with _as_ledger_error():
            connection = self._connection or self._connect()
            if self._pid != os.getpid():
                kind = "in memory" if self.path is None else "that was open during a fork outside Python"
                raise LedgerError(f"A ledger {kind} cannot be shared with a forked process. Open the data there.")
            if connection.in_transaction:  # left by an error that came while another one was dealt with
                connection.execute("ROLLBACK")
            connection.execute(begin)
            try:
                if self._file_now() != self._file:
                    raise LedgerTampered("The ledger was moved, removed or replaced while it was open.")
                yield SQLiteRows(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def let_go(self) -> None:
        """SQLite's locks belong to a process, so no connection to a file may reach a child."""
        if self.path is not None:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    self._closing()

    def close(self) -> None:
        if self._connection is not None and self._pid == os.getpid():
            self._connection.close()


class SQLiteRows:
    """The rows inside one transaction of a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def are_new(self) -> bool:
        return bool(self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,))

    def make(self) -> None:
        for statement in _TABLES.split(";")[:-1]:
            self._connection.execute(statement)

    def log(self, first: int) -> Iterator[Row]:
        query = "SELECT sequence, entry, digest FROM log WHERE sequence >= ? ORDER BY sequence"
        return self._connection.execute(query, (first,))

    def digest(self, sequence: int) -> str | None:
        row = self._connection.execute("SELECT digest FROM log WHERE sequence = ?", (sequence,)).fetchone()
        return None if row is None else row[0]

    def append(self, row: Row) -> None:
        self._connection.execute("INSERT INTO log VALUES (?, ?, ?)", row)

    def answer(self, sequence: int) -> bytes | None:
        row = self._connection.execute("SELECT answer FROM answers WHERE sequence = ?", (sequence,)).fetchone()
        return None if row is None else row[0]

    def answers(self, first: int) -> Iterator[tuple[int, bytes]]:
        query = "SELECT sequence, answer FROM answers WHERE sequence >= ? ORDER BY sequence"
        return self._connection.execute(query, (first,))

    def keep_answer(self, sequence: int, answer: bytes) -> None:
        self._connection.execute("INSERT INTO answers VALUES (?, ?)", (sequence, answer))

    def checkpoints(self, first: int) -> Iterator[tuple[int, str]]:
        query = "SELECT sequence, text FROM checkpoints WHERE sequence >= ? ORDER BY sequence"
        return self._connection.execute(query, (first,))

    def checkpoint_places(self) -> list[int]:
        return [place for (place,) in self._connection.execute("SELECT sequence FROM checkpoints ORDER BY sequence")]

    def keep_checkpoint(self, sequence: int, text: str) -> None:
        self._connection.execute("INSERT INTO checkpoints VALUES (?, ?)", (sequence, text))


@contextmanager
def _as_ledger_error() -> Iterator[None]:
    """Whatever stops SQLite's work looks like what it means: no answer."""
    try:
        yield
    except sqlite3.Error as error:
        raise LedgerError(f"The ledger cannot be used ({error}). Nothing is answered.") from None


def _close_connection(connection: sqlite3.Connection, owner: int | None) -> None:
    """Close the connection of a store that is dropped unclosed: nobody is left then who could.

    One to a file that another process opened is left alone, because its locks are that process's.
    """
    if owner is None or owner == os.getpid():
        connection.close()


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log. SQLite's own waiting does not cover two processes that make one ledger at once."""
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(POLL)
