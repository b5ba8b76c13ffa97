"""The DuckDB engine: exact counts over CSV and Parquet files that need not fit into memory.

Rows stay in their files. Each question is one query that encodes the columns it needs by the schema's public rules, in SQL
that gives the same integers as the memory engine, and counts them by grouping sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from dpmine.engines.cache import Cache, cached_counts
from dpmine.engines.cutting import RuleCutting
from dpmine.engines.encoding import encoding_of
from dpmine.engines.sql import CountQuery, call, element
from dpmine.errors import DataError
from dpmine.frames import NUMBER_OF_TEXT, ROWS_OF_FILES, TEXT_OF_BOOLEAN, WHOLE_NUMBERS, FileSource, require_columns
from dpmine.plans import Cells, ClippedSums, RowKey, RowStep, count_leaves
from dpmine.schema import MOST_ROWS, ItemList, Nominal, Numeric, Schema
from dpmine.value_texts import text_of_value

Integers = NDArray[np.int64]

# Codes are wide integers: in a type that just holds them, adding to a code would fail for some rows and not for others.
CODE = "BIGINT"

WHITE_SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


@dataclass(eq=False, repr=False)
class DuckDBTable:
    """A table in files, with one SQL expression for the code of each attribute."""

    schema: Schema
    source: FileSource
    encoding: str = field(init=False)
    cache: Cache = field(default_factory=Cache)
    coded: exp.Select = field(init=False)

    def __post_init__(self) -> None:
        require_columns(self.source, [attribute.name for attribute in self.schema.attributes])
        self.encoding = encoding_of(self.source, self.schema)
        encoder = _Encoder(self.source)
        codes = [encoder.code(attribute, place) for place, attribute in enumerate(self.schema.attributes)]
        singles = [code for code, a in zip(codes, self.schema.attributes, strict=True) if not isinstance(a, ItemList)]
        lists = [code for code, a in zip(codes, self.schema.attributes, strict=True) if isinstance(a, ItemList)]
        names = [(code, f"a{place}") for place, code in enumerate(singles)]
        names += [(code, f"l{place}") for place, code in enumerate(lists)]
        if self.schema.unit.column is not None:
            names.append((encoder.person(self.schema.unit.column), "person"))
        self.coded = exp.select(*(exp.alias_(code, name) for code, name in names)).from_(ROWS_OF_FILES)
        self._read_everything_once([name for _, name in names])

    def _read_everything_once(self, names: list[str]) -> None:
        """A value that cannot be read must fail here, where the owner sees it, and never behind the door."""
        import duckdb

        whole = exp.select(exp.Count(this=exp.Star()), *(call("count", exp.column(name)) for name in names))
        text = whole.from_(self.coded.subquery("coded")).sql(dialect="duckdb")
        try:
            rows = int(self.source.cursor().execute(text).fetchall()[0][0])
        except duckdb.Error:
            raise DataError("The table holds a value that cannot be read, such as text that is not UTF-8.") from None
        if rows > MOST_ROWS:
            raise DataError(f"A table may have at most {MOST_ROWS} rows.")
        self.source.check_read_in_one_state()


class DuckDBEngine:
    """Exact counts over a table in files."""

    def __init__(self, table: DuckDBTable, split_key: bytes) -> None:
        self._table = table
        self._split_key = split_key

    def counts(self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> list[Integers]:
        """For each group of keys the exact row counts, of shape [cells, *key sizes]."""
        keyed = self._table.schema.unit.column is not None  # which rows of a person stay depends on the key
        return cached_counts(self._table.cache, self._split_key, cells, groups, self._count, keyed=keyed)

    def ready(self) -> None:
        """Refuse, before anything is charged, if the files are not those that were opened."""
        self._table.source.check_unchanged()

    def occupied(self, cells: Cells, keys: tuple[RowKey, ...]) -> tuple[Integers, Integers]:
        """The numbers of the combinations (cell, key values) that hold rows, rising, and how many rows each holds."""
        counted, _, read = self._grouped(cells, [keys])
        numbers = counted["cell"].astype(np.int64)
        for key in keys:
            numbers = numbers * key.size + counted[f"k{read.index(key)}"].astype(np.int64)
        order = np.argsort(numbers)
        return numbers[order], counted["n"][order].astype(np.int64)

    def clipped_sums(self, cells: Cells, question: ClippedSums) -> Integers:
        """For each centre the exact sums of its rows' clipped offsets, of shape [centres, attributes]."""
        query = CountQuery(self._table.schema, self._split_key)
        counted = self._rows(query, query.clipped_sums(cells, question))
        sums = np.zeros((len(question.radii), len(question.nearest.attributes)), dtype=np.int64)
        clusters = np.ma.getdata(counted["cluster"]).astype(np.intp)
        for place in range(sums.shape[1]):
            sums[clusters, place] = np.ma.getdata(counted[f"s{place}"]).astype(np.int64)
        return sums

    def cutting(self, steps: tuple[RowStep, ...], attributes: tuple[str, ...]) -> RuleCutting:
        """A tree of halves of a view, which will be cut at codes of these attributes."""
        return RuleCutting(lambda rules: self.counts(Cells(steps, rules), [()])[0])

    def _rows(self, query: CountQuery, select: exp.Select) -> dict[str, Any]:
        """The columns of a query over the coded rows."""
        unit = self._table.schema.unit
        if unit.column is not None:
            select = select.with_("encoded", as_=self._table.coded).with_("coded", as_=query.capped(unit.at_most))
        else:
            select = select.with_("coded", as_=self._table.coded)
        found: dict[str, Any] = self._table.source.cursor().execute(select.sql(dialect="duckdb")).fetchnumpy()
        self._table.source.check_unchanged()
        return found

    def _grouped(
        self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]
    ) -> tuple[dict[str, NDArray[np.int64]], dict[str, NDArray[np.bool_]], list[RowKey]]:
        """One row for each combination that occurs: its columns, which of them are empty there, and the keys they are of."""
        query = CountQuery(self._table.schema, self._split_key)
        select, keys = query.counts(cells, groups)
        rows = self._rows(query, select)
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


class _Encoder:
    """The code of each attribute as SQL over the files' columns, which go by their place (c0, c1, ...)."""

    def __init__(self, source: FileSource) -> None:
        self._source = source

    def code(self, attribute: Nominal | Numeric | ItemList, place: int) -> exp.Expression:
        column = exp.column(f"c{self._source.columns.index(attribute.name)}")
        kind = self._source.type_name(attribute.name)
        if isinstance(attribute, Nominal):
            return self._category(attribute, column, kind, f"category_{place}")
        if isinstance(attribute, Numeric):
            return _grid_code(attribute, self._number(column, kind, attribute.name))
        return self._items(attribute, column, kind, f"category_{place}")

    def person(self, name: str) -> exp.Expression:
        """The text that names a row's person; NULL where there is none."""
        if name not in self._source.columns:
            raise DataError(f"The table has no column {name!r}, which names the persons.")
        column = exp.column(f"c{self._source.columns.index(name)}")
        text = self._text(column, self._source.type_name(name), name)
        empty = exp.EQ(this=call("trim", text.copy(), _written(WHITE_SPACE)), expression=exp.Literal.string(""))
        return exp.Case().when(empty, exp.null()).else_(text)

    def _text(self, column: exp.Expression, kind: str, name: str) -> exp.Expression:
        if kind == "BOOLEAN":
            return _over(TEXT_OF_BOOLEAN, column)
        if kind == "VARCHAR" or kind in WHOLE_NUMBERS:
            return _cast(column, "VARCHAR")
        raise _unread(name, kind)

    def _number(self, column: exp.Expression, kind: str, name: str) -> exp.Expression:
        if kind == "VARCHAR":
            return _over(NUMBER_OF_TEXT, column)
        if kind in ("BOOLEAN", "FLOAT", "DOUBLE", *WHOLE_NUMBERS):
            return _cast(column, "DOUBLE")
        raise _unread(name, kind)

    def _category(self, attribute: Nominal, column: exp.Expression, kind: str, type_name: str) -> exp.Expression:
        if kind in ("FLOAT", "DOUBLE"):
            code = _float_code(attribute, _cast(column, "DOUBLE"))
        else:
            self._source.create_enum(type_name, attribute.categories)
            code = _enum_code(self._text(column, kind, attribute.name), type_name)
        return _cast(exp.Coalesce(this=code, expressions=[_number(attribute.other_code)]), CODE)

    def _items(self, attribute: ItemList, column: exp.Expression, kind: str, type_name: str) -> exp.Expression:
        """The codes of the first `at_most` known items."""
        self._source.create_enum(type_name, attribute.items)
        if kind == "VARCHAR":
            texts = _pieces(column, attribute.separator)
        elif kind.removesuffix("[]") in ("VARCHAR", *WHOLE_NUMBERS) and kind.endswith("[]"):
            texts = _cast(column, "VARCHAR[]")
        else:
            raise _unread(attribute.name, kind)
        each = exp.Lambda(this=_enum_code(exp.column("x"), type_name), expressions=[exp.to_identifier("x")])
        known = exp.Lambda(
            this=exp.not_(exp.Is(this=exp.column("y"), expression=exp.null())), expressions=[exp.to_identifier("y")]
        )
        codes = call("list_filter", call("list_transform", texts, each), known)
        first = call("list_slice", codes, _number(1), _number(attribute.at_most))
        return exp.Coalesce(this=first, expressions=[exp.Array(expressions=[])])


def _over(fixed: str, column: exp.Expression) -> exp.Expression:
    """One of our fixed expressions over c, for this column."""
    tree = exp.condition(fixed, dialect="duckdb")
    return tree.transform(lambda node: column.copy() if isinstance(node, exp.Column) else node)


def _pieces(text: exp.Expression, separator: str) -> exp.Expression:
    """Text cut at the separator, each piece trimmed of Python's white space; empty pieces match no item."""
    trimmed = exp.Lambda(this=call("trim", exp.column("x"), _written(WHITE_SPACE)), expressions=[exp.to_identifier("x")])
    return call("list_transform", call("string_split", text, _written(separator)), trimmed)


def _written(text: str) -> exp.Expression:
    """A text spelled by its code points, so that it does not become SQL text."""
    return call("concat", *(call("chr", _number(ord(letter))) for letter in text))


def _unread(name: str, kind: str) -> DataError:
    return DataError(
        f"The DuckDB engine cannot read column {name!r} of type {kind}. Use engine='memory', or cast the column."
    )


def _enum_code(text: exp.Expression, type_name: str) -> exp.Expression:
    """The place of a text in an enumeration; NULL where it has none."""
    member = exp.TryCast(this=text, to=exp.DataType.build(type_name, udt=True))
    return call("enum_code", member)


def _float_code(attribute: Nominal, number: exp.Expression) -> exp.Expression:
    """Categories as the doubles whose text they are."""
    case = exp.Case(this=number)
    for code, category in enumerate(attribute.categories):
        try:
            value = float(category)
        except ValueError:
            continue
        if text_of_value(value) == category:
            case = case.when(_double(value), _number(code))
    return case if case.args.get("ifs") else exp.null()


def _grid_code(attribute: Numeric, number: exp.Expression) -> exp.Expression:
    """The largest grid point <= number, clamped: by whole numbers where the grid is whole, else corrected by comparing."""
    low, step = attribute.low, attribute.step
    clamped = exp.Greatest(
        this=exp.Least(this=number, expressions=[_double(attribute.edges[-1])]), expressions=[_double(attribute.edges[0])]
    )
    if low == low.to_integral_value() and step == step.to_integral_value():
        whole = _cast(exp.Floor(this=clamped), "BIGINT")
        above = exp.paren(exp.Sub(this=whole, expression=exp.paren(_number(int(low)))))
        code: exp.Expression = exp.IntDiv(this=above, expression=_number(int(step)))
    else:
        code = _corrected(attribute, clamped)
    missing = exp.or_(exp.Is(this=number.copy(), expression=exp.null()), call("isnan", number.copy()))
    return _cast(exp.Case().when(missing, _number(attribute.other_code)).else_(code), CODE)


def _corrected(attribute: Numeric, clamped: exp.Expression) -> exp.Expression:
    """Division of doubles is off by at most one place; the grid's own edges decide."""
    size = attribute.size
    above = exp.paren(exp.Sub(this=clamped, expression=_double(attribute.edges[0])))
    guess = _cast(exp.Floor(this=exp.Div(this=above, expression=_double(float(attribute.step)))), "BIGINT")
    inside = exp.Greatest(this=exp.Least(this=guess, expressions=[_number(size - 1)]), expressions=[_number(0)])
    edges = exp.paren(exp.Array(expressions=[_double(edge) for edge in [*attribute.edges, float("inf")]]))

    def edge(shift: int) -> exp.Expression:
        return element(edges.copy(), exp.paren(exp.Add(this=exp.paren(inside.copy()), expression=_number(shift))))

    too_high = exp.Case().when(exp.LT(this=clamped.copy(), expression=edge(0)), _number(1)).else_(_number(0))
    too_low = exp.Case().when(exp.GTE(this=clamped.copy(), expression=edge(1)), _number(1)).else_(_number(0))
    return exp.Add(this=exp.Sub(this=inside, expression=exp.paren(too_high)), expression=exp.paren(too_low))


def _cast(item: exp.Expression, to: str) -> exp.Expression:
    return exp.cast(item, to, dialect="duckdb")


def _number(number: int) -> exp.Expression:
    return exp.Literal.number(number)


def _double(number: float) -> exp.Expression:
    return _cast(exp.Literal.string(repr(float(number))), "DOUBLE")
