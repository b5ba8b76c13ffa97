"""What an object prints of itself ends in notebooks and logs: no row, no code and no exact count may be in it."""

from __future__ import annotations

import importlib
import pkgutil
import re
import traceback
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.reachable import reached_from

import dpmine as dm
import dpmine.engines
from dpmine.engines.encoding import encode
from dpmine.engines.memory import CellIds, MemoryEngine, cell_ids
from dpmine.engines.memory.keys import column_of
from dpmine.engines.memory.rows import Rows
from dpmine.facts.encoding import Lists
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.columns import ColumnInHand
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource, FrameSource, open_source
from dpmine.language.keys import AttributeKey
from dpmine.language.resolver import resolve_cells
from dpmine.language.resolving_keys import resolve_key
from dpmine.language.views import LEAF, Split

ROWS = 9973
ILL = 4177
CANARY = "canary-7261"
NUMBER = Numeric("age", Decimal(0), Decimal(99), Decimal(1), Decimal(0))
SCHEMA = Schema(
    "shown",
    (
        Nominal("ward", ("north", "south", "other"), "other", missing="other"),
        NUMBER,
        Nominal("ill", ("no", "yes"), "no", missing="no"),
        ItemList("drugs", ("a", "b"), 2, "|"),
    ),
    20_000,
    class_attribute="ill",
    unit=Unit("who", 2),
)
COLUMNS = {
    "ward": [CANARY, *["north", "south"] * (ROWS // 2)],
    "age": [number % 100 for number in range(ROWS)],
    "ill": ["yes"] * ILL + ["no"] * (ROWS - ILL),
    "drugs": ["a|b"] * ROWS,
    "who": [f"{CANARY}-{number}" for number in range(ROWS)],
}
DATA = (np.ndarray, dict, list, tuple, set, frozenset, str, bytes, bytearray, int, float)
EXACT = re.compile(rf"\b({ROWS}|{ILL}|{ROWS - ILL})\b")


def shown(thing: Any) -> list[str]:
    """Paths to objects under `thing` that print a value of a row, an array or an exact number of rows."""
    paths = []
    for path, found in reached_from(thing):
        if isinstance(found, DATA) or found is None:
            continue
        text = re.sub(r"0x[0-9a-f]+", "", repr(found))
        if CANARY in text or "array(" in text or EXACT.search(text):
            paths.append(f"{path}: {type(found).__name__}")
    return paths


def written(folder: Path) -> Path:
    pq.write_table(pa.table(COLUMNS), folder / "shown.parquet")
    return folder / "shown.parquet"


KINDS = {
    "dict": lambda _: COLUMNS,
    "pandas": lambda _: pd.DataFrame(COLUMNS),
    "Polars": lambda _: pl.DataFrame(COLUMNS),
    "Arrow": lambda _: pa.table(COLUMNS),
    "file": written,
}


@pytest.mark.parametrize(("kind", "engine"), [*((kind, "memory") for kind in KINDS), ("file", "duckdb")])
def test_nothing_that_can_be_reached_from_an_opened_table_prints_rows_or_exact_counts(
    kind: str, engine: str, tmp_path: Path
) -> None:
    with dm.open(KINDS[kind](tmp_path), schema=SCHEMA, cap=100, engine=engine) as data:
        private = data.grant("alice", epsilon=100)
        private.partition("ward")["north"].count(epsilon=1)
        private.where(dm.col("age") >= 40).histogram("ill", epsilon=1)
        train, _ = private.split(test=0.2)
        model = dm.TreeClassifier(epsilon=1).fit(train)
        assert shown(data) == []
        assert shown(private) == []
        assert CANARY not in repr(model)


@pytest.mark.parametrize("kind", KINDS)
def test_no_source_prints_what_it_reads(kind: str, tmp_path: Path) -> None:
    source = open_source(KINDS[kind](tmp_path))
    assert CANARY in (source.texts("ward")[0] or "")
    assert CANARY not in repr(source)
    if isinstance(source, FileSource):
        assert shown(source) == []


def test_what_the_memory_engine_makes_on_its_way_prints_nothing() -> None:
    table = encode(open_source(COLUMNS), SCHEMA)
    rows = Rows(table, b"k" * 32)
    key = resolve_key(AttributeKey("ward"), SCHEMA)
    ids = cell_ids(resolve_cells((), Split(AttributeKey("ward"), (LEAF, LEAF, LEAF)), SCHEMA), rows)
    assert isinstance(ids, CellIds)
    column, engine = column_of(key, rows), MemoryEngine(table, rows.split_key)
    made = [table, table.persons, *table.lists.values(), table.cache, rows, engine, ids, column]
    for thing in made:
        text = re.sub(r"0x[0-9a-f]+", "", repr(thing))
        assert "array(" not in text
        assert not EXACT.search(text)


def test_no_class_of_an_engine_prints_its_fields() -> None:
    """Also the next one that somebody adds: what an engine holds is exact."""
    for module in pkgutil.walk_packages(dpmine.engines.__path__, "dpmine.engines."):
        for name, kind in vars(importlib.import_module(module.name)).items():
            if isinstance(kind, type) and kind.__module__.startswith("dpmine.engines"):
                assert kind.__repr__ is object.__repr__ or getattr(kind, "_is_protocol", False), name
    assert all(kind.__repr__ is object.__repr__ for kind in (FrameSource, FileSource, Lists, ColumnInHand))


def test_an_error_behind_the_door_prints_nothing_even_with_the_locals_of_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: MemoryEngine, cells: Any, groups: Any) -> Any:
        exact_counts = np.array([ROWS, ILL])
        raise RuntimeError(f"{CANARY} {exact_counts}")

    with dm.open(COLUMNS, schema=SCHEMA, cap=100) as data:
        private = data.grant("alice", epsilon=100)
        monkeypatch.setattr(MemoryEngine, "counts", fails)
        with pytest.raises(dm.AnswerError) as raised:
            private.histogram("ill", epsilon=1)
    told = "".join(traceback.format_exception(raised.value))
    assert CANARY not in told
    frames = [frame for frame, _ in traceback.walk_tb(raised.value.__traceback__) if "dpmine" in frame.f_globals["__name__"]]
    assert len(frames) > 3
    for local in (local for frame in frames for local in frame.f_locals.values()):
        text = re.sub(r"0x[0-9a-f]+", "", repr(local))
        assert CANARY not in text
        assert "array(" not in text
        assert not EXACT.search(text)


def test_the_look_at_what_is_printed_finds_a_planted_class_that_prints_its_codes() -> None:
    class Telling(Lists):
        def __repr__(self) -> str:
            return f"Lists(rows={self.rows!r})"

    planted = encode(open_source(COLUMNS), SCHEMA)
    planted.lists["drugs"] = Telling(planted.lists["drugs"].rows, planted.lists["drugs"].items)
    assert shown(planted) == [".lists[drugs]: Telling"]
