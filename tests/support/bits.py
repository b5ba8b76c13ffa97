"""Random bits that a test decides or counts, and how the kernel reads them."""

from __future__ import annotations

from dpmine.kernel.samplers.entropy import Entropy


class Script(Entropy):
    """Bits prepared by the test, handed out in the order in which the kernel asks; asking for more is a failure."""

    def __init__(self, *pieces: bytes) -> None:
        self._rest = b"".join(pieces)

    def bytes(self, count: int) -> bytes:
        assert count <= len(self._rest), "the code under test drew more bits than the script holds"
        drawn, self._rest = self._rest[:count], self._rest[count:]
        return drawn

    @property
    def used_up(self) -> bool:
        return not self._rest


class Metered(Entropy):
    """The operating system's bits, counted."""

    def __init__(self) -> None:
        self.drawn = 0

    def bytes(self, count: int) -> bytes:
        self.drawn += count
        return super().bytes(count)


def word(number: int) -> bytes:
    """What `Entropy.words` reads as one 32-bit word."""
    return number.to_bytes(4, "little")


def bits64(number: int) -> bytes:
    """What `Entropy.bits(64)` reads."""
    return number.to_bytes(8, "little")
