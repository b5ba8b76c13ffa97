"""The code that SQL gives a value is the one of the schema's own grid, whatever shape the grid has."""

from __future__ import annotations

import itertools
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from sqlglot import exp

import dpmine as dm
from dpmine.engines.sql.duckdb import codes as sql_codes
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema

LONG_LAST_CELLS = [
    Numeric("x", Decimal(0), Decimal(99), None, "own", Decimal(1), (Decimal(3), Decimal(6))),
    Numeric("x", Decimal(0), Decimal(99), None, Decimal(0), Decimal(1), (Decimal(3),)),
    Numeric("x", Decimal(0), Decimal(7), None, scale="log"),
]
"""Cells begin at even steps, and the last one goes on for longer."""


def test_every_grid_of_few_values_has_the_codes_that_the_schema_says() -> None:
    """All ways to cut up to eight values into cells, with a gap behind them."""
    found = duckdb.connect()
    for count in range(2, 9):
        for size in range(1, count):
            for starts in itertools.combinations(range(1, count), size):
                edges = tuple(map(Decimal, starts))
                attribute = Numeric("x", Decimal(0), Decimal(count - 1), None, "own", Decimal(1), edges)
                code = sql_codes._code_of(attribute, "v")
                select = exp.select(code).from_(f"range({count + 1}) AS t(v)").sql(dialect="duckdb")
                told = [row[0] for row in found.execute(select).fetchall()]
                assert told == [attribute.code_of_value(value) for value in range(count + 1)], edges


@pytest.mark.parametrize("attribute", LONG_LAST_CELLS, ids=["edges", "one edge", "log"])
def test_a_long_last_cell_is_counted_alike_and_no_row_makes_a_question_fail(attribute: Numeric, tmp_path: Path) -> None:
    schema = Schema("grids", (attribute,), 100)
    path = tmp_path / "x.csv"
    path.write_text("x\n" + "".join(f"{value}\n" for value in (0, 2, 3, 5, 6, 7, 9, 12, 50, 99)))
    counts = []
    for engine in ("memory", "duckdb"):
        data = dm.open(path, schema=schema, cap=1000, ledger=None, engine=engine)
        counts.append(data.grant("a", epsilon=500).histogram("x", epsilon=400).counts.tolist())
        data.close()
    assert counts[0] == counts[1]


def test_a_code_that_no_row_can_have_is_refused_when_a_table_is_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Planted: values are divided whatever the last cell is. Behind the door such a row would be told by an error."""

    def divided(attribute: Numeric, column: str) -> exp.Expression:
        return exp.IntDiv(this=exp.column(column), expression=exp.Literal.number(attribute.starts[1]))

    monkeypatch.setattr(sql_codes, "_code_of", divided)
    path = tmp_path / "x.csv"
    path.write_text("x\n1\n50\n")
    with pytest.raises(dm.DataError, match="a code that no row can have"):
        dm.open(path, schema=Schema("grids", LONG_LAST_CELLS[:1], 100), cap=1, ledger=None, engine="duckdb")
