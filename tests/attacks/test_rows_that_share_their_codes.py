"""Rows that share all codes and differ in value: if they passed for the same row, one more row would move all the others.

Among identical rows each has a number, which decides its part; who knows the order of the rows, and which number falls into
which part, can give every row a value so that one more row in front sends the large ones from one part to the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmine.codes.aggregates import Engine
from dpmine.codes.rows import Rounded
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.hashing import row_parts
from dpmine.engines.memory import rows as memory_rows
from dpmine.engines.registry import ENGINES, open_table
from dpmine.engines.sql import compiler
from dpmine.engines.sql.columns import Columns
from dpmine.engines.sql.parts import with_parts
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.keys import Bins, Part
from dpmine.language.resolver import resolve_cells
from dpmine.language.resolving_keys import resolve_key, rounded
from dpmine.language.views import LEAF, Split

KEY = bytes(range(32))
PART = Part("train-test", (1, 1))
STEPS = 32
AGE = Numeric("x", Decimal(0), Decimal(STEPS), Decimal(STEPS), "own", Decimal(1))  # the first 32 values share a code
SCHEMA = Schema("attacked", (AGE,), 10_000)
ROWS = 2_000
LOW, HIGH = 0.0, float(STEPS - 1)
AMOUNT: Rounded = rounded(AGE, STEPS)


@pytest.fixture(params=ENGINES)
def open_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[list[float]], Engine]]:
    """An engine over one column."""
    opened = []

    def over(values: list[float]) -> Engine:
        table: Any = {"x": values}
        if request.param != "memory":
            table = tmp_path / f"{len(opened)}.parquet"
            pq.write_table(pa.table({"x": pa.array(values, pa.float64())}), table)
        opened.append(open_table(table, SCHEMA, request.param, None))
        return opened[-1].engine(KEY)

    yield over
    for each in opened:
        each.close()


def parts_and_sums(engine: Engine) -> tuple[Counter[tuple[int, int]], list[int]]:
    """How many rows of each value are in each part, and the sum of the values in each."""
    cells = resolve_cells((), Split(PART, (LEAF, LEAF)), SCHEMA)
    values = Bins("x", tuple(map(str, range(1, STEPS + 1))))
    counts = engine.counts(cells, [(resolve_key(values, SCHEMA),)])[0]
    found = Counter({(part, value): int(count) for (part, value), count in zip(_places(counts), counts.flat, strict=True)})
    return +found, engine.sums(cells, (AMOUNT,), ((1,),))[:, 0].tolist()


def _places(counts: Any) -> Iterator[tuple[int, int]]:
    return ((part, value) for part in range(counts.shape[0]) for value in range(counts.shape[1]))


def attacked(open_engine: Callable[[list[float]], Engine]) -> tuple[int, int]:
    """How many rows one more row moves to the other part, and by how much the sum of a part changes."""
    part = parts_of_numbers(ROWS + 1)
    values = [HIGH if part[row] == 0 and part[row + 1] == 1 else LOW for row in range(ROWS)]
    before, sums = parts_and_sums(open_engine(values))
    after, more = parts_and_sums(open_engine([LOW, *values]))
    moved = (before - after).total()
    return moved, max(abs(one - other) for one, other in zip(sums, more, strict=True))


def parts_of_numbers(count: int) -> list[int]:
    """The part of each number among copies of one row, which every engine finds alike: the attacker is given the key."""
    table = EncodedTable(SCHEMA, count, {"x": np.zeros(count, dtype=np.uint8)}, {}, "attack")
    return row_parts(table, KEY, PART.salt, PART.weights).tolist()


def plant_identity_over_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_codes(table: EncodedTable, *rest: Any) -> Any:
        return row_parts(EncodedTable(table.schema, table.rows, table.codes, table.lists, table.encoding), *rest)

    def by_codes_in_sql(keys: Any, columns: Columns) -> Any:
        values, columns.values = columns.values, columns.codes
        try:
            return with_parts(keys, columns)
        finally:
            columns.values = values

    monkeypatch.setattr(memory_rows, "row_parts", by_codes)
    monkeypatch.setattr(compiler, "with_parts", by_codes_in_sql)


def test_one_more_row_moves_no_other_row_between_parts(open_engine: Callable[[list[float]], Engine]) -> None:
    moved, shift = attacked(open_engine)
    assert moved == 0
    assert shift <= STEPS  # one row's value


def test_the_attack_finds_a_planted_identity_over_codes(
    open_engine: Callable[[list[float]], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of the rows go from the first part to the second: far more than a noise for one row hides."""
    plant_identity_over_codes(monkeypatch)
    moved, shift = attacked(open_engine)
    assert moved > ROWS / 5
    assert shift > 32 * STEPS
