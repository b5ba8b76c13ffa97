"""Frozen values that turn into JSON and back, each tagged by its kind and checked field by field.

A value class is declared with `@value("tag")`; its field types are the whole description of its JSON form. Decoding
accepts nothing else: no unknown tag, no extra or missing field, no float, no depth or size that could exhaust us.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import DpmineError, RequestError

TAG = "is"
DEEPEST = 120

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


_PLAIN = {int, str, bool, types.NoneType}


def to_json(item: Any) -> Any:
    """The JSON form of a value: plain dicts, lists, strings, integers, booleans and None."""
    kind: Any = type(item)
    if kind in _PLAIN:
        return item
    if kind is tuple:
        if set(map(type, item)) <= {int}:  # long answers are mostly this
            return list(item)
        return [to_json(part) for part in item]
    if kind is Epsilon:
        return str(item)
    if isinstance(item, str):  # numpy's, say
        return str(item)
    form = {TAG: tag_of(kind)}
    for name in fields_of(kind):
        form[name] = to_json(getattr(item, name))
    return form


def canonical(item: Any) -> bytes:
    """One byte string per value: what is hashed, compared and cached. It is `canonical_json(to_json(item))`, faster."""
    return _canonical_text(item).encode("ascii")


def _canonical_text(item: Any) -> str:
    kind: Any = type(item)
    if kind is tuple:
        if set(map(type, item)) <= {int}:  # long answers are mostly this
            return repr(list(item)).replace(" ", "")
        return "[" + ",".join([_canonical_text(part) for part in item]) + "]"
    if kind is str:
        return json.encoder.encode_basestring_ascii(item)
    if kind is int:
        return repr(item)
    if kind is bool or item is None:
        return {True: "true", False: "false", None: "null"}[item]
    if kind is Epsilon:
        return f'"{item}"'
    if isinstance(item, str):  # numpy's, say: the same text, so the same name
        return json.encoder.encode_basestring_ascii(str(item))
    return "".join([text if name is None else text + _canonical_text(getattr(item, name)) for text, name in _layout(kind)])


@functools.cache
def _layout(kind: Any) -> list[tuple[str, str | None]]:
    """What is written for a value class, keys in order: text, and after it the JSON of the named field."""
    fields: list[tuple[str, str | None]] = []
    tag_of(kind)
    for name in sorted((TAG, *fields_of(kind))):
        before = ("," if fields else "{") + f'"{name}":'
        fields.append((before + f'"{tag_of(kind)}"', None) if name == TAG else (before, name))
    return [*fields, ("}", None)]


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


def value_hash(item: Any) -> str:
    """A name for a value that two different values do not share: no shorter, since analysts choose the values."""
    return hashlib.blake2b(canonical(item), digest_size=32).hexdigest()


def to_text(item: Any) -> str:
    return canonical(item).decode("ascii")


def from_text(text: str | bytes, kind: type[T]) -> T:
    """Read a value of the given class (or a subclass) from JSON text."""
    return from_json(json_of(text), kind)


def json_of(text: str | bytes) -> Any:
    """Plain JSON without floats, whatever the text holds."""
    try:
        return json.loads(text, parse_float=_no_float, parse_constant=_no_float)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"This is not valid JSON: {error}.") from None


def _no_float(text: str) -> Any:
    raise ValueError(f"floats are not part of any query (got {text[:20]}); write numbers as text")


def from_json(form: Any, kind: type[T]) -> T:
    try:
        decoded = _decode(form, kind, "query", 0)
    except DpmineError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"This is not a valid {kind.__name__}: {error}.") from None
    return typing.cast(T, decoded)


def _decode(form: Any, hint: Any, where: str, depth: int) -> Any:
    if depth > DEEPEST:
        raise RequestError(f"The JSON is nested deeper than {DEEPEST} levels.")
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(form, typing.get_args(hint), where, depth)
    if origin is tuple:
        return _decode_tuple(form, typing.get_args(hint), where, depth)
    if hint is Epsilon:
        if not isinstance(form, str):
            raise RequestError(f'{where} must be decimal text such as "0.1".')
        return Epsilon.parse_or_zero(form, name=where)
    if hint is types.NoneType or hint is None:
        if form is not None:
            raise RequestError(f"{where} must be null.")
        return None
    if hint in (int, str, bool):
        if type(form) is not hint:
            raise RequestError(f"{where} must be {_NAMES[hint]}. Got {type(form).__name__} instead.")
        return form
    return _decode_object(form, hint, where, depth)


_NAMES = {int: "an integer", str: "text", bool: "true or false"}


def _decode_union(form: Any, options: tuple[Any, ...], where: str, depth: int) -> Any:
    if form is None and types.NoneType in options:
        return None
    others = [option for option in options if option is not types.NoneType]
    if len(others) == 1:
        return _decode(form, others[0], where, depth)
    tag = form.get(TAG) if isinstance(form, dict) else None
    for option in options:
        if isinstance(option, type) and isinstance(tag, str):
            named = _classes.get(tag)
            if named is not None and issubclass(named, option):
                return _decode(form, option, where, depth)
        elif option in (int, str, bool) and type(form) is option:
            return form
    allowed = ", ".join(_tags(options)) or "another type"
    raise RequestError(f"{where} must be one of: {allowed}. Got {str(tag)[:40]!r} instead.")


def _tags(options: tuple[Any, ...]) -> list[str]:
    return sorted(
        tag for tag, cls in _classes.items() for option in options if isinstance(option, type) and issubclass(cls, option)
    )


def _decode_tuple(form: Any, args: tuple[Any, ...], where: str, depth: int) -> Any:
    if not isinstance(form, list):
        raise RequestError(f"{where} must be a list.")
    if len(args) == 2 and args[1] is Ellipsis:
        if args[0] is int and set(map(type, form)) <= {int}:  # long answers are mostly this
            return tuple(form)
        return tuple(_decode(part, args[0], where, depth + 1) for part in form)
    if len(form) != len(args):
        raise RequestError(f"{where} must have exactly {len(args)} parts.")
    return tuple(_decode(part, arg, where, depth + 1) for part, arg in zip(form, args, strict=True))


def _decode_object(form: Any, kind: type, where: str, depth: int) -> Any:
    if not isinstance(form, dict) or not isinstance(form.get(TAG), str):
        raise RequestError(f"{where} must be an object with the field {TAG!r}.")
    cls = _classes.get(form[TAG])
    if cls is None or not issubclass(cls, kind):
        allowed = ", ".join(_tags((kind,)))
        raise RequestError(f"{where} must be one of: {allowed}. Got {form[TAG][:40]!r} instead.")
    fields: dict[str, Any] = fields_of(typing.cast(Any, cls))
    if set(form) != {TAG, *fields}:
        raise RequestError(f"{form[TAG]} must have exactly the fields {', '.join(fields) or '(none)'}.")
    return cls(**{name: _decode(form[name], hint, f"{form[TAG]}.{name}", depth + 1) for name, hint in fields.items()})
