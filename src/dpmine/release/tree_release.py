"""`TreeRelease`: the table to publish. Groups are the leaves of a private tree instead of a product of cuts.

DiffGen cuts every attribute the same way everywhere, so that each specialisation multiplies the groups, most of them empty
or noise. Here a tree decides where to look closer: a group is divided further only where that tells classes apart, by one
private choice over all attributes, and there are as few groups as leaves. What a leaf leaves open is drawn by frequencies
that are bought once for every attribute.

    tree          grown level by level as `TreeClassifier` does; leaves are disjoint, so a level costs what one choice costs
    class counts  noisy counts of the classes in every leaf, made to add up: no phantom rows
    frequencies   noisy counts of every attribute's values, by which values are drawn among those that can come to a leaf

Frequencies are not taken by class: a learner would count what the tree says once more for each of them (decision 13).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.progress import Progress
from dpmine.budget.plans import PlanStep, StatedBudget, off_by, part_of
from dpmine.facts.encoding import Codes
from dpmine.facts.schema import Schema
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.parameters import check_number
from dpmine.mining.trees.greedy import AUTO, GreedyTrees, TreeBudget, counted_rows
from dpmine.mining.trees.growing import Growth, Sprout
from dpmine.models.cuts import CutValue, predictors, told_apart, value_name
from dpmine.models.trees import MILLION, Node, Trees, columns_of, lookup
from dpmine.postprocess.totals import whole_with_total, with_total
from dpmine.release.estimator import ReleaseEstimator
from dpmine.release.released import GroupCounting, ReleasedTable, Weights
from dpmine.tables.private_table import PrivateTable

Integers = NDArray[np.int64]
OVERLAP = "Groups differ in how far they generalise an attribute: a value of one group may contain that of another."
COVER = 0.25  # of the noise scale of a frequency: what every value of an attribute that the tree splits by has at least


@dataclass(frozen=True)
class TreeReleaseBudget(StatedBudget):
    """The tree has what frequencies leave. A row is in the counts of every attribute, so they add up."""

    tree: TreeBudget
    frequencies: PlanStep | None


@dataclass(repr=False, eq=False)
class TreeRelease(ReleaseEstimator):
    """A table of records that any learner can be trained on.

    epsilon          the whole privacy budget
    frequency_share  the share of epsilon for the counts of every attribute's values
    leaf_share       of the rest, the share for class counts in leaves; what remains is for choosing splits
    max_depth        how deep the tree may grow; "auto" follows from epsilon and a noisy number of rows
    schema           the public facts, for fit(X, y)

    Example: dm.TreeRelease(epsilon=1).fit(private).rows(raw=True)
    """

    epsilon: Amount = 1.0
    frequency_share: float = 0.15
    leaf_share: float = 0.12
    max_depth: int | str = GreedyTrees.max_depth
    schema: SchemaLike = None

    raw_by_default = True

    # -- the budget plan --------------------------------------------------------------------------------------------

    def title(self, schema: Schema) -> str:
        return "TreeRelease"

    def check(self, schema: Schema) -> None:
        check_number("frequency_share", self.frequency_share, 0, 0.9)
        self._greedy.check()

    @property
    def _greedy(self) -> GreedyTrees:
        return GreedyTrees(self.max_depth, leaf_share=self.leaf_share)

    def budget_for(self, schema: Schema, rows: float = 0) -> TreeReleaseBudget:
        budget, attributes = self.row_budget(schema), len(predictors(schema))
        each = part_of(budget, Fraction(str(self.frequency_share)) / max(attributes, 1))
        left = Epsilon(budget.units - each.units * attributes)
        return TreeReleaseBudget(
            self._greedy.shares(left, schema, rows),
            PlanStep.if_any("count the values of every attribute", each, attributes, off_by(each)),
        )

    # -- releasing --------------------------------------------------------------------------------------------------

    def _learn(self, private: PrivateTable, progress: Progress) -> ReleasedTable:
        schema = private.schema
        growth = Growth(private, ())
        rows = counted_rows(growth, self.budget_for(schema).tree.count)
        budget = self.budget_for(schema, rows)
        (grown,) = self._greedy.grow(growth, [growth.root], budget.tree, progress)
        names = [attribute.name for attribute in predictors(schema)]
        decisive = columns_of(Trees(schema.class_labels, (grown,)))
        weights = self._frequencies(private, decisive, budget.frequencies)
        self._root = growth.root  # from here on nothing can fail: model and release belong together
        values, groups = _regions(self._leaves(), schema, names)
        counts = self._class_counts(grown)
        counting = GroupCounting(budget.tree.leaves.epsilon, None, counts.size, adjusted=True)
        planned = round(rows) if self.max_depth == AUTO else None
        return ReleasedTable(schema, values, groups, counts, weights, counting, (OVERLAP,), planned)

    def _class_counts(self, grown: Node) -> Integers:
        """Whole class counts of the leaves that rows can come to: each leaf's rows, shared as the smoothed tree says."""
        kept = [node for node, leaf in zip(grown.leaves(), self._root.leaves(), strict=True) if leaf.reachable]
        noisy = np.array([sum(node.rows) for node in kept], dtype=np.int64)
        rows = with_total(noisy, int(noisy.sum()))
        shares = np.array([node.shares for node in kept], dtype=np.float64) / MILLION
        return np.array([whole_with_total(share * count, int(count)) for share, count in zip(shares, rows, strict=True)])

    def _leaves(self) -> list[Sprout]:
        return [leaf for leaf in self._root.leaves() if leaf.reachable]

    def _frequencies(self, private: PrivateTable, decisive: Sequence[str], step: PlanStep | None) -> dict[str, Weights]:
        """How frequent the values of every attribute are, by noisy counts that are made to add up.

        Where the tree decides by an attribute, noise must not strike out values: learners would never see them.
        """
        if step is None:
            return {}
        weights: dict[str, Weights] = {}
        for attribute in predictors(private.schema):
            counted = private.histogram(attribute.name, epsilon=step.epsilon)
            weights[attribute.name] = with_total(counted.counts, int(counted.counts.sum())).astype(np.float64)
            if attribute.name in decisive:
                weights[attribute.name] += COVER * float(counted.law.fraction)
        return weights

    def _groups_of(self, rows: Mapping[str, Codes], count: int) -> Integers:
        leaf = np.zeros(count, dtype=np.int64)
        numbers = {id(sprout): number for number, sprout in enumerate(self._leaves())}
        _assign(self._root, np.arange(count), rows, self.release().schema, numbers, leaf)
        return self.release().groups[leaf]


def _regions(
    leaves: Sequence[Sprout], schema: Schema, names: Sequence[str]
) -> tuple[dict[str, tuple[CutValue, ...]], Integers]:
    """For each attribute the different sets of codes that leaves hold, and for each leaf which of them it holds."""
    values: dict[str, tuple[CutValue, ...]] = {}
    groups = np.zeros((len(leaves), len(names)), dtype=np.int64)
    for place, name in enumerate(names):
        attribute = schema.single(name)
        known: dict[tuple[int, ...], int] = {}
        for number, leaf in enumerate(leaves):
            codes = tuple(np.flatnonzero(leaf.codes(name, schema)).tolist())
            groups[number, place] = known.setdefault(codes, len(known))
        # Gaps alone come last, as in every cut: they are a gap in the generalised table too.
        order = sorted(known, key=lambda codes: codes == (attribute.missing_code,))
        places = {codes: number for number, codes in enumerate(order)}
        groups[:, place] = np.array([places[codes] for codes in known])[groups[:, place]]
        names_of = told_apart([value_name(attribute, codes) for codes in order])
        values[name] = tuple(map(CutValue, names_of, order))
    return values, groups


def _assign(
    sprout: Sprout,
    places: NDArray[np.intp],
    rows: Mapping[str, Codes],
    schema: Schema,
    numbers: Mapping[int, int],
    leaf: Integers,
) -> None:
    """Write the number of each row's leaf; the rows at these places have come to this node."""
    if sprout.split is None:
        if len(places):
            leaf[places] = numbers[id(sprout)]
        return
    table = lookup(sprout.split, schema)
    labels = table.labels[rows[table.attribute][places]]
    for number, child in enumerate(sprout.children):
        _assign(child, places[labels == number], rows, schema, numbers, leaf)
