"""The rows of an encoded table as the memory engine's rooms read them: chunk by chunk, under a ledger's split key."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import HashedPart, Recode, RowKey
from dpmine.engines.cache import Cache, cache_name
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.hashing import row_parts
from dpmine.engines.memory import sizes

Integers = NDArray[np.int64]
Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """An encoded table, and the key by which its rows fall into parts."""

    table: EncodedTable
    split_key: bytes

    @property
    def count(self) -> int:
        return self.table.rows

    @property
    def cache(self) -> Cache:
        return self.table.cache

    def chunks(self, length: int | None = None) -> Iterator[slice]:
        length = length or sizes.CHUNK
        for start in range(0, self.count, length):
            yield slice(start, min(start + length, self.count))

    def codes(self, attribute: str) -> Codes:
        return self.table.codes[attribute]

    def values(self, attribute: str) -> Codes:
        return self.table.values[attribute]

    def last_value(self, attribute: str) -> int:
        """The largest number that a value has; a gap's is one more."""
        return self.table.schema.ordered(attribute, "it has no values").values - 1

    def source_size(self, key: RowKey) -> int:
        """How many values there are of what a row is looked up by: codes of a recoded attribute, or the key's own."""
        return self.table.schema.single(key.attribute).size if isinstance(key, Recode) else key.size

    def parts(self, key: HashedPart) -> Codes:
        """The part of every row, remembered."""
        name = self.name("parts", key)
        parts: Codes | None = self.cache.get(name)
        if parts is None:
            parts = row_parts(self.table, self.split_key, key.salt, key.weights)
            self.cache.put(name, parts, parts.nbytes)
        return parts

    def name(self, kind: str, item: object) -> bytes:
        """What the cache knows something by that was made of these rows."""
        return cache_name(kind, item, (), self.split_key)
