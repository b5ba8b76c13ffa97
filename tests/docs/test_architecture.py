"""docs/architecture.md names every package, and its pictures are drawn from what import-linter holds."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

import dpmine

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PICTURES = ROOT / "docs" / "pictures"
FIGURES = ROOT / "docs" / "figures.py"
ROW = re.compile(r"^\| (\d) \| `dpmine\.(\w+)` \| .+ \| .+ \|$", re.MULTILINE)
TEXT = "{http:" + "//www.w3.org/2000/svg}text"


def layers() -> list[set[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = [each for each in project["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    assert contract["exhaustive"] is True
    return [set(layer.split(" : ")) for layer in contract["layers"]]


def packages() -> set[str]:
    return {found.name for found in pkgutil.iter_modules(dpmine.__path__)}


def script_at(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, path.stem, module)  # its dataclasses look themselves up
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    return script_at(PICTURES / "draw.py")


def test_the_page_names_every_package_once_in_its_layer() -> None:
    rows = ROW.findall(PAGE)
    assert len(rows) == len(packages())
    assert {name for _, name in rows} == packages()
    assert [{name for number, name in rows if int(number) == layer} for layer in range(1, 9)] == layers()


def test_the_drawn_layers_are_those_that_import_linter_holds() -> None:
    """Packages by the height that their names are drawn at: from the outermost layer in."""
    at: dict[float, set[str]] = {}
    for text in ET.parse(PICTURES / "layers.svg").iter(TEXT):
        if text.text in packages() and text.get("font-weight"):
            at.setdefault(float(text.attrib["y"]), set()).add(text.text)
    assert [at[height] for height in sorted(at)] == layers()


@pytest.mark.parametrize("name", ["layers.svg", "histogram.svg", "tree-level.svg"])
def test_pictures_are_as_the_script_draws_them_and_the_page_shows_them(drawing: ModuleType, name: str) -> None:
    assert (PICTURES / name).read_text() == drawing.PICTURES[name]()
    assert f"(pictures/{name})" in PAGE
    assert set(drawing.PICTURES) == {path.name for path in PICTURES.glob("*.svg")}


def test_every_station_of_a_way_is_a_module(drawing: ModuleType) -> None:
    stations = [*drawing.HISTOGRAM, *drawing.TREE_LEVEL]
    named = {name for station in stations for name in station.where.split(", ")}
    assert len(named) >= 20
    assert [name for name in sorted(named) if importlib.util.find_spec(f"dpmine.{name}") is None] == []


def test_what_is_drawn_as_trusted_is_what_the_page_of_trusted_modules_names(drawing: ModuleType) -> None:
    listed = (ROOT / "docs" / "trusted.md").read_text()
    assert set(re.findall(r"^\| `dpmine\.(\w+)", listed, re.MULTILINE)) == drawing.TRUSTED


@pytest.mark.parametrize("name", ["layers.svg", "histogram.svg", "tree-level.svg"])
def test_no_two_texts_of_a_picture_overlap(drawing: ModuleType, name: str) -> None:
    """By the generous widths that drawings use."""
    boxes = []
    for text in ET.parse(PICTURES / name).iter(TEXT):
        size, said = float(text.attrib["font-size"]), text.text or ""
        width = drawing.text_width(said, size, bold="font-weight" in text.attrib)
        left = float(text.attrib["x"]) - (width / 2 if text.get("text-anchor") == "middle" else 0)
        bottom = float(text.attrib["y"]) + 0.2 * size
        boxes.append((left, left + width, bottom - size, bottom, said))
        assert left >= 0
        assert left + width <= drawing.WIDTH
    overlapping = [
        (one[4], other[4])
        for place, one in enumerate(boxes)
        for other in boxes[place + 1 :]
        if one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
    ]
    assert overlapping == []


@pytest.mark.skipif(not (ROOT / ".ci" / "trusted.py").exists(), reason="the script that counts is in the repository only")
def test_the_figures_of_layers_and_of_the_trusted_part_are_todays() -> None:
    """All modules and lines are counted too, but change every day: `python docs/figures.py --write`."""
    script = script_at(FIGURES)
    found = script.figures()
    assert script.brought_up_to_date(PAGE, found) is not None  # every figure has its row
    daily = {"modules", "lines of code"}
    assert script.brought_up_to_date(PAGE, {words: found[words] for words in found if words not in daily}) == PAGE
    parts = sum(figure for words, figure in found.items() if words.startswith("`"))
    renewal = script.counting().trusted()["dpmine.budget.renewal"]
    assert parts + renewal == found["what the kernel reaches: lines of code"]
