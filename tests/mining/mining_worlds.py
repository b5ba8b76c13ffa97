"""Small tables, every estimator, and executors that record what an algorithm asks or replay what it was answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

import dpmine as dm
from dpmine.epsilon import Epsilon
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.queries import ChooseSplit, Preview, Query, Reply
from dpmine.schema import ItemList, Nominal, Numeric, Schema, TaxonomyNode
from dpmine.statements import Statement
from dpmine.tables import Executor, PrivateTable

Table = dict[str, list[Any]]
HUGE = 1_000_000
"""An epsilon at which noise is 0 and a choice is the best one, but for chances below e^-40."""

EVERY: dict[str, Callable[..., TreeEstimator]] = {
    "TreeClassifier": dm.TreeClassifier,
    "DiffPC45": dm.DiffPC45,
    "DiffPID3": dm.DiffPID3,
    "SulqID3": dm.SulqID3,
    "GreedyForest": dm.GreedyForest,
    "RandomForest": partial(dm.RandomForest, trees=3, max_depth=3, seed=7),
}
PUBLISHED = ("DiffPC45", "DiffPID3", "SulqID3")

TAXONOMY = TaxonomyNode.parse("any", {"warm": ["red", "yellow"], "cold": ["blue", "green"]})


def schema_of(*, numeric: bool = True, classes: int = 2, lists: bool = False, rows_at_most: int = 1000) -> Schema:
    """Nominal attributes of 4 (with a taxonomy), 3, 2 categories and one, and numeric ones of 21, 8 and 2 grid points."""
    attributes: list[Nominal | Numeric | ItemList] = [
        Nominal("colour", ("red", "blue", "yellow", "green"), "red", TAXONOMY),
        Nominal("kind", ("a", "b", "c"), "a"),
        Nominal("flag", ("no", "yes"), "no"),
    ]
    if numeric:
        attributes += [
            Numeric("size", Decimal(0), Decimal(10), Decimal("0.5"), Decimal(0)),
            Numeric("age", Decimal(5), Decimal(12), Decimal(1), Decimal(5)),
            Numeric("half", Decimal(0), Decimal(1), Decimal(1), Decimal(0)),
        ]
    if lists:
        attributes += [ItemList("past", ("flu", "asthma"), 2), Nominal("constant", ("only",), "only")]
    labels = tuple(f"c{number}" for number in range(classes))
    return Schema("mined", (*attributes, Nominal("class", labels, labels[0])), rows_at_most, "class")


def table_of(schema: Schema, rows: int, seed: int, *, clear: float = 0.75) -> Table:
    """Rows whose class follows warm or cold colours, the kind, and the size where there is one, most of the time."""
    draw = np.random.default_rng(seed)
    codes = {a.name: draw.integers(0, a.size, rows) for a in schema.attributes if not isinstance(a, ItemList)}
    leaning = codes["colour"] % 2 + (codes["kind"] == 2)
    if "size" in codes:
        leaning = np.where(codes["size"] > 12, 0, leaning)
    classes = len(schema.class_labels)
    codes["class"] = np.where(draw.random(rows) < clear, leaning % classes, codes["class"])
    table: Table = {}
    for attribute in schema.attributes:
        if isinstance(attribute, ItemList):
            table[attribute.name] = ["|".join(attribute.items[: int(place)]) for place in draw.integers(0, 3, rows)]
        elif isinstance(attribute, Numeric):
            table[attribute.name] = [float(attribute.point(int(code))) for code in codes[attribute.name]]
        else:
            table[attribute.name] = [attribute.label(int(code)) for code in codes[attribute.name]]
    return table


def without_class(table: Table, target: str = "class") -> Table:
    return {name: column for name, column in table.items() if name != target}


@contextmanager
def opened(table: Any, schema: Schema, epsilon: Any = 1, **options: Any) -> Iterator[PrivateTable]:
    """A private table of alice, who may spend all of a ledger in memory."""
    with dm.open(table, schema=schema, ledger=None, cap=options.pop("cap", epsilon), **options) as data:
        yield data.grant("alice", epsilon=epsilon)


def fitted(model: TreeEstimator, table: Any, schema: Schema, epsilon: Any = None) -> TreeEstimator:
    """Fit on a table whose ledger holds just the model's epsilon: what costs more is refused."""
    with opened(table, schema, model.budget if epsilon is None else epsilon) as private:
        return model.fit(private)


# -- executors ---------------------------------------------------------------------------------------------------------


class Recorder:
    """Passes everything on, and keeps every query with its reply."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.asked: list[tuple[Query, Reply]] = []

    @property
    def schema(self) -> Schema:
        return self._executor.schema

    @property
    def queries(self) -> list[Query]:
        return [query for query, _ in self.asked]

    @property
    def choices(self) -> list[ChooseSplit]:
        return [query.question for query in self.queries if isinstance(query.question, ChooseSplit)]

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        reply = self._executor.answer(query, key=key)
        self.asked.append((query, reply))
        return reply

    def preview(self, query: Query) -> Preview:
        return self._executor.preview(query)

    def remaining(self) -> Epsilon:
        return self._executor.remaining()

    def statement(self) -> Statement:
        return self._executor.statement()


class Replayer:
    """Has no table: it hands out fixed replies in their order, whatever is asked, and keeps the queries."""

    def __init__(self, schema: Schema, replies: Sequence[Reply], epsilon: Epsilon) -> None:
        self.schema = schema
        self._replies = list(replies)
        self._left = epsilon.units
        self.queries: list[Query] = []

    def answer(self, query: Query, *, key: str | None = None) -> Reply:
        reply = self._replies[len(self.queries)]
        self.queries.append(query)
        self._left -= reply.cost.units
        return reply

    def preview(self, query: Query) -> Preview:
        left = Epsilon(self._left)
        return Preview(Epsilon(0), left, left, False, "")

    def remaining(self) -> Epsilon:
        return Epsilon(self._left)

    def statement(self) -> Statement:
        raise NotImplementedError


@contextmanager
def recorded(table: Any, schema: Schema, epsilon: Any = 1) -> Iterator[tuple[PrivateTable, Recorder]]:
    with opened(table, schema, epsilon) as private:
        recorder = Recorder(private._executor)
        yield PrivateTable(recorder), recorder
