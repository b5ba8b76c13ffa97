"""NOT PRIVATE: how the reference trees score splits and grow, and the tree of the best two-way splits.

Everything here reads true counts and shows them. The scores are those of the private choices (Friedman and Schuster 2010,
section 4.1), without scaling and without noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.facts.encoding import Codes
from dpmine.facts.kinds.kind import DROP, Ordered
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.language.candidates import can_split, one_versus_rest, split_key
from dpmine.language.keys import Key
from dpmine.language.model_keys import DEEPEST_TREE
from dpmine.language.splits import Thresholds
from dpmine.models.trees import Node, Trees, columns_of, encode_rows, labels_of, leaf, lookup, rows_with_class

Counts = NDArray[np.int64]
Scores = NDArray[np.float64]
Places = NDArray[np.intp]

ROUNDING = 1e-12  # scores, counted a row, that differ by less are equal: sums in another order differ in the last bits
MOST_WEIGHT = 2**52  # of all rows together: as doubles they add up exactly
MOST_CELLS = 2**20  # counts that are looked at together


# -- scores ------------------------------------------------------------------------------------------------------------


def times_logarithm(counts: Counts | Scores) -> Scores:
    """t log2 t, which is 0 for t = 0."""
    numbers = np.asarray(counts, dtype=np.float64)
    product: Scores = numbers * np.log2(np.maximum(numbers, 1))
    return product


def minus_entropy(counts: Counts) -> Scores:
    """Minus the rows times the entropy of their class, in bits: [..., classes] -> [...]."""
    result: Scores = times_logarithm(counts).sum(axis=-1) - times_logarithm(counts.sum(axis=-1))
    return result


def minus_gini(counts: Counts) -> Scores:
    """Minus the rows times their Gini index: [..., classes] -> [...]."""
    numbers = np.asarray(counts, dtype=np.float64)
    total = numbers.sum(axis=-1)
    result: Scores = (numbers * numbers).sum(axis=-1) / np.maximum(total, 1) - total
    return result


def largest_class(counts: Counts) -> Scores:
    """The rows of the largest class: [..., classes] -> [...]."""
    result: Scores = np.max(counts, axis=-1).astype(np.float64)
    return result


SCORES: dict[str, Callable[[Counts], Scores]] = {"infogain": minus_entropy, "gini": minus_gini, "max": largest_class}


def first_best(scores: Scores, rounding: float) -> int | None:
    """The first of the best candidates; None where there is none, or only impossible ones (minus infinity)."""
    if not len(scores) or np.max(scores) == -np.inf:
        return None
    return int(np.argmax(scores >= np.max(scores) - rounding))


# -- what a node is chosen from ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """All attributes but the class, their codes side by side: code c of attribute a stands at place starts[a] + c."""

    schema: Schema
    attributes: tuple[Nominal | Ordered, ...]

    @classmethod
    def of(cls, schema: Schema) -> Layout:
        """Attributes in the order of the schema. Lists are left out: no tree here splits by them."""
        target = schema.require_class()
        return cls(schema, tuple(a for a in schema.attributes if isinstance(a, Nominal | Ordered) and a.name != target))

    @cached_property
    def starts(self) -> Places:
        sizes = [attribute.size for attribute in self.attributes]
        return np.cumsum([0, *sizes])[:-1].astype(np.intp)

    @cached_property
    def places(self) -> int:
        return sum(attribute.size for attribute in self.attributes)

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """The numbers of the numeric attributes."""
        return tuple(number for number, attribute in enumerate(self.attributes) if attribute.ordered)

    @cached_property
    def dropped(self) -> Places:
        """The places of gaps that share the last category's branch, which stands just before."""
        pairs = zip(self.attributes, self.starts.tolist(), strict=True)
        return np.array([start + a.cells for a, start in pairs if a.gap == DROP and not a.ordered], dtype=np.intp)

    def by_branch(self, counts: Counts) -> Counts:
        """[..., places, classes]: counts by place as those of the branches of splits into all values."""
        if not len(self.dropped):
            return counts
        branches = counts.copy()
        branches[..., self.dropped - 1, :] += counts[..., self.dropped, :]
        branches[..., self.dropped, :] = 0
        return branches

    @cached_property
    def classes(self) -> int:
        return len(self.schema.class_labels)

    def cells(self, rows: Mapping[str, Codes], classes: NDArray[np.intp]) -> Places:
        """[attributes, rows]: the number of each row's cell in a table of counts by place and class."""
        result = np.empty((len(self.attributes), len(classes)), dtype=np.intp)
        for number, attribute in enumerate(self.attributes):
            result[number] = (self.starts[number] + rows[attribute.name].astype(np.intp)) * self.classes + classes
        return result


@dataclass(frozen=True)
class NodeCounts:
    """The true counts of one node: all that a choice of its split may look at.

    counts   [places, classes], by the places of the layout
    node     [classes]
    open     whether each attribute has not been used up on the path by a split into all its values
    """

    layout: Layout
    counts: Counts
    node: Counts
    open: NDArray[np.bool_]

    @property
    def rows(self) -> int:
        return int(self.node.sum())

    @property
    def rounding(self) -> float:
        return ROUNDING * max(self.rows, 1)

    @cached_property
    def below(self) -> Counts:
        """[places + 1, classes]: the counts of all earlier places together."""
        return np.concatenate((np.zeros((1, len(self.node)), dtype=np.int64), np.cumsum(self.counts, axis=0)))

    def multiway(self, score: Callable[[Counts], Scores]) -> Scores:
        """[attributes]: the split into all values, each score the sum over its branches."""
        if not self.layout.attributes:
            return np.zeros(0)
        result: Scores = np.add.reduceat(score(self.layout.by_branch(self.counts)), self.layout.starts)
        return result

    def left_of(self, number: int, cuts: Places) -> Counts:
        """[cuts, classes]: the counts of an attribute's codes below each cut."""
        start = self.layout.starts[number]
        result: Counts = self.below[start + cuts] - self.below[start]
        return result


def threshold_key(layout: Layout, number: int, cut: int) -> Key:
    """The key that sends codes below `cut` to the left; the same as the private choice of a threshold gives."""
    return split_key(Thresholds(layout.attributes[number].name), layout.schema, cut - 1)


# -- growth ------------------------------------------------------------------------------------------------------------


Choice = tuple[Key, int | None] | None
"""The key to split by, and the number of the attribute that it uses up, if any. None makes the node a leaf."""


class Chooser:
    """How one kind of tree chooses the split of a node."""

    def best(self, view: NodeCounts) -> Choice:
        raise NotImplementedError

    def best_of_all(self, layout: Layout, counts: Counts, nodes: Counts, opened: NDArray[np.bool_]) -> list[Choice]:
        """The same for many nodes: what a `NodeCounts` holds of each, the nodes along the first axis."""
        return [self.best(NodeCounts(layout, *one)) for one in zip(counts, nodes, opened, strict=True)]


@dataclass(frozen=True)
class _Level:
    """The nodes of one depth.

    counts     [nodes, classes]
    above      [nodes, classes], the counts of their parents
    keys       by what each is split, None for leaves
    branches   [nodes], into how many children, which stand side by side in the next level
    """

    counts: Counts
    above: Counts
    keys: list[Key | None]
    branches: Places

    def nodes(self, below: Sequence[Node]) -> list[Node]:
        """The nodes and all below them, given those of the next level. One without rows says what its parent would."""
        alike: dict[tuple[int, ...], Node] = {}  # small nodes have the same few counts
        children = iter(below)
        found = []
        each = zip(self.counts.tolist(), self.above.tolist(), self.keys, self.branches.tolist(), strict=True)
        for counts, above, key, branches in each:
            inherited = above if any(above) and not any(counts) else None
            known = (*counts, *(inherited or ()))
            if known not in alike:
                alike[known] = leaf(counts, inherited)
            node = alike[known]
            if key is not None:
                node = Node(node.rows, node.shares, key, tuple(itertools.islice(children, branches)))
            found.append(node)
        return found


@dataclass(frozen=True)
class _Growth:
    """Grows a tree level by level, all nodes of a level together, since there may be very many of a few rows each.

    A row counts as often as its weight says; without weights once.
    """

    layout: Layout
    chooser: Chooser
    rows: Mapping[str, Codes]
    classes: NDArray[np.intp]
    weights: Counts | None
    cells: Places
    deepest: int

    def tree(self) -> Node:
        """The tree of all rows."""
        places = np.arange(len(self.classes), dtype=np.intp) if self.weights is None else np.flatnonzero(self.weights)
        node_of = np.zeros(len(places), dtype=np.intp)  # of the row at each place; always in order
        above = np.zeros((1, self.layout.classes), dtype=np.int64)
        opened = np.ones((1, len(self.layout.attributes)), dtype=np.bool_)
        levels: list[_Level] = []
        while len(above):
            classes = self.layout.classes
            counts = self._count(node_of * classes + self.classes[places], places, len(above) * classes).reshape(-1, classes)
            growing = (np.count_nonzero(counts, axis=1) > 1) & (len(levels) < self.deepest)
            choices: list[Choice] = [None] * len(above)
            for nodes in self._portions(growing):
                found = self._choose(nodes, places, node_of, counts, opened)
                for node, choice in zip(nodes.tolist(), found, strict=True):
                    choices[node] = choice
            keys = [None if choice is None else choice[0] for choice in choices]
            places, node_of, branches = self._children(keys, places, node_of)
            levels.append(_Level(counts, above, keys, branches))
            for node, choice in enumerate(choices):
                if choice is not None and choice[1] is not None:
                    opened[node, choice[1]] = False
            above, opened = np.repeat(counts, branches, axis=0), np.repeat(opened, branches, axis=0)
        nodes_below: list[Node] = []
        for level in reversed(levels):
            nodes_below = level.nodes(nodes_below)
        return nodes_below[0]

    def _portions(self, growing: NDArray[np.bool_]) -> list[Places]:
        """The nodes to be split, in portions whose counts fit into memory."""
        most = max(1, MOST_CELLS // max(1, self.layout.places * self.layout.classes))
        nodes = np.flatnonzero(growing)
        return [nodes[first : first + most] for first in range(0, len(nodes), most)]

    def _choose(
        self, nodes: Places, places: Places, node_of: Places, counts: Counts, opened: NDArray[np.bool_]
    ) -> list[Choice]:
        """The splits of some nodes."""
        number = np.full(len(counts), -1, dtype=np.intp)
        number[nodes] = np.arange(len(nodes))
        first, last = np.searchsorted(node_of, (nodes[0], nodes[-1] + 1))
        numbers = number[node_of[first:last]]
        mine = places[first:last][numbers >= 0]
        bins = self.layout.places * self.layout.classes
        cells = self.cells[:, mine] + numbers[numbers >= 0] * bins
        tables = self._count(cells, mine, len(nodes) * bins)
        tables = tables.reshape(len(nodes), self.layout.places, self.layout.classes)
        return self.chooser.best_of_all(self.layout, tables, counts[nodes], opened[nodes])

    def _children(self, keys: list[Key | None], places: Places, node_of: Places) -> tuple[Places, Places, Places]:
        """The rows of nodes that are split, the nodes of the next level that they go to, in order, and all branches."""
        known = {key: number for number, key in enumerate(dict.fromkeys(key for key in keys if key is not None))}
        number = np.array([-1 if key is None else known[key] for key in keys], dtype=np.intp)
        sizes = np.array([0, *(len(key.labels(self.layout.schema)) for key in known)], dtype=np.intp)
        branches = sizes[number + 1]
        going = number[node_of] >= 0
        places, node_of = places[going], node_of[going]
        by_key = np.argsort(number[node_of], kind="stable")
        bounds = np.searchsorted(number[node_of][by_key], np.arange(len(known) + 1))
        child = (np.cumsum(branches) - branches)[node_of]
        for key, place in known.items():
            table = lookup(key, self.layout.schema)
            some = by_key[bounds[place] : bounds[place + 1]]
            child[some] += table.labels[self.rows[table.attribute][places[some]]]
        order = np.argsort(child, kind="stable")
        return places[order], child[order], branches

    def _count(self, cells: Places, places: Places, bins: int) -> Counts:
        """[bins]: the rows in each cell; `cells` are those of the rows at these places, in one line or several."""
        if self.weights is None:
            return np.bincount(cells.ravel(), minlength=bins)
        # Weights are added up as doubles: exact, since all of them together stay below 2^53.
        weights = np.broadcast_to(self.weights[places], cells.shape)
        return np.bincount(cells.ravel(), weights.ravel(), minlength=bins).astype(np.int64)


class ReferenceTree:
    """NOT PRIVATE. What all reference trees share: fitting to true rows, and prediction.

    trees_    the fitted tree, with the true class counts in every node
    schema_   the schema it was fitted by
    """

    trees_: Trees
    schema_: Schema

    def __init__(self, max_depth: int | None, score: str, scores: Sequence[str]) -> None:
        if max_depth is not None and not 0 <= max_depth <= DEEPEST_TREE:
            raise RequestError(f"'max_depth' must lie between 0 and {DEEPEST_TREE}, or be None. Got {max_depth} instead.")
        if score not in scores:
            raise RequestError(f"The score must be one of {', '.join(scores)}. Got {score!r} instead.")
        self.max_depth = max_depth
        self.score = score

    def fit(self, table: Any, *, schema: Schema | str) -> Self:
        """Fit to a file or frame that holds the class in the column that the schema names."""
        schema = Schema.load(schema)
        names = [attribute.name for attribute in Layout.of(schema).attributes]
        rows, classes = encode_lessons(table, schema, names)
        return self.fit_codes(rows, classes, schema)

    def fit_codes(
        self, rows: Mapping[str, Codes], classes: Codes, schema: Schema, *, weights: NDArray[np.integer] | None = None
    ) -> Self:
        """Fit to encoded columns; `classes` are the codes of the class.

        With `weights`, whole numbers, each row counts so many times: the same tree as from rows written out as often.
        """
        layout = Layout.of(schema)
        check_codes(layout, rows, classes)
        chooser = self._chooser(layout)
        deepest = DEEPEST_TREE if self.max_depth is None else self.max_depth
        targets = classes.astype(np.intp)
        counted = None if weights is None else _checked_weights(weights, len(classes))
        growth = _Growth(layout, chooser, rows, targets, counted, layout.cells(rows, targets), deepest)
        self.trees_ = Trees(schema.class_labels, (self._finish(growth.tree()),))
        self.schema_ = schema
        return self

    def predict(self, table: Any) -> NDArray[np.object_]:
        """The class of each row of a file or frame, which needs no more columns than the tree reads."""
        self._require_fit()
        rows, count = encode_rows(table, self.schema_, columns_of(self.trees_))
        return np.array(self.trees_.classes, dtype=object)[self.predict_codes(rows, count)]

    def predict_codes(self, rows: Mapping[str, Codes], count: int) -> NDArray[np.int64]:
        """The number of the class of each of `count` rows, from encoded columns."""
        self._require_fit()
        labels = np.zeros(count, dtype=np.int64)
        waiting: list[tuple[Node, Places]] = [(self.trees_.trees[0], np.arange(count, dtype=np.intp))]
        while waiting:
            node, places = waiting.pop()
            if node.split is None:
                labels[places] = node.label
            elif len(places):
                name: str = node.split.attribute  # type: ignore[attr-defined]
                branches = labels_of(node.split, {name: rows[name][places]}, self.schema_)
                waiting += [(child, places[branches == number]) for number, child in enumerate(node.children)]
        return labels

    def _require_fit(self) -> None:
        if not hasattr(self, "trees_"):
            raise RequestError("This tree has not been fitted. Call 'fit' first.")

    def _chooser(self, layout: Layout) -> Chooser:
        raise NotImplementedError

    def _finish(self, root: Node) -> Node:
        """The last word on a grown tree."""
        return root


def encode_lessons(table: Any, schema: Schema, names: Sequence[str]) -> tuple[dict[str, Codes], Codes]:
    """The codes of the named columns and of the class, of the rows that have one."""
    target = schema.require_class()
    rows, _ = encode_rows(table, schema, [*names, target])
    kept = rows_with_class(rows[target], schema)
    return {name: rows[name][kept] for name in names}, rows[target][kept]


def _checked_weights(weights: NDArray[np.integer], rows: int) -> Counts:
    """As often as rows may count: not a fraction of a time, and all together no more often than counts are exact."""
    if weights.shape != (rows,) or not np.issubdtype(weights.dtype, np.integer):
        raise RequestError(f"'weights' must be a whole number for each of the {rows} rows.")
    if rows and (int(weights.min()) < 0 or weights.sum(dtype=np.float64) > MOST_WEIGHT):
        raise RequestError(f"'weights' must not be negative and together be at most {MOST_WEIGHT:,}.")
    return weights.astype(np.int64)


def check_codes(layout: Layout, rows: Mapping[str, Codes], classes: Codes) -> None:
    """A code beyond its attribute would be counted for the next one, so look first."""
    target = layout.schema.require_class()
    for attribute in layout.attributes:
        if attribute.name not in rows:
            raise RequestError(f"The rows have no codes of {attribute.name!r}, which the schema describes.")
    columns = [(attribute.name, rows[attribute.name], attribute.size) for attribute in layout.attributes]
    for name, codes, size in [*columns, (target, classes, layout.classes)]:
        if len(codes) != len(classes):
            raise RequestError(f"There are {len(codes)} codes of {name!r} and {len(classes)} classes.")
        if len(codes) and not (int(codes.min()) >= 0 and int(codes.max()) < size):
            raise RequestError(f"The codes of {name!r} must lie between 0 and {size - 1}.")


# -- two-way splits ----------------------------------------------------------------------------------------------------


class GreedyTree(ReferenceTree):
    """NOT PRIVATE. The tree of two-way splits that takes the best candidate at every node.

    Candidates are every category and every inner node of a taxonomy against the rest, and every grid point of a numeric
    attribute, and gaps against the rest: those of the private trees, whose limit this tree is without noise. Of equal ones
    the first in the order of the schema is taken. A node is a leaf at the largest depth, when it is pure or empty, and when
    no candidate raises the score; `max` is blind to splits that leave every majority as it is, so it stops early.

    `max_depth=None` is the depth that a model may have at all.
    """

    def __init__(self, max_depth: int | None = 5, score: str = "gini") -> None:
        super().__init__(max_depth, score, list(SCORES))

    def _chooser(self, layout: Layout) -> Chooser:
        return _TwoWay.of(layout, SCORES[self.score])


@dataclass(frozen=True)
class _TwoWay(Chooser):
    """Candidates as ranges of places: the left side of candidate k are the ranges from firsts[k] up to firsts[k + 1].

    A threshold is one range from an attribute's first code on, a category is one place, a node of a taxonomy is as many
    ranges as its categories need. So all candidates of all attributes are counted in one stroke.
    """

    layout: Layout
    score: Callable[[Counts], Scores]
    begins: Places
    ends: Places
    firsts: Places
    attribute_of: Places
    number_within: Places

    @classmethod
    def of(cls, layout: Layout, score: Callable[[Counts], Scores]) -> _TwoWay:
        ranges: list[tuple[int, int]] = []
        firsts: list[int] = []
        named: list[tuple[int, int]] = []
        for number, attribute in enumerate(layout.attributes):
            start = int(layout.starts[number])
            for within, left in enumerate(_left_sides(layout.schema, attribute)):
                firsts.append(len(ranges))
                named.append((number, within))
                ranges += [(start + low, start + high) for low, high in left]
        begins, ends = np.array(ranges, dtype=np.intp).reshape(-1, 2).T
        attribute_of, number_within = np.array(named, dtype=np.intp).reshape(-1, 2).T
        return cls(layout, score, begins, ends, np.array(firsts, dtype=np.intp), attribute_of, number_within)

    def best(self, view: NodeCounts) -> tuple[Key, int | None] | None:
        if not len(self.firsts):
            return None
        left = np.add.reduceat(view.below[self.ends] - view.below[self.begins], self.firsts, axis=0)
        gains = self.score(left) + self.score(view.node - left) - self.score(view.node)
        place = first_best(gains, view.rounding)
        if place is None or gains[place] <= view.rounding:
            return None
        return self._key(int(self.attribute_of[place]), int(self.number_within[place])), None

    def _key(self, number: int, within: int) -> Key:
        attribute = self.layout.attributes[number]
        if attribute.ordered:
            return threshold_key(self.layout, number, within + 1)
        return split_key(one_versus_rest(self.layout.schema, attribute.name), self.layout.schema, within)


def _left_sides(schema: Schema, attribute: Nominal | Ordered) -> list[list[tuple[int, int]]]:
    """For each candidate, in the order of its family, the codes of its left side as ranges."""
    if not can_split(attribute):
        return []
    if isinstance(attribute, Ordered):
        return [[(0, cut)] for cut in range(1, attribute.last_cut + 1)]
    subsets = one_versus_rest(schema, attribute.name).subsets
    return [_as_ranges(sorted(attribute.place(member) for member in members)) for members in subsets]


def _as_ranges(codes: list[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code:
            ranges[-1] = (ranges[-1][0], code + 1)
        else:
            ranges.append((code, code + 1))
    return ranges
