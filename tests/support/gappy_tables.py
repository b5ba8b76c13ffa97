"""A small table with gaps everywhere, in its class too, uneven grids, and values finer than the cells of its grids."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from support.mined_tables import TAXONOMY, Table

from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema

GAPS = ("own", "drop")
EDGES = (Decimal("0.25"), Decimal(1), Decimal("3.5"))


def gappy_schema(gap: str, *, rows_at_most: int = 1000) -> Schema:
    """Every kind of grid and of categories, with gaps that are their own or dropped; one attribute has none."""
    return Schema(
        "gappy",
        (
            Nominal("colour", ("red", "blue", "yellow", "green"), None, TAXONOMY, gap),
            Nominal("kind", ("a", "b", "c"), missing=gap),
            Nominal("flag", ("no", "yes"), "no", missing="no"),
            Nominal("constant", ("only",), missing=gap),
            Numeric("size", Decimal(0), Decimal(10), Decimal("0.5"), gap),
            Numeric("income", Decimal(0), Decimal(70_000), None, gap, scale="log"),
            Numeric("dose", Decimal(-1), Decimal(5), None, gap, Decimal("0.01"), EDGES),
            Nominal("class", ("no", "yes"), missing="drop"),
        ),
        rows_at_most,
        "class",
    )


def gappy_table(rows: int, seed: int, *, telling: str = "size", clear: float = 0.95) -> Table:
    """The class says most of the time whether a column has a value; every column has gaps, and so has the class."""
    draw = np.random.default_rng(seed)
    table: Table = {
        "colour": [["red", "blue", "yellow", "green", "no such"][place] for place in draw.integers(0, 5, rows)],
        "kind": ["abc"[place] for place in draw.integers(0, 3, rows)],
        "flag": [["no", "yes"][place] for place in draw.integers(0, 2, rows)],
        "constant": ["only"] * rows,
        "size": draw.uniform(-0.5, 10.5, rows).tolist(),
        "income": np.exp(draw.uniform(0, 11.5, rows)).tolist(),
        "dose": draw.normal(1, 2, rows).tolist(),
    }
    for name in table:
        gap = draw.random(rows) < (0.4 if name == telling else 0.15)
        table[name] = [None if is_gap else value for is_gap, value in zip(gap, table[name], strict=True)]
    classes = [("yes" if value is None else "no") for value in table[telling]]
    swapped, unknown = draw.random(rows) >= clear, draw.random(rows) < 0.1
    labels: list[Any] = []
    for label, other, gap in zip(classes, swapped, unknown, strict=True):
        labels.append(None if gap else ("no" if label == "yes" else "yes") if other else label)
    table["class"] = labels
    return table
