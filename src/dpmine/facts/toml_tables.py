"""Reads values out of tables of a schema file, each mistake in one sentence."""

from decimal import Decimal
from typing import Any

from dpmine.base.decimals import parse_decimal
from dpmine.base.errors import SchemaError


def refuse_unknown_keys(table: dict[str, Any], allowed: set[str], where: str) -> None:
    unknown = sorted(set(table) - allowed)
    if unknown:
        raise SchemaError(f"{where}: unknown key {unknown[0]!r}. Allowed: {', '.join(sorted(allowed))}.")


def value_at(table: dict[str, Any], key: str, kind: type, where: str) -> Any:
    """A text, a whole number, or true or false."""
    if type(table.get(key)) is not kind:
        names = {str: "text", int: "a whole number", bool: "true or false"}
        raise SchemaError(f"{where}: {key!r} must be {names[kind]}. Got {table.get(key)!r} instead.")
    return table[key]


def texts_of(form: Any, where: str) -> tuple[str, ...]:
    if not isinstance(form, list) or not all(isinstance(text, str) for text in form):
        raise SchemaError(f"{where} must be a list of texts in quotes.")
    return tuple(form)


def list_at(table: dict[str, Any], key: str, where: str) -> list[Any]:
    """A list; an empty one where there is none."""
    if not isinstance(table.get(key, []), list):
        raise SchemaError(f"{where}: {key!r} must be a list. Got {table[key]!r} instead.")
    found: list[Any] = table.get(key, [])
    return found


def number_at(table: dict[str, Any], key: str, where: str) -> Decimal:
    if key not in table:
        raise SchemaError(f"{where}: {key!r} is missing.")
    number = table[key]
    if isinstance(number, bool) or not isinstance(number, (int, Decimal)):
        raise SchemaError(f"{where}: {key!r} must be a number. Got {number!r} instead.")
    return parse_decimal(str(number), f"{where}: {key!r}", SchemaError)


def written_short(form: dict[str, Any]) -> dict[str, Any]:
    """A table as it is written: whole numbers without a point."""
    return {key: _short(item) for key, item in form.items()}


def _short(item: Any) -> Any:
    if isinstance(item, list):
        return [_short(each) for each in item]
    return int(item) if isinstance(item, Decimal) and item == item.to_integral_value() else item
