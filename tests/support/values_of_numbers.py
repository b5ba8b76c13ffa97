"""An independent account of the values and cells of a numeric attribute, in fractions, from what the schema states."""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from fractions import Fraction

from dpmine.facts.kinds.numeric import Numeric

DECADE = tuple(map(Fraction, ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")))


@functools.lru_cache(maxsize=64)
def resolution_of(attribute: Numeric) -> Fraction:
    """What is stated, or the power of ten, at most 1, that writes the bounds, the step and the edges."""
    if attribute.resolution is not None:
        return Fraction(attribute.resolution)
    written = [attribute.low, attribute.high, *attribute.edges, *([] if attribute.step is None else [attribute.step])]
    power = 0
    while any((Fraction(number) * 10**power).denominator != 1 for number in written):
        power += 1
    return Fraction(1, 10**power)


@functools.lru_cache(maxsize=64)
def values_of(attribute: Numeric) -> int:
    return int((Fraction(attribute.high) - Fraction(attribute.low)) // resolution_of(attribute)) + 1


def point_of(attribute: Numeric, value: int) -> Fraction:
    return Fraction(attribute.low) + value * resolution_of(attribute)


def edges_of(attribute: Numeric) -> list[Fraction]:
    """Where the cells begin, as the schema states it."""
    low, high = Fraction(attribute.low), Fraction(attribute.high)
    if attribute.step is not None:
        return [low + place * Fraction(attribute.step) for place in range(int((high - low) // Fraction(attribute.step)) + 1)]
    if attribute.edges:
        return [low, *map(Fraction, attribute.edges)]
    sizes = [part * Fraction(10) ** power for power in range(-12, 16) for part in DECADE]
    sizes = [size for size in sizes if size >= resolution_of(attribute)]
    return [low, *(edge for edge in sorted([Fraction(0), *sizes, *(-size for size in sizes)]) if low < edge <= high)]


@functools.lru_cache(maxsize=64)
def starts_of(attribute: Numeric) -> list[int]:
    """The first value at or above each edge; an edge above all values, or with none before the next, begins no cell."""
    above = [-((Fraction(attribute.low) - edge) // resolution_of(attribute)) for edge in edges_of(attribute)]
    return sorted({int(value) for value in above if value < values_of(attribute)})


def cell_of(attribute: Numeric, value: int) -> int:
    return bisect_right(starts_of(attribute), value) - 1


def nearest_of(attribute: Numeric, number: Fraction) -> int:
    """Clamped to the first and the last value, then the nearest one; of two equally near ones the higher."""
    steps = (number - Fraction(attribute.low)) / resolution_of(attribute)
    return math.floor(min(max(steps, Fraction(0)), Fraction(values_of(attribute) - 1)) + Fraction(1, 2))


def nearest_of_double(attribute: Numeric, number: float) -> int:
    """As documented for doubles: one subtraction, one division and one rounding of what was clamped."""
    low, high = float(point_of(attribute, 0)), float(point_of(attribute, values_of(attribute) - 1))
    return math.floor((min(max(number, low), high) - low) / float(resolution_of(attribute)) + 0.5)
