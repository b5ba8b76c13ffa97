"""A cache by value, bounded in bytes, safe between threads: the least recently used entries leave first."""

from __future__ import annotations

import threading
from typing import Any

from dpmine.forking import leave_before_forks


class Cache:
    """Exact aggregates and row ids, kept inside the trust boundary."""

    def __init__(self, most_bytes: int = 1 << 30) -> None:
        self._most = most_bytes
        self._held = 0
        self._entries: dict[bytes, tuple[Any, int]] = {}
        self._lock = threading.Lock()
        leave_before_forks(self)

    def leave(self) -> None:
        """Before a fork: no thread may be inside, or the child's lock would never open."""
        self._lock.acquire()

    def go_on(self) -> None:
        self._lock.release()

    def get(self, name: bytes) -> Any | None:
        with self._lock:
            entry = self._entries.pop(name, None)
            if entry is None:
                return None
            self._entries[name] = entry  # now the youngest
            return entry[0]

    def put(self, name: bytes, item: Any, size: int) -> None:
        with self._lock:
            self._held += size - self._entries.pop(name, (None, 0))[1]
            self._entries[name] = (item, size)
            while self._held > self._most and len(self._entries) > 1:
                self._held -= self._entries.pop(next(iter(self._entries)))[1]

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._held = 0
