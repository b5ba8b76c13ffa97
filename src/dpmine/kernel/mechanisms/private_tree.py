"""PrivTree: a tree that is finer where more rows are, at one price however deep it grows (Zhang, Xiao and Xie 2016).

A node is cut if its number of rows, less a decay for each level above it, exceeds 0 by a noisy comparison. Rows along one
path change all its nodes by one, but a node that is far above the threshold is cut anyway, so that only the last few nodes
of a path tell anything. Only which nodes are cut is released.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.codes.aggregates import Cutting
from dpmine.codes.domain import Domain
from dpmine.codes.private_tree import (
    MOST_PRIVATE_CUTS,
    MOST_PRIVATE_NODES,
    CutNode,
    ResolvedCutRule,
    ResolvedPrivateTree,
    TreeCut,
    cut_of,
    whole_box,
)
from dpmine.kernel.mechanisms.mechanism import Asked, Mechanism, Numbers
from dpmine.kernel.samplers.laplace import NoiseSource
from dpmine.noise.laws import DiscreteLaplace, NoisyComparisons, laplace

LN_2 = Fraction(6932, 10_000)  # a little more than ln 2


def decay_of(noise: DiscreteLaplace) -> int:
    """delta: the whole number of rows that a level costs, so that exp(-delta epsilon / 3) <= 1/2."""
    return math.ceil(LN_2 * noise.fraction)


def comparisons(epsilon: Epsilon) -> NoisyComparisons:
    """What a tree at this price is grown by."""
    noise = laplace(3, epsilon)
    return NoisyComparisons(noise, decay_of(noise))


class WhereRowsAre(Mechanism[ResolvedPrivateTree, NoisyComparisons], answers=ResolvedPrivateTree):
    """For each node, parents first and from left to right, whether it is cut: see `grow_private_tree` for the claim."""

    def laws(self, question: ResolvedPrivateTree, domain: Domain, epsilon: Epsilon) -> tuple[NoisyComparisons]:
        return (comparisons(epsilon),)

    def release(self, asked: Asked[ResolvedPrivateTree, NoisyComparisons]) -> list[Numbers | None]:
        question = asked.question
        cutting = asked.engine.cutting(asked.cells.steps, tuple(rule.attribute for rule in question.rules))
        (law,) = asked.laws[asked.units[0]]
        root = grow_private_tree(cutting, question.rules, question.deepest, asked.noise, law)
        return [tuple(int(node.cut is not None) for node in root.nodes())]


def grow_private_tree(
    cutting: Cutting, rules: Sequence[ResolvedCutRule], deepest: int, noise: NoiseSource, law: NoisyComparisons
) -> CutNode:
    """Grow the tree level by level, by noisy comparisons of its nodes' exact numbers of rows.

    Claim        epsilon-DP for adding or removing one row, for the whole structure.
    Sensitivity  1 for the count of each node on one path from the root, 0 for all others.
    Price        epsilon, whatever the depth and the number of nodes.
    Proof        With a = exp(-epsilon / 3), b(v) = max(-delta, c(v) - depth(v) delta) and discrete Laplace noise Z of ratio
                 a, v is cut if b(v) + Z > 0. Adding a row raises b by 0 or 1 on one path. That makes a cut likelier by a
                 factor of at most exp(epsilon / 3), and of at most exp((epsilon / 3) a^y) where b(v) = 1 + y after it. Going
                 up from the last node above the floor, b rises by delta a level: together at most
                 (epsilon / 3) (1 + 1 + 1/2 + 1/4 + ...) = epsilon. Not to cut becomes less likely by at most
                 exp(epsilon / 3), and ends the path. docs/proofs.md#private-tree.
    Assumes      cuts that follow from public rules; a^delta <= 1/2; noise whose scale is not smaller than asked for.
    Not covered  time and memory, which follow the number of nodes and rows.
    Reference    Zhang, Xiao, Xie 2016, Algorithm 2 and Theorem 3.1; here for whole numbers.
    """
    scale, decay = law.noise.fraction, law.decay
    root = CutNode(whole_box(rules), 0)
    level, nodes, used = [root], 1, set[TreeCut]()
    for depth in range(deepest):
        biased = np.maximum(cutting.counts - depth * decay, -decay)
        above = noise.discrete_laplace(scale, len(level)) > -biased  # no sum that could wrap
        cuts: list[TreeCut | None] = []
        for node, goes_on in zip(level, above.tolist(), strict=True):
            cut = cut_of(node.box, rules) if goes_on else None
            if nodes + 2 > MOST_PRIVATE_NODES or (cut not in used and len(used) >= MOST_PRIVATE_CUTS):
                cut = None  # which follows from answers alone
            cuts.append(cut)
            if cut is not None:
                node.split(cut)
                used.add(cut)
                nodes += 2
        level = [half for node in level for half in node.children]
        if not level:
            break
        cutting.cut([None if cut is None else (rules[cut.place].attribute, cut.code) for cut in cuts])
    cutting.keep(root.row_rules(rules))
    return root
