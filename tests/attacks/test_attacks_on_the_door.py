"""What an untrusted analyst with JSON queries might try. Each attack worked once, or has a twin that shows it would."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.codes.answers import Answer
from dpmine.codes.choices import MOST_COPIES
from dpmine.codes.queries import MOST_KEYS
from dpmine.engines.encoding import encode
from dpmine.engines.memory.cells import cell_ids
from dpmine.engines.memory.rows import Rows
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.keys import AttributeKey, Bins, Groups, Part, Test
from dpmine.language.predicates import Compare
from dpmine.language.queries import Query
from dpmine.language.resolver import MOST_CELLS, MOST_STEPS, resolve_cells
from dpmine.language.splits import Multiway
from dpmine.language.views import LEAF, Cell, Rules, Split, View, Where
from dpmine.questions.choose_label import ChooseLabel
from dpmine.questions.choose_split import ChooseSplit
from dpmine.questions.histogram import Histogram
from dpmine.tables.private_table import PrivateTable

SCHEMA = Schema(
    "attacked",
    (
        Numeric("fine", Decimal(0), Decimal(4095), Decimal(1), Decimal(0)),
        Numeric("age", Decimal(0), Decimal(255), Decimal(1), Decimal(0)),
        Nominal("ill", ("no", "yes"), "no", missing="no"),
    ),
    rows_at_most=1000,
    class_attribute="ill",
)
ROWS = 300


def columns() -> dict[str, list[Any]]:
    draw = np.random.default_rng(5)
    return {
        "fine": draw.integers(0, 4096, ROWS).tolist(),
        "age": draw.integers(0, 256, ROWS).tolist(),
        "ill": draw.choice(["no", "yes"], ROWS).tolist(),
    }


@pytest.fixture
def private() -> Iterator[PrivateTable]:
    with dm.open(columns(), schema=SCHEMA, cap=10) as data:
        yield data.grant("mallory", epsilon=10)


def split_last_child(children: int) -> tuple[Rules, int]:
    """A first level with that many labels, whose last child is split in three by a recoding key; and its leaves."""
    first = Bins("fine", tuple(str(4096 - children + 1 + place) for place in range(children - 1)))
    below = Split(Bins("age", ("100", "200")), (LEAF, LEAF, LEAF))
    return Split(first, (*(LEAF,) * (children - 1), below)), children + 2


@pytest.mark.parametrize("children", [2, 253, 254, 255, 256, 257, 300, 1000])
def test_a_row_is_in_the_one_cell_that_its_values_name_however_many_cells_there_are(children: int) -> None:
    """A cell number that wraps around in 8 or 16 bits would let one price buy the same rows again and again."""
    table = encode(open_source(columns()), SCHEMA)
    rules, leaves = split_last_child(children)
    found = cell_ids(resolve_cells((), rules, SCHEMA), Rows(table, b"k" * 32))
    start = 4096 - children + 1
    for fine, age, cell in zip(columns()["fine"], columns()["age"], np.asarray(found.ids).tolist(), strict=True):
        first = min(max(fine - start + 1, 0), children - 1)
        assert cell == (first if first < children - 1 else first + (age >= 100) + (age >= 200))
    assert found.cells == leaves


def test_one_price_does_not_buy_the_same_rows_through_many_rule_trees(private: PrivateTable) -> None:
    """The attack that the wrap-around allowed: cell i of a tree with 256 + i + 1 leaves, epsilon there alone."""
    first = Bins("fine", tuple(str(4096 - 255 + place) for place in range(255)))
    spent = 0
    for cell in range(40):
        cuts = tuple(str(place + 1) for place in range(cell + 1))
        below = Split(Bins("age", cuts), (LEAF,) * (cell + 2))
        rules = Split(first, (*(LEAF,) * 255, below))
        epsilons: list[Any] = [0] * (255 + cell + 2)
        epsilons[cell] = "0.01"
        (answer,) = [count for count in private.cells(rules).count(epsilon=epsilons) if count is not None]
        assert abs(answer.value) < 10_000
        spent = 10_000_000_000 - private.remaining().units
    assert spent == 10_000_000  # all of these are cells of one partition that hold different rows


def too_large() -> dict[str, Query]:
    one = (Epsilon.parse(1),)

    def ask(rules: Rules = LEAF, question: Any = Histogram(()), epsilon: tuple[Epsilon, ...] = one) -> Query:  # noqa: B008
        return Query(View(), rules, question, epsilon)

    fine, age = AttributeKey("fine"), AttributeKey("age")
    cells = Part("p", (1,) * 2_000)
    many_tests = tuple(Multiway(Test(Compare("fine", "==", str(place)))) for place in range(MOST_KEYS + 1))
    return {
        "many numbers": ask(question=Histogram((fine, fine))),
        "many histogram keys": ask(question=Histogram((Groups("ill", ()),) * 70)),
        "many cells": ask(Split(Part("p", (1,) * (MOST_CELLS + 1)), (LEAF,) * (MOST_CELLS + 1))),
        "many epsilons": ask(Split(cells, (LEAF,) * 2_000), epsilon=tuple(Epsilon(10**9 + place) for place in range(2_000))),
        "many families": ask(question=ChooseSplit((many_tests,), "gini", "exponential", "monotone")),
        "many counts": ask(
            Split(Part("p", (1,) * 9_000), (LEAF,) * 9_000),
            ChooseSplit(((Multiway(fine), Multiway(age)),), "gini", "exponential", "monotone"),
        ),
    }


@pytest.mark.parametrize("name", sorted(too_large()))
def test_what_would_not_fit_is_refused_before_anything_is_charged(private: PrivateTable, name: str) -> None:
    with pytest.raises(dm.RequestError):
        private._executor.answer(too_large()[name])
    assert private.remaining() == Epsilon.parse(10)


def test_an_answer_of_millions_of_numbers_that_was_paid_can_be_read() -> None:
    with dm.open(columns(), schema=SCHEMA, cap=1) as data:
        wide = data.grant("mallory", epsilon=1).histogram("fine", "age", epsilon="0.000000001")
    assert wide.counts.shape == (4096, 256)
    assert len(str(wide.counts.tolist())) > 5_000_000


@pytest.mark.parametrize("text", ["sNaN", "NaN", "-sNaN123", "Infinity", "1e999999999", "9" * 5000, "\ud800", "\x00"])
def test_no_constant_makes_the_door_raise_anything_but_a_sentence(private: PrivateTable, text: str) -> None:
    for view in (View((Where(Compare("age", ">=", text)),)), View((Where(Compare("ill", "==", text)),))):
        with pytest.raises(dm.RequestError):
            private._executor.answer(Query(view, LEAF, Histogram(()), (Epsilon.parse(1),)))
    with pytest.raises(dm.RequestError):
        private.histogram(Bins("age", (text,)), epsilon=1)
    assert private.remaining() == Epsilon.parse(10)


@pytest.mark.parametrize("key", ["", "\ud800", "\x00", "x" * 201, "plan:abc"])
def test_request_keys_that_cannot_be_stored_are_refused(private: PrivateTable, key: str) -> None:
    with pytest.raises(dm.RequestError):
        private.count(epsilon=1, request_key=key)
    assert private.remaining() == Epsilon.parse(10)


def test_rows_read_another_way_are_another_root(tmp_path: Path) -> None:
    """Text "1.0" in a CSV file is a float in a frame: the same row, another cell. Roots add, so both are charged."""
    import pandas as pd

    schema = Schema("texts", (Nominal("a", ("1", "1.0", "other"), "other", missing="other"),), 100)
    path = tmp_path / "texts.csv"
    path.write_text("a\n" + "1.0\n" * 50)
    ledger = tmp_path / "ledger.db"
    with dm.open(path, schema=schema, ledger=ledger, cap=4) as data:
        in_file = data.grant("mallory", epsilon=4).partition("a")["1.0"].count(epsilon=1)
    with dm.open(pd.read_csv(path), schema=schema, ledger=ledger, cap=4) as data:
        private = data.private("mallory")
        in_frame = private.partition("a")["1"].count(epsilon=1)
        assert private.remaining() == Epsilon.parse(2)
    assert int(in_file) > 20
    assert int(in_frame) > 20


def test_a_draft_that_was_in_use_stays_in_the_statement(tmp_path: Path) -> None:
    drafted = dataclasses.replace(SCHEMA, drafted=True)
    ledger = tmp_path / "ledger.db"
    with dm.open(columns(), schema=drafted, ledger=ledger, cap=4) as data:
        data.grant("alice", epsilon=1).count(epsilon=1)
    with dm.open(columns(), schema=SCHEMA, ledger=ledger, cap=4) as data:
        assert "drafted" in data.private("alice").statement().guarantee
        assert "drafted" in data.statement().guarantee
        bob = data.grant("bob", epsilon=1)
        bob.count(epsilon=1)
        assert "drafted" not in bob.statement().guarantee


def test_another_size_bound_is_another_choice_and_not_a_cached_one(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    for bound, left in ((1000, 3), (100_000, 2)):
        schema = dataclasses.replace(SCHEMA, rows_at_most=bound)
        with dm.open(columns(), schema=schema, ledger=ledger, cap=4) as data:
            private = data.grant("alice", epsilon=4)
            private.choose(["age"], score="infogain", epsilon=1)
            assert private.remaining() == Epsilon.parse(left)


def test_a_cache_is_usable_in_a_child_forked_while_a_thread_counts() -> None:
    table = encode(open_source(columns()), SCHEMA)
    table.cache.put(b"warm", 1, 1)
    child = os.fork()
    if child == 0:
        os._exit(0 if table.cache.get(b"warm") == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0


# -- objects made by a caller ------------------------------------------------------------------------------------------


def raw(view: View = View(), rules: Rules = LEAF, epsilon: tuple[Epsilon, ...] = (Epsilon(10**9),)) -> Query:  # noqa: B008
    return Query(view, rules, Histogram(()), epsilon)


def test_no_cell_can_have_a_negative_epsilon(tmp_path: Path) -> None:
    """Only the largest was looked at: the others minted budget, and left a ledger that could not be opened again."""
    ledger = tmp_path / "ledger.db"
    with dm.open(columns(), schema=SCHEMA, ledger=ledger, cap=10) as data:
        private = data.grant("mallory", epsilon=10)
        rules = Split(AttributeKey("ill"), (LEAF, LEAF))
        for epsilon in ((Epsilon(10**9), Epsilon(-(10**9))), (Epsilon(-1),)):
            for use in (private._executor.answer, private._executor.preview):
                with pytest.raises(dm.RequestError, match="negative"):
                    use(raw(rules=rules, epsilon=epsilon))
        assert private.remaining() == Epsilon.parse(10)
    with dm.open(columns(), schema=SCHEMA, ledger=ledger) as data:
        assert data.private("mallory").remaining() == Epsilon.parse(10)


def test_one_cell_has_one_name(private: PrivateTable) -> None:
    """True is 1 for an engine but not in a hash: the same rows were told twice for one price."""
    age = Part("p", (1, 1))
    private._executor.answer(raw(View((Cell(age, 1),))))
    for index in (True, np.int64(1), 1.0, Fraction(1), Decimal(1), "1"):
        with pytest.raises(dm.RequestError):
            private._executor.answer(raw(View((Cell(age, index),))))  # type: ignore[arg-type]
    assert private.remaining() == Epsilon.parse(9)


def test_objects_that_change_their_mind_are_read_once() -> None:
    """A caller's object may answer otherwise each time it is asked. The door works on what its text said."""

    class Fickle(Epsilon):
        looks = 0

        @property
        def units(self) -> int:  # type: ignore[override]
            type(self).looks += 1
            return 1 if type(self).looks == 1 else 10**15

        def __init__(self) -> None:
            pass

    with dm.open(columns(), schema=SCHEMA, cap=10) as data:
        private = data.grant("mallory", epsilon=10)
        with pytest.raises(dm.RequestError):
            private._executor.answer(raw(epsilon=(Fickle(),)))

        class Wide(Cell):
            """Claims to be one cell and is another when resolved."""

            def __getattribute__(self, name: str) -> Any:
                if name == "index":
                    object.__setattr__(self, "asked", self.__dict__.get("asked", 0) + 1)
                    return 0 if self.__dict__["asked"] == 1 else 1
                return super().__getattribute__(name)

        two_faced = raw(View((Wide(Part("p", (1, 1)), 0),)))
        reply = private._executor.answer(two_faced)
        assert private.remaining() == Epsilon.parse(9)
        spendings = data.statement().spendings
        assert [str(spending.cost) for spending in spendings] == ["1"]
        assert reply.cost == Epsilon.parse(1)


def test_a_query_as_deep_as_a_charge_may_be_goes_through_the_door(private: PrivateTable) -> None:
    """Rule trees of 60 levels and more were refused by the reader of the time."""
    rules: Rules = LEAF
    for place in range(MOST_STEPS):
        rules = Split(Part(f"level {place}", (1, 1)), (rules, LEAF))
    counts = private.cells(rules).count(epsilon=1)
    assert len(counts) == MOST_STEPS + 1
    assert private.remaining() == Epsilon.parse(9)


def test_a_question_that_needs_more_stack_than_there_is_is_refused_in_a_sentence(private: PrivateTable) -> None:
    rules: Rules = LEAF
    for place in range(MOST_STEPS):
        rules = Split(Part(f"level {place}", (1, 1)), (rules, LEAF))

    def from_below(levels: int) -> None:
        if levels:
            return from_below(levels - 1)
        return private._executor.answer(raw(rules=rules))  # type: ignore[return-value]

    deep = sys.getrecursionlimit() - len(inspect.stack(0)) - 60
    with pytest.raises(dm.RequestError, match="too little stack"):
        from_below(deep)
    assert private.remaining() == Epsilon.parse(10)


# -- what is refused too late ------------------------------------------------------------------------------------------


def test_a_choice_among_too_many_labels_is_refused_before_it_is_charged(private: PrivateTable) -> None:
    many = Bins("age", tuple(f"0.{place:07d}" for place in range(1, MOST_COPIES + 1)))
    choice = ChooseLabel(many, "permute-and-flip", "monotone")
    with pytest.raises(dm.RequestError, match="at most 1000000 candidates"):
        private._executor.answer(Query(View(), LEAF, choice, (Epsilon.parse(1),)))
    assert private.remaining() == Epsilon.parse(10)


# -- what others did ---------------------------------------------------------------------------------------------------


def test_an_analyst_who_asked_nothing_sees_no_number_that_others_adaptive_questions_decided() -> None:
    """Of what others spent only one thing shows: whether a question that one could pay still fits the cap."""

    def seen(spent_by_others: str) -> list[str]:
        with dm.open(columns(), schema=SCHEMA, cap=10) as data:
            bob = data.grant("bob", epsilon=10)
            others = data.grant("alice", epsilon=10)
            others.partition("ill")["yes"].count(epsilon=spent_by_others)  # which part is for the others' answers to say
            others.where("age >= 3").count(epsilon="1.5")
            preview = bob.preview.count(epsilon=2)
            with pytest.raises(dm.BudgetError) as refused:
                bob.partition("ill")["no"].count(epsilon=9)
            with pytest.raises(dm.BudgetError) as room:
                dm.TreeClassifier(epsilon=9).fit(bob)
            told = [preview, refused.value, refused.value.remaining, room.value, room.value.remaining, bob.statement()]
            return [repr(preview), *map(str, told)]

    assert seen("1.25") == seen("5.5")


def test_whoever_may_spend_no_more_than_the_cap_has_learns_nothing_of_how_much_is_left() -> None:
    """Previews are free: asked again and again they told the cap's rest to the last unit, and others' part by part."""

    def told(spent_by_others: str) -> list[bool]:
        with dm.open(columns(), schema=SCHEMA, cap=4) as data:
            bob = data.grant("bob", epsilon=1)
            data.grant("alice", epsilon=3).partition("ill")["yes"].count(epsilon=spent_by_others)
            asked = [f"{place / 4}" for place in range(1, 17)]
            return [bob.preview.count(epsilon=epsilon).dataset_suffices for epsilon in asked]

    assert told("0.25") == told("3")


# -- short requests that cost much ---------------------------------------------------------------------------------------


def sent(rows: list[Any]) -> bytes:
    return json.dumps(rows).encode()


def in_time(private: PrivateTable, text: bytes, seconds: float = 3) -> None:
    """Refused or previewed, whichever, but at once; what was never charged is free to ask a thousand times."""
    started = time.process_time()
    with contextlib.suppress(dm.RequestError):
        private._executor._desk.preview(text, analyst="mallory")  # type: ignore[attr-defined]
    assert time.process_time() - started < seconds


def test_a_split_that_splits_nothing_counts_as_one(private: PrivateTable) -> None:
    """Thousands of leaves below dozens of keys of one label: a log entry of 30 MB for twenty thousand letters."""
    rows: list[Any] = [["leaf"], ["groups", "ill", [], "all", "apart"]]
    for _ in range(70):
        rows.append(["split", 1, [len(rows) - 1 if len(rows) > 2 else 0]])
    rows += [["part", "z", [1] * 4096], ["split", len(rows), [len(rows) - 1] * 4096], ["histogram", []], ["view", []]]
    rows.append(["query", len(rows) - 1, len(rows) - 3, len(rows) - 2, ["0.000000001"]])
    with pytest.raises(dm.RequestError, match="as many splits"):
        private._executor._desk.answer(sent(rows), analyst="mallory")  # type: ignore[attr-defined]
    in_time(private, sent(rows))


@pytest.mark.parametrize("depth", [16, 22, 40])
@pytest.mark.parametrize("place", ["where", "test"])
def test_a_predicate_that_names_its_parts_again_and_again_is_resolved_once(
    private: PrivateTable, depth: int, place: str
) -> None:
    rows: list[Any] = [["compare", "age", ">=", "3"], ["compare", "fine", ">=", "7"]]
    rows.append(["or", [0, 1]])
    for level in range(depth):
        rows.append(["or" if level % 2 else "and", [len(rows) - 1] * 2])
    last = len(rows) - 1
    if place == "where":
        rows += [
            ["where", last],
            ["view", [last + 1]],
            ["histogram", []],
            ["leaf"],
            ["query", last + 2, last + 4, last + 3, ["1"]],
        ]
    else:
        rows += [["test", last], ["histogram", [last + 1]], ["view", []], ["leaf"]]
        rows.append(["query", last + 3, last + 4, last + 2, ["1"]])
    in_time(private, sent(rows))


def test_rows_that_nothing_names_cost_no_more_than_those_that_are_asked(private: PrivateTable) -> None:
    rows: list[Any] = [["score-leaf", [1, 2]], ["bins", "age", ["3"], "apart"]]
    for _ in range(14):
        rows.append(["score-split", 1, [len(rows) - 1 if len(rows) > 2 else 0] * 2])
    tree = len(rows) - 1
    rows += [["predicted", [tree, tree], [f"no {place}", "yes"]] for place in range(3_000)]
    rows += [["histogram", []], ["view", []], ["leaf"]]
    rows.append(["query", len(rows) - 2, len(rows) - 1, len(rows) - 3, ["1"]])
    in_time(private, sent(rows), seconds=10)


def test_what_the_door_remembers_of_questions_stays_small_and_out_of_reach(private: PrivateTable) -> None:
    desk = private._executor._desk  # type: ignore[attr-defined]
    for place in range(50):
        many = Bins("fine", tuple(str(cut) for cut in range(place + 1, place + 200)))
        private.preview.histogram(many, epsilon="0.000001")
        private.preview.histogram(Test(Compare("age", ">=", str(place))), epsilon="0.000001")
    assert len(desk._known_keys) <= 1
    reachable = [name for name, kept in vars(private.schema).items() if isinstance(kept, dict) and name != "_by_name"]
    assert reachable == []


@pytest.mark.parametrize(
    "row", [["codes", 0, 0], ["recode", "a", [], 3], ["by-children", 0, []], ["counts", []], ["plan", 0]]
)
def test_only_what_stands_in_queries_is_read(private: PrivateTable, row: list[Any]) -> None:
    with pytest.raises(dm.RequestError, match="There is no value"):
        private._executor._desk.preview(sent([["leaf"], row]), analyst="mallory")  # type: ignore[attr-defined]


def test_a_draw_that_could_not_be_stored_is_in_no_frame_of_the_error() -> None:
    """It may be drawn again, once: two draws for one price, for whoever reads tracebacks."""
    with dm.open(columns(), schema=SCHEMA, ledger=None, cap=10) as data:
        private = data.grant("mallory", epsilon=10)

        def fail(name: str) -> None:
            if name == "storing":
                raise dm.LedgerError("The disk is full.")

        data._ledger._at_step = fail
        with pytest.raises(dm.LedgerError) as caught:
            private.count(epsilon=1)
        frames = [frame for frame, _ in traceback.walk_tb(caught.tb)]
        kept = [item for frame in frames for item in frame.f_locals.values()]
        assert not [item for item in kept if isinstance(item, Answer) or (isinstance(item, bytes) and b"answer" in item)]
        assert caught.value.__context__ is None
