"""The ledger: what was granted, what was spent and what was answered, on SQLite, failing closed.

The spending protocol is charge -> compute -> store -> release. `reserve` charges in one durable transaction, under
the lock in which the odometers are read; `store` keeps the answer's bytes; only stored bytes are ever released. A
request that dies in between stays charged. The same request asked again gets the stored bytes, or may take over once
with a new fencing token. Two accounts are charged, each by the increase of its own odometer: the analyst's against
the allotment, and the data set's (over everybody's queries) against the cap.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpmine.epsilon import format_units
from dpmine.errors import LedgerError, LedgerTampered, RequestError, RequestInProgress
from dpmine.forking import forget_at_forks, leave_before_forks
from dpmine.kernel.accounts import Account, Request, Reservation, Stored, account_of, short_of_budget
from dpmine.kernel.chain import BEFORE_FIRST, Anchor, check_anchored, check_chain, digest_of
from dpmine.kernel.odometer import add_charge, nodes_of
from dpmine.kernel.replay import DATASET, Replay, facts_digest
from dpmine.queries import Head
from dpmine.renewal import Renewal
from dpmine.values import canonical_json

FORMAT = "dpmine-ledger-1"
CURRENCY = "pure epsilon, in units of 1e-9"
NEIGHBOURS = "add or remove one row"
PATIENCE = 2.0  # seconds to wait for somebody else's answer to the same request before taking over
LOCK_PATIENCE = 60.0  # seconds to wait for other processes' transactions
POLL = 0.01

_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE log (sequence INTEGER PRIMARY KEY, entry TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE accounts (name TEXT PRIMARY KEY, allotment INTEGER NOT NULL, revoked INTEGER NOT NULL,
                       spent INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE totals (account TEXT NOT NULL, node TEXT NOT NULL, units INTEGER NOT NULL,
                     PRIMARY KEY (account, node)) WITHOUT ROWID;
CREATE TABLE requests (analyst TEXT NOT NULL, key TEXT NOT NULL, plan TEXT NOT NULL, state TEXT NOT NULL,
                       token TEXT NOT NULL, resumed INTEGER NOT NULL, cost INTEGER NOT NULL, answer BLOB,
                       sequence INTEGER, PRIMARY KEY (analyst, key), UNIQUE (analyst, plan)) WITHOUT ROWID;
"""


class Ledger:
    """One data set's ledger, in a file or (path None) in memory."""

    def __init__(
        self,
        path: Path | None,
        *,
        dataset: str,
        cap: int | None,
        neighbours: str = NEIGHBOURS,
        renewal: Renewal | None = None,
        create: bool = True,
        checkpoint: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.path = None if path is None else path.absolute()  # a later chdir must not move the anchor
        self._checkpoint = checkpoint
        self._neighbours = neighbours
        if not (renewal is None or isinstance(renewal, Renewal)):
            raise RequestError("A renewal is made by dm.Renewal.every(days, epsilon=...).")
        self._renewal = renewal
        self._anchor = None if self.path is None else Anchor(self.path)
        self._seen: Head | None = None
        self._anchored = -1  # every row up to this one is known to be covered by the anchor
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._connect(create)
        self._file = self._file_now()
        leave_before_forks(self)
        try:
            if not (self._is_empty() and self._create(dataset, cap, create)):
                self._open(dataset, cap)
        except BaseException:
            self.close()
            raise

    # -- opening --------------------------------------------------------------------------------------------------

    def _connect(self, create: bool = False) -> sqlite3.Connection:
        if self.path is not None and not self.path.exists():
            if self._anchor is not None and self._anchor.has_heads() and not self.path.exists():
                raise LedgerTampered(
                    f"The ledger {self.path.name} is missing, but its anchor is there. Put the ledger back."
                )
            if not create:
                raise LedgerError(f"There is no ledger {str(self.path)!r}. Make one with: dpmine budget init.")
            if not self.path.parent.is_dir():
                raise LedgerError(f"The folder of the ledger {str(self.path)!r} does not exist.")
        with self._as_ledger_error():
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

    def _is_empty(self) -> bool:
        return self._read("SELECT count(*) FROM sqlite_master") == [(0,)]

    def _create(self, dataset: str, cap: int | None, create: bool) -> bool:
        """Write a new ledger; False if another process did so first."""
        if not create:
            raise LedgerError(f"The file {str(self.path)!r} is not a ledger.")
        if cap is None:
            raise LedgerError("A new ledger needs a cap: the epsilon that all analysts together may ever spend.")
        split_key = os.urandom(32).hex()
        facts = {
            "format": FORMAT,
            "dataset": dataset,
            "currency": CURRENCY,
            "neighbours": self._neighbours,
            "renewal": str(self._renewal or ""),
            "split_key": split_key,
        }
        if self._anchor is not None:
            self._anchor.touch()
        with self._transaction() as database:
            if not self._is_empty():
                return False
            if self._anchor is not None and self._anchor.has_heads():
                raise LedgerTampered("The ledger is empty, but its anchor has seen rows. Put the newest ledger file back.")
            for statement in _TABLES.split(";")[:-1]:
                database.execute(statement)
            database.executemany("INSERT INTO facts VALUES (?, ?)", list(facts.items()))
            database.execute("INSERT INTO accounts VALUES (?, ?, 0, 0)", (DATASET, cap))
            head = self._append(database, {"do": "create", "cap": cap, "facts": facts_digest(facts)})
        self._anchor_head(head)
        return True

    def _open(self, dataset: str, cap: int | None) -> None:
        self.verify()
        assert self._seen is not None
        self._anchor_head(self._seen)  # a crash may have left the newest row without its line
        if self.fact("dataset") != dataset:
            raise LedgerError(f"This ledger belongs to the data set {self.fact('dataset')!r}, not to {dataset!r}.")
        if self.fact("neighbours") != self._neighbours:
            raise LedgerError(f"This ledger counts for {self.fact('neighbours')!r}; the schema says {self._neighbours!r}.")
        stated_renewal = Renewal.parse(self.fact("renewal"))
        if self._renewal is not None and self._renewal != stated_renewal:
            raise LedgerError(f"This ledger's renewal is {stated_renewal or 'none'}, not {self._renewal}.")
        self._renewal = stated_renewal
        stated = int(self._read("SELECT allotment FROM accounts WHERE name = ?", (DATASET,))[0][0])
        if cap is not None and cap != stated:
            raise LedgerError(f"This ledger's cap is epsilon {format_units(stated)}, not {format_units(cap)}.")

    def close(self) -> None:
        forget_at_forks(self)
        if self._connection is not None and self._pid == os.getpid():
            self._closing()

    def leave(self) -> None:
        """Before a fork: SQLite's locks belong to a process, so no connection to a file may reach the child."""
        self._lock.acquire()
        if self.path is not None:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    self._closing()

    def go_on(self) -> None:
        """After a fork, on either side: connect again when next used."""
        self._lock.release()

    @contextmanager
    def _as_ledger_error(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(f"The ledger cannot be used ({error}). Nothing is answered.") from None

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """This process's connection, for one thread at a time."""
        with self._lock, self._as_ledger_error():
            connection = self._connection or self._connect()
            if self._pid != os.getpid():
                kind = "in memory" if self.path is None else "that was open during a fork outside Python"
                raise LedgerError(f"A ledger {kind} cannot be shared with a forked process. Open the data there.")
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """An exclusive transaction: what is read inside stays true until it commits."""
        with self._database() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                if self._file_now() != self._file:
                    raise LedgerTampered("The ledger was moved, removed or replaced while it was open.")
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    # -- the log --------------------------------------------------------------------------------------------------

    def _append(self, database: sqlite3.Connection, entry: dict[str, Any]) -> Head:
        last = database.execute("SELECT sequence, digest FROM log ORDER BY sequence DESC LIMIT 1").fetchone()
        if self._seen is not None:
            found = database.execute("SELECT digest FROM log WHERE sequence = ?", (self._seen.sequence,)).fetchone()
            if found is None or found[0] != self._seen.digest:
                raise LedgerTampered("The ledger lost rows while it was open: it was replaced or restored.")
        sequence, previous = (last[0] + 1, last[1]) if last else (0, BEFORE_FIRST)
        text = canonical_json({**entry, "at": datetime.now(UTC).isoformat(timespec="milliseconds")}).decode()
        head = Head(sequence, digest_of(previous, sequence, text))
        database.execute("INSERT INTO log VALUES (?, ?, ?)", (sequence, text, head.digest))
        return head

    def _anchor_head(self, head: Head) -> None:
        """After a commit, never before: remember the head here and outside the database. A newer head covers older rows."""
        with self._lock:
            if self._seen is None or head.sequence > self._seen.sequence:
                self._seen = head
        if self._anchor is not None and head.sequence > self._anchored:
            self._anchor.append(head)
            with self._lock:
                self._anchored = max(self._anchored, head.sequence)

    # -- accounts -------------------------------------------------------------------------------------------------

    def fact(self, name: str) -> str:
        row = self._read("SELECT value FROM facts WHERE name = ?", (name,))
        return str(row[0][0])

    def account(self, name: str) -> Account:
        """An analyst's account; DATASET is the data set's own."""
        rows = (
            []
            if not name.isprintable()
            else self._read("SELECT name, allotment, revoked, spent FROM accounts WHERE name = ?", (name,))
        )
        if not rows:
            raise RequestError(f"The owner has granted nothing to {name!r}.")
        return self._with_renewals(account_of(rows[0]))

    def _with_renewals(self, account: Account) -> Account:
        """The data set's cap grows by what the owner's policy has added so far; allotments are the owner's to raise."""
        if account.name != DATASET:
            return account
        return replace(account, allotment=account.allotment + self._renewed())

    def _renewed(self) -> int:
        return 0 if self._renewal is None else self._renewal.added(datetime.now(UTC))

    def accounts(self) -> list[Account]:
        """The analysts' accounts by name; the data set's own is `account(DATASET)`."""
        query = "SELECT name, allotment, revoked, spent FROM accounts WHERE name != '' ORDER BY name"
        return [account_of(row) for row in self._read(query)]

    def grant(self, analyst: str, units: int) -> None:
        """Set an analyst's allotment in all. Granting the same again changes nothing."""
        if not analyst or len(analyst) > 200 or not analyst.isprintable():
            raise RequestError("An analyst needs a name of 1 to 200 printable characters.")
        with self._transaction() as database:
            known = database.execute("SELECT allotment, revoked FROM accounts WHERE name = ?", (analyst,)).fetchone()
            if known == (units, 0):
                return
            database.execute(
                "INSERT INTO accounts VALUES (?, ?, 0, 0) "
                "ON CONFLICT (name) DO UPDATE SET allotment = excluded.allotment, revoked = 0",
                (analyst, units),
            )
            head = self._append(database, {"do": "grant", "analyst": analyst, "units": units})
        self._anchor_head(head)

    def revoke(self, analyst: str) -> None:
        """Close an analyst's account. What was spent stays spent."""
        if analyst == DATASET:
            raise RequestError("Name the analyst whose access ends.")
        self.account(analyst)
        with self._transaction() as database:
            database.execute("UPDATE accounts SET revoked = 1 WHERE name = ?", (analyst,))
            head = self._append(database, {"do": "revoke", "analyst": analyst})
        self._anchor_head(head)

    def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._database() as database:
            return database.execute(query, values).fetchall()

    # -- the protocol ---------------------------------------------------------------------------------------------

    def reserve(self, request: Request, *, patience: float = PATIENCE) -> Reservation | Stored:
        """Charge a request, or return its stored answer. Waits a little if somebody else is answering it."""
        deadline = time.monotonic() + patience
        while True:
            outcome = self._try_reserve(request, take_over=time.monotonic() >= deadline)
            if isinstance(outcome, Stored):
                self._anchor_head(outcome.head)  # whoever stored it may have died before anchoring it
            if outcome is not None:
                return outcome
            time.sleep(POLL)

    def _try_reserve(self, request: Request, *, take_over: bool) -> Reservation | Stored | None:
        with self._transaction() as database:
            account = self._account_within(database, request.analyst)
            known = self._known_request(database, request)
            if known is not None:
                key, state, resumed = known
                if state == "ANSWERED":
                    return self._stored(database, request.analyst, key)
                if not take_over:
                    return None
                reservation, head = self._resume(database, request.analyst, key, resumed)
            else:
                reservation, head = self._charge(database, request, account)
            self._checkpoint("reserving")
        self._checkpoint("reserved")
        self._anchor_head(head)
        self._checkpoint("reserve-anchored")
        return reservation

    def _known_request(self, database: sqlite3.Connection, request: Request) -> tuple[str, str, int] | None:
        same_key = database.execute(
            "SELECT plan FROM requests WHERE analyst = ? AND key = ?", (request.analyst, request.key)
        ).fetchone()
        if same_key is not None and same_key[0] != request.plan:
            raise RequestError("This request key was used for another query. Choose a new key.")
        row = database.execute(
            "SELECT key, state, resumed FROM requests WHERE analyst = ? AND plan = ?", (request.analyst, request.plan)
        ).fetchone()
        return None if row is None else (str(row[0]), str(row[1]), int(row[2]))

    def _account_within(self, database: sqlite3.Connection, name: str) -> Account:
        row = database.execute("SELECT name, allotment, revoked, spent FROM accounts WHERE name = ?", (name,)).fetchone()
        if row is None or name == DATASET:
            raise RequestError(f"The owner has granted nothing to {name!r}.")
        account = account_of(row)
        if account.revoked:
            raise RequestError(f"The owner has revoked the access of {name!r}.")
        return account

    def _resume(self, database: sqlite3.Connection, analyst: str, key: str, resumed: int) -> tuple[Reservation, Head]:
        if resumed:
            raise RequestInProgress(
                "This request was charged and is being answered elsewhere, or died there. Try again later; "
                "if it never ends, ask with a slightly different epsilon, which is a new charge."
            )
        token = os.urandom(16).hex()
        database.execute("UPDATE requests SET token = ?, resumed = 1 WHERE analyst = ? AND key = ?", (token, analyst, key))
        head = self._append(database, {"do": "resume", "analyst": analyst, "key": key})
        return Reservation(analyst, key, token), head

    def _charge(self, database: sqlite3.Connection, request: Request, account: Account) -> tuple[Reservation, Head]:
        """Under the lock: read both odometers, compute both increases, check both limits, write everything."""
        costs = {}
        for holder in (account, self._dataset_account(database)):
            increase = self._add_to_odometer(database, holder.name, request)
            if increase > holder.allotment - holder.spent:
                raise short_of_budget(holder, increase)
            database.execute("UPDATE accounts SET spent = spent + ? WHERE name = ?", (increase, holder.name))
            costs[holder.name] = increase
        token = os.urandom(16).hex()
        database.execute(
            "INSERT INTO requests VALUES (?, ?, ?, 'RESERVED', ?, 0, ?, NULL, NULL)",
            (request.analyst, request.key, request.plan, token, costs[request.analyst]),
        )
        head = self._append(
            database,
            {
                "do": "reserve",
                "analyst": request.analyst,
                "key": request.key,
                "plan": request.plan,
                "root": request.root,
                "charge": request.charge.form(),
                "rows_per_unit": request.rows_per_unit,
                "cost": [costs[request.analyst], costs[DATASET]],
                "what": request.what,
                "drafted": request.drafted,
            },
        )
        return Reservation(request.analyst, request.key, token), head

    def _dataset_account(self, database: sqlite3.Connection) -> Account:
        query = "SELECT name, allotment, revoked, spent FROM accounts WHERE name = ?"
        return self._with_renewals(account_of(database.execute(query, (DATASET,)).fetchone()))

    def _add_to_odometer(self, database: sqlite3.Connection, account: str, request: Request) -> int:
        totals = self._totals(database, account, request)
        before = dict(totals)
        increase = add_charge(totals, request.root, request.charge) * request.rows_per_unit
        changed = [(account, node, units) for node, units in totals.items() if before.get(node) != units]
        database.executemany(
            "INSERT INTO totals VALUES (?, ?, ?) ON CONFLICT (account, node) DO UPDATE SET units = excluded.units", changed
        )
        return increase

    def _totals(self, database: sqlite3.Connection, account: str, request: Request) -> dict[str, int]:
        totals: dict[str, int] = {}
        nodes = list(nodes_of(request.root, request.charge))
        for start in range(0, len(nodes), 500):
            some = nodes[start : start + 500]
            marks = ",".join("?" * len(some))
            rows = database.execute(
                f"SELECT node, units FROM totals WHERE account = ? AND node IN ({marks})", (account, *some)
            )
            totals.update((str(node), int(units)) for node, units in rows)
        return totals

    def preview(self, request: Request) -> tuple[int, bool]:
        """What the request would cost its analyst now, and whether it is already answered. Charges nothing."""
        with self._database() as database:
            self._account_within(database, request.analyst)
            known = self._known_request(database, request)
            if known is not None:
                return 0, known[1] == "ANSWERED"
            totals = self._totals(database, request.analyst, request)
            return add_charge(totals, request.root, request.charge) * request.rows_per_unit, False

    def store(self, reservation: Reservation, answer: bytes, *, patience: float = 60.0) -> Stored:
        """Keep the answer, if this attempt still holds the request; return the bytes that may be released."""
        with self._transaction() as database:
            changed = database.execute(
                "UPDATE requests SET state = 'ANSWERED', answer = ? "
                "WHERE analyst = ? AND key = ? AND state = 'RESERVED' AND token = ?",
                (answer, reservation.analyst, reservation.key, reservation.token),
            ).rowcount
            if changed:
                entry = {"do": "answer", "analyst": reservation.analyst, "key": reservation.key}
                head = self._append(database, {**entry, "sha256": hashlib.sha256(answer).hexdigest()})
                database.execute(
                    "UPDATE requests SET sequence = ? WHERE analyst = ? AND key = ?",
                    (head.sequence, reservation.analyst, reservation.key),
                )
            self._checkpoint("storing")
        self._checkpoint("stored")
        if changed:
            self._anchor_head(head)
            self._checkpoint("store-anchored")
        return self._wait_for_stored(reservation, patience)

    def _wait_for_stored(self, reservation: Reservation, patience: float) -> Stored:
        """The stored bytes: ours, or those of the attempt that took this request over."""
        deadline = time.monotonic() + patience
        while True:
            with self._database() as database:
                stored = self._stored(database, reservation.analyst, reservation.key)
            if stored is not None:
                self._anchor_head(stored.head)
                return stored
            if time.monotonic() >= deadline:
                raise RequestInProgress("Another attempt took this request over and has not answered yet. Try again later.")
            time.sleep(POLL)

    def _stored(self, database: sqlite3.Connection, analyst: str, key: str) -> Stored | None:
        row = database.execute(
            "SELECT answer, requests.sequence, digest, cost FROM requests JOIN log ON log.sequence = requests.sequence "
            "WHERE analyst = ? AND key = ? AND state = 'ANSWERED'",
            (analyst, key),
        ).fetchone()
        return None if row is None else Stored(bytes(row[0]), Head(row[1], row[2]), int(row[3]))

    # -- looking back ---------------------------------------------------------------------------------------------

    def entries(self) -> list[dict[str, Any]]:
        """Every log entry, oldest first."""
        return [json.loads(entry) for (entry,) in self._read("SELECT entry FROM log ORDER BY sequence")]

    def verify(self) -> int:
        """Check chain, anchor, odometers, accounts and stored answers against the log; return the number of rows."""
        anchored = self._anchor.heads() if self._anchor is not None else []  # before the snapshot: it never runs ahead
        with self._database() as database:
            database.execute("BEGIN")  # one snapshot, whatever other processes write meanwhile
            try:
                rows = database.execute("SELECT sequence, entry, digest FROM log ORDER BY sequence").fetchall()
                digests = check_chain(rows)
                check_anchored(anchored, digests)
                if self._anchor is not None and not anchored and len(digests) > 1 and not self._anchor.has_heads():
                    raise LedgerTampered("The ledger's anchor is empty. Put the newest anchor back beside the ledger.")
                Replay.of(entry for _, entry, _ in rows).check_against(database)
            finally:
                database.execute("COMMIT")
            self._seen = Head(len(digests) - 1, digests[-1])
            self._anchored = max((head.sequence for head in anchored), default=-1)
        return len(rows)


def _close_connection(connection: sqlite3.Connection, owner: int | None) -> None:
    """Close the connection of a ledger that is closed, or dropped unclosed: nobody is left then who could.

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
