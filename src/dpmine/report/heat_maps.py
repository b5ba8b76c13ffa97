"""The table of a finite mechanism as a heat map in SVG: across what is released, upwards what is true."""

from collections.abc import Iterator
from xml.sax.saxutils import escape

import numpy as np

from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.noise.finite_tables import Floats, exact_text
from dpmine.report.bar_charts import line_svg, share_words, text_svg
from dpmine.report.cluster_maps import SHADES, shade, tick_words, ticks
from dpmine.report.drawing import LINE

LEFT, TOP, BOTTOM, KEY = 62.0, 14.0, 48.0, 96.0  # KEY: room for what the shades mean
MOST_CELLS_NAMED = 2_500  # cells that each have a tooltip; of larger tables, cells of one shade are one shape
KEY_STEPS = 6


def heat_map_shapes(mechanism: FiniteMechanism, width: float, height: float) -> list[str]:
    """The table in a box of this size. Shades grow with the square root of the probability, so that tails are seen."""
    matrix = mechanism.matrix()
    ground = _Ground(mechanism, width - LEFT - KEY, height - TOP - BOTTOM)
    largest = float(matrix.max())
    levels = np.ceil(np.sqrt(matrix / largest) * SHADES).astype(int)
    frame = f'x="{LEFT:.1f}" y="{TOP:.1f}" width="{ground.width:.1f}" height="{ground.height:.1f}"'
    cells = _named_cells(ground, matrix, levels) if matrix.size <= MOST_CELLS_NAMED else _plain_cells(ground, levels)
    return [
        f'<rect {frame} fill="{shade(0)}"/>',
        *cells,
        f'<rect {frame} fill="none" stroke="{LINE}"/>',
        *_axes(ground),
        *_key(largest, LEFT + ground.width + 16),
    ]


class _Ground:
    """Both axes run over the grid of true values, half a step beyond at either end."""

    def __init__(self, mechanism: FiniteMechanism, width: float, height: float) -> None:
        self.mechanism, self.width, self.height = mechanism, width, height
        inputs = [float(point) for point in mechanism.inputs]
        step = (inputs[-1] - inputs[0]) / (len(inputs) - 1) if len(inputs) > 1 else 1.0
        self.low, self.high = inputs[0] - step / 2, inputs[-1] + step / 2
        # The sides of cells as they are written, so that neighbours meet and no gap is seen between them.
        half = step / 2
        self.columns = [_sides(self.across(x - half), self.across(x + half)) for x in map(float, mechanism.released)]
        self.rows = [_sides(self.up(y + half), self.up(y - half)) for y in inputs]

    def across(self, x: float) -> float:
        return LEFT + (x - self.low) / (self.high - self.low) * self.width

    def up(self, y: float) -> float:
        return TOP + self.height - (y - self.low) / (self.high - self.low) * self.height


def _sides(first: float, second: float) -> tuple[float, float]:
    return round(first, 2), round(second, 2)


def _named_cells(ground: _Ground, matrix: Floats, levels: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Iterator[str]:
    released = [exact_text(point) for point in ground.mechanism.released]
    for row, true in enumerate(ground.mechanism.inputs):
        for column, told in enumerate(released):
            tip = f"<title>{escape(f'true {exact_text(true)}, released {told}: {share_words(matrix[row, column])}')}</title>"
            (left, right), (top, low) = ground.columns[column], ground.rows[row]
            place = f'x="{left:.2f}" y="{top:.2f}" width="{right - left:.2f}" height="{low - top:.2f}"'
            look = f'fill="{shade(levels[row, column] / SHADES)}" shape-rendering="crispEdges"'
            yield f'<rect class="cell" {place} {look}>{tip}</rect>'


def _plain_cells(ground: _Ground, levels: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Iterator[str]:
    for level in np.unique(levels[levels > 0]).tolist():
        places = zip(*np.nonzero(levels == level), strict=True)
        cells = (ground.columns[column] + ground.rows[row] for row, column in places)
        path = "".join(f"M{left:.2f} {top:.2f}H{right:.2f}V{low:.2f}H{left:.2f}z" for left, right, top, low in cells)
        yield f'<path class="cells" d="{path}" fill="{shade(level / SHADES)}" shape-rendering="crispEdges"/>'


def _axes(ground: _Ground) -> Iterator[str]:
    low, high = (float(ground.mechanism.inputs[place]) for place in (0, -1))
    base = TOP + ground.height
    values = ticks(low, high) if high > low else [low]
    for value, words in zip(values, tick_words(values), strict=True):
        yield line_svg(ground.across(value), base, ground.across(value), base + 5)
        yield text_svg(ground.across(value), base + 18, words, "middle", 11)
        yield line_svg(LEFT - 5, ground.up(value), LEFT, ground.up(value))
        yield text_svg(LEFT - 8, ground.up(value) + 4, words, "end", 11)
    middle = TOP + ground.height / 2
    yield text_svg(LEFT + ground.width / 2, base + 38, "released", "middle", 12)
    yield f'<g transform="rotate(-90 16 {middle:.1f})">{text_svg(16, middle, "true value", "middle", 12)}</g>'


def _key(largest: float, left: float) -> Iterator[str]:
    for place in range(KEY_STEPS):
        part = place / (KEY_STEPS - 1)
        y = TOP + 18 * (KEY_STEPS - 1 - place)
        yield f'<rect x="{left:.1f}" y="{y:.1f}" width="14" height="18" fill="{shade(part)}" stroke="{LINE}"/>'
        yield text_svg(left + 20, y + 13, share_words(part**2 * largest), "start", 11)
