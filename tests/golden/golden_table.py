"""The table that golden values are asked of: 200 rows with columns of every kind, the same for ever.

Drawn from hashes of row number and column, so that no generator's version matters. A few cells are unknown, missing or out
of bounds, since what becomes of them is part of every answer.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from dpmine.facts.facts import Unit
from dpmine.facts.kinds.dates import Date
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema

ROWS = 200
WARDS = ("north", "south", "east", "west")
TAXONOMY = TaxonomyNode.parse("any", {"outer": ["north", "south"], "inner": ["east", "west"]})
COUGH = ("no", "yes")
DIAGNOSES = ("healthy", "sick")
HISTORY = ("flu", "asthma", "allergy")

SCHEMA = Schema(
    "golden",
    (
        Nominal("ward", WARDS, "north", TAXONOMY, missing="north"),
        Nominal("cough", COUGH, "no", missing="no"),
        Numeric("age", Decimal(0), Decimal(100), Decimal(1), Decimal(40)),
        Numeric("dose", Decimal(0), Decimal(5), Decimal("0.25"), Decimal(1)),
        Numeric("weight", Decimal(40), Decimal(120), Decimal(5), Decimal(70)),
        ItemList("history", HISTORY, 3),
        Nominal("diagnosis", DIAGNOSES, "healthy", missing="healthy"),
    ),
    1000,
    "diagnosis",
    ("person",),
)
PERSONS = replace(SCHEMA, name="golden-persons", drop=(), unit=Unit("person", 2))
"""A person may have two rows that count, and every question costs twice its epsilon."""
GAPS = Schema(
    "golden-gaps",
    (
        Nominal("ward", WARDS, taxonomy=TAXONOMY),
        Nominal("cough", COUGH, missing="drop"),
        Numeric("age", Decimal(0), Decimal(100), Decimal(10)),
        Numeric("dose", Decimal(0), Decimal(5), None, "drop", Decimal("0.01"), (Decimal(1), Decimal("2.5"))),
        Numeric("weight", Decimal(40), Decimal(120), None, scale="log"),
        Nominal("diagnosis", DIAGNOSES, missing="drop"),
    ),
    1000,
    "diagnosis",
    ("person",),
)
"""Rows may lack a value, with a label of its own or dropped, and grids are coarser than values, even or not."""
DATED = replace(
    GAPS, name="golden-dates", attributes=(*GAPS.attributes, Date("admitted", "2013-01-01", "2014-12-31", "month"))
)
"""With the day on which a row was admitted, on a grid of months."""
FOUR_CLASSES = replace(SCHEMA, class_attribute="ward")
DRAFTED = replace(SCHEMA, drafted=True)

Columns = dict[str, list[Any]]


def _drawn(row: int, what: str, bound: int) -> int:
    """A number below the bound that follows from row and name."""
    return int.from_bytes(hashlib.blake2b(f"{what} {row}".encode(), digest_size=8).digest(), "big") % bound


def _row(row: int) -> dict[str, Any]:
    ward = WARDS[_drawn(row, "ward", 9) % 4]
    cough = COUGH[_drawn(row, "cough", 3) // 2]
    age = 15 + _drawn(row, "age", 40) + _drawn(row, "more age", 40)
    sick = (cough == "yes" and age >= 40) or (ward in ("east", "west") and age >= 60)
    if _drawn(row, "exception", 8) == 0:
        sick = not sick
    dose = (2 if sick else 0) + _drawn(row, "dose", 12) / 4
    weight = 50 + _drawn(row, "weight", 50) + (15 if ward == "south" else 0)
    items = [HISTORY[_drawn(row, f"item {number}", 3)] for number in range(_drawn(row, "items", 4))]
    return {
        "person": f"P{_drawn(row, 'person', 110):03d}",
        "ward": ward,
        "cough": cough,
        "age": age,
        "dose": dose,
        "weight": weight,
        "history": "|".join(items),
        "admitted": str(date(2013, 1, 1) + timedelta(days=_drawn(row, "admitted", 730))),
        "diagnosis": DIAGNOSES[sick],
    }


ODD_CELLS: dict[int, dict[str, Any]] = {
    3: {"ward": "attic"},
    17: {"ward": None},
    40: {"age": 130},
    41: {"age": None},
    60: {"dose": -1.5},
    61: {"dose": 2.3},
    62: {"admitted": None},
    63: {"admitted": "2031-01-01"},
    90: {"history": "flu|mumps|asthma|flu|allergy"},
    120: {"person": None},
    150: {"diagnosis": "unknown"},
}


def table() -> Columns:
    rows = [_row(row) | ODD_CELLS.get(row, {}) for row in range(ROWS)]
    return {name: [row[name] for row in rows] for name in rows[0]}


TABLE = table()
PUBLIC_ROWS: Columns = {name: column[:12] for name, column in TABLE.items()}
"""What models predict in the golden values."""


def write_csv(path: Path) -> None:
    """The table as a file, with nothing where a value is missing."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(TABLE)
        writer.writerows(["" if cell is None else cell for cell in row] for row in zip(*TABLE.values(), strict=True))
