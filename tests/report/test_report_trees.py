"""Drawings of trees: exact text, SVG that parses and in which nothing overlaps, and a figure without a display."""

import builtins
import io
import itertools
import xml.etree.ElementTree as ET
from decimal import Decimal

import numpy as np
import pytest

from dpmine.base.errors import RequestError
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.language.candidates import every_category
from dpmine.language.keys import LAST, AttributeKey, Bins, Group, Groups, Key, Test
from dpmine.language.predicates import Compare, IsIn, IsMissing
from dpmine.models.trees import Node, Trees, leaf, millionths
from dpmine.report.drawing import CARD_INK, COLOURS, INK, colour_of
from dpmine.report.trees import depth_that_fits, forest_text, tree_figure, tree_svg, tree_text
from dpmine.report.words import condition

SVG = "{http://www.w3.org/2000/svg}"
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ODD = '<b>&"odd"</b> $x^2$'
LONG = "a very long category name that goes on and on & on <for> ever"
COUNTRIES = TaxonomyNode.parse("World", {"Europe": ["Austria", "Spain"], "Asia": ["Japan", "India", "Nepal"]})
SCHEMA = Schema(
    "clinic",
    (
        Numeric("age", Decimal(0), Decimal(110), Decimal(1), Decimal(40)),
        Nominal("ward", ("north", "south", "east", "west", "children"), "north", missing="north"),
        Nominal("day", DAYS, "Monday", missing="Monday"),
        Nominal("country", ("Austria", "Spain", "Japan", "India", "Nepal"), "Austria", COUNTRIES, missing="Austria"),
        Nominal(ODD, (LONG, "b"), "b", missing="b"),
        Nominal("diagnosis", ("healthy", "sick"), "healthy", missing="healthy"),
    ),
    1_000_000,
    "diagnosis",
)
CLASSES = ("healthy", "sick")


def split(key: Key, *children: Node) -> Node:
    rows = tuple(sum(counts) for counts in zip(*(child.rows for child in children), strict=True))
    return Node(rows, millionths(np.array(rows, dtype=float)), key, children)


def by_ward(*values: str) -> Groups:
    return Groups("ward", (Group("chosen", values),))


def small() -> Node:
    old = split(by_ward("north", "east"), leaf([469, 734]), leaf([-4, 1]))
    return split(Bins("age", ("40",)), leaf([12_000, 345]), old)


def weekly() -> Node:
    """Seven children, three classes, odd names."""
    inner = split(AttributeKey(ODD), leaf([3, 40, 2]), leaf([-3, -5, -1]))
    groups = Groups("country", (Group("Europe", ("Austria", "Spain")),))
    return split(
        AttributeKey("day"), *(leaf([9, number, 2]) for number in range(5)), inner, split(groups, leaf([1, 1, 1]), inner)
    )


def full(depth: int) -> Node:
    if depth == 0:
        return leaf([10, 20])
    return split(Bins("age", (str(10 * depth),)), full(depth - 1), full(depth - 1))


def chain(depth: int) -> Node:
    return split(by_ward("north"), leaf([5, 1]), chain(depth - 1)) if depth else leaf([1, 9])


def boxes(svg: str, kind: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of the rectangles of a kind."""
    found = []
    for rect in ET.fromstring(svg).iter(f"{SVG}rect"):
        if kind in rect.attrib["class"].split():
            x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def overlap(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def tooltips(svg: str) -> list[str]:
    return [group.findtext(f"{SVG}title") or "" for group in ET.fromstring(svg).iter(f"{SVG}g")]


TREES = {
    "single leaf": (leaf([3, 1203]), CLASSES),
    "small": (small(), CLASSES),
    "weekly": (weekly(), ("A & <B>", "cold", LONG)),
    "64 leaves": (full(6), CLASSES),
    "deep": (chain(30), CLASSES),
}
every_tree = pytest.mark.parametrize(("tree", "classes"), TREES.values(), ids=TREES.keys())


# -- text -----------------------------------------------------------------------------------------------------------


def test_a_small_tree_reads_like_a_table():
    assert tree_text(small(), CLASSES, SCHEMA) == "\n".join(
        [
            "all rows                                                about 13,545 rows",
            "├── age < 40                            healthy   97 %  about 12,345 rows",
            "└── age >= 40                                            about 1,200 rows",
            "    ├── ward is north or east           sick      61 %   about 1,203 rows",
            "    └── ward is neither north nor east  sick     100 %       about 0 rows",
        ]
    )


def test_text_in_ascii_holds_nothing_else():
    drawn = tree_text(weekly(), ("café", "cold", LONG), SCHEMA, unicode=False)
    assert drawn.isascii()
    assert "|-- day is Monday" in drawn
    assert "`-- day is Sunday" in drawn
    assert "caf\\xe9" in drawn


def test_a_single_leaf_is_one_line():
    assert tree_text(leaf([3, 1203]), CLASSES, SCHEMA) == "all rows  sick  >99 %  about 1,206 rows"


def test_text_cut_at_a_depth_says_how_much_is_hidden():
    assert tree_text(small(), CLASSES, SCHEMA, max_depth=1).splitlines()[-1] == "    └── ... 2 more leaves"
    assert tree_text(small(), CLASSES, SCHEMA, max_depth=0).splitlines()[-1] == "└── ... 3 more leaves"


@every_tree
def test_text_has_a_line_a_node(tree, classes):
    assert len(tree_text(tree, classes, SCHEMA).splitlines()) == sum(1 for _ in tree.nodes())


def test_counts_below_zero_are_drawn_as_no_rows():
    assert "about 0 rows" in tree_text(leaf([-7, -2]), CLASSES, SCHEMA)
    svg = tree_svg(leaf([-7, -2]), CLASSES, SCHEMA)
    assert "about 0 rows" in texts(svg)
    assert any("noisy count -7" in tooltip for tooltip in tooltips(svg))


def test_control_characters_of_names_never_reach_a_terminal_or_xml():
    names = ("a\x1b[31m\n", "b\x00\ud800")
    assert tree_text(small(), names, SCHEMA).count("\n") == 4
    assert "\x1b" not in tree_text(small(), names, SCHEMA)
    ET.fromstring(tree_svg(small(), names, SCHEMA, title="\x07title"))


@pytest.mark.parametrize(
    ("key", "number", "words"),
    [
        (Bins("age", ("20", "40")), 0, "age < 20"),
        (Bins("age", ("20", "40")), 1, "age 20 to <40"),
        (Bins("age", ("20", "40.0")), 2, "age >= 40"),
        (AttributeKey("ward"), 1, "ward is south"),
        (by_ward("north"), 0, "ward is north"),
        (by_ward("north"), 1, "ward is not north"),
        (by_ward("north", "east"), 1, "ward is neither north nor east"),
        (by_ward("north", "east", "south"), 1, "ward is west or children"),
        (by_ward("north", "east", "south", "west"), 0, "ward is north, south or 2 more"),
        (by_ward(*DAYS[:0]), 0, "ward is anything else"),
        (
            Groups("day", (Group("early", DAYS[:2]), Group("late", DAYS[2:3]))),
            2,
            "day is none of Monday, Tuesday and Wednesday",
        ),
        (Groups("country", (Group("x", ("Spain", "Austria")),)), 0, "country in Europe"),
        (Groups("country", (Group("x", ("Spain", "Austria")),)), 1, "country in Asia"),
        (Test(Compare("age", ">", "50")), 0, "age <= 50"),
        (Test(Compare("age", ">", "50")), 1, "age > 50"),
        (Test(IsIn("ward", ("north",))), 0, "not ward in [north]"),
    ],
)
def test_conditions_read_like_sentences(key, number, words):
    assert condition(key, number, SCHEMA, at_most=3) == words


GAPPY = Schema(
    "gappy",
    (
        Numeric("age", Decimal(0), Decimal(110), Decimal(1)),
        Numeric("dose", Decimal(0), Decimal(9), Decimal(1), "drop"),
        Nominal(
            "ward", ("north", "south", "east"), None, TaxonomyNode.parse("any", {"cold": ["north", "east"], "south": []})
        ),
        Nominal("day", DAYS, missing="drop"),
        Nominal("diagnosis", ("healthy", "sick"), missing="drop"),
    ),
    1_000_000,
    "diagnosis",
)


def of_wards(*values: str) -> Groups:
    return Groups("ward", (Group("chosen", values),), missing=LAST)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (Bins("age", ("40",), LAST), ["age < 40", "age >= 40 or missing"]),
        (Bins("dose", ("4",), LAST), ["dose < 4", "dose >= 4 or missing"]),
        (Bins("age", ("(missing)",), LAST), ["age has a value", "age is missing"]),
        (Bins("age", ("20", "40", "(missing)"), LAST), ["age < 20", "age 20 to <40", "age >= 40", "age is missing"]),
        (Bins("age", ("40",)), ["age < 40", "age >= 40", "age is missing"]),
        (AttributeKey("ward"), ["ward is north", "ward is south", "ward is east", "ward is missing"]),
        (of_wards("(missing)"), ["ward is missing", "ward has a value"]),
        (of_wards("north", "south", "east"), ["ward has a value", "ward is missing"]),
        (of_wards("south"), ["ward is south", "ward in cold or missing"]),
        (of_wards("north", "east"), ["ward in cold", "ward not in cold, or missing"]),
        (of_wards("north"), ["ward is north", "ward is not north, or missing"]),
        (of_wards("south", "(missing)"), ["ward is south or missing", "ward in cold"]),
        (of_wards("north", "south", "east", "(missing)"), ["ward in any or missing", "ward not in any"]),
        (Groups("ward", (Group("x", ("south",)),)), ["ward is south", "ward in cold", "ward is missing"]),
        (every_category(GAPPY, "day"), [*(f"day is {day}" for day in DAYS[:-1]), "day is Sunday or missing"]),
        (Test(Compare("age", ">", "50")), ["age <= 50 or missing", "age > 50"]),
        (Test(IsMissing("age")), ["age is not missing", "age is missing"]),
    ],
)
def test_conditions_say_where_rows_without_a_value_go(key, words):
    assert [condition(key, number, GAPPY) for number in range(len(key.labels(GAPPY)))] == words
    svg = tree_svg(split(key, *(leaf([1, 2]) for _ in words)), CLASSES, GAPPY)
    assert sum("missing" in tooltip for tooltip in tooltips(svg)) >= sum("missing" in word for word in words)


def test_bins_at_the_gap_have_labels_that_speak_of_values():
    assert Bins("age", ("(missing)",), LAST).labels(GAPPY) == ("any value", "(missing)")
    assert Bins("age", ("40", "(missing)"), LAST).labels(GAPPY) == ("<40", ">=40", "(missing)")
    assert Bins("age", ("40",)).labels(GAPPY) == ("<40", ">=40", "(missing)")
    assert Bins("age", ("40",), LAST).labels(GAPPY) == ("<40", ">=40")


# -- svg ------------------------------------------------------------------------------------------------------------


@every_tree
def test_svg_draws_every_node_once(tree, classes):
    svg = tree_svg(tree, classes, SCHEMA)
    assert len(boxes(svg, "leaf")) == sum(1 for _ in tree.leaves())
    assert len(boxes(svg, "card")) == sum(1 for _ in tree.nodes())
    assert len(boxes(svg, "label")) == sum(1 for _ in tree.nodes()) - 1


@every_tree
def test_in_svg_no_card_and_no_label_overlaps_another(tree, classes):
    svg = tree_svg(tree, classes, SCHEMA)
    (paper,) = boxes(svg, "paper")
    drawn = boxes(svg, "card") + boxes(svg, "label")
    assert not any(overlap(one, two) for one, two in itertools.combinations(drawn, 2))
    assert all(
        paper[0] < left and paper[1] < top and right < paper[2] and bottom < paper[3] for left, top, right, bottom in drawn
    )


def test_svg_places_leaves_evenly_and_parents_over_their_children():
    svg = tree_svg(full(3), CLASSES, SCHEMA)
    leaves = sorted((left + right) / 2 for left, _, right, _ in boxes(svg, "leaf"))
    steps = np.diff(leaves)
    assert np.allclose(steps, steps[0], atol=0.2)
    parents = sorted(boxes(svg, "split"), key=lambda box: (box[1], box[0]))[-4:]
    assert np.allclose(
        [(left + right) / 2 for left, _, right, _ in parents], np.mean(np.reshape(leaves, (4, 2)), axis=1), atol=0.2
    )


def test_svg_escapes_names_and_keeps_long_ones_whole_in_tooltips():
    svg = tree_svg(weekly(), ("A & <B>", "cold", LONG), SCHEMA, title='"Title" <of> & all')
    root = ET.fromstring(svg)
    assert root.findtext(f"{SVG}title") == '"Title" <of> & all'
    assert "Counts are noisy" in (root.findtext(f"{SVG}desc") or "")
    assert "<b>" not in svg
    assert not any(LONG in text for text in texts(svg))
    assert any(text.endswith("…") for text in texts(svg))
    assert any(f"day is Saturday\nand {ODD} is {LONG}\nA & <B>: 7 %, noisy count 3" in tooltip for tooltip in tooltips(svg))
    assert LONG in tooltips(svg)  # the legend


def test_svg_cut_at_a_depth_shows_dots():
    svg = tree_svg(full(6), CLASSES, SCHEMA, max_depth=2)
    assert texts(svg).count("... 16 more leaves") == 4
    assert len(boxes(svg, "card")) == 7
    assert "Drawn to depth 2." in svg
    assert "..." not in tree_svg(full(2), CLASSES, SCHEMA, max_depth=2)


def test_svg_stands_alone():
    svg = tree_svg(small(), CLASSES, SCHEMA)
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
    assert tags == {"svg", "title", "desc", "g", "rect", "path", "text"}
    assert svg.count("http") == 1  # the namespace
    assert any(text.startswith("Counts are noisy") for text in texts(svg))
    assert " id=" not in svg  # several drawings may stand on one page


def test_thicker_lines_carry_more_rows():
    paths = ET.fromstring(tree_svg(small(), CLASSES, SCHEMA)).iter(f"{SVG}path")
    widths = sorted(float(path.attrib["stroke-width"]) for path in paths)
    assert widths[0] == pytest.approx(1.2)  # a count below 0 has the thinnest line
    assert widths[-1] == pytest.approx(1.2 + 10 * 12_345 / 13_545, abs=0.06)


def test_share_bars_fill_the_card_in_proportion():
    bars = boxes(tree_svg(leaf([25, 75]), CLASSES, SCHEMA), "share")
    first, second = (right - left for left, _, right, _ in bars)
    assert second / first == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize("place", range(24))
def test_text_on_a_card_of_any_colour_has_contrast(place):
    rows = [1000 if number == place else 0 for number in range(24)]
    svg = tree_svg(leaf(rows), [f"class {number}" for number in range(24)], SCHEMA)
    (fill,) = (rect.attrib["fill"] for rect in ET.fromstring(svg).iter(f"{SVG}rect") if "card" in rect.attrib["class"])
    for ink in (INK, CARD_INK):
        assert (luminance(fill) + 0.05) / (luminance(ink) + 0.05) > 4.5


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_first_24_classes_have_different_colours():
    assert len({colour_of(number) for number in range(3 * len(COLOURS))}) == 24


# -- matplotlib -----------------------------------------------------------------------------------------------------


@every_tree
def test_figure_renders_without_a_display(tree, classes):
    png = io.BytesIO()
    tree_figure(tree, classes, SCHEMA).savefig(png, format="png")
    assert png.getvalue().startswith(b"\x89PNG")


def test_figure_draws_on_given_axes():
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.subplots(1, 2)[1]
    assert tree_figure(small(), CLASSES, SCHEMA, ax=ax) is figure
    shown = [text.get_text() for text in ax.texts]
    assert shown == texts(tree_svg(small(), CLASSES, SCHEMA))


def test_figure_without_matplotlib_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RequestError, match=r"plot needs matplotlib. Run: pip install 'dpmine\[plots\]'"):
        tree_figure(small(), CLASSES, SCHEMA)


# -- forests and mistakes -------------------------------------------------------------------------------------------


def test_forest_text_ranks_attributes_by_how_often_and_how_high_they_split():
    forest = Trees(CLASSES, (small(), small(), chain(1), leaf([1, 2])))
    assert forest_text(forest, SCHEMA) == "\n".join(
        [
            "4 trees, depth 0 to 2, 9 leaves",
            "",
            "ward  ████████████████████████  3 splits, root of 1 tree",
            "age   ████████████████          2 splits, root of 2 trees",
            "",
            f"Never split by: day, country and {ODD}",
        ]
    )


def test_forest_text_of_leaves_says_that_nothing_splits():
    drawn = forest_text(Trees(CLASSES, (leaf([1, 2]),)), SCHEMA, unicode=False)
    assert drawn.startswith("1 tree, depth 0, 1 leaf\n\nNo tree splits.\n")
    assert drawn.isascii()


def test_wrong_requests_are_refused():
    with pytest.raises(RequestError, match="counts 2 classes"):
        tree_text(small(), ("a", "b", "c"), SCHEMA)
    with pytest.raises(RequestError, match="'max_depth' parameter must be 0 or more"):
        tree_svg(small(), CLASSES, SCHEMA, max_depth=-1)


def test_a_group_of_no_values_and_its_rest_have_words() -> None:
    key = Groups("ward", (Group("none", ()),), rest="all")
    schema = Schema("s", (Nominal("ward", ("north", "south"), "north", missing="north"),), 100, None)
    assert condition(key, 0, schema) == "ward is anything else"
    assert condition(key, 1, schema) == "ward is anything"


# -- in notebooks --------------------------------------------------------------------------------------------------------


def test_a_tree_is_drawn_as_deep_as_its_cards_fit_beside_each_other() -> None:
    assert [depth_that_fits(full(5), leaves) for leaves in (1, 2, 7, 8, 31, 32)] == [1, 1, 2, 3, 4, 5]
    assert depth_that_fits(chain(9), 10) == 9
    assert depth_that_fits(chain(9), 6) == 5
    assert depth_that_fits(leaf([1, 2]), 10) == 0
