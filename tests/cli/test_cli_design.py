"""`dpmine design`: candidates side by side as text and JSON, pages and pictures, and one sentence for what cannot be."""

from __future__ import annotations

import importlib.util
import json
import re
import xml.etree.ElementTree as ET
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.command_line import done, done_json, refused

from dpmine.base.epsilon import Epsilon
from dpmine.base.json_values import from_text
from dpmine.cli.design import default_step
from dpmine.design import caching, workbench
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.noise.finite_tables import FiniteTable

TALK = ("design", "--range", -10, 10, "--sensitivity", 10, "--prior", "normal:0:3")
NAMES = {
    *("prior alone", "laplace, clamped", "optimal", "risk-averse"),
    *(f"{name}{tail}" for name in ("geometric", "staircase", "heuristic") for tail in ("", " + remap")),
    *(f"randomised-response{tail}" for tail in ("", " + remap")),
}
SVG = "{http://www.w3.org/2000/svg}"


# -- text and JSON -------------------------------------------------------------------------------------------------------


def test_candidates_stand_side_by_side_and_one_is_taken() -> None:
    shown = done(*TALK, "--epsilon", 2)
    lines = {re.split(r"  +", line)[0].strip(): line for line in shown.splitlines()}
    assert lines.keys() >= NAMES
    assert shown.count("kept exactly") == len(NAMES) - 1
    assert "3.917" in lines["heuristic"]
    assert "loses to the prior alone" in lines["heuristic"]
    assert "4.19" in lines["laplace, clamped"]
    assert "real numbers" in lines["laplace, clamped"]
    assert lines["optimal"].rstrip().endswith("taken")
    assert "auto takes optimal: least expected loss of all candidates" in shown


@pytest.mark.parametrize(
    ("deviation", "epsilon", "heuristic", "remapped", "laplace", "alone", "optimum"),
    [
        (1, 1, 5.72, 0.73, 6.30, 0.73, 0.68),
        (1, 4, 1.06, 0.73, 2.45, 0.73, 0.13),
        (3, 2, 3.92, 2.31, 4.19, 2.37, 1.64),
        (6, 1, 5.94, 3.74, 5.86, 4.07, 3.53),
    ],
)
def test_the_numbers_are_the_reference_numbers(
    deviation: int, epsilon: int, heuristic: float, remapped: float, laplace: float, alone: float, optimum: float
) -> None:
    form = done_json(*TALK[:-1], f"normal:0:{deviation}", "--epsilon", epsilon)
    found = {each["mechanism"]: round(each["expected_loss"], 2) for each in form["candidates"]}
    wanted = {"heuristic": heuristic, "heuristic + remap": remapped, "laplace, clamped": laplace}
    wanted |= {"prior alone": alone, "optimal": optimum}
    assert {name: found[name] for name in wanted} == wanted


def test_the_json_holds_the_table_that_was_taken() -> None:
    form = done_json(*TALK, "--epsilon", 1, "--colluders", 100)
    assert (form["range"], form["step"], form["points"], form["epsilon"]) == (["-10", "10"], "1", 21, "1")
    assert {each["mechanism"] for each in form["candidates"]} == NAMES
    losses = [each["expected_loss"] for each in form["candidates"]]
    assert losses == sorted(losses)
    kept = {each["mechanism"]: each["kept_exactly"] for each in form["candidates"]}
    assert kept == dict.fromkeys(NAMES, True) | {"laplace, clamped": None}
    errors = {each["mechanism"]: each["colluders_error"] for each in form["candidates"]}
    assert {name for name, error in errors.items() if error is None} == {"prior alone", "laplace, clamped"}
    assert errors["geometric"] == pytest.approx(0.8, abs=0.1)  # deviation of the mean: about 0.007
    table = FiniteMechanism.of(from_text(json.dumps(form["chosen"]["table"]), FiniteTable))
    assert table.keeps(Epsilon.parse(1), Fraction(10))
    assert form["chosen"]["mechanism"] == "optimal"


def test_a_mechanism_asked_for_by_name_is_taken_and_its_loss_admitted() -> None:
    shown = done(*TALK, "--epsilon", 1, "--by", "risk-averse")
    assert "Taken: risk-averse: asked for by name" in shown
    assert "It loses to answering the prior alone, 0, which costs no epsilon." in shown
    form = done_json(*TALK, "--epsilon", 1, "--by", "heuristic")
    assert form["chosen"]["mechanism"] == "heuristic + remap"
    assert "hardly better than answering the prior alone" in form["chosen"]["why"]


def test_colluders_are_told_what_their_answers_cost() -> None:
    shown = done(*TALK, "--epsilon", 0.5, "--colluders", 7)
    assert "k = 7" in shown
    assert "cost epsilon 3.5 in all" in shown


def test_squared_loss_and_a_step_of_ones_own() -> None:
    form = done_json(
        "design", "--range", "-1/2", "0.5", "--sensitivity", 0.5, "--epsilon", 1, "--step", 0.1, "--loss", "squared"
    )
    assert (form["points"], form["step"], form["loss"], form["prior"]) == (11, "1/10", "squared", "flat")


def test_without_a_solver_all_but_the_optima_are_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPMINE_CACHE", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    caching.forget()
    form = done_json(*TALK, "--epsilon", 1)
    assert {each["mechanism"] for each in form["candidates"]} == NAMES - {"optimal", "risk-averse"}
    assert "pip install 'dpmine[design]'" in form["chosen"]["why"]
    assert "dpmine[design]" in refused(*TALK, "--epsilon", 1, "--by", "optimal")


def test_a_fine_grid_leaves_the_risk_averse_optimum_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("dpmine.design.workbench", "dpmine.cli.design"):
        monkeypatch.setattr(f"{module}.QUICK_POINTS", 20)
    shown = done(*TALK, "--epsilon", 1)
    assert not re.search("^risk-averse", shown, re.MULTILINE)
    assert "--by risk-averse" in shown
    assert re.search("^risk-averse", done(*TALK, "--epsilon", 1, "--by", "risk-averse"), re.MULTILINE)


# -- the grid ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "sensitivity", "step"),
    [
        ("-10", "10", "10", "1"),
        ("0", "200", "1", "1"),
        ("0", "2", "1", "1"),
        ("0", "201", "201", "201/200"),
        ("0", "1000", "500", "5"),
        ("0", "1", "1", "1/200"),
        ("0", "1", "1/3", "1/198"),
        ("0", "10", "1/2", "1/20"),
        ("1/2", "21/2", "5", "1/20"),
        ("0", "1", "1/997", "1/200"),
    ],
)
def test_steps_are_whole_or_give_about_201_points(low: str, high: str, sensitivity: str, step: str) -> None:
    assert default_step(Fraction(low), Fraction(high), Fraction(sensitivity)) == Fraction(step)


# -- pages and pictures --------------------------------------------------------------------------------------------------


def test_a_picture_shows_curves_the_table_and_colluders(tmp_path: Path) -> None:
    path = tmp_path / "design.svg"
    form = done_json(*TALK, "--epsilon", 1.2, "--colluders", 50, "--out", path)
    assert form["file"] == str(path)
    assert set(form["loss_against_epsilon"]) == NAMES
    epsilons = [epsilon for epsilon, _ in form["loss_against_epsilon"]["optimal"]]
    assert (epsilons[0], epsilons[-1], 1.2 in epsilons) == (0.1, 5.0, True)
    assert set(form["error_against_colluders"]) == {"heuristic", "geometric", "optimal"}
    assert [count for count, _ in form["error_against_colluders"]["geometric"]] == [1, 5, 20, 50, 100, 400]
    root = ET.parse(path).getroot()
    assert len(list(root.iter(f"{SVG}polyline"))) == len(NAMES) + 3
    words = {text.text for text in root.iter(f"{SVG}text")}
    assert words >= NAMES | {"Expected loss against epsilon", "The mechanism taken: optimal", "released", "true value"}
    table = form["chosen"]["table"]
    cells = [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == "cell"]
    assert len(cells) == 21 * len(json.dumps(table["outputs"]).split(","))
    assert_inside(root)


def assert_inside(root: ET.Element) -> None:
    """No shape ends beyond its group's box, but for moved groups, which are checked in their own place."""
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for group in root.iter(f"{SVG}g"):
        moved = re.match(r"translate\(([\d.]+) ([\d.]+)\)", group.get("transform", ""))
        left, top = (float(moved[1]), float(moved[2])) if moved else (0.0, 0.0)
        for shape in group.iter(f"{SVG}rect"):
            assert (
                0
                <= left + float(shape.get("x", 0))
                <= left + float(shape.get("x", 0)) + float(shape.get("width", 0))
                <= width
            )
            assert top + float(shape.get("y", 0)) + float(shape.get("height", 0)) <= height
        for shape in group.iter(f"{SVG}circle"):
            assert left <= left + float(shape.get("cx", 0)) <= width
            assert top <= top + float(shape.get("cy", 0)) <= height


class Tags(HTMLParser):
    """The tags of a page, which must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_has_the_same_and_the_candidates_as_a_table(tmp_path: Path) -> None:
    path = tmp_path / "design.html"
    shown = done(*TALK, "--epsilon", 1, "--colluders", 100, "--out", path)
    assert f"Drawn to {path}." in shown.replace("\n", "")
    text = path.read_text(encoding="utf-8")
    tags = Tags(text)
    assert tags.open == []
    assert tags.seen.count("svg") == 3 + 1  # curves of the loss are there for wide and for narrow screens
    assert tags.seen.count("script") == 0
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert all(f">{name}<" in text for name in NAMES)
    assert "<strong>optimal</strong> (taken)" in text
    assert "error of 100 colluders" in text
    assert "1, kept exactly" in text


def test_a_fine_table_is_drawn_by_shades(tmp_path: Path) -> None:
    path = tmp_path / "fine.svg"
    command = ("design", "--range", 0, 60, "--sensitivity", 1, "--epsilon", 1, "--by", "geometric", "--out", path)
    form = done_json(*command)
    assert form["chosen"]["mechanism"] == "geometric"
    root = ET.parse(path).getroot()
    shades = [shape for shape in root.iter(f"{SVG}path") if shape.get("class") == "cells"]
    assert 2 < len(shades) <= 28
    assert not any(rect.get("class") == "cell" for rect in root.iter(f"{SVG}rect"))


def test_squared_losses_are_drawn_by_their_roots_and_large_numbers_in_short(tmp_path: Path) -> None:
    path = tmp_path / "large.svg"
    command = ("design", "--range", 0, 20_000, "--step", 1_000, "--sensitivity", 10_000, "--epsilon", 1)
    form = done_json(*command, "--loss", "squared", "--out", path)
    root = ET.parse(path).getroot()
    words = {text.text for text in root.iter(f"{SVG}text")}
    assert words >= {"root of the expected squared loss", "10k"}
    (_, first), *_ = form["loss_against_epsilon"]["prior alone"]
    tips = [title.text for title in root.iter(f"{SVG}title")]
    assert f"prior alone, epsilon 0.1: {first**0.5:.4g}" in tips


def test_fine_grids_have_curves_of_fewer_points(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(workbench, "FINE_GRID", 20)
    form = done_json(*TALK, "--epsilon", 1, "--out", tmp_path / "design.svg")
    assert [epsilon for epsilon, _ in form["loss_against_epsilon"]["optimal"]] == [0.1, 0.5, 1, 2, 5]


# -- what cannot be ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"--range": (10, -10)}, "lower end first"),
        ({"--range": (3, 3)}, "lower end first"),
        ({"--range": ("low", 10)}, "--range needs plain numbers"),
        ({"--range": ("-1e400", 10)}, "--range needs plain numbers"),
        ({"--range": ("nan", "inf")}, "--range needs plain numbers"),
        ({"--sensitivity": (0,)}, "--sensitivity must be above 0"),
        ({"--sensitivity": ("-1",)}, "--sensitivity must be above 0"),
        ({"--sensitivity": ("1/0",)}, "--sensitivity needs plain numbers"),
        ({"--epsilon": (0,)}, "epsilon must be positive"),
        ({"--step": (3,)}, "not a whole number of steps of 3"),
        ({"--step": (0,)}, "--step must be above 0"),
        ({"--step": ("0.001",)}, "at most 401 points"),
        ({"--prior": ("normal:0",)}, "A prior is flat, normal:MEAN:DEVIATION"),
        ({"--prior": ("normal:0:-3",)}, "positive"),
        ({"--prior": ("weights:1,2,3",)}, "3 weights, the grid 21 points"),
        ({"--prior": ("triangle:50:60:70",)}, "0 on the whole grid"),
        ({"--loss": ("cubic",)}, "absolute, squared, miss"),
        ({"--by": ("luck",)}, "auto, optimal, risk-averse"),
        ({"--out": ("design.png",)}, ".html or .svg"),
        ({"--out": ("nowhere/design.svg",)}, "no folder"),
    ],
)
def test_mistakes_are_one_sentence(changed: dict[str, tuple[object, ...]], words: str) -> None:
    given: dict[str, tuple[object, ...]] = {"--range": (-10, 10), "--sensitivity": (10,), "--epsilon": (1,)} | changed
    assert words in refused("design", *(word for name, values in given.items() for word in (name, *values)))


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "design.html"
    path.write_text("mine", encoding="utf-8")
    assert "exists already" in refused(*TALK, "--epsilon", 1, "--out", path)
    assert path.read_text(encoding="utf-8") == "mine"
