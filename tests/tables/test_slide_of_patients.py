"""The 14 records of the slide "Decision Trees": their histograms and the root of their tree, worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.executors import Opener

import dpmine as dm
from dpmine.base.errors import RequestError
from dpmine.datasets import patients, patients_schema, slide_records

RECORDS = slide_records()
SCHEMA = patients_schema(extended=False)
ATTRIBUTES = ["blood_pressure", "weight", "temperature", "cough"]
LARGEST = 1_000_000

# Counted by hand from the slide: (healthy, sick) for every value.
BY_HAND = {
    "blood_pressure": {"Low": (2, 3), "Normal": (4, 0), "High": (3, 2)},
    "weight": {"Underweight": (3, 1), "Normal": (4, 2), "Overweight": (2, 2)},
    "temperature": {"Normal": (6, 1), "High": (3, 4)},
    "cough": {"False": (7, 2), "True": (2, 3)},
}


@pytest.fixture
def slide(opened: Opener) -> dm.PrivateTable:
    """One question at the largest epsilon that there is, where noise is 0 but for a chance of 2 exp(-1,000,000)."""
    return opened(RECORDS, SCHEMA, epsilon=LARGEST)


def test_the_slide_has_fourteen_records_of_which_five_are_sick() -> None:
    assert {len(column) for column in RECORDS.values()} == {14}
    assert RECORDS["diagnosis"].count("Sick") == 5


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_the_histograms_of_the_slide_come_back_exactly(slide: dm.PrivateTable, name: str) -> None:
    histogram = slide.histogram(name, "diagnosis", epsilon=LARGEST)
    found = {label: (histogram[label, "Healthy"], histogram[label, "Sick"]) for label in histogram.labels[0]}
    assert found == BY_HAND[name]


def test_all_five_columns_together_come_back_exactly(slide: dm.PrivateTable) -> None:
    histogram = slide.histogram(*RECORDS, epsilon=LARGEST)
    assert histogram.counts.shape == (3, 3, 2, 2, 2)
    records = list(zip(*RECORDS.values(), strict=True))
    assert {labels: count for labels, count in histogram.items() if count} == {row: records.count(row) for row in records}


def test_counts_of_the_slide_come_back_exactly(slide: dm.PrivateTable) -> None:
    assert slide.where("blood_pressure == Low and temperature == High").count(epsilon=LARGEST).value == 3


def entropy(*counts: int) -> float:
    return -sum(count / sum(counts) * math.log2(count / sum(counts)) for count in counts if count)


def gain(name: str) -> float:
    groups = BY_HAND[name].values()
    return entropy(9, 5) - sum(sum(group) / 14 * entropy(*group) for group in groups)


def test_by_hand_the_root_is_blood_pressure() -> None:
    assert entropy(9, 5) == pytest.approx(0.940286, abs=1e-6)
    gains = {name: round(gain(name), 4) for name in ATTRIBUTES}
    assert gains == {"blood_pressure": 0.2467, "weight": 0.0292, "temperature": 0.1518, "cough": 0.1022}
    largest_class = {name: sum(max(group) for group in BY_HAND[name].values()) for name in ATTRIBUTES}
    assert largest_class == {"blood_pressure": 10, "weight": 9, "temperature": 10, "cough": 10}
    impurity = {
        name: sum(sum(group) - sum(count**2 for count in group) / sum(group) for group in BY_HAND[name].values())
        for name in ATTRIBUTES
    }
    assert min(impurity, key=lambda name: impurity[name]) == "blood_pressure"


@pytest.mark.parametrize("score", ["infogain", "gini"])
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize("calibration", ["monotone", "generic"])
def test_the_root_of_the_tree_is_blood_pressure(
    slide: dm.PrivateTable, score: Any, mechanism: str, calibration: str
) -> None:
    chosen = slide.choose(ATTRIBUTES, score=score, epsilon=LARGEST, mechanism=mechanism, calibration=calibration)
    assert chosen.key.title == "blood_pressure"
    assert chosen.labels == ("Low", "Normal", "High")


def test_by_the_largest_class_three_attributes_tie_and_weight_loses(slide: dm.PrivateTable) -> None:
    chosen = slide.choose(ATTRIBUTES, score="max", epsilon=LARGEST / 2)
    assert chosen.key.title in ("blood_pressure", "temperature", "cough")
    alone = slide.choose(["weight", "blood_pressure"], score="max", epsilon=LARGEST / 2)
    assert alone.key.title == "blood_pressure"


def test_below_the_root_the_slide_splits_by_temperature_and_by_cough(slide: dm.PrivateTable) -> None:
    low, normal, high = slide.cells("blood_pressure").choose(
        ["weight", "temperature", "cough"], score="infogain", epsilon=[LARGEST, 0, LARGEST]
    )
    assert low is not None
    assert low.key.title == "temperature"  # type: ignore[union-attr]
    assert normal is None
    assert high is not None
    assert high.key.title == "cough"  # type: ignore[union-attr]


# -- generated patients --------------------------------------------------------------------------------------------------


def test_generated_patients_are_the_same_for_the_same_seed() -> None:
    assert patients(50) == patients(50)
    assert patients(50) != patients(50, seed=1)
    assert {len(column) for column in patients(0).values()} == {0}
    with pytest.raises(RequestError, match="must not be negative"):
        patients(-1)


def test_generated_patients_fit_their_schema_and_follow_the_slide() -> None:
    from dpmine.facts.checking import check_table

    records = patients(4000)
    report = check_table(records, patients_schema())
    assert all(not any(column.changes.values()) for column in report.columns)
    assert report.unread == ("patient_id",)
    assert len(set(records["patient_id"])) == 4000
    by_slide = np.array(
        [
            (temperature == "High" if pressure == "Low" else cough == "True" if pressure == "High" else False)
            for pressure, temperature, cough in zip(
                records["blood_pressure"], records["temperature"], records["cough"], strict=True
            )
        ]
    )
    agrees = by_slide == (np.array(records["diagnosis"]) == "Sick")
    assert 0.85 < agrees.mean() < 0.95
