"""Tallies: row counts by cell and some keys at once, of which the counts of several groups of keys are sums."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import RowKey
from dpmine.engines.memory import sizes
from dpmine.engines.memory.rows import Codes, Integers


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """Row counts by cell and some keys at once, of which the counts of several groups of keys are sums.

    A group has all the `common` keys and one of the `single` ones.
    """

    groups: Mapping[tuple[RowKey, ...], int | None]
    """Each group with the place of its last key among the single ones; None for the group without keys."""
    common: tuple[RowKey, ...]
    single: tuple[RowKey, ...]
    total: Integers

    def add(self, ids: Codes | None, values: dict[RowKey, NDArray[Any]], rows: int) -> None:
        """Count a chunk: rows are numbered by cell and keys in mixed radix."""
        # Every number, and every step on the way to it, is below total.size, so 16 bits hold it where they hold that.
        number_type: Any = np.uint16 if self.total.size < 2**16 else np.intp
        numbers = None if ids is None else ids.astype(number_type)
        for key in (*self.common, *self.single):
            if numbers is None:
                numbers = values[key].astype(number_type)
            else:
                numbers *= number_type(key.size)
                numbers += values[key]
        if numbers is None:
            self.total[0] += rows
        else:
            self.total[...] += np.bincount(numbers, minlength=self.total.size).reshape(self.total.shape)

    def by_group(self, cells: int) -> Iterator[tuple[tuple[RowKey, ...], Integers]]:
        first = 1 + len(self.common)
        for group, place in self.groups.items():
            others = tuple(first + other for other in range(len(self.single)) if other != place)
            yield group, self.total[:cells].sum(axis=others) if others else self.total[:cells]


def tallies_of(groups: Sequence[tuple[RowKey, ...]], bins: int, rows: int) -> list[Tally]:
    """Which groups to count together: as many as make few combinations, and no more than there are rows."""
    by_common: dict[tuple[RowKey, ...], dict[RowKey, None]] = {}
    tallies: list[Tally] = []
    for group in dict.fromkeys(groups):
        if group:
            by_common.setdefault(group[:-1], {})[group[-1]] = None
        else:
            tallies.append(Tally({(): None}, (), (), np.zeros(bins, dtype=np.int64)))
    for common, keys in by_common.items():
        smallest = bins * math.prod(key.size for key in common)
        together: list[list[RowKey]] = []
        for key in keys:
            size = smallest * math.prod(other.size for other in together[-1]) * key.size if together else 0
            if together and size <= min(sizes.FUSED, rows):
                together[-1].append(key)
            else:
                together.append([key])
        for single in together:
            shape = (bins, *(key.size for key in (*common, *single)))
            of = {(*common, key): place for place, key in enumerate(single)}
            tallies.append(Tally(of, common, tuple(single), np.zeros(shape, dtype=np.int64)))
    return tallies
