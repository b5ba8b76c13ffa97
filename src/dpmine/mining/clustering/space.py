"""The space that points are clustered in: grid places as whole-number positions, the same for every engine."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import UNITS, Epsilon
from dpmine.base.errors import DpmineWarning, EpsilonError, RequestError
from dpmine.codes.rows import LARGEST_POSITION, MOST_DIMENSIONS
from dpmine.facts.kinds.numeric import MOST_GRID_POINTS, Numeric
from dpmine.facts.schema import Schema
from dpmine.language.model_keys import Nearest
from dpmine.mining.parameters import check_word

Points = NDArray[np.float64]
NONE, BOUNDS = "none", "bounds"
SCALINGS = (NONE, BOUNDS)
FAR_APART = 100  # public ranges that differ by a larger factor are hardly in one unit


@dataclass(frozen=True)
class Space:
    """Numeric attributes, and how long one step of each one's grid is, as a whole number of positions."""

    attributes: tuple[Numeric, ...]
    scales: tuple[int, ...]

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str] | None, scaling: str) -> Space:
        """The named attributes, or all numeric ones. Scaling "bounds" makes all equally long, "none" leaves them."""
        check_word("scaling", scaling, SCALINGS)
        numeric = [a.name for a in schema.of_kind(Numeric) if a.size > 1]
        chosen = numeric if names is None else list(names)
        found = _numeric(schema, chosen)
        steps = [float(a.step) if scaling == NONE else 1 / (a.size - 1) for a in found]
        longest = max(step * (a.size - 1) for step, a in zip(steps, found, strict=True))
        reach = LARGEST_POSITION - MOST_GRID_POINTS  # so that no rounding of a scale leads beyond the largest position
        scales = tuple(max(round(step / longest * reach), 1) for step in steps)
        return cls(found, scales)

    @classmethod
    def read(cls, schema: Schema, names: Sequence[str], scales: Sequence[int]) -> Space:
        """The space of a saved model."""
        found = _numeric(schema, names)
        if len(scales) != len(found) or any(type(scale) is not int or scale < 1 for scale in scales):
            raise RequestError("The model needs a scale for each of its attributes, a positive whole number.")
        space = cls(found, tuple(scales))
        if max((a.size - 1) * scale for a, scale in zip(found, scales, strict=True)) > LARGEST_POSITION:
            raise RequestError("The model's scales are impossible.")
        return space

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def dimensions(self) -> int:
        return len(self.attributes)

    @cached_property
    def extents(self) -> Points:
        """The largest position in each attribute."""
        longest = [(a.size - 1) * scale for a, scale in zip(self.attributes, self.scales, strict=True)]
        return np.array(longest, dtype=np.float64)

    def nearest(self, centres: Points) -> Nearest:
        """The nearest of some centres as a key; their positions are rounded to whole ones inside the box."""
        inside = np.rint(np.clip(centres, 0, self.extents)).astype(np.int64)
        return Nearest(self.names, self.scales, tuple(map(tuple, inside.tolist())))

    def values(self, positions: Points) -> Points:
        """Positions in the attributes' own units."""
        lows = np.array([float(a.low) for a in self.attributes])
        steps = np.array([float(a.step) for a in self.attributes])
        found: Points = lows + positions / np.array(self.scales) * steps
        return found

    def positions(self, codes: Sequence[NDArray[np.unsignedinteger]]) -> Points:
        """Encoded rows as positions."""
        scaled = [column.astype(np.float64) * scale for column, scale in zip(codes, self.scales, strict=True)]
        return np.stack(scaled, axis=1)


def nearest_of(points: Points, centres: Points) -> NDArray[np.intp]:
    """The number of each point's nearest centre."""
    away = np.sum(centres * centres, axis=1) - 2 * (points @ centres.T)
    found: NDArray[np.intp] = np.argmin(away, axis=1)
    return found


def check_sums(space: Space, epsilon: Epsilon) -> None:
    """Refuse, before anything is spent, sums of positions whose noise would not fit 64 bits at the widest radius."""
    if float(space.extents.sum()) * UNITS > epsilon.units * 2.0**49:
        raise EpsilonError("epsilon is too small for sums of offsets: the noise would not fit 64 bits.")


def warn_of_units(space: Space, scaling: str) -> None:
    """Say, from public ranges alone, when distances in the attributes' own units hardly depend on some of them."""
    ranges = {a.name: float(a.step) * (a.size - 1) for a in space.attributes}
    longest = max(ranges, key=ranges.__getitem__)
    drowned = [name for name, length in ranges.items() if length * FAR_APART < ranges[longest]]
    if scaling != NONE or not drowned:
        return
    warnings.warn(
        f"With scaling='none' distances hardly depend on {', '.join(map(repr, drowned))}: the range of {longest!r} is more "
        f"than {FAR_APART} times as long. Use scaling='bounds', which makes every attribute equally long.",
        DpmineWarning,
        stacklevel=4,  # whoever called fit
    )


def _numeric(schema: Schema, names: Sequence[str]) -> tuple[Numeric, ...]:
    """The named attributes, in which something can be near or far."""
    attributes = [schema.single(name) for name in names]
    if not attributes:
        raise RequestError("The schema has no numeric attribute to cluster by.")
    if len(set(names)) < len(names) or len(names) > MOST_DIMENSIONS:
        raise RequestError(f"Name 1 to {MOST_DIMENSIONS} different attributes to cluster by.")
    found: list[Numeric] = []
    for attribute in attributes:
        if not isinstance(attribute, Numeric) or attribute.size < 2:
            raise RequestError(f"{attribute.name!r} is not numeric (or has one value), so nothing is near or far in it.")
        found.append(attribute)
    return tuple(found)
