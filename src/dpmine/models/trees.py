"""Fitted decision trees and forests as values: public rules and noisy numbers, nothing else.

A forest is a tuple of trees, a tree is a forest of one. Probabilities are whole millionths, so that a prediction made here
and one made by an engine next to the rows agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.rows import Recode
from dpmine.codes.runs import labels_by_code
from dpmine.facts.encoding import Codes
from dpmine.facts.kinds.registry import codes_of, encode_single
from dpmine.facts.schema import Schema
from dpmine.facts.sources import reading, require_columns, tell_owner
from dpmine.language.keys import Key
from dpmine.language.model_keys import ScoreLeaf, ScoreSplit, ScoreTree
from dpmine.language.resolving_keys import resolve_key
from dpmine.language.views import LEAF, Rules, Split

MILLION = 1_000_000

Shares = NDArray[np.float64]


@value("node")
class Node:
    """A node of a fitted tree: what the noisy numbers say about the classes here, and how rows go on.

    rows      noisy class counts after post-processing, in whole rows
    shares    the probability of each class in millionths; they add up to a million, or are a forest's constant vote
    split     the key that sends rows to the children; None in a leaf
    """

    rows: tuple[int, ...]
    shares: tuple[int, ...]
    split: Key | None = None
    children: tuple[Node, ...] = ()

    @property
    def label(self) -> int:
        """The likeliest class; of equal ones the first."""
        return self.shares.index(max(self.shares))

    @property
    def depth(self) -> int:
        return 1 + max(child.depth for child in self.children) if self.children else 0

    def nodes(self) -> Iterator[Node]:
        """This node and all below, parents first, from left to right."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def leaves(self) -> Iterator[Node]:
        """From left to right."""
        return (node for node in self.nodes() if node.split is None)

    def rules(self) -> Rules:
        """The tree as the rule tree of a query: its cells are the leaves from left to right."""
        return LEAF if self.split is None else Split(self.split, tuple(child.rules() for child in self.children))

    def scored(self) -> ScoreTree:
        """The tree as part of a model's key: the score of a class is its probability in millionths."""
        if self.split is None:
            return ScoreLeaf(self.shares)
        return ScoreSplit(self.split, tuple(child.scored() for child in self.children))


@value("trees")
class Trees:
    """The trees of a model, and the classes that their numbers are about."""

    classes: tuple[str, ...]
    trees: tuple[Node, ...]

    def sums(self, rows: Mapping[str, Codes], count: int, schema: Schema) -> NDArray[np.int64]:
        """For each row and class the probabilities in millionths, added up over the trees."""
        sums = np.zeros((count, len(self.classes)), dtype=np.int64)
        tables: dict[Key, Lookup] = {}
        for tree in self.trees:
            _add_shares(tree, np.arange(count), rows, schema, tables, sums)
        return sums


@dataclass(frozen=True, eq=False)
class Lookup:
    """A key that reads one column: the label number of every code."""

    attribute: str
    labels: NDArray[np.int64]


def _add_shares(
    node: Node,
    places: NDArray[np.intp],
    rows: Mapping[str, Codes],
    schema: Schema,
    tables: dict[Key, Lookup],
    sums: NDArray[np.int64],
) -> None:
    if node.split is None:
        sums[places] += np.array(node.shares, dtype=np.int64)
        return
    if node.split not in tables:
        tables[node.split] = lookup(node.split, schema)
    table = tables[node.split]
    labels = table.labels[rows[table.attribute][places]]
    for number, child in enumerate(node.children):
        _add_shares(child, places[labels == number], rows, schema, tables, sums)


def lookup(key: Key, schema: Schema) -> Lookup:
    """The label number of every code of the one column that a key reads."""
    recode = resolve_key(key, schema)
    if not isinstance(recode, Recode):
        raise RequestError(f"Trees split by the cells of a grid. The cuts of {key.title!r} must be where cells begin.")
    labels = labels_by_code(recode, schema.single(recode.attribute).size)
    return Lookup(recode.attribute, np.array(labels, dtype=np.int64))


def labels_of(key: Key, rows: Mapping[str, Codes], schema: Schema) -> NDArray[np.int64]:
    """The label number of each row under a key that reads one column."""
    table = lookup(key, schema)
    return table.labels[rows[table.attribute]]


def encode_rows(table: Any, schema: Schema, names: Sequence[str]) -> tuple[dict[str, Codes], int]:
    """The codes of the named columns of a public table, by the same rules as private rows, and the number of rows."""
    encoded, rows = encode_values(table, schema, names)
    return {name: codes_of(schema.single(name), values) for name, values in encoded.items()}, rows


def encode_values(table: Any, schema: Schema, names: Sequence[str]) -> tuple[dict[str, Codes], int]:
    """The values of the named columns of a public table, read and encoded by the same rules as private rows."""
    with reading(table, schema.read, names) as source:
        require_columns(source, list(names))
        tell_owner(source)
        return {name: encode_single(source, schema.single(name)) for name in names}, source.rows


def rows_with_class(classes: Codes | NDArray[np.intp], schema: Schema) -> NDArray[np.bool_]:
    """Which rows have a class: others teach nothing and judge nothing."""
    return np.asarray(classes != len(schema.class_labels))


def columns_of(trees: Trees) -> list[str]:
    """The columns that the trees read, sorted."""
    keys = (node.split for tree in trees.trees for node in tree.nodes())
    return sorted({str(key.attribute) for key in keys if key is not None})  # type: ignore[attr-defined]


def millionths(weights: Shares) -> tuple[int, ...]:
    """Probabilities in proportion to non-negative weights (even ones where all are 0), as millionths that add up.

    The class with the largest weight keeps the largest share.
    """
    weights = np.maximum(np.asarray(weights, dtype=np.float64), 0)
    total = float(weights.sum())
    exact = weights / total * MILLION if total > 0 else np.full(len(weights), MILLION / len(weights))
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[: MILLION - int(whole.sum())]] += 1
    return tuple(int(share) for share in whole)


def leaf(counts: Sequence[float] | Shares, weights: Sequence[float] | Shares | None = None) -> Node:
    """A leaf with these class counts; its probabilities follow `weights` where given, else the counts."""
    numbers = np.asarray(counts, dtype=np.float64)
    if weights is None:
        # Where noise left nothing positive the label is still the class with the largest count.
        weights = numbers if numbers.max() > 0 else 1 + 1e-3 * (numbers == numbers.max())
    return Node(whole_rows(numbers), millionths(np.asarray(weights)))


def whole_rows(counts: Sequence[float] | Shares) -> tuple[int, ...]:
    return tuple(round(float(count)) for count in counts)
