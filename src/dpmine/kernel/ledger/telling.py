"""Telling heads: each new one goes to the anchor, and to the witness if there is one, before anything is released.

A head is told after its commit, never before: neither of them ever runs ahead of the ledger. What they are, files or
programs, is the owner's to say (`dpmine.owner`); a ledger only needs them to remember.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from dpmine.base.errors import LedgerError, LedgerTampered
from dpmine.kernel.ledger.chain import Seen
from dpmine.language.answers import Head


class Anchor(Protocol):
    """Remembers the heads of one ledger, beside it. Raises a `LedgerError` where it cannot."""

    def make(self) -> None:
        """Get ready for a ledger that is being made, before the ledger itself."""
        ...

    def append(self, head: Head) -> None: ...

    def heads(self, since: int = 0) -> list[Head]:
        """What it was told; heads of earlier rows than `since` may be left out."""
        ...

    def has_heads(self) -> bool: ...


class Witness(Protocol):
    """Remembers heads of ledgers elsewhere. Every method raises a `LedgerError` if it cannot be reached."""

    def make(self) -> None:
        """Get ready for a ledger that is being made."""
        ...

    def heads(self, ledger: str, since: int = 0) -> list[Head]:
        """The heads that it was told of a ledger: all from a row on, or only the newest."""
        ...

    def news(self, ledger: str) -> list[Head]:
        """What others told it about this ledger since it was last looked at, as far as it says so."""
        ...

    def tell(self, ledger: str, head: Head) -> list[Head]:
        """Make it remember a head; returns that one and what others told it meanwhile, as far as it says so."""
        ...


class Speaker(Protocol):
    """Whose heads are told."""

    def newest_head(self) -> Head: ...

    def holds(self, head: Head) -> bool:
        """Whether its log has this row."""
        ...


class Telling:
    """Who is told a ledger's heads, and how far they have been told."""

    def __init__(self, anchor: Anchor | None, witness: Witness | None, at_step: Callable[[str], None]) -> None:
        self.anchor = anchor
        self.witness = witness
        self.ledger = ""  # what the witness calls it
        self.lock = threading.RLock()  # always taken before the ledger's own
        self._at_step = at_step
        self._anchored = -1  # every row up to this one is known to be covered by the anchor
        self._witnessed = -1  # and by the witness
        self._untold: Head | None = None  # a head that could not be told

    def make(self, ledger: str) -> None:
        """For a ledger that is being made. The anchor first, so that a crash leaves no ledger without one; a witness that
        cannot be reached is better found out now."""
        self.ledger = ledger
        if self.anchor is not None:
            self.anchor.make()
        if self.witness is not None:
            self.witness.make()
            self.witness.heads(self.ledger)

    def seen(self, since: int = 0) -> list[Seen]:
        """What each of them has seen, from a row on."""
        found = []
        if self.anchor is not None:
            found.append(Seen("anchor", self.anchor.heads(since), since))
            self._anchored = found[-1].newest
        if self.witness is not None:
            found.append(Seen("witness", self.witness.heads(self.ledger, since), since))
            self._witnessed = found[-1].newest
        return found

    def refuse_the_knowing(self) -> None:
        """For a ledger without any row: refuse an anchor that has seen some."""
        if self.anchor is not None and self.anchor.has_heads():
            raise LedgerTampered("The ledger is empty, but its anchor has seen rows. Put the newest ledger file back.")

    def refuse_the_forgetful(self) -> bool:
        """For a ledger of more than one row: refuse an anchor or a witness that knows nothing of it.

        True if one of them knew nothing when it was looked at and does now: the ledger was just being made.
        """
        if self.anchor is not None and self._anchored < 0 and not self.anchor.has_heads():
            raise LedgerTampered("The ledger's anchor is empty. Put the newest anchor back beside the ledger.")
        if self.witness is None or self._witnessed >= 0:
            return False
        if not self.witness.heads(self.ledger):
            raise LedgerTampered("The witness was told nothing of this ledger. Name the one that the ledger was made with.")
        return True

    def tell(self, speaker: Speaker, head: Head, step: str = "head") -> None:
        """Put a head where no restored ledger takes it back. A newer head covers older rows."""
        try:
            if self.anchor is not None and head.sequence > self._anchored:
                self.anchor.append(head)
                self._anchored = max(self._anchored, head.sequence)
            self._at_step(f"{step}-anchored")
            if self.witness is not None and head.sequence > self._witnessed:
                self._tell_witness(self.witness, speaker, head)
            self._at_step(f"{step}-witnessed")
        except (LedgerError, RecursionError, MemoryError):
            self._untold = head
            raise

    def catch_up(self, speaker: Speaker) -> None:
        """Before a charge: what could not be told must be told first, or charges would pile up that nobody answers."""
        untold = self._untold
        if untold is not None:
            self.tell(speaker, untold)
            self._untold = None

    def _tell_witness(self, witness: Witness, speaker: Speaker, head: Head) -> None:
        """One thread at a time; what the others committed meanwhile is covered by the newest head."""
        with self.lock:
            newest = speaker.newest_head()
            if head.sequence <= self._witnessed:
                return
            _check_told(speaker, witness.news(self.ledger))  # before we tell: a stale copy must not spoil the true witness
            _check_told(speaker, witness.tell(self.ledger, newest))
            self._witnessed = newest.sequence


def _check_told(speaker: Speaker, heads: list[Head]) -> None:
    for told in heads:
        if not speaker.holds(told):
            raise LedgerTampered(
                f"The ledger's witness was told another row {told.sequence}: a copy of the ledger is used elsewhere."
            )
