"""Reading moments as DuckDB's SQL over a column c, by its type: what `dpmine.facts.moments` says, step by step.

A format that a schema states never becomes SQL text: its regular expression is spelled by code points.
"""

from dataclasses import dataclass
from typing import Final

from dpmine.facts.moments import FURTHEST, ISO_CLOCK, ISO_MOMENT, MONTHS, TURN_OF_CENTURY, MomentRule, Pattern
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
        shift = f"({stored} + {60 * rule.zone})" if kind in ZONED else stored
        return MomentInSql(_near(shift), str(nanoseconds_of(kind)))
    text = _text(kind)
    if text is None:
        return None
    read = [_read(pattern, text, rule.zone) for pattern in rule.patterns]
    found = read[0] if len(read) == 1 else f"COALESCE({', '.join(read)})"
    return MomentInSql(f"({found})[1]", f"({found})[2]")


def _text(kind: str) -> str | None:
    """What is read as text: of floats the digits of whole numbers alone."""
    if kind in FLOATS:
        return "CASE WHEN c = floor(c) AND abs(c) < 1e15 THEN CAST(CAST(c AS BIGINT) AS VARCHAR) END"
    return text_of(kind) if kind in ("VARCHAR", "BOOLEAN", "INTERVAL", *WHOLE_NUMBERS) or is_decimal(kind) else None


def _near(seconds: str) -> str:
    return f"(CASE WHEN abs({seconds}) <= {FURTHEST} THEN {seconds} END)"


def _spelled(pattern: Pattern) -> str:
    """A pattern for the whole of a text: our own as they are, those of formats by code points."""
    whole = f"\\A(?:{pattern.text})\\z"
    if pattern in (ISO_MOMENT, ISO_CLOCK):
        return f"'{whole}'"
    return f"concat({', '.join(f'chr({ord(letter)})' for letter in whole)})"


def _read(pattern: Pattern, text: str, zone: int) -> str:
    """A moment as a list of its two numbers by the groups of a pattern, each '' where it does not match; or NULL.

    Each part is wide, so that no row can make anything overflow. What is needed more than once has a name of its own: x are
    the groups, p the parts as numbers.
    """
    places = {name: f"x.g{place}" for place, name in enumerate(pattern.fields)}

    def number(name: str, missing: int) -> str:
        return f"COALESCE(TRY_CAST({places[name]} AS BIGINT), {missing})" if name in places else str(missing)

    parts = {"y": number("Y", 1970), "m": number("m", 1), "d": number("d", 1), "h": number("H", 0), "i": number("M", 0)}
    parts |= {"s": number("S", 0), "n": "0", "e": "0"}
    holds = [
        "p.h <= 23",
        "p.i <= 59",
        "p.s <= 59",
        "p.m BETWEEN 1 AND 12",
        f"p.d BETWEEN 1 AND {DAYS_IN}",
        "p.e IS NOT NULL",
    ]
    if "y" in places:
        parts["y"] = f"({number('y', 0)} + CASE WHEN {number('y', 0)} >= {TURN_OF_CENTURY} THEN 1900 ELSE 2000 END)"
    if "b" in places:
        parts["m"] = f"((strpos('{MONTHS}', lower(substr({places['b']}, 1, 3))) + 2) // 3)"
    if "I" in places:
        half = f"CASE WHEN lower({places['p']}) = 'pm' THEN 12 ELSE 0 END"
        parts["h"] = f"CASE WHEN {number('I', 0)} BETWEEN 1 AND 12 THEN {number('I', 0)} % 12 + {half} ELSE 24 END"
    if "z" in places:
        parts["e"] = _moved(places["z"], zone)
    if "f" in places:
        parts["n"] = f"COALESCE(TRY_CAST(rpad(substr({places['f']}, 1, 9), 9, '0') AS BIGINT), 0)"
    named = ", ".join(f"'g{place}'" for place in range(len(places)))
    groups = f"regexp_extract({text}, {_spelled(pattern)}, [{named}])"
    numbers = ", ".join(f"'{name}': CAST({part} AS BIGINT)" for name, part in parts.items())
    seconds = f"{DAYS_OF} * 86400 + p.h * 3600 + p.i * 60 + p.s + p.e"
    near = f"{' AND '.join(holds)} AND abs({seconds}) <= {FURTHEST}"
    as_numbers = f"list_transform([{groups}], lambda x: CASE WHEN x.g0 <> '' THEN {{{numbers}}} END)"
    return f"list_transform({as_numbers}, lambda p: CASE WHEN {near} THEN [{seconds}, p.n] END)[1]"


def _moved(offset: str, zone: int) -> str:
    """By how many seconds a time zone moves a moment; NULL of one that there is none of."""
    hours = f"COALESCE(TRY_CAST(substr({offset}, 2, 2) AS BIGINT), 0)"
    minutes = f"COALESCE(TRY_CAST(replace(substr({offset}, 4), ':', '') AS BIGINT), 0)"
    east = f"CASE WHEN starts_with({offset}, '-') THEN -1 ELSE 1 END"
    stated = f"CASE WHEN {hours} <= 23 AND {minutes} <= 59 THEN ({zone} - ({hours} * 60 + {minutes}) * {east}) * 60 END"
    return f"CASE WHEN {offset} = '' THEN 0 WHEN {offset} IN ('Z', 'z', 'UTC') THEN {60 * zone} ELSE {stated} END"


_LEAP = "(p.y % 4 = 0 AND p.y % 100 <> 0) OR p.y % 400 = 0"
DAYS_IN: Final = f"(CASE WHEN p.m IN (4, 6, 9, 11) THEN 30 WHEN p.m <> 2 THEN 31 WHEN {_LEAP} THEN 29 ELSE 28 END)"
_SINCE = f"(p.y + {400 * ERAS} - CASE WHEN p.m > 2 THEN 0 ELSE 1 END)"
_OF_YEAR = "((153 * (p.m + CASE WHEN p.m > 2 THEN -3 ELSE 9 END) + 2) // 5 + p.d - 1)"
DAYS_OF: Final = (
    f"({_SINCE} // 400 * 146097 + {_SINCE} % 400 * 365 + {_SINCE} % 400 // 4 - {_SINCE} % 400 // 100 + {_OF_YEAR}"
    f" - {719_468 + ERAS * 146_097})"
)
"""As `calendar.days_in` and `calendar.days_of`, of the parts p."""
