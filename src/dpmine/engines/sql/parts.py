"""Keyed hashes of rows, one round a layer: which part of a split a row falls into, and which rows of a person stay."""

from collections.abc import Sequence

from sqlglot import exp

from dpmine.codes.rows import HashedPart, RowKey
from dpmine.engines.hashing import PRIME, item_numbers
from dpmine.engines.persons import SALT as PERSONS
from dpmine.engines.sql.columns import CODED, ENCODED, PERSON, Columns
from dpmine.engines.sql.expressions import integer, is_not_null, layer, modulo, plus, times

OCCURRENCE = "occurrence"
ROUNDS = 3


def with_parts(keys: Sequence[RowKey], columns: Columns) -> exp.Expression:
    """The relation of codes with a column of hashes for each split that the keys read."""
    salts = list(dict.fromkeys(key.salt for key in keys if isinstance(key, HashedPart)))
    relation: exp.Expression = exp.to_table(CODED)
    if not salts:
        return relation
    everything = [exp.column(name) for name in columns.names]
    number = exp.Window(this=exp.RowNumber(), partition_by=everything)
    relation = layer(relation, {OCCURRENCE: exp.Sub(this=number, expression=integer(1))})
    columns.hashes = {salt: f"h{place}r{ROUNDS}" for place, salt in enumerate(salts)}
    relation = layer(relation, {f"h{place}r0": _sum(salt, columns) for place, salt in enumerate(salts)})
    for turn in range(ROUNDS):
        stirred = {}
        for place, salt in enumerate(salts):
            factor = columns.multipliers(salt)[turn]
            stirred[f"h{place}r{turn + 1}"] = _stirred(exp.column(f"h{place}r{turn}"), factor)
        relation = layer(relation, stirred)
    return relation


def capped(at_most: int, columns: Columns) -> exp.Select:
    """The relation `coded` from `encoded`, which also names each row's person: as `persons.capped`, row for row."""
    wide, drawn = columns.dialect.wide, columns.multipliers(PERSONS)
    named = plus(modulo(columns.dialect.name_hash(exp.column(PERSON)), PRIME), integer(1))  # as in `encoding.name_hash`
    start = modulo(plus(_content(PERSONS, columns), times(wide(named), integer(drawn[3]))), PRIME)
    relation = layer(exp.to_table(ENCODED), {"r0": start})
    for turn in range(ROUNDS):
        relation = layer(relation, {f"r{turn + 1}": _stirred(exp.column(f"r{turn}"), drawn[turn])})
    order = [exp.Ordered(this=exp.column(name), nulls_first=False) for name in (f"r{ROUNDS}", *columns.names)]
    number = exp.Window(this=exp.RowNumber(), partition_by=[exp.column(PERSON)], order=exp.Order(expressions=order))
    ranked = layer(relation, {"turn": number})
    kept = dict.fromkeys((*columns.names, *columns.codes.values()))
    return (
        exp.select(*(exp.column(name) for name in kept))
        .from_(ranked)
        .where(exp.LTE(this=exp.column("turn"), expression=integer(at_most)))
        .where(is_not_null(exp.column(PERSON)))
    )


def _sum(salt: str, columns: Columns) -> exp.Expression:
    """The same integers as in `hashing.row_parts`, before the rounds."""
    place = plus(modulo(columns.dialect.wide(exp.column(OCCURRENCE)), PRIME), integer(1))
    return modulo(plus(_content(salt, columns), times(place, integer(columns.multipliers(salt)[3]))), PRIME)


def _content(salt: str, columns: Columns) -> exp.Expression:
    """The keyed sum over a row's values and lists."""
    drawn = columns.multipliers(salt)
    numbers: list[exp.Expression] = [exp.column(name) for name in columns.values.values()]
    numbers += [_item_sum(attribute, drawn[:ROUNDS], columns) for attribute in columns.lists]
    hashed = integer(drawn[4])
    for number, factor in zip(numbers, drawn[5:], strict=True):
        hashed = modulo(plus(hashed, times(plus(columns.dialect.wide(number), integer(1)), integer(factor))), PRIME)
    return hashed


def _item_sum(attribute: str, rounds: list[int], columns: Columns) -> exp.Expression:
    """A number for each row's list: the sum of its stirred items."""
    stirred = item_numbers(len(columns.schema.listed(attribute).items), rounds)
    total = columns.dialect.sum_of_picked(stirred, exp.column(columns.lists[attribute]))
    return modulo(columns.dialect.wide(total), PRIME)


def _stirred(before: exp.Expression, factor: int) -> exp.Expression:
    """One round, as in `hashing._stirred`."""
    return modulo(plus(times(before, modulo(plus(before.copy(), integer(factor)), PRIME)), integer(factor)), PRIME)
