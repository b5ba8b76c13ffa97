"""Importing dpmine is light: what reads files, draws tables or checks noise is imported when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
