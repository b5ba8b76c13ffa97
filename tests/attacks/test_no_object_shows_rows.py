"""What an object prints of itself ends in notebooks, logs and tracebacks: no row, no code and no exact count may be in it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmine as dm
import dpmine.engines
import dpmine.kernel
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.memory import CellIds, MemoryEngine
from dpmine.frames import FileSource, FrameSource, open_source
from dpmine.plans import Cells
from dpmine.queries import LEAF, Split
from dpmine.resolution import resolve_cells, resolve_key
from dpmine.schema import ItemList, Nominal, Numeric, Schema, Unit

ROWS = 9973
CANARY = "canary-7261"
ILL = 4177  # of the rows, exactly
SCHEMA = Schema(
    "shown",
    (
        Nominal("ward", ("north", "south", "other"), "other"),
        Numeric(
            "age",
            dm.Decimal(0) if hasattr(dm, "Decimal") else __import__("decimal").Decimal(0),
            *map(__import__("decimal").Decimal, (99, 1, 0)),
        ),
        Nominal("ill", ("no", "yes"), "no"),
        ItemList("drugs", ("a", "b"), 2),
    ),
    20_000,
    class_attribute="ill",
    unit=Unit("who", 2),
)
