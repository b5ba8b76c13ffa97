"""Keys, tests, steps and cells of rows as SQL over the columns of codes, each found by its type."""

import itertools
from collections.abc import Sequence
from functools import singledispatch

from sqlglot import exp

from dpmine.codes.rows import (
    All,
    Any_,
    BandedDistance,
    BandedSum,
    Branch,
    Cells,
    Cyclic,
    Enter,
    HashedPart,
    Holds,
    InCodes,
    InValues,
    Keep,
    LargestSum,
    NearestCentre,
    Negation,
    Recode,
    RecodeValues,
    Rounded,
    RowKey,
    RowRules,
    RowStep,
    RowTest,
    Tested,
    count_leaves,
)
from dpmine.engines.hashing import part_ends
from dpmine.engines.sql.columns import Columns
from dpmine.engines.sql.dialect import Dialect
from dpmine.engines.sql.expressions import (
    all_of,
    any_of,
    band_of,
    band_of_runs,
    between,
    by_label,
    integer,
    modulo,
    plus,
    times,
)

FEW_RUNS = 8  # more runs than this are looked up in an array

# -- keys --------------------------------------------------------------------------------------------------------------


@singledispatch
def key_of(key: RowKey, columns: Columns) -> exp.Expression:
    """The value of a key."""
    raise TypeError(f"SQL has no key {type(key).__name__}")


@key_of.register
def _recode(key: Recode, columns: Columns) -> exp.Expression:
    return _lookup(columns.code(key.attribute), key.runs, columns.dialect)


@key_of.register
def _recode_values(key: RecodeValues, columns: Columns) -> exp.Expression:
    return band_of_runs(columns.value(key.attribute), key.runs)


@key_of.register
def _rounded(key: Rounded, columns: Columns) -> exp.Expression:
    value, last = columns.value(key.attribute), columns.last_value(key.attribute)
    if key.steps == last:
        return value
    doubled = plus(times(columns.dialect.wide(value), integer(2 * key.steps)), integer(last))
    rounded = columns.dialect.quotient(doubled, integer(2 * last))
    return exp.Case().when(exp.GT(this=value.copy(), expression=integer(last)), integer(key.steps + 1)).else_(rounded)


@key_of.register
def _cyclic(key: Cyclic, columns: Columns) -> exp.Expression:
    value, last = columns.value(key.attribute), columns.last_value(key.attribute)
    moved = plus(columns.dialect.wide(value), integer(key.offset))
    stretch = modulo(exp.paren(columns.dialect.quotient(moved, integer(key.unit))), key.period)
    return exp.Case().when(exp.GT(this=value.copy(), expression=integer(last)), integer(key.period)).else_(stretch)


@key_of.register
def _tested(key: Tested, columns: Columns) -> exp.Expression:
    return exp.Case().when(truth_of(key.test, columns), integer(1)).else_(integer(0))


@key_of.register(LargestSum)
@key_of.register(NearestCentre)
def _best(key: LargestSum | NearestCentre, columns: Columns) -> exp.Expression:
    return _place_of(columns.best[key], columns.sums[key])


@key_of.register
def _banded_sum(key: BandedSum, columns: Columns) -> exp.Expression:
    return band_of(exp.column(columns.sums[key][0]), key.edges)


@key_of.register
def _banded_distance(key: BandedDistance, columns: Columns) -> exp.Expression:
    return band_of(exp.column(columns.distances[key.nearest]), key.edges)


@key_of.register
def _hashed_part(key: HashedPart, columns: Columns) -> exp.Expression:
    return band_of(exp.column(columns.hashes[key.salt]), part_ends(key.weights))


def _lookup(column: exp.Expression, runs: tuple[tuple[int, int], ...], dialect: Dialect) -> exp.Expression:
    """The value of the run that the column's code lies in; no runs: the code itself."""
    if not runs:
        return column
    if len(runs) > FEW_RUNS:
        table: list[int] = []
        for (_, item), (after, _) in itertools.pairwise(runs):
            table += [item] * (after - len(table))
        last_start, last_item = runs[-1]
        # Codes from the last run on are clamped to its first place.
        return dialect.pick([*table, last_item], exp.Least(this=column, expressions=[integer(last_start)]))
    case = exp.Case()
    for (_, item), (after, _) in itertools.pairwise(runs):
        case = case.when(exp.LT(this=column.copy(), expression=integer(after)), integer(item))
    return case.else_(integer(runs[-1][1])) if len(runs) > 1 else integer(runs[0][1])


def _place_of(best: str, sums: Sequence[str]) -> exp.Expression:
    """The place of the largest sum; of equal ones the first."""
    if len(sums) == 1:
        return integer(0)
    case = exp.Case(this=exp.column(best))
    for place, name in enumerate(sums[:-1]):
        case = case.when(exp.column(name), integer(place), copy=False)
    return case.else_(integer(len(sums) - 1), copy=False)


# -- tests and steps ---------------------------------------------------------------------------------------------------


@singledispatch
def truth_of(test: RowTest, columns: Columns) -> exp.Expression:
    """Whether a test holds."""
    raise TypeError(f"SQL has no test {type(test).__name__}")


@truth_of.register
def _in_codes(test: InCodes, columns: Columns) -> exp.Expression:
    column, size = columns.code(test.attribute), columns.schema.single(test.attribute).size
    return any_of([between(column, low, high, size) for low, high in test.ranges])


@truth_of.register
def _in_values(test: InValues, columns: Columns) -> exp.Expression:
    column, size = columns.value(test.attribute), columns.last_value(test.attribute) + 2
    return any_of([between(column, low, high, size) for low, high in test.ranges])


@truth_of.register
def _holds(test: Holds, columns: Columns) -> exp.Expression:
    held = exp.column(columns.lists[test.attribute])
    return all_of([columns.dialect.holds(held, item) for item in test.items])


@truth_of.register
def _negation(test: Negation, columns: Columns) -> exp.Expression:
    return exp.not_(exp.paren(truth_of(test.part, columns)))


@truth_of.register
def _all(test: All, columns: Columns) -> exp.Expression:
    return all_of([truth_of(part, columns) for part in test.parts])


@truth_of.register
def _any(test: Any_, columns: Columns) -> exp.Expression:
    return any_of([truth_of(part, columns) for part in test.parts])


@singledispatch
def kept_by(step: RowStep, columns: Columns) -> exp.Expression:
    """Whether a step of a view keeps the row."""
    raise TypeError(f"SQL has no step {type(step).__name__}")


@kept_by.register
def _keep(step: Keep, columns: Columns) -> exp.Expression:
    return truth_of(step.test, columns)


@kept_by.register
def _enter(step: Enter, columns: Columns) -> exp.Expression:
    return exp.EQ(this=exp.paren(key_of(step.key, columns)), expression=integer(step.index))


# -- cells -------------------------------------------------------------------------------------------------------------


def cell_of(rules: RowRules | None, first: int, columns: Columns) -> exp.Expression:
    """The number of the row's leaf, counted from `first`."""
    if not isinstance(rules, Branch):
        return integer(first)
    if all(child is None for child in rules.children):
        return plus(columns.dialect.wide(key_of(rules.key, columns)), integer(first))
    if len(rules.children) == 1:
        return cell_of(rules.children[0], first, columns)
    leaves = []
    for child in rules.children:
        leaves.append(cell_of(child, first, columns))
        first += count_leaves(child)
    return by_label(key_of(rules.key, columns), leaves)


def keys_of(cells: Cells) -> list[RowKey]:
    """Every key that the cells of a query read."""
    keys = [step.key for step in cells.steps if isinstance(step, Enter)]
    waiting = [cells.rules]
    while waiting:
        rules = waiting.pop()
        if isinstance(rules, Branch):
            keys.append(rules.key)
            waiting.extend(rules.children)
    return keys
