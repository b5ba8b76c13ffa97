"""How DuckDB says what databases call differently."""

from collections.abc import Sequence

from sqlglot import exp

from dpmine.engines.sql.dialect import Dialect
from dpmine.engines.sql.expressions import call, integer, integers, plus


def wide(number: exp.Expression) -> exp.Expression:
    return exp.cast(number, "BIGINT")


def element(array: exp.Expression, place: exp.Expression) -> exp.Expression:
    """The element at a place counted from 0. We say that we count from 1: SQLGlot shifts only where it knows the type."""
    return exp.Bracket(this=array, expressions=[plus(wide(place), integer(1))], offset=1)


def transformed(items: exp.Expression, each: exp.Expression) -> exp.Expression:
    """A list of what an expression over x is for every item x of a list."""
    return call("list_transform", items, exp.Lambda(this=each, expressions=[exp.to_identifier("x")]))


def _quotient(dividend: exp.Expression, divisor: exp.Expression) -> exp.Expression:
    return exp.IntDiv(this=dividend, expression=divisor)


def _pick(numbers: Sequence[int], place: exp.Expression) -> exp.Expression:
    return element(integers(numbers), place)


def _holds(items: exp.Expression, item: int) -> exp.Expression:
    return exp.ArrayContains(this=items, expression=integer(item))


def _sum_of_picked(numbers: Sequence[int], places: exp.Expression) -> exp.Expression:
    total = call("list_sum", transformed(places, _pick(numbers, exp.column("x"))))
    return exp.Coalesce(this=total, expressions=[integer(0)])


def _name_hash(name: exp.Expression) -> exp.Expression:
    return call("md5_number_upper", name)


DUCKDB = Dialect(
    name="duckdb",
    wide=wide,
    quotient=_quotient,
    pick=_pick,
    holds=_holds,
    sum_of_picked=_sum_of_picked,
    name_hash=_name_hash,
)
