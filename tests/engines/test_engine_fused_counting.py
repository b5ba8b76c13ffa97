"""Groups counted together and codes looked up together, at the sizes where the narrow numbers would wrap."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal

import numpy as np
import pytest

from dpmine.codes.rows import Branch, Cells, Recode, RowKey
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.memory import MemoryEngine, sizes
from dpmine.engines.memory.tallies import tallies_of
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source

SIZES = {"two": 2, "half": 128, "odd": 255, "byte": 256, "more": 257, "wide": 4096}
ROWS = 70_000


def table() -> EncodedTable:
    """Every attribute has its first and its last code in some rows."""
    draw = np.random.default_rng(8)
    columns = {name: draw.integers(0, size, ROWS) for name, size in SIZES.items()}
    for name, size in SIZES.items():
        columns[name][:300] = size - 1
        columns[name][300:600] = 0
    attributes = tuple(Numeric(name, Decimal(0), Decimal(size - 1), Decimal(1), Decimal(0)) for name, size in SIZES.items())
    return encode(open_source(columns), Schema("sizes", attributes, ROWS))


TABLE = table()


def plain(name: str) -> Recode:
    return Recode(name, (), SIZES[name])


def halved(name: str) -> Recode:
    """Codes of the upper half apart from the others."""
    return Recode(name, ((0, 0), (SIZES[name] // 2, 1)), 2)


def values(key: Recode) -> np.ndarray:
    codes = TABLE.codes[key.attribute].astype(np.int64)
    return codes if not key.runs else (codes >= key.runs[1][0]).astype(np.int64)


def expected(cell: np.ndarray | None, group: tuple[Recode, ...], cells: int) -> np.ndarray:
    numbers = np.zeros(ROWS, dtype=np.int64) if cell is None else cell
    for key in group:
        numbers = numbers * key.size + values(key)
    shape = (cells, *(key.size for key in group))
    return np.bincount(numbers, minlength=math.prod(shape)).reshape(shape)


GROUPS: list[tuple[RowKey, ...]] = [
    (),
    *((plain(name),) for name in SIZES),
    *((plain("two"), plain(name)) for name in SIZES),
    (plain("two"), halved("wide")),
    (plain("half"), plain("byte")),
    (plain("byte"), plain("half")),
    (plain("byte"), plain("byte")),  # 2^16 combinations
    (plain("odd"), plain("more")),  # one less
    (halved("wide"), plain("two"), plain("half")),
    (halved("wide"), plain("two"), halved("byte")),
    (plain("two"), plain("half")),  # asked twice
]


@pytest.mark.parametrize("fused", [0, 2**15], ids=["one by one", "together"])
@pytest.mark.parametrize("split", [False, True], ids=["all rows", "cells"])
def test_counts_are_the_same_together_and_one_by_one(split: bool, fused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "FUSED", fused)
    key = halved("byte")
    cells = Cells((), Branch(key, (None, None)) if split else None)
    found = MemoryEngine(TABLE, b"")._count(cells, GROUPS)
    for group, counts in zip(GROUPS, found, strict=True):
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts, expected(values(key) if split else None, group, 2 if split else 1))


def test_groups_are_counted_together_only_where_that_makes_few_combinations() -> None:
    def sizes(names: str, rows: int) -> list[int]:
        groups = [(plain("two"), plain(name)) for name in names.split()]
        return [tally.total.size for tally in tallies_of(groups, 1, rows)]

    assert sizes("two half byte", ROWS) == [2 * 2 * 128, 2 * 256]
    assert sizes("two half", 100) == [4, 256]  # more combinations than rows would cost more than they save
    assert sizes("half two half", ROWS) == [2 * 2 * 128]
    assert sizes("wide two half", ROWS) == [2 * 4096 * 2, 2 * 128]


@pytest.mark.parametrize("fused", [0, 2**15], ids=["one by one", "together"])
@pytest.mark.parametrize(
    "names", [*itertools.permutations(("two", "half", "byte")), ("odd", "more"), ("byte", "half"), ("two", "wide", "two")]
)
def test_occupied_combinations_are_the_same_looked_up_together(
    names: tuple[str, ...], fused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "FUSED", fused)
    keys = tuple(plain(name) for name in names)
    numbers, counts = MemoryEngine(TABLE, b"").occupied(Cells((), None), keys)
    dense = expected(None, keys, 1).ravel()
    np.testing.assert_array_equal(numbers, np.flatnonzero(dense))
    np.testing.assert_array_equal(counts, dense[numbers])


def test_planted_mistake_numbers_in_the_type_of_the_codes_are_caught() -> None:
    """Eight bits hold a byte's codes, but not two times as many combinations."""
    two, byte = (TABLE.codes[name].astype(np.uint8) for name in ("two", "byte"))
    with np.errstate(over="ignore"):
        wrapped = np.bincount(two * np.uint8(255) + two + byte, minlength=512)
    assert not np.array_equal(wrapped.reshape(2, 256), expected(None, (plain("two"), plain("byte")), 1)[0])
