"""Golden entries: what questions cost together, what ledgers say of it, and what is refused without a charge."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any

from golden_models import fitted
from golden_questions import COUGHING, OWN
from golden_table import DRAFTED, FOUR_CLASSES, PERSONS, SCHEMA
from golden_world import PLENTY, World, entry

import dpmine as dm
from dpmine import col
from dpmine.base.errors import BudgetError, DpmineError

A_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def statement_lines(statement: Any) -> list[str]:
    """A statement as it prints, without its times."""
    return A_TIME.sub("<time>", str(statement)).splitlines()


class Till:
    """Tells, question by question, by how much a private table's budget fell."""

    def __init__(self, private: dm.PrivateTable) -> None:
        self._private = private
        self._left = private.remaining().units
        self.charged: dict[str, str] = {}

    def ring(self, what: str, answer: Any = None) -> None:
        left = self._private.remaining().units
        self.charged[what] = str(dm.Epsilon(self._left - left)) + ("" if answer is None else f", answer {int(answer)}")
        self._left = left


# -- costs together ----------------------------------------------------------------------------------------------------


@entry("cost/the same again is free", duckdb=True)
def _again(world: World) -> Any:
    private = world.private()
    till = Till(private)
    till.ring("first", private.count(epsilon="0.5"))
    till.ring("again", private.count(epsilon="0.5"))
    till.ring("at another price", private.count(epsilon="0.25"))
    till.ring("under a name", private.count(epsilon="0.5", request_key="monday"))
    till.ring("under that name again", private.count(epsilon="0.5", request_key="monday"))
    return {**till.charged, "preview": private.preview.count(epsilon="0.5")}


@entry("cost/disjoint parts cost their maximum", duckdb=True)
def _disjoint(world: World) -> Any:
    private = world.private()
    till = Till(private)
    for number, (label, part) in enumerate(private.partition("ward").items(), start=1):
        till.ring(label, part.count(epsilon=f"0.{number}"))
    wards = private.partition("ward")
    till.ring("one part by cells", wards["north"].cells("cough").count(epsilon=["0.5", "0.3"])[0])
    till.ring("the same part by another key", wards["north"].cells("diagnosis").count(epsilon="0.2")[0])
    till.ring("all rows", private.count(epsilon="0.1"))
    return till.charged


@entry("cost/views add up")
def _views(world: World) -> Any:
    private = world.private()
    till = Till(private)
    till.ring("young", private.where("age < 40").count(epsilon="0.3"))
    till.ring("old", private.where("age >= 40").count(epsilon="0.3"))
    till.ring("old and coughing", private.where("age >= 40").where("cough == yes").count(epsilon="0.1"))
    till.ring("a test's cells", private.cells(col("age") >= 40).count(epsilon="0.3")[0])
    return till.charged


@entry("cost/persons pay for all their rows")
def _persons(world: World) -> Any:
    private = world.private(PERSONS)
    till = Till(private)
    for label, part in private.partition("ward").items():
        till.ring(label, part.count(epsilon="0.5"))
    till.ring("mean", float(private.mean("age", epsilon="0.25")))
    fitted(world, dm.TreeClassifier(epsilon=1, max_depth=2), private)
    till.ring("a tree of epsilon 1")
    return till.charged


@entry("cost/a model again is free")
def _model_again(world: World) -> Any:
    private = world.private()
    till = Till(private)
    for what in ("first", "again"):
        model = fitted(world, dm.TreeClassifier(epsilon=1, max_depth=2), private)
        till.ring(what)
    return {**till.charged, "charged by the second": model.charged_, "cost of the second": model.cost_}


@entry("cost/two analysts and the data set")
def _analysts(world: World) -> Any:
    data = world.data(cap=1)
    alice, bob = (world.granted(data, name, "0.8") for name in ("alice", "bob"))
    tills = {"alice": Till(alice), "bob": Till(bob)}
    tills["alice"].ring("count", alice.count(epsilon="0.6"))
    tills["bob"].ring("the same count", bob.count(epsilon="0.3"))
    refused = refusal(bob, lambda table: table.histogram("ward", epsilon="0.5"))
    return {"alice": tills["alice"].charged, "bob": tills["bob"].charged, "over the cap": refused}


# -- statements --------------------------------------------------------------------------------------------------------


def _asked_a_few(world: World, data: dm.DataSet) -> dm.PrivateTable:
    private = world.granted(data, "alice", 10)
    private.count(epsilon="0.5")
    private.where("age >= 40 and history contains [flu]").histogram("ward", "cough", epsilon="0.25")
    private.cells("ward").choose(["age", "cough"], score="gini", epsilon="0.1")
    private.sparse_histogram("ward", "age", epsilon=1)
    private.choose("ward", epsilon="0.1")
    private.mean("dose", epsilon="0.5")
    private.quantile("age", "0.25", epsilon="0.125")
    private.means(["age", "dose"], epsilon="0.5")
    private.median("dose", epsilon="0.5", design="geometric")
    private.count(epsilon="0.1", design="staircase")
    private.choose_model([COUGHING, COUGHING], epsilon="0.1")
    return private


@entry("statement/of an analyst")
def _statement(world: World) -> Any:
    return statement_lines(_asked_a_few(world, world.data()).statement())


@entry("statement/of the owner")
def _owner(world: World) -> Any:
    data = world.data(cap=20, renewal=dm.Renewal.every(36_500, epsilon=2, start=date(2020, 1, 1)))
    _asked_a_few(world, data)
    world.granted(data, "bob", 1).count(epsilon="0.75")
    world.granted(data, "carol", 2)
    data.revoke("carol")
    return statement_lines(data.statement())


@entry("statement/of persons under a drafted schema")
def _guarantee(world: World) -> Any:
    persons, drafted = world.data(PERSONS, version="2024"), world.data(DRAFTED)
    return [statement_lines(_asked_a_few(world, data).statement()) for data in (persons, drafted)]


@entry("statement/of a fit")
def _fit(world: World) -> Any:
    private = world.private()
    fitted(world, dm.KMeans(2, epsilon=2, attributes=["age"], scaling="bounds", seed=1), private)
    fitted(world, dm.KMeans(2, epsilon=2, scaling="bounds", method="tree", seed=1), private)
    fitted(world, dm.TreeClassifier(epsilon=1, max_depth=2), private)
    return statement_lines(private.statement())


# -- refusals ----------------------------------------------------------------------------------------------------------


def refusal(private: dm.PrivateTable, ask: Callable[[dm.PrivateTable], Any]) -> Any:
    """The error that a question is refused with; nothing may have been charged."""
    before = private.remaining()
    try:
        ask(private)
    except DpmineError as error:
        assert private.remaining() == before, "a refused question was charged"
        stated = {"requested": error.requested, "remaining": error.remaining} if isinstance(error, BudgetError) else {}
        return {"error": type(error).__name__, "text": str(error), **stated}
    raise AssertionError("this question must be refused")


Ask = Callable[[dm.PrivateTable], Any]
REFUSED: dict[str, Ask] = {
    "an unknown column": lambda table: table.histogram("blood", epsilon=1),
    "a dropped column": lambda table: table.histogram("person", epsilon=1),
    "a list as a key": lambda table: table.histogram("history", epsilon=1),
    "an unknown category": lambda table: table.where("ward == attic").count(epsilon=1),
    "categories in order": lambda table: table.where("ward < south").count(epsilon=1),
    "a bound that is no number": lambda table: table.where("age >= old").count(epsilon=1),
    "a bound beyond all values": lambda table: table.where("age > 100").count(epsilon=1),
    "a predicate that is never true": lambda table: table.where("false").count(epsilon=1),
    "text that is no predicate": lambda table: table.where("age >= 40 or").count(epsilon=1),
    "an item of no list": lambda table: table.where(col("ward").contains("flu")).count(epsilon=1),
    "cuts that fall": lambda table: table.histogram(col("age").bins(40, 30), epsilon=1),
    "groups of numbers": lambda table: table.histogram(col("age").groups({"young": ["1"]}), epsilon=1),
    "an epsilon of nothing": lambda table: table.count(epsilon=0),
    "a negative epsilon": lambda table: table.count(epsilon="-1"),
    "an epsilon below the smallest": lambda table: table.count(epsilon="0.0000000001"),
    "an epsilon that is no number": lambda table: table.count(epsilon="much"),
    "more than remains": lambda table: table.count(epsilon=PLENTY + 1),
    "epsilons of another number of cells": lambda table: table.cells("ward").count(epsilon=[1, 2]),
    "a threshold of nothing": lambda table: table.sparse_histogram("ward", epsilon=1, at_least=0),
    "the mean of a category": lambda table: table.mean("ward", epsilon=1),
    "an order beyond one": lambda table: table.quantile("age", 1.5, epsilon=1),
    "the gain ratio": lambda table: table.choose(["ward"], score="gainratio", epsilon=1),
    "an unknown score": lambda table: table.choose(["ward"], score="luck", epsilon=1),
    "an unknown mechanism of choice": lambda table: table.choose("ward", mechanism="dice", epsilon=1),
    "an unknown calibration": lambda table: table.choose("ward", calibration="loose", epsilon=1),
    "an unknown ball": lambda table: table.sums(["age"], ball="l2", epsilon=1),
    "an unknown designed mechanism": lambda table: table.mean("age", design="magic", epsilon=1),
    "a designed count without bounds": lambda table: table.count(design="heuristic", epsilon=1),
    "a table that does not keep epsilon": lambda table: table.median("dose", design=OWN, epsilon="0.5"),
    "a split of no share": lambda table: table.split(test=1),
    "a tree too deep": lambda table: dm.TreeClassifier(max_depth=21).fit(table),
    "a tree by the gain ratio": lambda table: dm.DiffPID3(criterion="gainratio").fit(table),
    "a tree that cannot be paid": lambda table: dm.TreeClassifier(epsilon=PLENTY + 1).fit(table),
    "a plan of too small an epsilon": lambda table: dm.SulqID3(epsilon="0.000000001").fit(table),
    "clusters of a category": lambda table: dm.KMeans(2, attributes=["ward"], scaling="bounds").fit(table),
    "an unknown scaling": lambda table: dm.KMeans(2, attributes=["age", "dose"], scaling="other").fit(table),
    "specialisations of an unstated number": lambda table: dm.DiffGen(1, "auto").fit(table),
    "a contingency table too large": lambda table: dm.ContingencyTable("0.01", bins=50, threshold=1).fit(table),
    "models of other classes": lambda table: table.choose_model(
        [type(COUGHING)(COUGHING.trees, ("well", "ill"))], epsilon=1
    ),
}


def _refused(ask: Ask) -> Callable[[World], Any]:
    return lambda world: refusal(world.private(), ask)


for _name, _ask in REFUSED.items():
    entry(f"refused/{_name}")(_refused(_ask))


@entry("refused/one name for two questions")
def _two_questions(world: World) -> Any:
    private = world.private()
    private.count(epsilon="0.5", request_key="monday")
    return refusal(private, lambda table: table.count(epsilon="0.25", request_key="monday"))


@entry("refused/after the access was revoked")
def _revoked(world: World) -> Any:
    data = world.data()
    private = world.granted(data, "alice", 1)
    private.count(epsilon="0.5")
    data.revoke("alice")
    try:
        private.count(epsilon="0.25")
    except DpmineError as error:
        return {"error": type(error).__name__, "text": str(error), "owner's statement": statement_lines(data.statement())}
    raise AssertionError("a revoked analyst must be refused")


@entry("refused/to who was granted nothing")
def _stranger(world: World) -> Any:
    data = world.data()
    try:
        data.private("mallory")
    except DpmineError as error:
        return {"error": type(error).__name__, "text": str(error)}
    raise AssertionError("who was granted nothing must be refused")


@entry("refused/a model that judges another table")
def _other_table(world: World) -> Any:
    model = fitted(world, dm.TreeClassifier(epsilon=1, max_depth=1), world.private(SCHEMA))
    other = world.private(PERSONS)
    told = {"persons may be judged": str(model.evaluate(other, epsilon=2).epsilon)}
    return {**told, **refusal(world.private(FOUR_CLASSES), lambda table: model.evaluate(table, epsilon=1))}
