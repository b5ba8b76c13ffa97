"""From records to means: a row for each point, algorithm and measure, with the published number beside it."""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmine.reproduce.experiments import Outcome, Point, Published, canonical


@dataclass(frozen=True)
class Row:
    """Mean and standard deviation (with runs - 1) of one measure, and its standard error; the published numbers beside."""

    point: Point
    algorithm: str
    measure: str
    runs: int
    mean: float
    std: float
    standard_error: float
    published: Published | None = None

    @property
    def z_score(self) -> float | None:
        """The difference to the published mean in standard errors of that difference; None where they cannot be known."""
        if self.published is None or (self.published.std is None and self.runs < 2):
            return None
        return z_score(self, self.published)


def z_score(ours: Row, printed: Published) -> float:
    """Both deviations count, and the rounding of the printed mean: an error spread evenly over a step of its last digit."""
    theirs = ours.std if printed.std is None else printed.std
    spread = ours.std**2 / ours.runs + theirs**2 / printed.runs + printed.step**2 / 12
    return (ours.mean - printed.mean) / math.sqrt(spread)


def summarise(outcome: Outcome) -> list[Row]:
    """A row for each point, algorithm and measure, in the order of the experiment."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    points: dict[str, Point] = {}
    for record in outcome.records:
        name = canonical(dict(record.point))
        points[name] = record.point
        for measure, number in record.measures.items():
            groups.setdefault((name, record.algorithm, measure), []).append(number)
    printed = {(canonical(dict(p.point)), p.algorithm, p.measure): p for p in outcome.experiment.published}
    rows = [_row(points[key[0]], key[1], key[2], numbers, printed.get(key)) for key, numbers in groups.items()]
    order = {name: place for place, name in enumerate(outcome.experiment.algorithms)}
    place = {canonical(dict(point)): number for number, point in enumerate(outcome.points)}
    return sorted(rows, key=lambda row: (place.get(canonical(dict(row.point)), -1), order[row.algorithm]))


def _row(point: Point, algorithm: str, measure: str, numbers: Sequence[float], printed: Published | None) -> Row:
    runs = len(numbers)
    std = float(np.std(numbers, ddof=1)) if runs > 1 else 0.0
    return Row(point, algorithm, measure, runs, float(np.mean(numbers)), std, std / math.sqrt(runs), printed)


def write_summary(rows: Sequence[Row], path: Path) -> None:
    """The rows as CSV: the parameters of the grid first, published numbers last where any are printed."""
    parameters = list(dict.fromkeys(name for row in rows for name in row.point))
    write_csv((row_form(row, parameters) for row in rows), path)


def row_form(row: Row, parameters: Iterable[str]) -> dict[str, Any]:
    """One row by the names of its columns; what does not apply is empty."""
    z = row.z_score
    return {
        **{name: row.point.get(name, "") for name in parameters},
        "algorithm": row.algorithm,
        "measure": row.measure,
        "runs": row.runs,
        "mean": round(row.mean, 4),
        "std": round(row.std, 4),
        "standard_error": round(row.standard_error, 4),
        "published_mean": "" if row.published is None else row.published.mean,
        "published_std": "" if row.published is None or row.published.std is None else row.published.std,
        "z_score": "" if z is None else round(z, 2),
    }


def write_csv(forms: Iterable[dict[str, Any]], path: Path) -> None:
    """Rows of the same columns as CSV, replacing what was there."""
    listed = list(forms)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(listed[0]) if listed else [])
        writer.writeheader()
        writer.writerows(listed)
