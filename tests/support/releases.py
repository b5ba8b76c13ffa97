"""Releases of small tables: the running example of the paper, several ways to release, and groups counted by hand."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from support.mined_tables import Table

import dpmine as dm
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.models.trees import encode_rows
from dpmine.release.contingency import ContingencyTable
from dpmine.release.estimator import ReleaseEstimator
from dpmine.release.released import ReleasedTable

SCORES = ("max", "infogain", "max-gain", "gini-gain")

# -- the running example of the paper ----------------------------------------------------------------------------------

JOBS = TaxonomyNode.parse("Any_Job", {"Professional": ["Engineer", "Lawyer"], "Artist": ["Dancer", "Writer"]})
TABLE_1A: Table = {
    "Job": ["Engineer", "Lawyer", "Engineer", "Lawyer", "Dancer", "Writer", "Writer", "Dancer"],
    "Age": [34, 50, 38, 33, 20, 37, 32, 25],
    "Class": ["Y", "N", "N", "Y", "Y", "N", "Y", "N"],
}


def paper_schema(high: int = 64, step: int = 1) -> Schema:
    """Figure 1. The step of 22 up to 61 leaves Figure 1's intervals as grid points, and 46 or more one point."""
    attributes = (
        Nominal("Job", JOBS.leaves(), "Engineer", JOBS, missing="Engineer"),
        Numeric("Age", Decimal(18), Decimal(high), Decimal(step), Decimal(18)),
        Nominal("Class", ("Y", "N"), "Y", missing="Y"),
    )
    return Schema("paper", attributes, 100, "Class")


# -- releases ----------------------------------------------------------------------------------------------------------


def every(epsilon: Any = 1, **params: Any) -> list[ReleaseEstimator]:
    """A few different ways to release a table."""
    return [
        dm.DiffGen(epsilon, 4, **params),
        dm.DiffGen(epsilon, "auto", "max-gain", "monotone", "joint", leftover=True, total_share=0.1, threshold="auto"),
        dm.DiffGen(epsilon, 3, "infogain", frequency_share=0.2, total_share=0.05, **params),
        ContingencyTable(epsilon, bins=3),
    ]


def with_tree(epsilon: Any = 1) -> list[ReleaseEstimator]:
    """The same and a tree, for what holds of every release though its values need not be those of a cut."""
    return [*every(epsilon), dm.TreeRelease(epsilon)]


def form_of(released: ReleasedTable) -> Any:
    """All that a release says, to compare it with another."""
    weights = {name: weight.tolist() for name, weight in released.weights.items()}
    return released.values, released.groups.tolist(), released.counts.tolist(), weights


def undated(sheet: dict[str, Any]) -> dict[str, Any]:
    """A sheet without the day on which it was asked for, since midnight may come between two of them."""
    return {**sheet, "date": None}


def true_groups(model: ReleaseEstimator, table: Any, schema: Schema) -> dict[tuple[str, ...], list[int]]:
    """The groups that have rows and their class counts, value by value and row by row."""
    released = model.release()
    names = list(released.values)
    codes, count = encode_rows(table, schema, [*names, released.target])
    found: dict[tuple[str, ...], list[int]] = {}
    for row in range(count):
        group = tuple(value_of(released, name, int(codes[name][row])) for name in names)
        found.setdefault(group, [0] * len(schema.class_labels))[int(codes[released.target][row])] += 1
    return found


def value_of(released: ReleasedTable, name: str, code: int) -> str:
    """The name of the one value that stands for a code."""
    (value,) = (value.name for value in released.values[name] if code in value.codes)
    return value


def shown_groups(model: ReleaseEstimator) -> dict[tuple[str, ...], list[int]]:
    return {group: list(counts.values()) for group, counts in model.release().to_dict().items()}
