"""What the name of a column tells, for drafts: codes, counts, persons, and facts that anybody can look up."""

import re
from dataclasses import dataclass
from decimal import Decimal

from dpmine.facts.kinds.amounts import Amounts


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


ALWAYS_CODES = _set(
    "zip zipcode postcode postal plz code codes icd sic naics fips msa iban isbn issn ean sku barcode phone telephone tel "
    "fax mobile ssn passport serial key uuid guid id ids identifier index unnamed"
)
"""Whole numbers under such names are no amounts, however many there are."""
CODES_IF_FEW = _set(
    "grade class level stage type category group cluster region district zone ward status kind sex gender race ethnicity "
    "department dept section branch shift team party model version flag mode state county country religion nationality "
    "occupation industry language label target outcome"
)
"""Nor under these, where there are few."""
AMOUNTS = _set(
    "num count cnt n qty quantity total sum amount amt price cost fee income salary wage revenue balance budget children "
    "kids siblings rooms bedrooms bathrooms beds visits visit admissions times score rating stars points years days months "
    "weeks hours minutes seconds size length weight height width depth distance duration delay dose engines seats"
)
PEOPLE = _set(
    "patient person customer client member subject student pupil employee respondent participant user household passenger "
    "driver owner mrn"
)
THINGS = _set("account card device vehicle plane tailnum licence license")
"""They may stand for who owns them."""
DIRECT = _set("email mail phone telephone mobile ssn passport iban surname lastname firstname fullname forename")
"""Columns that name people by themselves."""


def words_of(name: str) -> frozenset[str]:
    """The words of a name such as dep_time, depTime or "dep time"."""
    parts = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))
    return frozenset(part.lower() for part in parts)


def names_identifiers(name: str) -> bool:
    """Whether a name speaks of identifiers: id, patient_id, userid."""
    words = words_of(name)
    joined = any(word.removesuffix("id") in PEOPLE | THINGS for word in words if word.endswith("id"))
    return joined or bool(words & {"id", "ids", "identifier", "uuid", "guid", "key", "mrn", "unnamed", "index"})


def names_people(name: str) -> bool:
    return bool(words_of(name) & PEOPLE)


def names_persons(name: str) -> bool:
    """Whether a name speaks of people, or of things that stand for them."""
    return bool(words_of(name) & (PEOPLE | THINGS))


# -- what anybody can look up ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublicFact:
    """What values can be, by what the column's name says they are."""

    low: Decimal
    high: Decimal
    why: str
    step: Decimal | None = None
    """Of the grid, where another than an even round one is meant."""


FEW_TO_TELL = 2  # different numbers may agree with anything
NEARLY_ALL = 0.99  # of the rows must agree with a fact: others are mistakes, or stand for gaps

_FACTS: tuple[tuple[str, int, int, str], ...] = (
    ("age", 0, 120, "ages run from 0 to 120 years"),
    ("percent", 0, 100, "percentages run from 0 to 100"),
    ("percentage", 0, 100, "percentages run from 0 to 100"),
    ("pct", 0, 100, "percentages run from 0 to 100"),
    *((word, 0, 1, f"a {word} runs from 0 to 1") for word in ("rate", "share", "ratio", "proportion", "fraction")),
    *((word, 0, 1, "probabilities run from 0 to 1") for word in ("probability", "prob")),
    ("latitude", -90, 90, "latitudes run from -90 to 90 degrees"),
    ("lat", -90, 90, "latitudes run from -90 to 90 degrees"),
    ("longitude", -180, 180, "longitudes run from -180 to 180 degrees"),
    ("lon", -180, 180, "longitudes run from -180 to 180 degrees"),
    ("lng", -180, 180, "longitudes run from -180 to 180 degrees"),
    ("hour", 0, 23, "hours run from 0 to 23"),
    ("minute", 0, 59, "minutes run from 0 to 59"),
    ("second", 0, 59, "seconds run from 0 to 59"),
    ("month", 1, 12, "months run from 1 to 12"),
    ("day", 1, 31, "days run from 1 to 31"),
    ("weekday", 1, 7, "weekdays run from 1 to 7"),
    ("weekday", 0, 6, "weekdays run from 0 to 6"),
    ("week", 1, 53, "weeks run from 1 to 53"),
    ("quarter", 1, 4, "quarters run from 1 to 4"),
    ("yday", 1, 366, "days of a year run from 1 to 366"),
)
WHOLE = _set("age hour minute second month day weekday week quarter yday")


def public_fact(name: str, amounts: Amounts) -> PublicFact | None:
    """A fact about columns of that name which nearly all of these numbers agree with."""
    words = words_of(name)
    if len(amounts.numbers) <= FEW_TO_TELL:
        return None
    if {"hours", "week"} <= words and _agree(amounts, 0, 168):
        return PublicFact(Decimal(0), Decimal(168), "a week has 168 hours")
    for word, low, high, why in _FACTS if "per" not in words else ():
        if word in words and _agree(amounts, low, high) and (word not in WHOLE or word == "age" or amounts.are_whole):
            return PublicFact(Decimal(low), Decimal(high), why)
    if "time" in words and _are_clock_times(amounts):
        return PublicFact(Decimal(0), Decimal(2400), "times of day as hhmm: 1359 is one minute to two", Decimal(100))
    return None


def _agree(amounts: Amounts, low: int, high: int) -> bool:
    return amounts.share_between(Decimal(low), Decimal(high)) >= NEARLY_ALL


def _are_clock_times(amounts: Amounts) -> bool:
    first, last = amounts.numbers[0], amounts.numbers[-1]
    inside = first >= 0 and 240 < last <= 2400 and amounts.are_whole
    return inside and all(number % 100 < 60 for number in amounts.numbers)
