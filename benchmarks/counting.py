"""One tree level through the kernel against the bare counts it needs.

Adult is blown up to 1e6 and 1e7 rows, numeric attributes in 64 bins. A tree of 32 cells is grown by private choices;
then one `choose` over all 14 attributes in all 32 cells is timed through the kernel (plan, charge, cell ids refined from
the level above, counts, scores, private choices, store), beside a chunked bincount over the same arrays with the cell
ids given, and beside DuckDB's grouping sets over the same columns. Needs DPMINE_DATA.

Keys:
    cells                      how many cells are counted
    attributes                 for how many attributes
    bins                       in how many bins each numeric one is
    runs                       how many turns the medians are of
    seconds[rows][candidate]   medians; `from_scratch` also builds the cell ids of all five levels
    kernel_over_bare           the ratio of medians at the largest size
    from_scratch_over_bare     the same with the cell ids of all five levels
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dpmine as dm
from adult import CLASS, encoded
from dpmine.datasets import blown_up
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.memory import cell_ids
from dpmine.engines.memory.rows import Rows
from dpmine.engines.memory.sizes import CHUNK
from dpmine.language.resolver import resolve_cells
from dpmine.language.rule_trees import split_leaf
from dpmine.language.views import LEAF, Rules
from harness import arguments, finish, interleaved, median, peer, say, sized

BINS = 64
DEPTH = 5
RUNS = sized(7, rehearsal=1)
MILLION, LARGE = sized((1_000_000, 10_000_000), rehearsal=(200, 300))


def main() -> None:
    args = arguments(__doc__ or "", ["kernel", "duckdb"], peers=("duckdb",))
    sizes = [MILLION] if args.quick else [MILLION, LARGE]
    small = encoded(BINS)
    result: dict[str, Any] = {"cells": 2**DEPTH, "attributes": 14, "bins": BINS, "runs": RUNS, "seconds": {}}
    for rows in sizes:
        table = blown_up(small, rows)
        seconds = measure(table, args.names)
        result["seconds"][f"{rows:.0e}"] = {name: round(median(times), 4) for name, times in seconds.items()}
        for name in ("kernel", "from_scratch"):
            if name in seconds:
                result[f"{name}_over_bare"] = round(median(seconds[name]) / median(seconds["bare"]), 3)
        say(f"{rows:.0e} rows: " + ", ".join(f"{name} {median(times):.3f} s" for name, times in seconds.items()))
    finish(result)


def measure(table: EncodedTable, names: Sequence[str]) -> dict[str, list[float]]:
    """Seconds of what is timed for each part that is named."""
    attributes = [name for name in table.codes if name != CLASS]
    parents, rules = grown_tree(table, attributes)
    rows = Rows(table, b"benchmark")
    ids = cell_ids(resolve_cells((), rules, table.schema), rows).ids
    assert ids is not None

    def fresh() -> dm.PrivateTable:
        return dm.open(table, schema=table.schema, cap=1000).grant("miner", epsilon=1000)

    waiting: dict[str, dm.PrivateTable] = {}

    def kernel() -> None:
        waiting["private"].cells(rules).choose(attributes, score="gini", epsilon=1)

    def with_parents() -> None:
        table.cache.clear()
        waiting["private"] = fresh()
        cell_ids(resolve_cells((), parents, table.schema), rows)

    def without_anything() -> None:
        table.cache.clear()
        waiting["private"] = fresh()

    columns = [table.codes[name] for name in attributes]
    sizes = [table.schema.single(name).size for name in attributes]
    timed: dict[str, Callable[[], Any]] = {}
    if "kernel" in names:
        timed |= {
            "prepare": with_parents,
            "kernel": kernel,
            "clear": without_anything,
            "from_scratch": kernel,
            "bare": lambda: bare_counts(ids, table.codes[CLASS], columns, sizes, table.schema.single(CLASS).size),
        }
    if "duckdb" in names:
        timed["duckdb"] = duckdb_counts(ids, table, attributes)
    seconds = interleaved(RUNS, **timed)
    return {name: times for name, times in seconds.items() if name not in ("prepare", "clear")}


def grown_tree(table: EncodedTable, attributes: list[str]) -> tuple[Rules, Rules]:
    """A binary tree of DEPTH levels grown by private choices, and the same tree one level earlier."""
    families = [
        dm.Thresholds(name) if isinstance(table.schema.single(name), dm.Numeric) else dm.one_versus_rest(table.schema, name)
        for name in attributes
    ]
    private = dm.open(table, schema=table.schema, cap=1000).grant("miner", epsilon=1000)
    rules: Rules = LEAF
    parents = rules
    for level in range(DEPTH):
        chosen = private.cells(rules).choose(families, score="gini", epsilon=10)
        parents = rules
        for leaf in range(2**level - 1, -1, -1):
            rules = split_leaf(rules, leaf, chosen[leaf].key, 2)  # type: ignore[union-attr]
    table.cache.clear()
    return parents, rules


def bare_counts(
    ids: np.ndarray, target: np.ndarray, columns: list[np.ndarray], sizes: list[int], classes: int
) -> list[np.ndarray]:
    """The least that any tree level must do: count (cell, class, code) for each attribute, chunk by chunk."""
    totals = [np.zeros(2**DEPTH * classes * size, dtype=np.int64) for size in sizes]
    for start in range(0, len(target), CHUNK):
        rows = slice(start, start + CHUNK)
        base = ids[rows].astype(np.intp) * classes + target[rows]
        for column, size, total in zip(columns, sizes, totals, strict=True):
            total += np.bincount(base * size + column[rows], minlength=total.size)
    return totals


def duckdb_counts(ids: np.ndarray, table: EncodedTable, attributes: list[str]) -> Callable[[], Any]:
    duckdb = peer("duckdb")
    connection = duckdb.connect()
    arrays = {"cell": ids, "target": table.codes[CLASS]}
    arrays |= {f"a{place}": table.codes[name] for place, name in enumerate(attributes)}
    connection.register("arrays", arrays)
    connection.execute("CREATE TABLE level AS SELECT * FROM arrays")
    names = [f"a{place}" for place in range(len(attributes))]
    sets = ", ".join(f"(cell, target, {name})" for name in names)
    query = f"SELECT cell, target, {', '.join(names)}, count(*) FROM level GROUP BY GROUPING SETS ({sets})"
    return lambda: connection.execute(query).fetchnumpy()


if __name__ == "__main__":
    main()
