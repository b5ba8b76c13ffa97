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

from dpmine.facts.encoding import Codes
from dpmine.facts.kinds.kind import DROP, MISSING, OWN, Ordered, Single
from dpmine.facts.kinds.numeric import Numeric
from dpmine.language.candidates import even_starts
from dpmine.language.keys import APART, LAST, AttributeKey, Bins, Group, Groups, Key
from dpmine.models.cuts import interval_name
from dpmine.release.released import ReleasedTable
from dpmine.report.release_page import ReleasedBars

MOST_BARS = 24
NICE = (Decimal(1), Decimal(2), Decimal(5), Decimal(10))


@dataclass(frozen=True, eq=False)
class Axis:
    """The bars of one attribute.

    labels  their names
    bars    for each code of the attribute the number of its bar; dropped gaps have one behind all others, which is not shown
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
        return tuple(np.bincount(self.bars[codes], minlength=len(self.labels))[: len(self.labels)].tolist())

    def add_up(self, by_code: NDArray[np.float64]) -> tuple[float, ...]:
        """Numbers by code, added up within each bar."""
        return tuple(np.bincount(self.bars, by_code, minlength=len(self.labels))[: len(self.labels)].tolist())


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
    found = np.zeros(released.schema.single(name).size)
    if name == released.target:
        found[: len(released.schema.class_labels)] = released.counts.sum(axis=0)
        return found
    place = list(released.values).index(name)
    by_value = np.zeros(len(released.values[name]))
    np.add.at(by_value, released.groups[:, place], released.counts.sum(axis=1))
    for value, records in zip(released.values[name], by_value.tolist(), strict=True):
        found[np.array(value.codes)] += records * released.chances(name, value)
    return found


def _axis(attribute: Single, by_code: NDArray[np.float64]) -> Axis:
    if attribute.size <= MOST_BARS:
        key = AttributeKey(attribute.name)
        labels = tuple(attribute.label(code) for code in range(attribute.size) if code != attribute.hidden_code)
        return Axis(attribute, labels, np.arange(attribute.size), key)
    return _bins(attribute) if isinstance(attribute, Ordered) else _largest(attribute, by_code)


def _bins(attribute: Ordered) -> Axis:
    """Bins between round numbers where the grid is even, else bins of equally many cells; and one of gaps."""
    step = attribute.step if isinstance(attribute, Numeric) else None
    starts = even_starts(attribute.cells, MOST_BARS) if step is None else _round_starts(attribute, step)
    bars = np.searchsorted(starts[1:], np.arange(attribute.size), side="right")
    labels = [interval_name(attribute, *span) for span in itertools.pairwise((*starts, attribute.cells))]
    if attribute.missing_code is not None:
        bars[attribute.missing_code] = len(labels)
    cuts = tuple(attribute.label(start) for start in starts[1:])
    return Axis(attribute, (*labels, *([MISSING] if attribute.gap == OWN else [])), bars, Bins(attribute.name, cuts))


def _round_starts(attribute: Ordered, step: Decimal) -> list[int]:
    """The first codes of bins between round numbers, or as near to these as an even grid allows."""
    low, high = attribute.point(0), attribute.point(attribute.cells - 1)
    width = _round_width((attribute.value_point(attribute.values - 1) - low) / MOST_BARS)
    first = int(low // width)
    edges = [Decimal(number) * width for number in range(first, first + MOST_BARS + 3)]
    starts = sorted({0, *(attribute.first_code_at_least(edge) for edge in edges if low < edge <= high)})
    return _without_slivers(starts, attribute.cells, width / step / 2)


def _without_slivers(starts: list[int], cells: int, few: Decimal) -> list[int]:
    """A bin at either end with less than half the points of the others would look like a drop: its neighbour takes it."""
    if len(starts) > 2 and starts[1] < few:
        starts = [0, *starts[2:]]
    if len(starts) > 2 and cells - starts[-1] < few:
        starts = starts[:-1]
    return starts


def _round_width(least: Decimal) -> Decimal:
    """The smallest of 1, 2, 5, 10, 20, ... (or 0.1, 0.2, ...) that is at least so large."""
    power = Decimal(10) ** least.adjusted()
    return next(power * nice for nice in NICE if power * nice >= least)


def _largest(attribute: Single, by_code: NDArray[np.float64]) -> Axis:
    """The categories that the release has most records of, in the order of the schema, and all others together."""
    most_first = np.argsort(-by_code, kind="stable")
    shown = sorted(most_first[most_first != attribute.hidden_code][: MOST_BARS - 1].tolist())
    bars = np.full(attribute.size, len(shown), dtype=np.int64)
    bars[shown] = np.arange(len(shown))
    if attribute.hidden_code is not None:
        bars[attribute.hidden_code] = len(shown) + 1
    categories = [attribute.label(code) for code in shown]
    rest = _unused(f"{attribute.size - (attribute.gap == DROP) - len(shown)} others", categories)
    groups = tuple(Group(category, (category,)) for category in categories)
    key = Groups(attribute.name, groups, rest, LAST if attribute.gap == OWN else APART)
    return Axis(attribute, (*categories, rest), bars, key)


def _unused(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _unused(f"all {name}", taken)
