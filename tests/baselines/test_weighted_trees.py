"""Rows that count several times: the same tree as from rows written out as often, and the tree grown node by node."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from dpmine.base.errors import RequestError
from dpmine.baselines import C45, ID3, GreedyTree, greedy
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.models.trees import Node
from dpmine.postprocess.noisy_trees import CountedNode, prune_by_error

COLOURS, KINDS, CLASSES = ("red", "blue", "yellow", "green"), ("a", "b", "c"), ("no", "yes", "maybe")

TREES = {
    "C4.5": lambda: C45(),
    "C4.5 by gini": lambda: C45(score="gini", min_rows=5),
    "C4.5 unpruned": lambda: C45(pruning=False, min_rows=1),
    "two-way": lambda: GreedyTree(max_depth=6),
    "ID3": lambda: ID3(),
}


def facts(numeric: bool) -> Schema:
    attributes: list[Any] = [
        Nominal("colour", COLOURS, "red", missing="red"),
        Nominal("kind", KINDS, "a", missing="a"),
        Nominal("flag", ("0", "1"), "0", missing="0"),
    ]
    if numeric:
        attributes.insert(1, Numeric("size", Decimal(0), Decimal(9), Decimal("0.5"), Decimal(0)))
    return Schema("weighted", (*attributes, Nominal("class", CLASSES, "no", missing="no")), 100_000, "class")


def weighted_rows(schema: Schema, count: int, seed: int) -> tuple[dict[str, Any], Any]:
    """Rows whose class leans on two attributes, and weights from 0 to 20."""
    draw = np.random.default_rng(seed)
    codes: dict[str, Any] = {a.name: draw.integers(0, schema.single(a.name).size, count) for a in schema.attributes}
    leaning = (codes["colour"] % 2 + codes["kind"]) % 3
    codes["class"] = np.where(draw.random(count) < 0.5, leaning, codes["class"])
    return {name: column.astype(np.uint8) for name, column in codes.items()}, draw.integers(0, 21, count)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", list(TREES))
def test_weights_give_the_tree_of_rows_written_out(name: str, seed: int) -> None:
    schema = facts(numeric=name != "ID3")
    codes, weights = weighted_rows(schema, 300, seed)
    places = np.random.default_rng(seed).permutation(np.repeat(np.arange(300), weights))
    expanded = {column: values[places] for column, values in codes.items()}
    weighted = TREES[name]().fit_codes(codes, codes["class"], schema, weights=weights)
    written_out = TREES[name]().fit_codes(expanded, expanded["class"], schema)
    assert weighted.trees_ == written_out.trees_
    assert len(list(weighted.trees_.trees[0].nodes())) > 5


def test_weights_of_one_and_of_none() -> None:
    schema = facts(numeric=True)
    codes, _ = weighted_rows(schema, 200, 1)
    plain = C45().fit_codes(codes, codes["class"], schema).trees_
    assert C45().fit_codes(codes, codes["class"], schema, weights=np.ones(200, dtype=np.int64)).trees_ == plain
    nobody = C45().fit_codes(codes, codes["class"], schema, weights=np.zeros(200, dtype=np.int64))
    assert nobody.trees_.trees[0].rows == (0, 0, 0)


def test_a_row_of_weight_zero_is_not_there() -> None:
    """It must not keep alive a threshold or a branch that no counted row stands for."""
    schema = facts(numeric=True)
    codes, weights = weighted_rows(schema, 200, 2)
    kept = {name: values[weights > 0] for name, values in codes.items()}
    with_zeros = C45().fit_codes(codes, codes["class"], schema, weights=weights)
    without = C45().fit_codes(kept, kept["class"], schema, weights=weights[weights > 0])
    assert with_zeros.trees_ == without.trees_


@pytest.mark.parametrize("name", list(TREES))
def test_portions_of_a_level_do_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = facts(numeric=name != "ID3")
    codes, weights = weighted_rows(schema, 500, 3)
    at_once = TREES[name]().fit_codes(codes, codes["class"], schema, weights=weights).trees_
    monkeypatch.setattr(greedy, "MOST_CELLS", 1)  # every node on its own
    assert TREES[name]().fit_codes(codes, codes["class"], schema, weights=weights).trees_ == at_once


def test_pruning_is_that_of_the_private_trees() -> None:
    schema = facts(numeric=True)
    for seed in range(5):
        codes, weights = weighted_rows(schema, 300, seed)
        grown = C45(pruning=False).fit_codes(codes, codes["class"], schema, weights=weights).trees_.trees[0]
        pruned = C45().fit_codes(codes, codes["class"], schema, weights=weights).trees_.trees[0]
        counted = as_counted(grown)
        prune_by_error(counted)
        assert leaf_counts(pruned) == pruned_leaf_counts(counted)
        assert len(leaf_counts(pruned)) < len(leaf_counts(grown))


def as_counted(node: Node) -> CountedNode:
    counts = np.array(node.rows, dtype=np.float64)
    return CountedNode(float(counts.sum()), counts, [as_counted(child) for child in node.children])


def leaf_counts(node: Node) -> list[tuple[int, ...]]:
    return [leaf.rows for leaf in node.leaves()]


def pruned_leaf_counts(node: CountedNode) -> list[tuple[int, ...]]:
    if node.is_leaf:
        assert node.classes is not None
        return [tuple(int(count) for count in node.classes)]
    return [counts for child in node.children for counts in pruned_leaf_counts(child)]


def test_impossible_weights_are_refused() -> None:
    schema = facts(numeric=False)
    codes, weights = weighted_rows(schema, 10, 0)
    for wrong in (weights[:9], weights * 1.0, -weights - 1, weights + 2**50):
        with pytest.raises(RequestError, match="weights"):
            C45().fit_codes(codes, codes["class"], schema, weights=wrong)
