"""Noisy counts on trees: the error limit against SciPy, Algorithm 3 under fire, least squares against the dense solution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmine.base.errors import RequestError
from dpmine.postprocess.error_limits import expected_errors, upper_error
from dpmine.postprocess.noisy_trees import (
    CountedNode,
    Counts,
    bottom_up_aggregate,
    least_squares,
    prune_as_published,
    prune_by_error,
    top_down_correct,
)

CLASSES = 3

# -- the error limit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("errors", "rows", "limit"),
    [(0, 6, 0.2063), (0, 9, 0.1428), (0, 1, 0.75), (1, 16, 0.1596), (2, 6, 0.5532), (10, 100, 0.1282)],
)
def test_the_error_limit_has_the_values_worked_out_before(errors: int, rows: int, limit: float) -> None:
    assert upper_error(errors, rows) == pytest.approx(limit, abs=5e-5)


@given(
    st.floats(1e-3, 1e5),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from([0.001, 0.05, 0.25, 0.5, 0.9]),
)
def test_the_error_limit_is_the_quantile_of_the_beta_law(rows: float, share: float, confidence: float) -> None:
    errors = rows * share
    if errors >= rows:
        return
    expected = stats.beta.isf(confidence, errors + 1, rows - errors)
    assert upper_error(errors, rows, confidence) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("errors", "rows"), [(1, 16), (2, 6), (7, 30), (49, 50)])
def test_at_the_limit_so_few_errors_have_the_stated_probability(errors: int, rows: int) -> None:
    for confidence in (0.05, 0.25, 0.6):
        limit = upper_error(errors, rows, confidence)
        few = sum(math.comb(rows, k) * limit**k * (1 - limit) ** (rows - k) for k in range(errors + 1))
        assert few == pytest.approx(confidence, rel=1e-10)


def test_the_error_limit_settles_what_noise_can_make_of_counts() -> None:
    assert upper_error(0, 0) == upper_error(3, 0) == upper_error(0, -2.5) == upper_error(-1, -2) == 1
    assert upper_error(5, 5) == upper_error(7.5, 5) == 1
    assert upper_error(-4, 9) == upper_error(0, 9)
    assert upper_error(0, 1e-9) == pytest.approx(1)
    assert upper_error(2e-134, 3e-134) == pytest.approx(1)
    assert upper_error(1e6, math.nextafter(1e6, 2e6)) == pytest.approx(1)
    assert 0 < upper_error(0, 1e9) < 1e-8
    assert expected_errors(0, -3) == 0
    assert expected_errors(2, 6) == pytest.approx(6 * 0.5532, abs=1e-3)


def test_the_error_limit_grows_with_errors_and_shrinks_with_rows_and_confidence() -> None:
    by_errors = [upper_error(errors, 20) for errors in np.linspace(0, 20, 81)]
    assert all(low < high for low, high in itertools.pairwise(by_errors))
    by_rows = [upper_error(2, rows) for rows in np.linspace(2.1, 100, 81)]
    assert all(low > high for low, high in itertools.pairwise(by_rows))
    by_confidence = [upper_error(2, 20, confidence) for confidence in np.linspace(0.01, 0.99, 50)]
    assert all(low > high for low, high in itertools.pairwise(by_confidence))


@pytest.mark.parametrize("confidence", [0, 1, -0.1, math.nan])
def test_an_impossible_confidence_is_refused(confidence: float) -> None:
    with pytest.raises(RequestError, match="between 0 and 1"):
        upper_error(1, 10, confidence)


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(RequestError, match="finite"):
        upper_error(math.nan, 10)
    with pytest.raises(RequestError, match="finite"):
        upper_error(1, math.inf)


# -- trees to try ------------------------------------------------------------------------------------------------------

NOISY = st.one_of(st.just(0.0), st.integers(-50, 50).map(float), st.floats(-1e6, 1e6))
VECTORS = st.lists(NOISY, min_size=CLASSES, max_size=CLASSES).map(np.array)
SIZES = st.one_of(st.none(), NOISY)
LEAVES = st.builds(CountedNode, SIZES, VECTORS)
TREES = st.recursive(
    LEAVES,
    lambda below: st.builds(CountedNode, SIZES, st.one_of(st.none(), VECTORS), st.lists(below, min_size=1, max_size=4)),
    max_leaves=12,
)


def random_tree(draw: np.random.Generator, depth: int = 0) -> CountedNode:
    """A tree of any shape with measurements at all leaves and at some nodes, each with its own variance."""
    inner = depth == 0 or (depth < 3 and draw.random() < 0.5)
    children = [random_tree(draw, depth + 1) for _ in range(draw.integers(1, 5))] if inner else []
    return CountedNode(
        float(draw.normal(10, 20)) if draw.random() < 0.5 else None,
        draw.normal(5, 20, CLASSES) if not children or draw.random() < 0.5 else None,
        children,
        rows_variance=float(draw.uniform(0.1, 10)),
        classes_variance=float(draw.uniform(0.1, 10)),
    )


def leaves(node: CountedNode) -> list[CountedNode]:
    return [below for below in node.nodes() if not below.children]


def classes_of(node: CountedNode) -> Counts:
    assert node.classes is not None
    return node.classes


def children_together(node: CountedNode) -> Counts:
    together: Counts = np.sum([classes_of(child) for child in node.children], axis=0)
    return together


def rows_of(node: CountedNode) -> float:
    assert node.rows is not None
    return node.rows


# -- Algorithm 3 -------------------------------------------------------------------------------------------------------


@given(TREES)
def test_algorithm_3_makes_consistent_counts_of_any_noise(tree: CountedNode) -> None:
    total = tree.rows
    top_down_correct(tree)
    bottom_up_aggregate(tree)
    if total is not None:
        assert tree.rows == max(total, 0)
    for node in tree.nodes():
        assert math.isfinite(rows_of(node))
        assert rows_of(node) >= 0
        assert np.isfinite(classes_of(node)).all()
        assert (classes_of(node) >= 0).all()
        assert classes_of(node).sum() == pytest.approx(rows_of(node), rel=1e-9, abs=1e-12)
        if node.children:
            assert sum(map(rows_of, node.children)) == pytest.approx(rows_of(node), rel=1e-9, abs=1e-12)
            assert children_together(node) == pytest.approx(classes_of(node))


def test_algorithm_3_by_hand() -> None:
    """Root 60; children 30 and 10 grow to 45 and 15; the leaves' classes are scaled to the new rows."""
    left = CountedNode(30, np.array([10.0, 5.0]))
    right = CountedNode(10, None, [CountedNode(4, np.array([1.0, 1.0])), CountedNode(6, np.array([-3.0, 2.0]))])
    root = CountedNode(60, None, [left, right])
    top_down_correct(root)
    assert [node.rows for node in root.nodes()] == pytest.approx([60, 45, 15, 6, 9])
    bottom_up_aggregate(root)
    assert classes_of(left).tolist() == pytest.approx([30, 15])
    assert [classes_of(leaf).tolist() for leaf in right.children] == [pytest.approx([3, 3]), pytest.approx([0, 9])]
    assert classes_of(right).tolist() == pytest.approx([3, 12])
    assert classes_of(root).tolist() == pytest.approx([33, 27])


def test_algorithm_3_shares_evenly_where_nothing_is_left() -> None:
    root = CountedNode(12, None, [CountedNode(-5, np.array([-1.0, 0.0])), CountedNode(0, np.array([0.0, 4.0]))])
    top_down_correct(root)
    bottom_up_aggregate(root)
    assert [node.rows for node in root.nodes()] == [12, 6, 6]
    assert [classes_of(leaf).tolist() for leaf in leaves(root)] == [[3, 3], [0, 6]]


def test_a_node_that_was_not_counted_has_the_rows_of_its_classes_or_children() -> None:
    left = CountedNode(None, None, [CountedNode(10, np.array([1.0, 1.0])), CountedNode(None, np.array([25.0, -5.0]))])
    root = CountedNode(None, None, [left, CountedNode(30, np.array([1.0, 0.0]))])
    top_down_correct(root)
    assert [node.rows for node in root.nodes()] == pytest.approx([60, 30, 10, 20, 30])


def test_a_leaf_without_counts_is_refused() -> None:
    with pytest.raises(RequestError, match="leaf needs a noisy count"):
        top_down_correct(CountedNode(None, None, [CountedNode()]))
    with pytest.raises(RequestError, match="needs class counts"):
        bottom_up_aggregate(CountedNode(5.0))


@given(TREES)
@settings(max_examples=50)
def test_pruning_as_published_survives_any_noise(tree: CountedNode) -> None:
    for node in prune_as_published(tree):
        assert node.pruned
        assert node.children


# -- pruning -----------------------------------------------------------------------------------------------------------


def consistent(draw: np.random.Generator, depth: int = 0) -> CountedNode:
    if depth < 3 and draw.random() < (1 if depth == 0 else 0.5):
        children = [consistent(draw, depth + 1) for _ in range(draw.integers(2, 4))]
        return CountedNode(None, np.sum([classes_of(child) for child in children], axis=0), children)
    return CountedNode(None, np.round(draw.exponential(8, CLASSES) * draw.integers(0, 2, CLASSES)))


def leaf_errors(node: CountedNode, confidence: float) -> float:
    rows = float(classes_of(node).sum())
    return expected_errors(rows - float(classes_of(node).max()), rows, confidence)


def all_prunings(node: CountedNode, confidence: float) -> Iterator[tuple[float, int]]:
    """The expected errors and the leaves of every tree that pruning can make."""
    yield leaf_errors(node, confidence), 1
    if node.children:
        for choice in itertools.product(*(list(all_prunings(child, confidence)) for child in node.children)):
            yield sum(errors for errors, _ in choice), sum(count for _, count in choice)


def after_pruning(node: CountedNode, confidence: float) -> tuple[float, int]:
    if node.is_leaf:
        return leaf_errors(node, confidence), 1
    parts = [after_pruning(child, confidence) for child in node.children]
    return sum(errors for errors, _ in parts), sum(count for _, count in parts)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("confidence", [0.05, 0.25, 0.5])
def test_pruning_finds_the_smallest_of_the_trees_with_least_expected_errors(seed: int, confidence: float) -> None:
    tree = consistent(np.random.default_rng(seed))
    prunings = list(all_prunings(tree, confidence))
    outermost = prune_by_error(tree, confidence)
    errors, count = after_pruning(tree, confidence)
    least = min(errors for errors, _ in prunings)
    assert errors == pytest.approx(least, abs=1e-7)
    assert count == min(count for errors, count in prunings if errors <= least + 1e-7)
    assert all(node.pruned for node in outermost)
    assert not any(inner is node for outer in outermost for inner in list(outer.nodes())[1:] for node in outermost)


def test_pruning_by_hand() -> None:
    """Quinlan's example (1993, section 4.2): 6 + 9 + 1 rows of one class but for one row become one leaf.

    The subtree: 6 U(0,6) + 9 U(0,9) + 1 U(0,1) = 3.273. The leaf: 16 U(1,16) = 2.554.
    """
    parts = [CountedNode(None, np.array(counts, dtype=float)) for counts in ([6, 0], [9, 0], [0, 1])]
    subtree = CountedNode(None, np.array([15.0, 1.0]), parts)
    root = CountedNode(None, np.array([15.0, 101.0]), [subtree, CountedNode(None, np.array([0.0, 100.0]))])
    assert prune_by_error(root) == [subtree]
    assert subtree.pruned
    assert not root.pruned


def test_a_split_that_separates_nothing_is_pruned_and_one_that_separates_all_is_kept() -> None:
    def split(*leaf_counts: list[float]) -> CountedNode:
        below = [CountedNode(None, np.array(counts)) for counts in leaf_counts]
        return CountedNode(None, np.sum(leaf_counts, axis=0), below)

    assert len(prune_by_error(split([30.0, 10.0], [30.0, 10.0]))) == 1
    assert prune_by_error(split([40.0, 0.0], [0.0, 40.0])) == []
    assert len(prune_by_error(split([0.0, 0.0], [5.0, 3.0]))) == 1  # an empty branch changes nothing
    assert len(prune_by_error(split([0.0, 0.0], [0.0, 0.0]))) == 1


def test_pruning_needs_class_counts_everywhere() -> None:
    with pytest.raises(RequestError, match="class counts of every node"):
        prune_by_error(CountedNode(5.0))


# -- least squares -----------------------------------------------------------------------------------------------------


def dense_solution(root: CountedNode) -> list[Counts]:
    """The leaves' class counts by numpy's least squares over all measurements, each divided by its standard deviation."""
    below = leaves(root)
    place = {id(leaf): number for number, leaf in enumerate(below)}
    equations: list[Any] = []
    measured: list[float] = []
    for node in root.nodes():
        inside = np.zeros(len(below))
        inside[[place[id(leaf)] for leaf in leaves(node)]] = 1
        if node.classes is not None:
            for number in range(CLASSES):
                equations.append(np.kron(inside, np.eye(CLASSES)[number]) / math.sqrt(node.classes_variance))
                measured.append(node.classes[number] / math.sqrt(node.classes_variance))
        if node.rows is not None:
            equations.append(np.kron(inside, np.ones(CLASSES)) / math.sqrt(node.rows_variance))
            measured.append(node.rows / math.sqrt(node.rows_variance))
    solution, *_ = np.linalg.lstsq(np.array(equations), np.array(measured), rcond=None)
    return list(solution.reshape(-1, CLASSES))


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("with_rows", [False, True])
def test_two_passes_solve_the_least_squares_problem(seed: int, with_rows: bool) -> None:
    tree = random_tree(np.random.default_rng(seed))
    if not with_rows:
        for node in tree.nodes():
            node.rows = None
    before = [(node.rows, node.classes) for node in tree.nodes()]
    estimate = least_squares(tree)
    found = np.array([leaf.classes for leaf in leaves(estimate)])
    assert np.abs(found - np.array(dense_solution(tree))).max() < 1e-9
    for node in estimate.nodes():
        assert rows_of(node) == pytest.approx(classes_of(node).sum(), abs=1e-9)
        if node.children:
            assert children_together(node) == pytest.approx(classes_of(node), abs=1e-9)
    for node, (rows, classes) in zip(tree.nodes(), before, strict=True):
        assert node.rows is rows
        assert node.classes is classes


def test_least_squares_is_the_formula_of_hay_on_a_full_binary_tree() -> None:
    draw = np.random.default_rng(7)
    values = {(level, place): draw.normal(size=1) for level in range(3) for place in range(2**level)}

    def build(level: int, place: int) -> CountedNode:
        below = [build(level + 1, 2 * place + side) for side in range(2)] if level < 2 else []
        return CountedNode(None, values[level, place], below)

    z: dict[tuple[int, int], Counts] = {}
    for level, height in ((2, 1), (1, 2), (0, 3)):
        for place in range(2**level):
            y = values[level, place]
            under = sum(z[level + 1, 2 * place + side] for side in range(2)) if height > 1 else 0
            z[level, place] = ((2**height - 2 ** (height - 1)) * y + (2 ** (height - 1) - 1) * under) / (2**height - 1)
    h = {(0, 0): z[0, 0]}
    for level in (1, 2):
        for place in range(2**level):
            siblings = z[level, place] + z[level, place ^ 1]
            h[level, place] = z[level, place] + (h[level - 1, place // 2] - siblings) / 2
    found = [classes_of(leaf)[0] for leaf in leaves(least_squares(build(0, 0)))]
    assert found == pytest.approx([h[2, place][0] for place in range(4)], abs=1e-12)


def test_least_squares_leaves_consistent_counts_alone() -> None:
    tree = consistent(np.random.default_rng(3))
    for old, new in zip(tree.nodes(), least_squares(tree).nodes(), strict=True):
        assert classes_of(new) == pytest.approx(classes_of(old), abs=1e-9)


def test_least_squares_refuses_leaves_without_counts_and_impossible_variances() -> None:
    with pytest.raises(RequestError, match="every leaf"):
        least_squares(CountedNode(None, np.ones(2), [CountedNode(3.0)]))
    with pytest.raises(RequestError, match="variances above 0"):
        least_squares(CountedNode(None, np.ones(2), classes_variance=0))
