"""How queries and answers travel and are kept: as flat JSON text, from which the door reads every query anew.

The text is a list of rows. Each row is one value: its tag and its fields, in which other values stand as the numbers of
earlier rows. The last row is what the text says.

    [["leaf"], ["attribute", "ward"], ["split", 1, [0, 0, 0]], ...]

Equal values are written once and nothing is nested, so the rule tree of a query may be deep and have many thousands of
leaves, and neither end needs a deep stack to read it. A value has one text, so the text is also what names it.
"""

import dataclasses
import functools
import hashlib
import json
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import DpmineError, RequestError
from dpmine.base.wire_values import class_of, declared_classes, fields_of, json_of, tag_of

T = TypeVar("T")

DEEPEST = 200  # values inside one another: a rule tree of 100 levels by keys that test predicates of 50
MOST_PARTS = 2**23  # texts, numbers and values where every row is written out as often as it is named
MOST_CHECKED = 2**24  # of these in all rows whose values are looked through when they are made
LETTERS_OF_A_PART = 8

# -- writing -----------------------------------------------------------------------------------------------------------


def to_wire(item: Any) -> bytes:
    """The flat text of a value. Equal values have equal texts."""
    rows: dict[str, int] = {}  # each row's text, with its number
    number_of: dict[int, int] = {}  # by identity; everything stays alive through the item itself
    waiting: list[Any] = [item]
    while waiting:
        here = waiting[-1]
        kind: Any = type(here)
        missing: dict[int, Any] = {}  # values in it that have no row yet, in order
        fields = [f'"{tag_of(kind)}"', *[_field(getattr(here, name), number_of, missing) for name in fields_of(kind)]]
        if missing:
            waiting += reversed(missing.values())
            continue
        waiting.pop()
        number_of[id(here)] = rows.setdefault("[" + ",".join(fields) + "]", len(rows))
    return ("[" + ",".join(rows) + "]").encode("ascii")


def _field(field: Any, number_of: dict[int, int], missing: dict[int, Any]) -> str:
    kind = type(field)
    if kind is tuple:
        if set(map(type, field)) <= {int}:
            return repr(list(field)).replace(" ", "")
        return "[" + ",".join([_field(part, number_of, missing) for part in field]) + "]"
    if kind is int:
        return repr(field)
    if kind is bool or field is None:
        return {True: "true", False: "false", None: "null"}[field]
    if kind is Epsilon or isinstance(field, str):  # numpy's texts are texts, too
        return json.encoder.encode_basestring_ascii(str(field))
    if id(field) not in number_of:
        tag_of(kind)
        missing[id(field)] = field
        return ""
    return str(number_of[id(field)])


def value_hash(item: Any) -> str:
    """A name for a value that two different values do not share: no shorter, since analysts choose the values."""
    return hashlib.blake2b(to_wire(item), digest_size=32).hexdigest()


# -- reading -----------------------------------------------------------------------------------------------------------


class _Read(NamedTuple):
    """A row that was read, with its height and its parts, written out."""

    value: object
    height: int
    parts: int


def from_wire(text: str | bytes, kind: type[T]) -> T:
    """Read a value of the given class. Nothing but declared values comes out, whatever the text holds."""
    rows = json_of(text)
    if not isinstance(rows, list) or not rows:
        raise RequestError("A request is a list of rows, each a value: [[tag, field, ...], ...].")
    known: list[_Read] = []
    outermost: Any = kind
    classes = classes_within(outermost)
    checked = 0
    try:
        for row in rows:
            found = _Row(known, classes).read(row)
            known.append(found)
            checked += found.parts if hasattr(found.value, "__post_init__") else 1
            if checked > MOST_CHECKED:
                raise RequestError(f"The request has more than {MOST_CHECKED} parts in all its rows.")
    except DpmineError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"This is not a valid {kind.__name__}: {error}.") from None
    item = known[-1].value
    if not isinstance(item, kind):
        raise RequestError(f"The last row must be a {kind.__name__}.")
    return item


def _exactly(kind: type[T], field: Any, otherwise: str) -> T:
    """A field of just this type: True is no whole number here."""
    if type(field) is not kind:
        raise RequestError(f"{otherwise}. Got {type(field).__name__} instead.")
    return field


class _Row:
    """Reads one row; counts how high and how large its value is on the way."""

    def __init__(self, known: list[_Read], classes: frozenset[type]) -> None:
        self._known = known
        self._classes = classes
        self._height = 0
        self._parts = 1

    def read(self, row: Any) -> _Read:
        if not isinstance(row, list) or not row or not isinstance(row[0], str):
            raise RequestError("A row is a list that begins with a tag.")
        tag = row[0]
        cls = class_of(tag)
        if cls is None or cls not in self._classes:
            raise RequestError(f"There is no value {tag[:40]!r}.")
        readers = _readers(cls)
        if len(row) != 1 + len(readers):
            raise RequestError(f"{tag} has exactly the fields {', '.join(name for name, _ in readers) or '(none)'}.")
        fields = {name: read(self, field, f"{tag}.{name}") for (name, read), field in zip(readers, row[1:], strict=True)}
        height = self._height + 1
        if height > DEEPEST:
            raise RequestError(f"The request is nested deeper than {DEEPEST} values.")
        most = getattr(cls, "MOST_PARTS", MOST_PARTS)
        if self._parts > most:
            raise RequestError(f"{tag} has more than {most} parts when it is written out.")
        return _Read(cls(**fields), height, self._parts)

    def number(self, field: Any, where: str) -> int:
        self._parts += 1
        return _exactly(int, field, f"{where} must be an integer")

    def text(self, field: Any, where: str) -> str:
        text = _exactly(str, field, f"{where} must be text")
        self._parts += 1 + len(text) // LETTERS_OF_A_PART
        return text

    def truth(self, field: Any, where: str) -> bool:
        return _exactly(bool, field, f"{where} must be true or false")

    def epsilon(self, field: Any, where: str) -> Epsilon:
        self._parts += 1
        return Epsilon.parse_or_zero(_exactly(str, field, f'{where} must be decimal text such as "0.1"'), name=where)

    def numbers(self, field: Any, where: str) -> tuple[int, ...]:
        if not isinstance(field, list) or not set(map(type, field)) <= {int}:
            raise RequestError(f"{where} must be a list of integers.")
        self._parts += len(field)
        return tuple(field)

    def value(self, field: Any, where: str, classes: tuple[type, ...]) -> object:
        if type(field) is not int or not 0 <= field < len(self._known):
            raise RequestError(f"{where} must be the number of an earlier row.")
        found = self._known[field]
        if not isinstance(found.value, classes):
            allowed = " or ".join(cls.__name__ for cls in classes)
            raise RequestError(f"{where} must be a {allowed}. Got {type(found.value).__name__} instead.")
        self._height = max(self._height, found.height)
        self._parts += found.parts
        return found.value


Reader = Callable[[_Row, Any, str], Any]
_PLAIN: dict[Any, Reader] = {int: _Row.number, str: _Row.text, bool: _Row.truth, Epsilon: _Row.epsilon}


@functools.cache
def classes_within(kind: type) -> frozenset[type]:
    """The value classes that a value of that class may hold, itself included: nothing else is ever made."""
    found: set[type] = set()
    waiting: list[Any] = [kind]
    while waiting:
        hint = waiting.pop()
        if not isinstance(hint, type) or hint in (int, str, bool, types.NoneType, Epsilon):
            waiting += typing.get_args(hint)
        elif hint not in found:
            found.add(hint)
            waiting += [cls for cls in declared_classes() if issubclass(cls, hint)]
            waiting += fields_of(hint).values() if dataclasses.is_dataclass(hint) else ()
    return frozenset(found)


@functools.cache
def _readers(cls: type) -> list[tuple[str, Reader]]:
    """For each field of a value class what reads it: its declared type is the whole description."""
    return [(name, _reader(hint)) for name, hint in fields_of(cls).items()]


def _reader(hint: Any) -> Reader:
    if hint in _PLAIN:
        return _PLAIN[hint]
    if typing.get_origin(hint) is tuple:
        part, *rest = typing.get_args(hint)
        if rest == [Ellipsis]:
            return _Row.numbers if part is int else _list_reader(_reader(part))
        assert rest == [part] * len(rest), "value classes declare tuples of one kind"
        return _list_reader(_reader(part), 1 + len(rest))
    options = typing.get_args(hint) or (hint,)
    others = tuple(option for option in options if option is not types.NoneType)
    if len(others) < len(options):
        read = _reader(others[0]) if len(others) == 1 else _value_reader(others)
        return lambda row, field, where: None if field is None else read(row, field, where)
    return _value_reader(others)


def _list_reader(read: Reader, length: int | None = None) -> Reader:
    def read_list(row: _Row, field: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(field, list) or length not in (None, len(field)):
            raise RequestError(f"{where} must be a list{'' if length is None else f' of {length}'}.")
        row._parts += 1
        return tuple([read(row, part, where) for part in field])

    return read_list


def _value_reader(classes: tuple[type, ...]) -> Reader:
    return lambda row, field, where: row.value(field, where, classes)
