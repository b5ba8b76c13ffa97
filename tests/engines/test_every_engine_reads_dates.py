"""Dates, moments, times of day, decimals and truth have the same values in every engine and from every source."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import dated_columns
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dated_columns import FORMATS, ROWS

from dpmine.engines.encoding import encode
from dpmine.engines.sql.duckdb.files import DuckDBFiles
from dpmine.facts.kinds.dates import Date, DateTime, Time
from dpmine.facts.kinds.kind import Single
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.moments import MomentRule
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource, FrameSource, Source

COLUMNS = dated_columns.columns()
TABLE = pa.table(COLUMNS)
RULES = (
    MomentRule(),
    MomentRule(zone=90),
    MomentRule(zone=-330, clock=True),
    MomentRule("%H:%M", clock=True),
    *map(MomentRule, FORMATS),
)
every_column = pytest.mark.parametrize("name", COLUMNS)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("dates") / "rows.parquet"
    pq.write_table(TABLE, file)
    return file


def frames(name: str) -> dict[str, Source]:
    """One column in every kind of frame that can hold it."""
    table, kind = TABLE.select([name]), COLUMNS[name].type
    series = pl.from_arrow(table)[name]
    found: dict[str, Source] = {
        "arrow": FrameSource(table),
        "polars": FrameSource(series.to_frame()),
        "dict of polars": FrameSource({name: series}),
    }
    if pa.types.is_date(kind):  # pandas has dates as Python's alone, which end with the year 9999
        found["dict of numpy's"] = FrameSource({name: COLUMNS[name].to_numpy(zero_copy_only=False)})
        return found
    if name != "clock ns":  # nor times of day with nanoseconds
        found["pandas of arrow"] = FrameSource(table.to_pandas(types_mapper=pd.ArrowDtype))
    if name != "clock ns" and not pa.types.is_integer(kind):
        found["pandas"] = FrameSource(table.to_pandas())
    if pa.types.is_timestamp(kind) and kind.tz is None:
        found["dict of numpy's"] = FrameSource({name: COLUMNS[name].to_numpy(zero_copy_only=False)})
    elif not pa.types.is_timestamp(kind):
        found["dict of Python's"] = FrameSource({name: series.to_list()})
    return found


@every_column
def test_values_have_one_text_and_one_number_wherever_they_stand(name: str, path: Path) -> None:
    file = FileSource(path)
    for kind, frame in frames(name).items():
        assert frame.texts(name) == file.texts(name), kind
        np.testing.assert_array_equal(frame.numbers(name), file.numbers(name), kind)


@every_column
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.format or 'iso'} {rule.zone}")
def test_values_are_one_moment_wherever_they_stand(name: str, rule: MomentRule, path: Path) -> None:
    wanted = FileSource(path).moments(name, rule)
    for kind, frame in frames(name).items():
        found = frame.moments(name, rule)
        assert found.known.shape == found.seconds.shape == found.nanoseconds.shape == (ROWS,)
        np.testing.assert_array_equal(found.known, wanted.known, kind)
        np.testing.assert_array_equal(found.seconds, wanted.seconds, kind)
        np.testing.assert_array_equal(found.nanoseconds, wanted.nanoseconds, kind)


def attributes(name: str, texts: list[str | None]) -> list[Single]:
    listed = tuple([text for text in dict.fromkeys(texts) if text is not None][:50])
    found: list[Single] = [
        Date(name, "1900-05-05", "2090-01-01", "year"),
        DateTime(name, "1970-01-01", "2030-12-31", "year", zone="+05:30", missing="drop", resolution="5min"),
        Time(name, "06:00", "18:00", missing="07:30"),
        Numeric(
            "stay", Decimal(-1000), Decimal(100_000), Decimal(100), resolution=Decimal("0.001"), days_between=(name, "us")
        ),
        Numeric(name, Decimal(0), Decimal(1000), Decimal(10), resolution=Decimal("0.01")),
        Nominal(name, listed, other=listed[0]),
    ]
    if "text" in name or "digits" in name:
        found += [Date(name, "1990-05-05", "2090-01-01", "year", format=form) for form in FORMATS[:7]]
        rule = MomentRule("%d.%m.%Y", 60)
        found.append(Numeric("stay", Decimal(-10), Decimal(10), Decimal(1), days_between=("date", name), rule=rule))
    return found


@every_column
def test_sql_has_the_values_and_codes_of_the_memory_engine(name: str, path: Path) -> None:
    for attribute in attributes(name, FileSource(path).texts(name)):
        schema = Schema("dates", (attribute,), 1000)
        table = encode(FileSource(path), schema)
        source = FileSource(path, keep_in_files=True)
        files = DuckDBFiles(schema, source)
        found = files.fetched(files.coded)
        np.testing.assert_array_equal(found["v0"].astype(np.int64), table.values[attribute.name], str(attribute))
        np.testing.assert_array_equal(found.get("a0", found["v0"]).astype(np.int64), table.codes[attribute.name])
        source.close()
