"""Schemas are equal by what they mean: a file writes out what the call left to its default."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema

GRIDS: list[dict[str, Any]] = [
    {"step": Decimal("0.5")},
    {"step": None, "scale": "log"},
    {"step": None, "edges": (Decimal("2.5"),)},
]


@pytest.mark.parametrize("grid", GRIDS)
def test_a_schema_equals_what_its_file_says_though_that_writes_the_resolution_out(grid: dict[str, Any]) -> None:
    cost = Numeric("cost", Decimal(0), Decimal(100), missing="drop", **grid)
    schema = Schema("costs", (cost,), 100)
    again = Schema.from_toml(schema.to_toml(), where="a file")
    assert again == schema
    assert hash(again.attributes) == hash(schema.attributes)
    assert replace(cost, resolution=Decimal("0.01")) != cost
