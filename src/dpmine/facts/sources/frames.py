"""Reads pandas, Polars and Arrow frames through narwhals, and dicts of columns."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import DataError
from dpmine.facts.moments import MomentRule, Moments, StoredMoment
from dpmine.facts.reading_rules import DEFAULT_RULES
from dpmine.facts.sources.lines_read import LinesRead
from dpmine.facts.sources.source import places_of_numbers, places_of_texts
from dpmine.facts.value_texts import list_of_texts, number_of_value, text_of_value, texts_of_durations, texts_of_moments

NUMPY_NUMBERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")


class FrameSource:
    """A data frame in memory, or columns in a dict; `more` columns come from beside it."""

    read = DEFAULT_RULES

    def __init__(self, frame: Any, more: dict[str, Any] | None = None) -> None:
        import narwhals.stable.v2 as nw

        self.lines = LinesRead()
        self._names: dict[str, Any]
        self._stated: dict[str, str] = {}
        if isinstance(frame, dict):
            self.kind = "dict"
            self._stated = {str(name): _stated_type(values) for name, values in frame.items() if hasattr(values, "dtype")}
            self._values = {str(name): _listed(values) for name, values in frame.items()}
            lengths = {len(values) for values in self._values.values()}
            if len(lengths) > 1:
                raise DataError("The columns of the table have different lengths.")
            self._names = dict.fromkeys(self._values)
            self.rows = lengths.pop() if lengths else 0
        else:
            try:
                self._frame = nw.from_native(frame, eager_only=True)
                self._names = {str(name): name for name in self._frame.columns}
            except TypeError:
                kind = type(frame).__name__
                raise DataError(
                    f"A file path or a pandas, Polars or Arrow frame was expected. Got {kind} instead."
                ) from None
            except nw.exceptions.DuplicateError:
                raise DataError("The table has two columns of the same name.") from None
            self.kind = self._frame.implementation.name.lower()
            self._values = {}
            self.rows = len(self._frame)
        for name, values in (more or {}).items():
            self._values[name] = _listed(values)
            self._names[name] = None
            if hasattr(values, "dtype"):
                self._stated[name] = _stated_type(values)
            if len(self._values[name]) != self.rows:
                raise DataError(f"The table has {self.rows} rows, but {name!r} has {len(self._values[name])} values.")
        self.columns = list(self._names)

    def _array(self, name: str) -> NDArray[Any]:
        """The column as a numpy array: of numbers where it has a plain numeric type, else of Python objects."""
        if name in self._values:
            return _as_objects(self._values[name])
        return _values_of_series(self._frame.get_column(self._names[name]))

    def type_name(self, name: str) -> str:
        """What the frame says; of an enumeration no members, which may have been made of the rows."""
        if name in self._values:
            return self._stated.get(name, "objects")
        series = self._frame.get_column(self._names[name])
        if self.kind != "polars":
            native = series.to_native()
            return str(native.type) if self.kind == "pyarrow" else _stated_type(native)
        return type(series.dtype).__name__ if "Enum(" in str(series.dtype) else str(series.dtype)

    def holds_floats(self, name: str) -> bool:
        if name in self._values:
            return any(isinstance(item, (float, np.floating)) and not math.isnan(item) for item in self._values[name])
        return bool(self._frame.get_column(self._names[name]).dtype.is_float())

    def check_read_in_one_state(self) -> None:
        """A frame is the owner's own object: nobody else writes to it."""

    def category_codes(self, name: str, categories: tuple[str, ...]) -> NDArray[np.int64]:
        array = self._array(name)
        if array.dtype != object:
            return places_of_numbers(array, categories)
        return places_of_texts([item if type(item) is str else text_of_value(item) for item in array], categories)

    def numbers(self, name: str) -> NDArray[np.float64]:
        array = self._array(name)
        if array.dtype != object:
            return array.astype(np.float64)
        return np.fromiter(map(number_of_value, array), np.float64, self.rows)

    def texts(self, name: str) -> list[str | None]:
        return [text_of_value(item) for item in self._array(name).tolist()]

    def moments(self, name: str, rule: MomentRule) -> Moments:
        if name in self._values:
            return rule.moments(self._values[name])
        series = self._frame.get_column(self._names[name])
        if _is_of(series, "Datetime", "Date"):
            array = series.to_numpy()
            if array.dtype.kind == "M":
                return rule.moments_of_array(array, zoned=_is_zoned(series))
        return rule.moments(series.to_list())

    def lists(self, name: str, separator: str) -> list[list[str]]:
        return [list_of_texts(item, separator) for item in self._array(name).tolist()]


def _listed(values: Any) -> list[Any]:
    """The values of one column that is given by itself: a list, an array or a series of any library."""
    import narwhals.stable.v2 as nw

    series = nw.from_native(values, series_only=True, pass_through=True)
    return list(_values_of_series(series) if isinstance(series, nw.Series) else values)


def _values_of_series(series: Any) -> NDArray[Any]:
    """A series as a numpy array: of numbers where it has a plain numeric type, else of Python objects.

    Moments and durations become their texts here: numpy's are exact where Python's end with the year 9999 and with
    microseconds, and what a library makes of those differs.
    """
    if str(series.dtype) in NUMPY_NUMBERS and series.null_count() == 0:
        return np.asarray(series.to_numpy())
    if _is_of(series, "Datetime", "Date", "Duration"):
        array = series.to_numpy()
        if array.dtype.kind == "M":
            texts = texts_of_moments(array, zoned=_is_zoned(series))
            return _as_objects([None if text is None else StoredMoment(text) for text in texts])
        if array.dtype.kind == "m":
            return _as_objects(texts_of_durations(array))
    return _as_objects(series.to_list())


def _is_of(series: Any, *types: str) -> bool:
    return type(series.dtype).__name__ in types


def _is_zoned(series: Any) -> bool:
    return bool(getattr(series.dtype, "time_zone", None))


def _as_objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _stated_type(column: Any) -> str:
    """What a column says of its type; of categories their own type, which decides how values read, and no members."""
    dtype = column.dtype
    inner = getattr(getattr(dtype, "categories", None), "dtype", None)
    if inner is not None:
        return f"{type(dtype).__name__} of {inner}"
    return dtype.kind if isinstance(dtype, np.dtype) and dtype.kind in "US" else str(dtype)  # numpy's also say how long
