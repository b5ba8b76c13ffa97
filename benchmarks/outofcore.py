"""One tree level over a Parquet file of 1e8 rows through the DuckDB engine, with memory capped, beside hand-written SQL.

The file (14 attributes and a class, generated once into benchmarks/cache) is counted in 32 cells for every attribute by
class, by the engine and by a query that a person who knows the data would write for the same level: raw texts grouped as
they are, numeric columns divided, one CASE for the cells.

Keys:
    rows                 how many the file has
    cells                how many cells are counted
    runs                 how many turns the medians are of
    memory_limit         of DuckDB, for both
    peak_resident_gb     of this process, which runs both
    same_totals          whether both counted the same number of rows
    seconds[candidate]   medians
    over_handwritten     the ratio of the engine's seconds to those of the query
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb

from dpmine.engines.sql.duckdb import DuckDBFiles
from dpmine.engines.sql.engine import SqlEngine
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource
from dpmine.language.keys import AttributeKey, Bins, Group, Groups
from dpmine.language.resolver import resolve_cells
from dpmine.language.resolving_keys import resolve_key
from dpmine.language.views import LEAF, Rules, Split
from harness import REHEARSAL, arguments, finish, interleaved, median, say, sized

CACHE = Path(__file__).resolve().parent / "cache"
CATEGORIES = [9, 16, 7, 15, 6, 5, 2, 42]
RANGES = [80, 1_500_000, 20, 100_000, 5_000, 100]
MEMORY = "2GB"
RUNS = sized(3, rehearsal=1)
TEN_MILLION, LARGE = sized((10_000_000, 100_000_000), rehearsal=(200, 300))


def main() -> None:
    args = arguments(__doc__ or "", ["ours", "handwritten"])
    rows = TEN_MILLION if args.quick else LARGE
    with tempfile.TemporaryDirectory() as scratch:
        finish(measure(generated(rows, Path(scratch) if REHEARSAL else CACHE), rows, args.names))


def measure(path: Path, rows: int, names: Sequence[str]) -> dict[str, Any]:
    table = DuckDBFiles(schema(rows), FileSource(path, keep_in_files=True, memory_limit=MEMORY))
    cells = resolve_cells((), rules(), table.schema)
    target = resolve_key(AttributeKey("class"), table.schema)
    attributes = [attribute.name for attribute in table.schema.attributes if attribute.name != "class"]
    groups = [(target, resolve_key(AttributeKey(name), table.schema)) for name in attributes]
    engine = SqlEngine(table, b"benchmark")
    query = handwritten(path)
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{MEMORY}'")

    def ours() -> Any:
        table.cache.clear()
        return engine.counts(cells, groups)

    both: dict[str, Callable[[], Any]] = {"ours": ours, "handwritten": lambda: connection.execute(query).fetchnumpy()}
    result: dict[str, Any] = {"rows": rows, "cells": 32, "runs": RUNS, "memory_limit": MEMORY}
    if len(names) == len(both):
        by_hand = sum(row[-1] for row in connection.execute(query).fetchall())
        result["same_totals"] = sum(int(counts.sum()) for counts in ours()) == by_hand
    seconds = {name: median(times) for name, times in interleaved(RUNS, **{name: both[name] for name in names}).items()}
    say(", ".join(f"{name} {each:.1f} s" for name, each in seconds.items()))
    result["peak_resident_gb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)
    result["seconds"] = {name: round(each, 2) for name, each in seconds.items()}
    if len(names) == len(both):
        result["over_handwritten"] = round(seconds["ours"] / seconds["handwritten"], 3)
    return result


def generated(rows: int, folder: Path) -> Path:
    path = folder / f"generated-{rows:.0e}.parquet"
    if not path.exists():
        folder.mkdir(exist_ok=True)
        say(f"Generating {rows:.0e} rows into {path.name} ...")
        texts = [f"'value ' || CAST(floor(random() * {size}) AS INT) AS n{i}" for i, size in enumerate(CATEGORIES)]
        numbers = [f"CAST(floor(random() * {size}) AS INT) AS x{i}" for i, size in enumerate(RANGES)]
        columns = ", ".join([*texts, *numbers, "CASE WHEN random() < 0.25 THEN 'yes' ELSE 'no' END AS class"])
        connection = duckdb.connect()
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        connection.execute("SET preserve_insertion_order = false")
        part = path.with_suffix(".part")
        connection.execute(f"COPY (SELECT {columns} FROM range({rows})) TO '{part}' (FORMAT parquet)")
        part.rename(path)
    return path


def step(size: int) -> int:
    return max(size // 64, 1)


def schema(rows: int) -> Schema:
    lines = ['name = "generated"', f"rows_at_most = {rows}", 'class = "class"']
    for i, size in enumerate(CATEGORIES):
        listed = ", ".join(f'"value {k}"' for k in range(size))
        lines += [f"[attributes.n{i}]", 'kind = "nominal"', f"categories = [{listed}]", 'missing = "value 0"']
    for i, size in enumerate(RANGES):
        lines += [f"[attributes.x{i}]", 'kind = "numeric"', "low = 0", f"high = {size - 1}"]
        lines += [f"step = {step(size)}", "missing = 0"]
    lines += ["[attributes.class]", 'kind = "nominal"', 'categories = ["no", "yes"]', 'missing = "no"']
    return Schema.from_toml("\n".join(lines))


# The tree of 32 cells: at each level one attribute, nominal ones by a set of values, numeric ones at a cut.
LEVELS: list[tuple[str, str]] = [("x0", "40"), ("n0", "0 1 2 3"), ("x5", "48"), ("n3", "1 4 7 9"), ("x2", "10")]


def rules(level: int = 0) -> Rules:
    if level == len(LEVELS):
        return LEAF
    name, what = LEVELS[level]
    below = rules(level + 1)
    if name.startswith("x"):
        return Split(Bins(name, (what,)), (below, below))
    group = Group("some", tuple(f"value {k}" for k in what.split()))
    return Split(Groups(name, (group,)), (below, below))


def handwritten(path: Path) -> str:
    def case(level: int, first: int) -> str:
        if level == len(LEVELS):
            return str(first)
        name, what = LEVELS[level]
        listed = ", ".join(f"'value {k}'" for k in what.split())
        test = f"{name} < {what}" if name.startswith("x") else f"{name} IN ({listed})"
        half = 2 ** (len(LEVELS) - level - 1)
        return f"CASE WHEN {test} THEN {case(level + 1, first)} ELSE {case(level + 1, first + half)} END"

    texts = [f"n{i}" for i in range(len(CATEGORIES))]
    bins = [f"b{i}" for i in range(len(RANGES))]
    divided = ", ".join(f"x{i} // {step(size)} AS b{i}" for i, size in enumerate(RANGES))
    sets = ", ".join(f"(cell, class, {name})" for name in [*texts, *bins])
    inner = f"SELECT class, {', '.join(texts)}, {divided}, {case(0, 0)} AS cell FROM read_parquet('{path}')"
    return f"SELECT cell, class, {', '.join([*texts, *bins])}, count(*) FROM ({inner}) GROUP BY GROUPING SETS ({sets})"


if __name__ == "__main__":
    main()
