"""Every question by brute force: on every small table, one more row changes all exact counts together by at most one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pytest
from support.kernels import SPLIT_KEY
from support.tiny_tables import KINDS, SCHEMA, Row, all_tables, engine

from dpmine.base.epsilon import Epsilon
from dpmine.codes.choose_label import ResolvedChooseLabel
from dpmine.codes.choose_split import ResolvedChooseSplit
from dpmine.codes.histogram import ResolvedHistogram
from dpmine.engines.encoding import encode
from dpmine.engines.memory import MemoryEngine
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.keys import AttributeKey, Bins, Group, Groups, Key, Part, Test
from dpmine.language.parsing import parse_predicate
from dpmine.language.queries import Query, Question, resolve
from dpmine.language.splits import Multiway, Subsets, Thresholds
from dpmine.language.views import LEAF, Cell, Rules, Split, Step, View, Where
from dpmine.questions.choose_label import ChooseLabel
from dpmine.questions.choose_split import ChooseSplit
from dpmine.questions.histogram import Histogram

COLOUR, SIZE, ILL = AttributeKey("colour"), AttributeKey("size"), AttributeKey("ill")
LARGE = Bins("size", ("1",))
BLUE = Groups("colour", (Group("blue", ("blue",)),))
TEST = Test(parse_predicate("size >= 1 and not ill == yes"))
PARTS = Part("salt", (2, 1))
ILL_ONES = Where(parse_predicate("ill == yes"))
LARGE_ONES = Where(parse_predicate("size > 0"))
TREE = Split(COLOUR, (LEAF, Split(LARGE, (Split(TEST, (LEAF, LEAF)), LEAF))))

engine_over = cache(engine)  # every question looks at the same few thousand tables
resolved = cache(lambda asked: resolve(asked, SCHEMA))
ExactCounts = Callable[[tuple[Row, ...]], list[np.ndarray]]


def query(question: Question, *steps: Step, rules: Rules = LEAF) -> Query:
    return Query(View(steps), rules, question, (Epsilon(10**9),))


def split_by(key: Key, labels: int) -> Rules:
    return Split(key, (LEAF,) * labels)


QUESTIONS: dict[str, Query] = {
    "count": query(Histogram(())),
    "count where": query(Histogram(()), ILL_ONES),
    "count where where": query(Histogram(()), ILL_ONES, LARGE_ONES),
    "count in one cell of a partition": query(Histogram(()), Cell(COLOUR, 1)),
    "count in a test's cell inside a where": query(Histogram(()), LARGE_ONES, Cell(TEST, 1)),
    "count in one part": query(Histogram(()), Cell(PARTS, 0)),
    "histogram": query(Histogram((COLOUR,))),
    "histogram by everything": query(Histogram((COLOUR, SIZE, ILL))),
    "histogram by bins, groups and a test": query(Histogram((LARGE, BLUE, TEST))),
    "histogram by part": query(Histogram((PARTS, ILL))),
    "histogram where": query(Histogram((SIZE, ILL)), Where(parse_predicate("colour in [red] or size == 2"))),
    "cells": query(Histogram(()), rules=split_by(SIZE, 3)),
    "cells by part": query(Histogram((ILL,)), rules=split_by(PARTS, 2)),
    "rule tree": query(Histogram(()), rules=TREE),
    "histogram over a rule tree in a part": query(Histogram((ILL, SIZE)), Cell(PARTS, 1), rules=TREE),
    "choice of a label": query(ChooseLabel(SIZE, "exponential", "monotone"), rules=TREE),
    "choice of a split": query(
        ChooseSplit(
            ((Multiway(COLOUR), Thresholds("size"), Subsets("colour", (("red",),))),), "max", "exponential", "monotone"
        ),
        rules=TREE,
    ),
}
NARROWED = [name for name, asked in QUESTIONS.items() if asked.view.steps]


def exact_counts(asked: Query, rows: tuple[Row, ...]) -> list[np.ndarray]:
    """What the kernel would ask the engine for; a choice of a split asks for one table of counts for each key."""
    plan = resolved(asked)
    question = plan.question
    if isinstance(question, ResolvedHistogram):
        return engine_over(rows).counts(plan.cells, [question.keys])
    if isinstance(question, ResolvedChooseLabel):
        return engine_over(rows).counts(plan.cells, [(question.key,)])
    assert isinstance(question, ResolvedChooseSplit)
    keys = {family.key for families in question.families for family in families}
    return engine_over(rows).counts(plan.cells, [(question.target, key) for key in sorted(keys, key=repr)])


def changes_by_one_row(counts: ExactCounts, rows: int) -> set[int]:
    """All L1 changes of any one table of counts, over every table of at most `rows` rows, row and place to insert it."""
    found: set[int] = set()
    for table in all_tables(rows):
        before = counts(table)
        for row in KINDS:
            for place in {0, len(table)}:
                after = counts((*table[:place], row, *table[place:]))
                found |= {int(np.abs(more - less).sum()) for more, less in zip(after, before, strict=True)}
    return found


@pytest.mark.parametrize("name", QUESTIONS)
def test_one_row_changes_all_counts_of_a_question_by_one(name: str) -> None:
    """By exactly one, or not at all where the question looks at part of the table only."""
    asked = QUESTIONS[name]
    seen: dict[tuple[Row, ...], list[np.ndarray]] = {}

    def remembered(rows: tuple[Row, ...]) -> list[np.ndarray]:
        if rows not in seen:
            seen[rows] = exact_counts(asked, rows)
        return seen[rows]

    assert changes_by_one_row(remembered, 2) == ({0, 1} if name in NARROWED else {1})


def test_tables_of_three_rows_and_every_fourth() -> None:
    plans = [resolve(asked, SCHEMA) for asked in QUESTIONS.values() if isinstance(asked.question, (Histogram, Histogram))]

    def all_at_once(rows: tuple[Row, ...]) -> list[np.ndarray]:
        here = engine(rows)
        return [here.counts(plan.cells, [plan.question.keys])[0] for plan in plans]  # type: ignore[attr-defined]

    before = {table: all_at_once(table) for table in all_tables(4)}
    for table, counts in before.items():
        if len(table) == 3:
            for row in KINDS:
                after = before[tuple(sorted((*table, row), key=KINDS.index))]
                assert all(np.abs(more - less).sum() <= 1 for more, less in zip(after, counts, strict=True))


def test_counts_are_those_of_the_rows() -> None:
    """The engine against a plain loop, so that small changes are changes of the right numbers."""
    for table in all_tables(2):
        (counts,) = exact_counts(QUESTIONS["histogram by everything"], table)
        wanted = np.zeros((1, 2, 3, 2), dtype=np.int64)
        for colour, size, ill in table:
            wanted[0, ("red", "blue").index(colour), size, ("no", "yes").index(ill)] += 1
        assert counts.tolist() == wanted.tolist()
        (both,) = exact_counts(QUESTIONS["count where where"], table)
        assert both.tolist() == [sum(ill == "yes" and size > 0 for _, size, ill in table)]
        (leaves,) = exact_counts(QUESTIONS["rule tree"], table)
        cells = [0, 0, 0, 0]
        for colour, size, _ in table:
            cells[0 if colour == "red" else 3 if size >= 1 else 1] += 1  # size 0 never passes the test: leaf 2 is empty
        assert leaves.tolist() == cells


# -- values finer than codes, and gaps ------------------------------------------------------------------------------------

FINE = Schema(
    "fine",
    (
        Numeric("size", Decimal(0), Decimal(4), None, "own", Decimal(1), (Decimal(2),)),
        Numeric("half", Decimal(0), Decimal(1), Decimal(1), "drop", Decimal("0.5")),
        Nominal("colour", ("red", "blue"), missing="drop"),
    ),
    rows_at_most=100,
)
FINE_KINDS = list(itertools.product((0, 1, 3, None), (0, 0.5, None), ("red", "green")))
FINE_QUESTIONS: dict[str, Query] = {
    "all labels": query(Histogram((AttributeKey("size"), AttributeKey("half"), AttributeKey("colour")))),
    "bins between codes": query(Histogram((Bins("size", ("1", "3")), Bins("half", ("0.5",), "last")))),
    "gaps in the last bin": query(Histogram((Bins("size", ("1", "(missing)"), "last"), COLOUR))),
    "groups": query(Histogram((Groups("colour", (Group("red", ("red",)),)),))),
    "a test of a gap": query(Histogram((Test(parse_predicate("size is missing or half >= 0.5")),))),
    "a negated comparison": query(Histogram((AttributeKey("size"),)), Where(parse_predicate("not (size > 0.5)"))),
    "cells by values": query(Histogram((COLOUR,)), rules=split_by(Bins("size", ("1",)), 3)),
    "in a part": query(Histogram((AttributeKey("size"),)), Cell(PARTS, 1)),
}


@pytest.mark.parametrize("name", FINE_QUESTIONS)
def test_one_row_changes_all_counts_by_one_where_values_are_finer_than_codes_and_may_be_missing(name: str) -> None:
    asked = FINE_QUESTIONS[name]
    plan = resolve(asked, FINE)
    plan.check(FINE.domain)

    def counts(rows: tuple[Any, ...]) -> np.ndarray:
        columns = {name: [row[place] for row in rows] for place, name in enumerate(("size", "half", "colour"))}
        here = MemoryEngine(encode(open_source(columns), FINE), SPLIT_KEY)
        return here.counts(plan.cells, [plan.question.keys])[0]  # type: ignore[attr-defined]

    found = set()
    for table in [(), *itertools.combinations(FINE_KINDS, 1), *itertools.combinations(FINE_KINDS[::5], 2)]:
        before = counts(table)
        for row in FINE_KINDS:
            found |= {int(np.abs(counts((row, *table)) - before).sum())}
    assert found == ({0, 1} if asked.view.steps else {1})


# -- planted mistakes --------------------------------------------------------------------------------------------------


def counted_twice(rows: tuple[Row, ...]) -> list[np.ndarray]:
    """Overlapping cells: the red ones and the large ones."""
    return [np.array([sum(row[0] == "red" for row in rows), sum(row[1] > 0 for row in rows)])]


def the_first_two(rows: tuple[Row, ...]) -> list[np.ndarray]:
    """Take(2): a row in front pushes another out."""
    return exact_counts(QUESTIONS["histogram"], rows[:2])


def by_group(rows: tuple[Row, ...]) -> list[np.ndarray]:
    """A histogram of how many rows each colour has: one row leaves one group size and enters another."""
    counts = exact_counts(QUESTIONS["histogram"], rows)[0].ravel()
    return [np.bincount(counts[counts > 0], minlength=5)]


@pytest.mark.parametrize("mistake", [counted_twice, the_first_two, by_group])
def test_the_brute_force_catches(mistake: ExactCounts) -> None:
    assert max(changes_by_one_row(mistake, 2)) > 1
