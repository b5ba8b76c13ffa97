"""A whole TreeClassifier fit against the bare counts that its levels need, and against scikit-learn.

Adult is blown up to 1e6 and 1e7 rows on its public grid. `fit` starts from an opened table (encoding is reported apart) and
grows to depth 5 without stopping early, so that all 31 nodes are chosen and all 32 leaves counted. `bare` is a chunked
bincount of (cell, class, code) over the same arrays for the same five levels, with the cell ids given, and of (cell, class)
for the leaves. scikit-learn's DecisionTreeClassifier of the same depth gets the codes as a float32 array, made beforehand.
Keys at the largest size: `fit_over_counts`, `sklearn_over_ours`; `time_ratio_10x` is fit at 1e7 over fit at 1e6,
`memory_over_table` the largest memory during a fit, the table included, over the encoded table.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import dpmine as dm
from adult import CLASS, encoded
from dpmine.datasets import blown_up
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.memory import CHUNK, MemoryEngine
from dpmine.queries import LEAF, Rules, Split
from dpmine.resolution import resolve_cells
from dpmine.tree_models import Node
from harness import arguments, finish, interleaved, median, peer, say

DEPTH = 5
RUNS = 5


def main() -> None:
    args = arguments(__doc__ or "", ["ours", "sklearn"])
    sizes = [1_000_000] if args.quick else [1_000_000, 10_000_000]
    started = time.perf_counter()
    small = encoded(None)
    result: dict[str, Any] = {"depth": DEPTH, "attributes": 14, "runs": RUNS, "seconds": {}}
    result["encode_adult_seconds"] = round(time.perf_counter() - started, 3)
    fits = []
    for rows in sizes:
        table = blown_up(small, rows)
        seconds = measure(table, with_sklearn="sklearn" in args.names and not args.quick)
        middle = {name: median(times) for name, times in seconds.items()}
        result["seconds"][f"{rows:.0e}"] = {name: round(each, 4) for name, each in middle.items()}
        result["fit_over_counts"] = round(middle["fit"] / middle["bare"], 3)
        if "sklearn" in middle:
            result["sklearn_over_ours"] = round(middle["sklearn"] / middle["fit"], 2)
        result["memory_over_table"] = round(1 + peak_bytes(table) / table.bytes, 3)
        fits.append(middle["fit"])
        say(f"{rows:.0e} rows: " + ", ".join(f"{name} {each:.3f} s" for name, each in middle.items()))
    if len(fits) > 1:
        result["time_ratio_10x"] = round(fits[-1] / fits[0], 2)
    finish(result)


def classifier() -> dm.TreeClassifier:
    return dm.TreeClassifier(epsilon=10, max_depth=DEPTH, stopping=0)


def fresh(table: EncodedTable) -> dm.PrivateTable:
    table.cache.clear()
    return dm.open(table, schema=table.schema, cap=10).grant("miner", epsilon=10)


def measure(table: EncodedTable, *, with_sklearn: bool) -> dict[str, list[float]]:
    tree = classifier().fit(fresh(table)).trees_.trees[0]
    levels = level_ids(table, tree)
    table.cache.clear()
    waiting: dict[str, dm.PrivateTable] = {}

    def prepare() -> None:
        waiting["private"] = fresh(table)

    timed: dict[str, Callable[[], Any]] = {
        "prepare": prepare,
        "fit": lambda: classifier().fit(waiting["private"]),
        "bare": lambda: bare_levels(table, levels),
    }
    if with_sklearn:
        timed["sklearn"] = sklearn_fit(table)
    seconds = interleaved(RUNS, **timed)
    seconds.pop("prepare")
    return seconds


def level_ids(table: EncodedTable, tree: Node) -> list[np.ndarray]:
    """The cell of every row at each level of the fitted tree, the leaves last."""
    engine = MemoryEngine(table, b"benchmark")
    found = []
    for depth in range(DEPTH + 1):
        ids = engine.cell_ids(resolve_cells((), cut(tree, depth), table.schema)).ids
        found.append(np.zeros(table.rows, dtype=np.uint8) if ids is None else ids.copy())
    return found


def cut(node: Node, depth: int) -> Rules:
    if depth == 0 or node.split is None:
        return LEAF
    return Split(node.split, tuple(cut(child, depth - 1) for child in node.children))


def bare_levels(table: EncodedTable, levels: list[np.ndarray]) -> None:
    """The least that any tree must do: count (cell, class, code) of each attribute at each level, then (cell, class)."""
    target = table.columns[CLASS]
    classes = table.schema.single(CLASS).size
    names = [name for name in table.columns if name != CLASS]
    columns = [(table.columns[name], table.schema.single(name).size) for name in names]
    for depth, ids in enumerate(levels):
        asked = columns if depth < DEPTH else []
        totals = [np.zeros(2**depth * classes * size, dtype=np.int64) for _, size in asked]
        leaves = np.zeros(2**depth * classes, dtype=np.int64)
        for start in range(0, table.rows, CHUNK):
            rows = slice(start, start + CHUNK)
            base = ids[rows].astype(np.intp) * classes + target[rows]
            for (column, size), total in zip(asked, totals, strict=True):
                total += np.bincount(base * size + column[rows], minlength=total.size)
            if not asked:
                leaves += np.bincount(base, minlength=leaves.size)


def sklearn_fit(table: EncodedTable) -> Callable[[], Any]:
    trees = peer("sklearn.tree", "scikit-learn")
    names = [name for name in table.columns if name != CLASS]
    points = np.column_stack([table.columns[name] for name in names]).astype(np.float32)
    target = table.columns[CLASS].astype(np.int64)
    return lambda: trees.DecisionTreeClassifier(max_depth=DEPTH).fit(points, target)


def peak_bytes(table: EncodedTable) -> int:
    """The largest memory that a fit holds beside the encoded table."""
    private = fresh(table)
    tracemalloc.start()
    classifier().fit(private)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    table.cache.clear()
    return peak


if __name__ == "__main__":
    main()
