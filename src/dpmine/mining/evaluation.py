"""How good a model is on private rows, paid for: a noisy confusion matrix, accuracy and AUC with intervals.

The model becomes a key of the query, so that rows are predicted where they are and only noisy counts come back. With two
classes half of epsilon buys the confusion matrix, half a histogram of classes over bands of the predicted probability,
from which the AUC follows; else all of it buys the matrix.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.public_random import public_generator
from dpmine.budget.rows import per_row
from dpmine.language.model_keys import Predicted, ScoreBands
from dpmine.models.trees import Trees
from dpmine.noise.laws import DiscreteLaplace
from dpmine.report.words import clean
from dpmine.tables.private_table import PrivateTable

BANDS = 10  # of the predicted probability, for the AUC
DRAWS = 4000  # of simulated noise, for intervals
STEPS = 400  # of shares that are tried, over all of them and near the noisy one
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
    law: DiscreteLaplace
    """Of the noise in each of these counts."""
    accuracy: Measured
    auc: Measured | None
    majority: float
    """About the accuracy of always answering the most frequent class: what a model must beat."""
    epsilon: Epsilon

    def to_dict(self) -> dict[str, object]:
        return {
            "classes": list(self.classes),
            "confusion": self.confusion.tolist(),
            "epsilon": str(self.epsilon),
            "confidence": CONFIDENCE,
            "majority": self.majority,
        } | {
            name: None if item is None else {"value": item.value, "low": item.low, "high": item.high}
            for name, item in (("accuracy", self.accuracy), ("auc", self.auc))
        }

    def __str__(self) -> str:
        names = [clean(label) for label in self.classes]
        width = max(len("predicted"), *map(len, names))
        cells = [max(len(name), 8) for name in names]
        head = "  ".join(name.rjust(cell) for name, cell in zip(names, cells, strict=True))
        lines = [f"{'predicted'.ljust(width)}  {head}   (columns: true class; counts are noisy)"]
        for name, row in zip(names, self.confusion, strict=True):
            counts = "  ".join(f"{int(count):,}".rjust(cell) for count, cell in zip(row, cells, strict=True))
            lines.append(f"{name.ljust(width)}  {counts}")
        lines.append(f"accuracy {self.accuracy}; always the most frequent class about {self.majority:.1%}")
        if self.auc is not None:
            lines.append(f"AUC {self.auc.value:.3f} ({self.auc.low:.3f} to {self.auc.high:.3f})")
        lines.append(f"Intervals ({CONFIDENCE:.0%}) count the noise only; that of the AUC is rough. Epsilon {self.epsilon}.")
        return "\n".join(lines)


def evaluate(trees: Trees, private: PrivateTable, *, epsilon: Epsilon, auc: bool | None = None) -> Evaluation:
    """Ask for the counts and work out the measures."""
    if private.schema.class_labels != trees.classes:
        raise RequestError("The private table has other classes than the model.")
    with_auc = len(trees.classes) == 2 if auc is None else auc
    if with_auc and len(trees.classes) != 2:
        raise RequestError(f"The AUC needs two classes; this model has {len(trees.classes)}. Use auc=False.")
    target = private.schema.require_class()
    edges = band_edges(trees) if with_auc else ()  # a tree of one leaf ranks nothing
    all_of_it = per_row(epsilon, private.schema)
    for_matrix = Epsilon(all_of_it.units // 2) if edges else all_of_it
    for_bands = Epsilon(all_of_it.units - for_matrix.units)
    private = private.with_class().with_room_for(all_of_it)
    scored = tuple(tree.scored() for tree in trees.trees)
    judged = private.histogram(Predicted(scored, trees.classes), target, epsilon=for_matrix)
    matrix, area = judged.counts, None
    if edges:
        ranked = private.histogram(ScoreBands(scored, 1, edges), target, epsilon=for_bands)
        area = auc_of(ranked.counts, ranked.law)
    most = float(matrix.sum(axis=0).max())
    majority = min(max(most / max(float(matrix.sum()), 1.0), 0.0), 1.0)
    return Evaluation(trees.classes, matrix, judged.law, accuracy_of(matrix, judged.law), area, majority, epsilon)


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
        if int(passed * BANDS / total) > len(edges):
            edges.append(score)
        passed += weights[score]
    return tuple(edges) or tuple(sorted(weights)[-1:] if len(weights) > 1 else ())


def accuracy_of(counts: Counts, law: DiscreteLaplace) -> Measured:
    """The share of right predictions, and all shares that the noise leaves possible.

    A share p is possible if right - p * all, which would be 0 without noise, is not larger than the noise makes it in 95 %
    of the cases. That holds however few rows there are, where dividing one noisy count by another goes wrong.
    """
    right, every = float(np.trace(counts)), float(counts.sum())
    noise = public_generator(0).laplace(0, float(law.fraction), (DRAWS, *counts.shape))
    noise_right = np.trace(noise, axis1=1, axis2=2)
    noise_every = noise.sum(axis=(1, 2))

    def limits(shares: Numbers) -> Numbers:
        found: Numbers = np.quantile(np.abs(noise_right[:, None] - np.outer(noise_every, shares)), CONFIDENCE, axis=0)
        return found

    value = min(max(right / max(every, 1.0), 0.0), 1.0)
    even = np.linspace(0, 1, STEPS + 1)
    # With many rows the interval lies between two of the even shares.
    near = value + 2 * limits(np.array([value])) / max(every, 1.0) * np.linspace(-1, 1, STEPS + 1)
    shares = np.union1d(even, np.clip(near, 0, 1))
    possible = np.flatnonzero(np.abs(right - shares * every) <= limits(shares))
    if not len(possible):  # the noise was larger than in 95 % of the cases: nothing can be said
        return Measured(value, 0.0, 1.0)
    low, high = shares[max(possible[0] - 1, 0)], shares[min(possible[-1] + 1, len(shares) - 1)]  # where it ends is between
    return Measured(value, min(float(low), value), max(float(high), value))


def auc_of(counts: Counts, law: DiscreteLaplace) -> Measured:
    """The AUC of noisy counts by band and class, with an interval from what such noise does to it, simulated many times.

    Two ways to use the simulation, noise taken off the counts and noise put on them once more, err on different sides where
    there are few rows; the interval covers both.
    """
    value = _area(counts.astype(np.float64))
    noise = public_generator(0).laplace(0, float(law.fraction), (DRAWS, *counts.shape))
    shaken = np.array([_area(table) for table in counts + noise])
    ends = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    low, high = np.quantile(shaken, ends)
    mirrored_low, mirrored_high = 2 * value - high, 2 * value - low
    return Measured(value, max(min(low, mirrored_low), 0.0), min(max(high, mirrored_high), 1.0))


def _area(counts: Numbers) -> float:
    """The area under the ROC curve of banded scores: the chance that a row of the second class has the higher band."""
    first, second = np.maximum(counts[:, 0], 0), np.maximum(counts[:, 1], 0)
    pairs = float(first.sum() * second.sum())
    if pairs <= 0:
        return 0.5
    below = np.cumsum(first) - first
    return float(np.sum(second * (below + first / 2)) / pairs)
