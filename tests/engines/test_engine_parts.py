"""Parts by keyed hash: balanced, independent between salts, fixed for one ledger, and stable when a row is added.

Statistical tests here have a false-alarm rate of at most 1e-6 each, and none once they passed: their keys are fixed.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_strategies import Small, small_tables, values_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dpmine as dm
from dpmine.datasets import patients, patients_schema
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.engines.hashing import row_parts
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source

FALSE_ALARM = 1e-6
PATIENTS = encode(open_source(patients(20_000)), patients_schema())

BASKETS = Schema("baskets", (ItemList("basket", tuple(f"item {n}" for n in range(40)), 8),), 10_000)
ONE_NUMBER = Schema("numbers", (Numeric("x", Decimal(0), Decimal(4095), Decimal(1), Decimal(0)),), 10_000)
COPIES = Schema("copies", (Nominal("x", ("a",), "a", missing="a"),), 10_000)


def tables() -> dict[str, EncodedTable]:
    draw = random.Random(7)
    baskets = [[f"item {draw.randrange(40)}" for _ in range(draw.randrange(1, 8))] for _ in range(8000)]
    return {
        "patients": PATIENTS,
        "different baskets and nothing else": encode(open_source({"basket": baskets}), BASKETS),
        "one number counted up": encode(open_source({"x": list(range(4096)) * 2}), ONE_NUMBER),
        "copies of one row": encode(open_source({"x": ["a"] * 8000}), COPIES),
        "empty baskets": encode(open_source({"basket": [""] * 8000}), BASKETS),
    }


TABLES = tables()


def p_value(parts: np.ndarray, weights: tuple[int, ...]) -> float:
    observed = np.bincount(parts, minlength=len(weights))
    expected = len(parts) * np.array(weights) / sum(weights)
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("weights", [(4, 1), (1, 1, 1), (999_999, 1), (1,) * 10])
def test_parts_are_as_large_as_their_weights_say(name: str, weights: tuple[int, ...]) -> None:
    """The smallest of 5 p-values stays above 1e-6 / 5 with probability 1 - 1e-6."""
    table = TABLES[name]
    keys = [bytes([number]) * 32 for number in range(5)]
    found = [row_parts(table, key, "salt", weights) for key in keys]
    if min(weights) / sum(weights) * table.rows < 5:
        assert max(int((parts == len(weights) - 1).sum()) for parts in found) <= 5
        return
    assert min(p_value(parts, weights) for parts in found) > FALSE_ALARM / len(keys)


@pytest.mark.parametrize("name", TABLES)
def test_splits_with_different_salts_are_independent(name: str) -> None:
    table = TABLES[name]
    parts = [row_parts(table, bytes(32), salt, (1, 1, 1)) for salt in ("", "a", "b", "train-test")]
    pairs = [(left, right) for number, left in enumerate(parts) for right in parts[:number]]
    for left, right in pairs:
        crossed = stats.contingency.crosstab(left, right).count
        assert stats.chi2_contingency(crossed).pvalue > FALSE_ALARM / len(pairs)


def test_splits_with_different_keys_are_independent() -> None:
    one, other = (row_parts(PATIENTS, key, "salt", (1, 1, 1)) for key in (bytes(32), b"\x01" * 32))
    assert stats.chi2_contingency(stats.contingency.crosstab(one, other).count).pvalue > FALSE_ALARM


def test_a_part_does_not_follow_any_attribute() -> None:
    parts = row_parts(PATIENTS, bytes(32), "salt", (1, 1))
    for codes in PATIENTS.codes.values():
        crossed = stats.contingency.crosstab(codes, parts).count
        crossed = crossed[crossed.sum(axis=1) >= 10]
        assert stats.chi2_contingency(crossed).pvalue > FALSE_ALARM / len(PATIENTS.codes)


def pairs_of(table: EncodedTable, parts: np.ndarray) -> Counter[tuple[Any, ...]]:
    """The multiset of (row, part)."""
    lists: list[list[tuple[int, ...]]] = []
    for column in table.lists.values():
        found: list[list[int]] = [[] for _ in range(table.rows)]
        for row, item in zip(column.rows.tolist(), column.items.tolist(), strict=True):
            found[row].append(item)
        lists.append([tuple(items) for items in found])
    singles = [values.tolist() for values in table.values.values()]  # rows that share all codes may differ
    return Counter(zip(*singles, *lists, parts.tolist(), strict=True))


@given(small_tables().flatmap(lambda small: st.tuples(st.just(small), st.data())))
@settings(max_examples=150)
def test_adding_a_row_anywhere_changes_the_part_of_no_other_row(drawn: tuple[Small, st.DataObject]) -> None:
    small, data = drawn
    place = data.draw(st.integers(0, small.rows))
    if small.rows and data.draw(st.booleans()):
        copied = data.draw(st.integers(0, small.rows - 1))
        added = {name: values[copied] for name, values in small.table.items()}
    else:
        added = {attribute.name: data.draw(values_of(attribute)) for attribute in small.schema.attributes}
    larger = {name: [*values[:place], added[name], *values[place:]] for name, values in small.table.items()}
    found = []
    for table in (small.table, larger):
        coded = encode(open_source(table), small.schema)
        found.append(pairs_of(coded, row_parts(coded, bytes(32), "salt", (2, 1, 1))))
    before, after = found
    assert not before - after
    assert sum((after - before).values()) == 1


@given(small_tables())
def test_the_number_among_identical_rows_counts_the_earlier_ones(small: Small) -> None:
    coded = encode(open_source(small.table), small.schema)
    whole = list(pairs_of(coded, np.arange(coded.rows)))
    rows = {pair[-1]: pair[:-1] for pair in whole}
    expected = [sum(rows[earlier] == rows[row] for earlier in range(row)) for row in range(coded.rows)]
    assert coded.occurrence.tolist() == expected


def test_identical_rows_are_found_exactly_where_codes_do_not_fit_one_integer() -> None:
    """Ten columns of 4,096 points have 2^120 combinations: more than any machine word holds."""
    names = [f"x{number}" for number in range(10)]
    schema = Schema("many", tuple(Numeric(name, Decimal(0), Decimal(4095), Decimal(1), Decimal(0)) for name in names), 1000)
    draw = random.Random(3)
    distinct = [[draw.choice([0, 4095, draw.randrange(4096)]) for _ in names] for _ in range(100)]
    rows = [distinct[draw.randrange(100)] for _ in range(1000)]
    coded = encode(open_source({name: [row[place] for row in rows] for place, name in enumerate(names)}), schema)
    seen: Counter[tuple[int, ...]] = Counter()
    for row, number in zip(rows, coded.occurrence.tolist(), strict=True):
        assert number == seen[tuple(row)]
        seen[tuple(row)] += 1


# -- through ledgers ---------------------------------------------------------------------------------------------------


def ages(data: dm.DataSet, *, test: str = "0.5", salt: str = "train-test") -> list[int]:
    """The ages of the patients in the second part, counted so exactly that noise is 0 but for a chance below e^-100."""
    private = data.grant("alice", epsilon=10_000)
    return private.split(test=test, salt=salt)[1].histogram("age", epsilon=100).counts.tolist()  # type: ignore[no-any-return]


def test_a_split_is_the_same_whenever_the_table_is_opened_with_the_same_ledger(tmp_path: Path) -> None:
    records, schema = patients(2000), patients_schema()
    ledger = tmp_path / "ledger.db"
    found = []
    for version in ("1", "2", "1"):
        with dm.open(records, schema=schema, ledger=ledger, cap=100_000, version=version) as data:
            found.append(ages(data))
    order = list(range(2000))
    random.Random(5).shuffle(order)
    shuffled = {name: [values[place] for place in order] for name, values in records.items()}
    with dm.open(shuffled, schema=schema, ledger=ledger, cap=100_000, version="3") as data:
        found.append(ages(data))
    assert found[0] == found[1] == found[2] == found[3]


def test_a_split_is_another_one_with_another_ledger(tmp_path: Path) -> None:
    records, schema = patients(2000), patients_schema()
    found = []
    for name in ("one.db", "other.db"):
        with dm.open(records, schema=schema, ledger=tmp_path / name, cap=100_000) as data:
            found.append(ages(data))
    with dm.open(records, schema=schema, cap=100_000) as data:
        found.append(ages(data))
    assert found[0] != found[1] != found[2] != found[0]


def test_two_splits_with_different_salts_differ_and_each_covers_every_row_once() -> None:
    records, schema = patients(2000), patients_schema()
    truth = np.bincount(records["age"], minlength=111)
    with dm.open(records, schema=schema, cap=100_000) as data:
        one, other = ages(data), ages(data, salt="another")
        assert one != other
        train, test = data.private("alice").split(test="0.5")
        both = train.histogram("age", epsilon=100).counts + test.histogram("age", epsilon=100).counts
        np.testing.assert_array_equal(both, truth)


@pytest.mark.parametrize(
    ("share", "weights"), [("0.2", (4, 1)), (0.25, (3, 1)), (Decimal("0.000001"), (999_999, 1)), (0.5, (1, 1))]
)
def test_the_share_of_a_split_is_read_exactly(share: Any, weights: tuple[int, int]) -> None:
    from dpmine.tables.private_table import _shares

    assert _shares(share) == weights


@pytest.mark.parametrize("share", [0, 1, -0.5, 1.5, "1e-9", "x", math.nan, math.inf, None, True, "0.9999999"])
def test_a_share_that_leaves_nothing_on_one_side_is_refused(share: Any) -> None:
    with dm.open({"x": ["a"]}, schema=COPIES, cap=1) as data:
        private = data.grant("alice", epsilon=1)
        with pytest.raises(dm.RequestError, match="share between 0 and 1"):
            private.split(test=share)
