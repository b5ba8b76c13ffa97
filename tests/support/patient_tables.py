"""The patients that the tests of private tables ask about, and what is true of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from dpmine.datasets import patients, patients_schema
from dpmine.engines.encoding import encode
from dpmine.facts.sources import open_source

RECORDS = patients(1500)
SCHEMA = patients_schema()
TABLE = encode(open_source(RECORDS), SCHEMA)
ROWS = [dict(zip(RECORDS, row, strict=True)) for row in zip(*RECORDS.values(), strict=True)]


def truth(*names: str, where: Callable[[dict[str, Any]], bool] = lambda row: True) -> Counter[Any]:
    """True counts by columns."""
    return Counter(tuple(str(row[name]) for name in names) for row in ROWS if where(row))
