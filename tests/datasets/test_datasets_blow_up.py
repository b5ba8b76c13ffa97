"""Blown-up tables: rows of the small table, or variations of them, the same whether drawn from codes or from columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmine.base.errors import RequestError
from dpmine.datasets import adult, adult_schema, blown_up, diffgen_blow_up, patients, patients_schema
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.facts.sources import open_source

FALSE_ALARM = 1e-6
SCHEMA = patients_schema()
COLUMNS = patients(300)
SINGLES = [name for name in COLUMNS if name not in ("patient_id", "history")]


def encoded(columns: dict[str, list[object]]) -> EncodedTable:
    return encode(open_source(columns), SCHEMA)


def assert_same_codes(one: EncodedTable, other: EncodedTable) -> None:
    assert one.rows == other.rows
    assert one.values.keys() == other.values.keys()
    for name, codes in one.values.items():
        assert codes.dtype == other.values[name].dtype
        assert np.array_equal(codes, other.values[name]), name
    for name, lists in one.lists.items():
        assert np.array_equal(lists.rows, other.lists[name].rows)
        assert np.array_equal(lists.items, other.lists[name].items)


def likely(times: int, trials: int, chance: float, *, tests: int = 1) -> bool:
    """Whether a binomial count is credible; wrongly not with probability at most FALSE_ALARM over that many tests."""
    return bool(stats.binomtest(times, trials, chance).pvalue > FALSE_ALARM / tests)


@pytest.mark.parametrize("rows", [1, 299, 5_000])
def test_drawing_codes_and_drawing_columns_give_the_same_rows(rows: int) -> None:
    drawn = blown_up(encoded(COLUMNS), rows, seed=4)
    assert_same_codes(drawn, encoded(blown_up(COLUMNS, rows, seed=4)))
    assert drawn.rows == drawn.schema.rows_at_most == rows
    assert drawn.encoding == "generated"


def test_every_drawn_row_is_a_row_of_the_table_and_each_is_drawn_alike() -> None:
    drawn = blown_up(COLUMNS, 30_000, seed=5)
    assert set(zip(*drawn.values(), strict=True)) <= set(zip(*COLUMNS.values(), strict=True))
    ids = drawn["patient_id"]
    assert all(likely(ids.count(name), 30_000, 1 / 300, tests=300) for name in COLUMNS["patient_id"])


def test_a_blow_up_is_reproducible_by_its_seed() -> None:
    assert blown_up(COLUMNS, 100, seed=1) == blown_up(COLUMNS, 100, seed=1) != blown_up(COLUMNS, 100, seed=2)
    once, again, other = (diffgen_blow_up(COLUMNS, 2, schema=SCHEMA, seed=seed) for seed in (1, 1, 2))
    assert once == again != other


@pytest.mark.parametrize("scale", [1, 2, 7])
def test_varying_codes_and_varying_columns_give_the_same_rows(scale: int) -> None:
    varied = diffgen_blow_up(encoded(COLUMNS), scale, seed=6)
    assert_same_codes(varied, encoded(diffgen_blow_up(COLUMNS, scale, schema=SCHEMA, seed=6)))
    assert varied.rows == varied.schema.rows_at_most == 300 * scale


def test_the_originals_come_first_and_class_lists_and_other_columns_stay() -> None:
    varied = diffgen_blow_up(COLUMNS, 5, schema=SCHEMA, seed=7)
    assert {name: values[:300] for name, values in varied.items()} == COLUMNS
    for name in ("diagnosis", "history", "patient_id"):
        assert varied[name] == COLUMNS[name] * 5


@pytest.mark.parametrize("replaced", [0.0, 0.25, 0.5, 1.0])
def test_values_are_replaced_at_the_stated_rate_by_uniform_ones(replaced: float) -> None:
    table = encoded(COLUMNS)
    varied = diffgen_blow_up(table, 101, seed=8, replaced=replaced)
    names = [name for name in SINGLES if name != "diagnosis"]
    for name in names:
        size, codes = SCHEMA.single(name).size, varied.codes[name][300:]
        changed = int((codes != np.tile(table.codes[name], 100)).sum())
        assert likely(changed, 30_000, replaced * (1 - 1 / size), tests=4 * len(names))
        if replaced == 1:
            counts = np.bincount(codes, minlength=size)
            assert stats.chisquare(counts).pvalue > FALSE_ALARM / len(names)


def test_a_table_left_as_it_is_would_be_noticed() -> None:
    assert not likely(0, 30_000, 0.25 * (1 - 1 / 2), tests=100)


def test_what_cannot_be_blown_up_is_refused() -> None:
    nobody = {name: values[:0] for name, values in COLUMNS.items()}
    for ask in (
        lambda: blown_up(nobody, 10),
        lambda: blown_up(COLUMNS, 0),
        lambda: blown_up({"a": [1], "b": []}, 1),
        lambda: diffgen_blow_up(COLUMNS, 0, schema=SCHEMA, seed=1),
        lambda: diffgen_blow_up(COLUMNS, 2, schema=SCHEMA, seed=1, replaced=1.5),
        lambda: diffgen_blow_up(COLUMNS, 2, seed=1),  # type: ignore[call-overload]
        lambda: diffgen_blow_up({"age": [1, 2]}, 2, schema=SCHEMA, seed=1),
    ):
        with pytest.raises(RequestError):
            ask()


@pytest.mark.usefixtures("data_folder")
def test_adult_grows_by_the_scale_of_the_paper() -> None:
    schema = adult_schema(complete=True)
    table = encode(open_source(adult(complete=True)), schema)
    varied = diffgen_blow_up(table, 5, seed=9)
    assert varied.rows == 5 * 45_222
    assert all(int(codes.max()) < schema.single(name).size for name, codes in varied.codes.items())
    assert np.array_equal(varied.codes["income"], np.tile(table.codes["income"], 5))
