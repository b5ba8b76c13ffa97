"""The space that points are clustered in: values as whole-number positions, the same for every engine."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import UNITS, Epsilon
from dpmine.base.errors import DpmineWarning, EpsilonError, RequestError
from dpmine.codes.rows import LARGEST_POSITION, MOST_DIMENSIONS
from dpmine.facts.encoding import Codes, positions_of_values
from dpmine.facts.kinds.numeric import MOST_GRID_POINTS, Numeric
from dpmine.facts.schema import Schema
from dpmine.language.model_keys import Nearest
from dpmine.language.predicates import And, IsMissing
from dpmine.mining.parameters import check_word
from dpmine.tables.private_table import PrivateTable

Points = NDArray[np.float64]
NONE, BOUNDS = "none", "bounds"
SCALINGS = (NONE, BOUNDS)
FAR_APART = 100  # public ranges that differ by a larger factor are hardly in one unit
FINE = 64  # positions between values, so that rounding a scale hardly changes how long an attribute is


@dataclass(frozen=True)
class Space:
    """Numeric attributes, and where their values lie: rounded to even steps, each a whole number of positions long.

    steps   of each attribute, between its lowest and its highest value: one for each value where they are few enough
    scales  how many positions a step is long
    """

    attributes: tuple[Numeric, ...]
    steps: tuple[int, ...]
    scales: tuple[int, ...]

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str] | None, scaling: str) -> Space:
        """The named attributes, or all numeric ones. Scaling "bounds" makes all equally long, "none" leaves them."""
        check_word("scaling", scaling, SCALINGS)
        numeric = [a.name for a in schema.of_kind(Numeric) if a.cells > 1]
        chosen = numeric if names is None else list(names)
        found = _numeric(schema, chosen)
        units = [float(a.finest) if scaling == NONE else 1 / (a.values - 1) for a in found]
        longest = max(unit * (a.values - 1) for unit, a in zip(units, found, strict=True))
        reach = LARGEST_POSITION - MOST_GRID_POINTS  # so that no rounding of a scale leads beyond the largest position
        steps, scales = [], []
        for unit, attribute in zip(units, found, strict=True):
            last = attribute.values - 1
            steps.append(_steps(last, unit * last / longest * reach))
            scale = max(round(unit * (last / steps[-1]) / longest * reach), 1)
            scales.append(min(scale, LARGEST_POSITION // steps[-1]))
        return cls(found, tuple(steps), tuple(scales))

    @classmethod
    def read(cls, schema: Schema, names: Sequence[str], steps: Sequence[int], scales: Sequence[int]) -> Space:
        """The space of a saved model."""
        found = _numeric(schema, names)
        for numbers in (steps, scales):
            if len(numbers) != len(found) or any(type(number) is not int or number < 1 for number in numbers):
                raise RequestError("The model needs steps and a scale for each of its attributes, positive whole numbers.")
        if any(count >= a.values for count, a in zip(steps, found, strict=True)):
            raise RequestError("The model's attributes have more steps than values.")
        if max(count * scale for count, scale in zip(steps, scales, strict=True)) > LARGEST_POSITION:
            raise RequestError("The model's scales are impossible.")
        return cls(found, tuple(steps), tuple(scales))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def dimensions(self) -> int:
        return len(self.attributes)

    @cached_property
    def extents(self) -> Points:
        """The largest position in each attribute."""
        return np.array(self.steps, dtype=np.float64) * np.array(self.scales, dtype=np.float64)

    @cached_property
    def value_lengths(self) -> Points:
        """How far two neighbouring values of each attribute are apart, in positions, but for rounding."""
        lengths: Points = self.extents / np.array([attribute.values - 1 for attribute in self.attributes])
        return lengths

    @cached_property
    def edges(self) -> tuple[Points, ...]:
        """For each attribute the positions where the cells of its grid begin, and where the last one ends.

        A cell reaches from half a value before its first value to half a value behind its last one. So rows that lie
        evenly on a cell's values have their mean in its middle, however wide it is.
        """
        firsts = [np.array([*attribute.starts, attribute.values]) for attribute in self.attributes]
        return tuple((first - 0.5) * length for first, length in zip(firsts, self.value_lengths, strict=True))

    @cached_property
    def units(self) -> Points:
        """How long a step of each attribute is, in its own units."""
        ranges = [(attribute.numbers.high - attribute.numbers.low) for attribute in self.attributes]
        return np.array([float(Fraction(length, count)) for length, count in zip(ranges, self.steps, strict=True)])

    @property
    def with_gaps(self) -> tuple[str, ...]:
        """The attributes in which a row may have no value."""
        return tuple(attribute.name for attribute in self.attributes if attribute.gap is not None)

    def known(self, private: PrivateTable) -> PrivateTable:
        """The rows that have a value in every attribute: which those are follows from each row alone."""
        tests = [~IsMissing(name) for name in self.with_gaps]
        return private.where(tests[0] if len(tests) == 1 else And(tuple(tests))) if tests else private

    def nearest(self, centres: Points) -> Nearest:
        """The nearest of some centres as a key; their positions are rounded to whole ones inside the box."""
        inside = np.rint(np.clip(centres, 0, self.extents)).astype(np.int64)
        return Nearest(self.names, self.steps, self.scales, tuple(map(tuple, inside.tolist())))

    def values(self, positions: Points) -> Points:
        """Positions in the attributes' own units."""
        lows = np.array([float(a.low) for a in self.attributes])
        found: Points = lows + positions / np.array(self.scales) * self.units
        return found

    def positions(self, values: Sequence[Codes]) -> Points:
        """Encoded rows as positions, as every engine finds them; where a value is missing, in the middle."""
        lasts = [attribute.values - 1 for attribute in self.attributes]
        found = map(positions_of_values, values, lasts, self.steps, self.scales)
        return np.stack([column.astype(np.float64) for column in found], axis=1)


def _steps(last: int, length: float) -> int:
    """How many steps values 0 .. last are rounded to, on an axis that is to be so many positions long.

    None are rounded where they are few, or lie far apart; else steps are whole positions that fill the length.
    """
    if last <= max(MOST_GRID_POINTS, length / FINE):
        return last
    return min(max(int(length / math.ceil(length / last)), 1), last)


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
    ranges = {a.name: float(a.finest) * (a.values - 1) for a in space.attributes}
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
        if not isinstance(attribute, Numeric) or attribute.cells < 2:
            raise RequestError(
                f"{attribute.name!r} is not numeric (or its grid has one cell), so nothing is near or far in it."
            )
        found.append(attribute)
    return tuple(found)
