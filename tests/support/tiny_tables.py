"""A schema so small that all its small tables can be listed, and engines over them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from decimal import Decimal

from support.kernels import SPLIT_KEY

from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.memory import MemoryEngine
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source

Row = tuple[str, int, str]

SCHEMA = Schema(
    name="tiny",
    attributes=(
        Nominal("colour", ("red", "blue"), "red", missing="red"),
        Numeric("size", Decimal(0), Decimal(2), Decimal(1), Decimal(0)),
        Nominal("ill", ("no", "yes"), "no", missing="no"),
    ),
    rows_at_most=100,
    class_attribute="ill",
)
KINDS: list[Row] = list(itertools.product(("red", "blue"), (0, 1, 2), ("no", "yes")))


def all_tables(rows: int) -> Iterator[tuple[Row, ...]]:
    """Every table with at most that many rows, row order aside."""
    for count in range(rows + 1):
        yield from itertools.combinations_with_replacement(KINDS, count)


def encoded(rows: Sequence[Row]) -> EncodedTable:
    names = ("colour", "size", "ill")
    return encode(open_source({name: [row[place] for row in rows] for place, name in enumerate(names)}), SCHEMA)


def engine(rows: Sequence[Row], split_key: bytes = SPLIT_KEY) -> MemoryEngine:
    return MemoryEngine(encoded(rows), split_key)
