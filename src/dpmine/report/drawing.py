"""One drawing of a tree: what stands where, and the two painters that put it down as SVG and in matplotlib."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from dpmine.facts.schema import Schema
from dpmine.language.keys import Test
from dpmine.models.trees import MILLION, Node
from dpmine.report.words import (
    NOTE,
    check_tree,
    clean,
    condition,
    hidden_words,
    many,
    percent,
    rows_words,
    short_answer,
    total_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
WIDEST_FIGURE = 2400

# Okabe and Ito (2008), in an order that keeps the first few far apart for every kind of colour vision.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C8C8C", "#F0E442")
PAPER, INK, SOFT_INK, CARD_INK, LINE = "#FAFBFC", "#17202A", "#4A5764", "#2A343F", "#B4BFCA"

MARGIN = 28
GAP = 18  # between cards side by side
NARROWEST_CARD, WIDEST_CARD = 112, 184
MANY_LEAVES, WIDEST_CARD_OF_MANY = 24, 140  # a tree with many leaves keeps its cards narrow
LEAF_HEIGHT, SPLIT_HEIGHT = 58, 78
LABEL_HEIGHT = 20
PADDING = 11  # inside a card
BAR_HEIGHT = 7


@dataclass(frozen=True)
class _Box:
    kind: str
    x: float
    y: float
    width: float
    height: float
    fill: str
    radius: float = 0
    edge: str = "none"
    edge_width: float = 0


@dataclass(frozen=True)
class _Words:
    x: float
    y: float
    text: str
    size: float
    colour: str = INK
    bold: bool = False
    centred: bool = False


@dataclass(frozen=True)
class _Link:
    """A curve from a card down to `bend`, and from there straight down to `end`."""

    start: tuple[float, float]
    bend: tuple[float, float]
    end: float
    thickness: float

    @property
    def middle(self) -> float:
        return (self.start[1] + self.bend[1]) / 2


@dataclass
class _Group:
    """Shapes with one tooltip."""

    tooltip: str = ""
    shapes: list[_Box | _Words | _Link] = field(default_factory=list)


@dataclass(frozen=True)
class _Drawing:
    title: str
    description: str
    width: float
    height: float
    groups: list[_Group]


@dataclass
class _Card:
    """A node and its place: `x` counts leaves from the left, `path` says what holds for its rows."""

    node: Node
    depth: int
    path: tuple[str, ...]
    label: str
    is_cut: bool
    below: list[_Card]
    x: float = 0

    def cards(self) -> Iterator[_Card]:
        yield self
        for card in self.below:
            yield from card.cards()

    @property
    def height(self) -> int:
        return SPLIT_HEIGHT if self.node.split is not None else LEAF_HEIGHT


def _cards(node: Node, schema: Schema, max_depth: int | None, path: tuple[str, ...] = (), label: str = "") -> _Card:
    depth = len(path)
    is_cut = node.split is not None and depth == max_depth
    below = []
    if node.split is not None and not is_cut:
        for number, child in enumerate(node.children):
            step = condition(node.split, number, schema)
            words = ("no", "yes")[number] if isinstance(node.split, Test) else short_answer(node.split, number, schema)
            below.append(_cards(child, schema, max_depth, (*path, step), words))
    return _Card(node, depth, path, label, is_cut, below)


def _place(root: _Card) -> int:
    """Give leaves even places from left to right and centre parents over their children; returns the number of leaves."""
    leaves = 0

    def visit(card: _Card) -> None:
        nonlocal leaves
        for child in card.below:
            visit(child)
        if card.below:
            card.x = (card.below[0].x + card.below[-1].x) / 2
        else:
            card.x = leaves
            leaves += 1

    visit(root)
    return leaves


def drawing_of(tree: Node, classes: Sequence[str], schema: Schema, title: str | None, max_depth: int | None) -> _Drawing:
    check_tree(tree, classes, max_depth)
    names = [clean(name) for name in classes]
    root = _cards(tree, schema, max_depth)
    leaves = _place(root)
    cards = list(root.cards())
    card_width = _card_width(cards, names)
    slot = card_width + GAP
    heading = clean(title) if title is not None else _heading(schema)
    width = max(leaves * slot - GAP + 2 * MARGIN, min(text_width(heading, 18, bold=True), 720) + 2 * MARGIN, 460)
    top, header = _header(heading, _size_words(tree), names, width)
    levels = _levels(cards, slot, top)
    left = (width - leaves * slot + GAP) / 2 + card_width / 2

    def centre(card: _Card) -> float:
        return left + card.x * slot

    bottom = max(levels[card.depth] + card.height + (22 if card.is_cut else 0) for card in cards)
    height = bottom + 48
    links, labels = _links(cards, levels, centre, slot)
    note = _Words(
        MARGIN, bottom + 32, fitting(f"{NOTE}. Thicker lines carry more rows.", width - 2 * MARGIN, 11), 11, SOFT_INK
    )
    paper = _Box("paper", 0, 0, width, height, PAPER, radius=10)
    drawn = [_card_group(card, centre(card), levels[card.depth], card_width, names) for card in cards]
    groups = [_Group(shapes=[paper]), *header, _Group(shapes=[*links]), *labels, *drawn, _Group(shapes=[note])]
    return _Drawing(heading, _description(tree, names, max_depth), width, height, groups)


def _heading(schema: Schema) -> str:
    return "Decision tree" if schema.class_attribute is None else f"Decision tree for {clean(schema.class_attribute)}"


def _size_words(tree: Node) -> str:
    return f"{many(sum(1 for _ in tree.leaves()), 'leaf', 'leaves')}, depth {tree.depth}, {rows_words(tree)}"


def _description(tree: Node, names: Sequence[str], max_depth: int | None) -> str:
    shown = "" if max_depth is None or tree.depth <= max_depth else f" Drawn to depth {max_depth}."
    first = "It does not split." if tree.split is None else f"It splits first by {clean(tree.split.title)}."
    return f"A decision tree with {_size_words(tree)}. {first} Classes: {', '.join(names)}.{shown} {NOTE}."


def _card_width(cards: Sequence[_Card], names: Sequence[str]) -> float:
    """As wide as the widest text needs, within bounds."""
    texts = [text_width(_verdict(card.node, names), 13, bold=True) for card in cards]
    texts += [text_width(rows_words(card.node), 11.5) for card in cards]
    texts += [text_width(_question(card.node), 13, bold=True) for card in cards]
    texts += [text_width(card.label, 11.5) - 2 * PADDING - GAP / 2 for card in cards]
    texts += [text_width(hidden_words(card.node), 11) for card in cards if card.is_cut]
    widest = WIDEST_CARD if sum(1 for card in cards if not card.below) <= MANY_LEAVES else WIDEST_CARD_OF_MANY
    return float(math.ceil(min(max(max(texts) + 2 * PADDING, NARROWEST_CARD), widest)))


def _question(node: Node) -> str:
    return "" if node.split is None else clean(node.split.title)


def _verdict(node: Node, names: Sequence[str]) -> str:
    return f"{names[node.label]}  {percent(node.shares[node.label])}"


def _header(heading: str, size_words: str, names: Sequence[str], width: float) -> tuple[float, list[_Group]]:
    """Title and legend, and where the tree begins below them."""
    room = width - 2 * MARGIN
    title = _Words(MARGIN, MARGIN + 14, fitting(heading, room, 18, bold=True), 18, bold=True)
    size = _Words(MARGIN, MARGIN + 34, fitting(size_words, room, 12), 12, SOFT_INK)
    groups = [_Group(heading, [title, size])]
    x, y = float(MARGIN), MARGIN + 60.0
    for number, name in enumerate(names):
        shown = fitting(name, min(room - 17, 220), 12)
        needed = 17 + text_width(shown, 12)
        if x > MARGIN and x + needed > width - MARGIN:
            x, y = float(MARGIN), y + 20
        swatch = _Box("swatch", x, y - 10, 12, 12, colour_of(number), radius=3)
        groups.append(_Group(name, [swatch, _Words(x + 17, y, shown, 12)]))
        x += needed + 16
    return y + 26, groups


def _levels(cards: Sequence[_Card], slot: float, top: float) -> list[float]:
    """The top of each level. Wide families get more height, so that their lines do not lie flat."""
    levels = [top]
    for depth in range(max(card.depth for card in cards)):
        reach = max(abs(child.x - card.x) for card in cards if card.depth == depth for child in card.below)
        levels.append(levels[-1] + SPLIT_HEIGHT + min(max(34, 0.12 * reach * slot), 170) + LABEL_HEIGHT + 10)
    return levels


def _links(
    cards: Sequence[_Card], levels: Sequence[float], centre: Callable[[_Card], float], slot: float
) -> tuple[list[_Link], list[_Group]]:
    """Lines whose thickness tells the share of all rows, and the answers that stand on them."""
    links, labels = [], []
    everyone = max(1, total_rows(cards[0].node))
    for card in cards:
        for child in card.below:
            x, y = centre(child), levels[child.depth]
            share = min(1.0, total_rows(child.node) / everyone)
            bend = y - LABEL_HEIGHT - 6
            links.append(_Link((centre(card), levels[card.depth] + card.height), (x, bend), y, 1.2 + 10 * share))
            shown = fitting(child.label, slot - 14, 11.5)
            room = text_width(shown, 11.5) + 10
            patch = _Box("label", x - room / 2, y - LABEL_HEIGHT - 5, room, LABEL_HEIGHT, PAPER, radius=6)
            words = _Words(x, y - LABEL_HEIGHT / 2 - 1, shown, 11.5, centred=True)
            labels.append(_Group(child.path[-1], [patch, words]))
    # Thin lines last: where lines cross near a parent they stay visible.
    return sorted(links, key=lambda link: -link.thickness), labels


def _card_group(card: _Card, centre: float, top: float, width: float, names: Sequence[str]) -> _Group:
    node, left, room = card.node, centre - width / 2, width - 2 * PADDING
    colour = colour_of(node.label)
    strength = _strength(node)
    group = _Group(_tooltip(card, names))
    shapes = group.shapes
    if card.is_cut:
        shapes.append(_Box("pile", left + 7, top + card.height - 8, width - 14, 12, "#FFFFFF", 5, LINE, 1))
        shapes.append(_Words(centre, top + card.height + 19, hidden_words(node), 11, SOFT_INK, centred=True))
    kind = "leaf" if node.split is None else "split"
    edge = mixed(colour, "#FFFFFF", 0.55 + 0.45 * strength)
    fill = mixed(colour, "#FFFFFF", 0.06 + 0.4 * strength)
    shapes.append(_Box(f"card {kind}", left, top, width, card.height, fill, 9, edge, 1.8 if node.split is None else 1.1))
    line = top + 20
    if node.split is not None:
        shapes.append(_Words(centre, line, fitting(_question(node), room, 13, bold=True), 13, bold=True, centred=True))
        line += 19
    chance = f"  {percent(node.shares[node.label])}"
    is_leaf = node.split is None
    size = 13 if is_leaf else 12
    name = fitting(names[node.label], room - text_width(chance, size, bold=is_leaf), size, bold=is_leaf)
    shapes.append(_Words(centre, line, name + chance, size, bold=is_leaf, centred=True))
    shapes.append(_Words(centre, line + 16, fitting(rows_words(node), room, 11.5), 11.5, CARD_INK, centred=True))
    shapes += _share_bar(node, left + PADDING, top + card.height - BAR_HEIGHT - 7, room)
    return group


def _strength(node: Node) -> float:
    """How far the likeliest class stands above an even guess, from 0 to 1."""
    even = MILLION / len(node.shares)
    return (max(node.shares) - even) / (MILLION - even) if len(node.shares) > 1 else 1.0


def _share_bar(node: Node, left: float, top: float, room: float) -> Iterator[_Box]:
    yield _Box("bar", left - 1, top - 1, room + 2, BAR_HEIGHT + 2, "#FFFFFF", radius=2)
    for number, share in enumerate(node.shares):
        width = room * share / MILLION
        if width >= 0.4:
            yield _Box("share", left, top, max(width - 0.6, 0.4), BAR_HEIGHT, colour_of(number))
        left += width


def _tooltip(card: _Card, names: Sequence[str]) -> str:
    node = card.node
    path = "\nand ".join(card.path) or "All rows"
    numbers = (
        f"{name}: {percent(share)}, noisy count {count:,}"
        for name, share, count in zip(names, node.shares, node.rows, strict=True)
    )
    asked = [f"Splits by {_question(node)}"] if node.split is not None else []
    return "\n".join([path, *numbers, f"In all {rows_words(node)}", *asked])


def colour_of(number: int) -> str:
    """The colour of a class; after eight classes the same colours return darker, then lighter."""
    colour = COLOURS[number % len(COLOURS)]
    turn = number // len(COLOURS) % 3
    return colour if turn == 0 else mixed(colour, "#000000" if turn == 1 else "#FFFFFF", 0.6)


def mixed(colour: str, other: str, part: float) -> str:
    """So much of one colour and the rest of another."""
    pairs = ((int(colour[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(one * part + two * (1 - part)):02X}" for one, two in pairs)


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """About how wide a text is in common fonts, rather too wide than too narrow."""
    return sum(map(_letter_width, text)) * size * (1.13 if bold else 1.0)


def _letter_width(letter: str) -> float:
    if letter in "ijl.,:;|!'()[]/ftIr- ":
        return 0.41
    if letter in 'mwMW@%<>&+="':
        return 0.98
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.1
    return 0.7 if letter.isupper() else 0.635


def fitting(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """The text, cut with an ellipsis where it would be wider than the room."""
    if text_width(text, size, bold=bold) <= room:
        return text
    while text and text_width(text + "…", size, bold=bold) > room:
        text = text[:-1]
    return text.rstrip() + "…"


# -- the painters ---------------------------------------------------------------------------------------------------


def tooltip_svg(group: _Group) -> list[str]:
    return [f"<title>{escape(group.tooltip, quote=False)}</title>"] if group.tooltip else []


def shape_svg(shape: _Box | _Words | _Link) -> str:
    if isinstance(shape, _Box):
        place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" height="{shape.height:.1f}"'
        corners = f' rx="{shape.radius:g}"' if shape.radius else ""
        edge = f' stroke="{shape.edge}" stroke-width="{shape.edge_width:g}"' if shape.edge_width else ""
        return f'<rect class="{shape.kind}" {place}{corners} fill="{shape.fill}"{edge}/>'
    if isinstance(shape, _Link):
        (x, y), (to_x, to_y), middle = shape.start, shape.bend, shape.middle
        path = f"M{x:.1f} {y:.1f}C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}V{shape.end:.1f}"
        return f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="{shape.thickness:.1f}"/>'
    style = ' font-weight="600"' * shape.bold + ' text-anchor="middle"' * shape.centred
    place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size:g}"'
    return f'<text {place} fill="{shape.colour}"{style} xml:space="preserve">{escape(shape.text, quote=False)}</text>'


def paint(drawing: _Drawing, ax: Axes) -> None:
    from matplotlib.patches import FancyBboxPatch, PathPatch
    from matplotlib.path import Path

    ax.set_xlim(0, drawing.width)
    ax.set_ylim(drawing.height, 0)
    ax.set_aspect("equal")
    ax.set_axis_off()
    extent = ax.get_window_extent()
    # Points of text and lines for one unit of the drawing.
    points = min(extent.width / drawing.width, extent.height / drawing.height) * 72 / ax.figure.dpi
    order = 0.0
    for shape in (shape for group in drawing.groups for shape in group.shapes):
        order += 1
        if isinstance(shape, _Box):
            ax.add_patch(
                FancyBboxPatch(
                    (shape.x, shape.y),
                    shape.width,
                    shape.height,
                    boxstyle=f"round,pad=0,rounding_size={shape.radius}" if shape.radius else "square,pad=0",
                    facecolor=shape.fill,
                    edgecolor=shape.edge,
                    linewidth=shape.edge_width * points,
                    zorder=order,
                )
            )
        elif isinstance(shape, _Link):
            (x, y), (to_x, to_y), middle = shape.start, shape.bend, shape.middle
            spots = [(x, y), (x, middle), (to_x, middle), (to_x, to_y), (to_x, shape.end)]
            path = Path(spots, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4, Path.LINETO])
            width = shape.thickness * points
            ax.add_patch(PathPatch(path, fill=False, edgecolor=LINE, linewidth=width, capstyle="butt", zorder=order))
        else:
            ax.text(
                shape.x,
                shape.y,
                shape.text,
                fontsize=shape.size * points,
                color=shape.colour,
                fontweight="bold" if shape.bold else "normal",
                horizontalalignment="center" if shape.centred else "left",
                verticalalignment="baseline",
                parse_math=False,
                zorder=order,
            )
