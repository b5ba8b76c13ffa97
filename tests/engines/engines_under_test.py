"""The engines under test: every one of the registry, over the same rows, and the table of what some of them lack.

A test of what every engine does is marked `@every_engine()`; one of something that an engine may lack names it:
`@every_engine("frames")`. Where the table below says that an engine refuses it, the test must fail for that engine; where
it takes an engine long, the test runs with the slow ones. So each row of the table stays true, and nothing is skipped.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_reference import Reference, RoundedKey
from engine_strategies import Asked, AskedSums, Small

from dpmine.base.errors import RequestError
from dpmine.codes.aggregates import Engine
from dpmine.codes.rows import NearestCentre, RowKey
from dpmine.engines.registry import ENGINES, open_table
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.keys import AttributeKey, Key
from dpmine.language.resolver import resolve_cells
from dpmine.language.resolving_keys import resolve_key, rounded
from dpmine.language.rule_trees import leaf_paths
from dpmine.language.views import LEAF, Rules, Step

SPLIT_KEY = bytes(range(32))


@dataclass(frozen=True)
class Gap:
    """What an engine lacks, and why."""

    engine: str
    capability: str
    reason: str
    refused: type[Exception] | None = None
    """How the engine refuses it. None: it can, but not in a second."""

    @property
    def mark(self) -> Any:
        if self.refused is None:
            return pytest.mark.slow
        return pytest.mark.xfail(raises=self.refused, strict=True, reason=self.reason)


GAPS = (
    Gap("duckdb", "frames", "rows stay in their files, so that there must be files", RequestError),
    Gap("duckdb", "a thousand trees", "each tree is a case in the text: 13 s, of which most is spent on making the text"),
    Gap("duckdb", "a thousand centres", "each centre is a column and a case in the text: 4 s"),
)


def every_engine(capability: str | None = None, *, but: tuple[str, ...] = ()) -> Any:
    """Run a test for every engine, by its name."""
    gaps = {gap.engine: gap.mark for gap in GAPS if gap.capability == capability}
    assert capability is None or gaps, f"no engine lacks {capability!r}: the table of gaps is out of date"
    names = [name for name in ENGINES if name not in but]
    return pytest.mark.parametrize("engine", [pytest.param(name, marks=gaps.get(name, ())) for name in names])


# -- the same rows in every engine -------------------------------------------------------------------------------------


def arrow_column(attribute: Any, values: list[Any]) -> pa.Array:
    if isinstance(attribute, Numeric):
        return pa.array([open_source({"x": [value]}).numbers("x")[0] for value in values], pa.float64())
    if isinstance(attribute, Nominal):
        return pa.array(open_source({"x": values}).texts("x"), pa.string())
    return pa.array(open_source({"x": values}).lists("x", attribute.separator), pa.list_(pa.string()))


def write_parquet(small: Small, path: Path) -> None:
    columns = {a.name: arrow_column(a, small.table[a.name]) for a in small.schema.attributes}
    person = small.schema.unit.column
    if person is not None:
        columns[person] = pa.array(small.table[person], pa.string())
    pq.write_table(pa.table(columns), path)


def _as_they_are(small: Small, folder: Path) -> Any:
    return small.table


def _in_a_file(small: Small, folder: Path) -> Path:
    write_parquet(small, folder / "rows.parquet")
    return folder / "rows.parquet"


KEPT: Mapping[str, Callable[[Small, Path], Any]] = {"memory": _as_they_are, "duckdb": _in_a_file}
"""How the rows of a test come to each engine."""


@contextmanager
def over(engine: str, small: Small, split_key: bytes = SPLIT_KEY) -> Iterator[Engine]:
    """The engine of that name over a small table."""
    with tempfile.TemporaryDirectory() as folder, of_table(engine, KEPT[engine](small, Path(folder)), small.schema) as made:
        yield made(split_key)


@contextmanager
def of_table(engine: str, table: Any, schema: Schema) -> Iterator[Callable[[bytes], Engine]]:
    """What makes the engine of that name over a table, for a split key."""
    opened = open_table(table, schema, engine, None)
    try:
        yield opened.engine
    finally:
        opened.close()


# -- what every engine is held to --------------------------------------------------------------------------------------


def resolved(group: tuple[Key, ...], schema: Schema) -> tuple[RowKey, ...]:
    return tuple(
        rounded(schema.numeric(key.attribute, ""), key.steps) if isinstance(key, RoundedKey) else resolve_key(key, schema)
        for key in group
    )


def nearest_of(key: Key, schema: Schema) -> NearestCentre:
    nearest = resolve_key(key, schema)
    assert isinstance(nearest, NearestCentre)
    return nearest


def expected(reference: Reference, steps: tuple[Step, ...], rules: Rules, keys: tuple[Key, ...]) -> np.ndarray:
    """The counts of looking at each row by itself."""
    leaves = sum(1 for _ in leaf_paths(rules))
    counts = np.zeros((leaves, *(reference.size(key) for key in keys)), dtype=np.int64)
    for place, count in reference.counts(steps, rules, keys).items():
        counts[place] = count
    return counts


def assert_counts(engine: Engine, reference: Reference, question: Asked) -> None:
    """An engine's counts are those of looking at each row by itself."""
    schema = reference.schema
    cells = resolve_cells(question.steps, question.rules, schema)
    groups = [resolved(group, schema) for group in question.groups]
    for group, row_keys, counts in zip(question.groups, groups, engine.counts(cells, groups), strict=True):
        wanted = expected(reference, question.steps, question.rules, group)
        assert counts.shape == (wanted.shape[0], *(key.size for key in row_keys))
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts, wanted)


def assert_occupied(engine: Engine, reference: Reference, question: Asked) -> None:
    """An engine's occupied combinations are those that hold rows, and no others."""
    schema = reference.schema
    cells = resolve_cells(question.steps, question.rules, schema)
    for group in question.groups:
        sizes = [1, *(reference.size(key) for key in group)]
        wanted = {}
        for place, count in reference.counts(question.steps, question.rules, group).items():
            number = 0
            for digit, size in zip(place, sizes, strict=True):
                number = number * size + digit
            wanted[number] = count
        numbers, counts = engine.occupied(cells, resolved(group, schema))
        assert numbers.dtype == counts.dtype == np.int64
        assert numbers.tolist() == sorted(wanted)
        assert counts.tolist() == [wanted[number] for number in sorted(wanted)]


def assert_sums(engine: Engine, reference: Reference, question: AskedSums) -> None:
    """An engine's sums of products are those of whole numbers of any size."""
    schema = reference.schema
    cells = resolve_cells(question.steps, question.rules, schema)
    amounts = tuple(rounded(schema.numeric(name, ""), steps) for name, steps in question.amounts)
    found = engine.sums(cells, amounts, question.powers)
    assert found.dtype == np.int64
    assert found.tolist() == reference.sums(question.steps, question.rules, question.amounts, question.powers)


def assert_clipped_sums(
    engine: Engine, reference: Reference, steps: tuple[Step, ...], key: Any, origins: Any, radii: Any
) -> None:
    """An engine's sums of clipped offsets are those of whole numbers and fractions."""
    cells = resolve_cells(steps, LEAF, reference.schema)
    found = engine.clipped_sums(cells, nearest_of(key, reference.schema), origins, radii)
    assert found.dtype == np.int64
    assert found.tolist() == reference.clipped_sums(steps, key, origins, radii)


def assert_as_in_memory(engine: str, table: Any, schema: Schema, question: Asked) -> None:
    """An engine's counts over a table are the memory engine's."""
    cells = resolve_cells(question.steps, question.rules, schema)
    groups = [resolved(group, schema) for group in question.groups]
    with of_table("memory", table, schema) as in_memory, of_table(engine, table, schema) as made:
        wanted, other = in_memory(SPLIT_KEY).counts(cells, groups), made(SPLIT_KEY)
        for _ in range(2):  # the second time from the cache
            for same, counts in zip(wanted, other.counts(cells, groups), strict=True):
                assert counts.dtype == np.int64
                np.testing.assert_array_equal(counts, same)


def assert_codes_as_in_memory(engine: str, table: Any, schema: Schema) -> None:
    """Every attribute's histogram, which is every code's count, and how many rows have each number's value."""
    single = [a for a in schema.attributes if not isinstance(a, ItemList)]
    groups = tuple((AttributeKey(a.name),) for a in single)
    values = tuple((RoundedKey(a.name, a.values - 1),) for a in single if isinstance(a, Numeric))
    assert_as_in_memory(engine, table, schema, Asked((), LEAF, groups + values))
