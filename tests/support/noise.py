"""Sources of noise that a test decides: none at all, or numbers laid down beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Silent:
    """Adds nothing, and keeps at what scale how many numbers were asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Fraction, int]] = []

    @property
    def scales(self) -> list[Fraction]:
        """The scale of every single number."""
        return [scale for scale, size in self.asked for _ in range(size)]

    def actual_scale(self, scale: Fraction) -> Fraction:
        return scale

    def discrete_laplace(self, scale: Fraction, size: int) -> Integers:
        self.asked.append((scale, size))
        return np.zeros(size, dtype=np.int64)


class Fixed:
    """Hands out the numbers it was given, over and over."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = np.array(numbers, dtype=np.int64)

    def actual_scale(self, scale: Fraction) -> Fraction:
        return scale

    def discrete_laplace(self, scale: Fraction, size: int) -> Integers:
        return np.resize(self._numbers, size)


class Decided(Silent):
    """Draws what a function says, by the number of the call and how many numbers it is to be."""

    def __init__(self, draw: Callable[[int, int], Sequence[int]]) -> None:
        super().__init__()
        self._draw = draw

    def discrete_laplace(self, scale: Fraction, size: int) -> Integers:
        drawn = np.array(self._draw(len(self.asked), size), dtype=np.int64)
        self.asked.append((scale, size))
        assert drawn.shape == (size,)
        return drawn
