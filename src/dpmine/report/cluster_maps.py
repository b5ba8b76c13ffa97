"""Maps of clusters in two attributes: where the rows are, by a private synopsis, and the centres; as SVG and in matplotlib.

Shades tell the noisy number of rows for each bit of area, marks the centres, their area the noisy sizes, thin lines where
one cluster ends and the next begins. All of it was paid for when the clusters were made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.report.clusters import Measure
from dpmine.report.drawing import COLOURS, FONTS, INK, LINE, PAPER, SOFT_INK, fitting, mixed, text_width
from dpmine.report.words import NOTE, clean, cut, many

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = NDArray[np.float64]

SIDE = 560.0  # the longer side of the map
FLATTEST = 0.4  # its shorter side, as a part of the longer one
LEFT, RIGHT, TOP, BOTTOM = 84.0, 40.0, 78.0, 84.0
LARGEST_MARK, SMALLEST_MARK = 20.0, 3.5  # radii
FEW_MARKS = 25  # of more, the largest is smaller, so that they do not hide each other
MOST_NUMBERED = 40  # centres that are numbered in the picture
TICKS = 6
SHADES = 28
BRIGHTEST = 0.97  # the part of the rows that lie where it is less dense than what has the darkest shade
LONGEST_TITLE, LONGEST_NAME = 64, 40
LONGEST_TICK = 8  # letters that fit between the map and the name of its axis
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
MARK = COLOURS[4]
SHADE_STOPS = ("#FFFFFF", "#BBDDF1", "#56A7D8", "#0072B2", "#063A5C")


@dataclass(frozen=True, eq=False)
class ClusterMap:
    """What a map shows, in the attributes' own units.

    ratio      height / width of the ground as distances are measured
    boxes      cells of the synopsis (left, low, right, high) that hold rows, and `rows`, their noisy numbers of rows
    borders    the outlines of the clusters, where they are lines in these two attributes
    labels     what a tooltip says about each centre
    """

    title: str
    x: Measure
    y: Measure
    ratio: float
    boxes: Numbers
    rows: Numbers
    centres: Numbers
    sizes: Numbers
    borders: tuple[Numbers, ...]
    labels: tuple[str, ...]

    @property
    def height_of_width(self) -> float:
        return min(max(self.ratio, FLATTEST), 1 / FLATTEST)

    @property
    def note(self) -> str:
        shown = "Circles: centres, area by noisy size"
        return f"{shown}. Shade: noisy density of rows" if len(self.boxes) else shown

    @property
    def radii(self) -> Numbers:
        """Marks whose area follows the size."""
        largest = max(float(self.sizes.max()), 1e-300)
        longest = LARGEST_MARK * math.sqrt(min(1.0, FEW_MARKS / len(self.sizes)))
        return np.maximum(longest * np.sqrt(self.sizes / largest), SMALLEST_MARK)

    def shades(self) -> Numbers:
        """For each cell from 0 to 1: the square root of its density, by the density that few rows exceed."""
        left, low, right, high = self.boxes.T
        density = self.rows / ((right - left) * (high - low))
        order = np.argsort(density)
        place = np.searchsorted(np.cumsum(self.rows[order]), BRIGHTEST * self.rows.sum())
        top = density[order][min(int(place), len(order) - 1)]
        parts: Numbers = np.sqrt(np.minimum(density / top, 1))
        return parts


def ticks(low: float, high: float, steps: int = TICKS) -> list[float]:
    """A few round numbers between two."""
    rough = (high - low) / steps
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]


def tick_words(numbers: Sequence[float]) -> list[str]:
    """Ticks with as many decimals as tell them apart."""
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1.0
    decimals = next((d for d in range(10) if abs(round(step, d) - step) < 1e-9 * step), 10)
    return [f"{number + 0.0:,.{decimals}f}" for number in (round(number, decimals) for number in numbers)]


def short_words(numbers: Sequence[float]) -> list[str]:
    """Ticks in words that leave room for the axis's title: 250k instead of 250,000."""
    largest = max(map(abs, numbers))
    unit, name = next(((unit, name) for unit, name in UNITS if largest >= 10 * unit), (1.0, ""))
    words = tick_words([number / unit for number in numbers])
    return [f"{word}{name}" if number else word for word, number in zip(words, numbers, strict=True)]


# -- SVG ---------------------------------------------------------------------------------------------------------------


def map_svg(drawn: ClusterMap) -> str:
    """The map as an SVG document that needs no fonts, styles or scripts and may stand inside a page."""
    ground = _Ground.of(drawn)
    title = clean(drawn.title)
    heading = max(min(text_width(title, 18, bold=True), SIDE), text_width(drawn.note, 12))
    width, height = LEFT + max(ground.width + RIGHT, math.ceil(heading) + 16), ground.height + TOP + BOTTOM
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    x, y = clean(drawn.x.name), clean(drawn.y.name)
    words = f"A map of {many(len(drawn.centres), 'cluster')} by {x} and {y}. {drawn.note}. {NOTE}."
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONTS}">',
            f"<title>{escape(title, quote=False)}</title>",
            f"<desc>{escape(words, quote=False)}</desc>",
            f'<rect class="paper" width="{width:g}" height="{height:g}" rx="10" fill="{PAPER}"/>',
            _text(LEFT, 34, fitting(title, width - LEFT - 16, 18, bold=True), 18, INK, "start", bold=True),
            _text(LEFT, 55, drawn.note, 12, SOFT_INK, "start"),
            ground.rect("ground", 'fill="#FFFFFF"'),
            *_shade_paths(drawn, ground),
            *_borders(drawn, ground),
            ground.rect("frame", f'fill="none" stroke="{LINE}"'),
            *_axes(drawn, ground),
            *_marks(drawn, ground),
            _text(width - RIGHT, height - 16, f"{NOTE}.", 11, SOFT_INK, "end"),
            "</svg>\n",
        ]
    )


@dataclass(frozen=True)
class _Ground:
    """The rectangle of the map, and where its values stand in it."""

    x: Measure
    y: Measure
    width: float
    height: float

    @classmethod
    def of(cls, drawn: ClusterMap) -> _Ground:
        ratio = drawn.height_of_width
        width, height = (SIDE, SIDE * ratio) if ratio <= 1 else (SIDE / ratio, SIDE)
        return cls(drawn.x, drawn.y, round(width), round(height))

    def across(self, values: Numbers) -> Numbers:
        found: Numbers = LEFT + (values - self.x.low) / (self.x.high - self.x.low) * self.width
        return found

    def up(self, values: Numbers) -> Numbers:
        found: Numbers = TOP + self.height - (values - self.y.low) / (self.y.high - self.y.low) * self.height
        return found

    def rect(self, kind: str, style: str) -> str:
        return f'<rect class="{kind}" x="{LEFT:g}" y="{TOP:g}" width="{self.width:g}" height="{self.height:g}" {style}/>'


def _shade_paths(drawn: ClusterMap, ground: _Ground) -> Iterator[str]:
    """One path for each shade: a rectangle for every cell that has it."""
    if not len(drawn.boxes):
        return
    levels = np.ceil(drawn.shades() * SHADES).astype(int)
    left, right = ground.across(drawn.boxes[:, 0]), ground.across(drawn.boxes[:, 2])
    top, low = ground.up(drawn.boxes[:, 3]), ground.up(drawn.boxes[:, 1])
    for level in np.unique(levels):
        cells = zip(*(side[levels == level] for side in (left, top, right, low)), strict=True)
        path = "".join(f"M{x:.1f} {y:.1f}H{to_x:.1f}V{to_y:.1f}H{x:.1f}z" for x, y, to_x, to_y in cells)
        yield f'<path class="shade" d="{path}" fill="{shade(level / SHADES)}" shape-rendering="crispEdges"/>'


def shade(part: float) -> str:
    """A colour from white over blue to nearly black."""
    place = min(max(part, 0.0), 1.0) * (len(SHADE_STOPS) - 1)
    first = min(int(place), len(SHADE_STOPS) - 2)
    return mixed(SHADE_STOPS[first + 1], SHADE_STOPS[first], place - first)


def _borders(drawn: ClusterMap, ground: _Ground) -> Iterator[str]:
    for outline in drawn.borders:
        spots = " ".join(
            f"{x:.1f},{y:.1f}" for x, y in zip(ground.across(outline[:, 0]), ground.up(outline[:, 1]), strict=True)
        )
        look = f'fill="none" stroke="{SOFT_INK}" stroke-opacity="0.35" stroke-width="0.8"'
        yield f'<polygon class="border" points="{spots}" {look}/>'


def _axes(drawn: ClusterMap, ground: _Ground) -> Iterator[str]:
    base, end = TOP + ground.height, LEFT + ground.width
    across, up = ticks(drawn.x.low, drawn.x.high), ticks(drawn.y.low, drawn.y.high)
    for x, words in zip(ground.across(np.array(across)), tick_words(across), strict=True):
        yield _line(x, base, x, base + 5)
        yield _text(x, base + 19, words, 11.5, INK, "middle")
    up_words = tick_words(up) if max(map(len, tick_words(up))) <= LONGEST_TICK else short_words(up)
    for y, words in zip(ground.up(np.array(up)), up_words, strict=True):
        yield _line(LEFT - 5, y, LEFT, y)
        yield _text(LEFT - 9, y + 4, words, 11.5, INK, "end")
    middle = TOP + ground.height / 2
    yield _text((LEFT + end) / 2, base + 42, cut(clean(drawn.x.name), LONGEST_NAME), 13, INK, "middle")
    turned = f' transform="rotate(-90 20 {middle:g})"'
    yield _text(20, middle, cut(clean(drawn.y.name), LONGEST_NAME), 13, INK, "middle", more=turned)


def _marks(drawn: ClusterMap, ground: _Ground) -> Iterator[str]:
    """A disc and a point for each centre, large ones first, so that small ones stay visible."""
    x, y = ground.across(drawn.centres[:, 0]), ground.up(drawn.centres[:, 1])
    for number in np.argsort(-drawn.radii, kind="stable"):
        at = f'cx="{x[number]:.1f}" cy="{y[number]:.1f}"'
        yield "<g>"
        yield f"<title>{escape(drawn.labels[number], quote=False)}</title>"
        look = f'fill="{MARK}" fill-opacity="0.28" stroke="#FFFFFF" stroke-width="3.2"'
        yield f'<circle class="mark" {at} r="{drawn.radii[number]:.1f}" {look}/>'
        yield f'<circle {at} r="{drawn.radii[number]:.1f}" fill="none" stroke="{MARK}" stroke-width="1.6"/>'
        yield f'<circle {at} r="2.4" fill="{MARK}" stroke="#FFFFFF" stroke-width="1"/>'
        yield "</g>"
    if len(drawn.centres) <= MOST_NUMBERED:
        halo = ' stroke="#FFFFFF" stroke-width="3" paint-order="stroke" stroke-linejoin="round"'
        for number, (across, up) in enumerate(zip(x, y, strict=True)):
            anchor, aside = ("start", 5) if across < LEFT + ground.width - 20 else ("end", -5)
            above = up - 5 if up > TOP + 18 else up + 14
            yield _text(across + aside, above, str(number), 11.5, INK, anchor, bold=True, more=halo)


def _text(
    x: float, y: float, text: str, size: float, colour: str, anchor: str, *, bold: bool = False, more: str = ""
) -> str:
    style = f'font-size="{size:g}" fill="{colour}" text-anchor="{anchor}"' + ' font-weight="600"' * bold + more
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text, quote=False)}</text>'


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{LINE}"/>'


# -- matplotlib --------------------------------------------------------------------------------------------------------


def map_figure(drawn: ClusterMap, *, ax: Axes | None = None) -> Figure:
    """The map in matplotlib, on `ax` or on a figure of its own."""
    try:
        from matplotlib.collections import PolyCollection
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.figure import Figure
        from matplotlib.patheffects import withStroke
    except ImportError:
        raise RequestError("plot needs matplotlib. Run: pip install 'dpmine[plots]'") from None
    ratio = drawn.height_of_width
    if ax is None:
        size = (7.0, 5.7 * ratio + 1.25) if ratio <= 1 else (max(5.7 / ratio + 1.3, 5.0), 7.0)
        ax = Figure(figsize=size, dpi=120, layout="constrained").add_subplot()
        ax.set_anchor("W")  # a narrow map leaves room for the words above it
    if len(drawn.boxes):
        left, low, right, high = drawn.boxes.T
        corners = np.stack(
            [np.stack(spot, axis=1) for spot in ((left, low), (right, low), (right, high), (left, high))], axis=1
        )
        colours = LinearSegmentedColormap.from_list("rows", SHADE_STOPS)(drawn.shades())
        ax.add_collection(PolyCollection(list(corners), facecolors=colours, linewidths=0, antialiased=False))
    if drawn.borders:
        lines = PolyCollection(list(drawn.borders), facecolors="none", edgecolors=SOFT_INK, linewidths=0.6, alpha=0.35)
        ax.add_collection(lines)
    x, y = drawn.centres.T
    order = np.argsort(-drawn.radii, kind="stable")
    area = (1.5 * drawn.radii[order]) ** 2  # points squared: scatter's own measure of a mark's diameter
    for face, edge, width in ((f"{MARK}40", "white", 3.0), ("none", MARK, 1.4)):
        ax.scatter(x[order], y[order], s=area, facecolors=face, edgecolors=edge, linewidths=width, zorder=3)
    ax.scatter(x, y, s=16, facecolors=MARK, edgecolors="white", linewidths=0.8, zorder=4)
    if len(drawn.centres) <= MOST_NUMBERED:
        halo = withStroke(linewidth=2.4, foreground="white")
        for number, spot in enumerate(drawn.centres):
            side, aside = ("left", 4) if spot[0] < drawn.x.low + 0.96 * (drawn.x.high - drawn.x.low) else ("right", -4)
            offset: dict[str, Any] = {"xytext": (aside, 4), "textcoords": "offset points", "horizontalalignment": side}
            words = ax.annotate(str(number), spot, **offset, fontsize=8.5, weight="bold", color=INK, zorder=5)
            words.set_path_effects([halo])
    ax.set_xlim(drawn.x.low, drawn.x.high)
    ax.set_ylim(drawn.y.low, drawn.y.high)
    ax.set_box_aspect(ratio)
    ax.set_xlabel(cut(clean(drawn.x.name), LONGEST_NAME), parse_math=False)
    ax.set_ylabel(cut(clean(drawn.y.name), LONGEST_NAME), parse_math=False)
    for axis, measure in ((ax.xaxis, drawn.x), (ax.yaxis, drawn.y)):
        places = ticks(measure.low, measure.high)
        axis.set_ticks(places, tick_words(places), fontsize=9)
    ax.set_title(f"{cut(clean(drawn.title), LONGEST_TITLE)}\n", loc="left", fontsize=12, weight="bold", parse_math=False)
    ax.annotate(
        drawn.note, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", fontsize=8.5, color=SOFT_INK
    )
    found = ax.get_figure(root=True)
    assert found is not None
    return found
