"""Random trees keep the rules of Friedman and Schuster's section 5.1, and their samples follow the tree and the noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmine.base.errors import RequestError
from dpmine.datasets import RandomTree
from dpmine.datasets.random_trees import TreeNode
from dpmine.engines.encoding import encode
from dpmine.facts.sources import open_source

FALSE_ALARM = 1e-6

TREES = st.builds(
    RandomTree.draw,
    depth=st.integers(1, 6),
    nominal=st.integers(1, 5),
    numeric=st.integers(0, 3),
    values=st.integers(2, 3),
    classes=st.integers(2, 4),
    leaf_probability=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**32),
)


def likely(times: int, trials: int, chance: float, *, tests: int = 1) -> bool:
    """Whether a binomial count is credible; wrongly not with probability at most FALSE_ALARM over that many tests."""
    return bool(stats.binomtest(times, trials, chance).pvalue > FALSE_ALARM / tests)


def paths(node: TreeNode, above: tuple[TreeNode, ...] = ()) -> Iterator[tuple[TreeNode, ...]]:
    """Every path from the root to a leaf, the leaf last."""
    if not node.children:
        yield (*above, node)
    for child in node.children:
        yield from paths(child, (*above, node))


def label_by_hand(tree: RandomTree, row: dict[str, object]) -> str:
    node = tree.root
    while node.label is None:
        value = row[node.attribute]
        if node.threshold is None:
            node = node.children[int(str(value).removeprefix("v"))]
        else:
            assert isinstance(value, float)
            node = node.children[0 if value < node.threshold else 1]
    return f"c{node.label}"


def rows_of(table: dict[str, list[object]]) -> list[dict[str, object]]:
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


# -- the tree -----------------------------------------------------------------------------------------------------------


@given(TREES)
def test_no_nominal_attribute_stands_twice_on_a_path(tree: RandomTree) -> None:
    for *splits, _ in paths(tree.root):
        nominal = [node.attribute for node in splits if node.threshold is None]
        assert len(set(nominal)) == len(nominal)
        assert set(nominal) <= set(tree.nominal)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 2), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 2**32))
def test_leaves_stand_between_the_third_level_and_the_depth_unless_attributes_run_out(
    depth: int, nominal: int, numeric: int, leaf_probability: float, seed: int
) -> None:
    tree = RandomTree.draw(depth=depth, nominal=nominal, numeric=numeric, leaf_probability=leaf_probability, seed=seed)
    last = depth if numeric else min(depth, nominal)
    levels = {len(path) - 1 for path in paths(tree.root)}
    assert levels <= set(range(min(2, last), last + 1))
    if leaf_probability != 0.3:
        assert levels == {last if leaf_probability == 0 else min(2, last)}


@given(TREES)
def test_a_split_has_a_child_for_each_value_or_side_and_a_leaf_a_class(tree: RandomTree) -> None:
    for *splits, leaf in paths(tree.root):
        assert leaf.label in range(tree.classes)
        for node in splits:
            assert node.label is None
            assert len(node.children) == (tree.values if node.threshold is None else 2)


@given(TREES)
def test_numeric_thresholds_lie_within_what_the_path_left(tree: RandomTree) -> None:
    def check(node: TreeNode, left: dict[str, tuple[float, float]]) -> None:
        if node.threshold is None:
            for child in node.children:
                check(child, left)
            return
        low, high = left[node.attribute]
        assert low <= node.threshold <= high
        check(node.children[0], {**left, node.attribute: (low, node.threshold)})
        check(node.children[1], {**left, node.attribute: (node.threshold, high)})

    check(tree.root, dict.fromkeys(tree.numeric, (0.0, 100.0)))


def test_third_level_nodes_become_leaves_at_the_stated_rate_and_classes_and_attributes_are_uniform() -> None:
    trees = [RandomTree.draw(depth=4, nominal=10, seed=seed) for seed in range(1_000)]
    third = [node for tree in trees for child in tree.root.children for node in child.children]
    assert likely(sum(not node.children for node in third), 4_000, 0.3, tests=3)
    assert not likely(sum(not node.children for node in third), 4_000, 0.4, tests=3)
    leaves = [path[-1].label for tree in trees for path in paths(tree.root)]
    assert likely(leaves.count(0), len(leaves), 0.5, tests=3)
    roots = np.bincount([int(tree.root.attribute[1:]) for tree in trees], minlength=10)
    assert stats.chisquare(roots).pvalue > FALSE_ALARM / 3


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_a_tree_and_its_sample_are_reproducible_by_their_seeds(seed: int) -> None:
    one, same = (RandomTree.draw(depth=4, numeric=2, seed=seed) for _ in range(2))
    assert one == same
    assert one.sample(50, noise=0.1, seed=seed) == same.sample(50, noise=0.1, seed=seed)
    assert one.sample(50, seed=seed) != one.sample(50, seed=seed + 1)
    assert one != RandomTree.draw(depth=4, numeric=2, seed=seed + 1)


# -- samples ------------------------------------------------------------------------------------------------------------


@given(TREES, st.integers(0, 2**32))
@settings(max_examples=50)
def test_without_noise_every_label_follows_the_tree(tree: RandomTree, seed: int) -> None:
    for row in rows_of(tree.sample(60, seed=seed)):
        assert row["class"] == label_by_hand(tree, row)


@pytest.mark.parametrize("noise", [0.1, 0.2, 1.0])
def test_noise_replaces_each_value_at_its_rate_and_may_repeat_it(noise: float) -> None:
    rows, tree = 20_000, RandomTree.draw(depth=4, nominal=4, numeric=2, values=3, classes=4, seed=1)
    clean, noisy = tree.sample(rows, seed=2), tree.sample(rows, noise=noise, seed=2)  # the same points before the noise
    kept = dict.fromkeys(tree.nominal, 1 / 3) | dict.fromkeys(tree.numeric, 0.0) | {"class": 1 / 4}
    for name, repeats in kept.items():
        changed = sum(before != after for before, after in zip(clean[name], noisy[name], strict=True))
        assert likely(changed, rows, noise * (1 - repeats), tests=len(kept))
        if repeats:  # sharp enough to see a replacement that never repeats the value
            assert not likely(changed, rows, noise, tests=len(kept))


def test_noise_on_one_split_leaves_the_expected_share_of_wrong_labels() -> None:
    rows, noise = 20_000, 0.2
    table = RandomTree.single_split(nominal=3).sample(rows, noise=noise, seed=3)
    wrong = sum(value[1:] != label[1:] for value, label in zip(table["n0"], table["class"], strict=True))  # type: ignore[index]
    flipped = noise / 2  # of the attribute, and of the class
    assert likely(wrong, rows, 2 * flipped * (1 - flipped))


def test_values_and_classes_of_noiseless_points_are_uniform() -> None:
    table = RandomTree.single_split(nominal=3, numeric=2).sample(20_000, seed=4)
    for name in ("n0", "n1", "n2"):
        assert likely(table[name].count("v1"), 20_000, 0.5, tests=5)
    for name in ("x0", "x1"):
        assert stats.kstest(np.array(table[name], dtype=float), stats.uniform(0, 100).cdf).pvalue > FALSE_ALARM / 5


def test_the_single_numeric_split_is_at_35() -> None:
    tree = RandomTree.single_split(numeric=3)
    assert (tree.root.attribute, tree.root.threshold) == ("x0", 35.0)
    table = tree.sample(5_000, seed=5)
    assert table["class"] == ["c0" if number < 35 else "c1" for number in table["x0"]]  # type: ignore[operator]
    assert likely(table["class"].count("c0"), 5_000, 0.35)


def test_the_single_nominal_split_gives_each_value_a_class() -> None:
    tree = RandomTree.single_split()
    assert (len(tree.nominal), tree.root.attribute, tree.root.threshold) == (10, "n0", None)
    table = tree.sample(500, seed=6)
    assert [value[1:] for value in table["n0"]] == [label[1:] for label in table["class"]]  # type: ignore[index]


@given(TREES, st.sampled_from([0.0, 0.2]), st.integers(0, 40), st.integers(0, 2**32))
@settings(max_examples=30)
def test_the_schema_fits_every_sample(tree: RandomTree, noise: float, rows: int, seed: int) -> None:
    schema, table = tree.schema(rows_at_most=40), tree.sample(rows, noise=noise, seed=seed)
    codes = encode(open_source(table), schema)
    assert codes.rows == rows
    assert schema.class_labels == tuple(f"c{place}" for place in range(tree.classes))
    assert [attribute.name for attribute in schema.attributes] == list(table)
    for name in (*tree.nominal, "class"):
        labels = [schema.single(name).label(code) for code in codes.codes[name].tolist()]
        assert labels == table[name]
    for name in tree.numeric:
        points = np.array([float(schema.single(name).label(code)) for code in codes.codes[name].tolist()])
        gaps = np.array(table[name], dtype=float) - points
        assert np.all((gaps >= -0.00005 - 1e-9) & (gaps < 0.1))


@pytest.mark.parametrize(
    "wrong", [{"depth": 0}, {"depth": 2, "nominal": 0}, {"depth": 2, "values": 1}, {"depth": 2, "classes": 1}]
)
def test_impossible_trees_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(RequestError):
        RandomTree.draw(**wrong, seed=1)  # type: ignore[arg-type]


def test_impossible_samples_are_refused() -> None:
    tree = RandomTree.single_split()
    for rows, noise in ((-1, 0.0), (5, -0.1), (5, 1.1)):
        with pytest.raises(RequestError):
            tree.sample(rows, noise=noise, seed=1)
