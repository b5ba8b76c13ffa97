"""As epsilon grows without bound the private trees become the ordinary ones: the slide's, and greedy search on small tables.

At epsilon 1e6 noise is 0 and a choice misses the best score by a hundredth with a chance below e^-40 a node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from support.mined_tables import Table, schema_of, table_of, without_class
from support.opening import HUGE, fitted

import dpmine as dm
from dpmine.baselines import C45, ID3, GreedyTree
from dpmine.datasets import patients_schema, slide_records
from dpmine.facts.schema import Schema
from dpmine.language.candidates import candidate, number_of_candidates
from dpmine.language.keys import Key
from dpmine.language.splits import Multiway, Thresholds
from dpmine.mining.trees.candidates import discretised, nominal_keys, numeric_names
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.greedy import GreedyTrees
from dpmine.models.trees import Node, encode_rows, labels_of

SLIDE, SLIDE_SCHEMA = slide_records(), patients_schema(extended=False, rows_at_most=100)
TOLERANCE = 0.01  # of a score, in rows or bits

Codes = dict[str, Any]


# -- scores and candidates, worked out here ----------------------------------------------------------------------------


def entropy_rows(counts: Sequence[int]) -> float:
    total = sum(counts)
    return -sum(count * math.log2(count / total) for count in counts if count)


def gini_rows(counts: Sequence[int]) -> float:
    total = sum(counts)
    return total - sum(count * count for count in counts) / total if total else 0.0


def wrong_rows(counts: Sequence[int]) -> float:
    return sum(counts) - max(counts)


def mixed_rows(counts: Sequence[int]) -> float:
    return (gini_rows(counts) / 2 + wrong_rows(counts)) / 2


IMPURITY: dict[str, Callable[[Sequence[int]], float]] = {
    "infogain": entropy_rows,
    "gini": gini_rows,
    "max": wrong_rows,
    "mixed": mixed_rows,
}


def coded(table: Table, schema: Schema) -> tuple[Codes, int]:
    names = [attribute.name for attribute in schema.attributes]
    return encode_rows(table, schema, names)


def impurity_after(key: Key, places: Any, codes: Codes, schema: Schema, criterion: str) -> float:
    labels = labels_of(key, {name: column[places] for name, column in codes.items()}, schema)
    target, classes = codes["class" if "class" in codes else "diagnosis"][places], len(schema.class_labels)
    return sum(
        IMPURITY[criterion](np.bincount(target[labels == label], minlength=classes).tolist()) for label in np.unique(labels)
    )


Candidates = Callable[[Schema, tuple[Key, ...]], list[Key]]


def by_all_values(schema: Schema, above: tuple[Key, ...]) -> list[Key]:
    """DiffP-ID3 and SuLQ-ID3: every attribute once on a path, numeric ones in bins."""
    return [key for key in nominal_keys(schema) + discretised(schema, 10) if key not in above]


def by_values_and_points(schema: Schema, above: tuple[Key, ...]) -> list[Key]:
    """DiffP-C4.5: nominal attributes once, numeric ones at any point."""
    points = [Thresholds(name) for name in numeric_names(schema)]
    cuts: list[Key] = [
        candidate(family, schema, place) for family in points for place in range(number_of_candidates(family, schema))
    ]
    return [key for key in nominal_keys(schema) if key not in above] + cuts


def by_family(splits: str) -> Candidates:
    def candidates(schema: Schema, above: tuple[Key, ...]) -> list[Key]:
        families = GreedyTrees(splits=splits).candidates(schema)
        keys = [
            candidate(family, schema, place) for family in families for place in range(number_of_candidates(family, schema))
        ]
        return [key for key in keys if key is not None]

    return candidates


def inner_nodes(node: Node, codes: Codes, schema: Schema, places: Any, above: tuple[Key, ...] = ()) -> Iterator[Any]:
    """Every split node with its rows and the keys above it."""
    if node.split is None:
        return
    yield node, places, above
    labels = labels_of(node.split, {name: column[places] for name, column in codes.items()}, schema)
    for number, child in enumerate(node.children):
        yield from inner_nodes(child, codes, schema, places[labels == number], (*above, node.split))


def assert_greedy(model: TreeEstimator, table: Table, schema: Schema, criterion: str, candidates: Candidates) -> int:
    """Every split is, on its own true rows, a best one of all that its node could choose from."""
    codes, count = coded(table, schema)
    splits = 0
    for node, places, above in inner_nodes(model.trees_.trees[0], codes, schema, np.arange(count)):
        best = min(impurity_after(key, places, codes, schema, criterion) for key in candidates(schema, above))
        found = impurity_after(node.split, places, codes, schema, criterion)
        assert found <= best + TOLERANCE, (node.split, found, best)
        splits += 1
    return splits


def assert_counts_are_true(model: TreeEstimator, table: Table, schema: Schema) -> None:
    """Every leaf has the class counts of its rows, and a node the sum of its leaves."""
    codes, count = coded(table, schema)
    target, classes = codes[schema.require_class()], len(schema.class_labels)
    for node, places, _ in inner_nodes(model.trees_.trees[0], codes, schema, np.arange(count)):
        assert node.rows == tuple(np.bincount(target[places], minlength=classes).tolist())


def has_ties(model: TreeEstimator, table: Table, schema: Schema, criterion: str, candidates: Candidates) -> bool:
    """Whether at an impure node another candidate, which parts the rows otherwise, is as good as the chosen one."""
    codes, count = coded(table, schema)
    target = codes[schema.require_class()]
    for node, places, above in inner_nodes(model.trees_.trees[0], codes, schema, np.arange(count)):
        if len(set(target[places].tolist())) < 2:
            continue
        rows = {name: column[places] for name, column in codes.items()}
        chosen = impurity_after(node.split, places, codes, schema, criterion)
        parts = partition(labels_of(node.split, rows, schema))
        for key in candidates(schema, above):
            if impurity_after(key, places, codes, schema, criterion) < chosen + 2 * TOLERANCE and parts != partition(
                labels_of(key, rows, schema)
            ):
                return True
    return False


def partition(labels: Any) -> frozenset[frozenset[int]]:
    return frozenset(frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels))


# -- the slide ---------------------------------------------------------------------------------------------------------


def structure(node: Node, *, pure_ends: bool) -> Any:
    """Keys and children; with `pure_ends`, what is below a node of one class is left out, as ordinary ID3 does."""
    if node.split is None or (pure_ends and sum(count > 0 for count in node.rows) < 2):
        return node.rows
    return node.rows, node.split, [structure(child, pure_ends=pure_ends) for child in node.children]


@pytest.mark.parametrize("epsilon", [100_000, HUGE])
@pytest.mark.parametrize(
    "model",
    [
        lambda epsilon: dm.DiffPID3(epsilon, max_depth=2, criterion="infogain"),
        lambda epsilon: dm.DiffPID3(epsilon, max_depth=2, criterion="gini"),
        lambda epsilon: dm.DiffPID3(epsilon, max_depth=4, criterion="infogain"),
        lambda epsilon: dm.SulqID3(epsilon, max_depth=2),
        lambda epsilon: dm.DiffPC45(epsilon, max_depth=2, criterion="infogain", pruning=False),
        lambda epsilon: dm.DiffPC45(epsilon, max_depth=2, criterion="gini"),
    ],
    ids=["id3 infogain", "id3 gini", "id3 deeper than needed", "sulq", "c45 infogain", "c45 gini pruned"],
)
def test_the_slide_s_tree_is_found(model: Callable[[int], TreeEstimator], epsilon: int) -> None:
    ordinary = ID3(score="infogain").fit(SLIDE, schema=SLIDE_SCHEMA)
    private = fitted(model(epsilon), SLIDE, SLIDE_SCHEMA)
    found = structure(private.trees_.trees[0], pure_ends=True)
    assert found == structure(ordinary.trees_.trees[0], pure_ends=True)
    assert found[1].title == "blood_pressure"
    assert private.predict(SLIDE).tolist() == SLIDE["diagnosis"]


def test_with_max_every_split_of_the_slide_is_a_best_one() -> None:
    """Rows right may be tied, so the walk over the tree decides whether each split is a best one."""
    model = fitted(dm.DiffPID3(HUGE, max_depth=2, criterion="max"), SLIDE, SLIDE_SCHEMA)
    splits = assert_greedy(model, SLIDE, SLIDE_SCHEMA, "max", by_all_values)
    assert splits >= 3
    assert_counts_are_true(model, SLIDE, SLIDE_SCHEMA)


# -- the published algorithms ------------------------------------------------------------------------------------------

MODELS: dict[str, tuple[Callable[[str], TreeEstimator], Candidates, tuple[str, ...]]] = {
    "DiffPID3": (lambda c: dm.DiffPID3(HUGE, 2, c), by_all_values, ("max", "gini", "infogain")),
    "SulqID3": (lambda c: dm.SulqID3(HUGE, 2), by_all_values, ("infogain",)),
    "DiffPC45": (lambda c: dm.DiffPC45(HUGE, 2, c, pruning=False), by_values_and_points, ("max", "gini", "infogain")),
    **{
        f"TreeClassifier {splits}": (
            lambda c, splits=splits: dm.TreeClassifier(HUGE, 3, c, stopping=0, splits=splits),
            by_family(splits),
            ("max", "gini", "infogain", "mixed"),
        )
        for splits in ("binary", "any", "multiway")
    },
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("name", "criterion"), [(name, c) for name, (_, _, known) in MODELS.items() for c in known])
def test_every_split_is_the_greedy_one(name: str, criterion: str, classes: int) -> None:
    make, candidates, _ = MODELS[name]
    schema = schema_of(classes=classes)
    for seed in (1, 2):
        table = table_of(schema, 120, seed)
        model = fitted(make(criterion), table, schema)
        assert assert_greedy(model, table, schema, criterion, candidates) >= 3
        assert_counts_are_true(model, table, schema)


@pytest.mark.parametrize(("name", "criterion"), [("SulqID3", "infogain"), ("DiffPID3", "infogain"), ("DiffPID3", "gini")])
def test_id3_is_the_limit(name: str, criterion: str) -> None:
    """On every row that was trained on, the private tree answers as the ordinary one where nothing is tied."""
    schema, compared = schema_of(numeric=False, classes=3), 0
    for seed in range(8):
        table = table_of(schema, 200, seed)
        private = fitted(MODELS[name][0](criterion), table, schema)
        if not has_ties(private, table, schema, criterion, by_all_values):
            ordinary = ID3(2, criterion, split_without_gain=True).fit(table, schema=schema)
            assert private.predict(table).tolist() == ordinary.predict(table).tolist()
            assert private.trees_.trees[0].rows == ordinary.trees_.trees[0].rows
            compared += 1
    assert compared >= 3


def test_id3_by_max_is_the_limit_where_nothing_is_tied() -> None:
    schema, compared = schema_of(numeric=False, classes=3), 0
    for seed in range(30):
        table = table_of(schema, 60, seed)
        private = fitted(dm.DiffPID3(HUGE, 1, "max"), table, schema)
        if not has_ties(private, table, schema, "max", by_all_values):
            ordinary = ID3(1, "max", split_without_gain=True).fit(table, schema=schema)
            assert private.score(table, table["class"]) == np.mean(ordinary.predict(table) == np.array(table["class"]))
            assert private.trees_.trees[0].split == ordinary.trees_.trees[0].split
            compared += 1
    assert compared >= 5


@pytest.mark.parametrize("criterion", ["gini", "infogain"])
def test_c45_is_the_limit(criterion: str) -> None:
    schema, compared = schema_of(classes=2), 0
    for seed in range(8):
        table = table_of(schema, 200, seed)
        private = fitted(dm.DiffPC45(HUGE, 2, criterion, pruning=False), table, schema)
        if not has_ties(private, table, schema, criterion, by_values_and_points):
            ordinary = C45(2, criterion, pruning=False, min_rows=1).fit(table, schema=schema)
            assert private.score(table, table["class"]) == np.mean(ordinary.predict(table) == np.array(table["class"]))
            compared += 1
    assert compared >= 3


# -- ours --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "infogain"])
def test_the_tree_of_two_way_splits_is_the_limit(criterion: str) -> None:
    """Ordinary trees answer an even leaf by its first class, ours by what is above: the rows right are the same."""
    schema, compared = schema_of(classes=2), 0
    for seed in range(10):
        table = table_of(schema, 300, seed)
        model = dm.TreeClassifier(HUGE, 3, criterion, stopping=0, splits="binary")
        private = fitted(model, table, schema)
        if not has_ties(private, table, schema, criterion, by_family("binary")):
            ordinary = GreedyTree(3, criterion).fit(table, schema=schema)
            right = float(np.mean(ordinary.predict(table) == np.array(table["class"], dtype=object)))
            assert private.score(table, table["class"]) == pytest.approx(right)
            assert leaf_rows(private) == leaf_rows(ordinary)
            compared += 1
    assert compared >= 3


def leaf_rows(model: Any) -> list[tuple[int, ...]]:
    """The class counts of the leaves, without those that a pure node was split into further, which only ours does."""

    def collect(node: Node) -> Iterator[tuple[int, ...]]:
        if node.split is None or sum(count > 0 for count in node.rows) < 2:
            yield node.rows
        else:
            for child in node.children:
                yield from collect(child)

    return sorted(collect(model.trees_.trees[0]))


def test_the_tree_of_two_way_splits_by_max_is_the_limit_at_the_first_split() -> None:
    """The ordinary tree stops where Max gains nothing; ours cannot see that, and goes on."""
    schema, compared = schema_of(classes=2), 0
    for seed in range(20):
        table = table_of(schema, 300, seed)
        private = fitted(dm.TreeClassifier(HUGE, 1, "max", stopping=0, splits="binary"), table, schema)
        ordinary = GreedyTree(1, "max").fit(table, schema=schema)
        right = float(np.mean(ordinary.predict(table) == np.array(table["class"], dtype=object)))
        assert private.score(table, table["class"]) == pytest.approx(right)
        compared += ordinary.trees_.trees[0].split is not None
    assert compared >= 5


def test_staying_whole_wins_where_no_split_gains_more_than_the_bonus() -> None:
    """With a class that nothing tells, every split gains less than 300 rows: the tree is its root."""
    schema = schema_of()
    table = table_of(schema, 200, 3, clear=0)
    huge_bonus = dm.TreeClassifier(HUGE, 3, "gini", stopping=1000)
    assert huge_bonus.greedy.staying(dm.Epsilon.parse("0.1"), schema)[0].bonus > 200  # type: ignore[attr-defined]
    assert fitted(dm.TreeClassifier("0.5", 3, "gini", stopping=1000), table, schema).trees_.trees[0].split is None
    assert fitted(dm.TreeClassifier(HUGE, 3, "gini", stopping=0), table, schema).trees_.trees[0].depth == 3


@pytest.mark.parametrize("name", ["TreeClassifier", "GreedyForest", "DiffPC45"])
def test_arrays_and_frames_predict_alike(name: str) -> None:
    schema = schema_of()
    table = table_of(schema, 100, 5)
    model = fitted(getattr(dm, name)(HUGE, max_depth=2), table, schema)
    names = [attribute.name for attribute in schema.attributes if attribute.name != "class"]
    array = np.array(list(zip(*(table[column] for column in names), strict=True)), dtype=object)
    assert model.predict(array).tolist() == model.predict(without_class(table)).tolist()


def test_a_multiway_candidate_is_offered_up_to_five_categories() -> None:
    schema = schema_of()
    offered = [family for family in GreedyTrees().candidates(schema) if isinstance(family, Multiway)]
    assert [family.key.title for family in offered] == ["colour", "kind"]  # a split by two categories is a subset already
