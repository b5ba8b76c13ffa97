"""Line charts as SVG to stand in a page or a picture: some curves over one axis, named beside them.

Ink is `currentColor`, so that a dark page has light axes; curves have colours of their own, and dashes besides.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from dpmine.report.bar_charts import level_svg, line_svg, text_svg
from dpmine.report.cluster_maps import short_words, ticks
from dpmine.report.drawing import text_width
from dpmine.report.words import clean

LEFT, TOP, BOTTOM, LEGEND_GAP = 62.0, 14.0, 48.0, 14.0
LEGEND_STEP, SAMPLE = 19.0, 26.0


@dataclass(frozen=True)
class Line:
    """A curve and how it looks; `dash` as in SVG, "" for a solid line."""

    name: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    colour: str
    dash: str = ""
    thick: bool = False


@dataclass(frozen=True)
class LineChart:
    """Curves over a logarithmic axis with ticks at the given values, from 0 upwards.

    level    a number to mark by a dotted line across, with its name, or None
    at       a value of the axis to mark by a line upwards, or None
    """

    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    x_ticks: tuple[float, ...]
    level: tuple[str, float] | None = None
    at: float | None = None

    @property
    def top(self) -> float:
        levels = [self.level[1]] if self.level else []
        return max((*(y for line in self.lines for y in line.ys), *levels), default=0.0) * 1.04 or 1.0

    @property
    def ends(self) -> tuple[float, float]:
        """Of the axis. A single value stands in the middle."""
        xs = [x for line in self.lines for x in line.xs] or [1.0]
        low, high = min(xs), max(xs)
        return (low / 2, high * 2) if low == high else (low, high)


def chart_shapes(chart: LineChart, width: float, height: float) -> list[str]:
    """The chart in a box of this size, with its legend at the right."""
    room = SAMPLE + 9 + max((text_width(clean(name), 11.5) for name in _names(chart)), default=0.0)
    ground = _Ground(chart, width - LEFT - room - LEGEND_GAP, height - TOP - BOTTOM)
    return [*_drawn(chart, ground), *_legend(chart, LEFT + ground.width + LEGEND_GAP, TOP + 6)]


def tall_chart_shapes(chart: LineChart, width: float, height: float) -> list[str]:
    """The chart in a box of this size, of which the legend takes its lines at the bottom."""
    ground = _Ground(chart, width - LEFT - LEGEND_GAP, height - legend_height(chart) - TOP - BOTTOM)
    return [*_drawn(chart, ground), *_legend(chart, LEFT, ground.base + BOTTOM + 8)]


def legend_height(chart: LineChart) -> float:
    return LEGEND_STEP * len(_names(chart))


def _names(chart: LineChart) -> list[str]:
    return [line.name for line in chart.lines] + ([chart.level[0]] if chart.level else [])


@dataclass(frozen=True)
class _Ground:
    chart: LineChart
    width: float
    height: float

    @property
    def base(self) -> float:
        return TOP + self.height

    def across(self, x: float) -> float:
        low, high = self.chart.ends
        return LEFT + math.log(x / low) / math.log(high / low) * self.width

    def up(self, y: float) -> float:
        return self.base - y / self.chart.top * self.height


def _drawn(chart: LineChart, ground: _Ground) -> Iterator[str]:
    yield from _axes(chart, ground)
    yield from _marks(chart, ground)
    for line in sorted(chart.lines, key=lambda line: line.thick):  # the thick ones on top
        yield from _curve(chart, ground, line)


def _axes(chart: LineChart, ground: _Ground) -> Iterator[str]:
    end = LEFT + ground.width
    levels = ticks(0.0, chart.top)
    for level, words in zip(levels, short_words(levels), strict=True):
        y = ground.up(level)
        yield level_svg(LEFT, end, y)
        yield text_svg(LEFT - 8, y + 4, words, "end", 11)
    low, high = chart.ends
    for x in chart.x_ticks:
        if low <= x <= high:
            yield line_svg(ground.across(x), ground.base, ground.across(x), ground.base + 5)
            yield text_svg(ground.across(x), ground.base + 18, f"{x:g}", "middle", 11)
    yield line_svg(LEFT, ground.base, end, ground.base)
    yield text_svg((LEFT + end) / 2, ground.base + 38, chart.x_title, "middle", 12)
    middle = TOP + ground.height / 2
    yield f'<g transform="rotate(-90 16 {middle:.1f})">{text_svg(16, middle, chart.y_title, "middle", 12)}</g>'


def _marks(chart: LineChart, ground: _Ground) -> Iterator[str]:
    look = 'stroke="currentColor" stroke-width="1.2" stroke-dasharray="2 4"'
    if chart.at is not None:
        x = ground.across(chart.at)
        yield f'<line x1="{x:.1f}" y1="{TOP:.1f}" x2="{x:.1f}" y2="{ground.base:.1f}" {look} stroke-opacity="0.6"/>'
    if chart.level is not None:
        y = ground.up(chart.level[1])
        tip = f"<title>{escape(clean(f'{chart.level[0]}: {chart.level[1]:.4g}'))}</title>"
        end = LEFT + ground.width
        yield f'<line x1="{LEFT:.1f}" y1="{y:.1f}" x2="{end:.1f}" y2="{y:.1f}" {look}>{tip}</line>'


def _curve(chart: LineChart, ground: _Ground, line: Line) -> Iterator[str]:
    spots = [(ground.across(x), ground.up(y)) for x, y in zip(line.xs, line.ys, strict=True)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    yield f'<polyline class="curve" points="{path}" fill="none" {_look(line)}/>'
    for (x, y), at, value in zip(spots, line.xs, line.ys, strict=True):
        tip = escape(clean(f"{line.name}, {chart.x_title} {at:g}: {value:.4g}"))
        size = 3.2 if line.thick else 2.2
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{line.colour}"><title>{tip}</title></circle>'


def _legend(chart: LineChart, left: float, y: float) -> Iterator[str]:
    for line in chart.lines:
        yield f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{left + SAMPLE:.1f}" y2="{y:.1f}" {_look(line)}/>'
        yield text_svg(left + SAMPLE + 7, y + 4, line.name, "start", 11.5)
        y += LEGEND_STEP
    if chart.level is not None:
        look = 'stroke="currentColor" stroke-width="1.2" stroke-dasharray="2 4"'
        yield f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{left + SAMPLE:.1f}" y2="{y:.1f}" {look}/>'
        yield text_svg(left + SAMPLE + 7, y + 4, chart.level[0], "start", 11.5)


def _look(line: Line) -> str:
    dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
    return f'stroke="{line.colour}" stroke-width="{2.8 if line.thick else 1.5}"{dash} stroke-linejoin="round"'
