"""How often intervals hold the truth on real tables, under schemas as they are drafted, through the real door.

Of flights, Adult and the KDD census every numeric column of the drafted schema is asked for its sum, mean, standard
deviation, median and 90 % quantile, each with fresh noise every time. The truth is that of the column as it is, clamped to
the drafted bounds, worked out by numpy from the true values, without rounding. An interval has to hold it in 95 % of the
tries; a quantile has to be as few rows away as it says. Needs DPMINE_DATA.

Keys:
    tries                                    of each question at each epsilon
    coverage[data][column][statistic]        the share of tries in which the interval held the true value (sum, mean, std),
                                             or the statement about ranks was true (median, q90): the lower of epsilon 0.1
                                             and 1
    width[data][column][statistic]           of sum and mean: the median width of the interval over that of the exact law,
                                             the larger of epsilon 0.1 and 1
    rmse_over_law[data][column]              of the mean at epsilon 1: the root mean squared error over the deviation of the
                                             law, sqrt(2) (high - low) / (epsilon n) sqrt(p^2 + (1 - p)^2)
    lowest                                   the lowest coverage of all, and where it was
    widest                                   the largest width of all, and where it was
    largest_rmse                             the largest of these ratios, and where it was
    below_92                                 how many coverages lie below 92 %
    questions                                how many coverages there are
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import dpmine as dm
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.sources import open_source
from dpmine.noise.contrasts import half_width
from harness import arguments, data_folder, finish, say, sized

TRIES = sized(1_000, rehearsal=3)
ROWS = sized(None, rehearsal=300)
EPSILONS = ("0.1", "1")
FILES = {"flights": "flights", "adult": "adult", "census": "census_income_kdd"}
SEEN = 0.92
QUANTILES = {"median": "0.5", "q90": "0.9"}

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Column:
    """A column's true values, clamped and without gaps, and what is true of them."""

    attribute: Numeric
    values: Numbers

    @property
    def width(self) -> float:
        return float(self.attribute.high - self.attribute.low)

    def truth(self, statistic: str) -> float:
        return float({"sum": np.sum, "mean": np.mean, "std": np.std}[statistic](self.values))

    def exact_width(self, statistic: str, epsilon: float) -> float:
        """Of a 95 % interval by the exact law of the noise, for who knew the number of rows and the mean."""
        attribute, rows = self.attribute, len(self.values)
        if statistic == "sum":
            largest = max(abs(float(attribute.low)), abs(float(attribute.high)))
            spent = epsilon * (0.95 if attribute.gap is not None else 1)
            return 2 * largest / spent * math.log(20)
        share = (self.truth("mean") - float(attribute.low)) / self.width
        steps = attribute.values - 1
        return 2 * half_width((1 - share, share), steps / epsilon, 0.95) / steps * self.width / rows

    def deviation(self, epsilon: float) -> float:
        """Of the mean, by its law."""
        share = (self.truth("mean") - float(self.attribute.low)) / self.width
        return math.sqrt(2) * self.width / (epsilon * len(self.values)) * math.hypot(share, 1 - share)

    def rows_away(self, value: float, order: float) -> float:
        """By how many rows a value is from being that quantile."""
        ordered = self._ordered
        below, up_to = np.searchsorted(ordered, value, "left"), np.searchsorted(ordered, value, "right")
        wanted = order * len(ordered)
        return float(max(0.0, below - wanted, wanted - up_to))

    @cached_property
    def _ordered(self) -> Numbers:
        return np.sort(self.values)


def columns_of(frame: pd.DataFrame, schema: dm.Schema) -> Iterator[Column]:
    for attribute in schema.of_kind(Numeric):
        if attribute.name in frame:
            values = pd.to_numeric(frame[attribute.name], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
            known = values[~np.isnan(values)]
            yield Column(attribute, np.clip(known, float(attribute.low), float(attribute.high)))


def asked(table: EncodedTable, column: Column, epsilon: str) -> dict[str, list[Any]]:
    """Every answer of every try: each try is an analyst of its own, so that no answer comes from the cache."""
    name = column.attribute.name
    data = dm.open(table, schema=table.schema, cap=100_000, ledger=None)
    answers: dict[str, list[Any]] = {}
    for number in range(TRIES):
        private = data.grant(f"try{number}", epsilon=10)
        answers.setdefault("sum", []).append(private.sum(name, epsilon=epsilon))
        answers.setdefault("mean", []).append(private.mean(name, epsilon=epsilon))
        answers.setdefault("std", []).append(private.std(name, epsilon=epsilon))
        for statistic, order in QUANTILES.items():
            answers.setdefault(statistic, []).append(private.quantile(name, order, epsilon=epsilon))
    data.close()
    return answers


def measured(
    column: Column, answers: dict[str, list[Any]], epsilon: float
) -> tuple[dict[str, float], dict[str, float], float]:
    """Coverages, widths over the exact law, and the error of the mean over its law."""
    coverage, widths = {}, {}
    for statistic in ("sum", "mean", "std"):
        truth, found = column.truth(statistic), answers[statistic]
        slack = 1e-9 * max(abs(truth), 1e-300)  # of doubles alone
        coverage[statistic] = float(np.mean([each.low - slack <= truth <= each.high + slack for each in found]))
        if statistic != "std":
            width = float(np.median([each.high - each.low for each in found]))
            widths[statistic] = width / column.exact_width(statistic, epsilon)
    for statistic, order in QUANTILES.items():
        far = [column.rows_away(each.value, float(order)) <= each.rows_away for each in answers[statistic]]
        coverage[statistic] = float(np.mean(far))
    errors = np.array([each.value for each in answers["mean"]]) - column.truth("mean")
    return coverage, widths, float(np.sqrt(np.mean(errors**2))) / column.deviation(epsilon)


def main() -> None:
    options = arguments(__doc__ or "", tuple(FILES))
    result: dict[str, Any] = {"tries": TRIES, "coverage": {}, "width": {}, "rmse_over_law": {}}
    for data in options.names:
        path = data_folder() / f"{FILES[data]}.parquet"
        schema = dm.Schema.draft(path)
        frame = pd.read_parquet(path)
        if ROWS is not None:
            frame = frame.iloc[:ROWS]
        table = encode(open_source(frame if ROWS is not None else path), schema)
        for column in columns_of(frame, schema):
            name, lowest, widest, rmse = column.attribute.name, {}, {}, 0.0
            for epsilon in EPSILONS:
                coverage, widths, rmse = measured(column, asked(table, column, epsilon), float(epsilon))
                lowest = {key: min(share, lowest.get(key, 1.0)) for key, share in coverage.items()}
                widest = {key: max(ratio, widest.get(key, 0.0)) for key, ratio in widths.items()}
            shown = {key: round(share, 4) for key, share in lowest.items()}
            result["coverage"].setdefault(data, {})[name] = shown
            result["width"].setdefault(data, {})[name] = {key: round(ratio, 4) for key, ratio in widest.items()}
            result["rmse_over_law"].setdefault(data, {})[name] = round(rmse, 4)
            say(f"{data} {name}: {shown}")
    _summarise(result)
    finish(result)


def _summarise(result: dict[str, Any]) -> None:
    shares = _leaves(result["coverage"])
    result["lowest"] = min(shares, key=lambda item: item[1])
    result["widest"] = max(_leaves(result["width"]), key=lambda item: item[1])
    result["largest_rmse"] = max(_leaves(result["rmse_over_law"]), key=lambda item: item[1])
    result["below_92"] = sum(share < SEEN for _, share in shares)
    result["questions"] = len(shares)


def _leaves(nested: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, item in nested.items():
        found += _leaves(item, (*path, key)) if isinstance(item, dict) else [(" ".join((*path, key)), item)]
    return found


if __name__ == "__main__":
    main()
