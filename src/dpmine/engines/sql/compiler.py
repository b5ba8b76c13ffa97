"""Exact aggregates as SQL: SQLGlot expressions over a relation of integer codes, in any database's dialect.

Every name and constant in the SQL is ours or an integer: no text of an analyst or an owner ever becomes SQL text.
"""

from collections.abc import Sequence

from sqlglot import exp

from dpmine.codes.rows import Cells, NearestCentre, Rounded, RowKey
from dpmine.engines.sql.columns import CODED, ENCODED, Columns
from dpmine.engines.sql.dialect import Dialect
from dpmine.engines.sql.expressions import integer, layer, minus, sum_of, times
from dpmine.engines.sql.keys import cell_of, kept_by, key_of, keys_of
from dpmine.engines.sql.models import positions_of, with_models
from dpmine.engines.sql.parts import capped, with_parts
from dpmine.facts.schema import Schema


class Compiler:
    """Builds the queries for one table's aggregates."""

    def __init__(self, schema: Schema, split_key: bytes, dialect: Dialect) -> None:
        self._schema = schema
        self._split_key = split_key
        self._dialect = dialect

    def counts(self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> tuple[exp.Select, list[RowKey]]:
        """`SELECT cell, k0, k1, ..., count(*) AS n` by grouping sets, and the key behind each k."""
        columns = self._columns()
        keys = list({key: None for group in groups for key in group})
        place = {key: f"k{number}" for number, key in enumerate(keys)}
        source = _source([*keys, *keys_of(cells)], columns)
        inner = exp.select(exp.alias_(cell_of(cells.rules, 0, columns), "cell"))
        for key in keys:
            inner = inner.select(exp.alias_(key_of(key, columns), place[key]))
        inner = _narrowed(inner.from_(source), cells, columns)
        # The same keys in another order are one set: asked twice, every row would be counted twice.
        distinct = {frozenset(group): tuple(dict.fromkeys(group)) for group in groups}
        sets = [
            exp.Tuple(expressions=[exp.column("cell"), *(exp.column(place[key]) for key in group)])
            for group in distinct.values()
        ]
        outer = exp.select(
            "cell", *(exp.column(name) for name in place.values()), exp.alias_(exp.Count(this=exp.Star()), "n")
        )
        outer = outer.from_(inner.subquery("celled"))
        outer.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
        return outer, keys

    def sums(self, cells: Cells, amounts: Sequence[Rounded], powers: Sequence[tuple[int, ...]]) -> exp.Select:
        """`SELECT cell, s0, s1, ...`: for each cell that has rows without a gap the sums of products of their amounts."""
        columns, wide = self._columns(), self._dialect.wide
        source = _source(keys_of(cells), columns)
        rows = exp.select(exp.alias_(cell_of(cells.rules, 0, columns), "cell"))
        for place, amount in enumerate(amounts):
            rows = rows.select(exp.alias_(key_of(amount, columns), f"x{place}"))
        rows = _narrowed(rows.from_(source), cells, columns)
        found = exp.select("cell").from_(rows.subquery("celled"))
        for place, amount in enumerate(amounts):
            found = found.where(exp.LTE(this=exp.column(f"x{place}"), expression=integer(amount.steps)))
        for place, power in enumerate(powers):
            product: exp.Expression = integer(1)
            for name, times_ in enumerate(power):
                for _ in range(times_):
                    product = times(product, wide(exp.column(f"x{name}")))
            found = found.select(exp.alias_(wide(exp.Sum(this=wide(product))), f"s{place}"))
        return found.group_by("cell")

    def clipped_sums(
        self, cells: Cells, nearest: NearestCentre, origins: Sequence[Sequence[int]], radii: Sequence[int]
    ) -> exp.Select:
        """`SELECT cluster, s0, s1, ...`: for each centre that has rows the sums of their clipped offsets."""
        columns, wide = self._columns(), self._dialect.wide
        source = _source([nearest, *keys_of(cells)], columns)
        rows = exp.select(exp.alias_(key_of(nearest, columns), "cluster"))
        for place, position in enumerate(positions_of(nearest, columns)):
            rows = rows.select(exp.alias_(position, f"p{place}"))
        rows = _narrowed(rows.from_(source), cells, columns)
        offsets: dict[str, exp.Expression] = {}
        for place in range(len(nearest.places)):
            origin = self._dialect.pick([origin[place] for origin in origins], exp.column("cluster"))
            offsets[f"o{place}"] = minus(wide(exp.column(f"p{place}")), wide(origin))
        names = list(offsets)
        offsets["radius"] = wide(self._dialect.pick(radii, exp.column("cluster")))
        relation = layer(rows.subquery("clustered"), offsets)
        relation = layer(relation, {"length": sum_of([exp.Abs(this=exp.column(name)) for name in names], wide)})
        sums = [exp.alias_(wide(exp.Sum(this=self._clipped(name))), f"s{place}") for place, name in enumerate(names)]
        return exp.select("cluster", *sums).from_(relation).group_by("cluster")

    def over(self, codes: exp.Select, select: exp.Select) -> exp.Select:
        """A query together with the relation that it reads; of each person only so many rows as count."""
        unit = self._schema.unit
        if unit.column is None:
            return select.with_(CODED, as_=codes)
        return select.with_(ENCODED, as_=codes).with_(CODED, as_=capped(unit.at_most, self._columns()))

    def _clipped(self, offset: str) -> exp.Expression:
        """An offset, shortened towards 0 where all offsets of its row together are longer than the radius."""
        wide = self._dialect.wide
        longer = times(wide(exp.Abs(this=exp.column(offset))), exp.column("radius"))
        shorter = times(exp.Sign(this=exp.column(offset)), exp.paren(self._dialect.quotient(longer, exp.column("length"))))
        within = exp.LTE(this=exp.column("length"), expression=exp.column("radius"))
        return exp.Case().when(within, exp.column(offset)).else_(wide(shorter))

    def _columns(self) -> Columns:
        return Columns(self._schema, self._dialect, self._split_key)


def _source(keys: Sequence[RowKey], columns: Columns) -> exp.Expression:
    """The relation with everything that these keys read."""
    return with_models(with_parts(keys, columns), keys, columns)


def _narrowed(rows: exp.Select, cells: Cells, columns: Columns) -> exp.Select:
    for step in cells.steps:
        rows = rows.where(kept_by(step, columns))
    return rows
