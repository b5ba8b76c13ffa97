"""What is opened is closed: by fits and readers when they end, however they end, and by whoever is dropped unclosed."""

from __future__ import annotations

import csv
import gc
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpmine as dm
from dpmine import datasets
from dpmine.audit.catalogue import all_pairs
from dpmine.audit.sampling import Task, draw
from dpmine.datasets import patients, patients_schema
from dpmine.facts.checking import check_table
from dpmine.kernel.door import Kernel
from dpmine.mining.estimators import Estimator
from dpmine.models.trees import encode_rows
from dpmine.reproduce.tree_runs import encoded

ROWS = patients(200)
SCHEMA = patients_schema()
CLASS = SCHEMA.require_class()
ESTIMATORS = {
    name: item for name in dm.__all__ if isinstance(item := getattr(dm, name), type) and issubclass(item, Estimator)
}
SETTINGS: dict[str, dict[str, Any]] = {
    "RandomForest": {"trees": 2, "max_depth": 2, "seed": 1},
    "KMeans": {"attributes": ("age",), "n_clusters": 2, "seed": 1},
    "DPLloyd": {"attributes": ("age",), "n_clusters": 2, "seed": 1},
    "DiffGen": {"specialisations": 2},
}


class Connections:
    """Every connection to SQLite and DuckDB that was made, held here so that the garbage collector closes none."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def made_by(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        def connecting(*arguments: Any, **options: Any) -> Any:
            self.made.append(connect(*arguments, **options))
            return self.made[-1]

        return connecting

    def kinds(self) -> set[str]:
        return {type(connection).__module__.split(".")[0].lstrip("_") for connection in self.made}

    def still_open(self) -> int:
        return sum(map(is_open, self.made))


def is_open(connection: Any) -> bool:
    try:
        connection.execute("SELECT 1")
    except (sqlite3.ProgrammingError, duckdb.ConnectionException):
        return False
    return True


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connections]:
    found = Connections()
    monkeypatch.setattr(sqlite3, "connect", found.made_by(sqlite3.connect))
    monkeypatch.setattr(duckdb, "connect", found.made_by(duckdb.connect))
    yield found
    for connection in found.made:
        connection.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "patients.csv"
    with path.open("w", newline="") as written:
        writer = csv.writer(written)
        writer.writerow(ROWS)
        writer.writerows(zip(*ROWS.values(), strict=True))
    return path


def made(name: str, **more: Any) -> Any:
    return ESTIMATORS[name](**{"epsilon": 1, **SETTINGS.get(name, {}), **more})


# -- fits --------------------------------------------------------------------------------------------------------------


def test_the_estimators_tested_here_are_all_there_are() -> None:
    named = {item.__name__ for item in ESTIMATORS.values()}
    assert {"TreeClassifier", "GreedyForest", "KMeans", "DPLloyd", "DiffGen", "TreeRelease", "ContingencyTable"} <= named


@pytest.mark.parametrize("handed", ["rows", "file"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_closes_what_it_opened_and_the_model_goes_on_working(
    name: str, handed: str, connections: Connections, file: Path
) -> None:
    model = made(name).fit(ROWS if handed == "rows" else file, schema=SCHEMA)
    assert connections.kinds() == ({"sqlite3"} if handed == "rows" else {"sqlite3", "duckdb"})
    assert connections.still_open() == 0
    assert (model.predict if hasattr(model, "predict") else model.transform)(ROWS) is not None
    assert 0 < model.charged_.units <= model.cost_.units <= 10**9


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_that_fails_halfway_closes_what_it_opened(
    name: str, connections: Connections, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Kernel, "_compute", interrupted)
    with pytest.raises((KeyboardInterrupt, dm.AnswerError)):
        made(name).fit(file, schema=SCHEMA)
    assert connections.kinds() == {"sqlite3", "duckdb"}
    assert connections.still_open() == 0


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_that_is_refused_closes_what_it_opened(
    name: str, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise dm.RequestError("A parameter is wrong.")

    monkeypatch.setattr(ESTIMATORS[name], "plan", refused)
    with pytest.raises(dm.RequestError, match="A parameter is wrong"):
        made(name).fit(ROWS, schema=SCHEMA)
    assert connections.made
    assert connections.still_open() == 0


def test_a_fit_on_a_file_without_a_column_closes_it(connections: Connections, tmp_path: Path) -> None:
    (tmp_path / "short.csv").write_text("age\n1\n")
    with pytest.raises(dm.DataError):
        dm.TreeClassifier(epsilon=1).fit(tmp_path / "short.csv", schema=SCHEMA)
    assert connections.made
    assert connections.still_open() == 0


def test_a_fit_on_a_private_table_leaves_it_open(connections: Connections) -> None:
    with dm.open(ROWS, schema=SCHEMA, cap=4) as data:
        private = data.grant("alice", epsilon=4)
        for name in ("TreeClassifier", "KMeans", "TreeRelease"):
            made(name).fit(private)
        assert private.remaining() == dm.Epsilon.parse(1)
        assert connections.still_open() == 1
    assert connections.still_open() == 0


# -- readers -----------------------------------------------------------------------------------------------------------

READERS: dict[str, Callable[[Path], object]] = {
    "draft": dm.Schema.draft,
    "check": lambda file: check_table(file, SCHEMA),
    "codes": lambda file: encode_rows(file, SCHEMA, ["age"]),
    "experiment": lambda file: encoded(file, SCHEMA),
    "opened in memory": lambda file: dm.open(file, schema=SCHEMA, cap=1).close(),
    "opened in files": lambda file: dm.open(file, schema=SCHEMA, cap=1, engine="duckdb").close(),
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_was_read_is_closed(name: str, connections: Connections, file: Path) -> None:
    READERS[name](file)
    assert "duckdb" in connections.kinds()
    assert connections.still_open() == 0


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("fault", ["no column", "no cap", "not a table"])
def test_a_table_that_cannot_be_opened_is_closed(
    fault: str, engine: str, connections: Connections, file: Path, tmp_path: Path
) -> None:
    if fault == "no column":
        (tmp_path / "t.csv").write_text("age\n1\n")
    elif fault == "not a table":
        (tmp_path / "t.csv").write_text("")
    table = file if fault == "no cap" else tmp_path / "t.csv"
    with pytest.raises(dm.DpmineError):
        dm.open(table, schema=SCHEMA, cap=None if fault == "no cap" else 1, engine=engine)
    assert connections.made
    assert connections.still_open() == 0


def test_an_audit_closes_the_tables_it_asks(connections: Connections) -> None:
    drawn = draw(all_pairs()["count"], Task("count", 6))
    assert drawn.refused is None
    assert connections.made
    assert connections.still_open() == 0


@pytest.mark.usefixtures("data_folder")
def test_a_public_data_set_that_was_loaded_is_closed(connections: Connections) -> None:
    datasets.adult(split="test")
    datasets.points("s1")
    assert connections.kinds() == {"duckdb"}
    assert connections.still_open() == 0


# -- dropped without being closed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept_in", ["memory", "file"])
def test_a_data_set_that_is_dropped_closes_its_ledger(kept_in: str, connections: Connections, tmp_path: Path) -> None:
    ledger = None if kept_in == "memory" else tmp_path / "l.db"
    private = dm.open(ROWS, schema=SCHEMA, ledger=ledger, cap=4).grant("alice", epsilon=1)
    gc.collect()
    assert connections.still_open() == 1  # a private table in use keeps the ledger open by itself
    private.count(epsilon="0.1")
    del private
    gc.collect()
    assert connections.still_open() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are of Unix")
def test_connections_that_were_left_before_forks_are_closed(connections: Connections, tmp_path: Path) -> None:
    with dm.open(ROWS, schema=SCHEMA, ledger=tmp_path / "l.db", cap=4) as data:
        private = data.grant("alice", epsilon=4)
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            private.where("age > 3").count(epsilon="0.1")
            assert connections.still_open() == 1
        assert len(connections.made) == 4
    assert connections.still_open() == 0


NOTEBOOK = """
import gc, os
import dpmine as dm
from dpmine.datasets import patients, patients_schema

rows, schema = patients(200), patients_schema()
data = dm.open(rows, schema=schema, ledger=None, cap=4)
private = data.grant("alice", epsilon=1)
private.count(epsilon=0.1)
dm.open(rows, schema=schema, cap=4).grant("bob", epsilon=1).count(epsilon=0.1)
dm.open(rows, schema=schema, ledger="l.db", cap=4)
kept = dm.open(rows, schema=schema, ledger="l.db", cap=4).grant("carol", epsilon=1)
tree = dm.TreeClassifier(epsilon=1).fit(rows, schema=schema)
cycle = [dm.open(rows, schema=schema, cap=1)]
cycle.append(cycle)
del cycle
gc.collect()
if hasattr(os, "fork"):
    if (child := os.fork()) == 0:
        raise SystemExit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_notebook_that_closes_nothing_sees_no_warning(tmp_path: Path) -> None:
    """Since 3.13 Python warns of connections to SQLite that the garbage collector finds open; older ones say nothing."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", NOTEBOOK], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
