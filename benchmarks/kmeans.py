"""Private k-means: how much larger its sum of squared distances is than scikit-learn's best of 10, and how long it takes.

Public facts, the same for everybody. Clusters are made on a public grid, distances are measured from the true points:

    S1        5,000 points, k 15, x and y in [0, 1,000,000] by 250 (4,001 points a coordinate)
    Birch1    100,000 points, k 100, the same box and grid
    GeoNames  144,563 places, k 10, latitude in [-90, 90] by 0.05 and longitude in [-180, 180] by 0.1 (3,601 points each)
    adult     48,842 rows, k 8, scaled to [-1, 1] by public bounds: age 15 to 95 by 1, fnlwgt 0 to 1,500,000 by 1,000,
              education_num 1 to 20 by 1, capital_gain 0 to 100,000 by 50, capital_loss 0 to 5,000 by 5, hours_per_week
              1 to 100 by 1

Methods: `ours` is dm.KMeans; `dplloyd` is DPLloyd as in the slides (10 iterations, random starts, equal halves); `dplloyd
better` takes iterations, spread starts and shares by Su and others 2016, with the true number of rows, as if it were public;
`diffprivlib` is its KMeans with the same bounds on the true points (it reads the true number of rows too). One thread each.
The ratios need DPMINE_DATA.

Keys:
    runs                                          of each method
    ratio[data][method][epsilon]                  the mean over the runs of (sum of squared distances of the true points to
                                                  the released centres) / (that of scikit-learn's KMeans with n_init=10)
    deviation[data][method][epsilon]              its standard deviation
    seconds_a_fit[data][method][epsilon]          the mean over the runs
    mixtures[data][method][epsilon]               the same ratio for generated mixtures of 10 Gaussians in 10 dimensions:
                                                  what is to be expected where rows are few
    mixtures_deviation[data][method][epsilon]     its standard deviation
    over_bare                                     a whole fit of 1e7 points in 2 dimensions (k 15, epsilon 1) from an opened
                                                  table, over one bare numpy pass that bins them into the same grid
    over_bare_seconds[candidate]                  medians of both
    over_bare_rows                                how many points
    over_bare_cells                               how many cells the grid has along each axis
    over_sklearn                                  a whole fit of 1e6 points in 10 dimensions (k 10, epsilon 1), over
                                                  scikit-learn's with n_init=1, the larger of the ratios for wide and for
                                                  narrow clusters (deviations of 0.1 and 0.03 of the box)
    over_sklearn_by_data[data]                    both ratios
    over_sklearn_seconds[data][candidate]         medians
    over_sklearn_rows                             how many points
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpmine as dm
from dpmine.datasets import adult, points
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.memory.sizes import CHUNK
from dpmine.facts.sources import open_source
from dpmine.mining.clustering.synopsis import grid_sides, grid_starts
from harness import PEERS, arguments, data_folder, finish, interleaved, median, peer, peer_python, say, sized

EPSILONS = sized(("0.1", "0.5", "1", "2"), rehearsal=("1",))
RUNS = sized(20, rehearsal=2)
TURNS = sized(5, rehearsal=1)  # of what is timed
MOST_POINTS = sized(None, rehearsal=300)  # of a data set
GRID_SIZES = sized((1_000_000, 10_000_000), rehearsal=(300, 400))  # with --quick the first
TREE_SIZES = sized((100_000, 1_000_000), rehearsal=(300, 400))
MIXTURE_SIZES = sized((10_000, 100_000), rehearsal=(300, 400))
BLOCK = 20_000  # points whose distances are held at a time

ADULT = {  # public low, high and step
    "age": (15, 95, 1),
    "fnlwgt": (0, 1_500_000, 1000),
    "education_num": (1, 20, 1),
    "capital_gain": (0, 100_000, 50),
    "capital_loss": (0, 5000, 5),
    "hours_per_week": (1, 100, 1),
}
WIDE, NARROW = 0.1, 0.03  # deviations of a mixture's Gaussians, in sides of the box

METHODS: dict[str, Callable[[int, str, str, int, int], Any]] = {
    "ours": lambda k, e, scaling, rows, run: dm.KMeans(k, e, scaling=scaling, seed=run),
    "dplloyd": lambda k, e, scaling, rows, run: dm.DPLloyd(k, e, scaling=scaling, seed=run),
    "dplloyd better": lambda k, e, scaling, rows, run: dm.DPLloyd(
        k, e, "auto", "spread", "optimal", scaling=scaling, rows=rows, seed=run
    ),
}


@dataclass(frozen=True, eq=False)
class Points:
    """True points in the units that distances are measured in, the same rows as a table, and what is public."""

    true: NDArray[np.float64]
    table: EncodedTable
    k: int
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    unit_box: bool = False
    """Whether distances are measured after scaling the bounds to [-1, 1]."""

    @property
    def scaling(self) -> str:
        return "bounds" if self.unit_box else "none"

    def measured(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points in the attributes' own units, in the units of distances."""
        return 2 * (values - self.low) / (self.high - self.low) - 1 if self.unit_box else values

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.measured(self.low), self.measured(self.high)


def main() -> None:
    args = arguments(__doc__ or "", ["ratio", "peers", "mixtures", "speed"])
    size = 0 if args.quick else 1
    threads = peer("threadpoolctl")
    result: dict[str, Any] = {"runs": RUNS}
    with threads.threadpool_limits(1):
        if {"ratio", "peers"} & set(args.names):
            data_folder()
            data = {"S1": s1, "Birch1": birch1, "GeoNames": geonames, "adult": adult_numbers}
            methods = METHODS if "ratio" in args.names else ()
            found = ratios(data, methods, peers="peers" in args.names)
            result["ratio"], result["deviation"], result["seconds_a_fit"] = found
        if "mixtures" in args.names:
            sizes = MIXTURE_SIZES[: size + 1]
            named = {f"d = 10, n = {rows:,}": lambda rows=rows: mixture(rows, 10, 10, WIDE) for rows in sizes}
            result["mixtures"], result["mixtures_deviation"], _ = ratios(named, METHODS, peers=False)
        if "speed" in args.names:
            result |= speed_of_a_grid(GRID_SIZES[size])
            result |= speed_of_a_tree(TREE_SIZES[size])
    finish(result)


# -- data --------------------------------------------------------------------------------------------------------------


def s1() -> Points:
    return plane("s1", 15)


def birch1() -> Points:
    return plane("birch1", sized(100, rehearsal=20))


def plane(name: str, k: int) -> Points:
    read = points(name)
    return opened(name, {axis: read[axis] for axis in "xy"}, dict.fromkeys("xy", (0, 1_000_000, 250)), k, 200_000)


def geonames() -> Points:
    read = points("geonames")
    facts = {"lat": (-90, 90, "0.05"), "lon": (-180, 180, "0.1")}
    return opened("geonames", {name: read[name] for name in facts}, facts, 10, 500_000)


def adult_numbers() -> Points:
    read = adult()
    return opened("adult", {name: read[name] for name in ADULT}, ADULT, 8, 50_000, unit_box=True)


def opened(
    name: str,
    columns: dict[str, Any],
    facts: dict[str, tuple[Any, Any, Any]],
    k: int,
    rows_at_most: int,
    *,
    unit_box: bool = False,
) -> Points:
    columns = {n: column[:MOST_POINTS] for n, column in columns.items()}
    table = encode(
        open_source(columns), dm.Schema(name, tuple(numeric(n, *fact) for n, fact in facts.items()), rows_at_most)
    )
    low, high = (np.array([float(fact[end]) for fact in facts.values()]) for end in (0, 1))
    data = Points(np.empty((0, len(facts))), table, k, low, high, unit_box)
    true = data.measured(np.column_stack([np.array(columns[n], dtype=np.float64) for n in facts]))
    return Points(true, table, k, low, high, unit_box)


def numeric(name: str, low: Any, high: Any, step: Any) -> dm.Numeric:
    return dm.Numeric(name, Decimal(str(low)), Decimal(str(high)), Decimal(str(step)), Decimal(str(low)))


def mixture(rows: int, dimensions: int, k: int, deviation: float, size: int = 1001) -> Points:
    """Equal round Gaussians around centres drawn from the box without its margins, on a grid: the points are the grid's."""
    draw = np.random.default_rng(1)
    centres = draw.uniform(0.15, 0.85, (k, dimensions))
    codes = [np.empty(rows, dtype=np.uint16) for _ in range(dimensions)]
    for start in range(0, rows, CHUNK):
        part = slice(start, min(start + CHUNK, rows))
        drawn = centres[draw.integers(0, k, part.stop - start)]
        drawn = drawn + draw.normal(0, deviation, drawn.shape)
        for place, column in enumerate(codes):
            column[part] = np.rint(np.clip(drawn[:, place], 0, 1) * (size - 1))
    names = [f"x{place}" for place in range(dimensions)]
    schema = dm.Schema("mixture", tuple(numeric(name, 0, size - 1, 1) for name in names), 2 * rows)
    table = EncodedTable(schema, rows, dict(zip(names, codes, strict=True)), {}, "generated")
    true = np.column_stack(codes).astype(np.float64) if rows <= 1_000_000 else np.empty((0, dimensions))
    return Points(true, table, k, np.zeros(dimensions), np.full(dimensions, size - 1.0))


# -- sums of squares ---------------------------------------------------------------------------------------------------

ByEpsilon = dict[str, dict[str, dict[str, float]]]


def ratios(
    data: dict[str, Callable[[], Points]], methods: Collection[str], *, peers: bool
) -> tuple[ByEpsilon, ByEpsilon, ByEpsilon]:
    """Means and deviations of the ratios, and the seconds of a fit: of these methods, and of diffprivlib if peers."""
    means: ByEpsilon = {}
    deviations: ByEpsilon = {}
    seconds: ByEpsilon = {}
    for name, load in data.items():
        given = load()
        best = float(
            peer("sklearn.cluster", "scikit-learn").KMeans(given.k, n_init=10, random_state=0).fit(given.true).inertia_
        )
        say(f"{name}: {len(given.true):,} points, scikit-learn's best of 10 has {best:.6g}")
        found = {(method, e): fits(given, method, e) for method in methods for e in EPSILONS}
        if peers:
            found |= {("diffprivlib", e): centres for e, centres in diffprivlib(given).items()}
        for (method, epsilon), (centres, took) in found.items():
            shares = [squares(given.true, each) / best for each in centres]
            means.setdefault(name, {}).setdefault(method, {})[epsilon] = round(float(np.mean(shares)), 4)
            deviations.setdefault(name, {}).setdefault(method, {})[epsilon] = round(float(np.std(shares, ddof=1)), 4)
            seconds.setdefault(name, {}).setdefault(method, {})[epsilon] = round(took, 3)
        for method, by_epsilon in means[name].items():
            shown = ", ".join(f"{e}: {mean:.4f} +- {deviations[name][method][e]:.4f}" for e, mean in by_epsilon.items())
            say(f"{name}, {method}: {shown} ({seconds[name][method]['1']:.2f} s a fit)")
    return means, deviations, seconds


def fits(data: Points, method: str, epsilon: str) -> tuple[list[NDArray[np.float64]], float]:
    """The centres of every run, in the units of distances, and the seconds that a fit takes."""
    centres, took = [], 0.0
    for run in range(RUNS):
        model = METHODS[method](data.k, epsilon, data.scaling, data.table.rows, run)
        private = fresh(data.table, epsilon)
        started = time.perf_counter()
        model.fit(private, progress=False)
        took += (time.perf_counter() - started) / RUNS
        centres.append(data.measured(model.cluster_centers_))
    return centres, took


def fresh(table: EncodedTable, epsilon: str) -> dm.PrivateTable:
    table.cache.clear()
    return dm.open(table, schema=table.schema, cap=epsilon).grant("miner", epsilon=epsilon)


def squares(true: NDArray[np.float64], centres: NDArray[np.float64]) -> float:
    """The sum of squared distances to the nearest centre, measured from the middle of the centres so that little is lost."""
    middle = centres.mean(axis=0)
    near = centres - middle
    total = 0.0
    for start in range(0, len(true), BLOCK):
        block = true[start : start + BLOCK] - middle
        away = (block * block).sum(axis=1)[:, None] - 2 * block @ near.T + (near * near).sum(axis=1)
        total += float(np.maximum(away.min(axis=1), 0).sum())
    return total


def diffprivlib(data: Points) -> dict[str, tuple[list[NDArray[np.float64]], float]]:
    """In an environment of its own: diffprivlib 0.6 needs a scikit-learn below 1.8."""
    python = peer_python(PEERS, "diffprivlib.models", "diffprivlib", "scikit-learn<1.8")
    low, high = data.bounds()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "points.npz"
        np.savez(file, points=data.true, low=low, high=high, k=data.k)
        script = Path(__file__).with_name("peer_kmeans.py")
        command = [python, "-E", script, file, ",".join(EPSILONS), str(RUNS)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return {e: ([np.array(centres) for centres in found[e]["centres"]], found[e]["seconds"]) for e in EPSILONS}


# -- speed -------------------------------------------------------------------------------------------------------------


def speed_of_a_grid(rows: int) -> dict[str, Any]:
    """A whole fit in 2 dimensions against one pass over the same codes that bins them into the same cells."""
    data = mixture(rows, 2, 15, NARROW, 4001)
    model = dm.KMeans(data.k, "1", scaling=data.scaling)
    space = model.space(data.table.schema)
    sides = grid_sides(space, data.k, rows, model.budget_for(data.table.schema).grid.epsilon)
    seconds = timed(data, bare=lambda: bare_bins(data.table, sides))
    ratio = seconds["fit"] / seconds["bare"]
    say(f"{rows:.0e} points, {sides} cells: fit {seconds['fit']:.3f} s, bare {seconds['bare']:.3f} s, {ratio:.2f}")
    return {"over_bare": round(ratio, 3), "over_bare_seconds": seconds, "over_bare_rows": rows, "over_bare_cells": sides}


def speed_of_a_tree(rows: int) -> dict[str, Any]:
    """A whole fit in 10 dimensions against scikit-learn's, which needs few steps where clusters do not touch."""
    cluster = peer("sklearn.cluster", "scikit-learn")
    ratios, seconds = {}, {}
    for name, deviation in (("wide", WIDE), ("narrow", NARROW)):
        data = mixture(rows, 10, 10, deviation)
        ordinary = cluster.KMeans(data.k, n_init=1, random_state=0)
        seconds[name] = timed(data, sklearn=lambda data=data, ordinary=ordinary: ordinary.fit(data.true))
        ratios[name] = round(seconds[name]["fit"] / seconds[name]["sklearn"], 2)
        say(f"{rows:.0e} points in 10 dimensions, {name}: {seconds[name]} s, {ratios[name]}, {ordinary.n_iter_} steps")
    worst = max(ratios.values())
    return {
        "over_sklearn": worst,
        "over_sklearn_by_data": ratios,
        "over_sklearn_seconds": seconds,
        "over_sklearn_rows": rows,
    }


def timed(data: Points, **other: Callable[[], Any]) -> dict[str, float]:
    """Median seconds of a whole fit from an opened table, and of something else, taking turns."""
    waiting: dict[str, dm.PrivateTable] = {}

    def prepare() -> None:
        waiting["private"] = fresh(data.table, "1")

    fit = lambda: dm.KMeans(data.k, "1", scaling=data.scaling, seed=0).fit(waiting["private"], progress=False)  # noqa: E731
    seconds = interleaved(TURNS, prepare=prepare, fit=fit, **other)
    return {name: round(median(times), 4) for name, times in seconds.items() if name != "prepare"}


def bare_bins(table: EncodedTable, sides: tuple[int, ...]) -> NDArray[np.int64]:
    """The least that any grid must do: look up the cell of each code, along each axis, and count."""
    total = np.zeros(int(np.prod(sides)), dtype=np.int64)
    columns = list(table.codes.values())
    cells = []
    for attribute, side in zip(table.schema.attributes, sides, strict=True):
        size = table.schema.single(attribute.name).cells
        cells.append(np.searchsorted(grid_starts(size, side), np.arange(size), side="right") - 1)
    for start in range(0, table.rows, CHUNK):
        rows = slice(start, start + CHUNK)
        place = cells[0][columns[0][rows]] * sides[1] + cells[1][columns[1][rows]]
        total += np.bincount(place, minlength=total.size)
    return total


if __name__ == "__main__":
    main()
