"""How good a model is on private rows, paid for: a noisy confusion matrix, accuracy and AUC with intervals.

The model becomes a key of the query, so that rows are predicted where they are and only noisy counts come back. With two
classes half of epsilon buys the confusion matrix, half a histogram of classes over bands of the predicted probability,
from which the AUC follows; else all of it buys the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.epsilon import Epsilon
from dpmine.errors import RequestError
from dpmine.intervals import noise_scale
from dpmine.model_keys import Predicted, ScoreBands
from dpmine.public_random import public_generator
from dpmine.tables import PrivateTable
from dpmine.tree_models import Trees

BANDS = 10  # of the predicted probability, for the AUC
DRAWS = 4000  # of simulated noise, for intervals
CONFIDENCE = 0.95

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """A measure with an interval that the noise leaves: it says nothing about other rows than these."""

    value: float
    low: float
    high: float

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Noisy counts of predicted (rows) by true class (columns), and what follows from them."""

    classes: tuple[str, ...]
    confusion: Counts
    accuracy: Measured
    auc: Measured | None
    majority: Measured
    """The accuracy of always answering the most frequent class: what a model must beat."""
    epsilon: Epsilon

    def to_dict(self) -> dict[str, object]:
        return {
            "classes": list(self.classes),
            "confusion": self.confusion.tolist(),
            "epsilon": str(self.epsilon),
            "confidence": CONFIDENCE,
        } | {
            name: None if item is None else {"value": item.value, "low": item.low, "high": item.high}
            for name, item in (("accuracy", self.accuracy), ("auc", self.auc), ("majority", self.majority))
        }

    def __str__(self) -> str:
        width = max(len("predicted"), *(len(label) for label in self.classes))
        cells = [max(len(label), 8) for label in self.classes]
        head = "  ".join(label.rjust(cell) for label, cell in zip(self.classes, cells, strict=True))
        lines = [f"{'predicted'.ljust(width)}  {head}   (columns: true class; counts are noisy)"]
        for label, row in zip(self.classes, self.confusion, strict=True):
            counts = "  ".join(f"{int(count):,}".rjust(cell) for count, cell in zip(row, cells, strict=True))
            lines.append(f"{label.ljust(width)}  {counts}")
        lines.append(f"accuracy {self.accuracy}, always the most frequent class {self.majority}")
        if self.auc is not None:
            lines.append(f"AUC {self.auc.value:.3f} ({self.auc.low:.3f} to {self.auc.high:.3f})")
        lines.append(f"Intervals hold with {CONFIDENCE:.0%} and count the noise only. Epsilon {self.epsilon}.")
        return "\n".join(lines)


def evaluate(trees: Trees, private: PrivateTable, *, epsilon: Epsilon, auc: bool | None = None) -> Evaluation:
    """Ask for the counts and work out the measures."""
    if private.schema.class_labels != trees.classes:
        raise RequestError("The private table has other classes than the model.")
    with_auc = len(trees.classes) == 2 if auc is None else auc
    if with_auc and len(trees.classes) != 2:
        raise RequestError(f"The AUC needs two classes; this model has {len(trees.classes)}. Use auc=False.")
    scored = tuple(tree.scored() for tree in trees.trees)
    target = private.schema.require_class()
    spent = Epsilon(epsilon.units // 2) if with_auc else epsilon
    matrix = private.histogram(Predicted(scored, trees.classes), target, epsilon=spent)
    accuracy, majority = _with_noise(matrix.counts, spent, _accuracy), _with_noise(matrix.counts, spent, _majority)
    area = None
    edges = band_edges(trees) if with_auc else ()
    if edges:
        rest = Epsilon(epsilon.units - spent.units)
        bands = private.histogram(ScoreBands(scored, 1, edges), target, epsilon=rest)
        area = _with_noise(bands.counts, rest, _area)
    return Evaluation(trees.classes, matrix.counts, accuracy, area, majority, epsilon)


def band_edges(trees: Trees) -> tuple[int, ...]:
    """Edges between bands of the summed score of the second class; from the model alone, which is public.

    Leaves are ordered by score; edges are set so that each band holds about as many of the model's own noisy rows. A forest
    has too many sums to list, and gets bands of equal width.
    """
    whole = sum(sum(tree.shares) for tree in trees.trees)  # a tree's leaves all have as many votes as its root
    if len(trees.trees) > 1:
        return tuple(whole * place // (2 * BANDS) for place in range(1, 2 * BANDS))
    weights: dict[int, float] = {}
    for leaf in trees.trees[0].leaves():
        weights[leaf.shares[1]] = weights.get(leaf.shares[1], 0.0) + max(sum(leaf.rows), 0) + 1
    total, passed = sum(weights.values()), 0.0
    edges: list[int] = []
    for score in sorted(weights):
        if edges or passed:
            behind = int(passed * BANDS / total)
            if behind > len(edges):
                edges.append(score)
        passed += weights[score]
    return tuple(edges)


def _with_noise(counts: Counts, epsilon: Epsilon, measure: object) -> Measured:
    """The measure of noisy counts, and an interval from what the same noise does to it, simulated anew many times."""
    assert callable(measure)
    draw = public_generator(0)
    scale = float(noise_scale(1, epsilon))
    shaken = counts + draw.laplace(0, scale, (DRAWS, *counts.shape))
    values = np.array([measure(table) for table in shaken])
    value = float(measure(counts.astype(np.float64)))
    # What noise adds to the counts it adds to the measure, so the truth lies as far on the other side.
    low, high = np.quantile(value - values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Measured(value, max(value + float(low), 0.0), min(value + float(high), 1.0))


def _accuracy(counts: Numbers) -> float:
    return float(min(max(np.trace(counts) / max(float(counts.sum()), 1.0), 0.0), 1.0))


def _majority(counts: Numbers) -> float:
    columns = counts.sum(axis=0)
    return float(min(max(columns.max() / max(float(columns.sum()), 1.0), 0.0), 1.0))


def _area(counts: Numbers) -> float:
    """The area under the ROC curve of banded scores: the chance that a row of the second class has the higher band."""
    first, second = np.maximum(counts[:, 0], 0), np.maximum(counts[:, 1], 0)
    pairs = float(first.sum() * second.sum())
    if pairs <= 0:
        return 0.5
    below = np.cumsum(first) - first
    return float(np.sum(second * (below + first / 2)) / pairs)
