"""Small pieces of SQL that are the same in every dialect. Numbers in it are ours: no text of anybody becomes SQL text."""

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp


def integer(number: int) -> exp.Expression:
    return exp.Literal.number(number) if number >= 0 else exp.paren(exp.Literal.number(number))


def integers(numbers: Sequence[int]) -> exp.Expression:
    """An array of written numbers."""
    return exp.paren(exp.Array(expressions=[integer(number) for number in numbers]))


def call(name: str, *arguments: exp.Expression) -> exp.Expression:
    """A function by its own name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def plus(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.paren(exp.Add(this=left, expression=right))


def minus(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.paren(exp.Sub(this=left, expression=right))


def times(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.paren(exp.Mul(this=left, expression=right))


def modulo(number: exp.Expression, divisor: int) -> exp.Expression:
    return exp.paren(exp.Mod(this=number, expression=integer(divisor)))


def is_not_null(item: exp.Expression) -> exp.Expression:
    return exp.not_(exp.Is(this=item, expression=exp.null()))


def sum_of(numbers: Sequence[exp.Expression], wide: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
    """Added in pairs, so that a sum over many trees does not nest deep."""
    added = [wide(number) for number in numbers]
    while len(added) > 1:
        added = [plus(*pair) if len(pair) == 2 else pair[0] for pair in (added[i : i + 2] for i in range(0, len(added), 2))]
    return added[0]


def largest_of(names: Sequence[str]) -> exp.Expression:
    first, *others = [exp.column(name) for name in names]
    return exp.Greatest(this=first, expressions=others) if others else first


def band_of(total: exp.Expression, edges: Sequence[int]) -> exp.Expression:
    """How many of the rising edges are at or below the sum."""
    case = exp.Case()
    for band, edge in enumerate(edges):
        case = case.when(exp.LT(this=total.copy(), expression=integer(edge)), integer(band), copy=False)
    return case.else_(integer(len(edges)), copy=False)


def band_of_runs(number: exp.Expression, runs: Sequence[tuple[int, int]]) -> exp.Expression:
    """The label of the run (first number, label) that a number lies in, by halving: a text as long as the runs, not deep."""
    if len(runs) == 1:
        return integer(runs[0][1])
    middle = len(runs) // 2
    below = exp.LT(this=number.copy(), expression=integer(runs[middle][0]))
    low, high = band_of_runs(number, runs[:middle]), band_of_runs(number, runs[middle:])
    return exp.Case().when(below, low, copy=False).else_(high, copy=False)


def by_label(key: exp.Expression, chosen: Sequence[exp.Expression]) -> exp.Expression:
    """Of several expressions the one that a key's label says. Not copied as it grows: text no longer than its parts."""
    *others, last = chosen
    case = exp.Case(this=exp.paren(key))
    for label, each in enumerate(others):
        case = case.when(integer(label), each, copy=False)
    return case.else_(last, copy=False)


def between(column: exp.Expression, low: int, high: int, size: int) -> exp.Expression:
    """low <= column < high, without the comparisons that always hold."""
    parts: list[exp.Expression] = []
    if low > 0:
        parts.append(exp.GTE(this=column.copy(), expression=integer(low)))
    if high < size:
        parts.append(exp.LT(this=column.copy(), expression=integer(high)))
    return all_of(parts)


def all_of(parts: Sequence[exp.Expression]) -> exp.Expression:
    return exp.paren(exp.and_(*parts)) if parts else exp.true()


def any_of(parts: Sequence[exp.Expression]) -> exp.Expression:
    return exp.paren(exp.or_(*parts)) if parts else exp.false()


def layer(relation: exp.Expression, columns: Mapping[str, exp.Expression]) -> exp.Expression:
    """The relation with more columns."""
    select = exp.select("*", *(exp.alias_(item, name) for name, item in columns.items())).from_(relation)
    return select.subquery("layer")
