"""The compiler of SQL: text that grows with a question and no faster, and nothing of one database in another's dialect."""

from __future__ import annotations

from decimal import Decimal

import pytest
import sqlglot
from engine_strategies import Asked, Small, tables_with_questions
from engines_under_test import SPLIT_KEY, resolved
from sqlglot import exp
from support.twins import few_and_many

from dpmine.codes.rows import Branch, Cells, NearestCentre
from dpmine.engines.sql.compiler import Compiler
from dpmine.engines.sql.dialect import Dialect
from dpmine.engines.sql.duckdb.dialect import DUCKDB
from dpmine.engines.sql.expressions import call, integer
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.keys import AttributeKey, Bins, Group, Groups, Key, Part, Test
from dpmine.language.model_keys import Nearest, NearestBands, Predicted, ScoreLeaf, ScoreSplit
from dpmine.language.predicates import Contains
from dpmine.language.resolver import resolve_cells
from dpmine.language.resolving_keys import rounded

WHOLE = Cells((), None)
COLOURS = ("red", "green", "blue")
SCHEMA = Schema(
    "said",
    (
        Numeric("x", Decimal(0), Decimal(39), Decimal(1), Decimal(0)),
        Numeric("y", Decimal(0), Decimal(9), Decimal(1), "own", Decimal("0.5")),
        Nominal("colour", COLOURS, "red", missing="red"),
        ItemList("had", ("flu", "gout"), 2),
    ),
    1000,
    unit=Unit("who", 2),
)


def text_of(key: Key, dialect: Dialect = DUCKDB) -> str:
    query, _ = Compiler(SCHEMA, SPLIT_KEY, dialect).counts(WHOLE, [resolved((key,), SCHEMA)])
    return query.sql(dialect=dialect.name)


def centres(count: int) -> Nearest:
    return Nearest(("x", "y"), (39, 9), (1, 1), tuple((place % 40, place % 10) for place in range(count)))


# -- length ------------------------------------------------------------------------------------------------------------


def test_the_sql_of_a_model_grows_with_the_model_and_not_with_its_square() -> None:
    """Comparing every class with every other took minutes at 300 classes: one request could stop an engine."""

    def wide(count: int) -> Key:
        leaves = tuple(ScoreLeaf(tuple(range(count))) for _ in COLOURS)
        names = tuple(f"class {number}" for number in range(count))
        return Predicted((ScoreSplit(AttributeKey("colour"), leaves),), names)

    assert len(text_of(wide(200))) < 2.5 * len(text_of(wide(100)))


def test_the_sql_grows_with_the_number_of_centres_and_bands_and_not_with_their_product() -> None:
    def length(count: int, bands: int) -> int:
        return len(text_of(NearestBands(centres(count), tuple(range(bands)))))

    assert length(100, 100) < 1.2 * (length(100, 1) + length(1, 100))


# -- dialects ----------------------------------------------------------------------------------------------------------

OTHER = Dialect(
    name="postgres",
    wide=lambda number: call("wide", number),
    quotient=lambda dividend, divisor: call("quotient", dividend, divisor),
    pick=lambda numbers, place: call("pick", place, *map(integer, numbers)),
    holds=lambda items, item: call("holds", items, integer(item)),
    sum_of_picked=lambda numbers, places: call("sum_of_picked", places, *map(integer, numbers)),
    name_hash=lambda name: call("name_hash", name),
)
OF_DUCKDB = ("bigint", "list_", "array", "md5", "[", "//")
EVERYTHING: dict[str, Key] = {
    "test of a list": Test(Contains("had", ("flu",))),
    "parts": Part("p", (1, 1)),
    "many bins": Bins("x", tuple(str(place) for place in range(1, 20))),
    "bins between codes": Bins("y", tuple(f"{place}.25" for place in range(9))),
    "groups": Groups("colour", (Group("warm", ("red",)),)),
    "a model": Predicted(
        (ScoreSplit(AttributeKey("colour"), tuple(ScoreLeaf((place, 1)) for place in range(3))),), ("no", "yes")
    ),
    "distances": NearestBands(centres(3), (4, 9)),
}


def assert_said_in(dialect: Dialect, select: exp.Select) -> None:
    """Nothing that only DuckDB knows, and text that the other database's parser reads."""
    text = select.sql(dialect=dialect.name)
    assert not [word for word in OF_DUCKDB if word in text.lower()]
    assert sqlglot.parse_one(text, dialect=dialect.name)


@few_and_many(tables_with_questions, few=4, many=60)
def test_questions_are_said_in_any_dialect(drawn: tuple[Small, list[Asked]]) -> None:
    small, questions = drawn
    compiler = Compiler(small.schema, SPLIT_KEY, OTHER)
    for question in questions:
        cells = resolve_cells(question.steps, question.rules, small.schema)
        assert_said_in(OTHER, compiler.counts(cells, [resolved(group, small.schema) for group in question.groups])[0])


@pytest.mark.parametrize("name", EVERYTHING)
def test_keys_and_persons_are_said_in_any_dialect(name: str) -> None:
    compiler = Compiler(SCHEMA, SPLIT_KEY, OTHER)
    select, _ = compiler.counts(WHOLE, [resolved((EVERYTHING[name],), SCHEMA)])
    assert_said_in(OTHER, compiler.over(exp.select("v0", "v1", "a1", "v2", "l0", "person").from_("somewhere"), select))


def test_sums_are_said_in_any_dialect() -> None:
    (nearest,) = resolved((centres(3),), SCHEMA)
    assert isinstance(nearest, NearestCentre)
    compiler = Compiler(SCHEMA, SPLIT_KEY, OTHER)
    assert_said_in(OTHER, compiler.clipped_sums(WHOLE, nearest, [(1, 2)] * 3, [3, 4, 5]))
    amounts = [rounded(SCHEMA.numeric(name, ""), steps) for name, steps in (("x", 39), ("y", 7))]
    assert_said_in(OTHER, compiler.sums(Cells((), Branch(nearest, (None,) * 3)), amounts, [(0, 0), (2, 1)]))


def test_what_only_duckdb_knows_would_be_noticed() -> None:
    query, _ = Compiler(SCHEMA, SPLIT_KEY, DUCKDB).counts(WHOLE, [resolved((EVERYTHING["parts"],), SCHEMA)])
    with pytest.raises(AssertionError):
        assert_said_in(DUCKDB, query)
