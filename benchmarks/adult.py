"""Adult for benchmarks: public bounds written here, encoded, and blown up by drawing rows with replacement."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import numpy as np

from dpmine.engines.encoding import EncodedTable, encode
from dpmine.frames import open_source
from dpmine.schema import Attribute, Nominal, Numeric, Schema
from harness import data_folder

# Data-independent ranges published with the TDS taxonomies.
RANGES = {
    "age": (15, 95),
    "fnlwgt": (0, 1_500_000),
    "education_num": (1, 20),
    "capital_gain": (0, 100_000),
    "capital_loss": (0, 5_000),
    "hours_per_week": (1, 100),
}
CLASS = "income"


def schema(bins: int, *, rows_at_most: int) -> Schema:
    """The 14 attributes and the class; numeric ones in `bins` equal bins, nominal ones with the categories of UCI's page."""
    source = open_source(data_folder() / "adult.parquet")
    attributes: list[Attribute] = []
    for name in source.columns:
        if name in RANGES:
            low, high = map(Decimal, RANGES[name])
            step = (high - low) / bins
            attributes.append(Numeric(name, low, low + step * (bins - 1), step, low))
        else:
            categories = tuple(sorted({text for text in source.texts(name) if text is not None}))
            attributes.append(Nominal(name, categories, "?" if "?" in categories else categories[0]))
    return Schema("adult", tuple(attributes), rows_at_most, CLASS)


def blown_up(table: EncodedTable, rows: int, *, seed: int = 1) -> EncodedTable:
    """`rows` rows drawn from the table with replacement."""
    picked = np.random.default_rng(seed).integers(0, table.rows, rows)
    columns = {name: codes[picked] for name, codes in table.columns.items()}
    return EncodedTable(dataclasses.replace(table.schema, rows_at_most=rows), rows, columns, {}, "generated")


def encoded(bins: int) -> EncodedTable:
    return encode(open_source(data_folder() / "adult.parquet"), schema(bins, rows_at_most=50_000))
