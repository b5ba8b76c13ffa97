"""Open ledgers step aside while the process forks.

SQLite's locks belong to a process, and a child that inherits a connection believes to hold locks that it does not hold:
the parent may then delete a write-ahead log into which the child still writes, and charges are lost. So every ledger
closes its connection before a fork, and each side connects anew when it next needs one.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Leaves(Protocol):
    def leave(self) -> None: ...

    def go_on(self) -> None: ...


_open: weakref.WeakSet[Leaves] = weakref.WeakSet()
_one_fork_at_a_time = threading.Lock()
_left: list[Leaves] = []


def leave_before_forks(ledger: Leaves) -> None:
    _open.add(ledger)


def forget_at_forks(ledger: Leaves) -> None:
    _open.discard(ledger)


def _before() -> None:
    _one_fork_at_a_time.acquire()
    for ledger in list(_open):
        ledger.leave()
        _left.append(ledger)


def _after() -> None:
    while _left:
        _left.pop().go_on()
    _one_fork_at_a_time.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
