"""Trees of cuts: where a node is cut, what an answer says, and that the leaves are cells which share out the rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from engine_strategies import Small
from engines_under_test import SPLIT_KEY, every_engine, over
from hypothesis import given, settings
from hypothesis import strategies as st
from support.noise import Decided
from support.twins import few_and_many

from dpmine.base.epsilon import Epsilon
from dpmine.codes.private_tree import (
    Box,
    CutNode,
    ResolvedCutRule,
    ResolvedPrivateTree,
    cut_of,
    halves,
    run_number,
    whole_box,
)
from dpmine.codes.rows import Cells, Enter, Recode, count_leaves
from dpmine.engines import cutting
from dpmine.engines.cutting import RowCutting, RuleCutting
from dpmine.engines.encoding import encode
from dpmine.engines.memory import MemoryEngine
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.kernel.door import Kernel
from dpmine.kernel.mechanisms import private_tree
from dpmine.kernel.mechanisms.private_tree import comparisons, grow_private_tree
from dpmine.language.parsing import parse_predicate
from dpmine.language.queries import Query, resolve
from dpmine.language.resolver import resolve_cells
from dpmine.language.views import LEAF, View, Where
from dpmine.owner.ledgers import book_at
from dpmine.questions.private_tree import CutRule, PrivateTree, tree_of


@st.composite
def cut_rules(draw: st.DrawFn, name: str) -> ResolvedCutRule:
    size = draw(st.integers(1, 9))
    inner = draw(st.sets(st.integers(1, size - 1), max_size=4)) if size > 1 else set()
    edges = (0, *sorted(inner))
    runs = [(first, after) for first in range(len(edges)) for after in range(first + 1, len(edges) + 1)]
    scores = tuple(draw(st.integers(-3, 6)) for _ in runs)
    cuts = tuple(draw(st.integers(first + 1, after - 1)) if after - first > 1 else 0 for first, after in runs)
    return ResolvedCutRule(name, size, edges, scores, cuts, draw(st.integers(0, 2)))


several_rules = st.integers(1, 3).flatmap(
    lambda count: st.tuples(*(cut_rules(name) for name in ("x", "y", "z")[:count])).map(list)
)


def schema_of(rules: Sequence[ResolvedCutRule]) -> Schema:
    numbers = [Numeric(rule.attribute, Decimal(0), Decimal(max(rule.size - 1, 1)), Decimal(1), Decimal(0)) for rule in rules]
    return Schema("cut", tuple(numbers), 1000)


def reference_cut(box: Box, rules: Sequence[ResolvedCutRule]) -> tuple[int, int] | None:
    """Attribute and code, written from the description: bins as lists of codes, runs in a dictionary."""
    best: tuple[int, int] | None = None
    best_worth = 0
    for place, rule in enumerate(rules):
        codes = list(range(box.lows[place], box.highs[place]))
        if len(codes) < 2:
            continue
        ends = [*rule.edges[1:], rule.size]
        touched = [
            number
            for number, (start, end) in enumerate(zip(rule.edges, ends, strict=True))
            if set(range(start, end)) & set(codes)
        ]
        order = itertools.combinations(range(len(rule.edges) + 1), 2)  # (0, 1), (0, 2), ..., (1, 2), ...
        table = dict(zip(order, zip(rule.scores, rule.cuts, strict=True), strict=True))
        if len(touched) == 1:
            worth, code = rule.inside * len(codes) ** 2, codes[0] + len(codes) // 2
        else:
            worth, number = table[touched[0], touched[-1] + 1]
            code = rule.edges[number]
        if best is None or worth > best_worth:
            best, best_worth = (place, code), worth
    return best


def all_nodes(rules: Sequence[ResolvedCutRule]) -> Iterator[Box]:
    waiting = [whole_box(rules)]
    while waiting:
        box = waiting.pop()
        yield box
        cut = cut_of(box, rules)
        if cut is not None:
            waiting.extend(halves(box, cut))


def cut_when(choices: Iterator[bool]) -> Decided:
    """Noise that cuts a node or not, as a test decides."""
    return Decided(lambda turn, size: [2**40 if next(choices) else -(2**40) for _ in range(size)])


def forced(rules: Sequence[ResolvedCutRule], choices: Iterator[bool], deepest: int = 60) -> CutNode:
    """A tree grown by the real code on an empty table."""

    def nobody(row_rules: Any) -> np.ndarray:
        return np.zeros(count_leaves(row_rules), dtype=np.int64)

    return grow_private_tree(RuleCutting(nobody), rules, deepest, cut_when(choices), comparisons(Epsilon.parse(1)))


def ever(answer: bool) -> Iterator[bool]:
    return itertools.repeat(answer)


# -- cuts --------------------------------------------------------------------------------------------------------------


def test_runs_are_numbered_in_the_order_of_the_question() -> None:
    for bins in range(1, 8):
        runs = list(itertools.combinations(range(bins + 1), 2))
        assert [run_number(first, after, bins) for first, after in runs] == list(range(bins * (bins + 1) // 2))


@given(several_rules)
@settings(max_examples=60)
def test_every_node_is_cut_where_the_rules_say(rules: list[ResolvedCutRule]) -> None:
    boxes = list(all_nodes(rules))
    for box in boxes:
        cut = cut_of(box, rules)
        assert (None if cut is None else (cut.place, cut.code)) == reference_cut(box, rules)
        if cut is not None:
            left, right = halves(box, cut)
            assert box.lows[cut.place] < cut.code < box.highs[cut.place]
            assert (left.highs[cut.place], right.lows[cut.place]) == (cut.code, cut.code)
    cells = int(np.prod([rule.size for rule in rules]))
    assert len(boxes) == 2 * cells - 1  # down to single codes


def test_equal_worth_goes_to_the_first_attribute() -> None:
    rules = [ResolvedCutRule(name, 4, (0,), (0,), (0,), 1) for name in ("x", "y")]
    root = forced(rules, ever(True), 2)
    assert root.cut is not None
    assert root.cut.place == 0
    assert [child.cut.place for child in root.children if child.cut] == [1, 1]
    nothing = [ResolvedCutRule(name, 4, (0,), (0,), (0,), 0) for name in ("x", "y")]
    assert [node.cut.place for node in forced(nothing, ever(True), 2).nodes() if node.cut] == [0, 0, 0]


# -- trees -------------------------------------------------------------------------------------------------------------


@given(several_rules, st.lists(st.booleans(), max_size=40))
@settings(max_examples=60)
def test_an_answer_is_read_as_the_tree_that_was_grown(rules: list[ResolvedCutRule], choices: list[bool]) -> None:
    root = forced(rules, itertools.chain(choices, ever(False)))
    bits = [int(node.cut is not None) for node in root.nodes()]
    assert len(bits) == 2 * sum(bits) + 1
    assert tree_of(bits, rules) == root


@given(several_rules, st.lists(st.booleans(), max_size=40))
@settings(max_examples=40)
def test_the_leaves_of_any_tree_share_out_the_domain(rules: list[ResolvedCutRule], choices: list[bool]) -> None:
    root = forced(rules, itertools.chain(choices, ever(False)))
    seen = np.zeros([rule.size for rule in rules], dtype=np.int64)
    for leaf in root.leaves():
        seen[tuple(slice(low, high) for low, high in zip(leaf.box.lows, leaf.box.highs, strict=True))] += 1
    assert (seen == 1).all()


def test_no_tree_grows_beyond_its_levels() -> None:
    rules = [ResolvedCutRule("x", 64, (0,), (0,), (0,), 1)]
    for deepest in (1, 2, 3, 6, 60):
        root = forced(rules, ever(True), deepest)
        assert max(node.depth for node in root.nodes()) == min(deepest, 6)
        assert len(list(root.leaves())) == 2 ** min(deepest, 6)
    assert list(forced(rules, ever(False)).nodes()) == [CutNode(whole_box(rules), 0)]


@pytest.mark.parametrize("most", [1, 2, 3, 8, 9, 21])
def test_no_tree_has_more_nodes_than_it_may_and_the_first_of_a_level_are_cut(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_tree, "MOST_PRIVATE_NODES", most)
    rules = [ResolvedCutRule("x", 64, (0,), (0,), (0,), 1)]
    root = forced(rules, ever(True))
    bits = [int(node.cut is not None) for node in root.nodes()]
    assert len(bits) == max(node for node in range(1, most + 1, 2))
    level = [root]
    while level:
        cut = [node.cut is not None for node in level]
        assert cut == sorted(cut, reverse=True)
        level = [child for node in level for child in node.children]


def test_the_most_nodes_are_as_many_as_stated() -> None:
    rules = [ResolvedCutRule(name, 4096, (0,), (0,), (0,), 1) for name in ("x", "y")]
    root = forced(rules, ever(True), 16)
    assert len(list(root.nodes())) == private_tree.MOST_PRIVATE_NODES == 65_535
    assert len(list(root.leaves())) == 32_768


# -- rows --------------------------------------------------------------------------------------------------------------


@st.composite
def rules_with_rows(draw: st.DrawFn) -> tuple[list[ResolvedCutRule], dict[str, list[float]], list[bool]]:
    rules = draw(several_rules.filter(lambda rules: all(rule.size > 1 for rule in rules)))
    count = draw(st.integers(0, 30))
    table = {rule.attribute: [float(draw(st.integers(0, rule.size - 1))) for _ in range(count)] for rule in rules}
    return rules, table, draw(st.lists(st.booleans(), max_size=30))


@every_engine()
@few_and_many(rules_with_rows(), few=10, many=60)
def test_the_leaves_are_cells_that_share_out_the_rows(engine: str, drawn: Any) -> None:
    """Against looking each row up in every box."""
    rules, table, choices = drawn
    schema = schema_of(rules)
    root = forced(rules, itertools.chain(choices, ever(False)))
    rows = list(zip(*table.values(), strict=True))
    wanted = [
        sum(
            all(low <= code < high for low, code, high in zip(leaf.box.lows, row, leaf.box.highs, strict=True))
            for row in rows
        )
        for leaf in root.leaves()
    ]
    assert sum(wanted) == len(rows)
    with over(engine, Small(schema, table)) as made:
        (counts,) = made.counts(Cells((), root.row_rules(rules)), [()])
        assert counts.tolist() == wanted


class Watched:
    """Cutting inside an engine, whose counts of the newest nodes are kept as they come."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.seen = [inner.counts.tolist()]

    @property
    def counts(self) -> np.ndarray:
        return self._inner.counts

    def cut(self, cuts: Any) -> None:
        self._inner.cut(cuts)
        self.seen.append(self._inner.counts.tolist())

    def keep(self, rules: Any) -> None:
        self._inner.keep(rules)


@every_engine()
@few_and_many(rules_with_rows(), st.booleans(), few=10, many=60)
def test_every_node_is_counted_as_it_is_made(engine: str, drawn: Any, narrowed: bool) -> None:
    """Against looking each row up in the boxes of every level; then the leaves, which the memory engine has kept."""
    rules, table, choices = drawn
    schema = schema_of(rules)
    first = rules[0]
    steps: tuple[Any, ...] = (Enter(Recode(first.attribute, ((0, 0), (1, 1)), 2), 1),) if narrowed else ()
    rows = [row for row in zip(*table.values(), strict=True) if not narrowed or row[0] >= 1]

    def inside(box: Box) -> int:
        return sum(all(low <= code < high for low, code, high in zip(box.lows, row, box.highs, strict=True)) for row in rows)

    with over(engine, Small(schema, table)) as made:
        watched = Watched(made.cutting(steps, tuple(rule.attribute for rule in rules)))
        root = grow_private_tree(
            watched, rules, 60, cut_when(itertools.chain(choices, ever(False))), comparisons(Epsilon.parse(1))
        )
        level, wanted = [root], []
        while level:
            wanted.append([inside(node.box) for node in level])
            level = [half for node in level for half in node.children]
        assert watched.seen == wanted
        (counts,) = made.counts(Cells(steps, root.row_rules(rules)), [()])
        assert counts.tolist() == [inside(leaf.box) for leaf in root.leaves()]


@pytest.mark.parametrize("chunk", [3, 65_536])
def test_rows_are_followed_over_many_chunks_and_their_leaves_are_kept(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "CHUNK", chunk)
    draw = np.random.default_rng(5)
    codes = {name: draw.integers(0, 64, 400).astype(np.uint8) for name in ("x", "y")}
    rows = np.flatnonzero(codes["x"] != 7)
    kept: dict[str, Any] = {}
    followed = RowCutting(codes, rows, lambda rules, ids, leaves: kept.update(ids=ids, leaves=leaves))
    followed.cut([("x", 32)])
    followed.cut([("y", 10), None])
    followed.cut([None, ("x", 3)])
    followed.keep(None)
    x, y = codes["x"].astype(int), codes["y"].astype(int)
    leaf = np.where(x >= 32, 3, np.where(y < 10, 0, np.where(x < 3, 1, 2)))
    assert kept["leaves"] == 4
    assert kept["ids"].tolist() == np.where(x == 7, 4, leaf).tolist()
    assert followed.counts.tolist() == [int(((leaf == place) & (x != 7)).sum()) for place in (1, 2)]


def test_every_newest_node_must_be_decided() -> None:
    with pytest.raises(ValueError, match="newest"):
        RuleCutting(lambda rules: np.zeros(1, dtype=np.int64)).cut([None, None])


def test_the_door_grows_the_tree_of_the_views_rows_only() -> None:
    """At epsilon 10,000 noise is 0 but for a chance below e^-3000."""
    rule = CutRule("x", (0, 4), (0, 9, 0), (0, 1, 1), 1)
    schema = Schema("line", (Numeric("x", Decimal(0), Decimal(15), Decimal(1), Decimal(0)),), 100)
    rows = {"x": [0.0] * 9 + [9.0] * 9}
    engine = MemoryEngine(encode(open_source(rows), schema), SPLIT_KEY)
    kernel = Kernel(schema.domain, engine, book_at(None, dataset="line", cap=1), version="1", encoding="test")
    for text, wanted in (("x <= 3", {4, 2, 1}), ("x > 3", {4, 10, 7, 8, 9}), ("x == 12", set())):
        query = Query(View((Where(parse_predicate(text)),)), LEAF, PrivateTree((rule,), 9), (Epsilon.parse(10_000),))
        plan = resolve(query, schema)
        (bits,) = kernel._compute(plan).numbers
        assert bits is not None
        assert isinstance(plan.question, ResolvedPrivateTree)
        root = tree_of(bits, plan.question.rules)
        codes = {node.cut.code for node in root.nodes() if node.cut is not None}
        assert codes == wanted
        assert sum(bits) == len(codes)
    assert resolve_cells((), LEAF, schema) == Cells((), None)
