"""Adult for benchmarks, encoded under the public facts of `dpmine.datasets`."""

from __future__ import annotations

from dpmine.datasets import adult_schema
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.facts.sources import open_source
from harness import data_folder

CLASS = "income"


def encoded(bins: int | None) -> EncodedTable:
    """The 14 attributes and the class; numeric ones in `bins` equal bins, or on their public grid (None)."""
    return encode(open_source(data_folder() / "adult.parquet"), adult_schema(bins=bins))
