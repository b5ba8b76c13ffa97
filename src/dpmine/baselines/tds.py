"""NOT PRIVATE: top-down specialisation to a k-anonymous table (TDS), the reference for DiffGen.

Fung, Wang and Yu, ICDE 2005 and IEEE TKDE 19(5), 2007. The Link structure is that of section 4.3 and Figure 2 of Mohammed,
Chen, Fung and Yu, KDD 2011. k-anonymity is a property of one table and no guarantee to anyone: the choices made here read
true rows, and the groups show true counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.baselines.greedy import (
    ROUNDING,
    Counts,
    Layout,
    Places,
    Scores,
    check_codes,
    encode_lessons,
    first_best,
    largest_class,
    minus_entropy,
)
from dpmine.codes.domain import MOST_ROWS
from dpmine.facts.encoding import Codes, smallest_type
from dpmine.facts.kinds.kind import Ordered, Single
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.models.cuts import Cut, NominalCut, NumericCut, children_of, codes_under, taxonomy_of
from dpmine.models.trees import labels_of

NO_GROUP = MOST_ROWS + 1  # where there is no group, the smallest one is larger than any

# -- scores ------------------------------------------------------------------------------------------------------------

Measure = Callable[[Counts], Scores]


def information_gain(children: Counts) -> Scores:
    """InfoGain(v), in bits a row of D_v and 0 without rows: [..., children of v, classes] -> [...]."""
    value = children.sum(axis=-2)
    bits = minus_entropy(children).sum(axis=-1) - minus_entropy(value)
    result: Scores = bits / np.maximum(value.sum(axis=-1), 1)
    return result


def largest_classes(children: Counts) -> Scores:
    """Max(v): the rows of the largest class of each child, added up: [..., children of v, classes] -> [...]."""
    result: Scores = largest_class(children).sum(axis=-1)
    return result


@dataclass(frozen=True)
class _Score:
    """What is measured of a candidate, and by what its anonymity loss divides that."""

    measure: Measure
    divisor: Callable[[int], int]


SPECIALISATION_SCORES = {
    "infogain/loss": _Score(information_gain, lambda loss: max(loss, 1)),  # without a loss the gain itself
    "infogain/(loss+1)": _Score(information_gain, lambda loss: loss + 1),
    "infogain": _Score(information_gain, lambda loss: 1),
    "max": _Score(largest_classes, lambda loss: 1),
}


def best_cut(measure: Measure, counts: Counts) -> int:
    """How many points of an interval go to the left at its best cut, the lowest of equal ones: [points, classes], >= 2."""
    left = np.cumsum(counts, axis=0)[:-1]
    place = first_best(measure(np.stack((left, counts.sum(axis=0) - left), axis=-2)), ROUNDING)
    assert place is not None
    return place + 1


# -- the Link structure ------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Partition:
    """A node of the tree of partitions; a leaf holds the numbers of its rows, which are all generalised to `values`."""

    rows: Places
    values: tuple[LinkedValue, ...]
    counts: Counts
    children: list[Partition] = field(default_factory=list)


@dataclass(eq=False)
class LinkedValue:
    """A value v of a cut: a node of a taxonomy or an interval of grid points, with all that its score needs.

    attribute  the number of its attribute
    codes      the codes under v
    node       its node of the taxonomy, None for an interval
    parts      the codes of each child of v, in order; none where v is a category or a single point
    score      InfoGain(v) or Max(v), which no other specialisation changes
    alike      whether D_v has a single code at most, so that no specialisation below v separates rows
    smallest   the smallest group that specialising v would leave of the partitions on its link
    link       Link_v: the leaf partitions generalised to v (a dict, for its order)
    """

    attribute: int
    codes: Places
    node: TaxonomyNode | None
    parts: tuple[Places, ...]
    score: float
    alike: bool
    smallest: int = NO_GROUP
    link: dict[Partition, None] = field(default_factory=dict)


class LinkTree:
    """All rows in a tree of partitions, and for each value v of the cuts a link to the leaves that are generalised to it.

    The paper's reason: without links every round would read all rows to score all candidates, and again to specialise one.
    Here a specialisation reads the rows of D_v alone, found by Link_v, and in the same scan counts what the scores of the
    new values need, by code and class. The other values keep their scores. That is O(rows) a round for each attribute (a
    numeric value is cut along its counted grid, so nothing is sorted), and then O(1) for each candidate.

    The anonymity loss asks for smallest groups. Groups only ever break up, and no piece is larger than the whole, so a
    running minimum over all leaves that ever were is exact. Leaves without rows are not kept: their number grows with the
    product of the cuts, and k-anonymity does not ask for them.

    cuts       for each attribute its values, from left to right
    smallest   the rows of the smallest leaf
    """

    def __init__(
        self,
        layout: Layout,
        rows: Mapping[str, Codes],
        classes: NDArray[np.intp],
        measure: Measure,
        cut: Callable[[Measure, Counts], int] = best_cut,
    ) -> None:
        self._layout = layout
        self._measure = measure
        self._cut = cut
        self._columns = [rows[attribute.name].astype(np.intp) for attribute in layout.attributes]
        self._classes = classes
        # Where each row would go when its value of each attribute was specialised, the children of all attributes side by
        # side: so a partition counts the children of all its values in one stroke.
        self._starts = np.cumsum([0, *map(_most_children, layout.attributes)]).astype(np.intp)
        self._next = np.zeros((len(self._columns), len(classes)), dtype=np.intp)
        everyone = np.arange(len(classes), dtype=np.intp)
        roots = [
            self._value(number, np.arange(attribute.size, dtype=np.intp), _root_of(attribute), everyone)
            for number, attribute in enumerate(layout.attributes)
        ]
        self.cuts = [[root] for root in roots]
        self.smallest = NO_GROUP
        self.root = self._leaf(everyone, tuple(roots))

    def specialise(self, value: LinkedValue) -> tuple[LinkedValue, ...]:
        """v -> child(v): split the leaves on Link_v, and put the children in the place of v in its cut."""
        number = value.attribute
        leaves = list(value.link)
        pieces = [self._split(leaf.rows, value) for leaf in leaves]
        nodes = children_of(value.node) if value.node is not None else (None,) * len(value.parts)
        nobody = np.zeros(0, dtype=np.intp)
        children = tuple(
            self._value(number, codes, node, np.concatenate([nobody, *(piece[branch] for piece in pieces)]))
            for branch, (codes, node) in enumerate(zip(value.parts, nodes, strict=True))
        )
        for leaf, piece in zip(leaves, pieces, strict=True):
            for other in leaf.values:
                del other.link[leaf]
            for child, rows in zip(children, piece, strict=True):
                if len(rows):
                    values = (*leaf.values[:number], child, *leaf.values[number + 1 :])
                    leaf.children.append(self._leaf(rows, values))
            leaf.rows = nobody
        place = self.cuts[number].index(value)
        self.cuts[number][place : place + 1] = children
        return children

    def leaves(self) -> Iterator[Partition]:
        """The leaf partitions that have rows."""
        waiting = [self.root]
        while waiting:
            partition = waiting.pop()
            if len(partition.rows):
                yield partition
            waiting += partition.children

    def smallest_after(self, value: LinkedValue) -> int:
        """The rows of the smallest group once v is specialised."""
        return min(self.smallest, value.smallest)

    def _split(self, rows: Places, value: LinkedValue) -> list[Places]:
        """The rows of one leaf on Link_v, by the children of v."""
        branches = self._next[value.attribute, rows] - self._starts[value.attribute]
        return [rows[branches == branch] for branch in range(len(value.parts))]

    def _value(self, number: int, codes: Places, node: TaxonomyNode | None, rows: Places) -> LinkedValue:
        """A new value of a cut, from a scan of its rows D_v."""
        attribute, column, classes = self._layout.attributes[number], self._columns[number][rows], self._layout.classes
        cells = np.bincount(column * classes + self._classes[rows], minlength=attribute.size * classes)
        counts = cells.reshape(attribute.size, classes)
        if node is not None:
            children = children_of(node)
            parts = tuple(_codes_under(child, attribute) for child in children) if len(children) > 1 else ()
        else:
            parts = self._halves(codes, counts[codes], attribute)
        goes_to = np.full(attribute.size, self._starts[number], dtype=np.intp)
        for branch, part in enumerate(parts):
            goes_to[part] += branch
        self._next[number, rows] = goes_to[column]
        score = float(self._measure(np.stack([counts[part].sum(axis=0) for part in parts]))) if parts else 0.0
        return LinkedValue(number, codes, node, parts, score, alike=bool(np.count_nonzero(counts.sum(axis=1)) <= 1))

    def _halves(self, codes: Places, counts: Counts, attribute: Single) -> tuple[Places, ...]:
        """An interval cut in two at its best point; gaps that are dropped stay with the last one."""
        points = len(codes) - (codes[-1] == attribute.hidden_code)
        if points < 2:
            return ()
        by_point = np.concatenate((counts[: points - 1], counts[points - 1 :].sum(axis=0, keepdims=True)))
        cut = self._cut(self._measure, by_point)
        return codes[:cut], codes[cut:]

    def _leaf(self, rows: Places, values: tuple[LinkedValue, ...]) -> Partition:
        """A new leaf, put on the links of its values."""
        leaf = Partition(rows, values, np.bincount(self._classes[rows], minlength=self._layout.classes))
        if len(rows):
            self.smallest = min(self.smallest, len(rows))
            sizes = np.bincount(self._next[:, rows].ravel(), minlength=int(self._starts[-1]))
            sizes[sizes == 0] = NO_GROUP
            for value, smallest in zip(values, np.minimum.reduceat(sizes, self._starts[:-1]).tolist(), strict=True):
                value.smallest = min(value.smallest, smallest)
        for value in values:
            value.link[leaf] = None
        return leaf


def _root_of(attribute: Single) -> TaxonomyNode | None:
    """The top of an attribute's taxonomy; None where it is an interval."""
    return None if attribute.ordered else taxonomy_of(attribute)


def _codes_under(node: TaxonomyNode, attribute: Single) -> Places:
    assert isinstance(attribute, Nominal)
    return np.array(codes_under(node, attribute), dtype=np.intp)


def _most_children(attribute: Single) -> int:
    """The most children that any value of an attribute has; at least 1, where the rows of values without children go."""
    root = _root_of(attribute)
    return 2 if root is None else max(1, *(len(children_of(node)) for node in root.nodes()))


def _cut_of(attribute: Nominal | Ordered, values: list[LinkedValue]) -> Cut:
    """What is left of values once the rows behind them are forgotten."""
    if isinstance(attribute, Ordered):
        return NumericCut(attribute, tuple(int(value.codes[0]) for value in values), (None,) * len(values))
    return NominalCut(attribute, tuple(value.node for value in values if value.node is not None))


# -- the algorithm -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GeneralisedGroup:
    """The rows that share a generalised value of every attribute: its labels in the order of the schema, class counts."""

    labels: tuple[str, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Specialisation:
    """A step of the fit: the attribute, the place of the value in the cut before the step, its score and its loss."""

    attribute: str
    place: int
    score: float
    loss: int


class TDS:
    """NOT PRIVATE. Generalises all attributes but the class as little as k-anonymity allows, for trees to be trained on.

    Every attribute starts at the root of its taxonomy (without one: a root above all categories) or as its whole interval.
    Each step replaces the best valid value of all cuts by its children. Valid: every group of equal generalised rows keeps
    at least `k` rows. An interval is cut in two at its best grid point, whether or not the cut is valid. Of equal cuts the
    lowest is taken, of equal values the first attribute in the schema and there the leftmost value.

    `score` is the information gain over the anonymity loss, which is how many rows the smallest group loses; where it loses
    none, the gain itself. "infogain/(loss+1)" is the journal's version. "infogain" and "max" leave the loss out: with k = 1
    and a number of `specialisations` they are DiffGen without noise.

    `specialisations=None` goes on until no value is valid, also where nothing is gained for the class. It leaves values
    whole whose rows are all alike: to specialise them would change no group, only cut empty intervals down to single points.

    cuts_      for each attribute its cut
    groups_    the groups that have rows, in the order of their labels
    steps_     the specialisations made
    schema_    the schema it was fitted by
    """

    cuts_: dict[str, Cut]
    groups_: list[GeneralisedGroup]
    steps_: list[Specialisation]
    schema_: Schema

    def __init__(self, k: int = 5, score: str = "infogain/loss", specialisations: int | None = None) -> None:
        if k < 1:
            raise RequestError(f"'k' must be at least 1. Got {k} instead.")
        if score not in SPECIALISATION_SCORES:
            raise RequestError(f"The score must be one of {', '.join(SPECIALISATION_SCORES)}. Got {score!r} instead.")
        if specialisations is not None and specialisations < 0:
            raise RequestError(f"'specialisations' must be at least 0, or be None. Got {specialisations} instead.")
        self.k = k
        self.score = score
        self.specialisations = specialisations

    def fit(self, table: Any, *, schema: Schema | str) -> Self:
        """Fit to a file or frame that holds the class in the column that the schema names."""
        schema = Schema.load(schema)
        names = [attribute.name for attribute in Layout.of(schema).attributes]
        rows, classes = encode_lessons(table, schema, names)
        return self.fit_codes(rows, classes, schema)

    def fit_codes(self, rows: Mapping[str, Codes], classes: Codes, schema: Schema) -> Self:
        """Fit to encoded columns; `classes` are the codes of the class."""
        layout = Layout.of(schema)
        check_codes(layout, rows, classes)
        if 0 < len(classes) < self.k:
            raise RequestError(f"The table has fewer than k = {self.k} rows, so no generalisation of it is k-anonymous.")
        tree = LinkTree(layout, rows, classes.astype(np.intp), SPECIALISATION_SCORES[self.score].measure)
        steps: list[Specialisation] = []
        while self.specialisations is None or len(steps) < self.specialisations:
            best = self._best(tree)
            if best is None:
                break
            value, score = best
            name, place = layout.attributes[value.attribute].name, tree.cuts[value.attribute].index(value)
            steps.append(Specialisation(name, place, score, tree.smallest - tree.smallest_after(value)))
            tree.specialise(value)
        pairs = list(zip(layout.attributes, tree.cuts, strict=True))
        self.cuts_ = {attribute.name: _cut_of(attribute, cut) for attribute, cut in pairs}
        self.steps_ = steps
        self.schema_ = schema
        self.groups_ = self._groups(tree)
        return self

    def _best(self, tree: LinkTree) -> tuple[LinkedValue, float] | None:
        """The valid candidate of the best score, and the score."""
        values = [value for cut in tree.cuts for value in cut if value.parts and tree.smallest_after(value) >= self.k]
        candidates = [value for value in values if self.specialisations is not None or not value.alike]
        if not candidates:
            return None
        divisor = SPECIALISATION_SCORES[self.score].divisor
        divisors = np.array([divisor(tree.smallest - tree.smallest_after(value)) for value in candidates])
        scores = np.array([value.score for value in candidates]) / divisors
        # Scores that are equal on paper differ in the last bits: take the first that may be the largest.
        uncertainty = ROUNDING / divisors
        place = int(np.argmax(scores + uncertainty >= np.max(scores - uncertainty)))
        return candidates[place], float(scores[place])

    def _groups(self, tree: LinkTree) -> list[GeneralisedGroup]:
        places = [{value: place for place, value in enumerate(cut)} for cut in tree.cuts]
        labels = list(self.cut_texts().values())
        found = sorted(
            (tuple(by[value] for by, value in zip(places, leaf.values, strict=True)), tuple(leaf.counts.tolist()))
            for leaf in tree.leaves()
        )
        return [
            GeneralisedGroup(tuple(texts[place] for texts, place in zip(labels, where, strict=True)), counts)
            for where, counts in found
        ]

    def transform_codes(self, rows: Mapping[str, Codes]) -> dict[str, Codes]:
        """Encoded rows generalised: for each attribute the number of each row's label among those of `cut_texts`."""
        return {
            name: np.zeros(len(rows[name]), dtype=np.uint8)
            if (key := cut.key()) is None
            else labels_of(key, rows, self.schema_).astype(smallest_type(len(cut)))
            for name, cut in self._fitted_cuts().items()
        }

    def cut_texts(self) -> dict[str, tuple[str, ...]]:
        """For each attribute the labels of its cut, from left to right."""
        return {name: tuple(value.name for value in cut.values()) for name, cut in self._fitted_cuts().items()}

    def _fitted_cuts(self) -> dict[str, Cut]:
        if not hasattr(self, "cuts_"):
            raise RequestError("These cuts have not been fitted. Call 'fit' first.")
        return self.cuts_
