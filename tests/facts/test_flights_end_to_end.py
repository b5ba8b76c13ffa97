"""A table that nobody has tidied, from its draft to answers: flights from New York, with the edits of the tutorial."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import comb
from pathlib import Path

import polars as pl
import pytest

import dpmine as dm
from dpmine.facts.checking import TableReport, check_table
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "owner.md"
DELAYS = ("dep_delay", "arr_delay")
TRIES = 40
FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def flights() -> Path:
    import os

    file = Path(os.environ.get("DPMINE_DATA", "missing")) / "flights.parquet"
    if not file.exists():
        pytest.skip("DPMINE_DATA has no flights.parquet")
    return file


@pytest.fixture(scope="module")
def draft(flights: Path) -> Schema:
    return Schema.draft(flights, drop=["flight"])


@pytest.fixture(scope="module")
def schema(draft: Schema) -> Schema:
    toml = draft.to_toml()
    for old, new in edits():
        assert toml.count(f"\n{old}\n") == 1, f"the draft has no line {old!r}, or several"
        toml = toml.replace(f"\n{old}\n", f"\n{new}\n" if new else "\n")
    return Schema.from_toml(toml)


@pytest.fixture(scope="module")
def report(flights: Path, schema: Schema) -> TableReport:
    return check_table(flights, schema)


@pytest.fixture(scope="module")
def data(flights: Path, schema: Schema) -> Iterator[dm.DataSet]:
    with dm.open(flights, schema=schema, cap=100_000, ledger=None) as opened:
        yield opened


def edits() -> list[tuple[str, str]]:
    """The lines that the tutorial changes, each with what it puts there; nothing where it deletes one."""
    (block,) = re.findall(r"^```diff\n(.*?)^```", TUTORIAL.read_text(), re.DOTALL | re.MULTILINE)
    found = re.findall(r"^-(.*)\n(?:\+(.*)\n)?", block, re.MULTILINE)
    assert sum(line[0] in "+-" for line in block.splitlines()) == sum(1 + bool(new) for _, new in found)
    return found


def fewest_of(tries: int, rate: float) -> int:
    """So many successes are missed with a probability of a false alarm at most."""
    below = 0.0
    for number in range(tries + 1):
        below += comb(tries, number) * rate**number * (1 - rate) ** (tries - number)
        if below > FALSE_ALARM:
            return number
    return tries


def test_at_most_five_lines_are_edited(schema: Schema) -> None:
    assert 0 < len(edits()) <= 5
    assert not schema.drafted


def test_the_draft_says_what_each_column_is(draft: Schema) -> None:
    assert draft.notes is not None
    assert draft.notes.suggested == "tailnum"
    kinds = {note.name: note.kind for note in draft.notes.columns}
    assert {kinds[name] for name in ("carrier", "origin", "dest")} == {"nominal"}
    assert {kinds[name] for name in (*DELAYS, "dep_time", "air_time", "distance", "hour", "minute")} == {"numeric"}
    delays = [draft.attribute(name) for name in DELAYS]
    assert all(isinstance(delay, Numeric) and delay.scale == "log" and delay.finest == 1 for delay in delays)


def test_the_check_tells_gaps_and_planes_and_that_no_mean_is_shifted(report: TableReport) -> None:
    form = report.form()
    assert form["rows"] == 336_776
    assert form["unit"] == {
        "column": "tailnum",
        "persons": 4043,
        "rows_without_a_person": 2512,
        "rows_beyond_at_most": 0,
    }
    for name, shift in form["shifts"].items():
        assert shift["before"] == pytest.approx(shift["after"]), name
    assert form["attributes"]["dep_delay"]["missing or no number"] == 8255
    assert form["attributes"]["arr_delay"]["missing or no number"] == 9430
    changed = {name for name, counts in form["attributes"].items() if any(counts.values())}
    assert changed <= {*DELAYS, "dep_time", "arr_time", "air_time"}


@pytest.mark.parametrize("column", DELAYS)
def test_intervals_of_means_hold_the_truth_as_often_as_they_say(column: str, data: dm.DataSet, flights: Path) -> None:
    rows = pl.read_parquet(flights, columns=["tailnum", column]).filter(pl.col("tailnum").is_not_null())
    truth = rows[column].mean()
    assert isinstance(truth, float)
    private = data.grant(f"analyst of {column}", epsilon=10_000)
    answers = [private.mean(column, epsilon=f"0.01{number:04d}") for number in range(TRIES)]
    assert sum(answer.low <= truth <= answer.high for answer in answers) >= fewest_of(TRIES, 0.95)
    assert all(answer.high - answer.low < 5 for answer in answers)  # minutes


def test_a_histogram_of_delays_has_a_label_for_gaps(data: dm.DataSet) -> None:
    private = data.grant("analyst of gaps", epsilon=10_000)
    counted = private.histogram("dep_delay", epsilon=1)
    assert counted["(missing)"] == pytest.approx(8255 - 2512, abs=30)
    assert private.where("dep_delay is missing").count(epsilon=1).value == pytest.approx(8255 - 2512, abs=30)


@pytest.mark.parametrize(("unit", "labels"), [("month", 24), ("weekday", 7)])
def test_flights_are_counted_by_the_calendar(unit: str, labels: int, data: dm.DataSet, flights: Path) -> None:
    """At this epsilon noise reaches 10 in one of 1e21 counts."""
    rows = pl.read_parquet(flights, columns=["tailnum", "time_hour"]).filter(pl.col("tailnum").is_not_null())
    written = {"month": "%Y-%m", "weekday": "%A"}[unit]
    truth = dict(rows.select(pl.col("time_hour").dt.strftime(written)).to_series().value_counts().iter_rows())
    private = data.grant(f"calendar {unit}", epsilon=20_000)
    told = private.histogram(dm.col("time_hour").by(unit), epsilon=5).to_dict()
    assert len([label for label in told if label != "(missing)"]) == labels
    assert all(abs(count - truth.get(label, 0)) <= 10 for label, count in told.items())
