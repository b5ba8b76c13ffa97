"""The text and the number of a value as DuckDB's SQL over a column c, by its type: those of `dpmine.facts.value_texts`.

Nothing here is anybody's text. Types that are not named have no SQL of their own: Python reads them value by value.
"""

from typing import Final

WHOLE_NUMBERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
FLOATS: Final = ("FLOAT", "DOUBLE")
ZONED: Final = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
TIMESTAMPS: Final = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", *ZONED)
CLOCKS: Final = ("TIME", "TIME_NS")

EARLIEST: Final = -9_223_372_036_854
"""Seconds since 1970 of the earliest moment that microseconds count in 64 bits."""
NUMBER_OF_TEXT: Final = "TRY_CAST(CASE WHEN contains(c, '+-') THEN NULL ELSE c END AS DOUBLE)"
_TEXT_OF_BOOLEAN = "CASE WHEN c THEN 'True' WHEN NOT c THEN 'False' END"


def text_of(kind: str) -> str | None:
    """SQL for the text of a value; None where it has none of its own."""
    if kind == "BOOLEAN":
        return _TEXT_OF_BOOLEAN
    if kind in ("VARCHAR", *WHOLE_NUMBERS):
        return "CAST(c AS VARCHAR)"
    if is_decimal(kind):
        return _text_of_decimal("CAST(c AS VARCHAR)")
    if kind == "INTERVAL":
        return _text_of_decimal(_SECONDS_OF_INTERVAL)
    if kind in CLOCKS:
        return f"CASE WHEN c IS NOT NULL THEN concat({_clock_text(seconds_of(kind))}, {_fraction(kind)}) END"
    if kind == "DATE":
        return f"CASE WHEN isfinite(c) THEN {_date_text('c')} END"
    return _text_of_timestamp(kind) if kind in TIMESTAMPS else None


def number_of(kind: str) -> str | None:
    """SQL for the value as a double, NULL where it is no number; None where it has none of its own."""
    if kind == "VARCHAR":
        return NUMBER_OF_TEXT
    if kind in ("BOOLEAN", *FLOATS, *WHOLE_NUMBERS):
        return "CAST(c AS DOUBLE)"
    if is_decimal(kind):  # by way of text, since DuckDB rounds long decimals twice
        return "CAST(CAST(c AS VARCHAR) AS DOUBLE)"
    if kind == "INTERVAL":
        return f"CAST({_SECONDS_OF_INTERVAL} AS DOUBLE)"
    return "CAST(NULL AS DOUBLE)" if kind in ("DATE", *CLOCKS, *TIMESTAMPS) else None


def is_decimal(kind: str) -> bool:
    return kind.startswith("DECIMAL(") and kind.endswith(")")


def seconds_of(kind: str) -> str | None:
    """SQL for the whole seconds since 1970 of what is stored as a date, moment or time of day; NULL where it is endless."""
    if kind == "DATE":
        return f"(CASE WHEN isfinite(c) THEN {_days('c')} END * 86400)"
    parts = _parts_of_a_second(kind)
    return None if parts is None else f"(({parts[0]} - {_modulo(*parts)}) // {parts[1]})"


def nanoseconds_of(kind: str) -> str | None:
    """SQL for the nanoseconds after these."""
    if kind == "DATE":
        return "0"
    parts = _parts_of_a_second(kind)
    return None if parts is None else f"({_modulo(*parts)} * {10**9 // parts[1]})"


def _parts_of_a_second(kind: str) -> tuple[str, int] | None:
    """How many of its parts of a second lie between 1970 and a moment, and how many a second has."""
    if kind in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS"):
        return "epoch_ns(c)", 10**9
    if kind == "TIME_NS":  # Python's times of day end with microseconds
        return "(epoch_ns(c) // 1000)", 10**6
    return ("epoch_us(c)", 10**6) if kind in (*TIMESTAMPS, *CLOCKS) else None


def _modulo(number: str, divisor: int) -> str:
    return f"((({number}) % {divisor} + {divisor}) % {divisor})"


def _days(date: str) -> str:
    return f"date_diff('day', DATE '1970-01-01', {date})"


def _text_of_decimal(text: str) -> str:
    """Without trailing zeros; what begins after four zeros as Python writes floats: 1.5e-07."""
    plain = f"CASE WHEN contains({text}, '.') THEN rtrim(rtrim({text}, '0'), '.') ELSE {text} END"
    decimals = f"rtrim(split_part({text}, '.', 2), '0')"
    digits = f"ltrim({decimals}, '0')"
    sign = f"CASE WHEN starts_with({text}, '-') THEN '-' ELSE '' END"
    broken = f"CASE WHEN length({digits}) > 1 THEN concat('.', substr({digits}, 2)) ELSE '' END"
    power = f"lpad(CAST(length({decimals}) - length({digits}) + 1 AS VARCHAR), 2, '0')"
    small = f"concat({sign}, substr({digits}, 1, 1), {broken}, 'e-', {power})"
    is_small = f"ltrim({text}, '-0') LIKE '.0000%' AND {digits} <> ''"
    return f"CASE WHEN {is_small} THEN {small} WHEN c IS NOT NULL AND {plain} IN ('', '-', '-0') THEN '0' ELSE {plain} END"


_MICROSECONDS = (
    "(CAST(date_part('year', c) * 12 + date_part('month', c) AS HUGEINT) * 2592000000000"
    " + CAST(date_part('day', c) AS HUGEINT) * 86400000000"
    " + CAST(date_part('hour', c) AS HUGEINT) * 3600000000"
    " + CAST(date_part('minute', c) AS HUGEINT) * 60000000"
    " + CAST(date_part('microsecond', c) AS HUGEINT))"
)
"""Of an interval, of which a month has 30 days, as Python's durations have it; what the seconds hold is in microseconds."""
_SECONDS_OF_INTERVAL = (
    f"(CASE WHEN c IS NULL THEN NULL ELSE concat(CASE WHEN {_MICROSECONDS} < 0 THEN '-' ELSE '' END, "
    f"CAST(abs({_MICROSECONDS}) // 1000000 AS VARCHAR), '.', "
    f"lpad(CAST(abs({_MICROSECONDS}) % 1000000 AS VARCHAR), 6, '0')) END)"
)


def _date_text(date: str) -> str:
    """As numpy writes dates, in years before 1 and after 9999 too."""
    digits = f"CAST(abs(year({date})) AS VARCHAR)"
    padded = f"CASE WHEN length({digits}) < 4 THEN lpad({digits}, 4, '0') ELSE {digits} END"
    sign = f"CASE WHEN year({date}) < 0 THEN '-' ELSE '' END"
    return f"concat({sign}, {padded}, '-', {_two(f'month({date})')}, '-', {_two(f'day({date})')})"


def _two(number: str) -> str:
    return f"lpad(CAST({number} AS VARCHAR), 2, '0')"


def _clock_text(seconds: str | None) -> str:
    second = f"(({seconds} % 86400 + 86400) % 86400)"
    return f"concat({_two(f'{second} // 3600')}, ':', {_two(f'{second} // 60 % 60')}, ':', {_two(f'{second} % 60')})"


def _fraction(kind: str) -> str:
    """Broken seconds, with 6 digits, or 9 where needed."""
    nanoseconds = nanoseconds_of(kind)
    written = f"lpad(CAST({nanoseconds} AS VARCHAR), 9, '0')"
    six, nine = f"concat('.', substr({written}, 1, 6))", f"concat('.', {written})"
    return f"CASE WHEN {nanoseconds} = 0 THEN '' WHEN {nanoseconds} % 1000 = 0 THEN {six} ELSE {nine} END"


def _text_of_timestamp(kind: str) -> str:
    """The date alone at midnight, but for moments with a time zone."""
    seconds, zoned = seconds_of(kind), kind in ZONED
    date = _date_text(f"make_timestamp({seconds} * 1000000)")  # in UTC, whatever the session's time zone
    zone = "'+00:00'" if zoned else "''"
    clock = f"concat(' ', {_clock_text(seconds)}, {_fraction(kind)}, {zone})"
    midnight = f"{seconds} % 86400 = 0 AND {nanoseconds_of(kind)} = 0"
    rest = clock if zoned else f"CASE WHEN {midnight} THEN '' ELSE {clock} END"
    return f"CASE WHEN {seconds} > {EARLIEST} THEN concat({date}, {rest}) END"
