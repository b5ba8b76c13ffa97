"""Queries travel as flat text: whatever can be asked comes back the same, and nothing else comes back at all."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import assert_one_sentence
from support.twins import few_and_many
from support.wire_strategies import AWKWARD, BY_CLASS, queries

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.wire import DEEPEST, from_wire, to_wire
from dpmine.language.keys import AttributeKey, Bins, Part
from dpmine.language.model_keys import Predicted, ScoreLeaf, ScoreSplit
from dpmine.language.predicates import Compare, Not, Predicate
from dpmine.language.queries import LONGEST_REQUEST, Query, received
from dpmine.language.resolver import MOST_CELLS, MOST_STEPS
from dpmine.language.rule_trees import leaf_paths
from dpmine.language.splits import Multiway, Thresholds
from dpmine.language.views import LEAF, Cell, Rules, Split, View
from dpmine.questions.choose_split import ChooseSplit
from dpmine.questions.histogram import Histogram

ONE = (Epsilon.parse("0.1"),)
COUNT = Query(View(), LEAF, Histogram(()), ONE)

classes = st.sampled_from(
    [cls for cls in BY_CLASS if cls.__module__ != "dpmine.codes.rows" and not cls.__name__.startswith("Resolved")]
)
class_and_value = classes.flatmap(lambda cls: st.tuples(st.just(cls), BY_CLASS[cls]))
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(AWKWARD) | st.text(max_size=5)
json_values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4), max_leaves=20)


def read_or_refused(text: str | bytes) -> object | None:
    try:
        return from_wire(text, Query)
    except RequestError as error:
        assert_one_sentence(error)
        return None


# -- both ways ---------------------------------------------------------------------------------------------------------


@few_and_many(class_and_value, few=100, many=400)
def test_a_value_comes_back_from_its_flat_text(drawn: tuple[type, object]) -> None:
    cls, value = drawn
    if not hasattr(value, "__json_tag__"):
        return
    back = from_wire(to_wire(value), cls)
    assert back == value
    assert type(back) is type(value)
    assert to_wire(back) == to_wire(value)


@few_and_many(queries, queries, few=30, many=300)
def test_two_queries_share_a_text_only_if_they_are_equal(one: Query, other: Query) -> None:
    assert (to_wire(one) == to_wire(other)) == (one == other)


def test_the_text_of_a_query_is_what_the_documentation_of_the_wire_promises() -> None:
    rules = Split(AttributeKey("ward"), (LEAF, LEAF, LEAF))
    assert json.loads(to_wire(Query(View(), rules, Histogram((AttributeKey("sex"),)), ONE))) == [
        ["view", []],
        ["attribute", "ward"],
        ["leaf"],
        ["split", 1, [2, 2, 2]],
        ["attribute", "sex"],
        ["histogram", [4]],
        ["query", 0, 3, 5, ["0.1"]],
    ]


def deep_rules(levels: int) -> Rules:
    rules: Rules = LEAF
    for place in range(levels):
        rules = Split(Part(f"level {place}", (1, 1)), (rules, LEAF))
    return rules


def test_the_deepest_rule_tree_and_the_deepest_view_travel() -> None:
    """Plain JSON had to stop below 60 levels."""
    query = Query(View(), deep_rules(MOST_STEPS), Histogram(()), ONE)
    assert from_wire(to_wire(query), Query) == query
    view = View(tuple(Cell(AttributeKey("ward"), 0) for _ in range(MOST_STEPS)))
    assert from_wire(to_wire(Query(view, LEAF, Histogram(()), ONE)), Query).view == view


def test_a_query_of_as_many_cells_as_are_allowed_is_short_enough_to_be_read() -> None:
    """As plain JSON it was 7 MiB long: over the limit, although the door would have answered it."""
    keys = [Bins(f"a{place % 14}", (str(place),)) for place in range(4_000)]
    nodes: list[Rules] = [LEAF] * MOST_CELLS
    number = 0
    while len(nodes) > 1:
        pairs = zip(nodes[::2], nodes[1::2], strict=True)
        nodes = []
        for pair in pairs:
            number += 1
            nodes.append(Split(keys[number * 7919 % len(keys)], pair))
    epsilons = tuple(Epsilon(10**8 + place % 1_000) for place in range(MOST_CELLS))
    families = (Thresholds("a1"), Thresholds("a2", "3", "9"), Multiway(AttributeKey("w")))
    question = ChooseSplit((families,) * MOST_CELLS, "gini", "exponential", "monotone")
    for query in (Query(View(), nodes[0], Histogram(()), epsilons), Query(View(), nodes[0], question, ONE)):
        text = to_wire(query)
        assert len(text) < LONGEST_REQUEST
        back = received(text)
        assert back == query
    assert sum(1 for _ in leaf_paths(nodes[0])) == MOST_CELLS


def test_the_fields_of_a_caller_are_read_as_what_they_claim_to_be_or_not_at_all() -> None:
    class Chameleon(Histogram):
        __hash__ = Histogram.__hash__

    class Name(str):
        pass

    back = from_wire(to_wire(Query(View(), LEAF, Chameleon(()), ONE)), Query)
    assert type(back.question) is Histogram
    back = from_wire(to_wire(Query(View(), LEAF, Histogram((AttributeKey(Name("ward")),)), ONE)), Query)
    assert type(back.question.keys[0].attribute) is str  # type: ignore[attr-defined]
    for cell in (Cell(AttributeKey("ward"), True), Cell(AttributeKey("ward"), np.int64(1)), Cell(AttributeKey("ward"), 1.0)):  # type: ignore[arg-type]
        with pytest.raises(RequestError):
            from_wire(to_wire(Query(View((cell,)), LEAF, Histogram(()), ONE)), Query)
    with pytest.raises(RequestError, match="not be negative"):
        from_wire(to_wire(Query(View(), LEAF, Histogram(()), (Epsilon(5), Epsilon(-5)))), Query)
    for wrong in ([LEAF], "leaf", object(), None):
        with pytest.raises(RequestError):
            from_wire(to_wire(Query(View(), wrong, Histogram(()), ONE)), Query)  # type: ignore[arg-type]


# -- what is refused ---------------------------------------------------------------------------------------------------

ROWS: list[Any] = json.loads(to_wire(COUNT))


def damaged(**changes: Any) -> str:
    rows = [list(row) for row in ROWS]
    for place, change in changes.items():
        rows[int(place[1:])] = change
    return json.dumps(rows)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid JSON"),
        ("[[", "not valid JSON"),
        ("null", "list of rows"),
        ("{}", "list of rows"),
        ("[]", "list of rows"),
        ("[3]", "begins with a tag"),
        ("[[]]", "begins with a tag"),
        ("[[3]]", "begins with a tag"),
        ('[["bomb"]]', "no value 'bomb'"),
        ('[["leaf"]]', "last row must be a Query"),
        ('[["leaf", 1]]', "exactly the fields"),
        ('[["split", 0, []]]', "earlier row"),
        ('[["histogram", []], ["split", 0, []]]', "must be a Key"),
        ('[["attribute", 3]]', "must be text"),
        ('[["attribute", 0.5]]', "floats are not part"),
        ('[["attribute", NaN]]', "floats are not part"),
        ('[["attribute", "a"], ["cell", 0, true]]', "must be an integer"),
        ('[["attribute", "a"], ["cell", 0, null]]', "must be an integer"),
        ('[["attribute", "a"], ["cell", -1, 0]]', "earlier row"),
        ('[["attribute", "a"], ["cell", true, 0]]', "earlier row"),
        ('[["attribute", "a"], ["histogram", 0]]', "must be a list"),
        ('[["part", "salt", [1, true]]]', "list of integers"),
    ],
)
def test_text_that_is_no_query_is_refused_with_a_reason(text: str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as refused:
        from_wire(text, Query)
    assert_one_sentence(refused.value)


def test_text_beyond_the_limit_of_its_reader_is_refused_before_it_is_read() -> None:
    with pytest.raises(RequestError, match="longer than") as refused:
        received(" " * (LONGEST_REQUEST + 1))
    assert_one_sentence(refused.value)


@pytest.mark.parametrize("depth", [DEEPEST + 1, 2_000, 50_000])
def test_deep_nesting_is_refused_and_exhausts_nothing(depth: int) -> None:
    predicate: Predicate = Compare("a", "==", "1")
    for _ in range(depth):
        predicate = Not(predicate)
    with pytest.raises(RequestError, match="nested deeper") as refused:
        from_wire(to_wire(predicate), Predicate)
    assert_one_sentence(refused.value)
    with pytest.raises(RequestError):
        from_wire("[" * depth + "]" * depth, Query)


def test_a_short_text_that_would_be_endless_written_out_is_refused_at_once() -> None:
    """Forty rows, each naming the one before twice, are a rule tree of 2^40 leaves."""
    doubled: list[list[Any]] = [["attribute", "a"], ["leaf"]]
    for _ in range(40):
        doubled.append(["split", 0, [len(doubled) - 1] * 2])
    started = time.perf_counter()
    with pytest.raises(RequestError, match="parts when it is written out"):
        from_wire(json.dumps(doubled), Rules)
    assert time.perf_counter() - started < 5


@given(json_values | st.lists(st.lists(scalars | st.lists(st.integers(0, 5), max_size=3), max_size=4), max_size=6))
def test_other_json_is_refused_and_never_crashes(form: object) -> None:
    assert read_or_refused(json.dumps(form)) is None


@given(st.text(max_size=30) | st.binary(max_size=30))
def test_random_text_is_refused_and_never_crashes(text: str | bytes) -> None:
    assert read_or_refused(text) is None


@given(st.integers(0, len(ROWS) - 1), st.integers(0, 4), scalars | st.lists(scalars, max_size=3))
def test_a_damaged_query_is_refused_or_another_query(row: int, place: int, wrong: Any) -> None:
    rows = json.loads(to_wire(COUNT))
    if place < len(rows[row]):
        rows[row][place] = wrong
    read_or_refused(json.dumps(rows))


def test_a_model_with_many_leaves_travels_as_a_key() -> None:
    leaves = [ScoreLeaf((place, place % 3)) for place in range(4_096)]
    nodes: list[Any] = list(leaves)
    while len(nodes) > 1:
        nodes = [ScoreSplit(Bins("a", ("3",)), (left, right)) for left, right in zip(nodes[::2], nodes[1::2], strict=True)]
    query = Query(View(), LEAF, Histogram((Predicted((nodes[0],), ("no", "yes")),)), ONE)
    assert from_wire(to_wire(query), Query) == query
