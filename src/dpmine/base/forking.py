"""What holds locks steps aside while the process forks.

A lock that another thread holds during a fork stays locked in the child for ever. SQLite's locks belong to a process
besides, and a child that inherits a connection believes to hold locks that it does not hold: the parent may then delete a
write-ahead log into which the child still writes, and charges are lost. So ledgers close their connection before a fork and
connect anew when they next need one, and caches hold their lock across it.
"""

import os
import threading
import weakref
from typing import Protocol


class Leaves(Protocol):
    """Something that lets go before a fork and goes on after it, on either side."""

    def leave(self) -> None: ...

    def go_on(self) -> None: ...


_open: weakref.WeakSet[Leaves] = weakref.WeakSet()
_one_at_a_time = threading.Lock()
_left: list[Leaves] = []


def leave_before_forks(holder: Leaves) -> None:
    with _one_at_a_time:
        _open.add(holder)


def _before() -> None:
    _one_at_a_time.acquire()
    for holder in list(_open):
        holder.leave()
        _left.append(holder)


def _after() -> None:
    while _left:
        _left.pop().go_on()
    _one_at_a_time.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
