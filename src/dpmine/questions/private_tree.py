"""A tree that is finer where more rows are (PrivTree).

Which cut a node would make is public, which nodes are cut is asked once and privately. Both the kernel, which grows such a
tree, and whoever reads its answer derive the cuts from the same whole numbers.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.private_tree import (
    DEEPEST_PRIVATE_TREE,
    LARGEST_CUT_SCORE,
    CutNode,
    ResolvedCutRule,
    ResolvedPrivateTree,
    cut_of,
    whole_box,
)
from dpmine.codes.queries import MOST_COUNTS
from dpmine.codes.rows import MOST_DIMENSIONS
from dpmine.facts.schema import Schema
from dpmine.language.queries import Question, of_one_cell
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import NoisyComparisons
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt


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
        size = resolver.schema.numeric(self.attribute, "it has no quantiles and no intervals").cells
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


# -- cuts --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GrownPrivateTree:
    """Which nodes of a private tree are cut: parents first, from left to right."""

    bits: tuple[int, ...]
    receipt: Receipt


@reads(PrivateTree)
class PrivateTreeReading(Reading[PrivateTree]):
    def words(self, question: PrivateTree) -> str:
        return "private tree by " + ", ".join(rule.attribute for rule in question.rules)

    def expected_error(self, question: PrivateTree, quote: Quote, schema: Schema) -> str:
        (law,) = quote.laws[0]
        assert isinstance(law, NoisyComparisons)
        rows = law.decay
        return f"A node is cut about where it holds more rows than {rows} for each level above it, give or take {2 * rows}."

    def read(self, question: PrivateTree, reply: CellReply, schema: Schema) -> GrownPrivateTree:
        return GrownPrivateTree(reply.numbers, reply.receipt)


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
