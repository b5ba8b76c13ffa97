"""Pages about a release: well-formed, readable by everybody, and true numbers only where they are marked."""

from __future__ import annotations

import inspect
import itertools
import re
import typing
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.datasets import patients, patients_schema
from dpmine.facts.schema import Schema
from dpmine.models.cuts import root_cut
from dpmine.release import owner_view as owner_module
from dpmine.release.bars import MOST_BARS, axes_of, counts_by_code, released_bars
from dpmine.release.learning import self_test
from dpmine.release.owner_view import owner_view
from dpmine.release.paid_check import CheckBudget, buy_check, plan_check
from dpmine.release.released import ReleasedTable
from dpmine.report import release_page as pages
from dpmine.report.bar_charts import Series, columns_svg, interval_words, share_words
from dpmine.report.release_page import OWNER_ONLY, distance, owner_page, release_page, shares_of

RECORDS = patients(2000)
VOID = {"meta", "br"}


def numeric_schema(low: str, high: str, step: str, categories: int = 2) -> Schema:
    text = f"""
name = "numbers"
rows_at_most = 100
class = "label"
[attributes.number]
kind = "numeric"
low = {low}
high = {high}
step = {step}
missing = {low}
[attributes.kind]
kind = "nominal"
categories = [{", ".join(f'"c{number}"' for number in range(categories))}]
missing = "c0"
[attributes.label]
kind = "nominal"
categories = ["no", "yes"]
"""
    return Schema.from_toml(text)


class Made:
    """A release of patients with everything that pages are made of."""

    def __init__(self) -> None:
        self.data = dm.open(RECORDS, schema=patients_schema(), cap=10)
        self.private = self.data.grant("alice", epsilon=10)
        self.model = dm.DiffGen(epsilon=1, specialisations=5).fit(self.private)
        released = self.model.release()
        self.sheet = self.model.sheet()
        self.bars = released_bars(released)
        self.tested = self_test(released, 0)
        self.before_check = self.private.remaining()
        self.check = buy_check(self.private, released, epsilon=Epsilon.parse("0.5"), seed=0)
        self.view = owner_view(RECORDS, released, 0)
        self.public = release_page(self.sheet, self.bars, self.tested)
        self.checked = release_page(self.sheet, self.bars, self.tested, self.check)
        self.owner = owner_page(self.sheet, self.bars, self.view)


@pytest.fixture(scope="module")
def made() -> Iterator[Made]:
    made = Made()
    with made.data:
        yield made


# -- every page --------------------------------------------------------------------------------------------------------


class Outline(HTMLParser):
    """The open tags, headings, captions and attributes of a page; an unbalanced tag is an error."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def count(self, tag: str) -> int:
        return sum(1 for name, _ in self.found if name == tag)


PAGES = ["public", "checked", "owner"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_balanced_and_has_its_headings_and_captions(made: Made, name: str) -> None:
    page = getattr(made, name)
    outline = Outline(page)
    assert page.startswith("<!DOCTYPE html>")
    assert outline.count("h1") == outline.count("title") - page.count("<rect") == outline.count("main") == 1
    assert outline.count("table") == outline.count("caption") >= 3
    assert outline.count("figure") == outline.count("svg") == outline.count("h3") == 7
    levels = [int(tag[1]) for tag, _ in outline.found if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert dict(outline.found)["html"]["lang"] == "en"
    assert {attributes.get("scope") for tag, attributes in outline.found if tag == "th"} == {"col", "row"}


@pytest.mark.parametrize("name", PAGES)
def test_pictures_are_well_formed_and_have_words_for_those_who_do_not_see_them(made: Made, name: str) -> None:
    pictures = re.findall(r"<svg .*?</svg>", getattr(made, name), re.DOTALL)
    assert len(pictures) == 7
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        assert root.get("role") == "img"
        assert str(root.get("aria-label")).startswith("Distribution of ")
        width, height = map(float, str(root.get("viewBox")).split()[2:])
        for shape in root.iter("{http://www.w3.org/2000/svg}rect"):
            x, y, wide, high = (float(str(shape.get(side))) for side in ("x", "y", "width", "height"))
            assert x >= -0.1
            assert y >= -0.1
            assert x + wide <= width + 1
            assert y + high <= height + 1
            assert next(iter(shape)).text


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_nothing_and_is_light_or_dark(made: Made, name: str) -> None:
    page = getattr(made, name)
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in page
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_names_cannot_break_out_of_a_page(made: Made) -> None:
    nasty = '<script>alert("x")</script>&\x07\n'
    bars = [replace(one, attribute=nasty, labels=(nasty,) * len(one.labels)) for one in made.bars]
    sheet = made.sheet | {"dataset": nasty, "attributes": {nasty: {"kind": "nominal", "values": [{"name": nasty}] * 20}}}
    noisy = next(iter(made.check.bars.values()))
    check = replace(made.check, bars={nasty: noisy}, judgement=replace(made.check.judgement, classes=(nasty, nasty)))
    view = replace(made.view, bars={nasty: made.view.bars["cough"]})
    two = [one for one in bars if len(one.labels) == 2][:1]
    for page in (release_page(sheet, two, made.tested, check), owner_page(sheet, two, view)):
        assert "<script" not in page
        assert "\x07" not in page
        Outline(page)
        for picture in re.findall(r"<svg .*?</svg>", page, re.DOTALL):
            ElementTree.fromstring(picture)


# -- the public page ---------------------------------------------------------------------------------------------------


def test_by_construction_the_public_page_is_given_no_table_and_no_true_number() -> None:
    hints = typing.get_type_hints(release_page, vars(pages) | vars(typing))
    assert list(inspect.signature(release_page).parameters) == ["sheet", "bars", "self_test", "check"]
    assert "OwnerView" not in str(hints)
    assert "Table" not in str(hints)
    imported = {line for line in inspect.getsource(pages).splitlines() if re.match("(from|import) ", line)}
    assert not any(word in line for line in imported for word in ("tables", "frames", "engines", "tree_models", "release."))


def test_the_public_page_says_what_was_released_and_at_which_epsilon(made: Made) -> None:
    for fact in ("patients: a released table", "DiffGen", f"{len(made.model.release()):,}", "epsilon of the release"):
        assert fact in made.public
    for sentence in made.sheet["meaning"]:
        assert sentence.replace("'", "&#x27;") in made.public
    for name, values in made.model.release().values.items():
        assert f">{name}</th>" in made.public
        assert all(value.name.replace("<", "&lt;") in made.public for value in values)
    assert OWNER_ONLY not in made.public + made.checked
    assert "true rows" not in made.public + made.checked


def test_a_drafted_schema_is_told_on_top_of_the_page(made: Made) -> None:
    """And in the sheet's sentences, right after the one that names epsilon."""
    model = dm.TreeRelease(epsilon=1, schema=replace(patients_schema(), drafted=True)).fit(RECORDS)
    sheet, released = model.sheet(), model.release()
    page = release_page(sheet, released_bars(released), self_test(released, 0))
    Outline(page)
    assert page.index(f'role="alert">{pages.DRAFTED}</p>') < page.index("<h1>")
    assert sheet["meaning"][1].startswith("BUT the schema was drafted by looking at the rows")
    assert pages.DRAFTED not in made.public + made.checked
    assert not any("drafted" in sentence for sentence in made.sheet["meaning"])


def test_only_a_bought_check_is_shown_as_checked(made: Made) -> None:
    assert "checked against the rows" not in made.public
    assert made.checked.count("checked against the rows at epsilon 0.5") >= 2
    assert "95 % interval" in made.checked
    assert f"{made.check.judgement.confusion[0][0]:,}" in made.checked
    assert "together, to add or remove one row" in made.checked
    assert ">1.5</td>" in made.checked


def test_a_check_is_charged_once_and_asking_again_is_free(made: Made) -> None:
    assert made.before_check.units - made.private.remaining().units == Epsilon.parse("0.5").units
    left = made.private.remaining()
    again = buy_check(made.private, made.model.release(), epsilon=Epsilon.parse("0.5"), seed=0)
    assert again == made.check
    assert made.private.remaining() == left


def test_a_check_spends_exactly_its_epsilon() -> None:
    schema = patients_schema()
    for amount in ("0.5", "0.1", "0.000000100"):
        epsilon = Epsilon.parse(amount)
        budget = CheckBudget.of(epsilon, schema)
        assert (budget.matrix.times, budget.histograms.times) == (1, 7)
        assert plan_check(epsilon, schema).steps == (budget.matrix, budget.histograms)
        assert plan_check(epsilon, schema).cost == epsilon
    with pytest.raises(dm.EpsilonError, match="too small"):
        plan_check(Epsilon.parse("0.000000005"), schema)


def test_a_check_without_noise_finds_the_true_counts() -> None:
    """At epsilon 1e5 noise is 0 but for a chance far below 1e-6, so that the bars are seen to count what they say."""
    with dm.open(RECORDS, schema=patients_schema(), cap=200_000) as data:
        private = data.grant("alice", epsilon=200_000)
        released = dm.DiffGen(epsilon=1, specialisations=3).fit(private).release()
        check = buy_check(private, released, epsilon=Epsilon.parse("100000"), seed=0)
    view = owner_view(RECORDS, released, 0)
    assert {name: bars.counts for name, bars in check.bars.items()} == view.bars
    assert sum(map(sum, check.judgement.confusion)) == 2000
    wards = dict(
        zip(next(b for b in released_bars(released) if b.attribute == "ward").labels, view.bars["ward"], strict=True)
    )
    assert wards["north"] == RECORDS["ward"].count("north")


def test_an_ordered_file_teaches_as_a_shuffled_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many rows some teach: not the first, which are alike in a file that is sorted by its class."""
    monkeypatch.setattr(owner_module, "MOST_LESSONS", 300)
    released = dm.DiffGen(epsilon=1, specialisations=3).fit(RECORDS, schema=patients_schema()).release()
    order = sorted(range(2000), key=lambda place: RECORDS["diagnosis"][place])
    view = owner_view({name: [column[place] for place in order] for name, column in RECORDS.items()}, released, 0)
    assert view.taught_rows == 300
    assert all(one.from_rows > view.majority for one in view.utility)  # rows of one class would teach to say that class


# -- the owner's page --------------------------------------------------------------------------------------------------


def test_every_true_number_on_the_owner_s_page_is_marked(made: Made) -> None:
    assert "<title>OWNER ONLY - " in made.owner
    assert f'class="banner" role="alert">{OWNER_ONLY}</p>' in made.owner
    assert '<body class="owner">' in made.owner
    assert 'content: "OWNER ONLY"' in made.owner
    figures = re.findall(r"<figure>.*?</figure>", made.owner, re.DOTALL)
    assert len(figures) == 7
    assert all(f'class="mark">{OWNER_ONLY}' in figure for figure in figures)
    marked = [table for table in re.findall(r"<table>.*?</table>", made.owner, re.DOTALL) if OWNER_ONLY in table]
    assert len(marked) == 7 + 2
    bare = made.owner
    for part in (*figures, *re.findall(r"<section>(?:(?!</section>).)*class=\"mark\".*?</section>", bare, re.DOTALL)):
        bare = bare.replace(part, "")
    for counts in made.view.bars.values():
        assert not any(re.search(rf">{count:,}<", bare) for count in counts if count > 500)


def test_the_owner_sees_before_and_after(made: Made) -> None:
    assert sum(made.view.bars["diagnosis"]) == 2000
    for count in made.view.bars["ward"]:
        assert f">{count:,}</td>" in made.owner
    assert made.owner.count("Total variation distance ") == 7
    assert [one.learner for one in made.view.utility] == ["C4.5", "a tree of depth 6"]
    assert all(one.from_rows > 0.8 and 0 <= one.from_release <= 1 for one in made.view.utility)
    assert 600 < made.view.test_rows < 700


def test_distances_are_those_of_shares() -> None:
    assert distance((1, 1), (30, 30)) == 0
    assert distance((1, 0), (0, 7)) == 1
    assert distance((3, 1), (1, 1)) == pytest.approx(0.25)
    assert shares_of((0, 0)) == (0.0, 0.0)
    assert shares_of((-5, 3)) == (0.0, 0.0)


# -- bars --------------------------------------------------------------------------------------------------------------


def released_of(schema: Schema, cut: Any, counts: list[list[int]], **weights: Any) -> ReleasedTable:
    values = {name: cut(schema.single(name)).values() for name in ("number", "kind")}
    groups = np.array([[place, 0] for place in range(len(counts))])
    return ReleasedTable(schema, values, groups, np.array(counts), weights)


@pytest.mark.parametrize(
    ("low", "high", "step"), [("0", "110", "1"), ("-7.5", "3.25", "0.05"), ("1000", "1500000", "1000"), ("3", "9", "1")]
)
def test_bars_of_numbers_lie_between_round_numbers_and_cover_the_domain(low: str, high: str, step: str) -> None:
    schema = numeric_schema(low, high, step)
    released = released_of(schema, root_cut, [[40, 60]])
    axis = next(axis for axis in axes_of(released) if axis.name == "number")
    assert 2 <= len(axis.labels) <= MOST_BARS + 2
    assert len(set(axis.labels)) == len(axis.labels) == int(axis.bars.max()) + 1
    assert np.all(np.diff(axis.bars) >= 0)
    assert len(axis.key.labels(schema)) == len(axis.labels)
    assert sum(axis.add_up(counts_by_code(released, "number"))) == pytest.approx(100)


def test_the_bars_of_an_axis_are_those_of_its_key() -> None:
    """What is asked of the private table and what is drawn of the release must be about the same values."""
    from dpmine.models.trees import lookup

    for schema in (numeric_schema("0", "110", "1", 100), numeric_schema("-3.7", "8", "0.1"), patients_schema()):
        empty = {a.name: [] for a in schema.attributes}
        for axis in axes_of(dm.DiffGen(epsilon=1, specialisations=1).fit(empty, schema=schema).release()):
            assert lookup(axis.key, schema).labels.tolist() == axis.bars.tolist()


@pytest.mark.parametrize(
    ("low", "high", "step", "first", "last"),
    [
        ("0", "100", "1", "0 to <5", "95 to 100"),
        ("19", "90", "1", "19 to <25", "85 to 90"),
        ("17", "92", "1", "17 to <20", "90 to 92"),
        ("0", "120", "5", "0 to <5", "120 to 120"),
    ],
)
def test_no_bar_at_an_end_stands_for_much_fewer_values(low: str, high: str, step: str, first: str, last: str) -> None:
    """A bar for the last value alone would look like a drop; where every bar has one value it is right."""
    released = released_of(numeric_schema(low, high, step), root_cut, [[40, 60]])
    axis = next(axis for axis in axes_of(released) if axis.name == "number")
    assert (axis.labels[0], axis.labels[-1]) == (first, last)


def test_shares_are_told_without_a_negative_zero_and_intervals_with_digits_that_tell_them_apart() -> None:
    assert [share_words(share) for share in (-0.0001, -0.002, 0.0304, 0.5)] == ["0.0%", "-0.2%", "3.0%", "50%"]
    assert interval_words(0.8504, 0.8497, 0.8511) == "85.04% (84.97% to 85.11%)"
    assert interval_words(0.5, 0.25, 0.75) == "50% (25% to 75%)"
    assert interval_words(0.5, 0.5, 0.504) == "50.0% (50.0% to 50.4%)"
    assert interval_words(0.5, 0.5, 0.5) == "50% (50% to 50%)"


def test_columns_have_ticks_where_their_bins_begin_and_in_the_middle_of_single_values() -> None:
    def places(labels: list[str], ends: list[str]) -> dict[str, float]:
        root = ElementTree.fromstring(columns_svg("t", labels, ends, [Series("released", (0.25,) * 4)]))
        words = root.iter("{http://www.w3.org/2000/svg}text")
        return {str(text.text): float(str(text.get("x"))) for text in words if text.get("text-anchor") == "middle"}

    bins = places(["0 to <9", "9 to <40000", "40000 to <2000000", "2000000 to 3000000"], ["0", "9", "40000", "2000000"])
    assert list(bins) == ["0", "9", "40k", "2M"]
    single = places(["0", "1", "2", "3"], ["0", "1", "2", "3"])
    assert bins["0"] < single["0"] < bins["9"]


def test_many_categories_are_shown_as_the_largest_and_the_others() -> None:
    schema = numeric_schema("0", "9", "1", categories=100)
    weights = np.zeros(100)
    weights[[70, 3]] = 1
    released = released_of(schema, root_cut, [[50, 50]], kind=weights)
    axis = next(axis for axis in axes_of(released) if axis.name == "kind")
    assert len(axis.labels) == MOST_BARS
    assert {"c3", "c70", f"{100 - MOST_BARS + 1} others"} <= set(axis.labels)
    shown = dict(zip(axis.labels, axis.add_up(counts_by_code(released, "kind")), strict=True))
    assert (shown["c3"], shown["c70"]) == (50, 50)


def test_released_counts_are_spread_as_raw_rows_are_on_average() -> None:
    """Of 20,000 records the shares of drawn values are within 6 standard deviations: false alarm below 1e-6."""
    schema = numeric_schema("0", "9", "1", categories=3)
    released = released_of(schema, root_cut, [[12_000, 8_000]], kind=np.array([2.0, 5.0, 3.0]))
    drawn = np.bincount(released.raw_codes(1)[0]["kind"], minlength=3)
    expected = counts_by_code(released, "kind")
    assert expected == pytest.approx([4_000, 10_000, 6_000])
    assert np.all(np.abs(drawn - expected) < 6 * np.sqrt(20_000) / 2)


def test_a_release_without_records_has_pages_too() -> None:
    schema = numeric_schema("0", "9", "1")
    released = ReleasedTable(
        schema,
        {name: root_cut(schema.single(name)).values() for name in ("number", "kind")},
        np.zeros((0, 2), dtype=np.int64),
        np.zeros((0, 2), dtype=np.int64),
    )
    rows = {"number": [1, 2, 3], "kind": ["c0", "c1", "c0"], "label": ["no", "no", "yes"]}
    model = dm.DiffGen(epsilon=1, specialisations=1, schema=schema).fit(rows)
    model.released_ = released
    bars, tested = released_bars(released), self_test(released, 0)
    Outline(release_page(model.sheet(), bars, tested))
    Outline(owner_page(model.sheet(), bars, owner_view(rows, released, 0)))
