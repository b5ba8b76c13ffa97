"""Whatever the schema allows to be asked is answered through the door, exactly where epsilon is as large as it gets."""

from __future__ import annotations

import dataclasses

import numpy as np
from engine_reference import Reference
from engine_strategies import Small, keys, predicates, rule_trees, small_tables, steps
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmine as dm
from dpmine.epsilon import LARGEST, Epsilon
from dpmine.expressions import Key, Predicate
from dpmine.queries import (
    CALIBRATIONS,
    MECHANISMS,
    SPLIT_SCORES,
    ChooseLabel,
    ChooseSplit,
    Count,
    Histogram,
    Multiway,
    Query,
    Question,
    Splits,
    Thresholds,
    View,
    leaf_paths,
)
from dpmine.schema import Nominal, Numeric, Schema
from dpmine.wire import from_wire, to_wire

ALL_OF_IT = (Epsilon.parse(LARGEST),)


def with_class(schema: Schema) -> Schema:
    """The schema with its first nominal attribute as class, if there is one."""
    nominal = [attribute.name for attribute in schema.attributes if isinstance(attribute, Nominal)]
    return dataclasses.replace(schema, class_attribute=nominal[0] if nominal else None)


@st.composite
def families(draw: st.DrawFn, schema: Schema) -> Splits:
    numeric = [attribute.name for attribute in schema.attributes if isinstance(attribute, Numeric)]
    nominal = [attribute for attribute in schema.attributes if isinstance(attribute, Nominal) and attribute.size > 1]
    kind = draw(st.sampled_from(["key", "key"] + ["thresholds"] * bool(numeric) + ["subsets"] * bool(nominal)))
    if kind == "thresholds":
        return Thresholds(draw(st.sampled_from(numeric)))
    if kind == "subsets":
        return dm.one_versus_rest(schema, draw(st.sampled_from(nominal)).name)
    return Multiway(draw(keys(schema)))


@st.composite
def questions(draw: st.DrawFn, schema: Schema) -> Question:
    kind = draw(st.sampled_from(["count", "histogram", "label"] + ["split"] * (schema.class_attribute is not None)))
    if kind == "count":
        return Count()
    if kind == "histogram":
        return Histogram(tuple(draw(st.lists(keys(schema), min_size=1, max_size=3))))
    mechanism, calibration = draw(st.sampled_from(MECHANISMS)), draw(st.sampled_from(CALIBRATIONS))
    if kind == "label":
        return ChooseLabel(draw(keys(schema)), mechanism, calibration)
    candidates = tuple(draw(st.lists(families(schema), min_size=1, max_size=3)))
    return ChooseSplit((candidates,), draw(st.sampled_from(SPLIT_SCORES)), mechanism, calibration)


@st.composite
def tables_with_queries(draw: st.DrawFn) -> tuple[Small, Query]:
    small = draw(small_tables())
    schema = with_class(small.schema)
    view = View(tuple(draw(st.lists(steps(schema), max_size=2))))
    query = Query(view, draw(rule_trees(schema, deepest=2)), draw(questions(schema)), ALL_OF_IT)
    return Small(schema, small.table), query


@given(tables_with_queries())
@settings(max_examples=200)
def test_every_query_that_the_schema_allows_is_answered_exactly_at_the_largest_epsilon(drawn: tuple[Small, Query]) -> None:
    small, query = drawn
    with dm.open(small.table, schema=small.schema, cap=LARGEST) as data:
        executor = data.grant("alice", epsilon=LARGEST)._executor
        reply = executor.answer(from_wire(to_wire(query), Query))
        split_key = bytes.fromhex(data._ledger.fact("split_key"))
    reference = Reference(small.table, small.schema, split_key)
    leaves = sum(1 for _ in leaf_paths(query.rules))
    assert str(reply.cost) == str(LARGEST)
    assert len(reply.answer.numbers) == leaves
    question = query.question
    asked = (
        question.keys if isinstance(question, Histogram) else (question.key,) if isinstance(question, ChooseLabel) else ()
    )
    counts = np.zeros((leaves, *(reference.size(key) for key in asked)), dtype=np.int64)
    for place, count in reference.counts(query.view.steps, query.rules, asked).items():
        counts[place] = count
    for cell, numbers in enumerate(reply.answer.numbers):
        assert numbers is not None
        if isinstance(question, (Count, Histogram)):
            assert list(numbers) == counts[cell].ravel().tolist()
        elif isinstance(question, ChooseLabel):
            assert counts[cell][numbers[0]] == counts[cell].max()
        else:
            assert isinstance(question, ChooseSplit)
            assert 0 <= numbers[0] < sum(family.size(small.schema) for family in question.families(cell))


@given(small_tables().flatmap(lambda small: st.tuples(st.just(small), predicates(small.schema), keys(small.schema))))
@settings(max_examples=60)
def test_a_partition_and_its_rule_tree_name_the_same_cells(drawn: tuple[Small, Predicate, Key]) -> None:
    """Asked one by one as views or all at once as cells: the same counts, and each way costs its maximum over cells."""
    small, predicate, key = drawn
    with dm.open(small.table, schema=small.schema, cap=LARGEST) as data:
        private = data.grant("alice", epsilon=LARGEST).where(predicate)
        one_by_one = [part.count(epsilon=1000).value for part in private.partition(key).values()]
        assert private.remaining() == Epsilon.parse(LARGEST - 1000)
        at_once = [count.value for count in private.cells(key).count_cells(epsilon=1001) if count is not None]
        assert at_once == one_by_one
        assert private.remaining() == Epsilon.parse(LARGEST - 2001)
        assert sum(at_once) == private.count(epsilon=1000).value
