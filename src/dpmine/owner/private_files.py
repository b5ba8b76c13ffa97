"""Files that only their owner may read: a ledger holds all answers and a key, an anchor and a witness hold its heads."""

import os
import threading
from pathlib import Path

from dpmine.base.forking import leave_before_forks

MODE = 0o600


class _OneAtATime:
    """Closing a file gives back all locks that this process has on it, SQLite's too: no connection may open meanwhile."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def leave(self) -> None:
        self.lock.acquire()

    def go_on(self) -> None:
        self.lock.release()


_making = _OneAtATime()
leave_before_forks(_making)


def make_private(path: Path) -> None:
    """Make an empty file unless there is one. Nobody else may read it from its first moment on, whatever the umask."""
    with _making.lock:
        try:
            file = os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, MODE)
        except FileExistsError:
            return
        os.close(file)
        path.chmod(MODE)  # a strict umask may have taken our own rights


def tighten(path: Path) -> None:
    """Take away what others may do with a file, where we may decide that: as its owner."""
    try:
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            path.chmod(mode & 0o700)
    except OSError:
        return  # not there, or somebody else's: then its mode is that one's decision
