"""A table is read in one state of its files or not at all: rows mixed of two states are rows of nobody."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmine as dm
from dpmine.engines.encoding import encode
from dpmine.facts.checking import check_table
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource, open_source

ROWS = 50
SCHEMA = Schema("s", (Nominal("x", ("a", "b"), "a", missing="a"), Nominal("y", ("a", "b"), "a", missing="a")), ROWS)
LISTS = Schema("l", (Nominal("x", ("a", "b"), "a", missing="a"), ItemList("y", ("a", "b"), 2)), ROWS)
PERSONS = Schema("p", (Nominal("x", ("a", "b"), "a", missing="a"),), ROWS, unit=Unit("y", 1))


def write(path: Path, letter: str) -> None:
    """A table in which x and y of every row are the same letter."""
    columns = {"x": [letter] * ROWS, "y": [letter] * ROWS}
    if path.suffix == ".csv":
        path.write_text("x,y\n" + f"{letter},{letter}\n" * ROWS)
    else:
        pq.write_table(pa.table(columns), path)


def replaced(path: Path) -> None:
    write(path.with_name("new" + path.suffix), "b")
    path.with_name("new" + path.suffix).replace(path)


def written_over(path: Path) -> None:
    """In place, with the same size, and with the old time set back."""
    before = path.stat()
    write(path, "b")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def removed(path: Path) -> None:
    path.unlink()


def joined(path: Path) -> None:
    write(path.with_name("t2" + path.suffix), "b")


def swapped_and_back(path: Path) -> None:
    """Another file stood there for a while: everything but the time of the last change is as before."""
    aside = path.with_name("aside" + path.suffix)
    path.rename(aside)
    aside.rename(path)


CHANGES = [replaced, written_over, removed, joined, swapped_and_back]


def between_columns(monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], path: Path) -> None:
    """Make the change after the first column was read."""
    calls = itertools.count()
    for method in ("category_codes", "texts", "lists", "numbers"):
        plain = getattr(FileSource, method)

        def then_change(self: FileSource, *rest: Any, plain: Any = plain) -> Any:
            if next(calls) == 1:
                time.sleep(0.02)  # so that the clock of the file system has moved on
                change(path)
            return plain(self, *rest)

        monkeypatch.setattr(FileSource, method, then_change)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("schema", [SCHEMA, LISTS, PERSONS], ids=lambda schema: schema.name)
def test_files_that_change_between_two_columns_are_refused(
    schema: Schema, change: Callable[[Path], None], ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / f"t1.{ending}", "a")
    pattern = str(tmp_path / f"t*.{ending}")
    between_columns(monkeypatch, change, tmp_path / f"t1.{ending}")
    with pytest.raises(dm.DataError, match=r"changed while they were read|cannot be read"):
        dm.open(pattern, schema=schema, cap=1)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("look", [Schema.draft, lambda table: check_table(table, SCHEMA)], ids=["draft", "check"])
def test_a_draft_and_a_check_of_files_that_change_are_refused(
    look: Callable[[str], Any], ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / f"t1.{ending}", "a")
    between_columns(monkeypatch, replaced, tmp_path / f"t1.{ending}")
    with pytest.raises(dm.DataError, match="changed while they were read"):
        look(str(tmp_path / f"t1.{ending}"))


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_files_that_stay_as_they_are_are_read_by_name_and_by_pattern(engine: str, tmp_path: Path) -> None:
    write(tmp_path / "t1.parquet", "a")
    write(tmp_path / "t2.parquet", "b")
    for table in (tmp_path / "t1.parquet", str(tmp_path / "t*.parquet")):
        dm.open(table, schema=SCHEMA, cap=1, engine=engine).close()


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_files_that_vanish_before_they_are_read_are_not_taken_for_unchanged(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "t1.csv", "a")
    monkeypatch.setattr("dpmine.facts.sources.files._state_of", lambda files: [])
    with pytest.raises(dm.DataError, match="changed"):
        dm.open(tmp_path / "t1.csv", schema=SCHEMA, cap=1, engine=engine)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_no_row_is_mixed_of_two_states_while_another_thread_replaces_the_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    write(path, "a")
    stop = threading.Event()

    def keep_replacing() -> None:
        for letter in itertools.cycle("ba"):
            write(tmp_path / f"next.{ending}", letter)
            os.replace(tmp_path / f"next.{ending}", path)
            if stop.wait(0.001):
                return

    thread = threading.Thread(target=keep_replacing)
    thread.start()
    refused = 0
    try:
        for _ in range(40):
            try:
                table = encode(open_source(path), SCHEMA)
            except dm.DataError:
                refused += 1
                continue
            assert table.codes["x"].tolist() == table.codes["y"].tolist()
    finally:
        stop.set()
        thread.join()
    assert refused > 0  # else nothing was replaced while it was read, and this test showed nothing


@pytest.fixture
def heeding_ctrl_c() -> Iterator[None]:
    """Where tests run in a shell's background, Ctrl-C is ignored from the start: the test below would never end."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeding_ctrl_c")
def test_ctrl_c_while_a_file_is_read_is_a_keyboard_interrupt(tmp_path: Path) -> None:
    """DuckDB makes an error of it that a user's `except Exception` would swallow."""
    path = tmp_path / "long.csv"
    path.write_text("x,y\n" + "".join(f"{row % 97},word {row}\n" for row in range(400_000)))
    schema = dm.Schema("long", (Numeric("x", Decimal(0), Decimal(100), Decimal(1), Decimal(0)),), 10**6)
    for wait in (0.02, 0.1, 0.2, 0.3):
        came = threading.Event()
        keys = threading.Thread(target=press_ctrl_c, args=(came, wait))
        keys.start()
        try:
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012 (whenever it comes, that is what comes)
                while keys.is_alive():
                    dm.open(path, schema=schema, ledger=None, cap=1).close()
        finally:
            came.set()
            keys.join()


def press_ctrl_c(came: threading.Event, wait: float) -> None:
    """After that many seconds, and again if nothing came of it: Python drops what is raised inside a finalizer."""
    for pause in (wait, 5, 5, 5):
        if not came.wait(pause):
            signal.raise_signal(signal.SIGINT)
    came.wait(5)
