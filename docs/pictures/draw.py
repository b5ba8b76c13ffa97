"""Draws the pictures of docs/architecture.md: the layers as pyproject.toml has them, and the ways of two questions.

    python docs/pictures/draw.py

Colours, letters and the width of texts are those of the product's own drawings. Each picture stands on paper of its own, so
it can be read on light and dark pages alike.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from dpmine.report.drawing import COLOURS, FONTS, INK, LINE, MARGIN, PAPER, SOFT_INK, mixed, text_width

HERE = Path(__file__).resolve().parent
WIDTH = 1120
BLUE, ORANGE, GREEN = COLOURS[0], COLOURS[4], COLOURS[2]
TRUSTED = {"kernel", "codes", "noise", "base", "budget"}
"""Packages that the kernel reaches, in whole or in part."""

STANDS_HERE = {
    "cli": "the commands",
    "audit": "measured epsilon",
    "reproduce": "papers, rerun",
    "datasets": "loaders, generators",
    "owner": "opens, grants, wires; the desk",
    "release": "tables to publish",
    "mining": "trees, clusters",
    "baselines": "not private",
    "kernel": "door, ledger, noise",
    "engines": "exact counts",
    "tables": "what a miner holds",
    "results": "receipts, statements",
    "report": "drawings, pages",
    "postprocess": "of noisy numbers",
    "questions": "asked, in names",
    "design": "noise for a prior",
    "models": "fitted, as values",
    "language": "predicates, keys, views, queries: names to codes",
    "budget": "plans and renewal",
    "facts": "schema, kinds, sources",
    "codes": "what the kernel knows, and checks",
    "noise": "laws, and how far noise reaches",
    "base": "errors, epsilon, wire values, processes",
}


def layers() -> list[list[str]]:
    """The packages of each layer, from the outermost one in, as import-linter holds them."""
    project = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [each for each in project["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    return [layer.split(" : ") for layer in contract["layers"]]


# -- shapes ------------------------------------------------------------------------------------------------------------


def box(x: float, y: float, width: float, height: float, fill: str, edge: str = "none", radius: float = 9) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}"'
    return f'<rect {place} fill="{fill}" stroke="{edge}"/>'


def words(
    x: float, y: float, text: str, size: float = 12, colour: str = INK, *, bold: bool = False, anchor: str = "start"
) -> str:
    weight = ' font-weight="600"' * bold
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}"{weight}>{escape(text, quote=False)}</text>'


def arrow(points: list[tuple[float, float]]) -> str:
    """A line that ends in a head, which points down."""
    (x, y) = points[-1]
    path = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in [*points[:-1], (x, y - 6)])
    head = f"M{x - 5:.1f} {y - 8:.1f}L{x + 5:.1f} {y - 8:.1f}L{x:.1f} {y:.1f}Z"
    return f'<path d="{path}" fill="none" stroke="{SOFT_INK}" stroke-width="1.5"/><path d="{head}" fill="{SOFT_INK}"/>'


def picture(title: str, description: str, height: float, shapes: Iterator[str]) -> str:
    said = f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>"
    head = (
        f'<svg xmlns="http:{"//"}www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" font-family="{FONTS}">'
    )
    return "\n".join([head, said, box(0, 0, WIDTH, height, PAPER), *shapes, "</svg>"]) + "\n"


# -- the layers --------------------------------------------------------------------------------------------------------

BAND, BETWEEN = 66, 12


def layers_picture() -> str:
    drawn = layers()
    height = MARGIN + 66 + len(drawn) * (BAND + BETWEEN) + 24

    def shapes() -> Iterator[str]:
        yield words(MARGIN, MARGIN + 14, "The layers: each imports only what stands below it", 18, bold=True)
        swatch = MARGIN + 30.0
        yield box(MARGIN, swatch, 14, 14, *_colours("kernel"), radius=3)
        yield words(MARGIN + 20, swatch + 11, "reached by the kernel, in whole or in part: trusted", colour=SOFT_INK)
        yield box(MARGIN + 400, swatch, 14, 14, *_colours("cli"), radius=3)
        yield words(
            MARGIN + 420,
            swatch + 11,
            "not trusted to keep the promise, but for engines, encoding and the owner's wiring",
            colour=SOFT_INK,
        )
        for number, packages in enumerate(drawn):
            yield from _band(number, packages, MARGIN + 62 + number * (BAND + BETWEEN))

    named = "; ".join(f"{number}: {', '.join(packages)}" for number, packages in enumerate(drawn, 1))
    return picture("The layers of dpmine", f"From the outermost layer in. {named}.", height, shapes())


def _band(number: int, packages: list[str], top: float) -> Iterator[str]:
    yield box(MARGIN, top, WIDTH - 2 * MARGIN, BAND, mixed(LINE, PAPER, 0.25))
    yield words(MARGIN + 18, top + BAND / 2 + 6, str(number + 1), 16, SOFT_INK, bold=True, anchor="middle")
    left, room = MARGIN + 38, WIDTH - 2 * MARGIN - 46
    width = (room - 8 * (len(packages) - 1)) / len(packages)
    for place, package in enumerate(packages):
        x = left + place * (width + 8)
        yield box(x, top + 8, width, BAND - 16, *_colours(package), radius=7)
        yield words(x + width / 2, top + 29, package, 14, bold=True, anchor="middle")
        yield words(x + width / 2, top + 47, STANDS_HERE[package], 11.5, anchor="middle")


def _colours(package: str) -> tuple[str, str]:
    colour = ORANGE if package in TRUSTED else BLUE
    return mixed(colour, "#FFFFFF", 0.14), mixed(colour, "#FFFFFF", 0.7)


# -- the way of a question ---------------------------------------------------------------------------------------------

LANES = (
    ("in names: miner and desk", BLUE),
    ("on codes: kernel (trusted)", ORANGE),
    ("ledger (trusted) and engine", GREEN),
)
LANE = (WIDTH - 2 * MARGIN) / len(LANES)
CARD, GAP = 62, 38


@dataclass(frozen=True)
class Station:
    """Where a question comes by: in which lane, what happens, and what goes on from there."""

    lane: int
    title: str
    where: str
    passes_on: str = ""


HISTOGRAM = (
    Station(0, 'private.histogram("ward", epsilon=0.1)', "tables.private_table", "a column by name"),
    Station(0, "asking: the question as a value", "tables.asking", "Histogram(keys)"),
    Station(0, "a query: view, cells, question, epsilon", "language.queries", "Query"),
    Station(0, "the executor sends it", "tables.executor, owner.local_executor", "wire bytes, in names"),
    Station(0, "desk: names become codes", "owner.desk, language.resolver, questions.histogram", "wire bytes, on codes"),
    Station(1, "door: read anew, check every part", "kernel.door, codes.rows, codes.histogram", "ResolvedHistogram"),
    Station(
        1, "price of each cell, law of each price", "kernel.ledger.odometer, kernel.mechanisms.histogram", "price and laws"
    ),
    Station(2, "charge, durably, or refuse", "kernel.ledger.book", "from here on the charge stands"),
    Station(1, "mechanism asks for exact counts", "kernel.mechanisms.histogram", "cells and keys"),
    Station(2, "engine counts rows", "engines.memory, engines.sql", "exact integers"),
    Station(1, "noise by the law that was stated", "kernel.samplers.laplace, kernel.mechanisms.histogram", "noisy integers"),
    Station(
        2,
        "store the answer's bytes, tell the head",
        "kernel.ledger.book, kernel.ledger.telling",
        "Reply: numbers, law, price, cost, head",
    ),
    Station(0, "reading: what the numbers mean", "results.reading, questions.histogram", "labels, law and receipt"),
    Station(0, "NoisyHistogram, which knows its law", "questions.histogram, noise.spread"),
)

TREE_LEVEL = (
    Station(0, "fit: the plan's price for this level", "mining.trees.classifier, budget.plans", "an epsilon for all leaves"),
    Station(0, "growth: leaves and their candidates", "mining.trees.growing", "splits for each leaf"),
    Station(0, "private.cells(tree).choose(candidates)", "tables.private_cells", "one ChooseSplit"),
    Station(0, "the executor sends one query", "tables.executor", "wire bytes, the tree as rules"),
    Station(
        0, "desk: rules and splits on codes", "owner.desk, language.splits, questions.choose_split", "wire bytes, on codes"
    ),
    Station(1, "door: every cell and split is checked", "kernel.door, codes.rows, codes.splits", "ResolvedChooseSplit"),
    Station(
        1,
        "price of the dearest cell; law of a loss",
        "kernel.ledger.odometer, kernel.mechanisms.choose_split",
        "price and laws",
    ),
    Station(2, "charge the level once, for all leaves", "kernel.ledger.book", "the charge stands"),
    Station(2, "engine counts classes by all keys", "engines.memory, engines.sql", "exact counts for each leaf"),
    Station(1, "whole scores with a stated range", "kernel.scores, codes.splits", "scores and base measure"),
    Station(1, "one private choice in each leaf", "kernel.samplers.choice", "the numbers of the chosen splits"),
    Station(
        2,
        "store the answer's bytes, tell the head",
        "kernel.ledger.book, kernel.ledger.telling",
        "Reply: numbers, law, price, cost, head",
    ),
    Station(0, "reading: a split, or staying whole", "questions.choose_split, language.candidates", "a key for each leaf"),
    Station(0, "leaves are split; the next level", "mining.trees.growing"),
)


def way_picture(title: str, stations: tuple[Station, ...]) -> str:
    top = MARGIN + 84.0
    height = top + len(stations) * (CARD + GAP) - GAP + MARGIN

    def shapes() -> Iterator[str]:
        yield words(MARGIN, MARGIN + 14, title, 18, bold=True)
        for number, (name, colour) in enumerate(LANES):
            x = MARGIN + number * LANE
            yield box(x + 4, MARGIN + 34, LANE - 8, height - 2 * MARGIN - 20, mixed(colour, PAPER, 0.06))
            yield words(x + LANE / 2, MARGIN + 60, name, 14, mixed(colour, "#000000", 0.75), bold=True, anchor="middle")
        tops = [top + number * (CARD + GAP) for number in range(len(stations))]
        for (here, y), (there, next_y) in itertools.pairwise(zip(stations, tops, strict=True)):
            yield from _passing(here, there, y + CARD, next_y)
        for number, (station, y) in enumerate(zip(stations, tops, strict=True), 1):
            yield from _station(number, station, y)

    said = " Then: ".join(f"{LANES[station.lane][0]}, {station.title} ({station.where})." for station in stations)
    return picture(title, said, height, shapes())


def _centre(station: Station) -> float:
    return MARGIN + (station.lane + 0.5) * LANE


def _station(number: int, station: Station, top: float) -> Iterator[str]:
    colour, width = LANES[station.lane][1], LANE - 28
    x = _centre(station) - width / 2
    yield box(x, top, width, CARD, mixed(colour, "#FFFFFF", 0.16), mixed(colour, "#FFFFFF", 0.7))
    title, size = f"{number}  {station.title}", 13.0
    while text_width(title, size, bold=True) > width - 16:
        size -= 0.25
    yield words(x + width / 2, top + 26, title, size, bold=True, anchor="middle")
    small = 11.0
    while text_width(station.where, small) > width - 16:
        small -= 0.25
    yield words(x + width / 2, top + 46, station.where, small, SOFT_INK, anchor="middle")


def _passing(here: Station, there: Station, bottom: float, top: float) -> Iterator[str]:
    """The arrow to the next station, and what it takes along."""
    start, end = _centre(here), _centre(there)
    if here.lane == there.lane:
        yield arrow([(start, bottom), (start, top)])
        yield words(start + 10, (bottom + top) / 2 + 4, here.passes_on, 11.5, SOFT_INK)
        return
    middle = bottom + GAP / 2 + 2
    yield arrow([(start, bottom), (start, middle), (end, middle), (end, top)])
    yield words((start + end) / 2, middle - 6, here.passes_on, 11.5, SOFT_INK, anchor="middle")


PICTURES = {
    "layers.svg": layers_picture,
    "histogram.svg": lambda: way_picture("The way of one histogram", HISTOGRAM),
    "tree-level.svg": lambda: way_picture("The way of one level of a decision tree", TREE_LEVEL),
}


if __name__ == "__main__":
    for name, drawn in PICTURES.items():
        (HERE / name).write_text(drawn(), encoding="utf-8")
