"""A mean through the kernel against the bare sum of the same array.

One column of values, 0 to 100 in hundredths (two bytes a row), without gaps and with one row in twenty missing. A mean is
asked through the door of the memory engine (plan, price, charge, exact sums, noise, receipt), of a table of that many rows
and of an empty one, beside numpy's 64-bit sum of the array that the engine holds. The difference of the first two is what
rows cost, and what the ratio is of. Two more columns show how many bytes a row takes: one whose values are its codes, and
one with both.

Keys:
    rows                            how many rows
    runs                            how many turns the medians are of
    seconds[column][candidate]      medians, of `ours`, `empty` (ours, on an empty table) and `bare`, each in one thread: of
                                    the processor, since a few milliseconds on a busy machine say how busy it is
    sum_over_bare[column]           (ours - empty) / bare, of medians
    bytes_a_row[column]             of the arrays that the engine holds
"""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

import dpmine as dm
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.facts.kinds.kind import OWN
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from harness import arguments, finish, interleaved, median, say, sized

RUNS = sized(15, rehearsal=1)
MILLION, LARGE = sized((1_000_000, 10_000_000), rehearsal=(200, 300))
CENT = Decimal("0.01")
GRIDS = {
    "no gaps": Numeric("x", Decimal(0), Decimal(100), Decimal(1), Decimal(0), CENT),
    "gaps": Numeric("x", Decimal(0), Decimal(100), Decimal(1), OWN, CENT),
    "codes alone": Numeric("x", Decimal(0), Decimal(100), Decimal(1), OWN),
    "a thousandth": Numeric("x", Decimal(0), Decimal(100), Decimal(1), OWN, Decimal("0.001")),
}
TIMED = ("no gaps", "gaps")


def main() -> None:
    args = arguments(__doc__ or "", ["no-gaps", "gaps", "bytes"], peers=())
    rows = MILLION if args.quick else LARGE
    random = np.random.default_rng(1)
    numbers = random.gamma(2, 12, rows)
    numbers[random.random(rows) < 0.05] = np.nan
    result: dict[str, Any] = {"rows": rows, "runs": RUNS}
    columns = [name for name in TIMED if name.replace(" ", "-") in args.names]
    if columns:
        result |= {"seconds": {}, "sum_over_bare": {}}
    for name in columns:
        seconds = {part: median(times) for part, times in measured(table_of(name, numbers)).items()}
        result["seconds"][name] = {part: round(taken, 5) for part, taken in seconds.items()}
        result["sum_over_bare"][name] = round((seconds["ours"] - seconds["empty"]) / seconds["bare"], 3)
        say(f"{name}: " + ", ".join(f"{part} {taken * 1e3:.2f} ms" for part, taken in seconds.items()))
    if "bytes" in args.names:
        result["bytes_a_row"] = {name: round(table_of(name, numbers).bytes / rows, 3) for name in GRIDS}
        say("bytes a row: " + ", ".join(f"{name} {size:g}" for name, size in result["bytes_a_row"].items()))
    finish(result)


def table_of(name: str, numbers: np.ndarray) -> EncodedTable:
    return encode(open_source({"x": numbers}), Schema("sums", (GRIDS[name],), LARGE))


def measured(table: EncodedTable) -> dict[str, list[float]]:
    """Seconds of a mean of the table, of one of an empty table, and of the sum of the table's array."""
    empty = EncodedTable(table.schema, 0, {"x": table.values["x"][:0]}, {}, table.encoding)
    values = table.values["x"]

    def mean_of(one: EncodedTable) -> Callable[[], Any]:
        private = dm.open(one, schema=one.schema, cap=10_000).grant("analyst", epsilon=10_000)
        turns = iter(range(1, RUNS + 1))
        return lambda: private.mean("x", epsilon=Decimal(next(turns)) / 1000)  # each another one: none is remembered

    timed = {"ours": mean_of(table), "empty": mean_of(empty), "bare": lambda: values.sum(dtype=np.int64)}
    return interleaved(RUNS, time.process_time, **timed)


if __name__ == "__main__":
    main()
