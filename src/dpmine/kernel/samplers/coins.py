"""Exact choices by one uniform real: in which of some intervals it lies, with integers only.

Where intervals begin and end is given by enclosures that can be made as narrow as needed; the uniform real is drawn bit by
bit. As soon as the drawn bits can only lie in one interval it is decided, so its law is exactly the stated one.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from dpmine.base.exponentials import exp_bounds
from dpmine.kernel.samplers.entropy import Entropy

Bounds = Callable[[int], tuple[int, int]]
"""bits -> (low, high) with low <= p * 2^bits <= high."""
Ends = Callable[[int], tuple[Sequence[int], Sequence[int]]]
"""bits -> lows and highs: those of number n enclose where interval n begins and the one before ends, from 0 to the total."""


def interval_of(entropy: Entropy, drawn: int, bits: int, ends: Ends) -> int:
    """In which of the intervals that tile [0, total) u * total lies; `drawn` are the first bits of the uniform real u."""
    while True:
        place = sure_interval(drawn, bits, *ends(bits))
        if place is not None:
            return place
        drawn = (drawn << 64) | entropy.bits(64)
        bits += 64


def sure_interval(drawn: int, bits: int, lows: Sequence[int], highs: Sequence[int]) -> int | None:
    """The interval that holds u * total whatever the further bits of u are, None if these enclosures cannot tell."""
    last = len(lows) - 2
    for place in range(last + 1):
        surely_after_start = place == 0 or drawn * lows[-1] >= highs[place] << bits
        surely_before_end = place == last or (drawn + 1) * highs[-1] <= lows[place + 1] << bits
        if surely_after_start and surely_before_end:
            return place
    return None


def uniform_is_below(entropy: Entropy, drawn: int, bits: int, bounds: Bounds) -> bool:
    """Whether a uniform real in [0, 1) whose first `bits` bits are `drawn` lies below the enclosed probability."""

    def ends(bits: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        low, high = bounds(bits)
        return (0, low, 1 << bits), (0, high, 1 << bits)

    return interval_of(entropy, drawn, bits, ends) == 0


def coin_exp(entropy: Entropy, x: Fraction) -> bool:
    """True with probability exactly exp(-x)."""
    return uniform_is_below(entropy, entropy.bits(64), 64, lambda bits: exp_bounds(x, bits))
