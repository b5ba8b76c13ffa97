"""One text for every value, whatever holds it: a list, a data frame of any library, an Arrow table or a file of types.

The text of a value depends on the value alone, so that a row has the same codes wherever it is read from:

    missing        None, NaN, NaT, NA and what has no text: objects that print their address, numbers of over 1,000 digits
    texts          as they stand; members of categories and enumerations too
    booleans       True, False
    numbers        whole ones in digits ("3" for 3, 3.0, 3.00 and 3E+0), others as Python writes floats ("0.5", "1e-07"),
                   decimals with all their digits; a float of 16 or 32 bits is the double that it equals
    dates          2020-01-31
    moments        2020-01-31 12:00:00, at midnight the date alone, since pandas has no other dates; with a time zone in
                   UTC, also at midnight: 2020-01-31 11:00:00+00:00; broken seconds with 6 digits, or 9 where needed
    times of day   12:00:00, 12:00:00.500000, to the microsecond
    durations      the number of seconds, as a number
    bytes          b'...' as Python writes them
    lists, structs JSON of the texts inside: ["a", null], {"name": "1"}; sets in sorted order
    anything else  its str(), as of UUIDs, fractions and complex numbers
"""

import datetime as dt
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_DIGITS = 1000
TOO_LARGE = 10**MOST_DIGITS
EPOCH = dt.datetime(1970, 1, 1)
DAY = 86_400
PARTS_OF_A_SECOND = {"s": 0, "ms": 3, "us": 6, "ns": 9, "ps": 12, "fs": 15, "as": 18}
"""Units of numpy, each with the number of decimal places that it has after the second."""


def text_of_value(item: Any) -> str | None:
    """The text of one value. Total: whatever stands in a frame has a text or is missing."""
    kind = type(item)
    if kind is str or item is None:
        return item  # type: ignore[no-any-return]
    try:
        return _text_of_whole(item) if kind is int else _text(item)
    except Exception:  # a foreign object whose methods fail is as good as missing
        return None


def texts_of_moments(moments: NDArray[np.datetime64], *, zoned: bool) -> list[str | None]:
    """The texts of an array of numpy's moments, which are in UTC where the column has a time zone."""
    return _texts_of_distinct(moments, lambda moment: _text_of_moment(moment, zoned=zoned))


def texts_of_durations(durations: NDArray[np.timedelta64]) -> list[str | None]:
    return _texts_of_distinct(durations, text_of_value)


def number_of_value(item: Any) -> float:
    """One value as a double; NaN for whatever is no number."""
    kind = type(item)
    if kind is float:
        return item  # type: ignore[no-any-return]
    try:
        if kind is not int:
            if (
                item is None
                or isinstance(item, (np.datetime64, np.ndarray))
                or (isinstance(item, str) and not item.isascii())
            ):
                return math.nan
            if isinstance(item, (dt.timedelta, np.timedelta64)):
                return float(_text_of_duration(item) or math.nan)
        return float(item)
    except OverflowError:  # an integer or fraction beyond the doubles
        return math.copysign(math.inf, 1 if item > 0 else -1) if isinstance(item, (int, Fraction)) else math.nan
    except Exception:
        return math.nan


def list_of_texts(item: Any, separator: str) -> list[str]:
    """One value as a list of texts: text is cut at the separator, missing values are empty."""
    if isinstance(item, (list, tuple, np.ndarray, set, frozenset)):
        try:
            return [text for text in _inner_texts(item) if text is not None]
        except Exception:  # an array without a dimension
            return []
    text = text_of_value(item)
    return [] if text is None else [part.strip() for part in text.split(separator) if part.strip()]


# -- kinds of values ---------------------------------------------------------------------------------------------------


def _text(item: Any) -> str | None:
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(item, str):
        return str.__str__(item)  # a member of an enumeration may call itself otherwise
    if isinstance(item, (bool, np.bool_)):
        return str(bool(item))
    if isinstance(item, (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)):  # numpy calls durations integers
        return _text_of_time(item)
    if isinstance(item, (int, np.integer)):
        return _text_of_whole(int(item))
    if isinstance(item, (float, np.floating)):
        return _text_of_float(float(item))
    if isinstance(item, Decimal):
        return _text_of_decimal(item)
    if isinstance(item, (bytes, bytearray, memoryview)):
        return repr(bytes(item))
    if isinstance(item, (list, tuple, np.ndarray, set, frozenset, dict)):
        return json.dumps(_inner(item), ensure_ascii=False)
    text = str(item)
    return None if " at 0x" in text else text  # an address is another one in every process


def _text_of_whole(number: int) -> str | None:
    return str(number) if -TOO_LARGE < number < TOO_LARGE else None


def _text_of_float(number: float) -> str | None:
    if math.isnan(number):
        return None
    return str(int(number)) if number.is_integer() else repr(number)


def _text_of_decimal(number: Decimal) -> str | None:
    """Never by Decimal's arithmetic, which rounds to whatever precision this thread has set."""
    if number.is_nan():
        return None
    if number.is_infinite() or not number:
        return repr(float(number)) if number else "0"
    if not -MOST_DIGITS <= number.adjusted() < MOST_DIGITS:
        return None
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    if "." not in text or number.adjusted() >= -4:
        return text
    digits = text.lstrip("-0.")  # small ones as Python writes floats: 1.5e-07
    broken = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{'-' if number < 0 else ''}{digits[0]}{broken}e-{-number.adjusted():02d}"


def _text_of_time(item: Any) -> str | None:
    if isinstance(item, (dt.timedelta, np.timedelta64)):
        return _text_of_duration(item)
    if isinstance(item, np.datetime64):
        return _text_of_moment(item, zoned=False)
    if not isinstance(item, dt.datetime):
        return item.isoformat()  # type: ignore[no-any-return]
    offset = item.utcoffset()
    if hasattr(item, "to_datetime64"):  # pandas' moments go on below a microsecond
        return _text_of_moment(item.to_datetime64(), zoned=offset is not None)
    since = item.replace(tzinfo=None, fold=0) - EPOCH - (offset or dt.timedelta(0))
    seconds, rest = divmod(since, dt.timedelta(seconds=1))
    return _written(seconds, f"{rest.microseconds:06d}", zoned=offset is not None)


def _text_of_moment(moment: np.datetime64, *, zoned: bool) -> str | None:
    if np.isnat(moment):
        return None
    unit, step = np.datetime_data(moment.dtype)
    if unit not in PARTS_OF_A_SECOND:  # minutes and longer
        unit, step, moment = "s", 1, moment.astype("datetime64[s]")
    seconds, parts = divmod(int(moment.astype(np.int64)) * step, 10 ** PARTS_OF_A_SECOND[unit])
    return _written(seconds, f"{parts:0{PARTS_OF_A_SECOND[unit]}d}", zoned=zoned)


def _written(seconds: int, decimals: str, *, zoned: bool) -> str:
    """Whole seconds since 1970 and the decimal places after them; any year, also those that Python has not."""
    text = str(np.datetime64(seconds, "s")).replace("T", " ")
    if text.startswith("-"):  # numpy counts the sign among the four places of a year
        year, rest = text[1:].split("-", 1)
        text = f"-{year:0>4}-{rest}"
    digits = decimals.rstrip("0")
    if not digits and not zoned and seconds % DAY == 0:
        return text.removesuffix(" 00:00:00")
    broken = "." + digits.ljust(6 if len(digits) <= 6 else 9, "0") if digits else ""
    return text + broken + ("+00:00" if zoned else "")


def _text_of_duration(item: Any) -> str | None:
    if isinstance(item, dt.timedelta):
        if not hasattr(item, "to_timedelta64"):
            return _text_of_decimal(Decimal(f"{item // dt.timedelta(microseconds=1)}e-6"))
        item = item.to_timedelta64()  # pandas' durations go on below a microsecond
    if np.isnat(item):
        return None
    unit, step = np.datetime_data(item.dtype)
    if unit not in PARTS_OF_A_SECOND:
        unit, step, item = "s", 1, item.astype("timedelta64[s]")
    return _text_of_decimal(Decimal(f"{int(item.astype(np.int64)) * step}e-{PARTS_OF_A_SECOND[unit]}"))


def _inner_texts(items: Any) -> list[str | None]:
    texts = [text_of_value(item) for item in items]
    ordered = sorted(texts, key=lambda text: (text is None, text or ""))
    return ordered if isinstance(items, (set, frozenset)) else texts


def _inner(item: Any) -> Any:
    """A nested value as JSON's: lists, objects, and the texts of all else."""
    if isinstance(item, dict):
        return {text_of_value(name) or "": _inner(value) for name, value in item.items()}
    if isinstance(item, (set, frozenset)):
        return _inner_texts(item)
    if isinstance(item, (list, tuple, np.ndarray)):
        return [_inner(part) for part in item]
    return text_of_value(item)


def _texts_of_distinct(array: NDArray[Any], text_of: Any) -> list[str | None]:
    """Each text is made once."""
    distinct, inverse = np.unique(array, return_inverse=True)
    texts = [_total(text_of, item) for item in distinct]
    return [texts[place] for place in inverse.reshape(-1)]


def _total(text_of: Any, item: Any) -> str | None:
    try:
        return text_of(item)  # type: ignore[no-any-return]
    except Exception:  # beyond the years that numpy can count
        return None
