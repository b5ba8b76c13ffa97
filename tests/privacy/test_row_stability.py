"""Stability of views: wherever a row is added, every view, part and cell gains that row or nothing."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tiny_tables import KINDS, SCHEMA, Row, encoded, engine

from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.hashing import row_parts
from dpmine.engines.memory.cells import cell_ids
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.keys import AttributeKey, Bins, Part, Test
from dpmine.language.parsing import parse_predicate
from dpmine.language.resolver import resolve_cells
from dpmine.language.views import LEAF, Cell, Step, Where

Parts = Callable[[Sequence[Any]], Sequence[int]]
SALTS = ["train-test", "fold", ""]
WEIGHTS = [(1, 1), (4, 1), (1, 1, 1), (999_999, 1)]


def tagged(parts: Parts, rows: Sequence[Any]) -> Counter[Any]:
    """The multiset of (row, part)."""
    return Counter(zip(rows, parts(rows), strict=True))


def distance(one: Counter[Any], other: Counter[Any]) -> int:
    return ((one - other) + (other - one)).total()


def insertions(rows: Sequence[Any], kinds: Sequence[Any]) -> Iterator[list[Any]]:
    for row in kinds:
        for place in range(len(rows) + 1):
            yield [*rows[:place], row, *rows[place:]]


def moves_only_the_new_row(parts: Parts, rows: Sequence[Any], kinds: Sequence[Any]) -> bool:
    """Whether a new row of any kind at any place leaves every other row (of a kind) in its part."""
    before = tagged(parts, rows)
    return all(distance(tagged(parts, more), before) == 1 for more in insertions(rows, kinds))


def keyed_parts(salt: str, weights: tuple[int, ...], split_key: bytes) -> Parts:
    return lambda rows: row_parts(encoded(rows), split_key, salt, weights).tolist()


# -- keyed-hash parts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_a_new_row_moves_no_other_row_between_parts(weights: tuple[int, ...]) -> None:
    """All tables of up to two rows in every order, duplicates too, each new row at each place."""
    for salt in SALTS:
        parts = keyed_parts(salt, weights, b"k" * 32)
        for count in range(3):
            for rows in itertools.product(KINDS[:4], repeat=count):
                assert moves_only_the_new_row(parts, rows, KINDS[:4])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(KINDS), max_size=12), st.binary(min_size=32, max_size=32), st.sampled_from(WEIGHTS))
def test_a_new_row_moves_no_other_row_in_larger_tables(rows: list[Row], key: bytes, weights: tuple[int, ...]) -> None:
    assert moves_only_the_new_row(keyed_parts("s", weights, key), rows, KINDS[::5])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(KINDS), max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[Row], random: Any) -> None:
    parts = keyed_parts("s", (1, 1), b"k" * 32)
    shuffled = random.sample(rows, len(rows))
    assert tagged(parts, shuffled) == tagged(parts, rows)


def by_position(rows: Sequence[Any]) -> list[int]:
    """Planted mistake (erratum E14): equal parts by row number."""
    return [place * 2 // max(len(rows), 1) for place in range(len(rows))]


def by_alternation(rows: Sequence[Any]) -> list[int]:
    return [place % 2 for place in range(len(rows))]


def by_rank(rows: Sequence[Any]) -> list[int]:
    """Planted mistake: sorted first, then cut in halves."""
    order = np.argsort([KINDS.index(row) for row in rows], kind="stable")
    parts = np.empty(len(rows), dtype=int)
    parts[order] = [place * 2 // max(len(rows), 1) for place in range(len(rows))]
    return parts.tolist()


@pytest.mark.parametrize("mistake", [by_position, by_alternation, by_rank])
def test_the_stability_check_catches_parts(mistake: Parts) -> None:
    tables = [rows for count in range(3) for rows in itertools.product(KINDS[:4], repeat=count)]
    assert not all(moves_only_the_new_row(mistake, rows, KINDS[:4]) for rows in tables)


WIDE = Schema(
    name="wide",
    attributes=(
        *(Nominal(f"n{number}", tuple(map(str, range(2000))), "0", missing="0") for number in range(7)),
        Numeric("x", Decimal(0), Decimal(4000), Decimal(1), Decimal(0)),
        ItemList("items", ("a", "b", "c"), 3),
        ItemList("more", ("a", "b", "c"), 3),
    ),
    rows_at_most=100,
)


def wide_parts(rows: Sequence[tuple[Any, ...]]) -> list[int]:
    """Eight columns with 2^89 combinations and two lists: identities no longer fit one integer and are renumbered."""
    names = [attribute.name for attribute in WIDE.attributes]
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return row_parts(encode(open_source(columns), WIDE), b"k" * 32, "s", (1, 1)).tolist()


def test_wide_rows_and_lists_are_as_stable() -> None:
    base = ("7", "1999", "3", "0", "5", "1", "2", 3999, "a|b", "c")
    kinds = [base, (*base[:8], "b|a", "c"), (*base[:8], "a|b", ""), ("8", *base[1:]), (*base[:7], 0, "a|b", "c")]
    for count in range(3):
        for rows in itertools.product(kinds, repeat=count):
            assert moves_only_the_new_row(wide_parts, rows, kinds)


# -- rows are values and gaps, not codes -------------------------------------------------------------------------------

FINE = Schema(
    name="fine",
    attributes=(
        Numeric("x", Decimal(0), Decimal(4), Decimal(2), "own", resolution=Decimal("0.5")),  # four values share a code
        Numeric("y", Decimal(0), Decimal(10), None, "drop", edges=(Decimal(9),)),
        Nominal("n", ("a", "b"), None),
    ),
    rows_at_most=100,
)
FINE_KINDS = [(0.0, 0.0, "a"), (0.5, 0.0, "a"), (1.5, 0.0, "a"), (None, 0.0, "a"), (4.0, None, "a"), (4.0, 10.0, None)]


def fine_table(rows: Sequence[tuple[Any, ...]]) -> EncodedTable:
    return encode(open_source({name: [row[place] for row in rows] for place, name in enumerate("xyn")}), FINE)


def fine_parts(rows: Sequence[tuple[Any, ...]]) -> list[int]:
    return row_parts(fine_table(rows), b"k" * 32, "s", (1, 1, 1)).tolist()


def parts_by_codes(rows: Sequence[tuple[Any, ...]]) -> list[int]:
    """Planted mistake: a row is its codes."""
    table = fine_table(rows)
    coded = EncodedTable(table.schema, table.rows, table.codes, table.lists, table.encoding)
    return row_parts(coded, b"k" * 32, "s", (1, 1, 1)).tolist()


def test_rows_whose_values_are_finer_than_codes_are_as_stable() -> None:
    for count in range(3):
        for rows in itertools.product(FINE_KINDS, repeat=count):
            assert moves_only_the_new_row(fine_parts, rows, FINE_KINDS)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(FINE_KINDS), max_size=12))
def test_they_are_in_larger_tables(rows: list[tuple[Any, ...]]) -> None:
    assert moves_only_the_new_row(fine_parts, rows, FINE_KINDS)


def test_the_stability_check_catches_identity_over_codes() -> None:
    tables = [rows for count in range(3) for rows in itertools.product(FINE_KINDS, repeat=count)]
    assert not all(moves_only_the_new_row(parts_by_codes, rows, FINE_KINDS) for rows in tables)


def test_copies_of_one_row_are_spread_over_the_parts() -> None:
    """Their numbers 0, 1, 2, ... enter the hash: 1000 copies all in one part of two would be a chance of 2^-999."""
    for salt in SALTS:
        parts = keyed_parts(salt, (1, 1), b"k" * 32)([KINDS[0]] * 1000)
        assert 300 < sum(parts) < 700


# -- steps and cells ---------------------------------------------------------------------------------------------------

STEPS: dict[str, tuple[Step, ...]] = {
    "where": (Where(parse_predicate("size >= 1")),),
    "where not": (Where(parse_predicate("not (colour == red or ill == yes)")),),
    "cell of an attribute": (Cell(AttributeKey("colour"), 1),),
    "cell of bins": (Cell(Bins("size", ("1", "2")), 2),),
    "cell of a test": (Cell(Test(parse_predicate("ill == yes")), 0),),
    "part": (Cell(Part("s", (1, 1)), 1),),
    "part of a part of a where": (
        Where(parse_predicate("size >= 1")),
        Cell(Part("s", (1, 1)), 0),
        Cell(Part("t", (1, 1)), 1),
    ),
}


def kept(steps: tuple[Step, ...], rows: Sequence[Row]) -> Counter[Row]:
    """The rows inside the view, as a multiset."""
    ids = cell_ids(resolve_cells(steps, LEAF, SCHEMA), engine(rows)._rows).ids
    assert ids is not None
    return Counter(row for row, outside in zip(rows, ids.tolist(), strict=True) if not outside)


def first_two(steps: tuple[Step, ...], rows: Sequence[Row]) -> Counter[Row]:
    """Planted mistake: Take(2)."""
    return Counter(rows[:2])


def worst_step(keep: Callable[[tuple[Step, ...], Sequence[Row]], Counter[Row]], steps: tuple[Step, ...]) -> int:
    """The largest distance between a view of a table and of the table with one more row."""
    worst = 0
    for rows in itertools.product(KINDS[::2], repeat=2):
        before = keep(steps, rows)
        worst = max(worst, *(distance(keep(steps, more), before) for more in insertions(rows, KINDS[::2])))
    return worst


@pytest.mark.parametrize("name", STEPS)
def test_every_step_has_stability_one(name: str) -> None:
    assert worst_step(kept, STEPS[name]) == 1


def test_the_step_check_catches_taking_the_first_rows() -> None:
    assert worst_step(first_two, ()) == 2
