"""A cache by value, bounded in bytes, safe between threads: the least recently used entries leave first."""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.forking import leave_before_forks
from dpmine.base.wire import to_wire
from dpmine.codes.rows import Branch, Cells, Recode, RowKey, is_small
from dpmine.codes.runs import labels_by_code

Integers = NDArray[np.int64]


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

    def remembered(self, name: bytes, make: Callable[[], tuple[Integers, ...]]) -> tuple[Integers, ...]:
        """What is known by that name, or what is made now."""
        found: tuple[Integers, ...] | None = self.get(name)
        if found is None:
            found = make()
            self.put(name, found, sum(array.nbytes for array in found))
        return found

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._held = 0


def cached_counts(
    cache: Cache,
    split_key: bytes,
    cells: Cells,
    groups: Sequence[tuple[RowKey, ...]],
    count: Callable[[Cells, Sequence[tuple[RowKey, ...]]], list[Integers]],
    *,
    keyed: bool = False,
) -> list[Integers]:
    """The counts of every group, counting only those that are not known yet, in one pass.

    Cells of one attribute's values need no pass of their own where that attribute is counted anyway.
    """
    by = _one_attribute(cells)
    if by is not None and any(_reads(group, by) for group in groups):
        within = [group for group in groups if _reads(group, by)]
        others = [group for group in groups if not _reads(group, by)]
        whole = Cells(cells.steps, None)
        found_whole = cached_counts(cache, split_key, whole, within, count, keyed=keyed)
        found_cells = cached_counts(cache, split_key, cells, others, count, keyed=keyed) if others else []
        known = dict(zip(others, found_cells, strict=True))
        known |= {group: _into_cells(by, group, counts[0]) for group, counts in zip(within, found_whole, strict=True)}
        return [known[group] for group in groups]
    kind = f"counts {split_key.hex()} " if keyed else "counts"
    where = to_wire(cells)
    names = [_name(kind, where, group, split_key) for group in groups]
    found: list[Integers | None] = [cache.get(name) for name in names]
    missing = [place for place, counts in enumerate(found) if counts is None]
    if missing:
        fresh = count(cells, [groups[place] for place in missing])
        for place, counts in zip(missing, fresh, strict=True):
            cache.put(names[place], counts, counts.nbytes)
            found[place] = counts
    return [counts for counts in found if counts is not None]


def _one_attribute(cells: Cells) -> Recode | None:
    """The key of cells that are the values of one key of one attribute, and nothing finer."""
    rules = cells.rules
    if isinstance(rules, Branch) and isinstance(rules.key, Recode) and all(child is None for child in rules.children):
        return rules.key
    return None


def _reads(group: tuple[RowKey, ...], by: Recode) -> bool:
    """Whether a group of keys tells the plain codes of the attribute that cells are made of."""
    return any(_is_plain(key, by.attribute) for key in group)


def _is_plain(key: RowKey, attribute: str) -> bool:
    return isinstance(key, Recode) and key.attribute == attribute and not key.runs


def _into_cells(by: Recode, group: tuple[RowKey, ...], counts: Integers) -> Integers:
    """The counts of all rows, of shape [*key sizes], sorted into the cells that the group's own attribute decides."""
    place = next(place for place, key in enumerate(group) if _is_plain(key, by.attribute))
    label_of_code = np.array(labels_by_code(by, group[place].size))
    in_cell = label_of_code == np.arange(by.size)[:, None]
    mask = in_cell.reshape((by.size, *(-1 if at == place else 1 for at in range(len(group)))))
    return np.where(mask, counts, 0)


def cache_name(kind: str, item: object, group: tuple[RowKey, ...], split_key: bytes) -> bytes:
    """The name of an aggregate, by value. Only what reads the split key depends on it."""
    return _name(kind, to_wire(item), group, split_key)


def _name(kind: str, item: bytes, group: tuple[RowKey, ...], split_key: bytes) -> bytes:
    name = kind.encode() + item + _group_name(group)
    return name + split_key if b'"hashed"' in name else name


def _group_name(group: tuple[RowKey, ...]) -> bytes:
    return _small_group_name(group) if all(map(is_small, group)) else b"".join(map(to_wire, group))


@functools.lru_cache(maxsize=4096)
def _small_group_name(group: tuple[RowKey, ...]) -> bytes:
    return b"".join(map(to_wire, group))
