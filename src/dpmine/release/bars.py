"""What the pictures of a released table show: for each attribute a few bars, the same for released and for other numbers.

A bar stands for one category, some grid points, or what is left. Released counts are spread over the raw values as
`raw_rows` would on average, so that a bar of the release and a bar of the rows are about the same values.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from dpmine.base.decimals import plain
from dpmine.facts.encoding import Codes
from dpmine.facts.kinds.kind import Single
from dpmine.facts.kinds.numeric import Numeric
from dpmine.language.keys import AttributeKey, Bins, Group, Groups, Key
from dpmine.release.released import ReleasedTable
from dpmine.report.release_page import ReleasedBars

MOST_BARS = 24
NICE = (Decimal(1), Decimal(2), Decimal(5), Decimal(10))


@dataclass(frozen=True, eq=False)
class Axis:
    """The bars of one attribute.

    labels  their names
    bars    for each code of the attribute the number of its bar
    key     what to ask a private table for the same bars
    """

    attribute: Single
    labels: tuple[str, ...]
    bars: NDArray[np.int64]
    key: Key

    @property
    def name(self) -> str:
        return self.attribute.name

    def count(self, codes: NDArray[np.integer] | Codes) -> tuple[int, ...]:
        """How many rows with these codes fall into each bar."""
        return tuple(np.bincount(self.bars[codes], minlength=len(self.labels)).tolist())

    def add_up(self, by_code: NDArray[np.float64]) -> tuple[float, ...]:
        """Numbers by code, added up within each bar."""
        return tuple(np.bincount(self.bars, weights=by_code, minlength=len(self.labels)).tolist())


def axes_of(released: ReleasedTable) -> list[Axis]:
    """The class first, then the released attributes in the order of the schema. Follows from released numbers alone."""
    names = [a.name for a in released.schema.attributes if a.name in released.values]
    return [_axis(released.schema.single(name), counts_by_code(released, name)) for name in (released.target, *names)]


def released_bars(released: ReleasedTable) -> list[ReleasedBars]:
    """The release as bars, for a page."""
    return [
        ReleasedBars(axis.name, axis.attribute.ordered, axis.labels, axis.add_up(counts_by_code(released, axis.name)))
        for axis in axes_of(released)
    ]


def counts_by_code(released: ReleasedTable, name: str) -> NDArray[np.float64]:
    """How many records have each code of an attribute, on average over the drawing of raw values."""
    if name == released.target:
        return np.asarray(released.counts.sum(axis=0), dtype=np.float64)
    place = list(released.values).index(name)
    by_value = np.zeros(len(released.values[name]))
    np.add.at(by_value, released.groups[:, place], released.counts.sum(axis=1))
    size = released.schema.single(name).size
    weights = np.maximum(released.weights.get(name, np.ones(size)), 0)
    found = np.zeros(size)
    for value, records in zip(released.values[name], by_value.tolist(), strict=True):
        codes = np.array(value.codes)
        total = weights[codes].sum()
        found[codes] += records * (weights[codes] / total if total > 0 else 1 / len(codes))
    return found


def _axis(attribute: Single, by_code: NDArray[np.float64]) -> Axis:
    if attribute.size <= MOST_BARS:
        labels = tuple(attribute.label(code) for code in range(attribute.size))
        return Axis(attribute, labels, np.arange(attribute.size), AttributeKey(attribute.name))
    return _bins(attribute) if isinstance(attribute, Numeric) else _largest(attribute, by_code)


def _bins(attribute: Numeric) -> Axis:
    """Bins between round numbers."""
    width = _round_width((attribute.high - attribute.low) / MOST_BARS)
    first = int(attribute.low // width)
    edges = [Decimal(number) * width for number in range(first, first + MOST_BARS + 3)]
    edges = [edge for edge in edges if attribute.low < edge <= attribute.point(attribute.size - 1)]
    edges = _without_slivers(attribute, edges, width)
    starts = [attribute.first_code_at_least(edge) for edge in edges]
    bars = np.searchsorted(starts, np.arange(attribute.size), side="right")
    ends = [plain(attribute.low), *map(plain, edges)]
    labels = [f"{low} to <{high}" for low, high in itertools.pairwise(ends)]
    labels.append(f"{ends[-1]} to {attribute.label(attribute.size - 1)}")
    return Axis(attribute, tuple(labels), bars, Bins(attribute.name, tuple(map(plain, edges))))


def _without_slivers(attribute: Numeric, edges: list[Decimal], width: Decimal) -> list[Decimal]:
    """A bin at either end with less than half the points of the others would look like a drop: its neighbour takes it."""
    few = width / attribute.step / 2
    if len(edges) > 1 and attribute.first_code_at_least(edges[0]) < few:
        edges = edges[1:]
    if len(edges) > 1 and attribute.size - attribute.first_code_at_least(edges[-1]) < few:
        edges = edges[:-1]
    return edges


def _round_width(least: Decimal) -> Decimal:
    """The smallest of 1, 2, 5, 10, 20, ... (or 0.1, 0.2, ...) that is at least so large."""
    power = Decimal(10) ** least.adjusted()
    return next(power * nice for nice in NICE if power * nice >= least)


def _largest(attribute: Single, by_code: NDArray[np.float64]) -> Axis:
    """The categories that the release has most records of, in the order of the schema, and all others together."""
    shown = sorted(np.argsort(-by_code, kind="stable")[: MOST_BARS - 1].tolist())
    bars = np.full(attribute.size, len(shown), dtype=np.int64)
    bars[shown] = np.arange(len(shown))
    categories = [attribute.label(code) for code in shown]
    rest = _unused(f"{attribute.size - len(shown)} others", categories)
    groups = tuple(Group(category, (category,)) for category in categories)
    return Axis(attribute, (*categories, rest), bars, Groups(attribute.name, groups, rest))


def _unused(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _unused(f"all {name}", taken)
