"""The log of a ledger: transactions in which what is known is what the log implies, and entries that are told once written.

It is read from the newest checkpoint that anchor and witness vouch for, or from its first entry, and then followed: every
transaction takes in what other processes appended, and refuses a log that does not go on where it was left.
"""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dpmine.base.errors import LedgerError, LedgerTampered
from dpmine.codes.answers import Head
from dpmine.kernel.ledger.chain import Seen, digest_of
from dpmine.kernel.ledger.checkpoints import text_digest
from dpmine.kernel.ledger.replay import Increase, Replay, not_implied
from dpmine.kernel.ledger.store import Row, Rows, Store
from dpmine.kernel.ledger.telling import Telling

FORMAT = "dpmine-ledger-3"
_ID = re.compile("[0-9a-f]{32}")


class Log:
    """What was written and told, and the state that it implies."""

    def __init__(self, store: Store, telling: Telling, at_step: Callable[[str], None]) -> None:
        self.kept_in = store
        self.telling = telling
        self._at_step = at_step
        self._replay: Replay | None = None  # None if the log must be read anew
        self._pending: tuple[Row, dict[str, Any], list[Increase] | None] | None = None
        self._lock = threading.RLock()
        self._closed = False

    def is_new(self) -> bool:
        with self.kept_in.reading() as rows:
            return rows.are_new()

    def begin(self, name: str, entry: dict[str, Any]) -> bool:
        """Write the first entry of a ledger that the witness will know by that name; False if another process did so."""
        self.telling.make(name)
        self._replay = Replay()
        with self.transaction() as rows:
            if not rows.are_new():
                self._replay = None
                return False
            self.telling.refuse_the_knowing()
            rows.make()
            head = self.append(rows, entry)
        self.tell(head)
        return True

    def close(self) -> None:
        self._closed = True
        self.kept_in.close()

    def leave(self) -> None:
        """Before a fork: no lock and no connection to a file may reach the child."""
        self.telling.lock.acquire()
        self._lock.acquire()
        self.kept_in.let_go()

    def go_on(self) -> None:
        """After a fork, on either side."""
        self._lock.release()
        self.telling.lock.release()

    @contextmanager
    def transaction(self, *, writing: bool = True) -> Iterator[Rows]:
        """An exclusive transaction: what is read inside stays true until it commits, and our state is that of the log."""
        if self._replay is None:
            self.read()
        with self._lock:
            self._refuse_if_closed()
            self._pending = None
            with self.kept_in.writing() if writing else self.kept_in.reading() as rows:
                self._follow(rows)
                yield rows
            self._take_in_own()

    def looking(self) -> AbstractContextManager[Rows]:
        """A transaction that only reads, and does not wait for others."""
        return self.transaction(writing=False)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise LedgerError("This data set was closed. Open it again to ask more of it.")

    @property
    def known(self) -> Replay:
        if self._replay is None:
            raise LedgerError("The ledger could not be read to its end. Nothing is answered; try again.")
        return self._replay

    def _follow(self, rows: Rows) -> None:
        """Take in what other processes appended; refuse a log that does not go on where we left it."""
        newest = self.known.newest
        if newest[0] < 0:
            return  # being made
        log = rows.log(newest[0])
        if next(log, None) != newest:
            raise LedgerTampered(
                "The ledger was edited or lost rows while it was open: it was edited outside dpmine, replaced or restored."
            )
        self._change(lambda replay: replay.follow(log))

    def _take_in_own(self) -> None:
        if self._pending is not None:
            own = self._pending
            self._change(lambda replay: replay.add(*own))

    def _change(self, change: Callable[[Replay], None]) -> None:
        try:
            change(self.known)
        except BaseException:
            self._replay = None  # changed in part, it is worth nothing
            raise

    def append(self, rows: Rows, entry: dict[str, Any], increases: list[Increase] | None = None) -> Head:
        """Write one entry of this transaction, with the increases that it states."""
        row, entry = self.known.next_row(entry)
        rows.append(row)
        self._pending = row, entry, increases
        return Head(row[0], row[2])

    def tell(self, head: Head, step: str = "head") -> None:
        try:
            self.telling.tell(self, head, step)
        except LedgerTampered:
            self._replay = None  # whoever uses this ledger next asks the witness again, and learns the same
            raise

    def newest_head(self) -> Head:
        if self._replay is None:
            self.read()
        return self.known.head

    def holds(self, head: Head) -> bool:
        with self._lock, self.kept_in.reading() as rows:
            return rows.digest(head.sequence) == head.digest

    def catch_up(self) -> None:
        """Before anything is written: tell what is untold, and keep a checkpoint if one is due."""
        self._refuse_if_closed()
        self.telling.catch_up(self)
        if self._replay is None:
            self.read()
        if self.known.is_checkpoint_due:
            self._keep_checkpoint()

    def _keep_checkpoint(self) -> None:
        with self.transaction() as rows:
            if not self.known.is_checkpoint_due:
                return  # another process was faster
            text = self.known.checkpoint_text()
            head = self.append(rows, {"do": "checkpoint", "sha256": text_digest(text)})
            rows.keep_checkpoint(head.sequence, text)
            self._at_step("checkpointing")
        self._at_step("checkpointed")
        self.tell(head, "checkpoint")

    # -- reading --------------------------------------------------------------------------------------------------

    def stated_facts(self) -> dict[str, str]:
        """What the first entry says of the ledger, before it was verified; refuses other formats."""
        with self._lock, self.kept_in.reading() as rows:
            self._refuse_if_closed()
            first = next(rows.log(0), None)
        try:
            facts = {} if first is None else json.loads(first[1])["facts"]
        except (KeyError, TypeError, ValueError):
            facts = {}
        facts = facts if type(facts) is dict else {"format": "an earlier one"}
        stated = {name: str(facts.get(name, "")) for name in ("format", "id", "witness")}
        if stated["format"] not in ("", FORMAT):
            raise LedgerError(
                f"This ledger's format is {stated['format'][:40]!r} and this release of dpmine reads {FORMAT!r}: open it "
                "with the release that made it, or make a new one whose cap is what remains."
            )
        if self.telling.has_witness and _ID.fullmatch(stated["id"]) is None:
            raise not_implied("facts")  # it is about to reach the witness, perhaps a program on another machine
        return stated

    def read(self) -> None:
        """Take up the log: from the newest checkpoint that anchor and witness have seen, else from the first entry.

        A row that they have seen proves the rows before it, and so what a checkpoint before it names.
        """
        with self.telling.lock:
            self.telling.ledger = self.stated_facts()["id"]
            with self._lock, self.kept_in.reading() as rows:
                places = rows.checkpoint_places()
            for place in reversed(places):
                seen = self.telling.seen(place)
                if seen and all(each.newest >= place for each in seen):
                    self._read_from(place, seen)
                    return
            self.verify()

    def _read_from(self, place: int, seen: list[Seen]) -> None:
        """Take a checkpoint up, and the rows after it."""
        with self._lock, self.kept_in.reading() as rows:
            self._replay = None
            before, log = rows.digest(place - 1), rows.log(place)
            row = next(log, None)
            if row is None or before is None or row != (place, row[1], digest_of(before, place, row[1])):
                raise LedgerTampered(f"The ledger's hash chain breaks at row {place}: it was edited outside dpmine.")
            for each in seen:
                each.check(row)
            texts = [text for at, text in rows.checkpoints(0) if at <= place]
            self._replay = self._replayed(Replay.at_checkpoint(row, texts), rows, log, seen, first=place)

    def verify(self) -> int:
        """Take up the log from its first entry, and return its length."""
        with self.telling.lock:
            self.telling.ledger = self.stated_facts()["id"]
            seen = self.telling.seen()  # before the snapshot: neither of them ever runs ahead of the ledger
            with self._lock, self.kept_in.reading() as rows:
                self._replay = None
                self._replay = replay = self._replayed(Replay(), rows, rows.log(0), seen, first=0)
            # A crash may leave a new ledger with one row that nobody was told.
            if replay.newest[0] > 0 and self.telling.refuse_the_forgetful():
                return self.verify()
            return replay.newest[0] + 1

    def _replayed(self, replay: Replay, rows: Rows, log: Iterable[Row], seen: list[Seen], *, first: int) -> Replay:
        """A state after further rows, each of which was seen where a row was seen, and what is kept beside them checked."""
        replay.follow(log, seen)
        if replay.newest[0] < 0:
            raise LedgerTampered("The ledger's log is empty: it was edited outside dpmine.")
        for each in seen:
            each.check_end(replay.newest[0])
        if replay.state.facts.get("id") != self.telling.ledger:
            raise not_implied("facts")
        replay.check_answers(rows.answers(first), first)
        replay.check_checkpoints(rows.checkpoints(first))
        return replay
