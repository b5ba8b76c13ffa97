"""The one source of random bits: the operating system.

Nothing is buffered and there is no state in this process, so a forked worker can never repeat its parent's bits.
There is no seed. Tests inject a source of their own; nothing in the public API does.
"""

import os

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]


class Entropy:
    """Fair random bits from the operating system's generator (getrandom)."""

    def bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def words(self, count: int) -> Words:
        """`count` independent uniform 32-bit words."""
        return np.frombuffer(self.bytes(4 * count), dtype="<u4")

    def bits(self, count: int) -> int:
        """A uniform integer of `count` bits."""
        return int.from_bytes(self.bytes((count + 7) // 8), "little") & ((1 << count) - 1)

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound), by rejection."""
        if bound < 1:
            raise ValueError("there is no integer below 0 to draw")
        width = (bound - 1).bit_length()
        while True:
            drawn = self.bits(width)
            if drawn < bound:
                return drawn

    def order(self, count: int) -> NDArray[np.intp]:
        """A uniform permutation: the order of 64-bit tags, drawn again if two are equal."""
        while True:
            tags = np.frombuffer(self.bytes(8 * count), dtype="<u8")
            order = np.argsort(tags, kind="stable")
            if np.all(np.diff(tags[order]) != 0):
                return order
