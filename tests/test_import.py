"""Importing dpmine is light: what reads files, draws tables or checks noise is imported when it is used."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import dpmine as dm

HEAVY = ("duckdb", "narwhals", "pandas", "polars", "pyarrow", "scipy", "opendp", "hypothesis")


def modules_after(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after a statement."""
    code = f"{statement}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


def test_importing_dpmine_imports_no_heavy_library_and_no_command_line() -> None:
    held = modules_after("import dpmine")
    assert "dpmine" in held
    assert not held & {*HEAVY, "typer", "rich", "click", "tomli_w"}


@pytest.mark.parametrize("statement", ["import dpmine.cli.main", "import dpmine.datasets"])
def test_importing_the_command_line_or_the_data_sets_imports_no_heavy_library(statement: str) -> None:
    assert not modules_after(statement) & set(HEAVY)


def test_a_table_of_plain_columns_is_opened_and_asked_without_pandas() -> None:
    statement = (
        "import dpmine as dm\n"
        "from dpmine.datasets import patients, patients_schema\n"
        "with dm.open(patients(20), schema=patients_schema(), cap=1) as data:\n"
        "    data.grant('alice', epsilon=1).histogram('ward', epsilon=1)\n"
    )
    assert not modules_after(statement) & {"duckdb", "pandas", "polars", "pyarrow", "opendp", "typer", "rich"}


def test_importing_dpmine_imports_numpy_and_nothing_else_that_is_installed() -> None:
    """How long it takes is for benchmarks/starting.py to tell."""
    known = modules_after("import numpy, numpy.random") | set(sys.stdlib_module_names)
    assert modules_after("import dpmine") - known == {"dpmine"}


def test_dm_shows_its_public_names_and_nothing_else() -> None:
    assert dir(dm) == sorted([*dm.__all__, "__version__"])
    assert [name for name in dm.__all__ if not hasattr(dm, name)] == []
    starred: dict[str, object] = {}
    exec("from dpmine import *", starred)  # noqa: S102 (what a star brings is what is tested)
    assert set(starred) - {"__builtins__"} == set(dm.__all__)


def test_the_data_sets_come_with_dpmine() -> None:
    assert len(dm.datasets.patients(5)["ward"]) == 5


PACKAGES = sorted(found.name for found in pkgutil.walk_packages(dm.__path__, "dpmine.") if found.ispkg)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_says_what_it_is_for_and_holds_what_it_names(name: str) -> None:
    package = importlib.import_module(name)
    assert (package.__doc__ or "").split("\n")[0].endswith(".")
    assert [public for public in getattr(package, "__all__", ()) if not hasattr(package, public)] == []
