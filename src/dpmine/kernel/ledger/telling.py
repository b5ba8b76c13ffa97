"""Telling heads: each new one goes to the anchor, and to the witness if there is one, before anything is released.

A head is told after its commit, never before: neither of them ever runs ahead of the ledger. What they are, files or
programs, is the owner's to say (`dpmine.owner`); a ledger only needs them to remember.
"""

import threading
from collections.abc import Callable
from typing import Protocol

from dpmine.base.errors import LedgerError, LedgerTampered
from dpmine.codes.answers import Head
from dpmine.kernel.ledger.chain import Seen


class Memory(Protocol):
    """Remembers heads of ledgers: an anchor beside one, or a witness elsewhere. Raises a `LedgerError` where it cannot."""

    def make(self) -> None:
        """Get ready for a ledger that is being made, before the ledger itself."""

    def heads(self, ledger: str, since: int = 0) -> list[Head]:
        """The heads that it was told of a ledger: all from a row on, or only the newest."""

    def news(self, ledger: str) -> list[Head]:
        """What others told it about this ledger since it was last looked at, as far as it says so."""

    def tell(self, ledger: str, head: Head) -> list[Head]:
        """Make it remember a head; returns that one and what others told it meanwhile, as far as it says so."""


class Speaker(Protocol):
    """Whose heads are told."""

    def newest_head(self) -> Head: ...

    def holds(self, head: Head) -> bool:
        """Whether its log has this row."""


class Telling:
    """Who is told a ledger's heads, and how far they have been told."""

    def __init__(self, anchor: Memory | None, witness: Memory | None, at_step: Callable[[str], None]) -> None:
        self.has_witness = witness is not None
        self.ledger = ""  # what the witness calls it
        self.lock = threading.RLock()  # always taken before the ledger's own
        self._memories = {name: memory for name, memory in (("anchor", anchor), ("witness", witness)) if memory is not None}
        self._told = dict.fromkeys(self._memories, -1)  # every row up to this one is known to be covered
        self._at_step = at_step
        self._untold: Head | None = None  # a head that could not be told

    def make(self, ledger: str) -> None:
        """For a ledger that is being made. The anchor first, so that a crash leaves no ledger without one; a witness that
        cannot be reached is better found out now."""
        self.ledger = ledger
        for memory in self._memories.values():
            memory.make()
            memory.heads(ledger)

    def seen(self, since: int = 0) -> list[Seen]:
        """What each of them has seen, from a row on."""
        found = [Seen(name, memory.heads(self.ledger, since), since) for name, memory in self._memories.items()]
        self._told = {each.who: each.newest for each in found}
        return found

    def refuse_the_knowing(self) -> None:
        """For a ledger without any row: refuse an anchor that has seen some."""
        for name, memory in self._memories.items():
            if memory.heads(self.ledger):
                raise LedgerTampered(f"The ledger is empty, but its {name} has seen rows. Put the newest ledger file back.")

    def refuse_the_forgetful(self) -> bool:
        """For a ledger of more than one row: refuse an anchor or a witness that knows nothing of it.

        True if one of them knew nothing when it was looked at and does now: the ledger was just being made.
        """
        forgetful = [name for name, newest in self._told.items() if newest < 0]
        for name in forgetful:
            if not self._memories[name].heads(self.ledger):
                raise LedgerTampered(f"The ledger's {name} was told nothing of this ledger. Name or put back its own.")
        return bool(forgetful)

    def tell(self, speaker: Speaker, head: Head, step: str = "head") -> None:
        """Put a head where no restored ledger takes it back. A newer head covers older rows."""
        try:
            for name in ("anchor", "witness"):
                if head.sequence > self._told.get(name, head.sequence):
                    self._tell(name, speaker, head)
                self._at_step(f"{step}-{name}ed")
        except (LedgerError, RecursionError, MemoryError):
            self._untold = head
            raise

    def catch_up(self, speaker: Speaker) -> None:
        """Before a charge: what could not be told must be told first, or charges would pile up that nobody answers."""
        untold = self._untold
        if untold is not None:
            self.tell(speaker, untold)
            self._untold = None

    def _tell(self, name: str, speaker: Speaker, head: Head) -> None:
        """One thread at a time; what the others committed meanwhile is covered by the newest head."""
        with self.lock:
            newest, memory = speaker.newest_head(), self._memories[name]
            if head.sequence <= self._told[name]:
                return
            self._check_told(name, speaker, memory.news(self.ledger))  # first: a stale copy must not spoil the true witness
            self._check_told(name, speaker, memory.tell(self.ledger, newest))
            self._told[name] = newest.sequence

    def _check_told(self, name: str, speaker: Speaker, heads: list[Head]) -> None:
        for told in heads:
            if not speaker.holds(told):
                other = f"The ledger's {name} was told another row {told.sequence}"
                raise LedgerTampered(f"{other}: a copy of the ledger is used elsewhere.")
