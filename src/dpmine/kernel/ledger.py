"""The ledger: what was granted, what was spent and what was answered, on SQLite, failing closed.

The spending protocol is charge -> compute -> store -> release. `reserve` charges in one durable transaction, under
the lock in which the odometers are read; `store` keeps the answer's bytes; only stored bytes are ever released. A
request that dies in between stays charged. The same request asked again gets the stored bytes, or may take over once
with a new fencing token. Two accounts are charged, each by the increase of its own odometer: the analyst's against
the allotment, and the data set's (over everybody's queries) against the cap.

What the log implies is kept in memory and brought up to date in every transaction; a charge or a release whose rows say
otherwise is refused. Each head is told to the anchor, and to the witness if there is one, before anything is released.
"""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from dpmine.epsilon import format_units
from dpmine.errors import LedgerError, LedgerTampered, RequestError, RequestInProgress
from dpmine.forking import forget_at_forks, leave_before_forks
from dpmine.kernel.accounts import Account, Request, Reservation, Stored, account_of, short_of_budget
from dpmine.kernel.chain import Anchor, check_chain, check_seen, digest_of
from dpmine.kernel.odometer import add_charge, nodes_of
from dpmine.kernel.private_files import make_private, tighten
from dpmine.kernel.replay import DATASET, Replay, RequestState, Row, answer_hash, facts_digest, not_implied
from dpmine.kernel.witness import FileWitness, Witness
from dpmine.queries import Head
from dpmine.renewal import Renewal
from dpmine.values import canonical_json

FORMAT = "dpmine-ledger-2"
CURRENCY = "pure epsilon, in units of 1e-9"
NEIGHBOURS = "add or remove one row"
PATIENCE = 2.0  # seconds to wait for somebody else's answer to the same request before taking over
LOCK_PATIENCE = 60.0  # seconds to wait for other processes' transactions
POLL = 0.01
_HELPLESS = (sqlite3.Error, RecursionError, MemoryError)

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


P = ParamSpec("P")
T = TypeVar("T")


def _failing_closed(method: Callable[P, T]) -> Callable[P, T]:
    """A stack or memory that is used up anywhere in the ledger's work is a ledger's error, like a disk that is full."""

    @functools.wraps(method)
    def guarded(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return method(*arguments, **options)
        except (RecursionError, MemoryError) as error:
            raise _as_ours(error) from None

    return guarded


class Ledger:
    """One data set's ledger, in a file or (path None) in memory."""

    @_failing_closed
    def __init__(
        self,
        path: Path | None,
        *,
        dataset: str,
        cap: int | None,
        neighbours: str = NEIGHBOURS,
        renewal: Renewal | None = None,
        witness: Witness | None = None,
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
        self._witness = witness
        self._id = ""  # what the witness calls this ledger
        self._state: Replay | None = (
            None  # what the log implies up to the newest row we know of; None if that must be read anew
        )
        self._pending: tuple[Row, dict[str, Any], dict[str, dict[str, int]]] | None = None
        self._anchored = -1  # every row up to this one is known to be covered by the anchor
        self._witnessed = -1  # and by the witness
        self._untold: Head | None = None  # a head that could not be told
        self._telling = threading.RLock()  # always taken before the other one
        self._lock = threading.RLock()
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        self._check_witness_elsewhere()
        if create and self.path is not None and not self.path.exists():
            self._meet_witness(os.urandom(16).hex())  # before any file is made, so that none is left behind
        try:
            self._connect(create)
            self._file = self._file_now()
            leave_before_forks(self)
            if not (self._is_empty() and self._create(dataset, cap, create)):
                self._open(dataset, cap)
        except BaseException:
            self.close()
            raise

    # -- opening --------------------------------------------------------------------------------------------------

    def _check_witness_elsewhere(self) -> None:
        if self._witness is not None and (self.path is None or self._anchor is None):
            raise RequestError("A ledger in memory has no witness: nothing of it can be restored.")
        if isinstance(self._witness, FileWitness) and self.path is not None and self._anchor is not None:
            own = {path.resolve() for path in (self.path, self._anchor.path)}
            if self._witness.path.resolve() in own:
                raise RequestError("A witness is a file of its own, best on another disk: not the ledger or its anchor.")

    def _meet_witness(self, name: str) -> None:
        """For a ledger that is being made: a witness that cannot be reached is better found out now."""
        if self._witness is not None:
            self._witness.make()
            self._witness.heads(name)

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
            self._make_file(self.path)
        if self.path is not None:  # SQLite gives its own files beside the ledger the ledger's mode
            for ending in ("", "-wal", "-shm", ".anchor"):
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

    def _make_file(self, path: Path) -> None:
        try:
            make_private(path)
        except OSError as error:
            raise LedgerError(f"The ledger {str(path)!r} cannot be made: {error.strerror}.") from None

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
        facts = {
            "format": FORMAT,
            "dataset": dataset,
            "currency": CURRENCY,
            "neighbours": self._neighbours,
            "renewal": str(self._renewal or ""),
            "split_key": os.urandom(32).hex(),
            "id": os.urandom(16).hex(),
            "witness": "no" if self._witness is None else "yes",
        }
        if self._anchor is not None:
            self._anchor.make()
        self._meet_witness(facts["id"])
        self._state = Replay()
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
        self._id = facts["id"]
        self._tell(head)
        return True

    def _open(self, dataset: str, cap: int | None) -> None:
        self._check_format()
        if self._witness is not None and self._stated_fact("witness") == "no":
            raise LedgerError("This ledger was made without a witness, which can only be named when a ledger is made.")
        self.verify()
        if self._witness is None and self.fact("witness") == "yes":
            raise LedgerError(
                "This ledger has a witness, which must be asked. Name it: dm.open(..., witness=...), "
                "dpmine --witness ..., or the environment variable DPMINE_WITNESS."
            )
        assert self._state is not None
        self._tell(self._state.head)  # a crash may have left the newest row without its line
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

    def _check_format(self) -> None:
        stated = self._stated_fact("format")
        if stated.startswith("dpmine-ledger-") and stated != FORMAT:
            raise LedgerError(
                f"This ledger has the format {stated[:40]!r}, and this release of dpmine reads {FORMAT!r}. Open it with the "
                "release that made it, or make a new one whose cap is what remains."
            )

    def _stated_fact(self, name: str) -> str:
        """What the table says, before it was verified."""
        rows = self._read("SELECT value FROM facts WHERE name = ?", (name,))
        return rows[0][0] if rows and isinstance(rows[0][0], str) else ""

    def close(self) -> None:
        self._closed = True
        try:
            forget_at_forks(self)
        finally:  # even from a stack that is used up
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()

    def leave(self) -> None:
        """Before a fork: SQLite's locks belong to a process, so no connection to a file may reach the child."""
        self._telling.acquire()
        self._lock.acquire()
        if self.path is not None:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    self._closing()

    def go_on(self) -> None:
        """After a fork, on either side: connect again when next used."""
        self._lock.release()
        self._telling.release()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """This process's connection, for one thread at a time."""
        with self._lock, _as_ledger_error():
            if self._closed:
                raise LedgerError("This data set was closed. Open it again to ask more of it.")
            connection = self._connection or self._connect()
            if self._pid != os.getpid():
                kind = "in memory" if self.path is None else "that was open during a fork outside Python"
                raise LedgerError(f"A ledger {kind} cannot be shared with a forked process. Open the data there.")
            yield connection

    @contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """An exclusive transaction: what is read inside stays true until it commits, and our state is that of the log."""
        if self._state is None:
            self.verify()
        with self._database() as database:
            _begin(database, begin)
            self._pending = None
            try:
                if self._file_now() != self._file:
                    raise LedgerTampered("The ledger was moved, removed or replaced while it was open.")
                self._follow(database)
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise
            self._take_in_own()

    def _snapshot(self) -> AbstractContextManager[sqlite3.Connection]:
        """A transaction that only reads, and does not wait for others."""
        return self._transaction("BEGIN")

    # -- the log --------------------------------------------------------------------------------------------------

    @property
    def _known(self) -> Replay:
        if self._state is None:
            raise LedgerError("The ledger could not be read to its end. Nothing is answered; try again.")
        return self._state

    def _follow(self, database: sqlite3.Connection) -> None:
        """Take in what other processes appended; refuse a log that does not go on where we left it."""
        newest = self._known.newest
        if newest[0] < 0:
            return  # being made
        query = "SELECT sequence, entry, digest FROM log WHERE sequence >= ? ORDER BY sequence"
        rows = database.execute(query, newest[:1]).fetchall()
        if not rows or rows[0] != newest:
            raise LedgerTampered(
                "The ledger was edited or lost rows while it was open: it was edited outside dpmine, replaced or restored."
            )
        if len(rows) > 1:
            try:
                self._known.follow(rows[1:])
            except BaseException:
                self._state = None  # changed in part, it is worth nothing
                raise

    def _take_in_own(self) -> None:
        if self._pending is not None:
            try:
                self._known.add_own(*self._pending)
            except BaseException:
                self._state = None
                raise

    def _append(
        self, database: sqlite3.Connection, entry: dict[str, Any], totals: dict[str, dict[str, int]] | None = None
    ) -> Head:
        """Write one entry of this transaction, with the totals that it changes. Its nonce keeps it from being guessed."""
        last = self._known.newest
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {**entry, "at": now, "nonce": os.urandom(16).hex()}
        text = canonical_json(entry).decode()
        head = Head(last[0] + 1, digest_of(last[2], last[0] + 1, text))
        row = (head.sequence, text, head.digest)
        database.execute("INSERT INTO log VALUES (?, ?, ?)", row)
        self._pending = row, entry, totals or {}
        return head

    def _tell(self, head: Head, step: str = "head") -> None:
        """Put a head where no restored ledger takes it back: after its commit, never before, and before any release.

        A newer head covers older rows. While one cannot be told, nothing more is charged.
        """
        try:
            if self._anchor is not None and head.sequence > self._anchored:
                self._anchor.append(head)
                self._anchored = max(self._anchored, head.sequence)
            self._checkpoint(f"{step}-anchored")
            if self._witness is not None and head.sequence > self._witnessed:
                self._tell_witness(self._witness, head)
            self._checkpoint(f"{step}-witnessed")
        except (LedgerError, *_HELPLESS) as error:
            self._untold = head
            raise _as_ours(error) from None

    def _tell_witness(self, witness: Witness, head: Head) -> None:
        """One thread at a time; what the others committed meanwhile is covered by the newest head."""
        with self._telling:
            if self._state is None:
                self.verify()
            if head.sequence <= self._witnessed:
                return
            newest = self._known.head
            self._check_told(witness.news(self._id))  # before we tell: a stale copy must not spoil the true one's witness
            self._check_told(witness.tell(self._id, newest))
            self._witnessed = newest.sequence

    def _check_told(self, heads: list[Head]) -> None:
        for told in heads:
            if not self._read("SELECT 1 FROM log WHERE sequence = ? AND digest = ?", (told.sequence, told.digest)):
                self._state = None  # whoever uses this ledger next asks the witness again, and learns the same
                raise LedgerTampered(
                    f"The ledger's witness was told another row {told.sequence}: a copy of the ledger is used elsewhere."
                )

    def _catch_up(self) -> None:
        """Before a charge: what could not be told must be told first, or charges would pile up that nobody answers."""
        untold = self._untold
        if untold is not None:
            self._tell(untold)
            self._untold = None

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

    @_failing_closed
    def grant(self, analyst: str, units: int) -> None:
        """Set an analyst's allotment in all. Granting the same again changes nothing."""
        if not analyst or len(analyst) > 200 or not analyst.isprintable():
            raise RequestError("An analyst needs a name of 1 to 200 printable characters.")
        self._catch_up()
        with self._transaction() as database:
            known = self._account_at(database, analyst)
            if known is not None and (known.allotment, known.revoked) == (units, False):
                return
            database.execute(
                "INSERT INTO accounts VALUES (?, ?, 0, 0) "
                "ON CONFLICT (name) DO UPDATE SET allotment = excluded.allotment, revoked = 0",
                (analyst, units),
            )
            head = self._append(database, {"do": "grant", "analyst": analyst, "units": units})
        self._tell(head)

    @_failing_closed
    def revoke(self, analyst: str) -> None:
        """Close an analyst's account. What was spent stays spent."""
        if analyst == DATASET:
            raise RequestError("Name the analyst whose access ends.")
        self.account(analyst)
        self._catch_up()
        with self._transaction() as database:
            self._account_at(database, analyst)
            database.execute("UPDATE accounts SET revoked = 1 WHERE name = ?", (analyst,))
            head = self._append(database, {"do": "revoke", "analyst": analyst})
        self._tell(head)

    def _account_at(self, database: sqlite3.Connection, name: str) -> Account | None:
        """An account as the table and the log say."""
        row = database.execute("SELECT allotment, revoked, spent FROM accounts WHERE name = ?", (name,)).fetchone()
        self._known.check_account(name, row)
        return None if row is None else account_of((name, *row))

    def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._database() as database:
            return database.execute(query, values).fetchall()

    # -- the protocol ---------------------------------------------------------------------------------------------

    @_failing_closed
    def reserve(self, request: Request, *, patience: float = PATIENCE) -> Reservation | Stored:
        """Charge a request, or return its stored answer. Waits a little if somebody else is answering it."""
        self._catch_up()
        deadline = time.monotonic() + patience
        while True:
            outcome = self._try_reserve(request, take_over=time.monotonic() >= deadline)
            if isinstance(outcome, Stored):
                self._tell(outcome.head)  # whoever stored it may have died before telling it
            if outcome is not None:
                return outcome
            time.sleep(POLL)

    def _try_reserve(self, request: Request, *, take_over: bool) -> Reservation | Stored | None:
        with self._transaction() as database:
            account = self._account_within(database, request.analyst)
            known = self._known_request(database, request)
            if known is not None:
                key, state = known
                if state.state == "ANSWERED":
                    return self._stored(database, request.analyst, key)
                if not take_over:
                    return None
                reservation, head = self._resume(database, request.analyst, key, state.resumed)
            else:
                reservation, head = self._charge(database, request, account)
            self._checkpoint("reserving")
        self._checkpoint("reserved")
        self._tell(head, "reserve")
        return reservation

    def _known_request(self, database: sqlite3.Connection, request: Request) -> tuple[str, RequestState] | None:
        """The request with this plan, under whatever key it was first asked."""
        same_key = self._request_at(database, request.analyst, request.key)
        if same_key is not None and same_key.plan != request.plan:
            raise RequestError("This request key was used for another query. Choose a new key.")
        row = database.execute(
            "SELECT key FROM requests WHERE analyst = ? AND plan = ?", (request.analyst, request.plan)
        ).fetchone()
        key = self._known.keys.get((request.analyst, request.plan))
        if row != (None if key is None else (key,)):
            raise not_implied("requests")
        state = None if key is None else self._request_at(database, request.analyst, key)
        return None if key is None or state is None else (key, state)

    def _request_at(self, database: sqlite3.Connection, analyst: str, key: str) -> RequestState | None:
        """A request as the table and the log say."""
        row = database.execute(
            "SELECT plan, cost, state, resumed, sequence FROM requests WHERE analyst = ? AND key = ?", (analyst, key)
        ).fetchone()
        return self._known.check_request(analyst, key, row)

    def _account_within(self, database: sqlite3.Connection, name: str) -> Account:
        account = self._account_at(database, name)
        if account is None or name == DATASET:
            raise RequestError(f"The owner has granted nothing to {name!r}.")
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
        costs: dict[str, int] = {}
        changes = {}
        for holder in (account, self._dataset_account(database)):
            increase, changes[holder.name] = self._add_to_odometer(database, holder.name, request)
            if increase > holder.allotment - holder.spent:
                raise short_of_budget(holder, costs.get(request.analyst, increase), request.rows_per_unit)
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
            changes,
        )
        return Reservation(request.analyst, request.key, token), head

    def _dataset_account(self, database: sqlite3.Connection) -> Account:
        account = self._account_at(database, DATASET)
        assert account is not None  # the log's first entry makes it
        return self._with_renewals(account)

    def _add_to_odometer(self, database: sqlite3.Connection, account: str, request: Request) -> tuple[int, dict[str, int]]:
        """The increase, and the totals that changed."""
        totals = self._totals(database, account, request)
        before = dict(totals)
        increase = add_charge(totals, request.root, request.charge) * request.rows_per_unit
        changed = {node: units for node, units in totals.items() if before.get(node) != units}
        database.executemany(
            "INSERT INTO totals VALUES (?, ?, ?) ON CONFLICT (account, node) DO UPDATE SET units = excluded.units",
            [(account, node, units) for node, units in changed.items()],
        )
        return increase, changed

    def _totals(self, database: sqlite3.Connection, account: str, request: Request) -> dict[str, int]:
        totals: dict[str, int] = {}
        nodes = list(nodes_of(request.root, request.charge))
        for start in range(0, len(nodes), 500):
            some = nodes[start : start + 500]
            marks = ",".join("?" * len(some))
            rows = database.execute(
                f"SELECT node, units FROM totals WHERE account = ? AND node IN ({marks})", (account, *some)
            )
            totals.update(rows)
        self._known.check_totals(account, nodes, totals)
        return totals

    @_failing_closed
    def preview(self, request: Request) -> tuple[int, bool, bool]:
        """What the request would cost its analyst now, whether the data set's cap has room for it, and whether it is already
        answered. Charges nothing.

        How much the cap has left follows from what others asked: it is looked at only for what the analyst could pay.
        """
        with self._snapshot() as database:
            account = self._account_within(database, request.analyst)
            known = self._known_request(database, request)
            if known is not None:
                return 0, True, known[1].state == "ANSWERED"
            cost = self._increase(database, account, request)
            if cost > account.remaining:
                return cost, True, False
            dataset = self._dataset_account(database)
            return cost, self._increase(database, dataset, request) <= dataset.allotment - dataset.spent, False

    def _increase(self, database: sqlite3.Connection, account: Account, request: Request) -> int:
        totals = self._totals(database, account.name, request)
        return add_charge(totals, request.root, request.charge) * request.rows_per_unit

    @_failing_closed
    def store(self, reservation: Reservation, answer: bytes, *, patience: float = 60.0) -> Stored:
        """Keep the answer, if this attempt still holds the request; return the bytes that may be released."""
        with self._transaction() as database:
            state = self._request_at(database, reservation.analyst, reservation.key)
            changed = state is not None and state.state == "RESERVED" and self._keep(database, reservation, answer)
            if changed:
                entry = {"do": "answer", "analyst": reservation.analyst, "key": reservation.key}
                head = self._append(database, {**entry, "sha256": answer_hash(answer)})
                database.execute(
                    "UPDATE requests SET sequence = ? WHERE analyst = ? AND key = ?",
                    (head.sequence, reservation.analyst, reservation.key),
                )
            self._checkpoint("storing")
        self._checkpoint("stored")
        if changed:
            self._tell(head, "store")
        return self._wait_for_stored(reservation, patience)

    def _keep(self, database: sqlite3.Connection, reservation: Reservation, answer: bytes) -> bool:
        """Compare and set: False if another attempt took this request over."""
        return bool(
            database.execute(
                "UPDATE requests SET state = 'ANSWERED', answer = ? "
                "WHERE analyst = ? AND key = ? AND state = 'RESERVED' AND token = ?",
                (answer, reservation.analyst, reservation.key, reservation.token),
            ).rowcount
        )

    def _wait_for_stored(self, reservation: Reservation, patience: float) -> Stored:
        """The stored bytes: ours, or those of the attempt that took this request over."""
        deadline = time.monotonic() + patience
        while True:
            # What our own state knows as answered never changes; else look at what other processes did.
            with self._snapshot() if self._waits(reservation) else self._database() as database:
                stored = self._stored(database, reservation.analyst, reservation.key)
            if stored is not None:
                self._tell(stored.head)
                return stored
            if time.monotonic() >= deadline:
                raise RequestInProgress("Another attempt took this request over and has not answered yet. Try again later.")
            time.sleep(POLL)

    def _waits(self, reservation: Reservation) -> bool:
        known = None if self._state is None else self._state.requests.get((reservation.analyst, reservation.key))
        return known is None or known.state != "ANSWERED"

    def _stored(self, database: sqlite3.Connection, analyst: str, key: str) -> Stored | None:
        """The stored bytes, if they are those whose hash is in the log."""
        row = database.execute(
            "SELECT plan, cost, state, resumed, sequence, answer FROM requests WHERE analyst = ? AND key = ?", (analyst, key)
        ).fetchone()
        state = self._known.check_request(analyst, key, None if row is None else row[:5])
        if state is None or state.sequence is None:
            return None
        answer = row[5]
        if not isinstance(answer, bytes) or answer_hash(answer) != state.answer:
            raise not_implied("requests")
        return Stored(answer, Head(state.sequence, state.digest), state.cost)

    # -- looking back ---------------------------------------------------------------------------------------------

    def entries(self) -> list[dict[str, Any]]:
        """Every log entry, oldest first."""
        return [json.loads(entry) for (entry,) in self._read("SELECT entry FROM log ORDER BY sequence")]

    @_failing_closed
    def verify(self) -> int:
        """Check chain, anchor, witness, odometers, accounts and answers against the log; return the number of rows."""
        with self._telling:
            # Before the snapshot: neither the anchor nor the witness ever runs ahead of the ledger.
            anchored = self._anchor.heads() if self._anchor is not None else []
            witnessed = self._witness.heads(self._stated_fact("id")) if self._witness is not None else []
            return self._verify(anchored, witnessed)

    def _verify(self, anchored: list[Head], witnessed: list[Head]) -> int:
        again = False
        with self._database() as database:
            self._state = None
            _begin(database, "BEGIN")  # one snapshot, whatever other processes write meanwhile
            try:
                rows = database.execute("SELECT sequence, entry, digest FROM log ORDER BY sequence").fetchall()
                digests = check_chain(rows)
                check_seen(anchored, digests, "anchor")
                check_seen(witnessed, digests, "witness")
                if len(rows) > 1:  # a crash may leave a new ledger with one row that nobody was told
                    again = self._told_meanwhile(anchored, witnessed)
                state = Replay.of(rows)
                state.check_against(database)
            finally:
                database.execute("COMMIT")
            self._state = state
            self._anchored = max((head.sequence for head in anchored), default=-1)
            self._witnessed = max((head.sequence for head in witnessed), default=-1)
            self._id = self._stated_fact("id")
        return self.verify() if again else len(rows)

    def _told_meanwhile(self, anchored: list[Head], witnessed: list[Head]) -> bool:
        """Refuse an anchor or a witness that knows nothing; True if it did a moment ago, while the ledger was being made."""
        if self._anchor is not None and not anchored and not self._anchor.has_heads():
            raise LedgerTampered("The ledger's anchor is empty. Put the newest anchor back beside the ledger.")
        if self._witness is None or witnessed:
            return False
        if not self._witness.heads(self._stated_fact("id")):
            raise LedgerTampered("The witness was told nothing of this ledger. Name the one that the ledger was made with.")
        return True


@contextmanager
def _as_ledger_error() -> Iterator[None]:
    """Whatever stops the ledger's work looks like what it means: no answer."""
    try:
        yield
    except _HELPLESS as error:
        raise _as_ours(error) from None


def _as_ours(error: BaseException) -> LedgerError:
    if isinstance(error, LedgerError):
        return error
    if isinstance(error, RecursionError):
        return LedgerError("The ledger cannot be used from so deep a stack. Nothing is answered.")
    if isinstance(error, MemoryError):
        return LedgerError("The ledger cannot be used: there is too little memory. Nothing is answered.")
    return LedgerError(f"The ledger cannot be used ({error}). Nothing is answered.")


def _begin(database: sqlite3.Connection, how: str) -> None:
    if database.in_transaction:  # left by an error that came while another one was dealt with
        database.execute("ROLLBACK")
    database.execute(how)


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
