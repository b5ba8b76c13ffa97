"""One table, opened twice under one ledger: no row may be asked about in two cells of a partition for the price of one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmine as dm
from dpmine.engines import encoding
from dpmine.engines.encoding import encode
from dpmine.facts import value_texts
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source

ROWS = 1000
DAYS = [dt.date(2020, 1, 1)] * ROWS
MOMENTS = [dt.datetime(2020, 1, 1)] * ROWS
CATEGORIES = (
    *("other", "2020-01-01", "2020-01-01 00:00:00", "2020-01-01T00:00:00.000000000", "1", "1.0", "1.00"),
    *("10000000000000000", "1e+16", "86400", "1 day, 0:00:00", "1 days 00:00:00"),
)
SCHEMA = Schema("twice", (Nominal("x", CATEGORIES, "other", missing="other"),), ROWS)

Opened = Callable[[Path], Any]
PAIRS: dict[str, tuple[Opened, Opened]] = {
    "pandas and Polars": (
        lambda _: pd.DataFrame({"x": pd.Series(MOMENTS, dtype="datetime64[ns]")}),
        lambda _: pl.DataFrame({"x": DAYS}),
    ),
    "pandas and a dict of dates": (lambda _: pd.DataFrame({"x": pd.to_datetime(MOMENTS)}), lambda _: {"x": DAYS}),
    "pandas and Arrow": (lambda _: pd.DataFrame({"x": pd.to_datetime(MOMENTS)}), lambda _: pa.table({"x": DAYS})),
    "a dict of dates and a dict of moments": (lambda _: {"x": DAYS}, lambda _: {"x": MOMENTS}),
    "a dict of dates and a dict of numpy's moments": (
        lambda _: {"x": DAYS},
        lambda _: {"x": pd.Series(MOMENTS, dtype="datetime64[ns]").to_numpy()},
    ),
    "decimals of other widths": (lambda _: {"x": [Decimal("1.0")] * ROWS}, lambda _: {"x": [Decimal("1.00")] * ROWS}),
    "whole numbers and decimals": (lambda _: {"x": [1] * ROWS}, lambda _: {"x": [Decimal("1.0")] * ROWS}),
    "large whole numbers and floats": (lambda _: {"x": [10**16] * ROWS}, lambda _: {"x": [1e16] * ROWS}),
    "durations": (lambda _: {"x": [dt.timedelta(1)] * ROWS}, lambda _: {"x": pd.to_timedelta(["1D"] * ROWS)}),
    "Parquet files of two types": (
        lambda folder: parquet(folder / "one.parquet", pa.array([1] * ROWS)),
        lambda folder: parquet(folder / "two.parquet", pa.array([Decimal("1.00")] * ROWS)),
    ),
}


def parquet(path: Path, column: pa.Array) -> Path:
    pq.write_table(pa.table({"x": column}), path)
    return path


def looks_and_price(folder: Path, pair: tuple[Opened, Opened]) -> tuple[int, float]:
    """How many answers at epsilon 1 counted the rows, and what all cost: first in their cell, then in all other cells.

    A count of nobody is above half of the rows with probability exp(-500).
    """
    place = encode(open_source(pair[0](folder)), SCHEMA).codes["x"][0]
    here = {CATEGORIES[place]}
    looks = 0
    for opened, asked in zip(pair, (here, set(CATEGORIES) - here), strict=True):
        with dm.open(opened(folder), schema=SCHEMA, ledger=folder / "l.db", cap=100) as data:
            private = data.grant("mallory", epsilon=100)
            cells = [cell for name, cell in private.partition("x").items() if name in asked]
            looks += sum(cell.count(epsilon=1).value > ROWS / 2 for cell in cells)
            spent = 100 - float(str(private.remaining()))
    return looks, spent


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_row_is_never_asked_about_more_often_than_it_is_paid_for(pair: tuple[Opened, Opened], tmp_path: Path) -> None:
    looks, price = looks_and_price(tmp_path, pair)
    assert looks <= price


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_equal_values_are_in_one_cell_even_if_all_sources_shared_a_root(
    pair: tuple[Opened, Opened], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two walls, without the second."""
    monkeypatch.setattr(encoding, "encoding_of", lambda source, schema: "planted: one root for all")
    looks, price = looks_and_price(tmp_path, pair)
    assert (looks, price) == (1, 1.0)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_sources_of_other_kinds_or_types_have_other_roots_even_if_equal_values_were_written_otherwise(
    pair: tuple[Opened, Opened], tmp_path: Path
) -> None:
    """The second wall; lists of plain objects state no types, so that for them the first has to hold."""
    names, untyped = [], True
    for opened in pair:
        table = opened(tmp_path)
        untyped &= isinstance(table, dict) and not any(hasattr(column, "dtype") for column in table.values())
        with dm.open(table, schema=SCHEMA, ledger=None, cap=1) as data:
            names.append(data._table.encoding)
    assert (names[0] == names[1]) == untyped


def test_a_dict_s_columns_and_categories_state_the_type_that_decides_how_they_read() -> None:
    """A gap makes floats of whole numbers, and long ones are merged: another code, so it must be another root."""
    import pandas as pd

    schema = Schema(
        "long", (Nominal("x", ("9007199254740993", "9007199254740992", "other"), "other", missing="other"),), 100
    )
    long = pd.Series([9007199254740993])
    for whole, merged in (
        ({"x": long}, {"x": long.astype("float64")}),
        ({"x": long.to_numpy()}, {"x": long.to_numpy().astype(float)}),
        (pd.DataFrame({"x": long.astype("category")}), pd.DataFrame({"x": long.astype("float64").astype("category")})),
        ({"x": long.astype("category")}, {"x": long.astype("float64").astype("category")}),
    ):
        one, other = (encode(open_source(table), schema) for table in (whole, merged))
        assert one.codes["x"].tolist() != other.codes["x"].tolist()
        assert one.encoding != other.encoding


def test_members_of_categories_and_lengths_of_texts_are_no_part_of_the_root() -> None:
    import pandas as pd
    import polars as pl

    schema = Schema("words", (Nominal("x", ("a", "bb"), "a", missing="a"),), 100)
    for make in (
        lambda words: pd.DataFrame({"x": pd.Series(words, dtype="category")}),
        lambda words: {"x": pd.Series(words, dtype="category")},
        lambda words: {"x": pl.Series(words, dtype=pl.Enum(sorted(set(words))))},
        lambda words: pl.DataFrame({"x": pl.Series(words, dtype=pl.Enum(sorted(set(words))))}),
        lambda words: {"x": np.array(words)},
    ):
        names = {encode(open_source(make(words)), schema).encoding for words in (["a"], ["a", "bb"], ["a", "ccc"])}
        assert len(names) == 1


def test_the_attack_finds_a_planted_text_that_differs_between_equal_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_texts, "_text", str)
    looks, price = looks_and_price(tmp_path, PAIRS["a dict of dates and a dict of moments"])
    assert looks > price
