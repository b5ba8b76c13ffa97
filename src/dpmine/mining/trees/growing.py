"""A decision tree while it grows, one level at a time.

The papers' recursions ask one node after another. Here all nodes of a level are the cells of one query: the nodes are
disjoint, so the price is the same, and the table is read once a level instead of once a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmine.epsilon import Epsilon
from dpmine.errors import RequestError
from dpmine.expressions import AttributeKey, Bins, Key
from dpmine.queries import LEAF, Rules, Split, Splits
from dpmine.results import ChosenSplit
from dpmine.schema import Nominal, Numeric, Schema
from dpmine.tables import PrivateTable

NOT_ASKED = Epsilon(0)
MOST_LEAVES = 20_000  # of all trees that grow together: one query has to hold them, and a saved model its nodes


@dataclass(eq=False)
class Sprout:
    """A node of a growing tree: what may still split it, and the noisy numbers that were asked of it."""

    depth: int
    keys: tuple[Key, ...]
    """Keys that no node above was split by, each used at most once on a path."""
    ranges: dict[str, tuple[str | None, str | None]]
    """Attributes that are split at a point, with the part of their domain that reaches this node; None is its own end."""
    rows: int | None = None
    rows_deviation: float = 1.0
    """Of the noise in the number of rows."""
    classes: NDArray[np.int64] | None = None
    deviation: float = 1.0
    """Of the noise in each class count."""
    split: Key | None = None
    children: list[Sprout] = field(default_factory=list)

    def leaves(self) -> Iterator[Sprout]:
        if self.split is None:
            yield self
        for child in self.children:
            yield from child.leaves()

    def rules(self) -> Rules:
        return LEAF if self.split is None else Split(self.split, tuple(child.rules() for child in self.children))

    def split_by(self, key: Key, schema: Schema) -> None:
        """Grow children, one for each label. A key is used up; an attribute split at a point keeps the part on each side."""
        self.split = key
        if key in self.keys or not isinstance(key, Bins) or key.attribute not in self.ranges:
            left = tuple(other for other in self.keys if other != key)
            self.children = [Sprout(self.depth + 1, left, dict(self.ranges)) for _ in key.labels(schema)]
            return
        for side in _sides(key, *self.ranges[key.attribute], schema):
            others = {name: ends for name, ends in self.ranges.items() if name != key.attribute}
            self.children.append(
                Sprout(self.depth + 1, self.keys, others if side is None else {**others, key.attribute: side})
            )


def _sides(key: Bins, low: str | None, high: str | None, schema: Schema) -> list[tuple[str | None, str | None] | None]:
    """The parts of the domain left and right of a cut; None where a part is one grid point, which nothing can split."""
    attribute = schema.single(key.attribute)
    assert isinstance(attribute, Numeric)
    cut = attribute.first_code_at_least(attribute.number(key.cuts[0]))
    parts = ((low, attribute.label(cut - 1)), (attribute.label(cut), high))
    return [part if _can_split(attribute, *part) else None for part in parts]


def _can_split(attribute: Numeric, low: str | None, high: str | None) -> bool:
    first = 0 if low is None else attribute.floor_code(attribute.number(low))
    last = attribute.size - 1 if high is None else attribute.floor_code(attribute.number(high))
    return first < last


class Growth:
    """A growing tree over a private table. Every question below is one query over all leaves; the others cost nothing."""

    def __init__(self, private: PrivateTable, keys: Sequence[Key], ranges: Sequence[str] = ()) -> None:
        self._private = private
        self.schema = private.schema
        self.root = Sprout(0, tuple(keys), dict.fromkeys(ranges, (None, None)))

    def frontier(self, depth: int) -> list[Sprout]:
        """The leaves at that depth."""
        return [leaf for leaf in self.root.leaves() if leaf.depth == depth]

    def count(self, asked: Sequence[Sprout], epsilon: Epsilon) -> None:
        """A noisy number of rows for each asked leaf."""
        leaves, amounts = self._amounts({id(leaf): epsilon for leaf in asked})
        if asked:
            for leaf, count in zip(leaves, self._cells().count_cells(epsilon=amounts), strict=True):
                if count is not None:
                    leaf.rows, leaf.rows_deviation = int(count), count.standard_deviation

    def count_classes(self, asked: Sequence[Sprout], epsilon: Epsilon | Sequence[Epsilon]) -> None:
        """Noisy class counts for each asked leaf, at one epsilon or one for each."""
        each = [epsilon] * len(asked) if isinstance(epsilon, Epsilon) else list(epsilon)
        leaves, amounts = self._amounts({id(leaf): amount for leaf, amount in zip(asked, each, strict=True)})
        if asked:
            target = self.schema.require_class()
            for leaf, counts in zip(leaves, self._cells().histogram_cells(target, epsilon=amounts), strict=True):
                if counts is not None:
                    leaf.classes, leaf.deviation = counts.counts, counts.standard_deviation

    def histograms(self, asked: Sequence[Sprout], keys: Sequence[Key | str], epsilon: Epsilon) -> list[NDArray[np.int64]]:
        """Noisy counts by the keys for each asked leaf, in their order."""
        _, amounts = self._amounts({id(leaf): epsilon for leaf in asked})  # `asked` in the order of the leaves
        answers = self._cells().histogram_cells(*keys, epsilon=amounts)
        return [answer.counts for answer in answers if answer is not None]

    def choose(
        self,
        asked: Sequence[Sprout],
        candidates: Sequence[Sequence[Splits]],
        epsilon: Epsilon,
        *,
        score: str,
        calibration: str,
    ) -> list[Key | None]:
        """One private choice of a split for each asked leaf, among its own candidates; None where it was to stay whole."""
        if not asked:
            return []
        leaves, amounts = self._amounts({id(leaf): epsilon for leaf in asked})
        wanted = {id(leaf): families for leaf, families in zip(asked, candidates, strict=True)}
        among = [wanted.get(id(leaf), candidates[0]) for leaf in leaves]  # leaves that are not asked need some, whichever
        if all(families == among[0] for families in among):
            among = among[:1]
        chosen = self._cells().choose_cells(among, epsilon=amounts, score=score, calibration=calibration)
        keys = {
            id(leaf): choice.key if isinstance(choice, ChosenSplit) else None
            for leaf, choice in zip(leaves, chosen, strict=True)
        }
        return [keys[id(leaf)] for leaf in asked]

    def split(self, nodes: Sequence[Sprout], keys: Sequence[Key | None]) -> None:
        """Split each node by its key; where the tree has become too large for one query, it stays a leaf."""
        leaves = sum(1 for _ in self.root.leaves())
        for node, key in zip(nodes, keys, strict=True):
            more = 0 if key is None else len(key.labels(self.schema)) - 1
            if key is not None and leaves + more <= MOST_LEAVES:
                node.split_by(key, self.schema)
                leaves += more

    def uncounted(self) -> list[Sprout]:
        """Leaves whose classes were never counted: those that became one because the tree was too large."""
        return [leaf for leaf in self.root.leaves() if leaf.classes is None]

    def _cells(self) -> PrivateTable:
        return self._private.cells(self.root.rules())

    def _amounts(self, epsilon: dict[int, Epsilon]) -> tuple[list[Sprout], list[Epsilon]]:
        leaves = list(self.root.leaves())
        return leaves, [epsilon.get(id(leaf), NOT_ASKED) for leaf in leaves]


def nominal_keys(schema: Schema) -> tuple[Key, ...]:
    """Every nominal attribute but the class, split by each of its categories."""
    target = schema.require_class()
    return tuple(AttributeKey(a.name) for a in schema.attributes if isinstance(a, Nominal) and a.name != target)


def numeric_names(schema: Schema) -> tuple[str, ...]:
    """Every numeric attribute that can be cut at all."""
    return tuple(a.name for a in schema.attributes if isinstance(a, Numeric) and a.size > 1)


def discretised(schema: Schema, bins: int) -> tuple[Key, ...]:
    """Every numeric attribute cut into so many bins of equal width (fewer where its grid has fewer points)."""
    if bins < 2:
        raise RequestError(f"Discretising needs at least 2 bins. Got {bins}.")
    keys: list[Key] = []
    for name in numeric_names(schema):
        attribute = schema.single(name)
        codes = sorted({attribute.size * place // bins for place in range(1, bins)} - {0})
        keys.append(Bins(name, tuple(attribute.label(code) for code in codes)))
    return tuple(keys)
