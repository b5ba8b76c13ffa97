"""Queries and answers as frozen values: a view of the table, its cells, one question, and an epsilon for each cell.

A *view* narrows the table step by step. A *rule tree* splits the view into disjoint cells, and one query asks all
its cells at once. A cell is named by its path of (key, label) pairs, the same whether the path stands in the view or
in the rule tree, so a finer rule tree nests inside a coarser one and the odometer takes the maximum over cells.
"""

from __future__ import annotations

from dpmine.base.wire_values import value
from dpmine.facts.facts import Facts
from dpmine.language.keys import Key
from dpmine.language.predicates import IsMissing, Not, Predicate


class Step:
    """One narrowing of a view. Every step has stability 1: it maps each row to itself or to nothing."""


@value("where")
class Where(Step):
    """Keep the rows for which the predicate holds."""

    predicate: Predicate


@value("cell")
class Cell(Step):
    """Keep the rows with one label of a key: a cell of the partition by that key."""

    key: Key
    index: int


@value("view")
class View:
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> View:
        return View((*self.steps, step))

    def with_class(self, schema: Facts) -> View:
        """The rows of it that have a class: others teach nothing and judge nothing. Itself where all do."""
        has_class = Where(Not(IsMissing(schema.require_class())))
        return self if schema.target.gap is None or has_class in self.steps else self.then(has_class)


class Rules:
    """A public rule tree: a leaf, or a key whose labels lead to rule trees."""


@value("leaf")
class Leaf(Rules):
    pass


@value("split")
class Split(Rules):
    key: Key
    children: tuple[Rules, ...]


LEAF = Leaf()
