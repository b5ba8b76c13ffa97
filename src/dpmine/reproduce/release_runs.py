"""What experiments with released tables share: the accuracy of C4.5 on generalised rows, and how long a release takes."""

import csv
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmine.baselines import C45, TDS
from dpmine.engines.encoding import EncodedTable
from dpmine.facts.encoding import Codes, smallest_type
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.owner.opening import open as open_table
from dpmine.release.diffgen import DiffGen
from dpmine.reproduce.tree_runs import Sample, fitted

READING, ANONYMISATION, WRITING, TOTAL = "reading", "anonymisation", "writing", "total"


def diffgen_accuracy(sample: Sample, *, epsilon: float, specialisations: int, score: str) -> float:
    """Release the training rows by DiffGen as published, train on the release; the percentage of test rows got right."""
    model = fitted(DiffGen(epsilon=epsilon, specialisations=specialisations, score=score), sample.training)
    released = model.release()
    group, label = np.nonzero(released.counts)  # a row for each group and class, which counts so many times
    rows = {
        name: released.groups[group, place].astype(smallest_type(len(values)))
        for place, (name, values) in enumerate(released.values.items())
    }
    tree = C45().fit_codes(
        rows, label.astype(np.uint16), released.generalised_schema(), weights=released.counts[group, label]
    )
    return _share_right(tree, model.transform_codes(sample.test.codes, sample.test.rows), sample.test)


def tds_accuracy(sample: Sample, *, k: int) -> float:
    """NOT PRIVATE. Generalise the training rows to k-anonymity, train on them; the percentage of test rows got right."""
    schema = sample.training.schema
    columns, target = sample.training.codes, schema.require_class()
    cuts = TDS(k).fit_codes(columns, columns[target], schema)
    tree = C45().fit_codes(cuts.transform_codes(columns), columns[target], generalised_schema(schema, cuts.cut_texts()))
    return _share_right(tree, cuts.transform_codes(sample.test.codes), sample.test)


def majority_accuracy(sample: Sample) -> float:
    """NOT PRIVATE. Of test rows the percentage that have the most frequent class of the training rows."""
    target = sample.training.schema.require_class()
    most_frequent = np.argmax(np.bincount(sample.training.codes[target]))
    return float(np.mean(sample.test.codes[target] == most_frequent) * 100)


def _share_right(tree: Any, rows: Mapping[str, Codes], test: EncodedTable) -> float:
    return float(np.mean(tree.predict_codes(rows, test.rows) == test.codes[test.schema.require_class()]) * 100)


def generalised_schema(schema: Schema, texts: Mapping[str, tuple[str, ...]]) -> Schema:
    """The facts about generalised rows: every attribute that has texts, with these as its categories, and the class."""
    target = schema.require_class()
    attributes = tuple(
        Nominal(attribute.name, texts[attribute.name], texts[attribute.name][0], missing=texts[attribute.name][0])
        if attribute.name in texts
        else attribute
        for attribute in schema.attributes
        if attribute.name in texts or attribute.name == target
    )
    return replace(schema, attributes=attributes, unit=Unit())


# -- how long it takes -------------------------------------------------------------------------------------------------


def seconds_of_a_release(
    table: Path, schema: Schema, release: Path, *, epsilon: float, specialisations: int
) -> dict[str, float]:
    """Read a CSV file, release it by DiffGen and write the released rows as CSV: the seconds of each step."""
    model = DiffGen(epsilon=epsilon, specialisations=specialisations)
    moments = [time.perf_counter()]
    with open_table(table, schema=schema, ledger=None, cap=model.budget) as data:
        moments.append(time.perf_counter())
        model.fit(data.grant("experiment", epsilon=model.budget), progress=False)
    moments.append(time.perf_counter())
    write_columns(model.rows(), release)
    moments.append(time.perf_counter())
    steps = dict(zip((READING, ANONYMISATION, WRITING), np.diff(moments).tolist(), strict=True))
    return {**steps, TOTAL: moments[-1] - moments[0]}


def write_columns(columns: Mapping[str, Iterable[Any]], path: Path) -> None:
    """Columns of the same length as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
