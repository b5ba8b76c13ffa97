"""Generated patients, after the medical example on the Friedman-Schuster slides.

`slide_records` are the 14 records of the slide. `patients(n)` draws any number of people whose diagnosis follows the
slide's own decision tree (by blood pressure, then temperature or cough) most of the time, with age, ward and a history of
earlier diagnoses added.
"""

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema

PRESSURE = ("Low", "Normal", "High")
WEIGHT = ("Underweight", "Normal", "Overweight")
TEMPERATURE = ("Normal", "High")
COUGH = ("False", "True")
DIAGNOSIS = ("Healthy", "Sick")
WARDS = ("north", "south", "east", "west", "children", "intensive care")
HISTORY = ("flu", "asthma", "diabetes", "fracture", "pneumonia", "migraine", "allergy", "hypertension")
LONGEST_HISTORY = 6

_SLIDE = """
Low Overweight High False Sick
Low Overweight High True Sick
Normal Overweight High False Healthy
High Normal High False Healthy
High Underweight Normal False Healthy
High Underweight Normal True Sick
Normal Underweight Normal True Healthy
Low Normal High False Sick
Low Underweight Normal False Healthy
High Normal Normal False Healthy
Low Normal Normal False Healthy
Normal Normal High True Healthy
Normal Overweight Normal False Healthy
High Normal High True Sick
"""


def slide_records() -> dict[str, list[str]]:
    """The 14 records of the slide "Decision Trees", as columns."""
    names = ("blood_pressure", "weight", "temperature", "cough", "diagnosis")
    rows = [line.split() for line in _SLIDE.strip().splitlines()]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def patients_schema(*, rows_at_most: int = 1_000_000, extended: bool = True) -> Schema:
    """The public facts about generated patients; `extended=False` fits the slide's own records."""
    attributes: list[Nominal | Numeric | ItemList] = [
        Nominal("blood_pressure", PRESSURE, "Normal", missing="Normal"),
        Nominal("weight", WEIGHT, "Normal", missing="Normal"),
        Nominal("temperature", TEMPERATURE, "Normal", missing="Normal"),
        Nominal("cough", COUGH, "False", missing="False"),
        Nominal("diagnosis", DIAGNOSIS, "Healthy", missing="Healthy"),
    ]
    if extended:
        attributes += [
            Numeric("age", Decimal(0), Decimal(110), Decimal(1), Decimal(40)),
            Nominal("ward", WARDS, "north", missing="north"),
            ItemList("history", HISTORY, LONGEST_HISTORY),
        ]
    return Schema("patients", tuple(attributes), rows_at_most, "diagnosis", ("patient_id",) if extended else ())


def patients(n: int, *, seed: int = 2010) -> dict[str, list[object]]:
    """`n` generated patients as columns, the same for the same seed. Histories are texts separated by '|'."""
    if n < 0:
        raise RequestError(f"The number of patients must not be negative. Got {n} instead.")
    draw = np.random.default_rng(seed)
    age = np.clip(draw.gamma(6.0, 8.5, n), 0, 110).astype(int)
    old = age >= 60
    pressure = _pick(draw, np.where(old[:, None], [0.15, 0.35, 0.5], [0.3, 0.5, 0.2]))
    weight = _pick(draw, np.where(old[:, None], [0.15, 0.45, 0.4], [0.2, 0.55, 0.25]))
    temperature = _pick(draw, np.tile([0.6, 0.4], (n, 1)))
    cough = _pick(draw, np.tile([0.65, 0.35], (n, 1)))
    # The slide's tree: Low pressure -> sick with fever; High pressure -> sick with cough; Normal pressure -> healthy.
    by_slide = np.where(pressure == 0, temperature == 1, np.where(pressure == 2, cough == 1, False))
    sick = np.where(draw.random(n) < 0.08 + 0.06 * old, ~by_slide, by_slide)
    ward = _pick(draw, _ward_chances(age, sick))
    return {
        "patient_id": [f"P{number:07d}" for number in range(n)],
        "blood_pressure": _names(PRESSURE, pressure),
        "weight": _names(WEIGHT, weight),
        "temperature": _names(TEMPERATURE, temperature),
        "cough": _names(COUGH, cough),
        "age": age.tolist(),
        "ward": _names(WARDS, ward),
        "history": _histories(draw, age, pressure, cough),
        "diagnosis": _names(DIAGNOSIS, sick.astype(int)),
    }


def _pick(draw: np.random.Generator, chances: NDArray[np.float64]) -> NDArray[np.int64]:
    """One category for each row, by that row's chances."""
    ends = np.cumsum(chances, axis=1)
    picked: NDArray[np.int64] = (draw.random((len(chances), 1)) * ends[:, -1:] >= ends).sum(axis=1)
    return picked


def _ward_chances(age: NDArray[np.int64], sick: NDArray[np.bool_]) -> NDArray[np.float64]:
    chances = np.tile([0.3, 0.28, 0.2, 0.17, 0.0, 0.05], (len(age), 1))
    chances[age < 16] = [0.02, 0.02, 0.02, 0.02, 0.9, 0.02]
    chances[sick & (age >= 70), 5] = 0.3
    return chances


def _histories(
    draw: np.random.Generator, age: NDArray[np.int64], pressure: NDArray[np.int64], cough: NDArray[np.int64]
) -> list[object]:
    """Earlier diagnoses in order of time, more with age; hypertension and asthma follow pressure and cough."""
    base = np.array([0.25, 0.08, 0.07, 0.2, 0.08, 0.15, 0.2, 0.1])
    lengths = np.minimum(draw.poisson(age / 30.0), LONGEST_HISTORY)
    histories: list[object] = []
    for length, high, coughs in zip(lengths.tolist(), (pressure == 2).tolist(), (cough == 1).tolist(), strict=True):
        chances = base + 0.3 * high * (np.arange(8) == 7) + 0.15 * coughs * (np.arange(8) == 1)
        ends = np.cumsum(chances)
        places = np.searchsorted(ends, draw.random(length) * ends[-1], side="right").tolist()
        histories.append("|".join(HISTORY[place] for place in places))
    return histories


def _names(labels: tuple[str, ...], codes: NDArray[np.int64]) -> list[object]:
    return [labels[code] for code in codes.tolist()]
