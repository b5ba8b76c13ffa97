"""Drawings of fitted trees: as text, as SVG and in matplotlib, and a summary of a forest.

The SVG and the matplotlib figure are one drawing: `drawing_of` lays out a tree and says what stands where, and two small
painters put that down. Noisy counts below 0 are shown as 0 rows; only tooltips give them as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from dpmine.base.errors import RequestError
from dpmine.facts.schema import Schema
from dpmine.models.trees import Node, Trees
from dpmine.report.drawing import FONTS, WIDEST_FIGURE, drawing_of, paint, shape_svg, tooltip_svg
from dpmine.report.words import (
    FEW_VALUES,
    LONGEST_LABEL,
    LONGEST_NAME,
    and_more,
    ascii_text,
    check_tree,
    clean,
    columns_of_text,
    condition,
    cut,
    hidden_words,
    many,
    padded,
    percent,
    rows_words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def tree_text(
    tree: Node, classes: Sequence[str], schema: Schema, *, unicode: bool = True, max_depth: int | None = None
) -> str:
    """The tree for a terminal: a line a node, leaves with their class. With `unicode=False` in ASCII only."""
    check_tree(tree, classes, max_depth)
    signs = ("├── ", "└── ", "│   ", "    ") if unicode else ("|-- ", "`-- ", "|   ", "    ")
    lines = list(_text_lines(tree, classes, schema, signs, max_depth, start="", below="", label="all rows"))
    if not unicode:
        lines = [_TextLine(*(ascii_text(part) for part in (line.left, line.name, line.chance, line.rows))) for line in lines]
    left, name, chance, rows = (
        max(map(columns_of_text, column)) for column in zip(*(line.parts for line in lines), strict=True)
    )
    return "\n".join(
        f"{padded(line.left, left)}  {padded(line.name, name)}  {line.chance:>{chance}}  {line.rows:>{rows}}".rstrip()
        for line in lines
    )


def tree_svg(
    tree: Node, classes: Sequence[str], schema: Schema, *, title: str | None = None, max_depth: int | None = None
) -> str:
    """The tree as an SVG document that needs no fonts, styles or scripts and may stand inside a page."""
    drawing = drawing_of(tree, classes, schema, title, max_depth)
    size = f'width="{drawing.width:g}" height="{drawing.height:g}" viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    groups = ("\n".join(["<g>", *tooltip_svg(group), *map(shape_svg, group.shapes), "</g>"]) for group in drawing.groups)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONTS}">',
            f"<title>{escape(drawing.title, quote=False)}</title>",
            f"<desc>{escape(drawing.description, quote=False)}</desc>",
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
    drawing = drawing_of(tree, classes, schema, None, max_depth)
    if ax is None:
        scale = min(1.0, WIDEST_FIGURE / drawing.width)
        figure = Figure(figsize=(drawing.width * scale / 100, drawing.height * scale / 100), dpi=100)
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    paint(drawing, ax)
    found = ax.get_figure(root=True)
    assert found is not None
    return found


def depth_that_fits(tree: Node, leaves: int) -> int:
    """How deep the tree may be drawn so that at most so many cards stand side by side; at least one level."""
    level, ended, depth = [tree], 0, 0
    while any(node.split is not None for node in level):
        below = [child for node in level for child in node.children]
        ended += sum(1 for node in level if node.split is None)
        if depth and ended + len(below) > leaves:
            break
        level, depth = below, depth + 1
    return depth


def forest_text(trees: Trees, schema: Schema, *, unicode: bool = True) -> str:
    """How large the trees are, and which attributes they split by, how often and how high."""
    depths = [tree.depth for tree in trees.trees]
    leaves = sum(1 for tree in trees.trees for _ in tree.leaves())
    if not depths:
        return "no trees"
    reach = str(min(depths)) if min(depths) == max(depths) else f"{min(depths)} to {max(depths)}"
    lines = [f"{many(len(depths), 'tree')}, depth {reach}, {many(leaves, 'leaf', 'leaves')}", ""]
    places: dict[str, list[int]] = {}
    for tree in trees.trees:
        for title, depth in _splits(tree):
            places.setdefault(clean(title), []).append(depth)
    order = sorted(places, key=lambda title: (-len(places[title]), sum(places[title]), title))
    names = {title: cut(title, 32) for title in order}
    most = max(map(len, places.values()), default=0)
    width = max(map(columns_of_text, names.values()), default=0)
    for title in order:
        bar = _bar(len(places[title]) / most, unicode)
        number = f"{len(places[title]):>{len(f'{most:,}')},}"
        lines.append(f"{padded(names[title], width)}  {bar}  {number} {_height_words(places[title])}")
    if not places:
        lines.append("No tree splits.")
    unused = [cut(clean(name), 32) for name in _attributes(trees, schema) if clean(name) not in places]
    if unused:
        lines += ["", f"Never split by: {and_more(unused, 12)}"]
    text = "\n".join(lines)
    return text if unicode else ascii_text(text)


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
    left = start + cut(label, LONGEST_LABEL)
    if node.split is not None and levels != 0:
        yield _TextLine(left, rows=rows_words(node))
    else:
        name = cut(clean(classes[node.label]), LONGEST_NAME)
        yield _TextLine(left, name, percent(node.shares[node.label]), rows_words(node))
    if node.split is None:
        return
    if levels == 0:
        yield _TextLine(f"{below}{end}{hidden_words(node)}")
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


def _splits(node: Node, depth: int = 0) -> Iterator[tuple[str, int]]:
    """The title of each split, and how deep it stands."""
    if node.split is not None:
        yield node.split.title, depth
        for child in node.children:
            yield from _splits(child, depth + 1)


def _height_words(depths: Sequence[int]) -> str:
    splits = "split" if len(depths) == 1 else "splits"
    roots = sum(1 for depth in depths if depth == 0)
    return f"{splits}, root of {many(roots, 'tree')}" if roots else f"{splits}, highest at depth {min(depths)}"


def _bar(part: float, unicode: bool, columns: int = 24) -> str:
    if not unicode:
        return f"{'#' * max(1, round(part * columns)):<{columns}}"
    eighths = max(1, round(part * columns * 8))
    return f"{'█' * (eighths // 8) + ('', *'▏▎▍▌▋▊▉')[eighths % 8]:<{columns}}"


def _attributes(trees: Trees, schema: Schema) -> Iterator[str]:
    """The attributes that a tree could have split by."""
    for attribute in schema.singles:
        if attribute.name != schema.class_attribute:
            yield attribute.name
