"""Clusters drawn: an exact table, an SVG that parses and stays inside, a figure without a display."""

from __future__ import annotations

import builtins
import io
import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from support.attributes import numeric

from dpmine.base.errors import RequestError
from dpmine.facts.schema import Schema
from dpmine.mining.clustering.mapping import map_of, outline
from dpmine.mining.clustering.space import Space
from dpmine.mining.clustering.synopsis import Synopsis
from dpmine.report.cluster_maps import ClusterMap, map_figure, map_svg, shade, short_words, tick_words, ticks
from dpmine.report.clusters import Measure, cluster_words, clusters_text

SVG = "{http://www.w3.org/2000/svg}"
ODD = '<b>&"odd"</b> $x^2$'


def schema(*names: str) -> Schema:
    return Schema("people", tuple(numeric(name, 0, 100) for name in names), 1000)


def grid(space: Space, sides: tuple[int, ...], weights: np.ndarray) -> Synopsis:
    """Even cells over the whole space."""
    room = np.array(space.scales)
    half = (space.extents + room) / np.array(sides) / 2
    axes = [
        -margin / 2 + side_half * (2 * np.arange(side) + 1)
        for margin, side_half, side in zip(room, half, sides, strict=True)
    ]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(sides))
    return Synopsis(points, weights.ravel().astype(float), np.tile(half, (len(points), 1)), sides)


def drawn(*names: str, synopsis: str = "grid", x: str | None = None, y: str | None = None) -> ClusterMap:
    space = Space.of(schema(*(names or ("age", "hours"))), None, "none")
    centres = space.extents * np.array([[0.2], [0.75], [1.0]])
    sides = (4, 5, 2)[: space.dimensions]
    weights = np.arange(np.prod(sides)).reshape(sides)
    found = grid(space, weights.shape, weights)
    if synopsis == "leaves":
        found = Synopsis(found.points, found.weights, found.half, lower=found.points - found.half)
    given = None if synopsis == "none" else found
    return map_of("3 clusters of people, epsilon 1", space, centres, np.array([600.0, 150, 0]), given, x, y)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


# -- text --------------------------------------------------------------------------------------------------------------


def test_clusters_read_like_a_table() -> None:
    measures = [Measure("age", 0, 110), Measure("income", 0, 1e6), Measure("share", 0, 0.5)]
    centres = np.array([[40.25, 12_345.6, 0.25], [7, 1e6, -1e-9]])
    assert clusters_text(measures, centres, np.array([1234.4, 0.2])) == "\n".join(
        [
            "cluster   rows   share   age     income   share",
            "      0  1,234  100.0%  40.2     12,346  0.2500",
            "      1      0    0.0%   7.0  1,000,000  0.0000",
        ]
    )


def test_clusters_without_rows_and_with_odd_names_are_told() -> None:
    text = clusters_text([Measure("日本\n" + "x" * 40, 0, 1)], np.array([[0.5]]), np.array([0.0]), unicode=False)
    assert text.isascii()
    assert text.splitlines()[1].split() == ["0", "0", "0.0%", "0.500"]
    assert len({len(line) for line in text.splitlines()}) == 1


def test_a_tooltip_names_every_attribute() -> None:
    words = cluster_words(3, [Measure("age", 0, 110), Measure("hours", 0, 80)], np.array([40, 7.77]), 1.0)
    assert words == "cluster 3: about 1 row\nage 40.0\nhours 7.77"


# -- ticks and shades --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0, 1e6, ["0", "200,000", "400,000", "600,000", "800,000", "1,000,000"]),
        (-90, 90, ["-50", "0", "50"]),
        (17, 90, ["20", "40", "60", "80"]),
        (0, 0.6, ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"]),
        (-0.05, 1.45, ["0.00", "0.25", "0.50", "0.75", "1.00", "1.25"]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, words: list[str]) -> None:
    assert tick_words(ticks(low, high)) == words


def test_large_ticks_are_shortened() -> None:
    assert short_words(ticks(0, 1e6)) == ["0", "200k", "400k", "600k", "800k", "1,000k"]
    assert short_words(ticks(-5e7, 0)) == ["-50M", "-40M", "-30M", "-20M", "-10M", "0"]
    assert short_words(ticks(0, 0.6)) == tick_words(ticks(0, 0.6))


def test_shades_grow_darker() -> None:
    light = [sum(int(shade(part)[at : at + 2], 16) for at in (1, 3, 5)) for part in np.linspace(0, 1, 30)]
    assert light == sorted(light, reverse=True)
    assert shade(0) == "#FFFFFF"


def test_what_is_denser_is_darker_whatever_the_size_of_cells() -> None:
    boxes = np.array([[0, 0, 1, 1], [1, 0, 3, 2], [0, 1, 1, 2]], dtype=float)
    shown = ClusterMap("", Measure("x", 0, 3), Measure("y", 0, 2), 1, boxes, np.array([10.0, 20, 30]), *NO_CENTRES)
    dense, thin, densest = shown.shades()
    assert thin < dense < densest == 1


NO_CENTRES: Any = (np.zeros((1, 2)), np.ones(1), (), ("",))


# -- maps --------------------------------------------------------------------------------------------------------------


def test_the_cells_of_a_map_hold_the_rows_of_the_synopsis() -> None:
    flat = drawn()
    assert flat.rows.tolist() == list(range(1, 20))  # a cell with no rows is not drawn
    assert flat.boxes[-1] == pytest.approx([75.25, 80.3, 100.5, 100.5])
    assert (flat.x, flat.y) == (Measure("age", -0.5, 100.5), Measure("hours", -0.5, 100.5))
    third = drawn("age", "hours", "income")
    assert third.rows.tolist() == [4 * cell + 1 for cell in range(20)]
    other = drawn("age", "hours", "income", x="income", y="hours")
    assert (other.x.name, other.y.name) == ("income", "hours")
    assert other.rows.sum() == third.rows.sum()
    assert len(other.rows) == 10


def test_leaves_that_overlap_are_spread_over_a_raster() -> None:
    """The same cells as a grid's, as leaves of a tree: the same rows in every region."""
    cells, raster = drawn("age", "hours", "income"), drawn("age", "hours", "income", synopsis="leaves")
    assert len(raster.rows) == 72 * 72
    assert raster.rows.sum() == pytest.approx(cells.rows.sum())
    left = [shown.rows[(shown.boxes[:, 2] <= 25)].sum() for shown in (cells, raster)]
    assert left[0] == pytest.approx(left[1], rel=0.02)


def test_one_attribute_may_be_asked_for() -> None:
    assert [drawn("a", "b", "c", y="a").x.name, drawn("a", "b", "c", y="a").y.name] == ["b", "a"]
    assert [drawn("a", "b", "c", x="b").x.name, drawn("a", "b", "c", x="b").y.name] == ["b", "a"]


def test_outlines_cut_the_box_in_pieces() -> None:
    random = np.random.default_rng(4)
    centres = random.uniform(0, 10, (25, 2))
    low, high = np.array([0.0, 0.0]), np.array([10.0, 10.0])
    outlines = [outline(centres, number, low, high) for number in range(25)]
    areas = []
    for spots in outlines:
        x, y = spots.T
        areas.append(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2)
    assert sum(areas) == pytest.approx(100)
    samples = random.uniform(0, 10, (20_000, 2))
    nearest = np.argmin(((samples[:, None] - centres) ** 2).sum(axis=2), axis=1)
    assert np.allclose(np.bincount(nearest, minlength=25) / 200, areas, atol=1.5)  # 10 deviations of the largest share


def test_twins_have_the_same_outline() -> None:
    centres = np.array([[2.0, 5], [2, 5], [8, 5]])
    first, second, third = (outline(centres, number, np.zeros(2), np.full(2, 10.0)) for number in range(3))
    assert first.tolist() == second.tolist()
    assert first[:, 0].max() == third[:, 0].min() == 5


# -- SVG ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("synopsis", ["grid", "leaves", "none"])
@pytest.mark.parametrize("names", [("age", "hours"), ("age", "hours", "income"), (ODD, "日本" * 40)])
def test_a_map_is_svg_in_which_everything_stays_inside(names: tuple[str, ...], synopsis: str) -> None:
    shown = drawn(*names, synopsis=synopsis)
    svg = map_svg(shown)
    root = ET.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for path in root.iter(f"{SVG}path"):
        numbers = np.array(re.findall(r"[-\d.]+", path.attrib["d"]), dtype=float).reshape(-1, 5)
        assert (numbers[:, [0, 2]] >= 84).all()
        assert (numbers[:, [0, 2]] <= width - 40 + 0.1).all()
        assert (numbers[:, [1, 3]] >= 78 - 0.1).all()
        assert (numbers[:, [1, 3]] <= height - 84 + 0.1).all()
    shades = list(root.iter(f"{SVG}path"))
    assert bool(shades) == (synopsis != "none")
    borders = list(root.iter(f"{SVG}polygon"))
    assert len(borders) == (3 if len(names) == 2 else 0)
    marks = [mark for mark in root.iter(f"{SVG}circle") if mark.get("class") == "mark"]
    radii = [float(mark.attrib["r"]) for mark in marks]
    assert radii == [20.0, 10.0, 3.5]  # area by size: a quarter of the rows, half the radius
    assert texts(svg)[0] == "3 clusters of people, epsilon 1"
    assert texts(svg)[-1] == "Counts are noisy."
    assert {"0", "1", "2"} <= set(texts(svg))


def test_a_map_of_nothing_is_drawn() -> None:
    """Where nothing rose out of the noise there are no rows and no sizes."""
    space = Space.of(schema("age", "hours"), None, "none")
    empty = grid(space, (2, 2), np.zeros(4))
    shown = map_of("none", space, np.tile(space.extents / 2, (3, 1)), np.zeros(3), empty, None, None)
    ET.fromstring(map_svg(shown))
    map_figure(shown).savefig(io.BytesIO())


def test_tooltips_tell_about_centres() -> None:
    svg = map_svg(drawn("age", "hours", "income"))
    tips = [group.findtext(f"{SVG}title") for group in ET.fromstring(svg).iter(f"{SVG}g")]
    assert tips[0] == "cluster 0: about 600 rows\nage 20.0\nhours 20.0\nincome 20.0"


def test_flat_and_tall_maps_keep_their_proportions_within_reason() -> None:
    for low, high, wide, tall in ((50, 100, 560, 280), (100, 50, 280, 560), (1, 100, 560, 224)):
        facts = Schema(
            "box",
            (
                numeric("x", 0, high),
                numeric("y", 0, low),
            ),
            10,
        )
        space = Space.of(facts, None, "none")
        svg = map_svg(map_of("t", space, space.extents[None, :] / 2, np.ones(1), None, None, None))
        frame = next(rect for rect in ET.fromstring(svg).iter(f"{SVG}rect") if rect.get("class") == "frame")
        assert (float(frame.attrib["width"]), float(frame.attrib["height"])) == pytest.approx((wide, tall), abs=1)


# -- matplotlib --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("synopsis", ["grid", "none"])
def test_a_map_is_a_figure_in_the_attributes_own_units(synopsis: str) -> None:
    figure = map_figure(drawn(ODD, "hours", synopsis=synopsis))
    (ax,) = figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == (ODD, "hours")
    assert ax.get_xlim() == (-0.5, 100.5)
    assert ax.get_title(loc="left").strip() == "3 clusters of people, epsilon 1"
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    assert buffer.getvalue().startswith(b"\x89PNG")


def test_a_map_may_stand_on_axes_of_a_larger_figure() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert map_figure(drawn(), ax=right) is figure
    assert not left.collections
    assert len(right.collections) >= 3


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RequestError, match=r"dpmine\[plots\]"):
        map_figure(drawn())
