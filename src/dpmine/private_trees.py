"""Trees of cuts: which cut a node would make is public, which nodes are cut is asked once and privately.

Both the kernel, which grows such a tree, and whoever reads its answer derive the cuts from the same whole numbers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpmine.plans import Branch, Recode, RowCuts, RowRules


@dataclass(frozen=True)
class Box:
    """A node: for each attribute the codes from `lows` to before `highs`."""

    lows: tuple[int, ...]
    highs: tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """Codes of the attribute of that number below `code` go to the left."""

    place: int
    code: int


def whole_box(rules: Sequence[RowCuts]) -> Box:
    return Box((0,) * len(rules), tuple(rule.size for rule in rules))


def cut_of(box: Box, rules: Sequence[RowCuts]) -> Cut | None:
    """The cut of a node: of the attribute whose interval is worth most, of equal ones the first; None if no code is left."""
    best: tuple[int, int, int] | None = None
    for place, rule in enumerate(rules):
        found = _interval_cut(rule, box.lows[place], box.highs[place])
        if found is not None and (best is None or found[0] > best[0]):
            best = (found[0], place, found[1])
    return None if best is None else Cut(best[1], best[2])


def _interval_cut(rule: RowCuts, low: int, high: int) -> tuple[int, int] | None:
    """What cutting the codes from low to before high is worth, and where. Cuts keep to bins until one bin is left."""
    if high - low < 2:
        return None
    first, after = bisect_right(rule.edges, low) - 1, bisect_left(rule.edges, high)
    if after - first < 2:  # no edge inside
        return rule.inside * (high - low) ** 2, (low + high) // 2
    place = run_number(first, after, len(rule.edges))
    return rule.scores[place], rule.edges[rule.cuts[place]]


def run_number(first: int, after: int, bins: int) -> int:
    """The place of the run of bins from `first` to before `after` among all runs, ordered by first and then by after."""
    return first * bins - first * (first - 1) // 2 + (after - first - 1)


def halves(box: Box, cut: Cut) -> tuple[Box, Box]:
    highs = (*box.highs[: cut.place], cut.code, *box.highs[cut.place + 1 :])
    lows = (*box.lows[: cut.place], cut.code, *box.lows[cut.place + 1 :])
    return Box(box.lows, highs), Box(lows, box.highs)


@dataclass
class CutNode:
    """A node of a growing tree."""

    box: Box
    depth: int
    cut: Cut | None = None
    children: tuple[CutNode, ...] = ()

    def split(self, cut: Cut) -> tuple[CutNode, ...]:
        self.cut = cut
        self.children = tuple(CutNode(box, self.depth + 1) for box in halves(self.box, cut))
        return self.children

    def nodes(self) -> Iterator[CutNode]:
        """Parents first, from left to right."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def leaves(self) -> Iterator[CutNode]:
        return (node for node in self.nodes() if node.cut is None)

    def row_rules(self, rules: Sequence[RowCuts]) -> RowRules | None:
        """The tree as the cells of a query, whose leaves are its cells from left to right."""
        if self.cut is None:
            return None
        rule = rules[self.cut.place]
        key = Recode(rule.attribute, ((0, 0), (self.cut.code, 1)), 2)
        return Branch(key, tuple(child.row_rules(rules) for child in self.children))


def tree_of(bits: Sequence[int], rules: Sequence[RowCuts]) -> CutNode:
    """The tree that an answer describes: for each node, parents first and from left to right, whether it is cut."""
    root = CutNode(whole_box(rules), 0)
    waiting = [root]
    for bit in bits:
        node = waiting.pop()
        if bit:
            cut = cut_of(node.box, rules)
            assert cut is not None
            waiting.extend(reversed(node.split(cut)))
    return root
