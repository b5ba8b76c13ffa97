"""How a golden entry is made: its own tables with its own random bits, and what it asked of them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from golden_forms import form_of
from golden_seams import pinned, watched
from golden_table import SCHEMA, TABLE, write_csv

import dpmine as dm
from dpmine.facts.schema import Schema
from dpmine.language.queries import Query
from dpmine.mining.estimators import Estimator

PLENTY = 1000
"""Enough for any entry that is not about running short."""


class World:
    """What one entry may open; it remembers what was asked and fitted."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.asked: list[Query] = []
        self.fitted: list[Estimator] = []
        self._opened: list[dm.DataSet] = []

    def data(self, schema: Schema = SCHEMA, *, cap: Any = PLENTY, **options: Any) -> dm.DataSet:
        """The table as its owner opens it. Files have a ledger file that is named, so that no default matters."""
        if self.engine == "memory":
            data = dm.open(TABLE, schema=schema, ledger=None, cap=cap, **options)
        else:
            file = self.folder / "golden.csv"
            write_csv(file)
            ledger = self.folder / f"{len(self._opened)}.ledger.db"
            data = dm.open(str(file), schema=schema, ledger=ledger, cap=cap, engine=self.engine, **options)
        self._opened.append(data)
        return data

    def private(self, schema: Schema = SCHEMA, *, epsilon: Any = PLENTY, cap: Any = None, **options: Any) -> dm.PrivateTable:
        """What alice holds, who may spend all there is unless a cap is stated."""
        return self.granted(self.data(schema, cap=epsilon if cap is None else cap, **options), "alice", epsilon)

    def granted(self, data: dm.DataSet, analyst: str, epsilon: Any) -> dm.PrivateTable:
        return watched(data.grant(analyst, epsilon=epsilon), self.asked.append)

    def close(self) -> None:
        for data in self._opened:
            data.close()


Entry = Callable[[World], Any]
ENTRIES: dict[str, Entry] = {}
ON_DUCKDB: list[str] = []
"""Entries that must come out the same where DuckDB counts."""


def entry(name: str, *, duckdb: bool = False) -> Callable[[Entry], Entry]:
    """Declare an entry: what it returns, after `form_of`, is its golden value."""

    def declare(made: Entry) -> Entry:
        if name in ENTRIES:
            raise ValueError(f"two golden entries are called {name!r}")
        ENTRIES[name] = made
        if duckdb:
            ON_DUCKDB.append(name)
        return made

    return declare


def question(
    name: str, ask: Callable[[dm.PrivateTable], Any], *, schema: Schema = SCHEMA, duckdb: bool = False, epsilon: Any = PLENTY
) -> None:
    """Declare an entry that is one question: its answer, and by how much alice's budget fell."""

    @entry(name, duckdb=duckdb)
    def asked(world: World) -> Any:
        private = world.private(schema, epsilon=epsilon)
        before = private.remaining().units
        answer = ask(private)
        return {"answer": answer, "charged": str(dm.Epsilon(before - private.remaining().units))}


@dataclass(frozen=True)
class Computed:
    """An entry as it comes out today."""

    form: Any
    asked: tuple[Query, ...]
    fitted: tuple[Estimator, ...]


def computed(name: str, engine: str = "memory") -> Computed:
    """An entry, worked out once by each engine."""
    return _computed(name, engine)


@cache
def _computed(name: str, engine: str) -> Computed:
    """Random bits follow from the entry's name alone."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(engine, Path(folder))
        designs = {"DPMINE_CACHE": str(Path(folder) / "designs")}  # what an earlier version solved must not be found
        with patch.dict(os.environ, designs), pinned(name):
            try:
                form = form_of(ENTRIES[name](world))
            finally:
                world.close()
    return Computed(json.loads(json.dumps(form)), tuple(world.asked), tuple(world.fitted))
