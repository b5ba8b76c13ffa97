"""Frozen values: a class is declared with `@value("tag")`, and its field types are the whole description of its texts.

How values travel and what they are named by is `dpmine.base.wire`; how they stand in files is `dpmine.base.json_values`.
"""

import dataclasses
import functools
import json
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from dpmine.base.errors import RequestError

_classes: dict[str, type] = {}
T = TypeVar("T")


@typing.dataclass_transform(frozen_default=True)
def value(tag: str) -> Callable[[type[T]], type[T]]:
    """Declare a frozen value class whose JSON form carries `tag`."""

    def declare(cls: type[T]) -> type[T]:
        frozen: type[T] = dataclasses.dataclass(frozen=True)(cls)
        if tag in _classes:
            raise ValueError(f"two value classes share the tag {tag!r}")
        _classes[tag] = frozen
        frozen.__json_tag__ = tag  # type: ignore[attr-defined]
        return frozen

    return declare


@functools.cache
def fields_of(cls: Any) -> dict[str, Any]:
    """The fields of a value class with their declared types, in order."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def class_of(tag: str) -> type | None:
    """The value class of that tag."""
    return _classes.get(tag)


def declared_classes() -> list[type]:
    return list(_classes.values())


def tag_of(kind: Any) -> str:
    tag = getattr(kind, "__json_tag__", None)
    if tag is None:
        raise RequestError(f"A query is made of values, tuples, texts and whole numbers. Got {kind.__name__} in it.")
    return str(tag)


def canonical_json(form: Any) -> bytes:
    return json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def json_of(text: str | bytes) -> Any:
    """Plain JSON without floats, whatever the text holds."""
    try:
        return json.loads(text, parse_float=_no_float, parse_constant=_no_float)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"This is not valid JSON: {error}.") from None


def _no_float(text: str) -> Any:
    raise ValueError(f"floats are not part of any query (got {text[:20]}); write numbers as text")
