"""Exact coins: decides whether a uniform real lies below exp(-x), with integers only.

A probability is given by enclosures that can be made as narrow as needed; a uniform real is drawn bit by bit. As soon
as the drawn bits leave the enclosure the coin is decided, so its law is exactly the stated one.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpmine.base.exponentials import exp_bounds
from dpmine.kernel.samplers.entropy import Entropy

Bounds = Callable[[int], tuple[int, int]]
"""bits -> (low, high) with low <= p * 2^bits <= high."""


def uniform_is_below(entropy: Entropy, drawn: int, bits: int, bounds: Bounds) -> bool:
    """Whether a uniform real in [0, 1) whose first `bits` bits are `drawn` lies below the enclosed probability."""
    while True:
        low, high = bounds(bits)
        if drawn + 1 <= low:
            return True
        if drawn >= high:
            return False
        drawn = (drawn << 64) | entropy.bits(64)
        bits += 64


def coin_exp(entropy: Entropy, x: Fraction) -> bool:
    """True with probability exactly exp(-x)."""
    return uniform_is_below(entropy, entropy.bits(64), 64, lambda bits: exp_bounds(x, bits))
