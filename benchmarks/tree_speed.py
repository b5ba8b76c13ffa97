"""A whole TreeClassifier fit against the bare counts that its levels need, and against scikit-learn.

Adult is blown up to 1e6 and 1e7 rows on its public grid. `fit` starts from an opened table (encoding is reported apart) and
grows to depth 5 without stopping early; nodes are split in two or into a branch for each category. `bare` is a chunked
bincount of (cell, class, code) over the same arrays for the same five levels, with the cell ids given, and of (cell, class)
for the leaves; the levels are those of one fit, whose noise decides how many cells they have. scikit-learn's
DecisionTreeClassifier of the same depth gets the codes as a float32 array, made beforehand. Needs DPMINE_DATA.

Keys:
    depth                      of all trees
    attributes                 how many there are to choose from
    runs                       how many turns the medians are of
    encode_adult_seconds       reading and encoding Adult itself, once
    cells[rows]                how many cells each level of the tree has that `bare` counts, the leaves last
    seconds[rows][candidate]   medians
    fit_over_counts            fit over bare, at the largest size
    sklearn_over_ours          scikit-learn over fit, at the largest size
    memory_over_table          the largest memory during a fit, the table included, over the encoded table
    time_ratio_10x             fit at 1e7 over fit at 1e6
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dpmine as dm
from adult import CLASS, encoded
from dpmine.datasets import blown_up
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.memory import CellIds, cell_ids
from dpmine.engines.memory.rows import Rows
from dpmine.engines.memory.sizes import CHUNK
from dpmine.language.resolver import resolve_cells
from dpmine.language.views import LEAF, Rules, Split
from dpmine.models.trees import Node
from harness import arguments, finish, interleaved, median, peer, say, sized

DEPTH = 5
RUNS = sized(5, rehearsal=1)
MILLION, LARGE = sized((1_000_000, 10_000_000), rehearsal=(200, 300))


def main() -> None:
    args = arguments(__doc__ or "", ["ours", "sklearn"], peers=("sklearn",))
    sizes = [MILLION] if args.quick else [MILLION, LARGE]
    started = time.perf_counter()
    small = encoded(None)
    result: dict[str, Any] = {"depth": DEPTH, "attributes": 14, "runs": RUNS, "seconds": {}}
    result["encode_adult_seconds"] = round(time.perf_counter() - started, 3)
    fits = []
    for rows in sizes:
        table = blown_up(small, rows)
        levels = level_ids(table) if "ours" in args.names else []
        middle = {name: median(times) for name, times in measure(table, levels, args.names).items()}
        result["seconds"][f"{rows:.0e}"] = {name: round(each, 4) for name, each in middle.items()}
        if "ours" in args.names:
            result.setdefault("cells", {})[f"{rows:.0e}"] = [level.cells for level in levels]
            result["fit_over_counts"] = round(middle["fit"] / middle["bare"], 3)
            result["memory_over_table"] = round(1 + peak_bytes(table) / table.bytes, 3)
            fits.append(middle["fit"])
        if {"ours", "sklearn"} <= set(args.names):
            result["sklearn_over_ours"] = round(middle["sklearn"] / middle["fit"], 2)
        say(f"{rows:.0e} rows: " + ", ".join(f"{name} {each:.3f} s" for name, each in middle.items()))
    if len(fits) > 1:
        result["time_ratio_10x"] = round(fits[-1] / fits[0], 2)
    finish(result)


def classifier() -> dm.TreeClassifier:
    return dm.TreeClassifier(epsilon=10, max_depth=DEPTH, stopping=0)


def fresh(table: EncodedTable) -> dm.PrivateTable:
    table.cache.clear()
    return dm.open(table, schema=table.schema, cap=10).grant("miner", epsilon=10)


def measure(table: EncodedTable, levels: Sequence[CellIds], names: Sequence[str]) -> dict[str, list[float]]:
    """Seconds of what is timed for each part that is named."""
    waiting: dict[str, dm.PrivateTable] = {}

    def prepare() -> None:
        waiting["private"] = fresh(table)

    timed: dict[str, Callable[[], Any]] = {}
    if "ours" in names:
        timed["prepare"] = prepare
        timed["fit"] = lambda: classifier().fit(waiting["private"])
        timed["bare"] = lambda: bare_levels(table, levels)
    if "sklearn" in names:
        timed["sklearn"] = sklearn_fit(table)
    seconds = interleaved(RUNS, **timed)
    return {name: times for name, times in seconds.items() if name != "prepare"}


def level_ids(table: EncodedTable) -> list[CellIds]:
    """The cell of every row, and how many there are, at each level of a fitted tree, the leaves last."""
    tree = classifier().fit(fresh(table)).trees_.trees[0]
    rows = Rows(table, b"benchmark")
    deeper = [cell_ids(resolve_cells((), cut(tree, depth), table.schema), rows) for depth in range(1, DEPTH + 1)]
    table.cache.clear()
    return [CellIds(np.zeros(table.rows, dtype=np.uint8), 1), *deeper]


def cut(node: Node, depth: int) -> Rules:
    if depth == 0 or node.split is None:
        return LEAF
    return Split(node.split, tuple(cut(child, depth - 1) for child in node.children))


def bare_levels(table: EncodedTable, levels: Sequence[CellIds]) -> np.ndarray:
    """The least that any tree must do: count (cell, class, code) of each attribute at each level, then (cell, class)."""
    target = table.codes[CLASS]
    classes = table.schema.single(CLASS).size
    names = [name for name in table.codes if name != CLASS]
    columns = [(table.codes[name], table.schema.single(name).size) for name in names]
    for depth, level in enumerate(levels):
        ids = level.ids
        assert ids is not None
        asked = columns if depth < DEPTH else []
        totals = [np.zeros(level.cells * classes * size, dtype=np.int64) for _, size in asked]
        leaves = np.zeros(level.cells * classes, dtype=np.int64)
        for start in range(0, table.rows, CHUNK):
            rows = slice(start, start + CHUNK)
            base = ids[rows].astype(np.intp) * classes + target[rows]
            for (column, size), total in zip(asked, totals, strict=True):
                total += np.bincount(base * size + column[rows], minlength=total.size)
            if not asked:
                leaves += np.bincount(base, minlength=leaves.size)
    return leaves


def sklearn_fit(table: EncodedTable) -> Callable[[], Any]:
    trees = peer("sklearn.tree", "scikit-learn")
    names = [name for name in table.codes if name != CLASS]
    points = np.column_stack([table.codes[name] for name in names]).astype(np.float32)
    target = table.codes[CLASS].astype(np.int64)
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
