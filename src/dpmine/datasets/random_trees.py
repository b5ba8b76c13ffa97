"""Synthetic tables labelled by a random decision tree, after Friedman and Schuster 2010, section 5.1.

A tree of a given depth is drawn first: attributes uniformly, no nominal one twice on a path, from the third level on a
node becomes a leaf with probability `leaf_probability`, leaf classes uniform. Points are then uniform over the domain and
labelled by the tree; with probability `noise` each value (the class too) is replaced by a uniform one, possibly the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema

LOW, HIGH, STEP = 0, 100, "0.1"  # the domain of numeric attributes
RESOLUTION = "0.0001"  # of their values: hardly any is rounded into the next cell
FIRST_LEAF_LEVEL = 2  # counted from 0 at the root: the paper's third level

Columns = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class TreeNode:
    """A leaf (class label set) or a split: by every value of a nominal attribute, or at a point of a numeric one."""

    label: int | None = None
    attribute: str = ""
    threshold: float | None = None
    children: tuple[TreeNode, ...] = ()


@dataclass(frozen=True)
class RandomTree:
    """A labelling tree and the domain it lives in."""

    nominal: tuple[str, ...]
    numeric: tuple[str, ...]
    values: int
    classes: int
    root: TreeNode

    @classmethod
    def draw(
        cls,
        *,
        depth: int,
        nominal: int = 10,
        numeric: int = 0,
        values: int = 2,
        classes: int = 2,
        leaf_probability: float = 0.3,
        seed: int,
    ) -> RandomTree:
        """A random tree over that many attributes."""
        if depth < 1 or nominal + numeric < 1 or values < 2 or classes < 2:
            raise RequestError("A random tree needs a depth, an attribute, and at least 2 values and classes.")
        draw = np.random.default_rng(seed)
        names = tuple(f"n{place}" for place in range(nominal))
        numbers = tuple(f"x{place}" for place in range(numeric))
        ranges = {name: (float(LOW), float(HIGH)) for name in numbers}
        shape = _Shape(draw, depth, values, classes, leaf_probability)
        return cls(names, numbers, values, classes, shape.grow(0, names, ranges))

    @classmethod
    def single_split(cls, *, nominal: int = 10, numeric: int = 0, threshold: float = 35.0) -> RandomTree:
        """The tree of section 5.1.1: one split, on a binary attribute or (numeric > 0) at 35, a class for each side."""
        names = tuple(f"n{place}" for place in range(nominal))
        numbers = tuple(f"x{place}" for place in range(numeric))
        sides = (TreeNode(label=0), TreeNode(label=1))
        root = TreeNode(None, numbers[0], threshold, sides) if numbers else TreeNode(None, names[0], None, sides)
        return cls(names, numbers, 2, 2, root)

    def sample(self, rows: int, *, noise: float = 0.0, seed: int) -> dict[str, list[object]]:
        """Uniform points with their labels, as columns of the schema's values."""
        if rows < 0 or not 0 <= noise <= 1:
            raise RequestError("A sample needs a number of rows and a noise rate between 0 and 1.")
        draw = np.random.default_rng(seed)
        columns = self._points(draw, rows)
        labels = np.empty(rows, dtype=np.int64)
        self._label(self.root, columns, np.arange(rows), labels)
        if noise:
            fresh = self._points(draw, rows)
            for name in columns:
                columns[name] = np.where(draw.random(rows) < noise, fresh[name], columns[name])
            labels = np.where(draw.random(rows) < noise, draw.integers(0, self.classes, rows), labels)
        table: dict[str, list[object]] = {name: [f"v{int(v)}" for v in columns[name]] for name in self.nominal}
        table |= {name: columns[name].tolist() for name in self.numeric}
        table["class"] = [f"c{label}" for label in labels.tolist()]
        return table

    def _points(self, draw: np.random.Generator, rows: int) -> Columns:
        points = {name: draw.integers(0, self.values, rows).astype(np.float64) for name in self.nominal}
        return points | {name: draw.uniform(LOW, HIGH, rows) for name in self.numeric}

    def _label(self, node: TreeNode, columns: Columns, rows: NDArray[np.intp], labels: NDArray[np.int64]) -> None:
        if node.label is not None or not len(rows):
            labels[rows] = node.label or 0
            return
        numbers = columns[node.attribute][rows]
        side = numbers.astype(np.int64) if node.threshold is None else (numbers >= node.threshold).astype(np.int64)
        for place, child in enumerate(node.children):
            self._label(child, columns, rows[side == place], labels)

    def schema(self, *, rows_at_most: int) -> Schema:
        """The public facts about samples of this tree."""
        values = tuple(f"v{place}" for place in range(self.values))
        classes = tuple(f"c{place}" for place in range(self.classes))
        nominal = [Nominal(name, values, values[0], missing=values[0]) for name in self.nominal]
        low, high = Decimal(LOW), Decimal(HIGH)
        numeric = [Numeric(name, low, high, Decimal(STEP), low, Decimal(RESOLUTION)) for name in self.numeric]
        return Schema(
            "random-tree",
            (*nominal, *numeric, Nominal("class", classes, classes[0], missing=classes[0])),
            rows_at_most,
            "class",
        )


@dataclass(frozen=True)
class _Shape:
    draw: np.random.Generator
    depth: int
    values: int
    classes: int
    leaf_probability: float

    def grow(self, level: int, nominal: tuple[str, ...], ranges: dict[str, tuple[float, float]]) -> TreeNode:
        ended = level >= self.depth or not (nominal or ranges)
        if ended or (level >= FIRST_LEAF_LEVEL and self.draw.random() < self.leaf_probability):
            return TreeNode(label=int(self.draw.integers(self.classes)))
        names = (*nominal, *ranges)
        name = names[int(self.draw.integers(len(names)))]
        if name in nominal:
            rest = tuple(other for other in nominal if other != name)
            children = tuple(self.grow(level + 1, rest, ranges) for _ in range(self.values))
            return TreeNode(None, name, None, children)
        low, high = ranges[name]
        threshold = float(self.draw.uniform(low, high))
        left = self.grow(level + 1, nominal, {**ranges, name: (low, threshold)})
        right = self.grow(level + 1, nominal, {**ranges, name: (threshold, high)})
        return TreeNode(None, name, threshold, (left, right))
