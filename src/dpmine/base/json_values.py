"""Values as nested JSON, each an object that carries its tag: how models, answers and statements stand in files.

Decoding accepts nothing but declared values: no unknown tag, no extra or missing field, no float, no depth or size that
could exhaust us. Queries and what the ledger keeps are flat text instead (`dpmine.base.wire`).
"""

import types
import typing
from typing import Any, TypeVar

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import DpmineError, RequestError
from dpmine.base.wire_values import canonical_json, class_of, declared_classes, fields_of, json_of, tag_of

TAG = "is"
DEEPEST = 120

T = TypeVar("T")

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


def to_text(item: Any) -> str:
    return canonical_json(to_json(item)).decode("ascii")


def from_text(text: str | bytes, kind: type[T]) -> T:
    """Read a value of the given class (or a subclass) from JSON text."""
    return from_json(json_of(text), kind)


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
            named = class_of(tag)
            if named is not None and issubclass(named, option):
                return _decode(form, option, where, depth)
        elif option in (int, str, bool) and type(form) is option:
            return form
    allowed = ", ".join(_tags(options)) or "another type"
    raise RequestError(f"{where} must be one of: {allowed}. Got {str(tag)[:40]!r} instead.")


def _tags(options: tuple[Any, ...]) -> list[str]:
    return sorted(
        tag_of(cls)
        for cls in declared_classes()
        for option in options
        if isinstance(option, type) and issubclass(cls, option)
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
    cls = class_of(form[TAG])
    if cls is None or not issubclass(cls, kind):
        allowed = ", ".join(_tags((kind,)))
        raise RequestError(f"{where} must be one of: {allowed}. Got {form[TAG][:40]!r} instead.")
    fields: dict[str, Any] = fields_of(typing.cast(Any, cls))
    if set(form) != {TAG, *fields}:
        raise RequestError(f"{form[TAG]} must have exactly the fields {', '.join(fields) or '(none)'}.")
    return cls(**{name: _decode(form[name], hint, f"{form[TAG]}.{name}", depth + 1) for name, hint in fields.items()})
