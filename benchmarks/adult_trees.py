"""Accuracy and AUC on Adult by 10-fold cross-validation: every tree and forest here, diffprivlib's, and scikit-learn's tree.

45,222 complete rows (training and test part together). Public bounds, the same for everybody: age 15 to 95 by 1, fnlwgt
0 to 1,500,000 by 10,000, education_num 1 to 20 by 1, capital_gain 0 to 100,000 by 500, capital_loss 0 to 5,000 by 50,
hours_per_week 1 to 100 by 1; categories and taxonomies as published; at most 50,000 rows. Needs DPMINE_DATA.

Keys:
    folds                                    of a cross-validation
    repetitions                              of a cross-validation
    accuracy[algorithm][epsilon]             the mean over all folds of all repetitions (scikit-learn and peers: of one)
    auc[algorithm][epsilon]                  the same of the area under the curve
    accuracy_deviation[algorithm][epsilon]   the standard deviation over folds
    auc_deviation[algorithm][epsilon]        the same of the area under the curve
    ideas[name][epsilon]                     the accuracy of TreeClassifier with one idea switched off, and of the steps from
                                             DiffP-C4.5 to it
    fit_mean[algorithm]                      the mean accuracy over 50 fits on one fixed split at epsilon 1
    fit_deviation[algorithm]                 its standard deviation
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import dpmine as dm
from adult import CLASS
from dpmine.datasets import adult as adult_rows
from dpmine.datasets import adult_schema
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.facts.sources import open_source
from dpmine.reproduce.tree_runs import part_of_table
from harness import PEERS, arguments, data_folder, finish, peer_python, say, sized

EPSILONS = sized(("0.1", "0.5", "1", "2", "4"), rehearsal=("1",))
IDEA_EPSILONS = sized(("0.1", "0.5", "1"), rehearsal=("1",))
FOLDS = sized(10, rehearsal=2)
REPETITIONS = sized(5, rehearsal=1)
IDEA_REPETITIONS = sized(3, rehearsal=1)
FITS = sized(50, rehearsal=2)
WORKERS = sized(2, rehearsal=1)

ALGORITHMS: dict[str, Callable[[str], Any]] = {
    "TreeClassifier": lambda e: dm.TreeClassifier(e),
    "GreedyForest": lambda e: dm.GreedyForest(e),
    "RandomForest": lambda e: dm.RandomForest(e),
    "DiffP-C4.5 max": lambda e: dm.DiffPC45(e, 5, "max"),
    "DiffP-C4.5 gini": lambda e: dm.DiffPC45(e, 5, "gini"),
    "DiffP-C4.5 infogain": lambda e: dm.DiffPC45(e, 5, "infogain"),
    "DiffP-ID3 max": lambda e: dm.DiffPID3(e, 5, "max"),
    "DiffP-ID3 gini": lambda e: dm.DiffPID3(e, 5, "gini"),
    "SuLQ-ID3": lambda e: dm.SulqID3(e, 5),
}


def main() -> None:
    args = arguments(__doc__ or "", ["ours", "ideas", "deviation", "sklearn", "peers"], peers=("sklearn", "peers"))
    data_folder()
    result: dict[str, Any] = {"folds": FOLDS, "repetitions": REPETITIONS, "accuracy": {}, "auc": {}}
    result |= {"accuracy_deviation": {}, "auc_deviation": {}}
    if "ours" in args.names:
        for name in ALGORITHMS:
            record(result, name, run_all("ALGORITHMS", name))
    if "ideas" in args.names:
        result["ideas"] = {}
        for name in IDEAS:
            runs = run_all("IDEAS", name, IDEA_EPSILONS, IDEA_REPETITIONS)
            result["ideas"][name] = {e: round(float(np.mean([a for a, _ in pairs])), 4) for e, pairs in runs.items()}
            say(f"{name}: {result['ideas'][name]}")
    if "deviation" in args.names:
        result["fit_deviation"], result["fit_mean"] = {}, {}
        for name in ("TreeClassifier", "GreedyForest", "RandomForest", "DiffP-C4.5 max", "DiffP-C4.5 gini"):
            accuracies = in_parallel([("ALGORITHMS", name, "1", 0, 0)] * FITS)
            result["fit_deviation"][name] = round(float(np.std([a for a, _ in accuracies], ddof=1)), 5)
            result["fit_mean"][name] = round(float(np.mean([a for a, _ in accuracies])), 4)
            say(f"{FITS} fits of {name}: {result['fit_mean'][name]} +- {result['fit_deviation'][name]}")
    if "sklearn" in args.names:
        for depth in (5, None):
            name = f"scikit-learn tree depth {depth}" if depth else "scikit-learn tree, full depth"
            record(result, name, {"none": in_parallel([("sklearn", str(depth or 0), "none", 0, f) for f in range(FOLDS)])})
    if "peers" in args.names:
        for measure, found in diffprivlib().items():
            for name, by_epsilon in found.items():
                for epsilon, values in by_epsilon.items():
                    result[measure].setdefault(name, {})[epsilon] = round(float(np.mean(values)), 4)
                    result[f"{measure}_deviation"].setdefault(name, {})[epsilon] = round(float(np.std(values, ddof=1)), 4)
    finish(result)


def record(result: dict[str, Any], name: str, runs: dict[str, list[tuple[float, float]]]) -> None:
    for epsilon, pairs in runs.items():
        for measure, values in zip(("accuracy", "auc"), zip(*pairs, strict=True), strict=True):
            result[measure].setdefault(name, {})[epsilon] = round(float(np.mean(values)), 4)
            result[f"{measure}_deviation"].setdefault(name, {})[epsilon] = round(float(np.std(values, ddof=1)), 4)
    say(f"{name}: " + ", ".join(f"{e}: {result['accuracy'][name][e]:.4f} / {result['auc'][name][e]:.4f}" for e in runs))


# -- one fit ----------------------------------------------------------------------------------------------------------

_loaded: dict[str, Any] = {}


def whole() -> EncodedTable:
    if "table" not in _loaded:
        schema = adult_schema(complete=True, taxonomies=True)
        table = encode(open_source(adult_rows(complete=True)), schema)
        _loaded["table"] = part_of_table(table, np.arange(sized(table.rows, rehearsal=400)))
    return _loaded["table"]


def fold_numbers(repetition: int) -> np.ndarray:
    """The fold of every row, the same for every algorithm."""
    order = np.random.default_rng(repetition).permutation(whole().rows)
    folds = np.empty(whole().rows, dtype=np.int64)
    folds[order] = np.arange(whole().rows) % FOLDS
    return folds


def one_fit(case: tuple[str, str, str, int, int]) -> tuple[float, float]:
    """Accuracy and AUC on the held-out fold."""
    kind, name, epsilon, repetition, fold = case
    table = whole()
    held_out = fold_numbers(repetition) == fold
    target = table.codes[CLASS].astype(np.int64)
    if kind == "sklearn":
        shares = sklearn_shares(table, int(name) or None, held_out)
        return accuracy_and_auc(shares, target[held_out])
    train = EncodedTable(
        table.schema,
        int((~held_out).sum()),
        {column: values[~held_out] for column, values in table.values.items()},
        {},
        table.encoding,
    )
    private = dm.open(train, schema=table.schema, cap=epsilon).grant("miner", epsilon=epsilon)
    model = (ALGORITHMS if kind == "ALGORITHMS" else IDEAS)[name](epsilon).fit(private)
    rows = {column: codes[held_out] for column, codes in table.codes.items()}
    sums = model.trees_.sums(rows, int(held_out.sum()), table.schema)
    return accuracy_and_auc(sums[:, 1] / sums.sum(axis=1), target[held_out], sums.argmax(axis=1))


def accuracy_and_auc(shares: np.ndarray, truth: np.ndarray, predicted: np.ndarray | None = None) -> tuple[float, float]:
    predicted = (shares > 0.5).astype(np.int64) if predicted is None else predicted
    _, ranks = np.unique(shares, return_inverse=True)
    negatives, positives = np.bincount(ranks[truth == 0]), np.bincount(ranks[truth == 1])
    size = max(len(negatives), len(positives))
    negatives, positives = np.resize(padded(negatives, size), size), padded(positives, size)
    below = np.cumsum(negatives) - negatives
    area = float(np.sum(positives * (below + negatives / 2)) / (negatives.sum() * positives.sum()))
    return float(np.mean(predicted == truth)), area


def padded(counts: np.ndarray, size: int) -> np.ndarray:
    return np.pad(counts, (0, size - len(counts)))


def sklearn_shares(table: EncodedTable, depth: int | None, held_out: np.ndarray) -> np.ndarray:
    """scikit-learn's tree on one column a category."""
    from sklearn.tree import DecisionTreeClassifier

    parts = []
    for attribute in table.schema.attributes:
        if attribute.name != CLASS:
            codes = table.codes[attribute.name]
            nominal = isinstance(attribute, dm.Nominal)
            parts.append(np.eye(attribute.size, dtype=np.float32)[codes] if nominal else codes[:, None].astype(np.float32))
    points = np.hstack(parts)
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
    tree.fit(points[~held_out], table.codes[CLASS][~held_out])
    shares: np.ndarray = tree.predict_proba(points[held_out])[:, 1]
    return shares


def run_all(
    kind: str, name: str, epsilons: tuple[str, ...] = EPSILONS, repetitions: int = REPETITIONS
) -> dict[str, list[tuple[float, float]]]:
    cases = [(kind, name, e, r, f) for e in epsilons for r in range(repetitions) for f in range(FOLDS)]
    results = in_parallel(cases)
    size = repetitions * FOLDS
    return {e: results[place * size : (place + 1) * size] for place, e in enumerate(epsilons)}


_pool: list[ProcessPoolExecutor] = []


def in_parallel(cases: list[tuple[str, str, str, int, int]]) -> list[tuple[float, float]]:
    if not _pool:
        _pool.append(ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")))
    return list(_pool[0].map(one_fit, cases, chunksize=5))


# -- peers ------------------------------------------------------------------------------------------------------------


def diffprivlib() -> dict[str, dict[str, dict[str, list[float]]]]:
    """In an environment of its own: diffprivlib 0.6 needs a scikit-learn below 1.8."""
    python = peer_python(PEERS, "diffprivlib.models", "diffprivlib", "scikit-learn<1.8")
    table = whole()
    attributes = [a for a in table.schema.attributes if a.name != CLASS]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "folds.npz"
        np.savez(
            file,
            codes=np.column_stack([table.codes[a.name].astype(np.int64) for a in attributes]),
            sizes=np.array([a.size for a in attributes]),
            nominal=np.array([isinstance(a, dm.Nominal) for a in attributes]),
            target=table.codes[CLASS].astype(np.int64),
            folds=np.array([fold_numbers(0)]),
        )
        script = Path(__file__).with_name("peer_diffprivlib.py")
        command = [python, "-E", script, file, ",".join(EPSILONS)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, dict[str, dict[str, list[float]]]] = json.loads(done.stdout.splitlines()[-1])
    return found


# -- ideas, one at a time ----------------------------------------------------------------------------------------------

PLAIN: dict[str, Any] = {
    "max_depth": 5,
    "criterion": "gini",
    "leaf_share": 0.3,
    "level_ratio": 1.0,
    "stopping": 0.0,
    "splits": "multiway",
    "calibration": "generic",
    "leftover": False,
    "smoothing": 0.0,
}


def with_ideas(**ideas: Any) -> Callable[[str], Any]:
    """The plain tree with some ideas switched on."""
    return lambda e: dm.TreeClassifier(e, **{**PLAIN, **ideas})


def without(**ideas: Any) -> Callable[[str], Any]:
    """The whole tree with some ideas switched off."""
    return lambda e: dm.TreeClassifier(e, **ideas)


TWO_SIDED = {"calibration": "monotone", "splits": "binary"}
IDEAS: dict[str, Callable[[str], Any]] = {
    "from DiffP-C4.5 (gini, depth 5)": lambda e: dm.DiffPC45(e, 5, "gini"),
    "+ one joint choice, no counts of rows (depth 3: multiway splits shatter)": with_ideas(max_depth=3),
    "+ R of monotone scores (depth 3)": with_ideas(calibration="monotone", max_depth=3),
    "+ binary splits (depth 5)": with_ideas(**TWO_SIDED),
    "+ mixed score": with_ideas(**TWO_SIDED, criterion="mixed"),
    "+ level shares, less for leaves": with_ideas(**TWO_SIDED, criterion="mixed", level_ratio=1.4, leaf_share=0.2),
    "= TreeClassifier (+ automatic depth, staying whole, leftover, smoothing, multiway for few)": without(),
    "without the mixed score (gini)": without(criterion="gini"),
    "without the mixed score (max)": without(criterion="max"),
    "without R of monotone scores": without(calibration="generic"),
    "without multiway splits": without(splits="binary"),
    "without level shares": without(level_ratio=1.0),
    "without staying whole": without(stopping=0.0),
    "without leftover budget": without(leftover=False),
    "without smoothing": without(smoothing=0.0),
    "with least squares over the middle level": without(inner_share=0.3),
    "with depth 5": without(max_depth=5),
}

if __name__ == "__main__":
    main()
