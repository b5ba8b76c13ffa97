"""Private synopses of where the rows are: a grid for few dimensions, a tree of cuts for more.

A synopsis is made of noisy counts, so whatever is done with it afterwards costs nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.codes.private_tree import CutNode, ResolvedCutRule
from dpmine.facts.kinds.numeric import Numeric
from dpmine.language.keys import Key
from dpmine.language.views import LEAF, Rules, Split
from dpmine.mining.clustering.marginals import Marginals, bins_of
from dpmine.mining.clustering.space import Points, Space
from dpmine.noise.laws import DiscreteLaplace
from dpmine.questions.histogram import NoisyCount
from dpmine.questions.private_tree import tree_of
from dpmine.tables.private_table import PrivateTable

Weights = NDArray[np.float64]

FEWEST_CELLS, MOST_CELLS = 30, 400  # of a grid, for each cluster
CELLS_BY_ROWS = 4.0  # cells for each cluster, times the square root of rows a cluster times epsilon
CLEAR = 3.5  # standard deviations of noise by which a neighbourhood must rise to be kept,
SURE = 4.25  # and by which one that it hangs together with must rise
FAR_WIDER = 2.0  # than a neighbour, whose rows then say nothing of a cell, or than the leaves in which rows are
KERNELS = (np.array([1.0, 2, 1]), np.array([1.0, 4, 6, 4, 1]))
MOST_FINE_CELLS = 20_000  # up to which cells are halved along every axis after smoothing
DEEPEST = 40


@dataclass(frozen=True, eq=False)
class Synopsis:
    """Weighted points that stand for the rows, and half the extent of the cell that each stands for, in positions.

    grid   for a grid the number of cells along each axis, else None
    lower  the lower corners of the cells where points are not in their middles, else None
    """

    points: Points
    weights: Weights
    half: Points
    grid: tuple[int, ...] | None = None
    lower: Points | None = None

    @property
    def corners(self) -> Points:
        """The lower corners of the cells."""
        return self.points - self.half if self.lower is None else self.lower


# -- a grid ------------------------------------------------------------------------------------------------------------


def grid_sides(space: Space, k: int, rows: float, epsilon: Epsilon) -> tuple[int, ...]:
    """Cells along each axis, near cubes, as many as rows and epsilon allow to be told from noise."""
    each = min(max(CELLS_BY_ROWS * math.sqrt(max(rows, 1) * float(epsilon) / k), FEWEST_CELLS), MOST_CELLS)
    lengths = space.extents / space.extents.max()
    places = np.array([attribute.cells for attribute in space.attributes])
    sides = np.zeros(space.dimensions)
    left, free = k * each, list(range(space.dimensions))
    while (
        free
    ):  # an axis that gets less than a cell, or more than it has places, is settled first: the others share the rest
        side = (left / float(np.prod(lengths[free]))) ** (1 / len(free))
        ideal = {axis: float(lengths[axis] * side) for axis in free}
        settled = {axis: 1.0 for axis in free if ideal[axis] < 1}
        settled = settled or {axis: float(places[axis]) for axis in free if ideal[axis] > places[axis]}
        for axis, cells in (settled or ideal).items():
            sides[axis] = cells
            free.remove(axis)
            left /= cells
    return tuple(int(side) for side in np.clip(np.rint(sides), 1, places))


def grid_synopsis(private: PrivateTable, space: Space, k: int, rows: float, epsilon: Epsilon) -> Synopsis:
    """A noisy count for every cell of a grid; cells whose neighbourhood does not rise out of the noise are dropped."""
    sides = grid_sides(space, k, rows, epsilon)
    keys = [grid_key(a, side) for a, side in zip(space.attributes, sides, strict=True)]
    counted = private.histogram(*(key for key in keys if key is not None), epsilon=epsilon)
    counts = counted.counts.reshape(sides)
    firsts = [np.append(grid_starts(a.cells, side), a.cells) for a, side in zip(space.attributes, sides, strict=True)]
    edges = [ends[first] for ends, first in zip(space.edges, firsts, strict=True)]
    clear = _clear(counts, tails_of(counted.law), [np.diff(along) for along in edges])
    weights = np.where(clear, np.maximum(counts, 0), 0).astype(np.float64)
    if weights.size * 2**space.dimensions <= MOST_FINE_CELLS:
        weights, finer = _halved(weights, [first.astype(np.float64) for first in firsts])
        edges = [np.interp(codes, np.arange(len(ends)), ends) for codes, ends in zip(finer, space.edges, strict=True)]
    centres = [(low[:-1] + low[1:]) / 2 for low in edges]
    widths = [np.diff(low) / 2 for low in edges]
    points = np.stack(np.meshgrid(*centres, indexing="ij"), axis=-1).reshape(-1, space.dimensions)
    half = np.stack(np.meshgrid(*widths, indexing="ij"), axis=-1).reshape(-1, space.dimensions)
    return Synopsis(points, weights.ravel(), half, weights.shape)


def tails_of(law: DiscreteLaplace) -> float:
    """The deviation that goes with the tails of the noise, like that of numbers that are not whole.

    Where whole numbers hardly ever differ from 0 their own deviation says too little of how far they then do.
    """
    return math.sqrt(2) * float(law.fraction)


def grid_starts(size: int, side: int) -> NDArray[np.int64]:
    return size * np.arange(side, dtype=np.int64) // side


def grid_key(attribute: Numeric, side: int) -> Key | None:
    inner = grid_starts(attribute.cells, side)[1:].tolist()
    return bins_of(attribute, inner) if inner else None


def _clear(counts: NDArray[np.int64], deviation: float, widths: Sequence[Points]) -> NDArray[np.bool_]:
    """Cells in whose neighbourhood, near or wider, smoothed counts rise out of what noise alone makes of them.

    Of thousands of neighbourhoods some rise a little by noise alone, and one of these far from all rows would draw a centre
    to itself. So a group of neighbours is kept only if somewhere it rises so far that noise hardly ever does. A crowd in a
    cell says nothing of a neighbour that is far wider: a row of noise there would outweigh the crowd.
    """
    clear, kept = np.zeros(counts.shape, dtype=bool), np.zeros(counts.shape, dtype=bool)
    for kernel in KERNELS:
        smooth, noise = counts.astype(np.float64), np.full(counts.shape, deviation)
        for axis in range(counts.ndim):
            if counts.shape[axis] > 1:
                kernels = _kernels(kernel, widths[axis])
                smooth = _convolved(smooth, kernels, axis)
                noise = noise * np.linalg.norm(kernels, axis=1).reshape(-1, *[1] * (counts.ndim - axis - 1))
        clear |= smooth > CLEAR * noise
        kept |= smooth > SURE * noise
    while True:  # from the sure cells on to all clear ones that hang together with them
        grown = kept.astype(np.float64)
        for axis in range(counts.ndim):
            grown = _convolved(grown, np.ones((counts.shape[axis], 3)), axis)
        grown_to = clear & (grown > 0)
        if np.array_equal(grown_to, kept):
            return kept
        kept = grown_to


def _kernels(kernel: Weights, widths: Points) -> Weights:
    """The kernel of each cell along an axis: neighbours that are far narrower have no weight."""
    reach = len(kernel) // 2
    padded = np.concatenate([np.full(reach, np.inf), widths, np.full(reach, np.inf)])
    neighbours = np.lib.stride_tricks.sliding_window_view(padded, len(kernel))
    return np.where(neighbours >= widths[:, None] / FAR_WIDER, kernel, 0.0)


def _convolved(numbers: Weights, kernels: Weights, axis: int) -> Weights:
    """Numbers added up with their neighbours along an axis, by each one's odd kernel; outside there is nothing."""
    reach = kernels.shape[1] // 2
    along = np.moveaxis(numbers, axis, 0)
    padded = np.concatenate([np.zeros((reach, *along.shape[1:])), along, np.zeros((reach, *along.shape[1:]))])
    weights = kernels.T.reshape(kernels.shape[1], len(along), *[1] * (along.ndim - 1))
    added = sum(weight * padded[place : place + len(along)] for place, weight in enumerate(weights))
    return np.moveaxis(np.asarray(added), 0, axis)


def _halved(weights: Weights, edges: list[Points]) -> tuple[Weights, list[Points]]:
    """Every cell in two along every axis; the halves' weights follow the slope to both sides, and add up as before.

    Edges are in codes: where codes are not equally wide, rows are rather spread evenly over them than over values. The slope
    is that of density, from the middle of one neighbour to the middle of the other: a cell counts here as many rows as it
    would hold if it were as wide as the one between, and distances are in its widths.
    """
    for axis in range(weights.ndim):
        along = np.moveaxis(weights, axis, 0)
        nothing = np.zeros_like(along[:1])
        widths = np.diff(edges[axis])
        before, after = np.ones(len(widths)), np.ones(len(widths))  # neighbours' widths; outside as wide as the cell
        before[1:], after[:-1] = widths[:-1] / widths[1:], widths[1:] / widths[:-1]
        by_axis = (-1, *[1] * (along.ndim - 1))
        rising = np.concatenate([along[1:], nothing]) / after.reshape(by_axis)
        falling = np.concatenate([nothing, along[:-1]]) / before.reshape(by_axis)
        slope = (rising - falling) / (1 + (before + after) / 2).reshape(by_axis)
        slope = np.clip(slope, -2 * along, 2 * along)
        halves = np.stack([along / 2 - slope / 8, along / 2 + slope / 8], axis=1)
        weights = np.moveaxis(halves.reshape((-1, *along.shape[1:])), 0, axis)
    finer = []
    for low in edges:
        middles = (low[:-1] + low[1:]) / 2
        finer.append(np.sort(np.concatenate([low, middles])))
    return weights, finer


# -- a tree ------------------------------------------------------------------------------------------------------------


def tree_synopsis(
    private: PrivateTable, space: Space, *, marginals: Epsilon, structure: Epsilon, counts: Epsilon
) -> Synopsis:
    """A private tree of cuts, placed by what is known of each attribute alone, with noisy counts of its leaves."""
    known = Marginals.of(private, space, marginals)
    rules = known.cut_rules()
    grown = private.private_tree(rules, epsilon=structure, deepest=DEEPEST)
    row_rules = [
        ResolvedCutRule(rule.attribute, a.cells, rule.edges, rule.scores, rule.cuts, rule.inside)
        for rule, a in zip(rules, space.attributes, strict=True)
    ]
    root = tree_of(grown.bits, row_rules)
    leaves = list(root.leaves())
    counted = [count for count in private.cells(_rules(root, space)).count(epsilon=counts) if count is not None]
    noisy = np.array([int(count) for count in counted], dtype=np.float64)
    points = np.array([known.middle(leaf.box.lows, leaf.box.highs) for leaf in leaves])
    lows, highs = (
        np.stack(
            [ends[[getattr(leaf.box, side)[place] for leaf in leaves]] for place, ends in enumerate(space.edges)], axis=1
        )
        for side in ("lows", "highs")
    )
    least: Weights | float = counted[0].standard_deviation
    if any(attribute.step is None for attribute in space.attributes):
        least = _least(noisy, (highs - lows).sum(axis=1), counted[0])
    weights = np.where(noisy > least, noisy, 0)
    return Synopsis(points, weights, (highs - lows) / 2, lower=lows)


def _least(noisy: Weights, lengths: Points, counted: NoisyCount) -> Weights:
    """The count above which each leaf counts, where grids have wide cells far out that nothing cuts.

    A leaf that is far wider than those in which rows are must rise as clearly as the cells of a grid: a row of noise there
    would outweigh many rows.
    """
    clear = CLEAR * tails_of(counted.law)
    sure = np.where(noisy > clear, noisy, 0)
    usual = float(sure @ lengths / sure.sum()) if sure.any() else math.inf
    return np.where(lengths > FAR_WIDER * usual, clear, counted.standard_deviation)


def _rules(node: CutNode, space: Space) -> Rules:
    if node.cut is None:
        return LEAF
    attribute = space.attributes[node.cut.place]
    return Split(bins_of(attribute, [node.cut.code]), tuple(_rules(child, space) for child in node.children))
