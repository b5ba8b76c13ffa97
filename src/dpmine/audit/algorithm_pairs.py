"""Audit pairs of whole algorithms, end to end: what leaves them is their fitted model, and nothing else is looked at.

Sixty rows are of class no. The new row is of class yes and lies where only some splits hold it apart. A model's outcome is
whether it was held apart, and how many rows of class yes the model says there are where the new row falls.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal

import numpy as np

from dpmine.audit.laws import Buckets
from dpmine.audit.pairs import AuditPair, Outcome, Row
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.keys import AttributeKey
from dpmine.mining import evaluation
from dpmine.mining.clustering.dplloyd import DPLloyd
from dpmine.mining.clustering.inertia import private_inertia
from dpmine.mining.clustering.kmeans import KMeans
from dpmine.mining.clustering.space import Space
from dpmine.mining.forests import GreedyForest, RandomForest
from dpmine.mining.selection import select_model
from dpmine.mining.trees.classifier import TreeClassifier
from dpmine.mining.trees.diffp_c45 import DiffPC45
from dpmine.mining.trees.diffp_id3 import DiffPID3
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.sulq_id3 import SulqID3
from dpmine.models.cuts import CutValue
from dpmine.models.trees import Node, Trees, labels_of
from dpmine.release.contingency import ContingencyTable
from dpmine.release.counting import AUTO
from dpmine.release.diffgen import DiffGen
from dpmine.release.estimator import ReleaseEstimator
from dpmine.release.paid_check import buy_check
from dpmine.release.released import ReleasedTable
from dpmine.release.tree_release import TreeRelease
from dpmine.tables.private_table import PrivateTable

CROWD = 60
SCHEMA = Schema(
    "audited",
    (
        Nominal("letter", ("a", "b"), "a", missing="a"),
        Nominal("flag", ("x", "y"), "x", missing="x"),
        Numeric("size", Decimal(0), Decimal(119), Decimal(1), Decimal(0)),
        Nominal("ill", ("no", "yes"), "no", missing="no"),
    ),
    rows_at_most=100,
    class_attribute="ill",
)
CROWDED: Row = {"letter": "a", "flag": "x", "size": 60, "ill": "no"}
NEW: Row = {"letter": "b", "flag": "x", "size": 60, "ill": "yes"}
TABLES: tuple[Sequence[Row], Sequence[Row]] = ([CROWDED] * CROWD, [*[CROWDED] * CROWD, NEW])
NEW_CODES = {"letter": np.array([1]), "flag": np.array([0]), "size": np.array([60])}
WORST = (
    "A row of class yes among sixty of class no: it moves every count on its path by one and, by the whole range of the "
    "score, the choice that holds it apart."
)

Measure = Callable[[PrivateTable], Outcome]


def algorithm_pairs() -> Iterator[AuditPair]:
    trees = "dpmine.mining.trees"
    yield _pair(
        "tree-classifier",
        (f"{trees}.classifier.TreeClassifier",),
        "4",
        _fitted(lambda: TreeClassifier(epsilon=4, max_depth=2)),
    )
    yield _pair(
        "tree-classifier-automatic-depth",
        (f"{trees}.classifier.TreeClassifier",),
        "4",
        _fitted(lambda: TreeClassifier(epsilon=4, inner_share=0.5, leaf_share=0.5)),
    )
    yield _pair(
        "tree-classifier-leaves",
        (f"{trees}.classifier.TreeClassifier",),
        "1",
        _fitted(lambda: TreeClassifier(epsilon=1, max_depth=1, leaf_share=0.98)),
        runs=1_100,
    )
    yield _pair("sulq-id3", (f"{trees}.sulq_id3.SulqID3",), "8", _fitted(lambda: SulqID3(epsilon=8, max_depth=1)))
    yield _pair("diffp-id3", (f"{trees}.diffp_id3.DiffPID3",), "8", _fitted(lambda: DiffPID3(epsilon=8, max_depth=1)))
    yield _pair(
        "diffp-c45",
        (f"{trees}.diffp_c45.DiffPC45",),
        "8",
        _fitted(lambda: DiffPC45(epsilon=8, max_depth=1, criterion="gini", pruning=False)),
    )
    yield _pair(
        "greedy-forest",
        ("dpmine.mining.forests.GreedyForest",),
        "4",
        _fitted(lambda: GreedyForest(epsilon=4, trees=2, max_depth=1)),
        by_key=True,
    )
    yield _pair(
        "random-forest",
        ("dpmine.mining.forests.RandomForest", "dpmine.mining.forests.constant_vote"),
        "4",
        _fitted(lambda: RandomForest(epsilon=4, trees=2, max_depth=1, seed=1)),
        by_key=True,
    )
    counting = "dpmine.release.counting.count_groups"
    yield _pair(
        "diffgen",
        ("dpmine.release.diffgen.DiffGen", counting),
        "8",
        _released(lambda: DiffGen(epsilon=8, specialisations=2)),
    )
    yield _pair(
        "diffgen-improved",
        ("dpmine.release.diffgen.DiffGen", counting),
        "4",
        _released(
            lambda: DiffGen(
                epsilon=4,
                specialisations=AUTO,
                score="gini-gain",
                points="joint",
                leftover=True,
                threshold=AUTO,
                total_share=0.1,
                frequency_share=0.1,
            )
        ),
    )
    yield _pair(
        "contingency-table",
        ("dpmine.release.contingency.ContingencyTable", counting),
        "1",
        _released(lambda: ContingencyTable(epsilon=1, bins=2, threshold=1)),
        runs=1_100,
    )
    yield _pair(
        "tree-release",
        ("dpmine.release.tree_release.TreeRelease",),
        "4",
        _released(lambda: TreeRelease(epsilon=4, max_depth=1)),
    )
    yield _pair("paid-check", ("dpmine.release.paid_check.buy_check",), "4", _checked, runs=200)
    yield _pair("inertia", ("dpmine.mining.clustering.inertia.private_inertia",), "2", _inertia, runs=300)
    yield _pair("evaluate", ("dpmine.mining.evaluation.evaluate",), "4", _evaluated, runs=300)
    yield _pair("select-model", ("dpmine.mining.selection.select_model",), "4", _selected, runs=250, by_key=True)
    clustering = "dpmine.mining.clustering"
    kmeans = f"{clustering}.kmeans.KMeans"
    yield _points("kmeans-grid", (kmeans, f"{clustering}.synopsis.grid_synopsis"), "1", 2, 1, _gridded, runs=600)
    yield _points("kmeans-tree", (kmeans, f"{clustering}.refining.refined"), "4", 4, 1, _cut_up, runs=250)
    yield _points("dplloyd", (f"{clustering}.dplloyd.DPLloyd",), "1.5", 10, 2, _moved, runs=600)


def _pair(
    name: str, covers: tuple[str, ...], epsilon: str, measure: Measure, *, runs: int = 300, by_key: bool = False
) -> AuditPair:
    """`by_key`: whether the outcome depends on the ledger's secret key, so that every run needs a ledger of its own."""

    def ask(private: PrivateTable) -> list[Outcome]:
        return [measure(private)]

    return AuditPair(name, covers, WORST, epsilon, SCHEMA, TABLES, ask, runs=runs, asks=1 if by_key else 100)


# -- outcomes ----------------------------------------------------------------------------------------------------------

YES_ROWS = Buckets((1, 3))
ANY_ROWS = Buckets((1,))  # where an outcome has several trees


def _fitted(make: Callable[[], TreeEstimator]) -> Measure:
    """The outcome of a fitted model, tree by tree."""

    def measure(private: PrivateTable) -> Outcome:
        model = make().fit(private, progress=False)
        trees = model.trees_.trees
        return tuple(seen_of(tree, YES_ROWS if len(trees) == 1 else ANY_ROWS) for tree in trees)

    return measure


def _released(make: Callable[[], ReleaseEstimator]) -> Measure:
    """Whether letters are told apart, the released yes rows where the new row falls, and how frequent its letter seems."""

    def measure(private: PrivateTable) -> Outcome:
        model = make().fit(private, progress=False)
        released = model.release()
        (own,) = model._groups_of(NEW_CODES, 1)
        place = np.flatnonzero((released.groups == own).all(axis=1))
        yes_rows = int(released.counts[place, 1].sum())
        letters = list(released.values).index("letter")
        apart = len(released.values["letter"][own[letters]].codes) == 1
        frequent = released.weights["letter"].ravel()[1] if "letter" in released.weights else 0
        return int(apart), YES_ROWS.of([yes_rows])[0], ANY_ROWS.of([int(frequent)])[0]

    return measure


def seen_of(tree: Node, buckets: Buckets) -> tuple[int, int]:
    """Whether the tree splits by letter first, and the yes rows (in buckets) where the new row falls.

    A tree that is one leaf has a label instead: so a forest's constant vote is seen too.
    """
    if tree.split is None and tree.rows == (0, 0):
        return 2, tree.label
    by_letter = tree.split is not None and getattr(tree.split, "attribute", "") == "letter"
    return int(by_letter), buckets.of([leaf_of(tree).rows[1]])[0]


def leaf_of(tree: Node) -> Node:
    """The leaf that the new row falls into."""
    while tree.split is not None:
        tree = tree.children[int(labels_of(tree.split, NEW_CODES, SCHEMA)[0])]
    return tree


PUBLIC_TREE = Trees(
    ("no", "yes"),
    (
        Node(
            (50, 50),
            (500_000, 500_000),
            AttributeKey("letter"),
            (Node((49, 1), (980_000, 20_000)), Node((1, 49), (20_000, 980_000))),
        ),
    ),
)
RIGHT_ROWS = Buckets((0, 1, 2))
AREAS = Buckets((55, 70, 85))


def _evaluated(private: PrivateTable) -> Outcome:
    """The new row is the only one that the model calls ill: the confusion matrix has it in a cell of its own."""
    with _few_simulated_draws():
        found = evaluation.evaluate(PUBLIC_TREE, private, epsilon=private.remaining())
    area = 0 if found.auc is None else AREAS.of([round(100 * found.auc.value)])[0]
    return RIGHT_ROWS.of([int(found.confusion[1, 1])])[0], area


def _inertia(private: PrivateTable) -> Outcome:
    """All rows lie at one distance from the centre, in one band: the inertia tells their noisy number."""
    space = Space.of(private.schema, ["size"], "none")
    nearest = space.nearest(np.array([[0.0]]))
    found = private_inertia(private, nearest, space, 1.0, private.remaining())
    band = (2**-2 + 2**-1.5) / 2  # of the largest squared distance: 60 of 119 steps, squared, lies in it
    return RIGHT_ROWS.of([round(found.value / (band * float(space.extents[0]) ** 2)) - CROWD])[0]


RELEASED = ReleasedTable(
    SCHEMA,
    {
        "letter": (CutValue("a", (0,)), CutValue("b", (1,))),
        "flag": (CutValue("any flag", (0, 1)),),
        "size": (CutValue("0 to 119", tuple(range(120))),),
    },
    np.array([[0, 0, 0], [1, 0, 0]]),
    np.array([[50, 1], [1, 50]]),
)


def _checked(private: PrivateTable) -> Outcome:
    """A public release whose tree calls the new row ill, judged on the rows, with a histogram of every attribute."""
    with _few_simulated_draws():
        found = buy_check(private, RELEASED, epsilon=private.remaining(), seed=1)
    letters = found.bars["letter"]
    own = letters.counts[letters.labels.index("b")]
    return RIGHT_ROWS.of([found.judgement.confusion[1][1]])[0], RIGHT_ROWS.of([own])[0]


@contextmanager
def _few_simulated_draws() -> Iterator[None]:
    """Intervals are simulated from released counts, four thousand times; the audit reads none and has no time for them."""
    before, evaluation.DRAWS = evaluation.DRAWS, 2
    try:
        yield
    finally:
        evaluation.DRAWS = before


def _selected(private: PrivateTable) -> Outcome:
    candidates = [
        TreeClassifier(max_depth=1, leaf_share=0.8, criterion="max"),
        TreeClassifier(max_depth=1, leaf_share=0.2, criterion="gini"),
    ]
    found = select_model(private, candidates, epsilon=private.remaining())
    return found.index, *(seen_of(model.trees_.trees[0], ANY_ROWS)[1] for model in found.candidates)


# -- clustering --------------------------------------------------------------------------------------------------------


def _points(
    name: str, covers: tuple[str, ...], epsilon: str, dimensions: int, high: int, measure: Measure, *, runs: int = 300
) -> AuditPair:
    """Sixty points near the middle of a box; the new one lies at its corner, as far out as a row can."""
    names = [f"x{place}" for place in range(dimensions)]
    attributes = (Numeric(at, Decimal(0), Decimal(high), Decimal(1), Decimal(0)) for at in names)
    crowd = [dict.fromkeys(names, high // 2)] * CROWD
    why = "The new point lies at the corner of the box: its coordinates all differ from the others' by as much as they can."

    def ask(private: PrivateTable) -> list[Outcome]:
        return [measure(private)]

    schema = Schema("audited", tuple(attributes), rows_at_most=100)
    return AuditPair(
        name, covers, why, epsilon, schema, (crowd, [*crowd, dict.fromkeys(names, high)]), ask, runs=runs, asks=100
    )


def _gridded(private: PrivateTable) -> Outcome:
    """The noisy rows of the new point's cell, each cell of which the synopsis holds in four parts, and of the largest."""
    model = KMeans(1, epsilon=1, seed=1).fit(private, progress=False)
    cells = model.synopsis_.weights.reshape(2, 2, 2, 2).sum(axis=(1, 3))
    return RIGHT_ROWS.of([round(cells[1, 1])])[0], ANY_ROWS.of([round(cells[0, 0]) - CROWD])[0]


def _cut_up(private: PrivateTable) -> Outcome:
    """The noisy rows of the last leaf, which holds the corner, how many leaves there are, and whether the centre moved."""
    model = KMeans(1, epsilon=4, seed=1).fit(private, progress=False)
    rows, leaves = model.synopsis_.weights[-1], len(model.synopsis_.weights)
    return RIGHT_ROWS.of([round(rows)])[0], LEAVES.of([leaves])[0], int(model.cluster_centers_.sum() > 0.02)


def _moved(private: PrivateTable) -> Outcome:
    """How far the ten noisy sums go from the middle's to the corner's, all together, and the noisy size."""
    model = DPLloyd(1, epsilon=1.5, iterations=1, shares="optimal", seed=1).fit(private, progress=False)
    sums = (model.cluster_centers_[0] - 1) * model.cluster_sizes_[0]
    towards = int(np.floor(np.clip(sums, 0, 1).sum()))
    return TOWARDS.of([towards])[0], ANY_ROWS.of([round(model.cluster_sizes_[0]) - CROWD])[0]


LEAVES = Buckets((4, 6))
TOWARDS = Buckets((4, 5, 6, 7))
