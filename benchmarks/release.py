"""Releasing a table: accuracy of learners on released rows, what each idea is worth, fidelity, peers and speed.

45,222 complete rows of Adult, public domains and taxonomies of `adult_schema(complete=True, taxonomies=True)`, a random two
thirds for training, 10 runs; the splits of a run are the same for all. Learners: C4.5 of `dpmine.baselines` on generalised
rows (test rows generalised by the same cuts), or scikit-learn's HistGradientBoostingClassifier with its default settings
(nominal attributes named as such) on rows drawn back into the raw domains, tested on raw rows.

Speed: DiffGen with the published score, h = 15 and epsilon 1 on Adult blown up to a million records as for figure 5 of the
paper, from an opened table to the released groups; `bare` are two passes over the same arrays: a bincount of (class, code)
for each attribute, then one of the number of every row's group and class under the cuts that this fit chose (or np.unique
where that is faster). `auto` is with threshold="auto", `published` with threshold=1, where the empty groups that noise lifts
over 1 are drawn, stored and handed out too. Needs DPMINE_DATA.

Keys:
    runs                                     of each method
    accuracy[method][epsilon]                the mean over the runs ("none": true rows, no privacy)
    accuracy_deviation[method][epsilon]      the standard deviation
    learners[learner][epsilon]               the same for other learners on TreeRelease's rows and on true rows
    learners_deviation[learner][epsilon]     the standard deviation
    contingency_rows_ratio[epsilon]          released rows of ContingencyTable over the training rows
    fidelity[name][epsilon][which]           the mean total variation distance between released rows and training rows, over
                                             the 15 columns (`one_way`) and over the 14 pairs of an attribute and the class
                                             (`with_class`); "test rows" is what sampling alone does
    ideas[name][epsilon]                     the accuracy of the steps from published DiffGen to TreeRelease
    ideas_deviation[name][epsilon]           the standard deviation
    rows_ratio[name][epsilon]                their released rows over the training rows
    rows_ratio_deviation[name][epsilon]      the standard deviation
    peer_seconds[method][epsilon]            (peers) how long dpmm's fits took; peers have 3 splits, and a delta of 1e-9
    peer_seconds_deviation[method][epsilon]  (peers) the standard deviation
    speed_runs                               how many turns the medians are of
    seconds[records][candidate]              medians, and how many groups were released
    over_bare                                fit over bare with `auto` at a million records
    over_bare_published                      the same with `published`
    over_bare_1e7                            the same as over_bare at ten million records
    over_bare_published_1e7                  the same with `published`
    peak_over_table                          the largest memory during a fit, the table included, over the encoded table
    peak_over_table_published                the same with `published`
    time_ratio_5x                            fit at a million records over fit at 200,000
    time_ratio_5x_published                  the same with `published`
    huge[what]                               a ContingencyTable of a million records
"""

from __future__ import annotations

import gc
import math
import os
import subprocess
import tempfile
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpmine as dm
from adult import CLASS
from dpmine.baselines import C45
from dpmine.datasets import adult as adult_rows
from dpmine.datasets import adult_schema, diffgen_blow_up
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.memory.sizes import CHUNK
from dpmine.facts.encoding import smallest_type
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.models.cuts import Cut, combinations, predictors
from dpmine.release.estimator import ReleaseEstimator
from dpmine.reproduce.release_runs import majority_accuracy, tds_accuracy
from dpmine.reproduce.tree_runs import Sample, fitted, part_of_table
from harness import ROOT, arguments, data_folder, finish, median, peer_python, say, sized

EPSILONS = sized(("0.1", "0.25", "0.5", "1"), rehearsal=("0.5", "1"))
ENDS = sized(("0.1", "1"), rehearsal=("1",))
NONE = "none"  # the epsilon of what is not private
RUNS = sized(10, rehearsal=2)
WORKERS = sized(2, rehearsal=1)

PEERS_DPMM = ROOT / ".venv-peers-dpmm"
MECHANISMS = ("MST", "AIM")
PEER_SPLITS = sized(3, rehearsal=2)

SPEED_RUNS = sized(7, rehearsal=1)
SPECIALISATIONS = 15
SMALL, MILLION, LARGE = sized((200_000, 1_000_000, 10_000_000), rehearsal=(200, 300, 400))
MOST_COUNTED = 2**25  # combinations that a bincount may have an entry for; with more, np.unique is faster
KINDS: dict[str, int | str] = {"auto": "auto", "published": 1}  # thresholds

Integers = NDArray[np.int64]
Rows = Mapping[str, NDArray[Any]]


def main() -> None:
    args = arguments(__doc__ or "", ["accuracy", "ideas", "peers", "speed"])
    data_folder()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # for workers: there is one for each core
    result: dict[str, Any] = {"runs": RUNS}
    if "accuracy" in args.names:
        measure_accuracy(result)
    if "ideas" in args.names:
        measure_ideas(result)
    if "peers" in args.names:
        measure_peers(result)
    if "speed" in args.names:
        measure_speed(result, [SMALL, MILLION] if args.quick else [SMALL, MILLION, LARGE])
    finish(result)


# -- splits ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def whole() -> EncodedTable:
    table = encode(open_source(adult_rows(complete=True)), adult_schema(complete=True, taxonomies=True))
    return part_of_table(table, np.arange(sized(table.rows, rehearsal=300)))


def training_rows(run: int) -> NDArray[np.bool_]:
    """Which rows are for training, the same for every method."""
    order = np.random.default_rng(run).permutation(whole().rows)
    chosen = np.zeros(whole().rows, dtype=np.bool_)
    chosen[order[: whole().rows * 2 // 3]] = True
    return chosen


def split(run: int) -> Sample:
    chosen = training_rows(run)
    return Sample(part_of_table(whole(), np.flatnonzero(chosen)), part_of_table(whole(), np.flatnonzero(~chosen)))


# -- learners ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Taught:
    """Rows that a learner is given, as codes of the raw domains, and their classes."""

    rows: Rows
    classes: NDArray[Any]
    schema: Schema

    @classmethod
    def of(cls, table: EncodedTable) -> Taught:
        return cls(table.codes, table.codes[CLASS], table.schema)


def boosting(taught: Taught, test: Rows, seed: int) -> Integers:
    from sklearn.ensemble import HistGradientBoostingClassifier

    nominal = [isinstance(attribute, Nominal) for attribute in predictors(taught.schema)]
    learner = HistGradientBoostingClassifier(categorical_features=nominal, random_state=seed)
    return by_sklearn(learner, plain_points, taught, test)


def forest(taught: Taught, test: Rows, seed: int) -> Integers:
    from sklearn.ensemble import RandomForestClassifier

    return by_sklearn(RandomForestClassifier(random_state=seed), one_hot, taught, test)


def unpruned_tree(taught: Taught, test: Rows, seed: int) -> Integers:
    from sklearn.tree import DecisionTreeClassifier

    return by_sklearn(DecisionTreeClassifier(random_state=seed), one_hot, taught, test)


def logistic(taught: Taught, test: Rows, seed: int) -> Integers:
    from sklearn.linear_model import LogisticRegression

    return by_sklearn(LogisticRegression(max_iter=1000), one_hot, taught, test)


def c45(taught: Taught, test: Rows, seed: int) -> Integers:
    tree = C45().fit_codes(dict(taught.rows), taught.classes, taught.schema)
    return tree.predict_codes(dict(test), len(test[CLASS]))


LEARNERS: dict[str, Callable[[Taught, Rows, int], Integers]] = {
    "boosting": boosting,
    "c4.5": c45,
    "random forest": forest,
    "logistic regression": logistic,
    "unpruned tree": unpruned_tree,
}
GENERALISED = "c4.5 on generalised rows"


def by_sklearn(learner: Any, points: Callable[[Rows, Schema], NDArray[Any]], taught: Taught, test: Rows) -> Integers:
    if len(np.unique(taught.classes)) < 2:  # there is nothing to learn: the one class, or the first if there is none
        return np.full(len(test[CLASS]), taught.classes[0] if len(taught.classes) else 0)
    learner.fit(points(taught.rows, taught.schema), taught.classes)
    predicted: Integers = learner.predict(points(test, taught.schema))
    return predicted


def plain_points(rows: Rows, schema: Schema) -> NDArray[Any]:
    return np.column_stack([rows[attribute.name] for attribute in predictors(schema)])


def one_hot(rows: Rows, schema: Schema) -> NDArray[Any]:
    """One column a category, numeric attributes scaled to [0, 1] by their public range."""
    parts = []
    for attribute in predictors(schema):
        codes = rows[attribute.name]
        nominal = isinstance(attribute, Nominal)
        scaled = codes[:, None].astype(np.float32) / (attribute.size - 1)
        parts.append(np.eye(attribute.size, dtype=np.float32)[codes] if nominal else scaled)
    return np.hstack(parts)


def on_generalised_rows(model: ReleaseEstimator, test: EncodedTable) -> Integers:
    """C4.5 on the released groups, each as often as its counts say; test rows are generalised by the same cuts."""
    released = model.release()
    group, label = np.nonzero(released.counts)
    rows = {
        name: released.groups[group, place].astype(smallest_type(len(values)))
        for place, (name, values) in enumerate(released.values.items())
    }
    counts = released.counts[group, label]
    tree = C45().fit_codes(rows, label.astype(np.uint8), released.generalised_schema(), weights=counts)
    return tree.predict_codes(model.transform_codes(test.codes, test.rows), test.rows)


def share_right(predicted: Integers, test: EncodedTable) -> float:
    return float(np.mean(predicted == test.codes[CLASS]))


# -- fidelity ----------------------------------------------------------------------------------------------------------


def distances(rows: Rows, classes: NDArray[Any], training: EncodedTable) -> dict[str, float]:
    """Mean total variation distances to the training rows, of columns and of attributes with the class."""
    attributes = predictors(training.schema)
    labels = len(training.schema.class_labels)
    truth = training.codes[CLASS]
    pairs = [(rows[a.name], training.codes[a.name], a.size) for a in attributes]
    one_way = [distance(released, true, size) for released, true, size in [*pairs, (classes, truth, labels)]]
    with_class = [
        distance(released.astype(np.int64) * labels + classes, true.astype(np.int64) * labels + truth, size * labels)
        for released, true, size in pairs
    ]
    return {"one_way": float(np.mean(one_way)), "with_class": float(np.mean(with_class))}


def distance(released: NDArray[Any], true: NDArray[Any], size: int) -> float:
    if not len(released):
        return 1.0
    shares = [np.bincount(codes, minlength=size) / len(codes) for codes in (released, true)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


# -- one run -----------------------------------------------------------------------------------------------------------

RELEASES: dict[str, Callable[[str], ReleaseEstimator]] = {
    "diffgen": lambda e: dm.DiffGen(e),
    "diffgen h=4": lambda e: dm.DiffGen(e, specialisations=4),
    "diffgen infogain": lambda e: dm.DiffGen(e, score="infogain"),
    "ours": lambda e: dm.TreeRelease(e),
    "contingency": lambda e: dm.ContingencyTable(e),
}


def with_ideas(**ideas: Any) -> Callable[[str], ReleaseEstimator]:
    return lambda e: dm.DiffGen(e, **ideas)


MONOTONE = {"calibration": "monotone"}
JOINT = {**MONOTONE, "points": "joint"}
GINI = {**JOINT, "score": "gini-gain"}
RETURNED = {**GINI, "leftover": True}
ADDING_UP = {**RETURNED, "total_share": 0.02}
ADAPTIVE = {**ADDING_UP, "specialisations": "auto"}
FREQUENT = {**ADAPTIVE, "frequency_share": 0.1}

IDEAS: dict[str, tuple[Callable[[str], ReleaseEstimator], str]] = {
    "DiffGen as published (Max, h = 10)": (with_ideas(), GENERALISED),
    "+ R of monotone scores": (with_ideas(**MONOTONE), GENERALISED),
    "+ points chosen with values": (with_ideas(**JOINT), GENERALISED),
    "+ gain of Max as score": (with_ideas(**{**JOINT, "score": "max-gain"}), GENERALISED),
    "+ gain of Gini as score instead": (with_ideas(**GINI), GENERALISED),
    "+ leftover budget": (with_ideas(**RETURNED), GENERALISED),
    "+ counts add up to a noisy total": (with_ideas(**ADDING_UP), GENERALISED),
    "+ h follows from the rows": (with_ideas(**ADAPTIVE), GENERALISED),
    "+ raw rows, drawn evenly, and boosting": (with_ideas(**ADAPTIVE), "boosting"),
    "+ raw rows drawn by frequencies": (with_ideas(**FREQUENT), "boosting"),
    "TreeRelease without frequencies": (lambda e: dm.TreeRelease(e, frequency_share=0), "boosting"),
    "TreeRelease": (lambda e: dm.TreeRelease(e), "boosting"),
    "published DiffGen, raw rows and boosting": (with_ideas(), "boosting"),
    "TreeRelease, c4.5 on generalised rows": (lambda e: dm.TreeRelease(e), GENERALISED),
}
FIDELITY = {
    "diffgen": "DiffGen as published (Max, h = 10)",
    "diffgen + frequencies": "+ raw rows drawn by frequencies",
    "ours": "TreeRelease",
}


@dataclass(frozen=True)
class Case:
    """What to release, at which epsilon, in which run, and who learns from it; `kind` names the table of releases."""

    kind: str
    name: str
    epsilon: str
    run: int
    learners: tuple[str, ...]


def one_run(case: Case) -> dict[str, float]:
    """The accuracy of each learner, and what else is measured."""
    sample = split(case.run)
    if case.kind == "true rows":
        return on_true_rows(case, sample)
    make = RELEASES[case.name] if case.kind == "RELEASES" else IDEAS[case.name][0]
    model = fitted(make(case.epsilon), sample.training)
    released = model.release()
    measures = {"rows_ratio": len(released) / sample.training.rows}
    if GENERALISED in case.learners:
        measures[GENERALISED] = share_right(on_generalised_rows(model, sample.test), sample.test)
    rows, classes = released.raw_codes(case.run)
    taught = Taught(rows, classes, whole().schema)
    return measures | by_learners(taught, case, sample.test) | distances(rows, classes, sample.training)


def on_true_rows(case: Case, sample: Sample) -> dict[str, float]:
    """NOT PRIVATE: what the training rows themselves would have taught."""
    measures = {"majority": majority_accuracy(sample) / 100, "tds k=5": tds_accuracy(sample, k=5) / 100}
    measures |= distances(sample.test.codes, sample.test.codes[CLASS], sample.training)
    return measures | by_learners(Taught.of(sample.training), case, sample.test)


def by_learners(taught: Taught, case: Case, test: EncodedTable) -> dict[str, float]:
    names = [name for name in case.learners if name != GENERALISED]
    return {name: share_right(LEARNERS[name](taught, test.codes, case.run), test) for name in names}


_pool: list[ProcessPoolExecutor] = []


def in_parallel(kind: str, name: str, epsilon: str, learners: Iterable[str]) -> dict[str, list[float]]:
    """All runs of a release: for each measure a list with one number a run."""
    if not _pool:
        _pool.append(ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")))
    cases = [Case(kind, name, epsilon, run, tuple(learners)) for run in range(RUNS)]
    return gathered(_pool[0].map(one_run, cases))


def gathered(measured: Iterable[dict[str, float]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for measures in measured:
        for measure, number in measures.items():
            found[measure].append(number)
    return found


def mean(numbers: Sequence[float]) -> float:
    return round(float(np.mean(numbers)), 4)


def deviation(numbers: Sequence[float]) -> float:
    return round(float(np.std(numbers, ddof=1)), 4)


def record(result: dict[str, Any], key: str, name: str, epsilon: str, numbers: Sequence[float]) -> None:
    """The mean and the deviation of the runs."""
    result.setdefault(key, {}).setdefault(name, {})[epsilon] = mean(numbers)
    result.setdefault(f"{key}_deviation", {}).setdefault(name, {})[epsilon] = deviation(numbers)
    say(f"{key}: {name}, epsilon {epsilon}: {mean(numbers):.4f} +- {deviation(numbers):.4f}")


def record_fidelity(result: dict[str, Any], name: str, epsilon: str, found: Mapping[str, Sequence[float]]) -> None:
    both = {measure: mean(found[measure]) for measure in ("one_way", "with_class")}
    result.setdefault("fidelity", {}).setdefault(name, {})[epsilon] = both
    say(f"fidelity: {name}, epsilon {epsilon}: {both}")


# -- accuracy ----------------------------------------------------------------------------------------------------------


def measure_accuracy(result: dict[str, Any]) -> None:
    found = in_parallel("true rows", "raw", NONE, LEARNERS)
    for name, measure in (("LA", "majority"), ("tds k=5", "tds k=5"), ("raw", "boosting"), ("raw c4.5", "c4.5")):
        record(result, "accuracy", name, NONE, found[measure])
    for learner in LEARNERS:
        record(result, "learners", learner, NONE, found[learner])
    record_fidelity(result, "test rows", NONE, found)
    for epsilon in EPSILONS:
        learners = LEARNERS if epsilon in ENDS else ("boosting", "c4.5")
        found = in_parallel("RELEASES", "ours", epsilon, learners)
        record(result, "accuracy", "ours", epsilon, found["boosting"])
        record(result, "accuracy", "ours c4.5", epsilon, found["c4.5"])
        for learner in learners if epsilon in ENDS else ():
            record(result, "learners", learner, epsilon, found[learner])
        for name in ("diffgen", "diffgen h=4", "diffgen infogain"):
            found = in_parallel("RELEASES", name, epsilon, (GENERALISED,))
            record(result, "accuracy", name, epsilon, found[GENERALISED])
        found = in_parallel("RELEASES", "contingency", epsilon, ("boosting",))
        record(result, "accuracy", "contingency", epsilon, found["boosting"])
        result.setdefault("contingency_rows_ratio", {})[epsilon] = mean(found["rows_ratio"])


def measure_ideas(result: dict[str, Any]) -> None:
    for epsilon in ENDS:
        for name, (_, learner) in IDEAS.items():
            found = in_parallel("IDEAS", name, epsilon, (learner,))
            record(result, "ideas", name, epsilon, found[learner])
            record(result, "rows_ratio", name, epsilon, found["rows_ratio"])
            for shown, idea in FIDELITY.items():
                if idea == name:
                    record_fidelity(result, shown, epsilon, found)


# -- peers -------------------------------------------------------------------------------------------------------------


def measure_peers(result: dict[str, Any]) -> None:
    """dpmm's AIM and MST, judged by the same learner as ours. They need numpy 1.26, so they run on their own."""
    python = peer_environment()
    schema = whole().schema
    names = [*(attribute.name for attribute in predictors(schema)), CLASS]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        file = Path(folder) / "splits.npz"
        np.savez(
            file,
            codes=np.column_stack([whole().codes[name].astype(np.int64) for name in names]),
            sizes=np.array([schema.single(name).size for name in names]),
            training=np.array([training_rows(run) for run in range(PEER_SPLITS)]),
        )

        def one(mechanism: str, epsilon: str, run: int) -> dict[str, float]:
            made = Path(folder) / f"{mechanism}-{epsilon}-{run}.npz"
            script = Path(__file__).with_name("peer_dpmm.py")
            subprocess.run([python, "-E", script, file, mechanism, epsilon, str(run), made], check=True)
            found = np.load(made)
            measures = judged(dict(zip(names, found["codes"].T, strict=True)), run)
            say(f"{mechanism}, epsilon {epsilon}, split {run}: {float(found['seconds']):.0f} s, {measures['boosting']:.4f}")
            return measures | {"seconds": float(found["seconds"])}

        cases = [(mechanism, epsilon, run) for run in range(PEER_SPLITS) for epsilon in ENDS for mechanism in MECHANISMS]
        measured = dict(zip(cases, pool.map(lambda case: one(*case), cases), strict=True))
    for mechanism in MECHANISMS:
        for epsilon in ENDS:
            name = f"dpmm {mechanism}"
            found = gathered(measured[mechanism, epsilon, run] for run in range(PEER_SPLITS))
            record(result, "accuracy", name, epsilon, found["boosting"])
            record(result, "peer_seconds", name, epsilon, found["seconds"])
            record_fidelity(result, name, epsilon, found)


def judged(rows: Rows, run: int) -> dict[str, float]:
    sample = split(run)
    taught = Taught(rows, rows[CLASS], whole().schema)
    right = share_right(boosting(taught, sample.test.codes, run), sample.test)
    return {"boosting": right} | distances(rows, rows[CLASS], sample.training)


def peer_environment() -> Path:
    """The python of an environment with dpmm."""
    return peer_python(PEERS_DPMM, "dpmm.models.aim", "dpmm==0.1.9")


# -- speed -------------------------------------------------------------------------------------------------------------


def measure_speed(result: dict[str, Any], sizes: Sequence[int]) -> None:
    result |= {"speed_runs": SPEED_RUNS, "seconds": {}}
    for records in sizes:
        table = blown_up_table(records)
        seconds = fit_against_bare(table)
        result["seconds"][f"{records:.0e}"] = {name: round(each, 4) for name, each in seconds.items()}
        say(f"{records:.0e} records: " + ", ".join(f"{name} {each:.3f}" for name, each in seconds.items()))
        for name, kind in (("", "auto"), ("_published", "published")):
            ratio = round(seconds[f"fit {kind}"] / seconds[f"bare {kind}"], 2)
            if records == MILLION:
                result[f"over_bare{name}"] = ratio
                result[f"peak_over_table{name}"] = round(1 + peak_bytes(table, diffgen(kind)) / table.bytes, 2)
            elif records == LARGE:
                result[f"over_bare{name}_1e7"] = ratio
        if records == MILLION:
            result["huge"] = huge(table)
        del table
        gc.collect()
    for name, kind in (("", "auto"), ("_published", "published")):
        small, large = (result["seconds"][f"{records:.0e}"][f"fit {kind}"] for records in (SMALL, MILLION))
        result[f"time_ratio_5x{name}"] = round(large / small, 2)


def blown_up_table(records: int) -> EncodedTable:
    """As many records of a blow-up of Adult, as for figure 5 of the paper."""
    larger = diffgen_blow_up(whole(), math.ceil(records / whole().rows), seed=1)
    schema = replace(larger.schema, rows_at_most=records)
    columns = {name: values[:records].copy() for name, values in larger.values.items()}
    return EncodedTable(schema, records, columns, {}, larger.encoding)


def diffgen(kind: str) -> dm.DiffGen:
    return dm.DiffGen(1, specialisations=SPECIALISATIONS, threshold=KINDS[kind])


def fresh(table: EncodedTable) -> dm.PrivateTable:
    table.cache.clear()
    return dm.open(table, schema=table.schema, cap=1).grant("miner", epsilon=1)


def seconds_of(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def fit_against_bare(table: EncodedTable) -> dict[str, float]:
    """Median seconds of fits and of the bare passes for the cuts that they chose, taking turns, and the released groups."""
    taken: dict[str, list[float]] = defaultdict(list)
    for _ in range(SPEED_RUNS):
        for kind in KINDS:
            private, model = fresh(table), diffgen(kind)
            taken[f"fit {kind}"].append(seconds_of(lambda: model.fit(private, progress=False)))  # noqa: B023
            taken[f"groups {kind}"].append(len(model.release().groups))
            table.cache.clear()
            cuts = list(model.cuts_.values())
            counted = combinations(cuts, len(table.schema.class_labels)) <= MOST_COUNTED
            first = seconds_of(lambda: bare_first(table))
            by_sorting = seconds_of(lambda: bare_second(table, cuts, sort=True))  # noqa: B023
            by_bincount = seconds_of(lambda: bare_second(table, cuts, sort=False)) if counted else math.inf  # noqa: B023
            taken[f"bare {kind}"].append(first + min(by_sorting, by_bincount))
    return {name: median(numbers) for name, numbers in taken.items()}


def bare_first(table: EncodedTable) -> None:
    """The least that choosing must do: count (class, code) of each attribute."""
    target = table.codes[CLASS]
    classes = len(table.schema.class_labels)
    columns = [(table.codes[a.name], a.size) for a in predictors(table.schema)]
    totals = [np.zeros(classes * size, dtype=np.int64) for _, size in columns]
    for start in range(0, table.rows, CHUNK):
        rows = slice(start, start + CHUNK)
        base = target[rows].astype(np.intp)
        for (column, size), total in zip(columns, totals, strict=True):
            total += np.bincount(base * size + column[rows], minlength=total.size)


def bare_second(table: EncodedTable, cuts: Sequence[Cut], *, sort: bool) -> None:
    """The least that releasing must do: count the rows of every group and class, which are numbered in mixed radix."""
    classes = len(table.schema.class_labels)
    size = combinations(cuts, classes)
    stride, lookups = classes, []
    for cut in cuts:
        if len(cut) > 1:
            numbers = np.zeros(cut.attribute.size, dtype=np.int64)
            for number, value in enumerate(cut.values()):
                numbers[list(value.codes)] = number * stride
            lookups.append((table.codes[cut.attribute.name], numbers))
            stride *= len(cut)
    found = np.empty(table.rows, dtype=np.int64)
    for start in range(0, table.rows, CHUNK):
        rows = slice(start, start + CHUNK)
        found[rows] = table.codes[CLASS][rows]
        for column, numbers in lookups:
            found[rows] += np.take(numbers, column[rows])
    if sort:
        np.unique(found, return_counts=True)
    else:
        np.bincount(found, minlength=size)


def peak_bytes(table: EncodedTable, model: ReleaseEstimator) -> int:
    """The largest memory that a fit holds beside the encoded table."""
    private = fresh(table)
    tracemalloc.start()
    model.fit(private, progress=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    table.cache.clear()
    return peak


def huge(table: EncodedTable) -> dict[str, Any]:
    """Every combination of raw values, numeric ones in 10 bins: far more than could ever be listed."""
    times = []
    for _ in range(SPEED_RUNS):
        private = fresh(table)
        started = time.perf_counter()
        model = dm.ContingencyTable(1).fit(private, progress=False)
        times.append(time.perf_counter() - started)
    cells = combinations(list(model.cuts_.values()), len(table.schema.class_labels))
    peak = peak_bytes(table, dm.ContingencyTable(1)) / 1e6
    found = {"combinations": float(cells), "seconds": round(median(times), 3), "peak_mb": round(peak, 1)}
    say(f"contingency table: {found}")
    return found


if __name__ == "__main__":
    main()
