"""Reading moments as DuckDB's SQL over a column c, by its type: what `dpmine.facts.moments` says, step by step.

A format that a schema states never becomes SQL text: its regular expression is spelled by code points.
"""

from dataclasses import dataclass
from typing import Final

from dpmine.facts.moments import FURTHEST, MONTHS, TURN_OF_CENTURY, MomentRule, Pattern
from dpmine.facts.sources.texts_in_sql import (
    CLOCKS,
    FLOATS,
    WHOLE_NUMBERS,
    ZONED,
    is_decimal,
    nanoseconds_of,
    seconds_of,
    text_of,
)

ERAS: Final = 25_000
"""Of 400 years, that years are moved by so that none is negative: division then rounds down."""


@dataclass(frozen=True)
class MomentInSql:
    """Whole seconds since 1970, and the nanoseconds after them; both NULL of what is no moment."""

    seconds: str
    nanoseconds: str


def moment_of(kind: str, rule: MomentRule) -> MomentInSql | None:
    """SQL for the moment of a value; None where a type has none of its own."""
    if kind in CLOCKS and not rule.clock:
        return MomentInSql("CAST(NULL AS BIGINT)", "CAST(NULL AS BIGINT)")
    stored = seconds_of(kind)
    if stored is not None:
        shift = f"({stored} + {60 * rule.zone})" if kind == ZONED else stored
        return MomentInSql(_near(shift), str(nanoseconds_of(kind)))
    text = _text(kind)
    if text is None:
        return None
    read = [_read(pattern, text, rule.zone) for pattern in rule.patterns]
    if len(read) == 1:
        return read[0]
    first, second = read
    return MomentInSql(
        f"COALESCE({first.seconds}, {second.seconds})",
        f"CASE WHEN {first.seconds} IS NULL THEN {second.nanoseconds} ELSE {first.nanoseconds} END",
    )


def _text(kind: str) -> str | None:
    """What is read as text: of floats the digits of whole numbers alone."""
    if kind in FLOATS:
        return "CASE WHEN c = floor(c) AND abs(c) < 1e15 THEN CAST(CAST(c AS BIGINT) AS VARCHAR) END"
    return text_of(kind) if kind in ("VARCHAR", "BOOLEAN", "INTERVAL", *WHOLE_NUMBERS) or is_decimal(kind) else None


def _near(seconds: str) -> str:
    return f"(CASE WHEN abs({seconds}) <= {FURTHEST} THEN {seconds} END)"


def _spelled(pattern: Pattern) -> str:
    whole = f"\\A(?:{pattern.text})\\z"
    return f"concat({', '.join(f'chr({ord(letter)})' for letter in whole)})"


def _read(pattern: Pattern, text: str, zone: int) -> MomentInSql:
    """A moment by the groups of a pattern, each of which is '' where it, or the whole, does not match."""
    spelled = _spelled(pattern)
    groups = {name: f"regexp_extract({text}, {spelled}, {place + 1})" for place, name in enumerate(pattern.fields)}

    def number(name: str, missing: int) -> str:
        return f"COALESCE(TRY_CAST({groups[name]} AS BIGINT), {missing})" if name in groups else str(missing)

    year, month, day = number("Y", 1970), number("m", 1), number("d", 1)
    if "y" in groups:
        two = number("y", 0)
        year = f"({two} + CASE WHEN {two} >= {TURN_OF_CENTURY} THEN 1900 ELSE 2000 END)"
    if "b" in groups:
        month = f"((strpos('{MONTHS}', lower(substr({groups['b']}, 1, 3))) + 2) // 3)"
    hour, minute, second = number("H", 0), number("M", 0), number("S", 0)
    holds = [f"regexp_matches({text}, {spelled})"]
    if "I" in groups:
        holds.append(f"{number('I', 0)} BETWEEN 1 AND 12")
        hour = f"({number('I', 0)} % 12 + CASE WHEN lower({groups['p']}) = 'pm' THEN 12 ELSE 0 END)"
    holds += [f"{hour} <= 23", f"{minute} <= 59", f"{second} <= 59"]
    seconds = f"{hour} * 3600 + {minute} * 60 + {second}"
    if set("Yymbd") & groups.keys():
        holds += [f"{month} BETWEEN 1 AND 12", f"{day} BETWEEN 1 AND {_days_in(year, month)}"]
        seconds += f" + {_days_of(year, month, day)} * 86400"
    if "z" in groups:
        named = groups["z"]
        hours = f"COALESCE(TRY_CAST(substr({named}, 2, 2) AS BIGINT), 0)"
        minutes = f"COALESCE(TRY_CAST(replace(substr({named}, 4), ':', '') AS BIGINT), 0)"
        is_offset = f"({named} <> '' AND {named} NOT IN ('Z', 'z', 'UTC'))"
        east = f"CASE WHEN starts_with({named}, '-') THEN -1 ELSE 1 END"
        holds.append(f"(NOT {is_offset} OR ({hours} <= 23 AND {minutes} <= 59))")
        offset = f"CASE WHEN {is_offset} THEN ({hours} * 60 + {minutes}) * {east} ELSE 0 END"
        seconds += f" + CASE WHEN {named} = '' THEN 0 ELSE ({zone} - {offset}) * 60 END"
    fraction = "0"
    if "f" in groups:
        fraction = f"CAST(rpad(substr({groups['f']}, 1, 9), 9, '0') AS BIGINT)"
    found = f"(CASE WHEN {' AND '.join(holds)} THEN {seconds} END)"
    return MomentInSql(_near(found), f"CASE WHEN {holds[0]} THEN {fraction} END")


def _days_in(year: str, month: str) -> str:
    leap = f"(({year}) % 4 = 0 AND ({year}) % 100 <> 0) OR ({year}) % 400 = 0"
    return f"(CASE WHEN {month} IN (4, 6, 9, 11) THEN 30 WHEN {month} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END)"


def _days_of(year: str, month: str, day: str) -> str:
    """As `calendar.days_of`."""
    since = f"({year} + {400 * ERAS} - CASE WHEN {month} > 2 THEN 0 ELSE 1 END)"
    from_march = f"({month} + CASE WHEN {month} > 2 THEN -3 ELSE 9 END)"
    of_era = f"({since} % 400)"
    of_year = f"((153 * {from_march} + 2) // 5 + {day} - 1)"
    return (
        f"({since} // 400 * 146097 + {of_era} * 365 + {of_era} // 4 - {of_era} // 100 + {of_year}"
        f" - {719_468 + ERAS * 146_097})"
    )
