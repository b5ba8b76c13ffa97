"""An engine over any database: aggregates are compiled to SQL, run over a connection, and put into arrays."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from dpmine.codes.rows import Cells, NearestCentre, Rounded, RowKey, RowStep, count_leaves
from dpmine.engines.cache import Cache, cached_counts
from dpmine.engines.cutting import RuleCutting
from dpmine.engines.sql.compiler import Compiler
from dpmine.engines.sql.dialect import Dialect
from dpmine.facts.schema import Schema

Integers = NDArray[np.int64]


class Connection(Protocol):
    """A table in a database: how its rows are coded there, and how queries over them are run."""

    @property
    def schema(self) -> Schema: ...

    @property
    def dialect(self) -> Dialect: ...

    @property
    def cache(self) -> Cache: ...

    @property
    def coded(self) -> exp.Select:
        """The query for the codes of all rows, by the schema's public rules, and for the person where rows have one."""
        ...

    def fetched(self, select: exp.Select) -> Mapping[str, NDArray[Any]]:
        """The columns of what a query finds, masked where they are empty."""
        ...

    def check_unchanged(self) -> None:
        """Refuse if the table is no longer the one that was opened."""
        ...


class SqlEngine:
    """Exact aggregates over a table in a database."""

    def __init__(self, connection: Connection, split_key: bytes) -> None:
        self._connection = connection
        self._split_key = split_key
        self._compiler = Compiler(connection.schema, split_key, connection.dialect)

    def counts(self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> list[Integers]:
        """For each group of keys the exact row counts, of shape [cells, *key sizes]."""
        keyed = self._connection.schema.unit.column is not None  # which rows of a person stay depends on the key
        return cached_counts(self._connection.cache, self._split_key, cells, groups, self._count, keyed=keyed)

    def occupied(self, cells: Cells, keys: tuple[RowKey, ...]) -> tuple[Integers, Integers]:
        """The numbers of the combinations (cell, key values) that hold rows, rising, and how many rows each holds."""
        counted, _, read = self._grouped(cells, [keys])
        numbers = counted["cell"].astype(np.int64)
        for key in keys:
            numbers = numbers * key.size + counted[f"k{read.index(key)}"].astype(np.int64)
        order = np.argsort(numbers)
        return numbers[order], counted["n"][order].astype(np.int64)

    def sums(self, cells: Cells, amounts: tuple[Rounded, ...], powers: Sequence[tuple[int, ...]]) -> Integers:
        """Over the rows of each cell without a gap in any of these exact sums of products, of shape [cells, powers]."""
        found = self._rows(self._compiler.sums(cells, amounts, powers))
        totals = np.zeros((count_leaves(cells.rules), len(powers)), dtype=np.int64)
        occupied = np.ma.getdata(found["cell"]).astype(np.intp)
        for place in range(len(powers)):
            totals[occupied, place] = np.ma.getdata(found[f"s{place}"]).astype(np.int64)
        return totals

    def clipped_sums(
        self, cells: Cells, nearest: NearestCentre, origins: Sequence[Sequence[int]], radii: Sequence[int]
    ) -> Integers:
        """For each centre the exact sums of its rows' clipped offsets, of shape [centres, attributes]."""
        counted = self._rows(self._compiler.clipped_sums(cells, nearest, origins, radii))
        sums = np.zeros((len(radii), len(nearest.places)), dtype=np.int64)
        clusters = np.ma.getdata(counted["cluster"]).astype(np.intp)
        for place in range(sums.shape[1]):
            sums[clusters, place] = np.ma.getdata(counted[f"s{place}"]).astype(np.int64)
        return sums

    def cutting(self, steps: tuple[RowStep, ...], attributes: tuple[str, ...]) -> RuleCutting:
        """A tree of halves of a view, which will be cut at codes of these attributes."""
        return RuleCutting(lambda rules: self.counts(Cells(steps, rules), [()])[0])

    def ready(self) -> None:
        """Refuse, before anything is charged, if the table is not the one that was opened."""
        self._connection.check_unchanged()

    def _rows(self, select: exp.Select) -> Mapping[str, NDArray[Any]]:
        """The columns of a query over the coded rows."""
        found = self._connection.fetched(self._compiler.over(self._connection.coded, select))
        self._connection.check_unchanged()
        return found

    def _grouped(
        self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]
    ) -> tuple[dict[str, NDArray[np.int64]], dict[str, NDArray[np.bool_]], list[RowKey]]:
        """One row for each combination that occurs: its columns, which of them are empty there, and the keys they are of."""
        select, keys = self._compiler.counts(cells, groups)
        rows = self._rows(select)
        counted = {name: np.ma.getdata(column) for name, column in rows.items()}
        empty = {name: np.ma.getmaskarray(column) for name, column in rows.items()}
        return counted, empty, keys

    def _count(self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> list[Integers]:
        counted, empty, keys = self._grouped(cells, groups)
        found = []
        for group in groups:
            names = [f"k{keys.index(key)}" for key in group]
            others = [f"k{place}" for place in range(len(keys)) if f"k{place}" not in names]
            mine = np.ones(len(counted["n"]), dtype=bool)
            for name in names:
                mine &= ~empty[name]
            for name in others:
                mine &= empty[name]
            shape = (count_leaves(cells.rules), *(key.size for key in group))
            counts = np.zeros(shape, dtype=np.int64)
            place = tuple(counted[name][mine].astype(np.intp) for name in ("cell", *names))
            np.add.at(counts, place, counted["n"][mine].astype(np.int64))
            found.append(counts)
        return found
