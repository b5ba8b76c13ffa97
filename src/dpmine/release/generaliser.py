"""Other rows generalised as a released table is, from its sheet alone: what whoever has the table needs for a test set."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import DpmineError, RequestError
from dpmine.facts.kinds.kind import Ordered, Single
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.registry import values_of
from dpmine.facts.schema import Schema
from dpmine.facts.sources import reading
from dpmine.models.cuts import CutValue
from dpmine.models.trees import encode_rows
from dpmine.release.released import Columns
from dpmine.release.sheet import FORMAT, FORMAT_VERSION

LONGEST_SHEET = 100_000_000  # bytes


@dataclass(frozen=True)
class Generaliser:
    """The cuts of a released table.

    Example: dm.Generaliser.load("public.csv.json").transform("test.csv")
    """

    schema: Schema
    values: Mapping[str, tuple[CutValue, ...]]

    @classmethod
    def load(cls, sheet: str | Path | Mapping[str, Any]) -> Self:
        """From the sheet beside a table: its file, or what was read from it."""
        form = sheet if isinstance(sheet, Mapping) else _read(Path(sheet))
        if form.get("format") != FORMAT or form.get("version") != FORMAT_VERSION:
            raise RequestError(f"This is no sheet of a released table in format {FORMAT_VERSION}.")
        try:
            schema = Schema.from_toml(form["schema"], where="the sheet's schema")
            values = {name: _values(schema.single(name), item["values"]) for name, item in form["attributes"].items()}
        except DpmineError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, InvalidOperation) as error:
            raise RequestError(f"This is no complete sheet: {type(error).__name__} {error}.") from None
        return cls(schema, values)

    def transform(self, X: Any) -> Columns:
        """Rows (a file, a frame, or a dict of columns) with generalised values; the class, where it is there, as it is."""
        target = self.schema.require_class()
        with reading(X, self.schema.read, self.schema.columns) as source:
            names = [*self.values, target] if target in source.columns else list(self.values)
        codes, _ = encode_rows(X, self.schema, names)
        columns = {name: self._generalised(name)[column].tolist() for name, column in codes.items() if name in self.values}
        if target in codes:
            columns[target] = values_of(self.schema.single(target))[codes[target]].tolist()
        return {attribute.name: columns[attribute.name] for attribute in self.schema.attributes if attribute.name in columns}

    def _generalised(self, name: str) -> NDArray[Any]:
        """For each code of an attribute the name of the value that stands for it."""
        names = np.full(self.schema.single(name).size, None, dtype=object)
        for value in self.values[name]:
            names[list(value.codes)] = value.name
        return names


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > LONGEST_SHEET:
            raise RequestError(f"{str(path)!r} is longer than any sheet.")
        form: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RequestError(f"There is no file {str(path)!r}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RequestError(f"{str(path)!r} is not a sheet: {type(error).__name__}.") from None
    if not isinstance(form, dict):
        raise RequestError(f"{str(path)!r} is not a sheet.")
    return form


def _values(attribute: Single, forms: list[dict[str, Any]]) -> tuple[CutValue, ...]:
    """The values of one attribute; each of its codes must be under exactly one."""
    values = tuple(CutValue(form["name"], _codes(attribute, form)) for form in forms)
    under = np.bincount([code for value in values for code in value.codes], minlength=attribute.size)
    if not all(isinstance(value.name, str) for value in values) or np.any(under != 1):
        raise RequestError(
            f"The values of {attribute.name!r} overlap or leave some out, as those of a tree's leaves do: other rows cannot "
            "be generalised alike. Its raw rows need no generalising."
        )
    return values


def _codes(attribute: Single, form: dict[str, Any]) -> tuple[int, ...]:
    gap = [attribute.cells] if form.get("missing") is True and attribute.gap is not None else []
    if isinstance(attribute, Ordered):
        found = _span(attribute, form["from"], form["to"]) if "from" in form else []
    else:
        found = [code for category in form["categories"] for code in range(*attribute.codes_of(category))]
    return (*found, *gap)


def _span(attribute: Ordered, first: Any, last: Any) -> list[int]:
    """The codes of the values from a first to a last one."""
    numbers = [
        _nearest(attribute, Decimal(str(end))) if isinstance(attribute, Numeric) else attribute.parsed(end)
        for end in (first, last)
    ]
    codes = [attribute.floor_code(number) for number in numbers]
    on_grid = all(attribute.values_of(number)[0] < attribute.values_of(number)[1] for number in numbers)
    if not on_grid or codes[0] > codes[1]:
        raise RequestError(f"The sheet's values of {attribute.name!r} are not on its grid.")
    return list(range(codes[0], codes[1] + 1))


def _nearest(attribute: Numeric, number: Decimal) -> Decimal:
    """The value that a number on a sheet means: doubles are near values. What is none stays what it is."""
    low, high = attribute.low, attribute.value_point(attribute.values - 1)
    near = attribute.value_point(attribute.nearest_value(min(max(number, low), high)))
    return near if abs(near - number) * 1000 <= attribute.finest else number
