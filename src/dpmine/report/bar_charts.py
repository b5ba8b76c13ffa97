"""Small bar charts as SVG to stand in a page: one or two series of shares over the same labels.

Colours are attributes, so that a chart is right on its own; a page may override them by class, for a dark one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from dpmine.report.cluster_maps import tick_words, ticks
from dpmine.report.drawing import COLOURS, FONTS, fitting
from dpmine.report.words import clean

FILLS = {"first": COLOURS[0], "second": COLOURS[1]}

WIDTH = 360  # that of a phone; a wide page may draw it larger
LABEL_ROOM, VALUE_ROOM = 144, 46  # beside horizontal bars
BAR, GAP = 12, 7
COLUMNS_LEFT, COLUMNS_RIGHT = 38, 12  # beside columns
COLUMNS_HEIGHT, TOP, AXIS_ROOM = 120, 10, 24
MOST_TICKS = 6
MOST_LEVELS = 4
UNITS = ((1_000_000, 1_000_000, "M"), (10_000, 1_000, "k"))  # from where on numbers are shortened, and how


@dataclass(frozen=True)
class Series:
    """Shares from 0 to 1, and how far each may be off (0 where nothing is known of it)."""

    name: str
    shares: tuple[float, ...]
    off_by: float = 0.0


def share_words(share: float) -> str:
    """A share in percent, with a digit more where it is small."""
    words = f"{share:.1%}" if share < 0.1 else f"{share:.0%}"
    return "0.0%" if words == "-0.0%" else words


def interval_words(share: float, low: float, high: float) -> str:
    """A share and the ends of its interval, with as many digits as tell them apart."""
    shares = (share, low, high)
    told = [[f"{part:.{decimals}%}" for part in shares] for decimals in range(5)]
    words = next((words for words in told if len(set(words)) == len(set(shares))), told[-1])
    return f"{words[0]} ({words[1]} to {words[2]})"


def bars_svg(title: str, labels: Sequence[str], series: Sequence[Series]) -> str:
    """Horizontal bars, one line for each label: for categories."""
    step = len(series) * BAR + GAP
    room = WIDTH - LABEL_ROOM - VALUE_ROOM
    largest = _largest(series)
    shapes = []
    for place, label in enumerate(labels):
        top = place * step + GAP / 2
        shown = fitting(clean(label), LABEL_ROOM - 10, 11.5)
        shapes.append(text_svg(LABEL_ROOM - 8, top + len(series) * BAR / 2 + 4, shown, "end"))
        for number, one in enumerate(series):
            share, y = one.shares[place], top + number * BAR
            width = room * max(share, 0) / largest
            shapes.append(_bar(number, LABEL_ROOM, y + 1, width, BAR - 2, f"{label}, {one.name}: {share_words(share)}"))
            end = width
            if one.off_by:
                low, high = (room * min(max(share + off, 0), largest) / largest for off in (-one.off_by, one.off_by))
                shapes.append(line_svg(LABEL_ROOM + low, y + BAR / 2, LABEL_ROOM + high, y + BAR / 2))
                end = max(width, high)
            shapes.append(text_svg(LABEL_ROOM + end + 5, y + BAR - 2, share_words(share), "start", 10.5))
    return _svg(title, _description(labels, series), len(labels) * step, shapes)


def columns_svg(title: str, labels: Sequence[str], ends: Sequence[str], series: Sequence[Series]) -> str:
    """Vertical bars side by side: for numbers. `ends` stand below them: where each bin begins, or the values themselves."""
    room = WIDTH - COLUMNS_LEFT - COLUMNS_RIGHT
    slot = room / max(len(labels), 1)
    thick = (slot - min(slot * 0.18, 4)) / max(len(series), 1)
    largest = _largest(series)
    base = TOP + COLUMNS_HEIGHT
    shapes = list(_levels(largest, base))
    for number, one in enumerate(series):
        for place, share in enumerate(one.shares):
            height = COLUMNS_HEIGHT * max(share, 0) / largest
            x = COLUMNS_LEFT + place * slot + number * thick
            tip = f"{labels[place]}, {one.name}: {share_words(share)}"
            shapes.append(_bar(number, x, base - height, thick, height, tip))
            if one.off_by:
                low, high = (
                    COLUMNS_HEIGHT * min(max(share + off, 0), largest) / largest for off in (-one.off_by, one.off_by)
                )
                shapes.append(line_svg(x + thick / 2, base - low, x + thick / 2, base - high))
    shapes.append(line_svg(COLUMNS_LEFT, base, WIDTH - COLUMNS_RIGHT, base))
    every = -(-len(ends) // MOST_TICKS)
    aside = len(series) * thick / 2 if list(ends) == list(labels) else 0.0
    for place in range(0, len(ends), every):
        x = COLUMNS_LEFT + place * slot + aside
        shapes.append(line_svg(x, base, x, base + 4))
        shapes.append(text_svg(x, base + 16, _short(ends[place]), "middle", 10.5))
    return _svg(title, _description(labels, series), base + AXIS_ROOM, shapes)


def _levels(largest: float, base: float) -> Iterator[str]:
    """A few lines across, and the shares that they stand for."""
    levels = ticks(0.0, 100 * largest, MOST_LEVELS)
    for level, words in zip(levels, tick_words(levels), strict=True):
        y = base - COLUMNS_HEIGHT * level / (100 * largest)
        yield level_svg(COLUMNS_LEFT, WIDTH - COLUMNS_RIGHT, y)
        yield text_svg(COLUMNS_LEFT - 5, y + 4, f"{words}%", "end", 10.5)


def _short(number: str) -> str:
    """1200000 as 1.2M, 50000 as 50k; smaller ones as they are, and what is no number."""
    try:
        size = float(number)
    except ValueError:
        return number
    return next((f"{size / unit:g}{name}" for least, unit, name in UNITS if abs(size) >= least), number)


def _largest(series: Sequence[Series]) -> float:
    return max((share + one.off_by for one in series for share in one.shares), default=0.0) or 1.0


def _description(labels: Sequence[str], series: Sequence[Series]) -> str:
    names = " and ".join(one.name for one in series)
    return f"Bars of {names} for {len(labels)} values; the table below has the numbers."


def _svg(title: str, description: str, height: float, shapes: Sequence[str]) -> str:
    label = quoteattr(f"{clean(title)}. {clean(description)}")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}"'
    )
    return f'{head} role="img" aria-label={label} font-family="{FONTS}" font-size="11.5">{"".join(shapes)}</svg>'


def _bar(number: int, x: float, y: float, width: float, height: float, tip: str) -> str:
    kind = "first" if number == 0 else "second"
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{max(height, 0.5):.1f}"'
    return f'<rect class="{kind}" {place} fill="{FILLS[kind]}"><title>{escape(clean(tip))}</title></rect>'


def text_svg(x: float, y: float, text: str, anchor: str, size: float = 11.5) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}"'
    return f'<text {place} fill="currentColor">{escape(clean(text))}</text>'


def line_svg(x: float, y: float, to_x: float, to_y: float) -> str:
    place = f'x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"'
    return f'<line {place} stroke="currentColor" stroke-width="1"/>'


def level_svg(left: float, right: float, y: float) -> str:
    """A faint line across, which values are read off by."""
    place = f'x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"'
    return f'<line {place} stroke="currentColor" stroke-opacity="0.15"/>'
