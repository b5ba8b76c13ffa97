"""A decision tree while it grows, one level at a time.

The papers' recursions ask one node after another. Here all nodes of a level are the cells of one query: the nodes are
disjoint, so the price is the same, and the table is read once a level instead of once a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.codes.queries import MOST_COUNTS, MOST_KEYS, MOST_NUMBERS
from dpmine.facts.schema import Schema
from dpmine.language.keys import Key, Part
from dpmine.language.splits import Splits, Thresholds
from dpmine.language.views import LEAF, Rules, Split
from dpmine.models.trees import lookup
from dpmine.questions.choose_split import ChosenSplit
from dpmine.tables.private_cells import PrivateCells
from dpmine.tables.private_table import PrivateTable

NOT_ASKED = Epsilon(0)
MOST_LEAVES = 8_192  # of all trees that grow together: one query has to hold them, and a saved model its nodes

Mask = NDArray[np.bool_]
"""For each code of an attribute whether it is meant."""


@dataclass(eq=False)
class Sprout:
    """A node of a growing tree: what may still split it, and the noisy numbers that were asked of it."""

    depth: int
    keys: tuple[Key, ...]
    """Keys that no node above was split by, each used at most once on a path."""
    reach: dict[str, Mask] = field(default_factory=dict)
    """For attributes that nodes above were split by: which of its codes can come here at all."""
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

    @property
    def reachable(self) -> bool:
        """Whether any row can come here, whatever the table holds."""
        return all(codes.any() for codes in self.reach.values())

    def codes(self, name: str, schema: Schema) -> Mask:
        """Which codes of an attribute can come here."""
        return self.reach.get(name, np.ones(schema.single(name).size, dtype=bool))

    def thresholds(self, name: str, schema: Schema) -> Thresholds | None:
        """The split points of a numeric attribute inside the part of its domain that comes here; None if there is none."""
        attribute = schema.ordered(name, "it has no thresholds")
        codes = np.flatnonzero(self.codes(name, schema)[: attribute.last_cut + 1])
        if len(codes) < 2:
            return None
        return Thresholds(name, attribute.label(int(codes[0])), attribute.label(int(codes[-1])))

    def sides(self, key: Key, schema: Schema) -> list[dict[str, Mask]]:
        """For each label of a key the codes that can come to that side."""
        if isinstance(key, Part):
            return [self.reach for _ in key.labels(schema)]
        table = lookup(key, schema)
        here = self.codes(table.attribute, schema)
        return [
            {**self.reach, table.attribute: here & (table.labels == number)} for number in range(len(key.labels(schema)))
        ]

    def split_by(self, key: Key, schema: Schema) -> None:
        """Grow children, one for each label; one of the keys is used up. No row comes to some children: they are empty."""
        self.split = key
        left = tuple(other for other in self.keys if other != key)
        self.children = [Sprout(self.depth + 1, left, reach) for reach in self.sides(key, schema)]
        for child in self.children:
            if not child.reachable:
                child.classes = np.zeros(len(schema.class_labels), dtype=np.int64)
                child.deviation = 0.0


class Growth:
    """A growing tree over a private table. Every question below is one query over all leaves; the others cost nothing."""

    def __init__(self, private: PrivateTable, keys: Sequence[Key]) -> None:
        self._private = private
        self.schema = private.schema
        self.root = Sprout(0, tuple(keys))
        self._most_leaves = most_leaves(self.schema)
        self._used: set[Key] = set()

    def frontier(self, depth: int) -> list[Sprout]:
        """The leaves at that depth."""
        return [leaf for leaf in self.root.leaves() if leaf.depth == depth]

    def count(self, asked: Sequence[Sprout], epsilon: Epsilon) -> None:
        """A noisy number of rows for each asked leaf."""
        leaves, amounts = self._amounts({id(leaf): epsilon for leaf in asked})
        if asked:
            for leaf, count in zip(leaves, self._cells().count(epsilon=amounts), strict=True):
                if count is not None:
                    leaf.rows, leaf.rows_deviation = int(count), count.standard_deviation

    def count_classes(self, asked: Sequence[Sprout], epsilon: Epsilon | Sequence[Epsilon]) -> None:
        """Noisy class counts for each asked leaf, at one epsilon or one for each."""
        each = [epsilon] * len(asked) if isinstance(epsilon, Epsilon) else list(epsilon)
        leaves, amounts = self._amounts({id(leaf): amount for leaf, amount in zip(asked, each, strict=True)})
        if asked:
            target = self.schema.require_class()
            for leaf, counts in zip(leaves, self._cells().histogram(target, epsilon=amounts), strict=True):
                if counts is not None:
                    leaf.classes, leaf.deviation = counts.counts, counts.standard_deviation

    def histograms(self, asked: Sequence[Sprout], keys: Sequence[Key | str], epsilon: Epsilon) -> list[NDArray[np.int64]]:
        """Noisy counts by the keys for each asked leaf, in their order."""
        _, amounts = self._amounts({id(leaf): epsilon for leaf in asked})  # `asked` in the order of the leaves
        answers = self._cells().histogram(*keys, epsilon=amounts)
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
        chosen = self._cells().choose(among, epsilon=amounts, score=score, calibration=calibration)
        keys = {
            id(leaf): choice.key if isinstance(choice, ChosenSplit) else None
            for leaf, choice in zip(leaves, chosen, strict=True)
        }
        return [keys[id(leaf)] for leaf in asked]

    def split(self, nodes: Sequence[Sprout], keys: Sequence[Key | None]) -> list[Sprout]:
        """Split each node by its key; returns the nodes that can grow on.

        A node that chose no key stays a leaf. So does one for which the tree has become too large for one query, which
        follows from answers and public limits alone. A split that sends everything that can come here to one side is none;
        the node itself grows on.
        """
        leaves = sum(1 for _ in self.root.leaves())
        growing: list[Sprout] = []
        for node, key in zip(nodes, keys, strict=True):
            if key is None:
                continue
            sides = node.sides(key, self.schema)
            if sum(Sprout(0, (), reach).reachable for reach in sides) < 2:
                growing.append(node)
                continue
            self._used.add(key)
            leaves += len(sides) - 1
            if leaves > self._most_leaves or len(self._used) > MOST_KEYS // 2:
                return growing
            node.split_by(key, self.schema)
            growing += [child for child in node.children if child.reachable]
        return growing

    def uncounted(self) -> list[Sprout]:
        """Leaves whose classes were never counted: those that became one because the tree was too large."""
        return [leaf for leaf in self.root.leaves() if leaf.classes is None]

    def _cells(self) -> PrivateCells:
        return self._private.cells(self.root.rules())

    def _amounts(self, epsilon: dict[int, Epsilon]) -> tuple[list[Sprout], list[Epsilon]]:
        leaves = list(self.root.leaves())
        return leaves, [epsilon.get(id(leaf), NOT_ASKED) for leaf in leaves]


def most_leaves(schema: Schema) -> int:
    """How many leaves a tree may have so that every question about all of them fits one query."""
    sizes = [a.size for a in schema.singles]
    candidates = 2 * sum(sizes) + len(sizes)
    classes = len(schema.class_labels)
    counts = MOST_COUNTS // (classes * candidates)
    numbers = MOST_NUMBERS // (classes * max(sizes))
    return max(min(MOST_LEAVES, counts, numbers), 1)
