"""Proposes a schema by looking at a table: a helper for owners, outside the budget, to be reviewed line by line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import takewhile
from pathlib import Path
from typing import Any

from dpmine.errors import SchemaError
from dpmine.frames import Source, reading
from dpmine.schema import MOST_ROWS, Attribute, ItemList, Nominal, Numeric, Schema, TaxonomyNode

MOST_DRAFTED_CATEGORIES = 100
MOST_DRAFTED_POINTS = 128
FEW_NUMBERS = 10  # a numeric column with at most this many whole values is drafted as nominal
CLASS_NAMES = ("class", "target", "label", "outcome", "income", "diagnosis", "y")
LIST_SEPARATOR = "|"
FEW_CATEGORIES = 3  # so many, apart from `other`, are drafted without a taxonomy: there is little to generalise
TAXONOMY_ROOT = "Any"
WORD = re.compile(r"[^-_/.,;:()\s]+")


def draft(table: Any, *, name: str | None = None) -> Schema:
    """A schema that fits the table as it is. Says of itself that it was drafted from the data."""
    with reading(table) as source:
        return _draft(source, name or _name(table))


def _draft(source: Source, name: str) -> Schema:
    attributes: list[Attribute] = []
    drop: list[str] = []
    for column in source.columns:
        attribute = _attribute(source, column)
        if attribute is None:
            drop.append(column)
        else:
            attributes.append(attribute)
    source.check_read_in_one_state()
    if not attributes:
        raise SchemaError("No column of this table can become an attribute: each has too many different texts.")
    class_attribute = _class(attributes)
    return Schema(
        name=name,
        attributes=tuple(item if item.name == class_attribute else _with_taxonomy(item) for item in attributes),
        rows_at_most=min(_round_up(max(source.rows, 1)), MOST_ROWS),
        class_attribute=class_attribute,
        drop=tuple(drop),
        drafted=True,
    )


def _name(table: Any) -> str:
    stem = Path(table).name.split(".")[0] if isinstance(table, (str, Path)) else "table"
    return "".join(part if part.isalnum() or part in "-_" else "-" for part in stem) or "table"


def _class(attributes: list[Attribute]) -> str | None:
    nominal = [attribute.name for attribute in attributes if isinstance(attribute, Nominal)]
    named = [name for name in nominal if name.lower() in CLASS_NAMES]
    return named[0] if named else None


def _attribute(source: Source, column: str) -> Attribute | None:
    """A proposal for one column; None if it looks like an identifier or free text."""
    if _holds_lists(source, column):
        return _list_attribute(source, column)
    texts = [text for text in source.texts(column) if text is not None]
    distinct = sorted(set(texts))
    numbers = [_finite(text) for text in distinct]
    if distinct and all(number is not None for number in numbers):
        values = [number for number in numbers if number is not None]
        if len(values) > FEW_NUMBERS or any(number != number.to_integral_value() for number in values):
            if _looks_like_identifier(column, distinct, source.rows):
                return None
            return _numeric(column, min(values), max(values), whole=all(n == n.to_integral_value() for n in values))
        distinct = sorted(distinct, key=Decimal)
    if _mostly_lists(distinct):
        return _list_attribute(source, column)
    if len(distinct) > MOST_DRAFTED_CATEGORIES:
        return None
    others = [text for text in distinct if text.lower() in ("other", "?", "unknown", "n/a")]
    other = others[0] if others else "other"
    return Nominal(column, tuple(distinct if others else [*distinct, other]), other)


def _with_taxonomy(attribute: Attribute) -> Attribute:
    if not isinstance(attribute, Nominal):
        return attribute
    return replace(attribute, taxonomy=taxonomy_by_names(attribute.categories, attribute.other))


def taxonomy_by_names(categories: Iterable[str], other: str) -> TaxonomyNode | None:
    """Categories grouped by the words that their names begin with; None where that gives no group.

    It is a function of the set of names and is given nothing else. A grouping by how often categories occur, or by the
    classes of their rows, would be learned from rows, and DiffGen takes the taxonomy for public.
    """
    named = sorted(set(categories) - {other})  # `other` also takes gaps and unknown values, so it belongs to no group
    if len(named) <= FEW_CATEGORIES:
        return None
    groups = _groups(named)
    if not groups:
        return None
    taken = {category.casefold() for category in (*named, other)}
    root = _unused(TAXONOMY_ROOT, taken)
    nodes = [TaxonomyNode(_unused(_shared_beginning(group), taken), tuple(map(TaxonomyNode, group))) for group in groups]
    grouped = {category for group in groups for category in group}
    alone = [category for category in (*named, other) if category not in grouped]
    return TaxonomyNode(root, (*nodes, *map(TaxonomyNode, alone)))


def _groups(named: Sequence[str]) -> list[list[str]]:
    """Two or more names that go on with the same word, after the words with which all names begin."""
    skipped = _shared_words(named)  # what all share tells none of them apart, and would put all below one node
    groups: dict[str, list[str]] = {}
    for name in named:
        words = _words(name)[skipped:]
        # A number in front is an amount, a rank, a range or a date: '10-14' and '10-19', '1st-4th'. It names no kind.
        if words and words[0][0].isalpha():
            groups.setdefault(words[0], []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _words(name: str) -> list[str]:
    return [word.casefold() for word in WORD.findall(name)]


def _shared_words(names: Iterable[str]) -> int:
    places = zip(*map(_words, names), strict=False)
    return sum(1 for _ in takewhile(lambda words: len(set(words)) == 1, places))


def _shared_beginning(names: Sequence[str]) -> str:
    """The words with which all these names begin, as the first of them writes them."""
    words = list(WORD.finditer(names[0]))
    return names[0][words[0].start() : words[_shared_words(names) - 1].end()]


def _unused(name: str, taken: set[str]) -> str:
    """A name for a node that no category and no other node has; it counts as taken from now on."""
    while name.casefold() in taken:
        name += " (all)"
    taken.add(name.casefold())
    return name


def _finite(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except ArithmeticError:
        return None
    return number if number.is_finite() and abs(number) < Decimal(10) ** 14 else None


def _looks_like_identifier(column: str, distinct: list[str], rows: int) -> bool:
    name = column.lower()
    return len(distinct) == rows > 20 and (name == "id" or name.endswith(("_id", " id", "-id")) or name.startswith("id_"))


def _numeric(column: str, low: Decimal, high: Decimal, *, whole: bool) -> Numeric:
    """Round bounds outward to a round step that leaves at most MOST_DRAFTED_POINTS points."""
    width = max(high - low, Decimal(1) if whole else Decimal("0.001"))
    step = _round_step(width / (MOST_DRAFTED_POINTS - 2))
    if whole:
        step = max(step, Decimal(1))
    bottom = (low / step).to_integral_value("ROUND_FLOOR") * step
    top = (high / step).to_integral_value("ROUND_CEILING") * step
    top = top if top > bottom else bottom + step
    return Numeric(column, _tidy(bottom), _tidy(top), _tidy(step), _tidy(bottom))


def _round_step(width: Decimal) -> Decimal:
    """The smallest of 1, 2, 5 times a power of ten that is at least `width`."""
    power = Decimal(10) ** max(math.floor(math.log10(float(width))), -9)
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= width)


def _tidy(number: Decimal) -> Decimal:
    return number.quantize(Decimal(1)) if number == number.to_integral_value() else number.normalize()


def _round_up(rows: int) -> int:
    power = int(10 ** (len(str(rows)) - 1))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rows)


def _holds_lists(source: Source, column: str) -> bool:
    return any(item.startswith("[") for item in (source.texts(column)[:100]) if item)


def _mostly_lists(distinct: list[str]) -> bool:
    return sum(LIST_SEPARATOR in text for text in distinct) * 2 > len(distinct)


def _list_attribute(source: Source, column: str) -> ItemList | None:
    lists = source.lists(column, LIST_SEPARATOR)
    items = sorted({item for row in lists for item in row})
    if not items or len(items) > 10_000:
        return None
    return ItemList(column, tuple(items), max(map(len, lists)), LIST_SEPARATOR)
