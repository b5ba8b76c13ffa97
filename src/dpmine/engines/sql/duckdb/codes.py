"""The value and code of each attribute as SQL over the columns of files, by public rules: the memory engine's integers."""

from dataclasses import dataclass
from functools import singledispatch

from sqlglot import exp

from dpmine.base.errors import DataError
from dpmine.engines.sql.columns import PERSON, code_names, list_names, value_names
from dpmine.engines.sql.duckdb.dialect import DUCKDB, transformed
from dpmine.engines.sql.expressions import band_of_runs, call, integer, is_not_null, minus, modulo, plus
from dpmine.facts.calendar import DAY
from dpmine.facts.kinds.dates import Dated, Time
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.kind import Attribute, Ordered
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.moments import BILLION, MomentRule
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource
from dpmine.facts.sources.files import ROWS_OF_FILES, number_of_text
from dpmine.facts.sources.moments_in_sql import moment_of
from dpmine.facts.sources.texts_in_sql import FLOATS, WHOLE_NUMBERS, number_of, text_of
from dpmine.facts.value_texts import text_of_value

# Codes are wide integers: in a type that just holds them, adding to a code would fail for some rows and not for others.
CODE = "BIGINT"

WHITE_SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


def coded_rows(source: FileSource, schema: Schema) -> exp.Select:
    """The query for the values and codes of all rows, and for the person where rows have one."""
    found = {
        attribute.name: _value_of(attribute, _Column(source, attribute.name, f"category_{place}"))
        for place, attribute in enumerate(schema.attributes)
    }
    columns = {column: found[name] for name, column in (value_names(schema) | list_names(schema)).items()}
    if schema.unit.column is not None:
        columns[PERSON] = _person(source, schema.unit.column)
    valued = exp.select(*(exp.alias_(code, name) for name, code in columns.items())).from_(ROWS_OF_FILES)
    values = value_names(schema)
    codes = {
        column: _code_of(schema.ordered(name, "it has no values"), values[name])
        for name, column in code_names(schema).items()
        if column != values[name]
    }
    if not codes:
        return valued
    names = [exp.column(name) for name in columns]
    return exp.select(*names, *(exp.alias_(code, name) for name, code in codes.items())).from_(valued.subquery("valued"))


def _code_of(attribute: Ordered, column: str) -> exp.Expression:
    """The code that a value lies in: by dividing where codes begin at even steps, else by halving among where they begin."""
    starts, value = attribute.starts, exp.column(column)
    width = starts[1] if len(starts) > 1 else attribute.values
    ends = (*starts, attribute.values)
    # The last cell may be shorter, never longer: dividing would lead beyond the last code, to that of gaps and further.
    even = all(first == place * width for place, first in enumerate(starts)) and ends[-1] - ends[-2] <= width
    if not even:
        runs = [(first, code) for code, first in enumerate((*starts, attribute.values))]
        return _cast(band_of_runs(value, runs), CODE)
    code: exp.Expression = exp.IntDiv(this=value, expression=_number(width))
    gap = exp.EQ(this=value.copy(), expression=_number(attribute.values))
    return _cast(exp.Case().when(gap, _number(attribute.cells)).else_(code), CODE)


@dataclass(frozen=True, eq=False, repr=False)
class _Column:
    """A column of the files, which goes by its place (c0, c1, ...)."""

    source: FileSource
    name: str
    enumeration: str = ""
    """What a type of its texts would be called."""

    @property
    def sql(self) -> exp.Expression:
        return exp.column(f"c{self.source.columns.index(self.name)}")

    @property
    def kind(self) -> str:
        return self.source.type_name(self.name)

    def text(self) -> exp.Expression:
        return self._over(text_of(self.kind))

    def number(self) -> exp.Expression:
        if self.kind == "VARCHAR":
            return self._over(number_of_text(self.source.read))
        return self._over(number_of(self.kind))

    def moment(self, rule: MomentRule) -> tuple[exp.Expression, exp.Expression]:
        """Whole seconds since 1970, and the nanoseconds after them."""
        found = moment_of(self.kind, rule)
        if found is None:
            raise self.unread()
        return self._over(found.seconds), self._over(found.nanoseconds)

    def _over(self, fixed: str | None) -> exp.Expression:
        """One of our fixed expressions over c, for this column."""
        if fixed is None:
            raise self.unread()
        tree = exp.condition(fixed, dialect=DUCKDB.name)
        return tree.transform(lambda node: self.sql if isinstance(node, exp.Column) and node.name == "c" else node)

    def texts(self, separator: str) -> exp.Expression:
        """The list of texts in each row."""
        if self.source.kind == "jsonl":
            raise DataError(
                f"The DuckDB engine cannot read lists from JSON lines (column {self.name!r}). Use engine='memory'."
            )
        if self.kind == "VARCHAR":
            return _pieces(self.sql, separator)
        if self.kind.removesuffix("[]") in ("VARCHAR", *WHOLE_NUMBERS) and self.kind.endswith("[]"):
            return _cast(self.sql, "VARCHAR[]")
        raise self.unread()

    def place_in(self, members: tuple[str, ...], text: exp.Expression) -> exp.Expression:
        """The place of a text among these; NULL where it is none of them."""
        self.source.create_enum(self.enumeration, members)
        member = exp.TryCast(this=text, to=exp.DataType.build(self.enumeration, udt=True))
        return call("enum_code", member)

    def unread(self) -> DataError:
        return DataError(
            f"The DuckDB engine cannot read column {self.name!r} of type {self.kind}. "
            "Use engine='memory', or cast the column."
        )


@singledispatch
def _value_of(attribute: Attribute, column: _Column) -> exp.Expression:
    """The number of an attribute's value, or the list of codes, in each row."""
    raise DataError(f"The DuckDB engine knows no {attribute.kind} attributes. Use engine='memory'.")


@_value_of.register
def _category(attribute: Nominal, column: _Column) -> exp.Expression:
    if column.kind in FLOATS:
        code = _float_code(attribute, column.number())
    else:
        code = column.place_in(attribute.categories, column.text())
    if attribute.unlisted_code != attribute.empty_code:
        nothing = [exp.Is(this=column.sql, expression=exp.null())]
        nan = [call("isnan", column.sql)] if column.kind in FLOATS else []
        empty = exp.or_(*nothing, *nan)
        rest: exp.Expression = exp.Case().when(empty, _number(attribute.empty_code)).else_(_number(attribute.unlisted_code))
    else:
        rest = _number(attribute.empty_code)
    return _cast(exp.Coalesce(this=code, expressions=[rest]), CODE)


@_value_of.register
def _nearest_value(attribute: Numeric, column: _Column) -> exp.Expression:
    """As `numeric_columns.encode_numbers`, step by step in doubles."""
    number = _days_between(attribute, column) if attribute.days_between else column.number()
    low, high = float(attribute.low), float(attribute.value_point(attribute.values - 1))
    clamped = exp.Greatest(this=exp.Least(this=number, expressions=[_double(high)]), expressions=[_double(low)])
    above = exp.paren(exp.Sub(this=clamped, expression=_double(low)))
    steps = exp.paren(exp.Div(this=above, expression=_double(float(attribute.finest))))
    nearest = _cast(exp.Floor(this=exp.Add(this=steps, expression=_double(0.5))), CODE)
    missing = exp.or_(exp.Is(this=number.copy(), expression=exp.null()), call("isnan", number.copy()))
    return _cast(exp.Case().when(missing, _number(attribute.missing_value)).else_(nearest), CODE)


def _days_between(attribute: Numeric, column: _Column) -> exp.Expression:
    """As `numeric_columns.days_between`, step by step in doubles."""
    columns = [_Column(column.source, name) for name in attribute.days_between]
    first, second = (each.moment(attribute.rule) for each in columns)
    seconds, parts = (_cast(minus(after, before), "DOUBLE") for before, after in zip(first, second, strict=True))
    broken = exp.paren(exp.Div(this=parts, expression=_double(BILLION)))
    return exp.paren(exp.Div(this=plus(seconds, broken), expression=_double(DAY)))


@_value_of.register
def _moment(attribute: Dated, column: _Column) -> exp.Expression:
    """As `dates_columns.encode_moments`, in whole numbers."""
    seconds, _ = column.moment(attribute.rule)
    if isinstance(attribute, Time):
        seconds = modulo(plus(modulo(exp.paren(seconds), DAY), integer(DAY)), DAY)
    bounded = exp.Least(this=seconds, expressions=[integer(attribute.last)])
    clamped = exp.Greatest(this=bounded, expressions=[integer(attribute.first)])
    value = exp.paren(exp.IntDiv(this=minus(clamped, integer(attribute.first)), expression=_number(attribute.step)))
    missing = exp.Is(this=seconds.copy(), expression=exp.null())
    return _cast(exp.Case().when(missing, _number(attribute.missing_value)).else_(value), CODE)


@_value_of.register
def _items(attribute: ItemList, column: _Column) -> exp.Expression:
    """The codes of the first `at_most` known items."""
    texts = column.texts(attribute.separator)
    known = exp.Lambda(this=is_not_null(exp.column("y")), expressions=[exp.to_identifier("y")])
    codes = call("list_filter", transformed(texts, column.place_in(attribute.items, exp.column("x"))), known)
    first = call("list_slice", codes, _number(1), _number(attribute.at_most))
    return exp.Coalesce(this=first, expressions=[exp.Array(expressions=[])])


def _person(source: FileSource, name: str) -> exp.Expression:
    """The text that names a row's person; NULL where there is none."""
    if name not in source.columns:
        raise DataError(f"The table has no column {name!r}, which names the persons.")
    text = _Column(source, name).text()
    empty = exp.EQ(this=call("trim", text.copy(), _written(WHITE_SPACE)), expression=exp.Literal.string(""))
    return exp.Case().when(empty, exp.null()).else_(text)


def _pieces(text: exp.Expression, separator: str) -> exp.Expression:
    """Text cut at the separator, each piece trimmed of Python's white space; empty pieces match no item."""
    pieces = call("string_split", text, _written(separator))
    return transformed(pieces, call("trim", exp.column("x"), _written(WHITE_SPACE)))


def _written(text: str) -> exp.Expression:
    """A text spelled by its code points, so that it does not become SQL text."""
    return call("concat", *(call("chr", _number(ord(letter))) for letter in text))


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


def _cast(item: exp.Expression, to: str) -> exp.Expression:
    return exp.cast(item, to, dialect=DUCKDB.name)


def _number(number: int) -> exp.Expression:
    return exp.Literal.number(number)


def _double(number: float) -> exp.Expression:
    return _cast(exp.Literal.string(repr(float(number))), "DOUBLE")
