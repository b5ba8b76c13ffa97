"""Forests: disjoint parts at one price, public structure, and a line between two classes that most rows are right with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mined_tables import schema_of, table_of, without_class
from support.opening import HUGE, fitted, opened, recorded

import dpmine as dm
from dpmine.language.keys import Bins, Groups, Part
from dpmine.language.splits import Stay
from dpmine.language.views import Split
from dpmine.mining.forests import BANDS, constant_vote, parts_of
from dpmine.mining.trees.growing import Growth
from dpmine.models.trees import MILLION, Node, Trees, encode_rows
from dpmine.questions.histogram import Histogram

SCHEMA = schema_of()
TABLE = table_of(SCHEMA, 300, 1, clear=0.85)


def structure(node: Node) -> Any:
    return node.split, [structure(child) for child in node.children]


# -- parts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trees", [1, 2, 5, 12])
@pytest.mark.parametrize("make", [dm.GreedyForest, dm.RandomForest])
def test_any_number_of_trees_has_one_price(make: Any, trees: int) -> None:
    with recorded(TABLE, SCHEMA, 2) as (private, recorder):
        model = make(epsilon="0.9", trees=trees, max_depth=2).fit(private)
        assert str(private.remaining()) == "1.1"
    assert str(model.cost_) == "0.9"
    extra = make is dm.RandomForest  # its constant vote
    assert len(model.trees_.trees) == trees + extra
    splits = [query.rules.key for query in recorder.queries if isinstance(query.rules, Split)]
    if trees > 1:
        assert {key for key in splits if isinstance(key, Part)} == {Part("forest", (1,) * trees)}


def test_every_row_is_in_exactly_one_tree() -> None:
    """Without noise the counts of all roots add up to the table, and each is about its share."""
    schema = schema_of(rows_at_most=10_000)
    table = table_of(schema, 2000, 1)
    for model in (dm.GreedyForest(HUGE, 5, 2), dm.RandomForest(HUGE, 5, 2, 0.0)):
        roots = np.array([tree.rows for tree in fitted(model, table, schema).trees_.trees])
        assert roots.sum(axis=0).tolist() == [table["class"].count(label) for label in schema.class_labels]
        assert (abs(roots.sum(axis=1) - 400) < 120).all()  # 6.7 standard deviations of 17.9


def test_the_parts_of_one_data_set_are_always_the_same() -> None:
    """Trees without noise, grown twice on one ledger's table, are the same; the parts follow from the ledger's key."""
    with dm.open(TABLE, schema=SCHEMA, cap=HUGE) as data:
        roots = []
        for analyst in ("alice", "bob"):
            private = data.grant(analyst, epsilon=400_000)
            roots.append([tree.rows for tree in dm.GreedyForest(200_000, 4, 2).fit(private).trees_.trees])
    assert roots[0] == roots[1]


def test_a_row_more_changes_one_part_and_no_other() -> None:
    """Rows are sent to parts by themselves, never by their place: with a row more, all other trees stay as they were."""
    table = {name: column[:100] for name, column in TABLE.items()}
    rows = []
    with dm.open(TABLE, schema=SCHEMA, cap=HUGE) as data:
        key = data._ledger.fact("split_key")
    for number in (100, 99):
        fewer = {name: list(reversed(column[:number])) for name, column in table.items()}
        with dm.open(fewer, schema=SCHEMA, cap=HUGE) as data:
            data._desk._kernel._engine = data._table.engine(bytes.fromhex(key))  # the same part for the same row
            private = data.grant("alice", epsilon=HUGE)
            rows.append([tree.rows for tree in dm.RandomForest(HUGE, 5, 1, 0.0, seed=1).fit(private).trees_.trees])
    changed = [one != other for one, other in zip(*rows, strict=True)]
    assert sum(changed) == 1


# -- the public structure ----------------------------------------------------------------------------------------------


def test_a_random_forest_s_structure_depends_on_its_seed_alone() -> None:
    def shapes(table: Any, seed: int | None, epsilon: Any = 1) -> Any:
        model = fitted(dm.RandomForest(epsilon, 4, 3, seed=seed), table, SCHEMA)
        return [structure(tree) for tree in model.trees_.trees]

    empty: dict[str, list[Any]] = {name: [] for name in TABLE}
    assert shapes(TABLE, 5) == shapes(TABLE, 5) == shapes(empty, 5) == shapes(TABLE, 5, "0.01")
    assert shapes(TABLE, 5) != shapes(TABLE, 6)
    assert shapes(TABLE, None) != shapes(TABLE, None)
    assert shapes(TABLE, 5)[0] != shapes(TABLE, 5)[1]


def test_a_random_forest_asks_for_leaves_and_the_line_only() -> None:
    with recorded(TABLE, SCHEMA, 1) as (private, recorder):
        model = dm.RandomForest(1, 4, 3, seed=1).fit(private)
    assert [type(query.question) for query in recorder.queries] == [Histogram, Histogram]
    paid = {epsilon.units for query in recorder.queries for epsilon in query.epsilon} - {0}  # 0: no row can come there
    assert paid == {900_000_000, 100_000_000}
    for tree in model.trees_.trees[:-1]:
        assert tree.depth == 3
        assert all(isinstance(node.split, Bins | Groups | None) for node in tree.nodes())


def test_a_greedy_forest_may_stay_whole_and_a_random_one_is_never_asked() -> None:
    with recorded(TABLE, SCHEMA, 1) as (private, recorder):
        dm.GreedyForest(1, 3, 2).fit(private)
    assert recorder.choices
    assert all(any(isinstance(family, Stay) for family in choice.candidates[0]) for choice in recorder.choices)


def test_one_tree_is_no_forest() -> None:
    """A greedy forest of one tree asks what a tree asks."""
    with recorded(TABLE, SCHEMA, 1) as (private, recorder):
        dm.GreedyForest(1, 1, 3, "gini").fit(private)
    with recorded(TABLE, SCHEMA, 1) as (private, other):
        dm.TreeClassifier(1, 3, "gini").fit(private)
    assert recorder.queries[0] == other.queries[0]  # what follows depends on noise


def test_an_average_of_probabilities_is_predicted() -> None:
    model = fitted(dm.GreedyForest(50, 3, 2), TABLE, SCHEMA)
    rows, count = encode_rows(without_class(TABLE), SCHEMA, [a.name for a in SCHEMA.attributes if a.name != "class"])
    alone = [Trees(model.trees_.classes, (tree,)).sums(rows, count, SCHEMA) for tree in model.trees_.trees]
    assert np.allclose(model.predict_proba(TABLE), sum(alone) / (3 * MILLION))


# -- the line between two classes --------------------------------------------------------------------------------------


def toy(shares: list[list[int]]) -> list[Node]:
    """Trees that split by colour, each with a share of the second class for every colour, in millionths."""
    colour = dm.parse_key("colour")
    return [
        Node((0, 0), (MILLION // 2, MILLION // 2), colour, tuple(Node((0, 0), (MILLION - s, s)) for s in tree))
        for tree in shares
    ]


SHARES = st.lists(st.lists(st.integers(0, MILLION), min_size=4, max_size=4), min_size=1, max_size=4)
ROWS = st.lists(st.tuples(st.sampled_from(("red", "blue", "yellow", "green")), st.booleans()), min_size=1, max_size=40)


@settings(max_examples=60)
@given(SHARES, ROWS)
def test_the_constant_vote_draws_the_line_where_most_rows_are_right(
    shares: list[list[int]], rows: list[tuple[str, bool]]
) -> None:
    """Without noise, no edge of the 100 bands has more right rows than the one that the constant vote makes the line."""
    schema = schema_of(numeric=False)
    table = {
        "colour": [colour for colour, _ in rows],
        "kind": ["a"] * len(rows),
        "flag": ["no"] * len(rows),
        "class": ["c1" if is_second else "c0" for _, is_second in rows],
    }
    trees = toy(shares)
    with opened(table, schema, 1000) as private:
        vote = constant_vote(trees, private, dm.Epsilon.parse(1000))
    codes, count = encode_rows(table, schema, ["colour"])
    second = np.array([is_second for _, is_second in rows])
    votes = Trees(("c0", "c1"), tuple(trees)).sums(codes, count, schema)[:, 1]
    edges = [MILLION * len(trees) * place // BANDS for place in range(1, BANDS)]
    best = max(int(((votes >= edge) == second).sum()) for edge in edges)
    sums = Trees(("c0", "c1"), (*trees, vote)).sums(codes, count, schema)
    predicted = sums.argmax(axis=1) == 1
    assert int((predicted == second).sum()) == best
    assert min(vote.shares) == 0
    (line,) = {edge for edge in edges if ((votes >= edge) == predicted).all() and vote_of(edge, len(trees)) == vote.shares}
    assert line


def vote_of(edge: int, trees: int) -> tuple[int, int]:
    """By hand: votes v for the second class of T win from the edge on if v + c > T - v, with c = T - 2 edge + 1."""
    shift = trees * MILLION - 2 * edge + 1
    return (0, shift) if shift > 0 else (-shift, 0)


def test_a_rare_class_is_predicted_once_the_line_is_moved() -> None:
    """Random trees' averages stay near the share of a class; with the line at one half a rare one is never predicted."""
    schema = schema_of(rows_at_most=10_000)
    table = table_of(schema, 3000, 1, clear=1)
    rare = [label if place % 3 == 0 else "c0" for place, label in enumerate(table["class"])]
    table = {**table, "class": rare}
    still = fitted(dm.RandomForest(HUGE, 6, 4, 0.0, seed=3), table, schema)
    moved = fitted(dm.RandomForest(HUGE, 6, 4, 0.1, seed=3), table, schema)
    assert moved.score(table, rare) >= still.score(table, rare) - 0.02
    assert len(still.trees_.trees) == 6
    assert len(moved.trees_.trees) == 7


def test_more_than_two_classes_have_no_line_to_move() -> None:
    schema = schema_of(classes=3)
    model = fitted(dm.RandomForest(1, 3, 2, 0.4), table_of(schema, 100, 1), schema)
    assert len(model.trees_.trees) == 3
    assert str(model.cost_) == "1"
    assert [str(step.epsilon) for step in model.plan(schema).steps] == ["1"]


def test_a_forest_s_plan_says_what_its_tree_s_plan_says() -> None:
    plan = dm.GreedyForest("0.5", 4).plan(SCHEMA, rows=4000)
    assert plan.algorithm == "GreedyForest of 4 trees (mixed)"
    assert plan.steps == dm.TreeClassifier("0.5").plan(SCHEMA, rows=1000).steps
    assert str(plan.cost) == "0.5"


def test_leaves_of_disjoint_trees_are_counted_in_one_query() -> None:
    with recorded(TABLE, SCHEMA, 1) as (private, recorder):
        growth = Growth(private, ())
        growth.count_classes(parts_of(growth, 4), dm.Epsilon.parse("0.5"))
        assert str(private.remaining()) == "0.5"
    (query,) = recorder.queries
    assert len(query.epsilon) == 4
