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

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmine.codes import Codes
from dpmine.cuts import CutValue, predictors, told_apart, value_name
from dpmine.epsilon import Epsilon
from dpmine.mining.budget_plans import BudgetPlan, PlanStep, off_by, part_of
from dpmine.mining.estimators import Amount, SchemaLike, check_number
from dpmine.mining.trees.classifier import AUTO, TreeClassifier
from dpmine.mining.trees.growing import Growth, Sprout
from dpmine.postprocess.totals import whole_with_total, with_total
from dpmine.progress import Progress
from dpmine.release.estimator import ReleaseEstimator
from dpmine.release.released import GroupCounting, ReleasedTable, Weights
from dpmine.schema import Schema
from dpmine.tables import PrivateTable
from dpmine.tree_models import MILLION, Node, Trees, columns_of, lookup

Integers = NDArray[np.int64]
OVERLAP = "Groups differ in how far they generalise an attribute: a value of one group may contain that of another."
COVER = 0.25  # of the noise scale of a frequency: what every value of an attribute that the tree splits by has at least


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
    max_depth: int | str = AUTO
    schema: SchemaLike = None

    raw_by_default = True

    # -- the budget plan --------------------------------------------------------------------------------------------

    def frequency_budget(self, schema: Schema) -> Epsilon:
        """For the counts of each attribute's values: a row is in all of them, so they add up."""
        share = Fraction(str(self.frequency_share)) / max(len(predictors(schema)), 1)
        return part_of(self.row_budget(schema), share)

    def tree(self, schema: Schema) -> TreeClassifier:
        """The tree, with what frequencies leave of the budget."""
        taken = self.frequency_budget(schema).units * len(predictors(schema)) * schema.rows_per_unit
        return TreeClassifier(
            epsilon=Epsilon(self.budget.units - taken),
            max_depth=self.max_depth,
            leaf_share=self.leaf_share,
        )

    def plan(self, schema: Schema | str | Path, *, rows: int | None = None) -> BudgetPlan:
        facts = Schema.load(schema)
        check_number("frequency_share", self.frequency_share, 0, 0.9)
        each = self.frequency_budget(facts)
        steps = self.tree(facts).plan(facts, rows=rows).steps
        if each.units:
            steps = (*steps, PlanStep("count the values of every attribute", each, len(predictors(facts)), off_by(each)))
        return BudgetPlan("TreeRelease", self.budget, steps, facts.rows_per_unit)

    # -- releasing --------------------------------------------------------------------------------------------------

    def _release(self, private: PrivateTable, progress: Progress) -> ReleasedTable:
        schema = private.schema
        tree = self.tree(schema)
        growth = Growth(private, ())
        rows = tree.counted_rows(growth)
        budget = tree.shares(tree.row_budget(schema), rows)
        (grown,) = tree.grow_from(growth, [growth.root], budget, progress)
        names = [attribute.name for attribute in predictors(schema)]
        weights = self._frequencies(private, names, columns_of(Trees(schema.class_labels, (grown,))))
        self._root = growth.root  # from here on nothing can fail: model and release belong together
        values, groups = _regions(self._leaves(), schema, names)
        counts = self._class_counts(grown)
        counting = GroupCounting(budget.leaves, None, counts.size, adjusted=True)
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

    def _frequencies(self, private: PrivateTable, names: Sequence[str], decisive: Sequence[str]) -> dict[str, Weights]:
        """How frequent the values of every attribute are, by noisy counts that are made to add up.

        Where the tree decides by an attribute, noise must not strike out values: learners would never see them.
        """
        epsilon = self.frequency_budget(private.schema)
        if not epsilon.units:
            return {}
        weights: dict[str, Weights] = {}
        for name in names:
            counted = private.histogram(name, epsilon=epsilon)
            weights[name] = with_total(counted.counts, int(counted.counts.sum())).astype(np.float64)
            if name in decisive:
                weights[name] += COVER * float(counted.scale)
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
        names_of = told_apart([value_name(attribute, codes) for codes in known])
        values[name] = tuple(map(CutValue, names_of, known))
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
