"""Accuracy against epsilon and rows, and who is on the Pareto front: Friedman and Schuster 2010, Figure 2, as a tool.

A mean is on the front when no other one was reached with at most its epsilon and at most its rows and is at least as
accurate. On a table of the user's, which must be public, this says which algorithm to take for private tables like it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from dpmine.base.errors import RequestError
from dpmine.base.public_random import public_generator
from dpmine.datasets import RandomTree
from dpmine.engines.encoding import EncodedTable
from dpmine.facts.facts import Unit
from dpmine.facts.schema import Schema
from dpmine.reproduce.experiments import Case, Experiment, Measures, Outcome, Scene, grid, stable_seed
from dpmine.reproduce.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, Picture, Style
from dpmine.reproduce.plots import draw
from dpmine.reproduce.records import Record
from dpmine.reproduce.significance import corrected_t_test, paired_differences
from dpmine.reproduce.summaries import Row, row_form, summarise, write_csv
from dpmine.reproduce.tree_runs import Sample, accuracy, encoded, part_of_table

REFERENCE = "C4.5"
TREE_ALGORITHMS = (
    *("TreeClassifier", "GreedyForest", "RandomForest"),
    *("DiffP-C4.5 Gini", "DiffP-C4.5 Max", "DiffP-ID3 Gini", "DiffP-ID3 Max", "SuLQ-ID3", REFERENCE),
)
STYLES = {
    "TreeClassifier": Style(BLUE, "o"),
    "GreedyForest": Style(PURPLE, "P"),
    "RandomForest": Style(SKY, "X"),
    "DiffP-C4.5 Gini": Style(ORANGE, "s"),
    "DiffP-C4.5 Max": Style(GREEN, "D"),
    "DiffP-ID3 Gini": Style(ORANGE, "s", ":"),
    "DiffP-ID3 Max": Style(GREEN, "D", ":"),
    "SuLQ-ID3": Style(RED, "^"),
    REFERENCE: Style(GREY, "", "--"),
}
EPSILONS, QUICK_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0), (0.1, 0.5, 2.0)
ROWS, QUICK_ROWS = (1000, 5000, 20_000, 50_000), (2000, 20_000)
RUNS, QUICK_RUNS = 20, 10
TREES, DEPTH, NOISE, TEST_ROWS = 10, 5, 0.1, 10_000
MOST_FOR_TRAINING = 0.8  # of a user's table; the rest is for testing
SHARES = (1 / 16, 1 / 4, 1.0)  # of the training rows, where the user names no sizes
LEVEL = 0.05  # of the paired t-test that tells whether another algorithm is as good as the best


# -- data --------------------------------------------------------------------------------------------------------------


def generated(scene: Scene) -> Sample:
    """Noisy rows labelled by one of ten random trees of depth 5 over 7 binary and 3 numeric attributes; clean tests."""
    number, rows = scene.repetition % TREES, int(scene.point["rows"])
    tree = RandomTree.draw(depth=DEPTH, nominal=7, numeric=3, seed=stable_seed("frontier tree", number))
    schema = tree.schema(rows_at_most=rows)
    training = tree.sample(rows, noise=NOISE, seed=stable_seed(scene.seed, "training"))
    test = tree.sample(TEST_ROWS, seed=stable_seed(scene.seed, "test"))
    return Sample(encoded(training, schema), encoded(test, schema))


def from_file(table: str, schema: str, scene: Scene) -> Sample:
    """Other rows of a public table for training in each repetition, and of those left at most 10,000 for testing."""
    rows, whole = int(scene.point["rows"]), public_table(table, schema)
    order = public_generator(stable_seed("frontier rows", scene.repetition)).permutation(whole.rows)
    first_test = max(training_rows(whole), whole.rows - TEST_ROWS)
    facts = replace(whole.schema, rows_at_most=rows)
    return Sample(part_of_table(whole, order[:rows], facts), part_of_table(whole, order[first_test:], facts))


@lru_cache(maxsize=1)
def public_table(table: str, schema: str) -> EncodedTable:
    """A user's table. Trees read no lists, and rows are what is counted, so lists and persons are left out."""
    facts = Schema.load(schema)
    facts.require_class()
    return encoded(table, replace(facts, attributes=facts.singles, unit=Unit()))


def training_rows(table: EncodedTable) -> int:
    return int(table.rows * MOST_FOR_TRAINING)


def measured(depth: int, case: Case, sample: Sample) -> Measures:
    epsilon = float(case.point.get("epsilon", 1.0))
    return {"accuracy": accuracy(case.algorithm, sample, epsilon=epsilon, depth=depth)}


# -- the experiment ----------------------------------------------------------------------------------------------------


def tree_frontier(
    *,
    data: Path | None = None,
    schema: Path | None = None,
    epsilons: Sequence[float] = (),
    rows: Sequence[int] = (),
    depth: int = DEPTH,
) -> Experiment:
    """Trees over a grid of epsilons and sizes; `depth` is that of the algorithms that do not choose their own."""
    if (data is None) != (schema is None):
        raise RequestError("A table needs its schema and a schema its table: give both --data and --schema, or neither.")
    if any(not 0 < epsilon < 1000 for epsilon in epsilons) or any(size < 10 for size in rows):
        raise RequestError("Epsilons must lie above 0 and below 1000, and sizes be at least 10 rows.")
    settings: dict[str, Any] = {"depth": depth}
    if data is None or schema is None:
        name, title, generate = "frontier-tree", "Trees on generated data", generated
        settings |= {"noise": NOISE, "trees": TREES, "test_rows": TEST_ROWS}
        sizes, quick_sizes = tuple(rows) or ROWS, tuple(rows) or QUICK_ROWS
    else:
        whole = public_table(str(data), str(schema))
        name, title = f"frontier-tree-{whole.schema.name}", f"Trees on {whole.schema.name}"
        generate = partial(from_file, str(data), str(schema))
        settings |= {"data": _digest(data), "schema": _digest(schema)}
        sizes = quick_sizes = _sizes(whole, rows)
    return Experiment(
        name=name,
        title=f"{title}: accuracy against epsilon",
        source="The trade-off of Friedman and Schuster 2010, Figure 2",
        shows="which algorithm is on the Pareto front of accuracy, epsilon and rows",
        points=grid(epsilon=tuple(epsilons) or EPSILONS, rows=sizes),
        quick_points=grid(epsilon=tuple(epsilons) or QUICK_EPSILONS, rows=quick_sizes),
        algorithms=TREE_ALGORITHMS,
        repetitions=RUNS,
        quick_repetitions=QUICK_RUNS,
        generate=generate,
        measure=partial(measured, depth),
        settings=settings,
        data_free=("epsilon",),
        indifferent=(REFERENCE,),
        picture=Picture(
            x="epsilon",
            x_title="epsilon",
            log_x=True,
            columns="rows",
            bands=False,
            note=f"rings: on the Pareto front; errors are in the CSV file\n{_depths(depth)}",
            styles=STYLES,
        ),
    )


def _depths(depth: int) -> str:
    """A comparison at one depth is fair only to algorithms that this depth suits, so the picture says it."""
    return f"DiffP-C4.5, DiffP-ID3 and SuLQ-ID3 have depth {depth} everywhere; the others choose their own (try --depth)"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _sizes(table: EncodedTable, asked: Sequence[int]) -> tuple[int, ...]:
    most = training_rows(table)
    if any(size > most for size in asked):
        raise RequestError(f"At most {most} rows of this table are for training, the rest for testing. Ask for fewer rows.")
    if not asked and most < 160:
        raise RequestError("A table of fewer than 200 rows says nothing about private trees. Use a larger one.")
    return tuple(asked) or tuple(int(most * share) for share in SHARES)


# -- the front ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """One mean and where it stands: best at its point, as good as the best within the error, on the Pareto front."""

    row: Row
    best: bool
    as_good: bool
    on_front: bool


def standings(outcome: Outcome) -> list[Standing]:
    """Where every private algorithm stands at every point."""
    rows = [row for row in summarise(outcome) if row.algorithm != REFERENCE]
    runs: dict[tuple[Any, ...], list[Record]] = {}
    for record in outcome.records:
        runs.setdefault((*sorted(record.point.items()), record.algorithm), []).append(record)
    found = []
    for row in rows:
        best = max((other for other in rows if other.point == row.point), key=lambda other: other.mean)
        pair = [runs[*sorted(row.point.items()), algorithm] for algorithm in (best.algorithm, row.algorithm)]
        found.append(Standing(row, row is best, row is best or is_as_good(*pair), not any(beats(o, row) for o in rows)))
    return found


def is_as_good(best: Sequence[Record], other: Sequence[Record]) -> bool:
    """Whether the paired runs leave it open which of the two is better."""
    _, p_value = corrected_t_test(paired_differences(best, other, "accuracy"), test_share=0.0)
    return p_value >= LEVEL


def beats(one: Row, other: Row) -> bool:
    """A Pareto improvement: no more epsilon, no more rows, no less accuracy, and better in one of them."""
    costs = [(float(one.point[name]), float(other.point[name])) for name in ("epsilon", "rows")]
    no_worse = all(ours <= theirs for ours, theirs in costs) and one.mean >= other.mean
    return bool(no_worse and (one.mean > other.mean or any(ours < theirs for ours, theirs in costs)))


def write_frontier(outcome: Outcome, folder: Path) -> list[Path]:
    """The CSV with everybody's standing, and two pictures: over epsilon for each size, over sizes for each epsilon."""
    name = outcome.experiment.name
    found = standings(outcome)
    reference = [Standing(row, False, False, False) for row in summarise(outcome) if row.algorithm == REFERENCE]
    write_csv(map(standing_form, [*found, *reference]), folder / f"{name}.csv")
    ringed = [standing.row for standing in found if standing.on_front]
    picture = replace(outcome.experiment.picture, x="rows", x_title="training rows", columns="epsilon", ending=".rows")
    title = outcome.experiment.title.replace("against epsilon", "against rows")
    turned = replace(outcome, experiment=replace(outcome.experiment, picture=picture, title=title))
    return [folder / f"{name}.csv", *draw(outcome, folder, ringed), *draw(turned, folder, ringed)]


def standing_form(standing: Standing) -> dict[str, Any]:
    """One row of the CSV."""
    form = row_form(standing.row, ("epsilon", "rows"))
    kept = {name: item for name, item in form.items() if not name.startswith(("published", "z_"))}
    marks = {"best": standing.best, "as_good_as_best": standing.as_good, "on_front": standing.on_front}
    return kept | {name: "yes" if mark else "" for name, mark in marks.items()}
