"""The calendar in whole numbers: seconds and days since 1970, the Gregorian calendar in both directions, ISO weeks.

No leap seconds and no time zones: a day has 86,400 seconds. Years may be any, also those that Python's dates have not.
"""

from collections.abc import Iterator
from typing import Final

DAY: Final = 86_400
HOUR: Final = 3_600
WEEK: Final = 7 * DAY
ERA: Final = 146_097
"""Days in 400 years."""
TO_MONDAY: Final = 3
"""1970 began on a Thursday, three days after a Monday."""
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

STEADY: Final = {"minute": 60, "hour": HOUR, "day": DAY, "week": WEEK}
UNITS: Final = ("minute", "hour", "day", "week", "month", "year")
"""From the shortest to the longest; weeks begin on Monday."""
SHORTEST: Final = {**STEADY, "month": 28 * DAY, "year": 365 * DAY}


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date. Years are counted from March on, so that leap days come last."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    of_era = year % 400
    of_year = (153 * month + 2) // 5 + day - 1
    return year // 400 * ERA + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day; the inverse of `days_of`."""
    era, rest = divmod(days + 719_468, ERA)
    of_era = (rest - rest // 1_460 + rest // 36_524 - rest // 146_096) // 365
    of_year = rest - (365 * of_era + of_era // 4 - of_era // 100)
    month = (5 * of_year + 2) // 153
    year = era * 400 + of_era + (month >= 10)
    return year, month + 3 if month < 10 else month - 9, of_year - (153 * month + 2) // 5 + 1


def days_in(year: int, month: int) -> int:
    return days_of(year + month // 12, month % 12 + 1, 1) - days_of(year, month, 1)


def week_of(days: int) -> tuple[int, int]:
    """The ISO year and week of a day: a week belongs to the year that has its Thursday."""
    thursday = days - (days + TO_MONDAY) % 7 + 3
    year = date_of(thursday)[0]
    return year, (thursday - days_of(year, 1, 1)) // 7 + 1


def beginning(unit: str, seconds: int) -> int:
    """The second at which the unit that holds this second begins."""
    if unit == "week":
        return (seconds + TO_MONDAY * DAY) // WEEK * WEEK - TO_MONDAY * DAY
    if unit in STEADY:
        return seconds // STEADY[unit] * STEADY[unit]
    year, month, _ = date_of(seconds // DAY)
    return days_of(year, month if unit == "month" else 1, 1) * DAY


def following(unit: str, start: int) -> int:
    """The second at which the next unit begins, after one that begins here."""
    if unit in STEADY:
        return start + STEADY[unit]
    year, month, _ = date_of(start // DAY)
    if unit == "year":
        return days_of(year + 1, 1, 1) * DAY
    return days_of(year + month // 12, month % 12 + 1, 1) * DAY


def beginnings(unit: str, first: int, last: int) -> Iterator[int]:
    """Where each unit begins that holds a second from the first to the last one."""
    start = beginning(unit, first)
    while start <= last:
        yield start
        start = following(unit, start)


def unit_label(unit: str, start: int) -> str:
    """What a unit is called: 2013, 2013-01, 2013-W05, 2013-01-31; of hours and minutes the time of day."""
    days, second = divmod(start, DAY)
    year, month, day = date_of(days)
    if unit == "year":
        return f"{year:04d}"
    if unit == "month":
        return f"{year:04d}-{month:02d}"
    if unit == "week":
        return "{:04d}-W{:02d}".format(*week_of(days))
    if unit == "day":
        return f"{year:04d}-{month:02d}-{day:02d}"
    return f"{second // HOUR:02d}" if unit == "hour" else f"{second // HOUR:02d}:{second // 60 % 60:02d}"
