"""Larger tables out of small ones, for scale tests: rows drawn with replacement, or varied as in the DiffGen paper."""

import dataclasses
from collections.abc import Iterator
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.engines.encoding import EncodedTable
from dpmine.facts.encoding import Codes, Lists
from dpmine.facts.kinds.kind import Single
from dpmine.facts.kinds.registry import encode_single, values_of
from dpmine.facts.schema import Schema
from dpmine.facts.sources import reading

GENERATED = "generated"  # the encoding of tables made here: no rows of anyone's
Columns = dict[str, list[object]]


@overload
def blown_up(table: EncodedTable, rows: int, *, seed: int = 1) -> EncodedTable: ...
@overload
def blown_up(table: Columns, rows: int, *, seed: int = 1) -> Columns: ...
def blown_up(table: EncodedTable | Columns, rows: int, *, seed: int = 1) -> EncodedTable | Columns:
    """`rows` rows drawn from the table with replacement; the same for the same seed."""
    size = _size(table)
    if rows < 1 or size < 1:
        raise RequestError(f"A table can be blown up from at least 1 row to at least 1 row. Got {rows} rows.")
    picked = np.random.default_rng(seed).integers(0, size, rows)
    if isinstance(table, EncodedTable):
        return _encoded_rows(table, picked)
    places = picked.tolist()
    return {name: [values[place] for place in places] for name, values in table.items()}


@overload
def diffgen_blow_up(table: EncodedTable, scale: int, *, seed: int, replaced: float = 0.5) -> EncodedTable: ...
@overload
def diffgen_blow_up(table: Columns, scale: int, *, schema: Schema, seed: int, replaced: float = 0.5) -> Columns: ...
def diffgen_blow_up(
    table: EncodedTable | Columns, scale: int, *, schema: Schema | None = None, seed: int, replaced: float = 0.5
) -> EncodedTable | Columns:
    """The table and scale - 1 variations of each row (Mohammed et al., KDD 2011, section 5, "Scalability").

    In a variation some attribute values are replaced by random ones of the same domain. The paper does not say how many:
    here each is replaced with probability `replaced`, by a uniform value of the schema's domain, possibly the same. The
    class is no attribute there and stays; so do lists and columns outside the schema. The originals come first. A number
    is replaced by the middle of a cell of its grid, and by a gap where the schema has a place for gaps.
    """
    if scale < 1 or not 0 <= replaced <= 1:
        raise RequestError("A blow-up needs a scale of at least 1 and a replacement rate between 0 and 1.")
    facts = table.schema if isinstance(table, EncodedTable) else schema
    if facts is None:
        raise RequestError("Columns are varied within the domains of their schema. Give schema=...")
    size = _size(table)
    varied = dict(_variations(facts, size, scale, np.random.default_rng(seed), replaced))
    if isinstance(table, EncodedTable):
        copies = _encoded_rows(table, np.tile(np.arange(size), scale))
        for name, fresh in varied.items():
            values = copies.values[name]
            np.copyto(values, _encoded_domain(table.schema.single(name))[np.maximum(fresh, 0)], where=fresh >= 0)
        return copies
    absent = [name for name in varied if name not in table]
    if absent:
        raise RequestError(f"The table has no column {absent[0]!r}, which the schema describes.")
    columns = {name: list(values) * scale for name, values in table.items()}
    for name, fresh in varied.items():
        domain = values_of(facts.single(name)).tolist()
        columns[name] = [
            value if code < 0 else domain[code] for value, code in zip(columns[name], fresh.tolist(), strict=True)
        ]
    return columns


def _variations(
    schema: Schema, size: int, scale: int, draw: np.random.Generator, replaced: float
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """For each attribute the code that replaces each row's; -1 where the value stays, as in all of the originals."""
    for attribute in schema.singles:
        if attribute.name != schema.class_attribute:
            fresh = draw.integers(0, attribute.size, size * scale)
            fresh[draw.random(size * scale) >= replaced] = -1
            fresh[:size] = -1
            yield attribute.name, fresh


def _encoded_domain(attribute: Single) -> Codes:
    """The number of the value that each code stands for."""
    with reading({attribute.name: values_of(attribute).tolist()}) as source:
        return encode_single(source, attribute)


def _size(table: EncodedTable | Columns) -> int:
    if isinstance(table, EncodedTable):
        return table.rows
    sizes = {len(values) for values in table.values()}
    if len(sizes) != 1:
        raise RequestError("The table must have columns, all of the same length.")
    return sizes.pop()


def _encoded_rows(table: EncodedTable, picked: NDArray[np.int64]) -> EncodedTable:
    """The picked rows as a table of their own; its schema allows as many rows."""
    columns = {name: codes[picked] for name, codes in table.values.items()}
    lists = {name: _picked_lists(column, table.rows, picked) for name, column in table.lists.items()}
    schema = dataclasses.replace(table.schema, rows_at_most=max(len(picked), 1))
    return EncodedTable(schema, len(picked), columns, lists, GENERATED)


def _picked_lists(column: Lists, rows: int, picked: NDArray[np.int64]) -> Lists:
    """Entries stand in the order of their rows, so that a row's entries are one run."""
    starts = np.searchsorted(column.rows, np.arange(rows + 1))
    lengths = np.diff(starts)[picked]
    first = np.cumsum(lengths) - lengths
    entries = np.arange(lengths.sum()) + np.repeat(starts[picked] - first, lengths)
    return Lists(np.repeat(np.arange(len(picked)), lengths).astype(np.uint32), column.items[entries])
