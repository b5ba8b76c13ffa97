"""docs/trusted.md names everything that the kernel reaches, with its lines, and stays below a bound."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "trusted.py"
MOST_LINES = 3_400  # code that is trusted: to raise this is a decision
BY_NAME = {"dpmine.kernel.mechanisms"}  # imports its own folder, all of which is trusted anyway
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the script is in the repository only")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("trusted", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(script: ModuleType) -> str:
    text: str = script.PAGE.read_text()
    return text


def test_the_page_names_all_that_is_trusted_and_its_lines(script: ModuleType, page: str) -> None:
    assert script.listed(page) == script.trusted()


def test_the_page_names_each_module_once_and_says_why(script: ModuleType, page: str) -> None:
    rows = [row for line in page.splitlines() if (row := script.ROW.match(line))]
    names, reasons = [row[1] for row in rows], [row[3] for row in rows]
    assert len(set(names)) == len(names)
    assert [reason for reason in reasons if len(reason.split()) < 5 or not reason.endswith(".")] == []
    assert len(set(reasons)) == len(reasons)


def test_the_page_adds_up(script: ModuleType, page: str) -> None:
    listed = script.listed(page)
    totals = script.TOTAL.findall(page)
    assert totals == [f"**{sum(listed.values()):,} lines of code in {len(listed)} modules**"]
    assert script.brought_up_to_date(page, script.trusted()) == page


def test_what_is_trusted_does_not_grow_unnoticed(script: ModuleType) -> None:
    assert sum(script.trusted().values()) <= MOST_LINES


def test_what_is_trusted_knows_codes_and_no_names(script: ModuleType) -> None:
    """Schema, language and questions in names are the desk's; of the arithmetic of budgets the ledger needs the renewal."""
    packages = {name.split(".")[1] for name in script.trusted()}
    assert packages == {"kernel", "codes", "noise", "base", "budget"}
    assert [name for name in script.trusted() if name.startswith("dpmine.budget")] == ["dpmine.budget.renewal"]


def test_nothing_that_is_trusted_is_imported_by_a_name_that_no_statement_shows(script: ModuleType) -> None:
    """Such imports would not be followed. The mechanisms' package is the one that does it, and only to its own folder."""
    known = script.modules()
    found = {name for name in script.closure(known) if script.imports_by_name(known[name].read_text())}
    assert found == BY_NAME
    text = known["dpmine.kernel.mechanisms"].read_text()
    loops = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.For)]
    assert [ast.unparse(loop.iter) for loop in loops] == ["pkgutil.iter_modules(__path__, f'{__name__}.')"]


def test_every_mechanism_that_registers_itself_is_on_the_page(script: ModuleType, page: str) -> None:
    from dpmine.kernel import door
    from dpmine.kernel.mechanisms import mechanism

    assert door is not None  # it imports them all
    declared = {type(found).__module__ for found in mechanism._MECHANISMS.values()}
    assert {name for name in declared if name.startswith("dpmine.")} <= set(script.listed(page))


# -- planted mistakes: imports that nobody wrote down ------------------------------------------------------------------

PLANTED = {
    "at the top": "from dpmine.outer import words\n",
    "by its dotted name": "import dpmine.outer\n",
    "as a name of its package": "from dpmine import outer\n",
    "inside a function": "def late():\n    from dpmine.outer import words\n    return words\n",
    "inside a method, in a branch": "class A:\n    def b(self):\n        if self:\n            import dpmine.outer as o\n",
    "for type checkers": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dpmine.outer import words\n",
    "relatively": "from ..outer import words\n",
    "relatively, by its name": "def late():\n    from .. import outer\n    return outer\n",
    "by way of another module": "from dpmine.between import more\n",
}


def small_package(folder: Path, kernel: str) -> None:
    """A product of a kernel, something between and something outer."""
    texts = {
        "__init__.py": "",
        "kernel/__init__.py": "",
        "kernel/door.py": kernel,
        "between.py": "def more():\n    from dpmine.outer import words\n    return words\n",
        "outer.py": "words = 1\nmore_words = 2\n",
    }
    for name, text in texts.items():
        path = folder / "dpmine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def small(script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(script, "SOURCE", tmp_path)
    return tmp_path


def test_a_kernel_that_imports_nothing_is_trusted_alone(script: ModuleType, small: Path) -> None:
    small_package(small, "answer = 42\n")
    assert script.trusted() == {"dpmine.kernel.door": 1}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_an_import_that_nobody_wrote_down_is_noticed(script: ModuleType, small: Path, planted: str) -> None:
    small_package(small, planted)
    assert script.trusted()["dpmine.outer"] == 2
    page = "| `dpmine.kernel.door` | 1 | It alone lets anything out. |\n"
    assert script.listed(page) != script.trusted()
    assert "dpmine.outer" not in script.brought_up_to_date(page, script.trusted())  # why it is trusted, somebody must say


@pytest.mark.parametrize(
    "planted",
    [
        "import importlib\n",
        "from importlib import import_module\n",
        "__import__('dpmine.outer')\n",
        "exec('import dpmine.outer')\n",
    ],
)
def test_an_import_by_name_is_noticed(script: ModuleType, planted: str) -> None:
    assert script.imports_by_name(planted)
    assert not script.imports_by_name("import dpmine.outer\nfrom collections import abc\n")


def test_lines_of_code_have_no_blanks_comments_or_docstrings(script: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""Docs,\ntwo lines."""\n\n# why\nx = (\n    1,  # one\n)\n\n\n'
        'def f():\n    """Docs."""\n    return """a\n\n    b"""\n'
    )
    assert script.code_lines(path) == 3 + 1 + 3
