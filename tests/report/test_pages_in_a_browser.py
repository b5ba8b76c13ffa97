"""Every kind of page and picture in a real browser: what only a browser knows. Skipped where no Chromium is installed.

The browser is driven by its DevTools protocol through a pair of pipes; pages are opened as they are, nothing is put into
them. Pages are about generated rows, and about names that are as long as they may be.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.datasets import patients, patients_schema
from dpmine.design.priors import Prior
from dpmine.design.setting import Setting
from dpmine.design.workbench import look_at
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.release.bars import released_bars
from dpmine.release.learning import self_test
from dpmine.release.owner_view import owner_view
from dpmine.release.paid_check import buy_check
from dpmine.report.mechanism_page import mechanism_page, mechanism_svg
from dpmine.report.release_page import owner_page, release_page

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--remote-debugging-pipe",
)
PATIENCE = 30.0  # seconds that an answer may take on a busy machine; it takes milliseconds
PHONE, DESK = 390, 1280

# The browser reads commands from its file descriptor 3 and answers on 4.
START = """
import os, sys
for end, given in zip((3, 4), [os.dup(int(text)) for text in sys.argv[1:3]]):
    os.dup2(given, end)
    os.set_inheritable(end, True)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A headless browser with one page."""

    def __init__(self, program: str, home: Path) -> None:
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(commands), str(answers), program, *FLAGS, f"--user-data-dir={home}"],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._number = 0
        self._session: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **self._session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(until - time.monotonic(), 0))
            if not ready:
                raise TimeoutError("the browser does not answer")
            read = os.read(self._answers, 1 << 20)
            if not read:
                raise ConnectionError("the browser ended")
            self._buffer += read
        message, self._buffer = self._buffer.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, page: Path, width: int, *, scheme: str = "light", media: str = "") -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media=media, features=[feature])
        self.events = []
        self.call("Page.navigate", url=page.as_uri())
        while not self.happened("Page.loadEventFired"):
            self.events.append(self._read())

    def happened(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event.get("method") == method]

    def find(self, script: str) -> Any:
        """What a script, run beside the page and not in it, returns."""
        answer = self.call("Runtime.evaluate", expression=f"(() => {{ {script} }})()", returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium is installed: pages are not looked at in a browser")
    started = None
    for _ in range(2):  # a first start may be slow
        with suppress(OSError, TimeoutError):
            started = Browser(program, tmp_path_factory.mktemp("browser"))
            break
    if started is None:
        pytest.skip(f"{program} does not start here: pages are not looked at in a browser")
    yield started
    started.close()


# -- what there is to see ------------------------------------------------------------------------------------------------

LONG = "Supercalifragilisticexpialidocious" * 3


def long_names() -> tuple[Schema, dict[str, list[Any]]]:
    """Names without a place to break them, large numbers, many categories."""
    categories = tuple(f"{LONG}{number}" for number in range(30))
    attributes = (
        Numeric("income", Decimal(0), Decimal(3_000_000), Decimal(1000), Decimal(0)),
        Nominal(f"kind-{LONG}", categories, categories[0], missing=categories[0]),
        Nominal("label", (f"no-{LONG}", f"yes-{LONG}"), f"no-{LONG}", missing=f"no-{LONG}"),
    )
    random = np.random.default_rng(3)
    incomes, kinds, labels = random.integers(0, 3_000_000, 400), random.integers(0, 30, 400), random.integers(0, 2, 400)
    rows = {
        "income": incomes.tolist(),
        f"kind-{LONG}": [categories[kind] for kind in kinds],
        "label": [attributes[2].categories[label] for label in labels],
    }
    return Schema(f"w{'w' * 40}", attributes, 1000, "label"), rows


def drafted_page() -> str:
    model = dm.TreeRelease(epsilon=1, schema=replace(patients_schema(), drafted=True)).fit(patients(500))
    released = model.release()
    return release_page(model.sheet(), released_bars(released), self_test(released, 0))


def release_pages(name: str, schema: Schema, rows: Any) -> dict[str, str]:
    with dm.open(rows, schema=schema, cap=10) as data:
        private = data.grant("alice", epsilon=10)
        model = dm.DiffGen(epsilon=1, specialisations=5).fit(private)
        released, sheet = model.release(), model.sheet()
        check = buy_check(private, released, epsilon=Epsilon.parse("0.5"), seed=0)
    bars, tested = released_bars(released), self_test(released, 0)
    return {
        f"{name}-public.html": release_page(sheet, bars, tested),
        f"{name}-checked.html": release_page(sheet, bars, tested, check),
        f"{name}-owner.html": owner_page(sheet, bars, owner_view(rows, released, 0)),
    }


def design_pages() -> dict[str, str]:
    setting = Setting(Fraction(-10), Fraction(10), Fraction(1), Fraction(10), Epsilon.parse(1))
    look = look_at(setting, Prior("normal:0:3"), colluders=10, with_curves=True)
    return {"design.html": mechanism_page(look, dm.__version__), "design.svg": mechanism_svg(look)}


def pictures() -> dict[str, str]:
    plain, odd = dm.TreeClassifier(epsilon=4, schema=patients_schema()), dm.TreeClassifier(epsilon=4, schema=long_names()[0])
    rows = patients(2000)
    diagnosis = rows.pop("diagnosis")
    strange = long_names()[1]
    labels = strange.pop("label")
    tall = Schema("places", (_numeric("lat", 90), _numeric("lon", 360), _numeric("income", 90_000_000)), 1000)
    spots = {name: np.random.default_rng(4).integers(0, 90, 500).tolist() for name in ("lat", "lon", "income")}
    with pytest.warns(dm.DpmineWarning, match="hardly depend on"):
        clusters = dm.KMeans(30, epsilon=4, schema=tall, scaling="none").fit(spots)
    return {
        "tree.svg": plain.fit(rows, diagnosis).to_svg(max_depth=3),
        "odd-tree.svg": odd.fit(strange, labels).to_svg(title=f"Who? {LONG}", max_depth=3),
        "tall-map.svg": clusters.to_svg(x="lat", y="lon", title=f"Where? {LONG}"),
        "large-map.svg": clusters.to_svg(x="lat", y="income"),
    }


def _numeric(name: str, high: int) -> Numeric:
    return Numeric(name, Decimal(0), Decimal(high), Decimal(max(high // 360, 1)), Decimal(0))


PAGES = (
    *(f"{name}-{kind}.html" for name in ("patients", "odd") for kind in ("public", "checked", "owner")),
    *("drafted.html", "design.html"),
)
PICTURES = ("design.svg", "tree.svg", "odd-tree.svg", "tall-map.svg", "large-map.svg")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Path:
    """All of them as files; made only where there is a browser."""
    made = release_pages("patients", patients_schema(), patients(2000))
    made |= release_pages("odd", *long_names()) | {"drafted.html": drafted_page()}
    made |= design_pages() | pictures()
    assert set(made) == {*PAGES, *PICTURES}
    found = tmp_path_factory.mktemp("pages")
    for name, text in made.items():
        (found / name).write_text(text, encoding="utf-8")
    return found


# -- how it is measured --------------------------------------------------------------------------------------------------

OUTSIDE = """
return [...document.querySelectorAll("svg")].filter(svg => svg.getClientRects().length).flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter(text => {
    const own = text.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1;
  }).map(text => text.textContent);
});
"""
"""Words of a picture that reach out of it, where they would be cut."""

OVERLAPPING = """
return [...document.querySelectorAll("svg")].filter(svg => svg.getClientRects().length).flatMap(svg => {
  const words = [...svg.querySelectorAll("text")].map(text => ({name: text.textContent, box: text.getBoundingClientRect()}));
  const inner = ({left, right, top, bottom, height}) => ({left, right, top: top + height * .3, low: bottom - height * .3});
  return words.flatMap((one, place) => words.slice(place + 1).filter(two => {
    const a = inner(one.box), b = inner(two.box);
    return a.left < b.right && b.left < a.right && a.top < b.low && b.top < a.low;
  }).map(two => one.name + " | " + two.name));
});
"""
"""Pairs of words of a picture that lie on each other; the empty parts of a line above and below letters may."""

SMALLEST = """
return Math.min(...[...document.querySelectorAll("svg")].filter(svg => svg.getClientRects().length).flatMap(svg =>
  [...svg.querySelectorAll("text")].map(text => parseFloat(getComputedStyle(text).fontSize) * svg.getScreenCTM().a)));
"""
"""The size in pixels of the smallest letters of pictures, as they are shrunk or enlarged."""

PALE = """
const light = colour => {
  const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255);
  const [r, g, b] = parts.map(part => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
};
const ground = element => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (colour !== "rgba(0, 0, 0, 0)") return colour;
  }
  return "rgb(255, 255, 255)";
};
return [...document.querySelectorAll("h1, h2, h3, p, li, dt, dd, th, td, caption, summary, svg text")].filter(
  element => element.getClientRects().length).map(element => {
  const style = getComputedStyle(element), ink = element.tagName === "text" ? style.fill : style.color;
  const [one, two] = [light(ink), light(ground(element))].sort((a, b) => b - a);
  return [(one + .05) / (two + .05), element.textContent];
}).filter(([contrast, words]) => contrast < 4.5);
"""
"""Words with less contrast to what is behind them than the accessibility guidelines ask for (WCAG 2, AA)."""


def assert_quiet(browser: Browser, page: Path) -> None:
    """Nothing was asked for but the page itself, and nobody complained."""
    assert [event["request"]["url"] for event in browser.happened("Network.requestWillBeSent")] == [page.as_uri()]
    for kind in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
        assert not browser.happened(kind)


def wider_than_the_screen(browser: Browser) -> int:
    found = browser.find("const root = document.documentElement; return root.scrollWidth - root.clientWidth;")
    assert isinstance(found, int)
    return found


# -- pages ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read(browser: Browser, folder: Path, name: str, width: int, scheme: str) -> None:
    """On a phone and on a desk, by day and by night: nothing beside the screen, cut, on top of something else or pale."""
    browser.open(folder / name, width, scheme=scheme)
    assert wider_than_the_screen(browser) == 0
    assert browser.find(OUTSIDE) == []
    assert browser.find(OVERLAPPING) == []
    assert browser.find(SMALLEST) >= 9
    assert browser.find(PALE) == []
    browser.find("document.querySelectorAll('details').forEach(each => { each.open = true; });")
    assert wider_than_the_screen(browser) == 0
    assert_quiet(browser, folder / name)


@pytest.mark.parametrize("name", ["patients-owner.html", "drafted.html"])
def test_a_warning_stays_in_sight(browser: Browser, folder: Path, name: str) -> None:
    browser.open(folder / name, PHONE)
    top = "return document.querySelector('.banner').getBoundingClientRect().top;"
    assert browser.find(f"window.scrollTo(0, document.body.scrollHeight / 2); {top}") == 0
    assert browser.find("return window.scrollY;") > 1000


@pytest.mark.parametrize("name", PAGES)
def test_on_paper_warnings_and_legends_keep_their_colours(browser: Browser, folder: Path, name: str) -> None:
    """Browsers print no backgrounds unless they are told to: white words on red would be gone."""
    browser.open(folder / name, DESK, media="print")
    kept = "return [...document.querySelectorAll('.banner, .mark, .swatch')].map(e => getComputedStyle(e).printColorAdjust);"
    assert set(browser.find(kept)) <= {"exact"}
    whole = "return [...document.querySelectorAll('figure, tr')].map(each => getComputedStyle(each).breakInside);"
    assert set(browser.find(whole)) == {"avoid"}
    assert browser.call("Page.printToPDF")["data"]


def test_each_screen_gets_one_of_the_two_drawings_of_the_loss(browser: Browser, folder: Path) -> None:
    shown = "return ['wide', 'narrow'].filter(name => document.querySelector('.' + name).getClientRects().length);"
    for width, name in ((PHONE, "narrow"), (DESK, "wide")):
        browser.open(folder / "design.html", width)
        assert browser.find(shown) == [name]


# -- pictures ------------------------------------------------------------------------------------------------------------

OUT_OF_CARDS = """
return [...document.querySelectorAll("rect.card")].flatMap(card => {
  const box = card.getBoundingClientRect();
  return [...card.parentElement.querySelectorAll("text")].filter(text => {
    const own = text.getBoundingClientRect();
    return own.top < box.bottom && (own.left < box.left || own.right > box.right);
  }).map(text => text.textContent);
});
"""


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_can_be_read(browser: Browser, folder: Path, name: str) -> None:
    browser.open(folder / name, DESK)
    assert browser.find("return document.documentElement.tagName;") == "svg"
    assert browser.find(OUTSIDE) == []
    assert browser.find(OVERLAPPING) == [] or "map" in name  # centres of clusters may lie close to each other
    assert browser.find(OUT_OF_CARDS) == []
    assert_quiet(browser, folder / name)
