"""Where a ledger lies unless told otherwise: beside the table's file, so that a second session finds what was spent."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpmine as dm
from dpmine.datasets import patients, patients_schema
from dpmine.owner import default_ledger

RECORDS = patients(50)
SCHEMA = patients_schema()
NAME = "patients.ledger.db"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pd.DataFrame(RECORDS).to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_second_session_finds_what_the_first_one_spent(file: Path, kind: Any, engine: str) -> None:
    with dm.open(kind(file), schema=SCHEMA, cap=1, engine=engine) as data:
        first = data.grant("alice", epsilon=1).count(epsilon="0.75")
    assert NAME in files_in(file.parent)
    with dm.open(kind(file), schema=SCHEMA, engine=engine) as data:
        private = data.private("alice")
        assert str(private.remaining()) == "0.25"
        assert private.count(epsilon="0.75").value == first.value  # free, and the same bytes
        with pytest.raises(dm.BudgetError):
            private.where("age > 40").count(epsilon="0.75")


def test_the_command_line_finds_the_same_ledger(file: Path) -> None:
    from dpmine.cli.shared import open_data

    (file.parent / "p.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    with dm.open(file, schema=SCHEMA, cap=1) as data:
        data.grant("alice", epsilon=1).count(epsilon="0.75")
    with open_data(file, file.parent / "p.toml", None, "1", "memory") as data:
        assert str(data.private("alice").remaining()) == "0.25"


def test_a_ledger_in_memory_is_asked_for(file: Path) -> None:
    for _ in range(2):
        with dm.open(file, schema=SCHEMA, ledger=None, cap=1) as data:
            data.grant("alice", epsilon=1).count(epsilon=1)
    assert files_in(file.parent) == {file.name}


def test_a_ledger_may_lie_elsewhere(file: Path, tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    dm.open(file, schema=SCHEMA, ledger=tmp_path / "books" / "own.db", cap=1).close()
    assert NAME not in files_in(tmp_path)
    assert "own.db" in files_in(tmp_path / "books")


@pytest.mark.parametrize("table", [RECORDS, pd.DataFrame(RECORDS)], ids=["dict", "frame"])
def test_a_table_without_a_file_keeps_its_ledger_in_memory(
    table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        with dm.open(table, schema=SCHEMA, cap=1) as data:
            data.grant("alice", epsilon=1).count(epsilon=1)
    assert files_in(tmp_path) == set()


def test_a_fit_on_a_file_keeps_its_ledger_in_memory(file: Path) -> None:
    for _ in range(2):
        dm.TreeClassifier(epsilon=1, max_depth=1, schema=SCHEMA).fit(file)
    assert files_in(file.parent) == {file.name}


def test_a_new_ledger_without_a_cap_is_refused_and_leaves_no_file(file: Path) -> None:
    with pytest.raises(
        dm.LedgerError, match=r"There is no ledger '.*patients\.ledger\.db' yet, and a new ledger needs a cap"
    ):
        dm.open(file, schema=SCHEMA)
    assert files_in(file.parent) == {file.name}


def test_a_ledger_that_was_lost_is_told_as_that_and_not_as_a_new_one(file: Path) -> None:
    with dm.open(file, schema=SCHEMA, cap=1) as data:
        data.grant("alice", epsilon=1)
    for name in files_in(file.parent) - {file.name, f"{NAME}.anchor"}:
        (file.parent / name).unlink()
    with pytest.raises(dm.LedgerTampered, match="is missing, but its anchor is there"):
        dm.open(file, schema=SCHEMA)


@pytest.mark.parametrize(
    ("table", "folder"),
    [
        ("rows.parquet", "."),
        ("lake/*.parquet", "lake"),
        ("lake/2024-??.parquet", "lake"),
        ("lake/[ab].parquet", "lake"),
        ("lake/**/*.parquet", "lake"),
        ("lake/20*/part.parquet", "lake"),
        ("*/part.parquet", "."),
        ("*.parquet", "."),
    ],
)
def test_of_a_pattern_it_is_the_folder_before_the_first_wildcard(
    table: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_ledger(tmp_path / table, SCHEMA) == tmp_path / folder / NAME
    monkeypatch.chdir(tmp_path)
    assert default_ledger(table, SCHEMA) == tmp_path / folder / NAME


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "odd[1]"
    folder.mkdir()
    pd.DataFrame(RECORDS).to_parquet(folder / "rows*.parquet")
    dm.open(folder / "rows*.parquet", schema=SCHEMA, cap=1).close()
    assert NAME in files_in(folder)


def test_files_of_a_pattern_share_one_ledger(tmp_path: Path) -> None:
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        pd.DataFrame(RECORDS).to_parquet(tmp_path / part / "rows.parquet")
    pattern = os.fspath(tmp_path / "*" / "rows.parquet")
    with dm.open(pattern, schema=SCHEMA, cap=1, engine="duckdb") as data:
        data.grant("alice", epsilon=1).count(epsilon="0.5")
    with dm.open(pattern, schema=SCHEMA) as data:
        assert str(data.private("alice").remaining()) == "0.5"


def test_the_signature_says_where_the_ledger_lies() -> None:
    assert str(inspect.signature(dm.open).parameters["ledger"]).endswith("= BESIDE_THE_FILE")


def test_a_link_to_the_file_finds_the_same_ledger(file: Path, tmp_path: Path) -> None:
    """Else every link would be an unspent budget over the same rows."""
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "mine.parquet"
    link.symlink_to(file)
    folder = tmp_path / "linked"
    folder.symlink_to(tmp_path)
    for path in (link, folder / file.name, folder / "*.parquet"):
        assert default_ledger(path, SCHEMA) == file.resolve().parent / NAME
