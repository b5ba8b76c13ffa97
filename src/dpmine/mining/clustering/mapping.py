"""A clustering seen in two of its attributes: cells of the synopsis, centres and outlines, ready to be drawn."""

import numpy as np

from dpmine.base.errors import RequestError
from dpmine.mining.clustering.space import Points, Space
from dpmine.mining.clustering.synopsis import Synopsis
from dpmine.report.cluster_maps import ClusterMap
from dpmine.report.clusters import Measure, cluster_words

MOST_OUTLINED = 200  # centres
RASTER = 72  # cells along each axis where leaves overlap, seen in two attributes only


def measures_of(space: Space) -> tuple[Measure, ...]:
    return tuple(Measure(a.title, float(a.numbers.low), float(a.numbers.high)) for a in space.attributes)


def drawn_places(space: Space, x: str | None, y: str | None) -> tuple[int, int]:
    """Which two attributes a map shows: those asked for, else the first ones."""
    if space.dimensions < 2:
        raise RequestError(f"A map shows two attributes, and these clusters have one, {space.names[0]!r}. Use to_text().")
    for name in (x, y):
        if name is not None and name not in space.names:
            raise RequestError(f"The clusters have no attribute {name!r}. They have {', '.join(space.names)}.")
    if x is not None and x == y:
        raise RequestError(f"A map shows two attributes. Got {x!r} twice.")
    across = space.names.index(x) if x is not None else next(p for p, name in enumerate(space.names) if name != y)
    up = space.names.index(y) if y is not None else next(p for p in range(space.dimensions) if p != across)
    return across, up


def map_of(
    title: str, space: Space, centres: Points, sizes: Points, synopsis: Synopsis | None, x: str | None, y: str | None
) -> ClusterMap:
    """The map of centres (in positions), in the attributes' own units."""
    places = list(drawn_places(space, x, y))
    measures = measures_of(space)
    values = space.values(centres)
    boxes, rows = (np.empty((0, 4)), np.empty(0)) if synopsis is None else _cells(synopsis, space, places)
    boxes, rows = boxes[rows > 0], rows[rows > 0]
    extents = space.extents[places]
    flat = space.dimensions == 2 and len(centres) <= MOST_OUTLINED
    # A value stands for all numbers that are rounded to it: a map ends half a value outside the bounds.
    room = space.value_lengths[places] / 2
    outlines = [outline(centres[:, places], number, -room, extents + room) for number in range(len(centres))] if flat else []
    margins = [(float(space.attributes[place].finest) / 2, measures[place]) for place in places]
    across, up = (Measure(m.name, m.low - margin, m.high + margin) for margin, m in margins)
    return ClusterMap(
        title,
        across,
        up,
        float(extents[1] / extents[0]),
        np.concatenate([_values(boxes[:, :2], space, places), _values(boxes[:, 2:], space, places)], axis=1),
        rows,
        values[:, places],
        sizes,
        tuple(_values(spots, space, places) for spots in outlines if len(spots) > 2),
        tuple(cluster_words(number, measures, values[number], float(sizes[number])) for number in range(len(centres))),
    )


def _values(positions: Points, space: Space, places: list[int]) -> Points:
    lows = np.array([float(space.attributes[place].low) for place in places])
    found: Points = lows + positions * (space.units / np.array(space.scales))[places]
    return found


def _cells(synopsis: Synopsis, space: Space, places: list[int]) -> tuple[Points, Points]:
    """Boxes (two lower, two upper positions) and their rows, with the other attributes added up."""
    low = synopsis.corners[:, places]
    high = low + 2 * synopsis.half[:, places]
    if space.dimensions == 2:
        return np.concatenate([low, high], axis=1), synopsis.weights
    if synopsis.grid is not None:
        corners, cells = np.unique(np.concatenate([low, high], axis=1), axis=0, return_inverse=True)
        return corners, np.bincount(cells.ravel(), synopsis.weights, len(corners)).astype(np.float64)
    seen = synopsis.weights > 0
    room = space.value_lengths[places] / 2
    edges = [np.linspace(-margin, end + margin, RASTER + 1) for margin, end in zip(room, space.extents[places], strict=True)]
    across, up = (_overlaps(low[seen, axis], high[seen, axis], edges[axis]) for axis in (0, 1))
    rows = (across * synopsis.weights[seen][:, None]).T @ up
    lower = np.stack(np.meshgrid(*(edge[:-1] for edge in edges), indexing="ij"), axis=-1).reshape(-1, 2)
    upper = np.stack(np.meshgrid(*(edge[1:] for edge in edges), indexing="ij"), axis=-1).reshape(-1, 2)
    return np.concatenate([lower, upper], axis=1), rows.ravel()


def _overlaps(low: Points, high: Points, edges: Points) -> Points:
    """Which part of each interval lies in each cell of an axis."""
    inside = np.minimum(high[:, None], edges[None, 1:]) - np.maximum(low[:, None], edges[None, :-1])
    parts: Points = np.maximum(inside, 0) / (high - low)[:, None]
    return parts


def outline(centres: Points, number: int, low: Points, high: Points) -> Points:
    """The part of the box (in two dimensions) that is nearest to a centre: the box, cut by the bisectors to all others."""
    spots = np.array([low, [high[0], low[1]], high, [low[0], high[1]]], dtype=np.float64)
    for other in np.delete(centres, number, axis=0):
        ahead = other - centres[number]
        if not np.any(ahead) or len(spots) < 3:
            continue
        beyond = (spots - (other + centres[number]) / 2) @ ahead
        if np.all(beyond <= 0):
            continue
        kept = []
        for place in range(len(spots)):
            here, there = beyond[place - 1], beyond[place]
            if (here <= 0) != (there <= 0):
                kept.append(spots[place - 1] + (spots[place] - spots[place - 1]) * (here / (here - there)))
            if there <= 0:
                kept.append(spots[place])
        spots = np.array(kept).reshape(-1, 2)
    return spots
