"""Drawings of fitted trees: as text, as SVG and in matplotlib, and a summary of a forest.

The SVG and the matplotlib figure are one drawing: `_drawing` lays out a tree and says what stands where, and two small
painters put that down. Noisy counts below 0 are shown as 0 rows; only tooltips give them as they are.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from dpmine.errors import RequestError
from dpmine.expressions import AttributeKey, Bins, Compare, Groups, Key, Test
from dpmine.schema import ItemList, Nominal, Schema, plain
from dpmine.tree_models import MILLION, Node, Trees

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTE = "Counts are noisy"


def tree_text(
    tree: Node, classes: Sequence[str], schema: Schema, *, unicode: bool = True, max_depth: int | None = None
) -> str:
    """The tree for a terminal: a line a node, leaves with their class. With `unicode=False` in ASCII only."""
    _check(tree, classes, max_depth)
    signs = ("├── ", "└── ", "│   ", "    ") if unicode else ("|-- ", "`-- ", "|   ", "    ")
    lines = list(_text_lines(tree, classes, schema, signs, max_depth, start="", below="", label="all rows"))
    if not unicode:
        lines = [_TextLine(*(_ascii(part) for part in (line.left, line.name, line.chance, line.rows))) for line in lines]
    left, name, chance, rows = (max(map(_columns, column)) for column in zip(*(line.parts for line in lines), strict=True))
    return "\n".join(
        f"{_padded(line.left, left)}  {_padded(line.name, name)}  {line.chance:>{chance}}  {line.rows:>{rows}}".rstrip()
        for line in lines
    )


def tree_svg(
    tree: Node, classes: Sequence[str], schema: Schema, *, title: str | None = None, max_depth: int | None = None
) -> str:
    """The tree as an SVG document that needs no fonts, styles or scripts and may stand inside a page."""
    drawing = _drawing(tree, classes, schema, title, max_depth)
    size = f'width="{drawing.width:g}" height="{drawing.height:g}" viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    groups = ("\n".join(["<g>", *_tooltip_svg(group), *map(_shape_svg, group.shapes), "</g>"]) for group in drawing.groups)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONTS}">',
            f"<title>{escape(drawing.title)}</title>",
            f"<desc>{escape(drawing.description)}</desc>",
            *groups,
            "</svg>\n",
        ]
    )


def tree_figure(
    tree: Node, classes: Sequence[str], schema: Schema, *, ax: Axes | None = None, max_depth: int | None = 4
) -> Figure:
    """The tree in matplotlib, on `ax` or on a figure of its own. Deeper parts than `max_depth` are left out."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise RequestError("plot needs matplotlib. Run: pip install 'dpmine[plots]'") from None
    drawing = _drawing(tree, classes, schema, None, max_depth)
    if ax is None:
        scale = min(1.0, WIDEST_FIGURE / drawing.width)
        figure = Figure(figsize=(drawing.width * scale / 100, drawing.height * scale / 100), dpi=100)
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    _paint(drawing, ax)
    found = ax.get_figure(root=True)
    assert found is not None
    return found


def forest_text(trees: Trees, schema: Schema, *, unicode: bool = True) -> str:
    """How large the trees are, and which attributes they split by, how often and how high."""
    depths = [tree.depth for tree in trees.trees]
    leaves = sum(1 for tree in trees.trees for _ in tree.leaves())
    if not depths:
        return "no trees"
    reach = str(min(depths)) if min(depths) == max(depths) else f"{min(depths)} to {max(depths)}"
    lines = [f"{_many(len(depths), 'tree')}, depth {reach}, {_many(leaves, 'leaf', 'leaves')}", ""]
    places: dict[str, list[int]] = {}
    for tree in trees.trees:
        for title, depth in _splits(tree):
            places.setdefault(_clean(title), []).append(depth)
    order = sorted(places, key=lambda title: (-len(places[title]), sum(places[title]), title))
    names = {title: _cut(title, 32) for title in order}
    most = max(map(len, places.values()), default=0)
    width = max(map(_columns, names.values()), default=0)
    for title in order:
        bar = _bar(len(places[title]) / most, unicode)
        number = f"{len(places[title]):>{len(f'{most:,}')},}"
        lines.append(f"{_padded(names[title], width)}  {bar}  {number} {_height_words(places[title])}")
    if not places:
        lines.append("No tree splits.")
    unused = [_cut(_clean(name), 32) for name in _attributes(trees, schema) if _clean(name) not in places]
    if unused:
        lines += ["", f"Never split by: {_and_more(unused, 12)}"]
    text = "\n".join(lines)
    return text if unicode else _ascii(text)


def _check(tree: Node, classes: Sequence[str], max_depth: int | None) -> None:
    if len(classes) != len(tree.rows):
        raise RequestError(
            f"The tree counts {len(tree.rows)} classes, so it needs as many names. Got {len(classes)} instead."
        )
    if max_depth is not None and max_depth < 0:
        raise RequestError(f"The 'max_depth' parameter must be 0 or more. Got {max_depth} instead.")


# -- words ----------------------------------------------------------------------------------------------------------

LONGEST_LABEL = 48  # letters of a condition in the text drawing
LONGEST_NAME = 24  # letters of a class
FEW_VALUES = 3  # named in a label
MANY_VALUES = 60  # named in a tooltip


def condition(key: Key, number: int, schema: Schema, *, at_most: int = MANY_VALUES) -> str:
    """What holds for the rows that a split sends to its child of this number, naming at most so many values."""
    if isinstance(key, Test):
        return _test_words(key, number)
    answer = _answer(key, number, schema, at_most)
    return f"{_clean(key.title)} {answer}"


def _answer(key: Key, number: int, schema: Schema, at_most: int) -> str:
    """The condition without the name of the attribute, such as '< 40' or 'is north or east'."""
    if isinstance(key, Bins):
        cuts = [plain(cut) for cut in key.numbers(schema)]
        if 0 < number < len(cuts):
            return f"{cuts[number - 1]} to <{cuts[number]}"
        return f"< {cuts[0]}" if number == 0 else f">= {cuts[-1]}"
    if isinstance(key, Groups):
        return _group_answer(key, number, schema, at_most)
    if isinstance(key, AttributeKey):
        attribute = schema.single(key.attribute)
        return f"is {_clean(attribute.label(number))}"
    return f"is {_clean(key.labels(schema)[number])}"


def _short_answer(key: Key, number: int, schema: Schema) -> str:
    """The answer for an edge below a card that already names the attribute."""
    return _answer(key, number, schema, FEW_VALUES).removeprefix("is ")


def _group_answer(key: Groups, number: int, schema: Schema, at_most: int) -> str:
    attribute = schema.single(key.attribute)
    assert isinstance(attribute, Nominal)
    table = key.table(schema)
    inside = [category for category, group in zip(attribute.categories, table, strict=True) if group == number]
    outside = [category for category, group in zip(attribute.categories, table, strict=True) if group != number]
    is_rest = number == len(key.groups)
    named = _taxonomy_name(attribute, inside)
    if named is not None:
        return f"in {_clean(named)}"
    left_out = _taxonomy_name(attribute, outside)
    if is_rest and left_out is not None:
        return f"not in {_clean(left_out)}"
    if not inside:
        return "is anything else"
    if is_rest and len(outside) < len(inside):
        return _none_of(outside, at_most)
    return f"is {_one_of(inside, at_most)}"


def _taxonomy_name(attribute: Nominal, values: Sequence[str]) -> str | None:
    """The name that the public hierarchy has for exactly these categories."""
    if attribute.taxonomy is None:
        return None
    wanted = sorted(values)
    return next((n.name for n in attribute.taxonomy.nodes() if n.children and sorted(n.leaves()) == wanted), None)


def _one_of(values: Sequence[str], at_most: int) -> str:
    """north; north or east; north, east or 4 more."""
    names = [_clean(value) for value in values]
    if len(names) > at_most:
        names = [*names[: at_most - 1], f"{len(names) - at_most + 1:,} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _none_of(values: Sequence[str], at_most: int) -> str:
    names = [_clean(value) for value in values]
    if len(names) == 1:
        return f"is not {names[0]}"
    return f"is neither {names[0]} nor {names[1]}" if len(names) == 2 else f"is none of {_and_more(names, at_most)}"


def _and_more(names: Sequence[str], at_most: int) -> str:
    if len(names) > at_most:
        names = [*names[: at_most - 1], f"{len(names) - at_most + 1:,} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _test_words(key: Test, number: int) -> str:
    asked = key.predicate
    if number == 1:
        return _clean(str(asked))
    if isinstance(asked, Compare):
        return _clean(str(Compare(asked.attribute, _OPPOSITE[asked.op], asked.value)))
    return f"not {_clean(str(asked))}"


def _total(node: Node) -> int:
    """The noisy number of rows, drawn as 0 where noise pushed it below."""
    return max(0, sum(node.rows))


def _rows_words(node: Node) -> str:
    return f"about {_many(_total(node), 'row')}"


def _many(number: int, one: str, several: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def _percent(share: int) -> str:
    """Whole percent; what is not quite nothing or everything is not called so."""
    if 0 < share < MILLION // 200:
        return "<1 %"
    if MILLION - MILLION // 200 < share < MILLION:
        return ">99 %"
    return f"{(share + MILLION // 200) // (MILLION // 100)} %"


def _clean(text: str) -> str:
    """Without line ends and control characters, which neither terminals nor XML should be given."""
    return "".join(
        " " if letter.isspace() else letter if _may_stand(letter) else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def _may_stand(letter: str) -> bool:
    """Letters that print, and the two joiners that some scripts need between them."""
    return letter.isprintable() or letter in "\u200c\u200d"


def _ascii(text: str) -> str:
    return text.replace("…", "...").encode("ascii", "backslashreplace").decode("ascii")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(0 if unicodedata.combining(part) else 2 if unicodedata.east_asian_width(part) in "WF" else 1 for part in text)


def _padded(text: str, columns: int) -> str:
    return text + " " * (columns - _columns(text))


# -- text -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _TextLine:
    left: str
    name: str = ""
    chance: str = ""
    rows: str = ""

    @property
    def parts(self) -> tuple[str, str, str, str]:
        return (self.left, self.name, self.chance, self.rows)


def _text_lines(
    node: Node,
    classes: Sequence[str],
    schema: Schema,
    signs: tuple[str, str, str, str],
    levels: int | None,
    *,
    start: str,
    below: str,
    label: str,
) -> Iterator[_TextLine]:
    """The lines of a subtree: `start` leads to its first line, `below` stands before the others."""
    fork, end, bar, space = signs
    left = start + _cut(label, LONGEST_LABEL)
    if node.split is not None and levels != 0:
        yield _TextLine(left, rows=_rows_words(node))
    else:
        name = _cut(_clean(classes[node.label]), LONGEST_NAME)
        yield _TextLine(left, name, _percent(node.shares[node.label]), _rows_words(node))
    if node.split is None:
        return
    if levels == 0:
        yield _TextLine(f"{below}{end}{_hidden_words(node)}")
        return
    for number, child in enumerate(node.children):
        last = number == len(node.children) - 1
        yield from _text_lines(
            child,
            classes,
            schema,
            signs,
            None if levels is None else levels - 1,
            start=below + (end if last else fork),
            below=below + (space if last else bar),
            label=condition(node.split, number, schema, at_most=FEW_VALUES),
        )


def _hidden_words(node: Node) -> str:
    leaves = sum(1 for _ in node.leaves())
    return f"... {leaves:,} more {'leaf' if leaves == 1 else 'leaves'}"


def _splits(node: Node, depth: int = 0) -> Iterator[tuple[str, int]]:
    """The title of each split, and how deep it stands."""
    if node.split is not None:
        yield node.split.title, depth
        for child in node.children:
            yield from _splits(child, depth + 1)


def _height_words(depths: Sequence[int]) -> str:
    splits = "split" if len(depths) == 1 else "splits"
    roots = sum(1 for depth in depths if depth == 0)
    return f"{splits}, root of {_many(roots, 'tree')}" if roots else f"{splits}, highest at depth {min(depths)}"


def _bar(part: float, unicode: bool, columns: int = 24) -> str:
    if not unicode:
        return f"{'#' * max(1, round(part * columns)):<{columns}}"
    eighths = max(1, round(part * columns * 8))
    return f"{'█' * (eighths // 8) + ('', *'▏▎▍▌▋▊▉')[eighths % 8]:<{columns}}"


def _attributes(trees: Trees, schema: Schema) -> Iterator[str]:
    """The attributes that a tree could have split by."""
    for attribute in schema.attributes:
        predicted = isinstance(attribute, Nominal) and attribute.categories == trees.classes
        if not predicted and not isinstance(attribute, ItemList) and attribute.name != schema.class_attribute:
            yield attribute.name


# -- the drawing ----------------------------------------------------------------------------------------------------

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
            words = ("no", "yes")[number] if isinstance(node.split, Test) else _short_answer(node.split, number, schema)
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


def _drawing(tree: Node, classes: Sequence[str], schema: Schema, title: str | None, max_depth: int | None) -> _Drawing:
    _check(tree, classes, max_depth)
    names = [_clean(name) for name in classes]
    root = _cards(tree, schema, max_depth)
    leaves = _place(root)
    cards = list(root.cards())
    card_width = _card_width(cards, names)
    slot = card_width + GAP
    heading = _clean(title) if title is not None else _heading(schema)
    width = max(leaves * slot - GAP + 2 * MARGIN, min(_text_width(heading, 18, bold=True), 720) + 2 * MARGIN, 460)
    top, header = _header(heading, _size_words(tree), names, width)
    levels = _levels(cards, slot, top)
    left = (width - leaves * slot + GAP) / 2 + card_width / 2

    def centre(card: _Card) -> float:
        return left + card.x * slot

    bottom = max(levels[card.depth] + card.height + (22 if card.is_cut else 0) for card in cards)
    height = bottom + 48
    links, labels = _links(cards, levels, centre, slot)
    note = _Words(
        MARGIN, bottom + 32, _fitting(f"{NOTE}. Thicker lines carry more rows.", width - 2 * MARGIN, 11), 11, SOFT_INK
    )
    paper = _Box("paper", 0, 0, width, height, PAPER, radius=10)
    drawn = [_card_group(card, centre(card), levels[card.depth], card_width, names) for card in cards]
    groups = [_Group(shapes=[paper]), *header, _Group(shapes=[*links]), *labels, *drawn, _Group(shapes=[note])]
    return _Drawing(heading, _description(tree, names, max_depth), width, height, groups)


def _heading(schema: Schema) -> str:
    return "Decision tree" if schema.class_attribute is None else f"Decision tree for {_clean(schema.class_attribute)}"


def _size_words(tree: Node) -> str:
    return f"{_many(sum(1 for _ in tree.leaves()), 'leaf', 'leaves')}, depth {tree.depth}, {_rows_words(tree)}"


def _description(tree: Node, names: Sequence[str], max_depth: int | None) -> str:
    shown = "" if max_depth is None or tree.depth <= max_depth else f" Drawn to depth {max_depth}."
    first = "It does not split." if tree.split is None else f"It splits first by {_clean(tree.split.title)}."
    return f"A decision tree with {_size_words(tree)}. {first} Classes: {', '.join(names)}.{shown} {NOTE}."


def _card_width(cards: Sequence[_Card], names: Sequence[str]) -> float:
    """As wide as the widest text needs, within bounds."""
    texts = [_text_width(_verdict(card.node, names), 13, bold=True) for card in cards]
    texts += [_text_width(_rows_words(card.node), 11.5) for card in cards]
    texts += [_text_width(_question(card.node), 13, bold=True) for card in cards]
    texts += [_text_width(card.label, 11.5) - 2 * PADDING - GAP / 2 for card in cards]
    texts += [_text_width(_hidden_words(card.node), 11) for card in cards if card.is_cut]
    widest = WIDEST_CARD if sum(1 for card in cards if not card.below) <= MANY_LEAVES else WIDEST_CARD_OF_MANY
    return float(math.ceil(min(max(max(texts) + 2 * PADDING, NARROWEST_CARD), widest)))


def _question(node: Node) -> str:
    return "" if node.split is None else _clean(node.split.title)


def _verdict(node: Node, names: Sequence[str]) -> str:
    return f"{names[node.label]}  {_percent(node.shares[node.label])}"


def _header(heading: str, size_words: str, names: Sequence[str], width: float) -> tuple[float, list[_Group]]:
    """Title and legend, and where the tree begins below them."""
    room = width - 2 * MARGIN
    title = _Words(MARGIN, MARGIN + 14, _fitting(heading, room, 18, bold=True), 18, bold=True)
    size = _Words(MARGIN, MARGIN + 34, _fitting(size_words, room, 12), 12, SOFT_INK)
    groups = [_Group(heading, [title, size])]
    x, y = float(MARGIN), MARGIN + 60.0
    for number, name in enumerate(names):
        shown = _fitting(name, min(room - 17, 220), 12)
        needed = 17 + _text_width(shown, 12)
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
    everyone = max(1, _total(cards[0].node))
    for card in cards:
        for child in card.below:
            x, y = centre(child), levels[child.depth]
            share = min(1.0, _total(child.node) / everyone)
            bend = y - LABEL_HEIGHT - 6
            links.append(_Link((centre(card), levels[card.depth] + card.height), (x, bend), y, 1.2 + 10 * share))
            shown = _fitting(child.label, slot - 14, 11.5)
            room = _text_width(shown, 11.5) + 10
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
        shapes.append(_Words(centre, top + card.height + 19, _hidden_words(node), 11, SOFT_INK, centred=True))
    kind = "leaf" if node.split is None else "split"
    edge = mixed(colour, "#FFFFFF", 0.55 + 0.45 * strength)
    fill = mixed(colour, "#FFFFFF", 0.06 + 0.4 * strength)
    shapes.append(_Box(f"card {kind}", left, top, width, card.height, fill, 9, edge, 1.8 if node.split is None else 1.1))
    line = top + 20
    if node.split is not None:
        shapes.append(_Words(centre, line, _fitting(_question(node), room, 13, bold=True), 13, bold=True, centred=True))
        line += 19
    chance = f"  {_percent(node.shares[node.label])}"
    is_leaf = node.split is None
    size = 13 if is_leaf else 12
    name = _fitting(names[node.label], room - _text_width(chance, size, bold=is_leaf), size, bold=is_leaf)
    shapes.append(_Words(centre, line, name + chance, size, bold=is_leaf, centred=True))
    shapes.append(_Words(centre, line + 16, _fitting(_rows_words(node), room, 11.5), 11.5, CARD_INK, centred=True))
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
        f"{name}: {_percent(share)}, noisy count {count:,}"
        for name, share, count in zip(names, node.shares, node.rows, strict=True)
    )
    asked = [f"Splits by {_question(node)}"] if node.split is not None else []
    return "\n".join([path, *numbers, f"In all {_rows_words(node)}", *asked])


def colour_of(number: int) -> str:
    """The colour of a class; after eight classes the same colours return darker, then lighter."""
    colour = COLOURS[number % len(COLOURS)]
    turn = number // len(COLOURS) % 3
    return colour if turn == 0 else mixed(colour, "#000000" if turn == 1 else "#FFFFFF", 0.6)


def mixed(colour: str, other: str, part: float) -> str:
    """So much of one colour and the rest of another."""
    pairs = ((int(colour[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(one * part + two * (1 - part)):02X}" for one, two in pairs)


def _text_width(text: str, size: float, *, bold: bool = False) -> float:
    """About how wide a text is in common fonts, rather too wide than too narrow."""
    return sum(map(_letter_width, text)) * size * (1.13 if bold else 1.0)


def _letter_width(letter: str) -> float:
    if letter in "ijl.,:;|!'()[]/ftIr- ":
        return 0.38
    if letter in 'mwMW@%<>&+="':
        return 0.9
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.1
    return 0.68 if letter.isupper() else 0.61


def _fitting(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """The text, cut with an ellipsis where it would be wider than the room."""
    if _text_width(text, size, bold=bold) <= room:
        return text
    while text and _text_width(text + "…", size, bold=bold) > room:
        text = text[:-1]
    return text.rstrip() + "…"


# -- the painters ---------------------------------------------------------------------------------------------------


def _tooltip_svg(group: _Group) -> list[str]:
    return [f"<title>{escape(group.tooltip)}</title>"] if group.tooltip else []


def _shape_svg(shape: _Box | _Words | _Link) -> str:
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
    return f'<text {place} fill="{shape.colour}"{style} xml:space="preserve">{escape(shape.text)}</text>'


def _paint(drawing: _Drawing, ax: Axes) -> None:
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
