"""A tree that is finer where more rows are (PrivTree).

Which cut a node would make is public, which nodes are cut is asked once and privately. Both the kernel, which grows such a
tree, and whoever reads its answer derive the cuts from the same whole numbers.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.language.model_keys import MOST_DIMENSIONS
from dpmine.language.queries import MOST_COUNTS, Question, ResolvedQuestion, of_one_cell
from dpmine.language.resolved import Branch, Recode, RowRules
from dpmine.language.resolver import MOST_KEYS, Resolver

DEEPEST_PRIVATE_TREE = 60
LARGEST_CUT_SCORE = 2**40  # times the square of 4,096 codes stays inside 64 bits
MOST_PRIVATE_NODES = 65_535  # of a private tree, counted level by level: its leaves are cells of one query
MOST_PRIVATE_CUTS = MOST_KEYS - 1  # different ones: each is a key of that query


@value("cut-rule")
class CutRule:
    """Where a private tree would cut an attribute, for every interval of it: public numbers, fixed beforehand.

    edges   the first codes of bins that divide the attribute's codes
    scores  for each run of bins, from bin i to before bin j, how much cutting it is worth, in the order (0, 1), (0, 2), ...,
            (1, 2), ...; a run of one bin has no score here
    cuts    for each run the bin before which it is cut
    inside  what cutting two codes inside one bin apart is worth; an interval of w codes is worth w^2 times that, and is cut
            in the middle
    """

    attribute: str
    edges: tuple[int, ...]
    scores: tuple[int, ...]
    cuts: tuple[int, ...]
    inside: int

    def __post_init__(self) -> None:
        if {type(number) for number in (*self.edges, *self.scores, *self.cuts, self.inside)} != {int}:
            raise RequestError(f"Edges, scores and cuts of {self.attribute!r} are whole numbers.")

    def resolve(self, resolver: Resolver) -> ResolvedCutRule:
        size = resolver.numeric(self.attribute, "it has no quantiles and no intervals").size
        bins = len(self.edges)
        runs = bins * (bins + 1) // 2
        rising = all(low < high for low, high in itertools.pairwise(self.edges))
        if not self.edges or self.edges[0] != 0 or not rising or self.edges[-1] >= size:
            raise RequestError(f"The bins of {self.attribute!r} begin at rising codes, from 0 on.")
        if len(self.scores) != runs or len(self.cuts) != runs or runs > MOST_COUNTS:
            raise RequestError(f"{bins} bins of {self.attribute!r} need {runs} scores and cuts.")
        every_run = ((first, after) for first in range(bins) for after in range(first + 1, bins + 1))
        for (first, after), cut in zip(every_run, self.cuts, strict=True):
            if after - first > 1 and not first < cut < after:
                raise RequestError(f"A run of bins of {self.attribute!r} must be cut inside.")
        if max(map(abs, (*self.scores, self.inside))) > LARGEST_CUT_SCORE:
            raise RequestError(f"What a cut is worth lies within +-{LARGEST_CUT_SCORE}.")
        return ResolvedCutRule(self.attribute, size, self.edges, self.scores, self.cuts, self.inside)


@value("private-tree")
class PrivateTree(Question):
    """Which nodes of a tree of cuts are split further, where many rows are: the structure alone, no counts.

    A node goes on where its rows, less a public amount for each level above it, exceed a threshold by noisy comparison
    (PrivTree). Where a node is cut follows from the rules: in the attribute whose interval is worth most. One price for the
    whole tree, however deep it grows.
    """

    rules: tuple[CutRule, ...]
    deepest: int

    def __post_init__(self) -> None:
        names = [rule.attribute for rule in self.rules]
        if not 1 <= len(names) <= MOST_DIMENSIONS or len(set(names)) < len(names):
            raise RequestError(f"A private tree cuts 1 to {MOST_DIMENSIONS} different attributes.")
        if type(self.deepest) is not int or not 1 <= self.deepest <= DEEPEST_PRIVATE_TREE:
            raise RequestError(f"A private tree has 1 to {DEEPEST_PRIVATE_TREE} levels.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedPrivateTree:
        of_one_cell(cells)
        return ResolvedPrivateTree(tuple(rule.resolve(resolver) for rule in self.rules), self.deepest)


@value("resolved-cut-rule")
class ResolvedCutRule:
    """Where an attribute would be cut, for every interval: as `CutRule`, with the number of the attribute's codes."""

    attribute: str
    size: int
    edges: tuple[int, ...]
    scores: tuple[int, ...]
    cuts: tuple[int, ...]
    inside: int


@value("resolved-private-tree")
class ResolvedPrivateTree(ResolvedQuestion):
    """Which nodes of a tree of cuts are split: the rules say where, `tree_of` reads the answer."""

    rules: tuple[ResolvedCutRule, ...]
    deepest: int


# -- cuts --------------------------------------------------------------------------------------------------------------


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


def tree_of(bits: Sequence[int], rules: Sequence[ResolvedCutRule]) -> CutNode:
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
