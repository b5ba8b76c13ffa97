"""A tree that is finer where more rows are (PrivTree): on codes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpmine.base.wire_values import value
from dpmine.codes.domain import require
from dpmine.codes.queries import MOST_COUNTS, MOST_KEYS, ResolvedQuestion, one_cell
from dpmine.codes.rows import MOST_DIMENSIONS, Branch, Checked, Checker, Recode, RowRules, rise

DEEPEST_PRIVATE_TREE = 60


LARGEST_CUT_SCORE = 2**40  # times the square of 4,096 codes stays inside 64 bits


MOST_PRIVATE_NODES = 65_535  # of a private tree, counted level by level: its leaves are cells of one query


MOST_PRIVATE_CUTS = MOST_KEYS - 1  # different ones: each is a key of that query


@value("resolved-cut-rule")
class ResolvedCutRule(Checked):
    """Where an attribute would be cut, for every interval: as `CutRule`, with the number of the attribute's codes."""

    attribute: str
    size: int
    edges: tuple[int, ...]
    scores: tuple[int, ...]
    cuts: tuple[int, ...]
    inside: int

    def check(self, see: Checker) -> None:
        """Every cut lies inside what it cuts, so that each node's halves are smaller than the node."""
        bins = len(self.edges)
        column = see.domain.column(self.attribute)
        require(column.values > 0 and self.size == column.size - column.gap, "rules know how many codes there are")
        require(rise([-1, *self.edges, self.size]) and self.edges[:1] == (0,), "bins begin at rising codes, from 0 on")
        require(len(self.scores) == len(self.cuts) == bins * (bins + 1) // 2, "each run of bins has a score and a cut")
        runs = ((first, after) for first in range(bins) for after in range(first + 1, bins + 1))
        cuts = zip(runs, self.cuts, strict=True)
        require(all(after - first == 1 or first < cut < after for (first, after), cut in cuts), "a run is cut inside")
        require(max(map(abs, (*self.scores, self.inside))) <= LARGEST_CUT_SCORE, "scores are bounded")


@value("resolved-private-tree")
class ResolvedPrivateTree(ResolvedQuestion):
    """Which nodes of a tree of cuts are split: the rules say where, `tree_of` reads the answer."""

    rules: tuple[ResolvedCutRule, ...]
    deepest: int

    def check(self, see: Checker, cells: int) -> None:
        one_cell(cells)
        names = {rule.attribute for rule in self.rules}
        require(1 <= len(names) == len(self.rules) <= MOST_DIMENSIONS, "a tree cuts different attributes")
        require(1 <= self.deepest <= DEEPEST_PRIVATE_TREE, "a tree has some levels, and not too many")
        require(sum(len(rule.edges) ** 2 for rule in self.rules) <= MOST_COUNTS, "rules have few bins")
        see(*self.rules)


@dataclass(frozen=True)
class Box:
    """A node: for each attribute the codes from `lows` to before `highs`."""

    lows: tuple[int, ...]
    highs: tuple[int, ...]


@dataclass(frozen=True)
class TreeCut:
    """Codes of the attribute of that number below `code` go to the left."""

    place: int
    code: int


def whole_box(rules: Sequence[ResolvedCutRule]) -> Box:
    return Box((0,) * len(rules), tuple(rule.size for rule in rules))


def cut_of(box: Box, rules: Sequence[ResolvedCutRule]) -> TreeCut | None:
    """The cut of a node: of the attribute whose interval is worth most, of equal ones the first; None if no code is left."""
    best: tuple[int, int, int] | None = None
    for place, rule in enumerate(rules):
        found = _interval_cut(rule, box.lows[place], box.highs[place])
        if found is not None and (best is None or found[0] > best[0]):
            best = (found[0], place, found[1])
    return None if best is None else TreeCut(best[1], best[2])


def _interval_cut(rule: ResolvedCutRule, low: int, high: int) -> tuple[int, int] | None:
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


def halves(box: Box, cut: TreeCut) -> tuple[Box, Box]:
    highs = (*box.highs[: cut.place], cut.code, *box.highs[cut.place + 1 :])
    lows = (*box.lows[: cut.place], cut.code, *box.lows[cut.place + 1 :])
    return Box(box.lows, highs), Box(lows, box.highs)


@dataclass
class CutNode:
    """A node of a growing tree."""

    box: Box
    depth: int
    cut: TreeCut | None = None
    children: tuple[CutNode, ...] = ()

    def split(self, cut: TreeCut) -> tuple[CutNode, ...]:
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

    def row_rules(self, rules: Sequence[ResolvedCutRule]) -> RowRules | None:
        """The tree as the cells of a query, whose leaves are its cells from left to right."""
        if self.cut is None:
            return None
        rule = rules[self.cut.place]
        key = Recode(rule.attribute, ((0, 0), (self.cut.code, 1)), 2)
        return Branch(key, tuple(child.row_rules(rules) for child in self.children))
