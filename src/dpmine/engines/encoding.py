"""A table as whole numbers, by the public rules of the schema: values and codes, each in the smallest unsigned type."""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import DataError
from dpmine.codes.domain import MOST_ROWS
from dpmine.engines.cache import Cache
from dpmine.facts.encoding import Codes, Lists
from dpmine.facts.kinds.registry import codes_of, encode_listed, encode_single
from dpmine.facts.schema import Schema
from dpmine.facts.sources import Source, require_columns, require_persons

ENCODING = 3  # raised whenever a row may get other codes, or fall into another part, than before
READING_OF_LINES = 1  # raised whenever lines of text may become other rows than before
KINDS_OF_TEXT = ("csv", "tsv", "jsonl", "excel")


@dataclass(frozen=True, eq=False, repr=False)
class Persons:
    """For each row the number of its person (-1: none), and a hash of the person's name below 2^31 - 1."""

    numbers: NDArray[np.int64]
    hashes: NDArray[np.int64]


@dataclass(eq=False, repr=False)
class EncodedTable:
    """The values and codes of one table version. Immutable; kernels, caches and engines share it.

    A row is its values and lists: codes follow from values, so rows that share all codes need not be the same row.
    """

    schema: Schema
    rows: int
    values: dict[str, Codes]
    lists: dict[str, Lists]
    encoding: str
    persons: Persons | None = None
    """Whose rows these are; None where the unit is a row, or persons are capped already."""
    cache: Cache = field(default_factory=Cache)

    @cached_property
    def codes(self) -> dict[str, Codes]:
        """The code of each value; where every value has one of its own the very array of the values."""
        return {name: codes_of(self.schema.single(name), values) for name, values in self.values.items()}

    @property
    def bytes(self) -> int:
        lists = sum(column.rows.nbytes + column.items.nbytes for column in self.lists.values())
        arrays = {id(column): column for column in (*self.values.values(), *self.codes.values())}  # shared ones count once
        return sum(column.nbytes for column in arrays.values()) + lists

    @cached_property
    def occurrence(self) -> NDArray[np.int64]:
        """The number of each row among identical rows: 0 for the first, 1 for the second, ...

        As a multiset of (row, occurrence) pairs, adding one row adds exactly one pair, wherever the row is inserted.
        Keyed-hash parts read this number, so that copies of one row do not all fall into one part.
        """
        identity = np.zeros(self.rows, dtype=np.int64)
        distinct = 1
        for values in self.values.values():
            size = 1 + int(values.max(initial=0))
            if distinct * size >= 2**62:
                identity, distinct = _dense(identity)
            identity = identity * size + values
            distinct *= size
        for column in self.lists.values():
            identity, distinct = _dense(identity)
            identity = identity * max(self.rows, 1) + list_ranks(column, self.rows)
        order = np.argsort(identity, kind="stable")
        occurrence = np.empty(self.rows, dtype=np.int64)
        occurrence[order] = turns(identity[order])
        return occurrence


def _dense(identity: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    distinct, dense = np.unique(identity, return_inverse=True)
    return dense.astype(np.int64), max(len(distinct), 1)


def list_ranks(column: Lists, rows: int) -> NDArray[np.int64]:
    """Numbers in the order of the rows' lists, item by item; equal lists have equal numbers."""
    ends = np.cumsum(np.bincount(column.rows, minlength=rows)).tolist()
    items = column.items.tolist()
    lists = [tuple(items[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    rank = {listed: place for place, listed in enumerate(sorted(set(lists)))}
    return np.fromiter((rank[listed] for listed in lists), np.int64, rows)


def turns(ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    """For numbers of which equal ones stand together: 0 for the first of its kind, 1 for the second, ..."""
    places = np.arange(len(ordered))
    starts = np.concatenate((np.ones(min(len(ordered), 1), dtype=bool), ordered[1:] != ordered[:-1]))
    return places - np.maximum.accumulate(np.where(starts, places, 0))


def encode(source: Source, schema: Schema) -> EncodedTable:
    """Encode every attribute of the schema; columns that the schema does not name are never read."""
    require_columns(source, [name for attribute in schema.attributes for name in attribute.reads])
    values = {attribute.name: encode_single(source, attribute) for attribute in schema.singles}
    lists = {attribute.name: encode_listed(source, attribute) for attribute in schema.lists}
    if source.rows > MOST_ROWS:
        raise DataError(f"The memory engine holds at most {MOST_ROWS} rows.")
    persons = None if schema.unit.column is None else number_persons(source, schema.unit.column)
    encoding = encoding_of(source, schema)
    source.check_read_in_one_state()
    return EncodedTable(schema, source.rows, values, lists, encoding, persons)


def encoding_of(source: Source, schema: Schema) -> str:
    """A name for the way of reading: the kind of source, our rules, those of text, and the stated type of each column read.

    The odometer's cells are disjoint only while a row keeps its codes. One text per value makes codes the same in all
    sources; that is not trusted: whatever states other types has another root. No value of a row is part of the name.
    """
    names = [name for attribute in schema.attributes for name in attribute.reads]
    names += [] if schema.unit.column is None or schema.unit.column not in source.columns else [schema.unit.column]
    stated: list[Any] = sorted((name, source.type_name(name)) for name in names)
    if source.kind in KINDS_OF_TEXT:
        stated.append(["lines", READING_OF_LINES, source.read.form()])
    digest = hashlib.blake2b(json.dumps(stated).encode(), digest_size=16).hexdigest()
    return f"{source.kind}-{ENCODING}-{digest}"


def number_persons(source: Source, column: str) -> Persons:
    """Rows share a person exactly if the column's texts are the same; rows with no text but white space have none."""
    require_persons(source, column)
    known: dict[str, int] = {}
    texts = source.texts(column)
    named = [text if text is not None and text.strip() else None for text in texts]
    numbers = [-1 if text is None else known.setdefault(text, len(known)) for text in named]
    hashes = np.array([*map(name_hash, known), 0], dtype=np.int64)  # the last one is for rows without a person
    return Persons(np.array(numbers, dtype=np.int64), hashes[np.array(numbers, dtype=np.intp)])


def name_hash(name: str) -> int:
    """A number below 2^31 - 1 for a person's name, which SQL engines compute alike. Nothing private rests on it."""
    digest = hashlib.md5(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little") % (2**31 - 1)
