"""Whatever the schema allows to be asked is answered through the door, exactly where epsilon is as large as it gets."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from engine_reference import Reference, holds, rows_of
from engine_strategies import Small, keys, predicates, rule_trees, small_tables, steps
from hypothesis import reject
from hypothesis import strategies as st
from support.twins import few_and_many

import dpmine as dm
from dpmine.base.epsilon import LARGEST, Epsilon
from dpmine.base.wire import from_wire, to_wire
from dpmine.codes.choices import CALIBRATIONS, MECHANISMS
from dpmine.codes.choose_split import SPLIT_SCORES
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.kind import OWN
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.candidates import number_of_candidates
from dpmine.language.keys import Key, Test
from dpmine.language.predicates import And, Compare, IsIn, IsMissing, Not, Or, Predicate
from dpmine.language.queries import Query, Question
from dpmine.language.rule_trees import leaf_paths
from dpmine.language.splits import Multiway, Splits, Thresholds
from dpmine.language.views import LEAF, View, Where
from dpmine.questions.choose_label import ChooseLabel
from dpmine.questions.choose_split import ChooseSplit
from dpmine.questions.histogram import Histogram
from dpmine.tables.asking import query_of

ALL_OF_IT = (Epsilon.parse(LARGEST),)


def with_class(schema: Schema) -> Schema:
    """The schema with its first nominal attribute as class, if there is one without gaps as a label of their own."""
    nominal = [attribute.name for attribute in schema.attributes if isinstance(attribute, Nominal) and attribute.gap != OWN]
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
        return Histogram(())
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


@contextmanager
def rejecting_what_no_row_can_meet() -> Iterator[None]:
    """Such predicates are refused; of that more below."""
    try:
        yield
    except dm.ExpressionError as error:
        assert "is true for no row" in str(error)  # noqa: PT017 (other errors are mistakes)
        reject()


@few_and_many(tables_with_queries(), few=40, many=300)
def test_every_query_that_the_schema_allows_is_answered_exactly_at_the_largest_epsilon(drawn: tuple[Small, Query]) -> None:
    small, query = drawn
    with dm.open(small.table, schema=small.schema, cap=LARGEST) as data:
        executor = data.grant("alice", epsilon=LARGEST)._executor
        with rejecting_what_no_row_can_meet():
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
        if isinstance(question, (Histogram, Histogram)):
            assert list(numbers) == counts[cell].ravel().tolist()
        elif isinstance(question, ChooseLabel):
            assert counts[cell][numbers[0]] == counts[cell].max()
        else:
            assert isinstance(question, ChooseSplit)
            assert 0 <= numbers[0] < sum(number_of_candidates(family, small.schema) for family in question.families(cell))


@few_and_many(
    small_tables().flatmap(lambda small: st.tuples(st.just(small), predicates(small.schema), keys(small.schema))),
    few=20,
    many=100,
)
def test_a_partition_and_its_rule_tree_name_the_same_cells(drawn: tuple[Small, Predicate, Key]) -> None:
    """Asked one by one as views or all at once as cells: the same counts, and each way costs its maximum over cells."""
    small, predicate, key = drawn
    with dm.open(small.table, schema=small.schema, cap=LARGEST) as data:
        private = data.grant("alice", epsilon=LARGEST).where(predicate)
        with rejecting_what_no_row_can_meet():
            one_by_one = [part.count(epsilon=1000).value for part in private.partition(key).values()]
        assert private.remaining() == Epsilon.parse(LARGEST - 1000)
        at_once = [count.value for count in private.cells(key).count(epsilon=1001) if count is not None]
        hidden = key.hidden(small.schema)  # where the schema drops gaps there is no view of them
        assert at_once[:hidden] == one_by_one
        assert private.remaining() == Epsilon.parse(LARGEST - 2001)
        assert sum(at_once) == private.count(epsilon=1000).value


# -- predicates that no row can meet -----------------------------------------------------------------------------------


def every_row(schema: Schema) -> dict[str, list[Any]]:
    """A table in which every row that the schema knows stands once."""
    choices: list[list[Any]] = []
    for attribute in schema.attributes:
        if isinstance(attribute, ItemList):
            sizes = range(min(attribute.at_most, len(attribute.items)) + 1)
            choices.append([list(some) for size in sizes for some in itertools.combinations(attribute.items, size)])
        elif isinstance(attribute, Numeric):
            numbers = [float(attribute.value_point(value)) for value in range(attribute.values)]
            choices.append([*numbers, *([] if attribute.gap is None else [None])])
        else:
            assert isinstance(attribute, Nominal)
            choices.append([*attribute.categories, *([] if attribute.gap is None else [None])])
    rows = list(itertools.product(*choices))
    return {attribute.name: [row[place] for row in rows] for place, attribute in enumerate(schema.attributes)}


def has_few_rows(schema: Schema) -> bool:
    """So few that a test looks at every row that there can be."""
    known = [attribute for attribute in schema.attributes if not isinstance(attribute, ItemList)]
    return math.prod(getattr(attribute, "values", attribute.size) + 1 for attribute in known) <= 3_000


def parts_of(predicate: Predicate) -> list[Predicate]:
    """The predicate and whatever it is made of."""
    inner = (predicate.part,) if isinstance(predicate, Not) else predicate.parts if isinstance(predicate, And | Or) else ()
    equals = [Compare(predicate.attribute, "==", text) for text in predicate.values] if isinstance(predicate, IsIn) else []
    return [predicate, *equals, *(found for part in inner for found in parts_of(part))]


def is_refused(predicate: Predicate, schema: Schema, *, as_key: bool) -> bool:
    keys = (Test(predicate),) if as_key else ()
    view = View() if as_key else View((Where(predicate),))
    try:
        query_of(schema, view, LEAF, Histogram(keys), Epsilon(1))
    except dm.ExpressionError as error:
        assert "is true for no row" in str(error)  # noqa: PT017 (others pass on)
        return True
    return False


@few_and_many(
    small_tables(most_rows=1)
    .filter(lambda small: has_few_rows(small.schema))
    .flatmap(lambda small: st.tuples(st.just(small.schema), predicates(small.schema))),
    st.booleans(),
    few=100,
    many=500,
)
def test_a_predicate_is_refused_only_if_some_part_of_it_holds_for_no_row_that_can_be(
    drawn: tuple[Schema, Predicate], as_key: bool
) -> None:
    schema, predicate = drawn
    rows = rows_of(every_row(schema), schema)
    empty = [part for part in told_apart(predicate) if not any(holds(part, row, schema) for row in rows)]
    if is_refused(predicate, schema, as_key=as_key):
        assert empty
    else:  # what reads one attribute, and what is made of nothing else, is never overlooked
        assert not [part for part in empty if isinstance(part, (Compare, IsIn, IsMissing))]
        assert not empty or len(schema.attributes) > 1 or isinstance(schema.attributes[0], ItemList) or not _flat(predicate)


def told_apart(predicate: Predicate) -> list[Predicate]:
    """The parts that are checked one by one: below a `not` an empty part empties nothing."""
    below = predicate.parts if isinstance(predicate, (And, Or)) else ()
    equals = [Compare(predicate.attribute, "==", text) for text in predicate.values] if isinstance(predicate, IsIn) else []
    return [predicate, *equals, *(inner for part in below for inner in told_apart(part))]


def _flat(predicate: Predicate) -> bool:
    """Comparisons joined once."""
    return not any(isinstance(part, (And, Or, Not)) for part in parts_of(predicate)[1:])
