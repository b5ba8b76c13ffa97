"""Columns of dates and moments as files and frames hold them, with values at all edges, and texts that are none."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa

ROWS = 120
DAYS = ("2013-01-05", "2012-02-29", "2013-02-29", "1900-02-29", "2000-02-29",
        "-0044-03-15", "+12000-01-01", "5881580-07-10",
        "9999999-01-01", "2013-13-01", "2013-00-01", "2013-4-1", "20130105", "05.01.2013",
        "31.04.2013", "5.1.13", "01/05/2013",
        "29 Feb 2012", "May 1, 2013", "12:30", "24:00", "23:59:59", "", " ", "nonsense",
        "2013", "\uff12\uff10\uff11\uff13-01-05")  # fmt: skip
CLOCKS = ("", "", "", "T12:30", " 12:30:15", " 12:30:15.25", " 12:30:15,123456789123", " 00:00", " 23:59:59.999999999",
          " 24:00:00", " 12:60", " 3:04 PM", " 12:00 am", "\n", "\x00")  # fmt: skip
ZONES = ("", "", "", "Z", "+01:00", "-0530", "+24:00", "+01:60", " UTC", "+01")
FORMATS = ("%d.%m.%Y", "%d.%m.%y", "%Y%m%d", "%m/%d/%Y %I:%M %p", "%Y-%m-%dT%H:%M%z", "%d %b %Y", "%B %d, %Y", "%Y",
           "%Y-%m-%d %H:%M:%S.%f", "%Y-%d-%m")  # fmt: skip


def texts(count: int, seed: int) -> list[str | None]:
    """Any day with any time of day and any zone, most of which are no moment."""
    drawn = random.Random(seed)
    return [None, *("".join(map(drawn.choice, (DAYS, CLOCKS, ZONES))) for _ in range(count - 1))]


def _wholes(low: int, high: int, *more: int | None) -> list[int | None]:
    drawn = random.Random(low ^ high)
    edges = [None, 0, -1 if low < 0 else 1, 1, low, high, *more]
    return [*edges, *(drawn.randint(low, high) for _ in range(ROWS - len(edges)))]


def _days(unit: int) -> list[int]:
    """Whole days around 1970."""
    return [day * 86_400 * unit for day in range(-60, ROWS - 60)]


def columns() -> dict[str, pa.Array]:
    """A column of every type that holds moments, decimals or truth, and some of texts."""
    in_ms, in_us, in_ns = 86_400 * 10**3, 86_400 * 10**6, 86_400 * 10**9
    return {
        "date": pa.array(_wholes(-800_000, 3_000_000), pa.date32()),
        "whole seconds": pa.array(
            [None if x is None else x * 1000 for x in _wholes(-(6 * 10**10), 10**11)], pa.timestamp("ms")
        ),
        "ms": pa.array(_wholes(-6 * 10**13, 10**14, in_ms, -in_ms), pa.timestamp("ms")),
        "us": pa.array(_wholes(-6 * 10**16, 2 * 10**17, in_us, -in_us), pa.timestamp("us")),
        "ns": pa.array(_wholes(-9 * 10**18, 9 * 10**18, in_ns, -in_ns), pa.timestamp("ns")),
        "zoned": pa.array(_wholes(-6 * 10**16, 2 * 10**17, in_us, -in_us), pa.timestamp("us", "Europe/Berlin")),
        "zoned ns": pa.array(_wholes(-9 * 10**18, 9 * 10**18, in_ns, -in_ns), pa.timestamp("ns", "America/New_York")),
        "midnights": pa.array(_days(10**6), pa.timestamp("us")),
        "zoned midnights": pa.array(_days(10**6), pa.timestamp("us", "UTC")),
        "clock ms": pa.array(_wholes(0, in_ms - 1), pa.time32("ms")),
        "clock us": pa.array(_wholes(0, in_us - 1), pa.time64("us")),
        "clock ns": pa.array(_wholes(0, in_ns - 1), pa.time64("ns")),
        "decimal": _decimals(-(10**9), 10**9, 18, 4),
        "small decimal": _decimals(-(10**6), 10**6, 18, 9),
        "whole decimal": _decimals(-(10**6), 10**6, 38, 0),
        "long decimal": _decimals(-(10**38) + 1, 10**38 - 1, 38, 20),
        "truth": pa.array([None, True, False] * (ROWS // 3), pa.bool_()),
        "digits": pa.array([None, 20130105, 20130231, 99999999, 0, -20130105] * (ROWS // 6), pa.int64()),
        "broken digits": pa.array(
            [None, 20130105.0, 20130105.5, float("nan"), float("inf"), -0.0] * (ROWS // 6), pa.float64()
        ),
        "text": pa.array(texts(ROWS, 1), pa.string()),
        "other text": pa.array(texts(ROWS, 2), pa.string()),
    }


def _decimals(low: int, high: int, precision: int, scale: int) -> pa.Array:
    numbers = [None if x is None else Decimal(f"{x}E-{scale}") for x in _wholes(low, high)]
    return pa.array(numbers, pa.decimal128(precision, scale))
