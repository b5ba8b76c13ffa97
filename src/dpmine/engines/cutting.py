"""A tree of halves that grows level by level: what a private tree asks of an engine."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.codes.rows import Branch, Recode, RowRules
from dpmine.facts.encoding import smallest_type

Integers = NDArray[np.int64]
CHUNK = 65_536


class RuleCutting:
    """The newest nodes' counts by counting the cells of the whole tree, for engines that know nothing better."""

    def __init__(self, counted: Callable[[RowRules | None], Integers]) -> None:
        self._counted = counted
        self._tree = _Numbered()
        self.counts = counted(None)

    def cut(self, cuts: Sequence[tuple[str, int] | None]) -> None:
        self._tree.cut(cuts)
        by_leaf = self._counted(self._tree.rules())
        self.counts = by_leaf[self._tree.leaf_places()[self._tree.newest :]]

    def keep(self, rules: RowRules | None) -> None:
        """Nothing is known of single rows."""


class RowCutting:
    """The newest nodes' counts by following every row of a table in memory.

    Rows in nodes that are not cut are left alone from then on.
    """

    def __init__(
        self,
        columns: dict[str, NDArray[np.unsignedinteger]],
        rows: NDArray[np.intp],
        keep: Callable[[RowRules | None, NDArray[np.unsignedinteger], int], None],
    ) -> None:
        self._place_of = {name: place for place, name in enumerate(columns)}
        # Side by side, so that what a row is asked next is never far from what it was asked before.
        self._codes = np.column_stack(list(columns.values()))
        self._node = np.full(len(self._codes), -1, dtype=np.int64)  # where each row ended; -1 for rows outside the view
        self._rows = rows
        self._places = np.zeros(len(rows), dtype=np.intp)  # of each row's node among the newest ones
        self._tree = _Numbered()
        self._keep = keep
        self.counts = np.array([len(rows)], dtype=np.int64)

    def cut(self, cuts: Sequence[tuple[str, int] | None]) -> None:
        is_cut = np.array([cut is not None for cut in cuts])
        column = np.array([0 if cut is None else self._place_of[cut[0]] for cut in cuts], dtype=np.intp)
        code = np.array([0 if cut is None else cut[1] for cut in cuts], dtype=np.int64)
        left = 2 * (np.cumsum(is_cut) - 1)
        counts = np.zeros(2 * int(is_cut.sum()), dtype=np.int64)
        all_rows, all_places = [self._rows[:0]], [self._places[:0]]
        width, flat = self._codes.shape[1], self._codes.ravel()
        for start in range(0, len(self._rows), CHUNK):
            rows, places = self._rows[start : start + CHUNK], self._places[start : start + CHUNK]
            going = is_cut[places]
            if not going.all():
                self._node[rows[~going]] = self._tree.newest + places[~going]
                rows, places = rows[going], places[going]
            codes = np.take(flat, rows * width + np.take(column, places))
            halves = np.take(left, places) + (codes >= np.take(code, places))
            counts += np.bincount(halves, minlength=len(counts))
            all_rows.append(rows)
            all_places.append(halves)
        self._rows, self._places = np.concatenate(all_rows), np.concatenate(all_places)
        self._tree.cut(cuts)
        self.counts = counts

    def keep(self, rules: RowRules | None) -> None:
        """Remember which leaf every row is in, for questions about the leaves of this very tree."""
        self._node[self._rows] = self._tree.newest + self._places
        leaf_places = self._tree.leaf_places()
        leaves = int(leaf_places.max()) + 1
        with_outside: NDArray[Any] = np.append(leaf_places, leaves).astype(smallest_type(leaves + 1))
        self._keep(rules, with_outside[self._node], leaves)


class _Numbered:
    """A tree of halves whose nodes are numbered as they are made: level by level, from left to right."""

    def __init__(self) -> None:
        self._cuts: list[tuple[str, int] | None] = []  # of all nodes but the newest
        self._left: list[int] = []  # the number of the left half of every one of these; -1: not cut
        self.newest = 0
        self._nodes = 1

    def cut(self, cuts: Sequence[tuple[str, int] | None]) -> None:
        """Cut the newest nodes: the halves are then the newest."""
        if len(cuts) != self._nodes - self.newest:
            raise ValueError("every one of the newest nodes is cut or not")
        self.newest = self._nodes
        for cut in cuts:
            self._cuts.append(cut)
            self._left.append(-1 if cut is None else self._nodes)
            self._nodes += 0 if cut is None else 2

    def leaf_places(self) -> Integers:
        """For each node its place among the leaves from left to right; -1 where it is cut."""
        places = np.full(self._nodes, -1, dtype=np.int64)
        waiting, seen = [0], 0
        while waiting:
            node = waiting.pop()
            left = self._left[node] if node < self.newest else -1
            if left < 0:
                places[node] = seen
                seen += 1
            else:
                waiting += (left + 1, left)
        return places

    def rules(self) -> RowRules | None:
        """The tree as the cells of a query."""
        made: dict[int, RowRules | None] = {}
        for node in range(self.newest - 1, -1, -1):  # halves have larger numbers
            cut = self._cuts[node]
            if cut is not None:
                key = Recode(cut[0], ((0, 0), (cut[1], 1)), 2)
                left = self._left[node]
                made[node] = Branch(key, (made.get(left), made.get(left + 1)))
        return made.get(0)
