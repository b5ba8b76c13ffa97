"""Predicates over gaps: what SQL's own three-valued logic says of the same rows with NULLs, and values compared exactly."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import strategies as st
from support.twins import few_and_many

import dpmine as dm
from dpmine.base.errors import ExpressionError
from dpmine.codes.rows import All, InCodes, InValues
from dpmine.engines.encoding import encode
from dpmine.engines.memory.row_tests import rows_for_which
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.parsing import parse_predicate
from dpmine.language.predicates import COMPARISONS, And, Compare, IsIn, IsMissing, Not, Or, Predicate
from dpmine.language.resolving_predicates import PredicateResolver, resolve_predicate

HALF = Decimal("0.5")
SCHEMA = Schema(
    "gaps",
    (
        Numeric("x", Decimal(0), Decimal(6), Decimal(2), "own", HALF),
        Numeric("y", Decimal(-1), Decimal(1), None, "drop", HALF, edges=(HALF,)),
        Nominal("n", ("a", "b"), None),
        Numeric("full", Decimal(0), Decimal(3), Decimal(1), Decimal(0)),
    ),
    1000,
)
ROWS = list(
    itertools.product(
        [None, *(place / 2 for place in range(13))], [None, -1.0, -0.5, 0.0, 0.5, 1.0], [None, "a", "b"], [0.0, 1.0, 3.0]
    )
)
TABLE = encode(
    open_source({name: [row[place] for row in ROWS] for place, name in enumerate(("x", "y", "n", "full"))}), SCHEMA
)
DATABASE = duckdb.connect()
DATABASE.execute('CREATE TABLE rows (place INT, x DECIMAL(9, 3), y DECIMAL(9, 3), n VARCHAR, "full" DECIMAL(9, 3))')
DATABASE.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", [(place, *row) for place, row in enumerate(ROWS)])

numbers = st.sampled_from(["-5", "-1", "-0.5", "0", "0.25", "0.5", "1", "1.9", "2", "2.0", "3.5", "4", "6", "6.5", "100"])


@st.composite
def simple(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(["x", "x", "y", "n", "full"]))
    if draw(st.integers(0, 4)) == 0:
        return IsMissing(name)
    values = st.sampled_from(["a", "b"]) if name == "n" else numbers
    if draw(st.integers(0, 3)) == 0:
        return IsIn(name, tuple(draw(st.lists(values, min_size=1, max_size=3))))
    operators = ["==", "!="] if name == "n" else COMPARISONS
    return Compare(name, draw(st.sampled_from(operators)), draw(values))


predicates = st.recursive(
    simple() | st.sampled_from([And(()), Or(())]),
    lambda inner: (
        st.builds(Not, inner)
        | st.lists(inner, max_size=3).map(tuple).map(And)
        | st.lists(inner, max_size=3).map(tuple).map(Or)
    ),
    max_leaves=8,
)


def sql_of(predicate: Predicate) -> str:
    """The same predicate as SQL says it, over NULLs."""
    if isinstance(predicate, IsMissing):
        return f'("{predicate.attribute}" IS NULL)'
    if isinstance(predicate, Compare):
        return f'("{predicate.attribute}" {predicate.op} {_written(predicate.attribute, predicate.value)})'
    if isinstance(predicate, IsIn):
        values = ", ".join(_written(predicate.attribute, text) for text in predicate.values)
        return f'("{predicate.attribute}" IN ({values}))'
    if isinstance(predicate, Not):
        return f"(NOT {sql_of(predicate.part)})"
    assert isinstance(predicate, (And, Or))
    empty, word = ("TRUE", " AND ") if isinstance(predicate, And) else ("FALSE", " OR ")
    return f"({word.join(map(sql_of, predicate.parts))})" if predicate.parts else empty


def _written(name: str, text: str) -> str:
    return f"'{text}'" if name == "n" else f"CAST('{text}' AS DECIMAL(9, 3))"


def kept_by_sql(predicate: Predicate) -> list[int]:
    """The rows for which it is true: not those for which it is NULL."""
    return [
        row[0] for row in DATABASE.execute(f"SELECT place FROM rows WHERE {sql_of(predicate)} ORDER BY place").fetchall()
    ]


def kept(test: Any) -> list[int]:
    return rows_for_which(test, TABLE, slice(0, len(ROWS))).nonzero()[0].tolist()


@few_and_many(predicates, few=150, many=1500)
def test_a_predicate_keeps_the_rows_that_sql_keeps(predicate: Predicate) -> None:
    assert kept(resolve_predicate(predicate, SCHEMA)) == kept_by_sql(predicate)


@few_and_many(predicates, few=80, many=800)
def test_true_false_and_open_are_told_apart_as_in_sql(predicate: Predicate) -> None:
    """Negated, it is true for the rows for which it is false; what is left is open."""
    resolver = PredicateResolver(SCHEMA)
    true, false = kept(resolver.resolve(predicate)), kept(resolver.resolve(predicate, negated=True))
    assert (true, false) == (kept_by_sql(predicate), kept_by_sql(Not(predicate)))
    assert not set(true) & set(false)
    assert kept(resolver.resolve(Not(Not(predicate)))) == true


@few_and_many(predicates, few=80, many=800)
def test_the_text_of_a_predicate_keeps_the_same_rows(predicate: Predicate) -> None:
    again = parse_predicate(str(predicate))
    assert resolve_predicate(again, SCHEMA) == resolve_predicate(predicate, SCHEMA)


def two_valued(predicate: Predicate, row: Sequence[Any]) -> bool:
    """A planted mistake: a comparison with a gap is false, and `not` of it true."""
    if isinstance(predicate, Not):
        return not two_valued(predicate.part, row)
    assert isinstance(predicate, Compare)
    return row[0] is not None and row[0] > float(predicate.value)


def test_the_comparison_with_sql_catches_two_valued_logic() -> None:
    predicate = Not(Compare("x", ">", "2"))
    planted = [place for place, row in enumerate(ROWS) if two_valued(predicate, row)]
    assert planted != kept_by_sql(predicate) == kept(resolve_predicate(predicate, SCHEMA))


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("x >= 2", InCodes("x", ((1, 4),))),
        ("x > 1.9", InCodes("x", ((1, 4),))),  # the same rows, so the same query and its cached answer
        ("not x < 2", InCodes("x", ((1, 4),))),
        ("not (x < 2 or x is missing)", All((InCodes("x", ((0, 4),)), InCodes("x", ((1, 4),))))),
        ("x >= 2.5", InValues("x", ((5, 13),))),
        ("x in [2, 2.5, 3, 3.5]", InCodes("x", ((1, 2),))),
        ("x != 6", InCodes("x", ((0, 3),))),  # the last cell has one value
        ("not x == 5", InValues("x", ((0, 10), (11, 13)))),
        ("x >= -5", InCodes("x", ((0, 4),))),  # every number, and no gap
        ("x is missing", InCodes("x", ((4, 5),))),
        ("x is not missing", InCodes("x", ((0, 4),))),
        ("not x is not missing", InCodes("x", ((4, 5),))),
        ("y < 0.5", InCodes("y", ((0, 1),))),
        ("y < 0.25", InCodes("y", ((0, 1),))),  # no value lies between 0.25 and the edge
        ("y < 0", InValues("y", ((0, 2),))),
        ("y < 0.51", InValues("y", ((0, 4),))),
        ("n == a", InCodes("n", ((0, 1),))),
        ("n != a", InCodes("n", ((1, 2),))),
        ("not n in []", InCodes("n", ((0, 2),))),
        ("full is missing", InCodes("full", ())),
    ],
)
def test_a_text_becomes_ranges_of_codes_where_they_begin_and_end_with_them_and_of_values_else(text: str, test: Any) -> None:
    assert resolve_predicate(parse_predicate(text), SCHEMA) == test


@pytest.mark.parametrize("text", ['x == "(missing)"', 'x < "(missing)"', 'n == "(missing)"', 'n in [a, "(missing)"]'])
def test_nothing_compares_with_a_gap(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"Nothing compares with a gap\. Write: [xn] is missing\."):
        resolve_predicate(parse_predicate(text), SCHEMA)


@pytest.mark.parametrize(
    "text", ["x is missing", "x is not missing", "not x is not missing", '"is" is missing', '"missing" is not missing']
)
def test_the_text_of_a_question_for_gaps_comes_back(text: str) -> None:
    predicate = parse_predicate(text)
    assert parse_predicate(str(predicate)) == predicate


@pytest.mark.parametrize(
    "text", ["x is", "x is not", "x is gone", "is missing", "x missing", "x is is missing", "x is not x"]
)
def test_half_a_question_for_gaps_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="The predicate"):
        parse_predicate(text)


def test_a_query_about_gaps_where_there_can_be_none_is_refused_before_it_is_paid_for() -> None:
    rows = {"x": [1.0, None], "y": [None, 1.0], "n": ["a", None], "full": [1.0, None]}
    with dm.open(rows, schema=SCHEMA, ledger=None, cap=5000) as data:
        private = data.grant("alice", epsilon=5000)
        with pytest.raises(ExpressionError, match="full is missing is true for no row: the schema gives every row a value"):
            private.where("full is missing").count(epsilon=1)
        assert str(private.remaining()) == "5000"
        asked = {text: int(private.where(text).count(epsilon=1000)) for text in ("x is missing", "not (x > 0)", "x >= 0.75")}
    assert asked == {"x is missing": 1, "not (x > 0)": 0, "x >= 0.75": 1}
