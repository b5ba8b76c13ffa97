"""Releases on small tables: choices that a test makes instead of the mechanism, and groups counted by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from mining_worlds import HUGE, Table, opened  # noqa: F401 (handed on)

import dpmine as dm
from dpmine.kernel.door import Kernel
from dpmine.release.contingency import ContingencyTable
from dpmine.release.estimator import ReleaseEstimator
from dpmine.release.released import ReleasedTable
from dpmine.schema import Nominal, Numeric, Schema, TaxonomyNode
from dpmine.tree_models import encode_rows

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
        Nominal("Job", JOBS.leaves(), "Engineer", JOBS),
        Numeric("Age", Decimal(18), Decimal(high), Decimal(step), Decimal(18)),
        Nominal("Class", ("Y", "N"), "Y"),
    )
    return Schema("paper", attributes, 100, "Class")


# -- choices ----------------------------------------------------------------------------------------------------------

Chooser = Callable[[np.ndarray], int]
"""From the scores of all candidates to the number of one."""


@contextmanager
def choosing(choose: Chooser) -> Iterator[None]:
    """Every private choice is made by a function of the true scores, and not by the mechanism."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Kernel, "_choose", lambda self, mechanism, scores, masses, rate: choose(scores))
        yield


def first_best(scores: np.ndarray) -> int:
    """A best candidate, the first of equal ones: the tie rule of the baselines."""
    return int(np.argmax(scores))


def halving(scores: np.ndarray) -> int:
    """The middle one of many split points and the first one of few values: an interval is halved, then its left half."""
    return len(scores) // 2 if len(scores) > 4 else 0


class Scripted:
    """Choices laid down by a test, as pairs of how many candidates there must be and which one is taken."""

    def __init__(self, *script: tuple[int, int]) -> None:
        self.left = list(script)

    def __call__(self, scores: np.ndarray) -> int:
        candidates, taken = self.left.pop(0)
        assert len(scores) == candidates
        return taken


class Drawn:
    """Choices at random whatever the scores, kept: what any noise could have made of them."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        self.taken: list[int] = []

    def __call__(self, scores: np.ndarray) -> int:
        self.taken.append(int(self._draw.integers(len(scores))))
        return self.taken[-1]


# -- releases ----------------------------------------------------------------------------------------------------------


def fitted(model: Any, table: Any, schema: Schema, epsilon: Any = None, **options: Any) -> Any:
    """Fit on a table whose ledger holds just the model's epsilon: what costs more is refused."""
    with opened(table, schema, model.budget if epsilon is None else epsilon, **options) as private:
        return model.fit(private)


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
