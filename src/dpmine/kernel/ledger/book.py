"""The ledger: what was granted, what was spent and what was answered, failing closed.

The spending protocol is charge -> compute -> store -> release. `reserve` charges in one durable transaction, under
the lock in which the odometers are read; `store` keeps the answer's bytes; only stored bytes are ever released. A
request that dies in between stays charged. The same request asked again gets the stored bytes, or may take over once
with a new fencing token. Two accounts are charged, each by the increase of its own odometer: the analyst's against
the allotment, and the data set's (over everybody's queries) against the cap.

All that is known follows from the log (`log`, `replay`), and what is kept beside it is held against it. Each head is told to
the anchor, and to the witness if there is one, before any release (`telling`). No module here knows a database (`store`).
"""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime

from dpmine.base.epsilon import format_units
from dpmine.base.errors import LedgerError, RequestError, RequestInProgress
from dpmine.budget.renewal import Renewal
from dpmine.codes.answers import Head
from dpmine.kernel.ledger.accounts import CURRENCY, DATASET, Account, Request, Reservation, Stored, short_of_budget
from dpmine.kernel.ledger.chain import answer_hash
from dpmine.kernel.ledger.guard import failing_closed
from dpmine.kernel.ledger.log import FORMAT, Log
from dpmine.kernel.ledger.replay import Increase, not_implied
from dpmine.kernel.ledger.store import Rows, Store
from dpmine.kernel.ledger.telling import Memory, Telling

NEIGHBOURS = "add or remove one row"
PATIENCE = 2.0  # seconds to wait for somebody else's answer to the same request before taking over
POLL = 0.01


class Ledger:
    """One data set's ledger."""

    @failing_closed
    def __init__(
        self,
        store: Store,
        *,
        dataset: str,
        cap: int | None,
        neighbours: str = NEIGHBOURS,
        renewal: Renewal | None = None,
        anchor: Memory | None = None,
        witness: Memory | None = None,
        create: bool = True,
        at_step: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.kept_in = store
        self._at_step = at_step
        self._log = Log(store, Telling(anchor, witness, at_step), at_step)
        self._neighbours = neighbours
        self._renewal = renewal
        try:
            if not (self._log.is_new() and self._create(dataset, cap, create)):
                self._open(dataset, cap)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._log.close()

    def leave(self) -> None:
        """Before the process forks: whoever opens a ledger sees to it that this is called (`dpmine.base.forking`)."""
        self._log.leave()

    def go_on(self) -> None:
        """After a fork, on either side."""
        self._log.go_on()

    # -- opening --------------------------------------------------------------------------------------------------

    def _create(self, dataset: str, cap: int | None, create: bool) -> bool:
        """Write a new ledger; False if another process did so first."""
        if not create:
            raise LedgerError(f"The file {self.kept_in.name!r} is not a ledger.")
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
            "witness": "yes" if self._log.telling.has_witness else "no",
        }
        return self._log.begin(facts["id"], {"do": "create", "cap": cap, "facts": facts})

    def _open(self, dataset: str, cap: int | None) -> None:
        has_witness = self._log.telling.has_witness
        if has_witness and self._log.stated_facts()["witness"] == "no":
            raise LedgerError("This ledger was made without a witness, which can only be named when a ledger is made.")
        self._log.read()
        if not has_witness and self.fact("witness") == "yes":
            raise LedgerError(
                "This ledger has a witness, which must be asked. Name it: dm.open(..., witness=...), "
                "dpmine --witness ..., or the environment variable DPMINE_WITNESS."
            )
        self._log.tell(self._log.known.head)  # a crash may have left the newest row without its line
        if self.fact("dataset") != dataset:
            raise LedgerError(f"This ledger belongs to the data set {self.fact('dataset')!r}, not to {dataset!r}.")
        if self.fact("neighbours") != self._neighbours:
            raise LedgerError(f"This ledger counts for {self.fact('neighbours')!r}; the schema says {self._neighbours!r}.")
        stated_renewal = Renewal.parse(self.fact("renewal"))
        if self._renewal is not None and self._renewal != stated_renewal:
            raise LedgerError(f"This ledger's renewal is {stated_renewal or 'none'}, not {self._renewal}.")
        self._renewal = stated_renewal
        stated_cap = self._log.known.state.accounts[DATASET].allotment
        if cap is not None and cap != stated_cap:
            raise LedgerError(f"This ledger's cap is epsilon {format_units(stated_cap)}, not {format_units(cap)}.")

    # -- accounts -------------------------------------------------------------------------------------------------

    def fact(self, name: str) -> str:
        return self._log.known.state.facts[name]

    @failing_closed
    def account(self, name: str) -> Account:
        """An analyst's account; DATASET is the data set's own."""
        with self._log.looking():
            account = self._log.known.state.accounts.get(name)
        if account is None:
            raise RequestError(f"The owner has granted nothing to {name!r}.")
        return self._with_renewals(account)

    def _with_renewals(self, account: Account) -> Account:
        """The data set's cap grows by what the owner's policy has added so far; allotments are the owner's to raise."""
        if account.name != DATASET or self._renewal is None:
            return account
        return replace(account, allotment=account.allotment + self._renewal.added(datetime.now(UTC)))

    @failing_closed
    def grant(self, analyst: str, units: int) -> None:
        """Set an analyst's allotment in all. Granting the same again changes nothing."""
        if not analyst or len(analyst) > 200 or not analyst.isprintable():
            raise RequestError("An analyst needs a name of 1 to 200 printable characters.")
        self._log.catch_up()
        with self._log.transaction() as rows:
            known = self._log.known.state.accounts.get(analyst)
            if known is not None and (known.allotment, known.revoked) == (units, False):
                return
            head = self._log.append(rows, {"do": "grant", "analyst": analyst, "units": units})
        self._log.tell(head)

    @failing_closed
    def revoke(self, analyst: str) -> None:
        """Close an analyst's account. What was spent stays spent."""
        if analyst == DATASET:
            raise RequestError("Name the analyst whose access ends.")
        self.account(analyst)
        self._log.catch_up()
        with self._log.transaction() as rows:
            head = self._log.append(rows, {"do": "revoke", "analyst": analyst})
        self._log.tell(head)

    # -- the protocol ---------------------------------------------------------------------------------------------

    @failing_closed
    def reserve(self, request: Request, *, patience: float = PATIENCE) -> Reservation | Stored:
        """Charge a request, or return its stored answer. Waits a little if somebody else is answering it."""
        self._log.catch_up()
        deadline = time.monotonic() + patience
        while True:
            outcome = self._try_reserve(request, take_over=time.monotonic() >= deadline)
            if isinstance(outcome, Stored):
                self._log.tell(outcome.head)  # whoever stored it may have died before telling it
            if outcome is not None:
                return outcome
            time.sleep(POLL)

    def _try_reserve(self, request: Request, *, take_over: bool) -> Reservation | Stored | None:
        with self._log.transaction() as rows:
            account = self._log.known.account_within(request.analyst)
            known = self._log.known.known_request(request)
            key, token = request.key, os.urandom(16).hex()
            if known is None:
                head = self._charge(rows, request, account, token)
            else:
                key, state = known
                if state.sequence is not None:
                    return self._stored(rows, request.analyst, key)
                if not take_over:
                    return None
                head = self._resume(rows, request.analyst, key, state.resumed, token)
            self._at_step("reserving")
        self._at_step("reserved")
        self._log.tell(head, "reserve")
        return Reservation(request.analyst, key, token)

    def _resume(self, rows: Rows, analyst: str, key: str, resumed: bool, token: str) -> Head:
        if resumed:
            raise RequestInProgress(
                "This request was charged and is being answered elsewhere, or died there. Try again later; "
                "if it never ends, ask with a slightly different epsilon, which is a new charge."
            )
        return self._log.append(rows, {"do": "resume", "analyst": analyst, "key": key, "token": token})

    def _charge(self, rows: Rows, request: Request, account: Account, token: str) -> Head:
        """Under the lock: read both odometers, compute both increases, check both limits, write everything."""
        if request.currency != self.fact("currency"):
            raise RequestError(f"This ledger counts in {self.fact('currency')!r}, not in {request.currency!r}.")
        increases = self._increases(request)
        costs = [increase for increase, _ in increases]
        for holder, cost in zip((account, self._dataset_account()), costs, strict=True):
            if cost > holder.allotment - holder.spent:
                raise short_of_budget(holder, costs[0])
        return self._log.append(rows, {"do": "reserve", "cost": costs, "token": token, **request.form()}, increases)

    def _increases(self, request: Request) -> list[Increase]:
        """What the request would add to its analyst's odometer and to the data set's."""
        return [self._log.known.increase(name, request.root, request.charge) for name in (request.analyst, DATASET)]

    def _dataset_account(self) -> Account:
        return self._with_renewals(self._log.known.state.accounts[DATASET])

    @failing_closed
    def preview(self, request: Request) -> tuple[int, bool, bool]:
        """What the request would cost its analyst now, whether the data set's cap has room for it, and whether it is already
        answered. Charges nothing.

        How much the cap has left follows from what others asked: it is looked at only for what the analyst could pay.
        """
        with self._log.looking():
            account = self._log.known.account_within(request.analyst)
            known = self._log.known.known_request(request)
            if known is not None:
                return 0, True, known[1].sequence is not None
            (cost, _), (increase, _) = self._increases(request)
            if cost > account.remaining:
                return cost, True, False
            dataset = self._dataset_account()
            return cost, increase <= dataset.allotment - dataset.spent, False

    @failing_closed
    def store(self, reservation: Reservation, answer: bytes, *, patience: float = 60.0) -> Stored:
        """Keep the answer, if this attempt still holds the request; return the bytes that may be released."""
        with self._log.transaction() as rows:
            state = self._log.known.state.requests.get((reservation.analyst, reservation.key))
            holds = state is not None and state.sequence is None and state.token == reservation.token
            if holds:
                entry = {"do": "answer", "analyst": reservation.analyst, "key": reservation.key}
                head = self._log.append(rows, {**entry, "sha256": answer_hash(answer)})
                rows.keep_answer(head.sequence, answer)
            self._at_step("storing")
        self._at_step("stored")
        if holds:
            self._log.tell(head, "store")
        return self._wait_for_stored(reservation, patience)

    def _wait_for_stored(self, reservation: Reservation, patience: float) -> Stored:
        """The stored bytes: ours, or those of the attempt that took this request over."""
        deadline = time.monotonic() + patience
        while True:
            stored = self.stored(reservation.analyst, reservation.key)
            if stored is not None:
                return stored
            if time.monotonic() >= deadline:
                raise RequestInProgress("Another attempt took this request over and has not answered yet. Try again later.")
            time.sleep(POLL)

    @failing_closed
    def stored(self, analyst: str, key: str) -> Stored | None:
        """The stored answer of an analyst's request, if there is one."""
        with self._log.looking() as rows:
            stored = self._stored(rows, analyst, key)
        if stored is not None:
            self._log.tell(stored.head)  # whoever stored it may have died before telling it
        return stored

    def _stored(self, rows: Rows, analyst: str, key: str) -> Stored | None:
        """The stored bytes, if they are those whose hash is in the log."""
        state = self._log.known.state.requests.get((analyst, key))
        if state is None or state.sequence is None:
            return None
        answer = rows.answer(state.sequence)
        if answer is None or answer_hash(answer) != state.answer:
            raise not_implied("answers")
        return Stored(answer, Head(state.sequence, state.digest), state.cost)

    # -- looking back ---------------------------------------------------------------------------------------------

    def looking(self) -> AbstractContextManager[Rows]:
        """The rows as they stand, of a log that goes on where it was left: for whoever reads it."""
        return self._log.looking()

    @failing_closed
    def verify(self) -> int:
        """Check the log from its first entry: chain, anchor, witness, costs, answers and checkpoints. Returns its length."""
        return self._log.verify()
