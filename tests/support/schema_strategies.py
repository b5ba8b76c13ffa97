"""Hypothesis strategies for schemas: attributes of every kind, taxonomies, awkward names, awkward decimals."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal

from hypothesis import assume
from hypothesis import strategies as st
from support.wire_strategies import any_text

from dpmine.base.errors import SchemaError
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.kind import DROP, MISSING, OWN, Attribute
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.reading_rules import DEFAULT_RULES, ENCODINGS, QUOTES, THOUSANDS, ReadingRules
from dpmine.facts.schema import Schema

EXACT = Context(prec=200)
GRIDS = ("even", "edges", "log")


@st.composite
def decimals(draw: st.DrawFn, *, digits: int = 6, places: int = 3) -> Decimal:
    """A decimal with at most so many digits, at most `places` of them after the point."""
    whole = draw(st.integers(-(10**digits) + 1, 10**digits - 1))
    return Decimal(whole).scaleb(-draw(st.integers(0, places)), EXACT)


@st.composite
def numerics(
    draw: st.DrawFn, *, name: str = "x", digits: int = 6, places: int = 3, most: int = 4096, kinds: tuple[str, ...] = GRIDS
) -> Numeric:
    """A numeric attribute with 1 to `most` cells; neither its top nor its edges need lie on a value."""
    low = draw(decimals(digits=digits, places=places))
    step = abs(draw(decimals(digits=digits, places=places)))
    assume(step > 0)
    points = draw(st.integers(2, most))
    beyond = EXACT.multiply(step, draw(st.sampled_from([Decimal(0), Decimal("0.5"), Decimal("0.9")])))
    high = EXACT.add(low, EXACT.add(EXACT.multiply(step, Decimal(points - 1)), beyond))
    parts = [None, step, *(EXACT.divide(step, Decimal(part)) for part in (2, 5, 10, 1000)), *map(Decimal, ("1", "0.3", "7"))]
    resolution = draw(st.sampled_from(parts))
    gaps: list[Decimal | str] = [OWN, DROP, low, high]
    missing = draw(st.sampled_from(gaps))
    if draw(st.booleans()):
        missing = min(max(draw(decimals(digits=digits, places=places)), low), high)
    kind = draw(st.sampled_from(kinds))
    try:
        if kind == "edges":
            places_of_edges = sorted(draw(st.sets(st.integers(1, points - 1), min_size=1, max_size=6)))
            shift = EXACT.multiply(step, draw(st.sampled_from([Decimal(0), Decimal("-0.3")])))
            edges = tuple(EXACT.fma(step, Decimal(place), EXACT.add(low, shift)) for place in places_of_edges)
            return Numeric(name, low, high, None, missing, resolution, edges)
        if kind == "log":
            return Numeric(name, low, high, None, missing, resolution, scale="log")
        return Numeric(name, low, high, step, missing, resolution)
    except SchemaError:  # too fine for doubles, more than 2^30 values, or too long a decimal
        assume(False)
        raise AssertionError from None


@st.composite
def taxonomies(draw: st.DrawFn, leaves: tuple[str, ...], *, deepest: int = 3) -> TaxonomyNode:
    """A hierarchy over the given leaves, with any mixture of categories and inner nodes at each level."""

    def grow(name: str, members: tuple[str, ...], depth: int) -> TaxonomyNode:
        if depth == deepest or len(members) < 2:
            return TaxonomyNode(name, tuple(map(TaxonomyNode, members)))
        cuts = sorted(draw(st.sets(st.integers(1, len(members) - 1), max_size=3)))
        children = []
        for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(members)], strict=True)):
            part = members[start:end]
            if len(part) == 1 and draw(st.booleans()):
                children.append(TaxonomyNode(part[0]))
            else:
                children.append(grow(f"{draw(any_text)} {number}", part, depth + 1))
        if len({child.name for child in children}) != len(children):
            return TaxonomyNode(name, tuple(map(TaxonomyNode, members)))
        return TaxonomyNode(name, tuple(children))

    return grow(draw(any_text), leaves, 0)


@st.composite
def nominals(draw: st.DrawFn, *, name: str = "n") -> Nominal:
    categories = tuple(draw(st.lists(any_text.filter(lambda text: text != MISSING), min_size=1, max_size=6, unique=True)))
    order = tuple(draw(st.permutations(categories)))
    taxonomy = draw(st.none() | taxonomies(order))
    other = draw(st.none() | st.sampled_from(categories))
    return Nominal(name, categories, other, taxonomy, missing=draw(st.sampled_from([OWN, DROP, *categories])))


@st.composite
def item_lists(draw: st.DrawFn, *, name: str = "l") -> ItemList:
    items = tuple(draw(st.lists(any_text.filter(str.strip), min_size=1, max_size=6, unique=True)))
    return ItemList(name, items, draw(st.integers(1, 100)), draw(st.sampled_from(["|", ";", ", ", "\n"])))


def reading_rules() -> st.SearchStrategy[ReadingRules]:
    return st.builds(
        ReadingRules,
        sep=st.sampled_from([None, ",", ";", "\t", "|", "\x1f"]),
        encoding=st.sampled_from(ENCODINGS),
        quote=st.sampled_from(QUOTES),
        decimal=st.just(","),
        thousands=st.sampled_from([mark for mark in THOUSANDS if mark != ","]),
        comment=st.sampled_from(["", "#", "//"]),
    )


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(any_text, min_size=1, max_size=5, unique=True))
    known: list[Callable[..., st.SearchStrategy[Attribute]]] = [nominals, numerics, item_lists]
    kinds = [draw(st.sampled_from(known)) for _ in names]
    attributes: list[Attribute] = [draw(kind(name=name)) for kind, name in zip(kinds, names, strict=True)]
    nominal = [attribute.name for attribute in attributes if isinstance(attribute, Nominal) and attribute.gap != OWN]
    drop = draw(st.lists(any_text, max_size=2, unique=True))
    assume(not set(drop) & set(names))
    return Schema(
        name=draw(st.sampled_from(["patients", "a-b_c.1", "\u65e5\u672c", "X" * 80])),
        attributes=tuple(attributes),
        rows_at_most=draw(st.integers(1, 2**31 - 1)),
        class_attribute=draw(st.sampled_from(nominal) | st.none()) if nominal else None,
        drop=tuple(drop),
        drafted=draw(st.booleans()),
        read=draw(st.just(DEFAULT_RULES) | reading_rules()),
    )
