"""What users do with a release: rows to mine, the same generalisation for other rows, rows in the raw domains, a schema."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support.laws import ALARM, p_value
from support.mined_tables import Table, schema_of, table_of, without_class
from support.opening import HUGE, fitted, opened, recorded
from support.releases import every, form_of, shown_groups, true_groups, undated, value_of

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.baselines import C45
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.models.cuts import CutValue
from dpmine.models.trees import encode_rows
from dpmine.questions.histogram import Histogram
from dpmine.questions.sparse_histogram import SparseHistogram
from dpmine.release import released as released_module
from dpmine.release.contingency import ContingencyTable
from dpmine.release.estimator import ReleaseEstimator
from dpmine.release.released import ReleasedTable
from dpmine.tables.private_table import PrivateTable

BASE = schema_of(lists=True, classes=3)
# The class stands in the middle, so that the order of the schema is not that of the predictors and then the class.
SCHEMA = Schema("mined", (*BASE.attributes[:2], BASE.attributes[-1], *BASE.attributes[2:-1]), 1000, "class")
TABLE = table_of(BASE, 200, 1)
ORDER = [attribute.name for attribute in SCHEMA.attributes if attribute.name != "past"]


@pytest.fixture(scope="module", params=range(8), ids=lambda number: f"{number % 4}{'noisy' if number < 4 else 'exact'}")
def model(request: pytest.FixtureRequest) -> ReleaseEstimator:
    return fitted(every(1 if request.param < 4 else HUGE)[request.param % 4], TABLE, SCHEMA)


# -- rows --------------------------------------------------------------------------------------------------------------


def test_rows_are_as_many_as_the_counts_say_in_the_order_of_the_schema(model: ReleaseEstimator) -> None:
    released, rows = model.release(), model.rows()
    assert list(rows) == ORDER
    assert {len(column) for column in rows.values()} == {len(released)} == {int(released.counts.sum())}
    names = list(released.values)
    found = Counter(zip(*(rows[name] for name in names), rows["class"], strict=True))
    assert found == {
        (*group, label): count for group, counts in released.to_dict().items() for label, count in counts.items() if count
    }
    assert model.rows() == rows  # nothing is drawn


def test_training_rows_are_transformed_into_their_groups(model: ReleaseEstimator) -> None:
    released = model.release()
    transformed = model.transform(TABLE)
    assert list(transformed) == [name for name in ORDER if name != "class"]
    codes, count = encode_rows(TABLE, SCHEMA, list(transformed))
    for name, column in transformed.items():
        assert column == [value_of(released, name, int(codes[name][row])) for row in range(count)]
    if float(model.budget) == HUGE:
        assert shown_groups(model) == true_groups(model, TABLE, SCHEMA)
        groups = Counter(zip(*transformed.values(), strict=True))
        assert groups == {group: sum(counts) for group, counts in shown_groups(model).items()}


def test_values_cover_every_code_once(model: ReleaseEstimator) -> None:
    for name, values in model.release().values.items():
        codes = sorted(code for value in values for code in value.codes)
        assert codes == list(range(SCHEMA.single(name).size))
        assert len({value.name for value in values}) == len(values)


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "without class", "other columns", "one row", "no rows"])
def test_other_rows_of_all_kinds_are_transformed_alike(kind: str) -> None:
    model = fitted(dm.DiffGen(HUGE, 6), TABLE, SCHEMA)
    expected = model.transform(TABLE)
    short = {"one row": 1, "no rows": 0}.get(kind, 200)
    handed: Any = {
        "dict": TABLE,
        "pandas": pd.DataFrame(TABLE),
        "polars": pl.DataFrame(TABLE),
        "without class": without_class(TABLE),
        "other columns": {**TABLE, "more": list(range(200))},
    }.get(kind, {name: column[:short] for name, column in TABLE.items()})
    assert model.transform(handed) == {name: column[:short] for name, column in expected.items()}


def test_arrays_have_the_schema_s_columns_in_order() -> None:
    schema = schema_of()
    table = table_of(schema, 60, 1)
    model = fitted(dm.DiffGen(HUGE, 6), table, schema)
    array = np.array(list(zip(*without_class(table).values(), strict=True)), dtype=object)
    assert model.transform(array) == model.transform(table)
    with pytest.raises(dm.RequestError, match="An array must have one column for each"):
        model.transform(array[:, 1:])


def test_values_that_the_schema_does_not_know_go_where_it_says() -> None:
    """Unknown categories are `other`, numbers are clamped and floored, nulls are `missing`."""
    model = fitted(ContingencyTable(HUGE, bins=21), TABLE, SCHEMA)
    strange = {name: column[:4] for name, column in TABLE.items()}
    strange |= {"colour": ["mauve", None, "green", ""], "size": [-5, 99, None, 3.14]}
    found = model.transform(strange)
    assert found["colour"] == ["red", "red", "green", "red"]
    assert found["size"] == ["0 to <0.5", "10 to 10", "0 to <0.5", "3 to <3.5"]


# -- the schema of rows, and learners ----------------------------------------------------------------------------------


def test_the_generalised_schema_fits_the_rows(model: ReleaseEstimator) -> None:
    schema, rows = model.release().generalised_schema(), model.rows()
    assert [attribute.name for attribute in schema.attributes] == ORDER == list(rows)
    assert all(isinstance(attribute, Nominal) for attribute in schema.attributes)
    assert (schema.class_attribute, schema.class_labels, schema.unit) == ("class", SCHEMA.class_labels, Unit())
    for attribute in schema.attributes:
        assert isinstance(attribute, Nominal)
        assert set(rows[attribute.name]) <= set(attribute.categories)
        if attribute.name != "class":
            assert attribute.categories == tuple(value.name for value in model.release().values[attribute.name])
    _, count = encode_rows(rows, schema, ORDER)
    assert count == len(model.release())
    again, _ = encode_rows(model.transform(TABLE) | {"class": TABLE["class"]}, schema, ORDER)
    sent, rows_count = encode_rows(TABLE, SCHEMA, [name for name in ORDER if name != "class"])
    for name, column in model.transform_codes(sent, rows_count).items():
        assert column.tolist() == again[name].tolist()


def test_a_tree_trained_on_the_rows_answers_for_transformed_rows() -> None:
    """Without noise the rows are the training rows generalised, so the tree that they teach is the same."""
    model = fitted(dm.DiffGen(HUGE, 8, "infogain"), TABLE, SCHEMA)
    schema = model.release().generalised_schema()
    tree = C45().fit(model.rows(), schema=schema)
    generalised = model.transform(TABLE)
    other = C45().fit({**generalised, "class": TABLE["class"]}, schema=schema)
    assert tree.predict(generalised).tolist() == other.predict(generalised).tolist()
    right = float(np.mean(tree.predict(generalised) == np.array(TABLE["class"], dtype=object)))
    assert right > max(Counter(TABLE["class"]).values()) / 200


def test_a_tree_trains_on_noisy_rows_too(model: ReleaseEstimator) -> None:
    tree = C45().fit(model.rows(), schema=model.release().generalised_schema())
    assert len(tree.predict(model.transform(TABLE))) == 200
    raw = C45().fit(model.rows(raw=True, seed=1), schema=SCHEMA)
    assert len(raw.predict(TABLE)) == 200


def test_rows_become_a_private_table_of_their_own() -> None:
    model = fitted(dm.DiffGen(5, 4), TABLE, SCHEMA)
    with opened(model.rows(), model.release().generalised_schema(), 100) as private:
        assert abs(int(private.count(epsilon=100)) - len(model.release())) <= 1  # beyond 1 with a chance of e^-200


# -- rows in the raw domains -------------------------------------------------------------------------------------------


def raw_kinds() -> dict[str, type]:
    return {"size": float, "age": int, "half": int, "colour": str, "kind": str, "flag": str, "constant": str, "class": str}


def test_raw_rows_lie_under_the_values_of_their_groups(model: ReleaseEstimator) -> None:
    raw = model.rows(raw=True, seed=5)
    assert list(raw) == ORDER
    for name, kind in raw_kinds().items():
        assert all(type(value) is kind for value in raw[name])
    groups = Counter(zip(*model.transform(raw).values(), raw["class"], strict=True))
    rows = model.rows()
    names = list(model.release().values)
    assert groups == Counter(zip(*(rows[name] for name in names), rows["class"], strict=True))
    codes, _ = encode_rows(raw, SCHEMA, ORDER)
    for name in ("size", "age"):
        attribute = SCHEMA.single(name)
        assert isinstance(attribute, Numeric)
        assert [float(attribute.middle(int(code))) for code in codes[name]] == [float(value) for value in raw[name]]


def test_a_seed_makes_raw_rows_reproducible() -> None:
    model = fitted(dm.DiffGen(HUGE, 3), TABLE, SCHEMA)
    one, again, other = model.rows(raw=True, seed=5), model.rows(raw=True, seed=5), model.rows(raw=True, seed=6)
    assert one == again
    assert one != other
    assert model.rows(raw=True) != model.rows(raw=True)  # of 200 rows with dozens of choices each
    assert model.release().raw_rows(5) == one


def released_of(weights: Any, counts: Any) -> ReleasedTable:
    attributes = (Nominal("letter", tuple("abcdef"), "a", missing="a"), Nominal("class", ("no", "yes"), "no", missing="no"))
    values = {"letter": (CutValue("left", (0, 2, 4)), CutValue("right", (1, 3, 5)))}
    schema = Schema("drawn", attributes, 10**6, "class")
    table = np.array(counts, dtype=np.int64)
    return ReleasedTable(schema, values, np.array([[0], [1]]), table, {} if weights is None else {"letter": weights})


def drawn_by_class(released: ReleasedTable) -> dict[tuple[int, int], list[int]]:
    """For each value and class how often each letter was drawn."""
    codes, label = released.raw_codes(seed=11)
    found = {}
    for place, value in enumerate(released.values["letter"]):
        for number in range(2):
            chosen = codes["letter"][(label == number) & np.isin(codes["letter"], value.codes)]
            found[place, number] = [int((chosen == code).sum()) for code in value.codes]
    return found


COUNTS = [[20_000, 10_000], [5_000, 40_000]]
WEIGHTS: dict[str, Any] = {
    "none": None,
    "all alike": np.array([1.0, 2, 3, 4, 5, 6]),
    "with zeros": np.array([0.0, 2, 3, 0, 1, 6]),
    "negative ones count as zero": np.array([-3.0, 2, 3, -1, 1, 6]),
    "nothing at all": np.zeros(6),
    "nothing on one side": np.array([0.0, 2, 0, 4, 0, 6]),
}


def law_of(weights: Any, codes: tuple[int, ...]) -> list[float]:
    if weights is None:
        return [1 / 3] * 3
    row = np.maximum(weights[list(codes)], 0)
    return (row / row.sum()).tolist() if row.sum() > 0 else [1 / 3] * 3


@pytest.mark.parametrize("kind", WEIGHTS)
def test_raw_rows_respect_the_weights(kind: str) -> None:
    """Chi-square of each value and class against the weights, the same for all classes: false alarms below 1e-6 (seeded)."""
    released = released_of(WEIGHTS[kind], COUNTS)
    for (place, label), seen in drawn_by_class(released).items():
        assert sum(seen) == COUNTS[place][label]
        assert p_value(seen, law_of(WEIGHTS[kind], released.values["letter"][place].codes)) > ALARM


def test_other_weights_are_noticed() -> None:
    """The check can fail: 1 part in 10 more of one letter is seen."""
    released = released_of(np.array([1.0, 2, 3, 4, 5, 6]), COUNTS)
    seen = drawn_by_class(released)[1, 1]
    assert p_value(seen, law_of(np.array([1.0, 2.2, 3, 4, 5, 6]), (1, 3, 5))) < ALARM


def test_attributes_are_drawn_independently_within_a_group_and_rows_are_shuffled() -> None:
    """Chi-square of pairs of letters against evenness: false alarms below 1e-6 (seeded)."""
    attributes = (
        *(Nominal(name, ("a", "b", "c"), "a", missing="a") for name in "xy"),
        Nominal("class", ("no", "yes"), "no", missing="no"),
    )
    whole = {name: (CutValue("any", (0, 1, 2)),) for name in "xy"}
    released = ReleasedTable(
        Schema("two", attributes, 10**6, "class"), whole, np.array([[0, 0]]), np.array([[20_000, 20_000]])
    )
    codes, label = released.raw_codes(seed=2)
    pairs = np.bincount(codes["x"] * 3 + codes["y"], minlength=9).tolist()
    assert p_value(pairs, [1 / 9] * 9) > ALARM
    assert abs(int(label[:20_000].sum()) - 10_000) < 6 * 100 * 0.71  # hypergeometric, deviation 71


def test_frequencies_are_the_noisy_ones_and_never_negative() -> None:
    with recorded(TABLE, SCHEMA, 1) as (private, recorder):
        model = dm.DiffGen(1, 3, frequency_share=0.01).fit(private)
    names = [name for name in ORDER if name != "class"]
    for name, (_, reply) in zip(names, recorder.asked, strict=False):
        answered = np.maximum(np.array(reply.answer.numbers[0]), 0)
        assert model.release().weights[name].tolist() == answered.tolist()
    assert set(model.release().weights) == set(names)


# -- more than can be written ------------------------------------------------------------------------------------------


def test_of_too_many_records_so_many_are_written_as_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that is paid can always be written: too many records are thinned in proportion, to the same each time."""
    monkeypatch.setattr(released_module, "MOST_ROWS_WRITTEN", 1000)
    released = released_of(None, np.array([[3_000_000, 1_000_000], [0, 2_000_000]]))
    assert (len(released), released.rows_written) == (6_000_000, 1000)
    rows = released.rows()
    assert Counter(zip(rows["letter"], rows["class"], strict=True)) == {
        (released.values["letter"][0].name, "no"): 500,
        (released.values["letter"][0].name, "yes"): 166,
        (released.values["letter"][1].name, "yes"): 334,
    }
    assert rows == released.rows()
    assert [len(column) for column in released.raw_rows(seed=1).values()] == [1000, 1000]


def test_the_sheet_says_how_many_records_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted(dm.DiffGen(HUGE, 2), TABLE, SCHEMA)
    assert model.sheet()["records_written"] == model.sheet()["records"] == 200
    monkeypatch.setattr(released_module, "MOST_ROWS_WRITTEN", 50)
    sheet = model.sheet()
    assert (sheet["records"], sheet["records_written"]) == (200, 50)
    assert "Of 200 records 50 are written, each standing for as many as any other." in sheet["meaning"]


def test_a_release_shows_its_cuts_in_words() -> None:
    model = fitted(dm.DiffGen(HUGE, 2), TABLE, SCHEMA)
    released = model.release()
    first, *lines = repr(released).splitlines()
    assert first == f"200 records in {len(released.groups)} groups"
    names = released.value_names()
    assert [line.split("  ", 1)[1].strip() for line in lines] == [", ".join(texts) for texts in names.values()]
    assert sum(len(texts) > 1 for texts in names.values()) >= 1


def test_lists_are_said_to_be_left_out() -> None:
    assert "Lists are not released: past." in fitted(dm.DiffGen(1, 2), TABLE, SCHEMA).sheet()["meaning"]


# -- a known total -----------------------------------------------------------------------------------------------------


def test_counts_add_up_to_the_noisy_number_of_rows() -> None:
    for _ in range(5):
        with recorded(TABLE, SCHEMA, 1) as (private, recorder):
            model = dm.DiffGen(1, 4, total_share=0.2).fit(private)
        (total,) = recorder.asked[0][1].answer.numbers[0] or ()
        assert total > 0  # 200 rows and noise of scale 5: at most 0 with a chance of e^-40
        assert len(model.release()) == total


def test_what_adds_up_is_not_said_to_hold_records_by_noise_alone() -> None:
    """The expected number is one of noisy counts before they were changed, and may exceed all that are shown."""
    for share in (0, 0.2):
        sheet = fitted(dm.DiffGen("0.1", 6, total_share=share), TABLE, SCHEMA).sheet()
        told = " ".join(sheet["meaning"])
        assert ("records_in_those_at_most_about" in sheet["counts"]) == ("though no record is there" in told) == (share == 0)
        assert ("made to add up" in told) == (share > 0)


def test_a_noisy_number_of_rows_below_zero_releases_no_row() -> None:
    """Of an empty table about every second time, so 40 tries without one have a chance below 1e-12."""
    empty: Table = {name: [] for name in TABLE}
    for _ in range(40):
        model = fitted(dm.DiffGen(1, 2, total_share=0.2), empty, SCHEMA)
        if len(model.release()) == 0:
            break
    assert len(model.release()) == len(model.release().groups) == 0
    assert model.rows() == {name: [] for name in ORDER}
    assert model.rows(raw=True, seed=1) == {name: [] for name in ORDER}
    assert model.release().to_dict() == {}
    assert model.release().generalised_schema().class_attribute == "class"


# -- a release that fails ----------------------------------------------------------------------------------------------


class Breaking:
    """An executor that fails when groups or values are counted, as a lost connection would."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    def answer(self, query: Any, *, key: str | None = None) -> Any:
        if isinstance(query.question, SparseHistogram | Histogram):
            raise ConnectionError
        return self._executor.answer(query, key=key)


@pytest.mark.parametrize("kind", ["DiffGen", "ContingencyTable", "TreeRelease"])
def test_a_second_fit_that_fails_leaves_the_first_release_whole(kind: str) -> None:
    first: dict[str, ReleaseEstimator] = {
        "DiffGen": dm.DiffGen(HUGE // 4, 2),
        "ContingencyTable": ContingencyTable(HUGE // 4, bins=2),
        "TreeRelease": dm.TreeRelease(HUGE // 4, max_depth=1),
    }
    model: Any = first[kind]
    with opened(TABLE, SCHEMA, HUGE) as private:
        model.fit(private)
        before = model.transform(TABLE), form_of(model.release()), undated(model.sheet())
        name, value = {"DiffGen": ("specialisations", 7), "ContingencyTable": ("bins", 5)}.get(kind, ("max_depth", 4))
        model.set_params(**{name: value})
        with pytest.raises(ConnectionError):
            model.fit(PrivateTable(Breaking(private._executor)))
    assert (model.transform(TABLE), form_of(model.release()), undated(model.sheet())) == before


def test_rows_that_cannot_be_fitted_say_so() -> None:
    for model in (dm.DiffGen(1, 2), dm.TreeRelease(1)):
        uses = (model.release, model.rows, lambda: model.transform(TABLE), lambda: model.rows(raw=True), model.sheet)  # noqa: B023
        for use in uses:
            with pytest.raises(dm.RequestError, match=rf"This {type(model).__name__} is not fitted yet\. Call fit first\."):
                use()


def test_to_dict_is_the_release(model: ReleaseEstimator) -> None:
    released = model.release()
    form = released.to_dict()
    assert len(form) == len(released.groups)
    assert sum(sum(counts.values()) for counts in form.values()) == len(released)
    assert all(list(counts) == list(SCHEMA.class_labels) for counts in form.values())


def test_the_release_of_a_file_is_that_of_its_rows(tmp_path: Path) -> None:
    schema = schema_of()
    table = table_of(schema, 60, 1)
    pd.DataFrame(table).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "facts.toml").write_text(schema.to_toml())
    by_file = dm.DiffGen(HUGE, 40).fit(tmp_path / "rows.csv", schema=tmp_path / "facts.toml")
    assert form_of(by_file.release()) == form_of(fitted(dm.DiffGen(HUGE, 40), table, schema).release())
    assert by_file.transform(tmp_path / "rows.csv") == by_file.transform(table)


def test_the_middles_of_cells_come_back_as_numbers_of_their_kind() -> None:
    attributes = (
        Numeric("tens", Decimal(0), Decimal(100), Decimal(10), Decimal(0)),
        Numeric("halves", Decimal("0.5"), Decimal("9.5"), Decimal(1), Decimal("0.5")),
        Numeric("below", Decimal(-3), Decimal(3), Decimal(1), Decimal(0)),
        Nominal("class", ("no", "yes"), "no", missing="no"),
    )
    schema = Schema("grids", attributes, 100, "class")
    table = {"tens": [10, 25, 100], "halves": [0.5, 3.7, 9.5], "below": [-3, 0, 3], "class": ["no", "yes", "no"]}
    raw = fitted(ContingencyTable(HUGE, bins=50), table, schema).rows(raw=True, seed=1)
    assert sorted(zip(*raw.values(), strict=True)) == [
        (14.5, 0.95, -3, "no"),  # the middle of 10, 11, ..., 19, and of 0.5, 0.6, ..., 1.4
        (24.5, 3.95, 0, "yes"),
        (100, 9.5, 3, "no"),
    ]
    assert Epsilon.parse(HUGE) == fitted(ContingencyTable(HUGE), table, schema).cost_
