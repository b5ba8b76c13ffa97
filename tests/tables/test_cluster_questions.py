"""Nearest centres, sums of offsets and private trees as a miner meets them: results, refusals, prices, words."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.attributes import number
from support.executors import Opener
from support.refusals import assert_one_sentence

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import BudgetError, ExpressionError, RequestError
from dpmine.base.wire import from_wire, to_wire
from dpmine.codes.private_tree import DEEPEST_PRIVATE_TREE, LARGEST_CUT_SCORE
from dpmine.codes.rows import LARGEST_DISTANCE, LARGEST_POSITION, MOST_DIMENSIONS
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.language.model_keys import MOST_BANDS, MOST_CENTRES, Nearest, NearestBands
from dpmine.language.queries import Query, resolve
from dpmine.language.views import LEAF, Split, View
from dpmine.questions.offset_sums import OffsetSums
from dpmine.questions.private_tree import CutRule, PrivateTree, tree_of

HUGE = 10_000


SCHEMA = Schema(
    "places", (number("x", 100), number("y", 50), Nominal("colour", ("red", "blue"), "red", missing="red")), 1000
)
ROWS = [(10, 10), (12, 9), (13, 11), (80, 40), (83, 44), (90, 5)]
TABLE = {
    "x": [float(x) for x, _ in ROWS],
    "y": [float(y) for _, y in ROWS],
    "colour": ["red", "blue"] * 3,
}
CENTRES = ((10, 20), (80, 80), (50, 0))
NEAREST = Nearest(("x", "y"), (99, 49), (1, 2), CENTRES)
QUESTION = OffsetSums(NEAREST, CENTRES, (5, 100, 1))
RULES = (CutRule("x", (0, 50), (0, 7, 0), (0, 1, 0), 1), CutRule("y", (0,), (0,), (0,), 2))


@pytest.fixture
def private(opened: Opener) -> dm.PrivateTable:
    return opened(TABLE, SCHEMA, epsilon=1)


@pytest.fixture
def clear(opened: Opener) -> dm.PrivateTable:
    """So much epsilon that answers are exact but for a chance below e^-90."""
    return opened(TABLE, SCHEMA, epsilon=1_000_000)


# -- results -----------------------------------------------------------------------------------------------------------


def test_a_histogram_by_cluster_and_distance(clear: dm.PrivateTable) -> None:
    bands = NearestBands(NEAREST, (1, 65, 82))
    found = clear.histogram(NEAREST, bands, epsilon=HUGE)
    assert found.titles == ("cluster", "distance")
    assert found.labels == (("cluster 0", "cluster 1", "cluster 2"), ("band 1", "band 2", "band 3", "band 4"))
    counts = np.zeros((3, 4), dtype=np.int64)
    for x, y in ROWS:
        distances = [(x - a) ** 2 + (2 * y - b) ** 2 for a, b in CENTRES]
        counts[distances.index(min(distances)), sum(edge <= min(distances) for edge in bands.edges)] += 1
    np.testing.assert_array_equal(found.counts, counts)
    assert found.counts[0].tolist() == [1, 2, 0, 0]


def test_sums_of_offsets_with_their_scales(clear: dm.PrivateTable) -> None:
    epsilon = 50 * HUGE  # at a radius of 1,000, HUGE itself leaves noise of scale 0.1, which is not 0 once in 10,000 times
    found = clear.offset_sums(NEAREST, CENTRES, (5, 1000, 1), epsilon=epsilon)
    first = [(0, 0), (2, -2), (3, 2)]
    assert found.sums.tolist() == [[sum(one) for one in zip(*first, strict=True)], [3, 8], [0, 0]]
    assert tuple(law.fraction for law in found.laws) == (Fraction(5, epsilon), Fraction(1000, epsilon), Fraction(1, epsilon))
    assert str(found.receipt.cost) == str(epsilon)
    inside = clear.where("colour == blue").offset_sums(NEAREST, CENTRES, (3, 50, 1), epsilon=HUGE)
    assert inside.sums.tolist() == [[1, -1], [0, 0], [0, 0]]  # (2, -2) shortened to 3, and (40, 10) to 1


def test_a_private_tree_is_a_tree_of_the_schemas_codes(clear: dm.PrivateTable) -> None:
    found = clear.private_tree(RULES, epsilon=HUGE, deepest=3)
    question = resolve(Query(View(), LEAF, PrivateTree(RULES, 3), (Epsilon(1),)), SCHEMA).question
    root = tree_of(found.bits, question.rules)  # type: ignore[attr-defined]
    assert max(node.depth for node in root.nodes()) <= 3
    assert root.cut is not None
    assert set(found.bits) <= {0, 1}
    assert str(found.receipt.epsilon) == str(HUGE)
    assert clear.where("x > 95").private_tree(RULES, epsilon=HUGE).bits == (0,)


def test_files_answer_as_memory_does(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "places.parquet"
    pq.write_table(pa.table(TABLE), path)
    answers = []
    for engine in ("memory", "duckdb"):
        with dm.open(path, schema=SCHEMA, ledger=None, cap=1_000_000, engine=engine) as data:
            table = data.grant("alice", epsilon=1_000_000)
            one = Nearest(("x",), (99,), (1,), ((50,),))
            answers.append(
                (
                    table.offset_sums(NEAREST, CENTRES, (5, 100, 1), epsilon=HUGE).sums.tolist(),
                    table.offset_sums(one, ((50,),), (30,), epsilon=HUGE).sums.tolist(),
                    table.private_tree(RULES, epsilon=HUGE).bits,
                    table.histogram(one, NearestBands(NEAREST, (9,)), epsilon=HUGE).counts.tolist(),
                )
            )
    assert answers[0] == answers[1]


# -- refusals ----------------------------------------------------------------------------------------------------------


def nearest(**changes: Any) -> Nearest:
    return replace(NEAREST, **changes)


def bands(*edges: Any) -> NearestBands:
    return NearestBands(NEAREST, edges)


def rule(**changes: Any) -> CutRule:
    return replace(RULES[0], **changes)


many = tuple(f"n{place}" for place in range(MOST_DIMENSIONS + 1))
REFUSED_WHEN_MADE: dict[str, tuple[str, Callable[[], object]]] = {
    "no attribute": ("1 to 32 different attributes", lambda: Nearest((), (), (), ((),))),
    "an attribute twice": ("1 to 32 different attributes", lambda: nearest(attributes=("x", "x"))),
    "too many attributes": ("1 to 32 different", lambda: Nearest(many, (1,) * 33, (1,) * 33, ((0,) * 33,))),
    "a scale too few": ("needs steps and a scale, positive whole numbers", lambda: nearest(scales=(1,))),
    "scale 0": ("needs steps and a scale, positive whole numbers", lambda: nearest(scales=(1, 0))),
    "half a scale": ("needs steps and a scale, positive whole numbers", lambda: nearest(scales=(1, 0.5))),
    "steps too few": ("needs steps and a scale, positive whole numbers", lambda: nearest(steps=(99,))),
    "no steps": ("needs steps and a scale, positive whole numbers", lambda: nearest(steps=(99, 0))),
    "half a step": ("needs steps and a scale, positive whole numbers", lambda: nearest(steps=(99, 0.5))),
    "no centre": ("1 to 1000 centres", lambda: nearest(centres=())),
    "too many centres": ("1 to 1000 centres", lambda: nearest(centres=((0, 0),) * (MOST_CENTRES + 1))),
    "a centre on a line": ("a position in every attribute", lambda: nearest(centres=((0, 0), (0,)))),
    "a centre below 0": ("whole numbers from 0 to 8388608", lambda: nearest(centres=((0, -1),))),
    "a centre too far": ("whole numbers from 0 to 8388608", lambda: nearest(centres=((0, LARGEST_POSITION + 1),))),
    "half a position": ("whole numbers from 0", lambda: nearest(centres=((0, 0.5),))),
    "an engine's position": ("whole numbers from 0", lambda: nearest(centres=((0, np.int64(3)),))),
    "no edge": ("edges that rise", lambda: bands()),
    "falling edges": ("edges that rise", lambda: bands(2, 1)),
    "equal edges": ("edges that rise", lambda: bands(1, 1)),
    "half an edge": ("whole numbers as edges", lambda: bands(0.5)),
    "too many bands": ("at most 4096 bands", lambda: bands(*range(MOST_BANDS))),
    "an edge below 0": ("between 0 and 2251799813685248", lambda: bands(-1, 1)),
    "an edge too far": ("between 0 and 2251799813685248", lambda: bands(LARGEST_DISTANCE + 1)),
    "an origin too few": ("needs an origin, with a position", lambda: replace(QUESTION, origins=CENTRES[:2])),
    "an origin on a line": ("needs an origin", lambda: replace(QUESTION, origins=((0, 0), (0, 0), (0,)))),
    "an origin too far": ("within .-8388608", lambda: replace(QUESTION, origins=((0, -LARGEST_POSITION - 1),) * 3)),
    "half an origin": ("within .-8388608", lambda: replace(QUESTION, origins=((0, 0.5),) * 3)),
    "a radius too few": ("needs a radius, a whole number from 1", lambda: replace(QUESTION, radii=(1, 1))),
    "radius 0": ("needs a radius, a whole number from 1", lambda: replace(QUESTION, radii=(1, 0, 1))),
    "half a radius": ("needs a radius, a whole number from 1", lambda: replace(QUESTION, radii=(1, 1.5, 1))),
    "a radius too large": ("from 1 to 268435456", lambda: replace(QUESTION, radii=(1, 2**28 + 1, 1))),
    "no rule": ("cuts 1 to 32 different", lambda: PrivateTree((), 3)),
    "an attribute cut twice": ("cuts 1 to 32 different", lambda: PrivateTree(RULES[:1] * 2, 3)),
    "too many rules": ("cuts 1 to 32", lambda: PrivateTree(tuple(rule(attribute=name) for name in many), 3)),
    "no level": ("1 to 60 levels", lambda: PrivateTree(RULES, 0)),
    "too many levels": ("1 to 60 levels", lambda: PrivateTree(RULES, DEEPEST_PRIVATE_TREE + 1)),
    "half a level": ("1 to 60 levels", lambda: PrivateTree(RULES, 2.5)),  # type: ignore[arg-type]
    "half a score": ("are whole numbers", lambda: rule(scores=(0, 0.5, 0))),
    "half a bin": ("are whole numbers", lambda: rule(cuts=(0, 0.5, 0))),
    "an engine's edge": ("are whole numbers", lambda: rule(edges=(0, np.int64(50)))),
    "half a worth": ("are whole numbers", lambda: rule(inside=0.5)),
}


@pytest.mark.parametrize("name", REFUSED_WHEN_MADE)
def test_what_goes_beyond_the_limits_is_refused_when_it_is_made(name: str) -> None:
    words, make = REFUSED_WHEN_MADE[name]
    with pytest.raises(RequestError, match=words) as refused:
        make()
    assert_one_sentence(refused.value)


def test_what_is_just_within_the_limits_is_not_refused() -> None:
    nearest(centres=((0, LARGEST_POSITION),) * MOST_CENTRES)
    bands(*range(MOST_BANDS - 1))
    bands(0, LARGEST_DISTANCE)
    replace(QUESTION, origins=((-LARGEST_POSITION, LARGEST_POSITION),) * 3, radii=(1, 1, 2**28))
    PrivateTree(RULES, DEEPEST_PRIVATE_TREE)
    assert issubclass(ExpressionError, RequestError)


def tree(*rules: CutRule) -> Callable[[dm.PrivateTable], object]:
    return lambda private: private.private_tree(rules, epsilon="0.1")


def clusters(key: Nearest) -> Callable[[dm.PrivateTable], object]:
    return lambda private: private.offset_sums(key, key.centres, (1,) * len(key.centres), epsilon="0.1")


REFUSED_BY_THE_SCHEMA: dict[str, tuple[str, Callable[[dm.PrivateTable], object]]] = {
    "a colour": ("'colour' is not numeric, so nothing is near", clusters(nearest(attributes=("x", "colour")))),
    "bands of a colour": (
        "'colour' is not numeric, so nothing is near",
        lambda private: private.histogram(NearestBands(nearest(attributes=("x", "colour")), (1,)), epsilon="0.1"),
    ),
    "an unknown column": ("'height' is not in the schema", clusters(nearest(attributes=("x", "height")))),
    "more steps than values": ("'x' has 99 steps between its bounds. Got 100", clusters(nearest(steps=(100, 49)))),
    "a scale too large": ("The scale of 'x' is too large", clusters(nearest(scales=(LARGEST_POSITION // 99 + 1, 1)))),
    "noise beyond 64 bits": (
        "Epsilon is too small",
        lambda private: private.offset_sums(NEAREST, CENTRES, (1, 1, 2**28), epsilon="0.0000000001e1"),
    ),
    "a colour cut": ("'colour' is not numeric, so it has no", tree(rule(attribute="colour"))),
    "an unknown column cut": ("'height' is not in the schema", tree(rule(attribute="height"))),
    "no bins": ("begin at rising codes, from 0 on", tree(rule(edges=(), scores=(), cuts=()))),
    "bins from 1 on": ("begin at rising codes", tree(rule(edges=(1, 50)))),
    "falling bins": ("begin at rising codes", tree(rule(edges=(0, 50, 49), scores=(0,) * 6, cuts=(0, 1, 1, 0, 2, 0)))),
    "bins beyond the codes": ("begin at rising codes", tree(rule(edges=(0, 100)))),
    "a score too few": ("2 bins of 'x' need 3 scores and cuts", tree(rule(scores=(0, 7)))),
    "a cut too few": ("2 bins of 'x' need 3 scores and cuts", tree(rule(cuts=(0, 1)))),
    "a cut at the start": ("must be cut inside", tree(rule(cuts=(0, 0, 0)))),
    "a cut at the end": ("must be cut inside", tree(rule(cuts=(0, 2, 0)))),
    "worth too much": ("lies within .-1099511627776", tree(rule(scores=(0, LARGEST_CUT_SCORE + 1, 0)))),
    "worth too little": ("lies within .-1099511627776", tree(rule(inside=-LARGEST_CUT_SCORE - 1))),
}


@pytest.mark.parametrize("name", REFUSED_BY_THE_SCHEMA)
def test_what_the_schema_does_not_allow_is_refused_before_anything_is_charged(private: dm.PrivateTable, name: str) -> None:
    words, ask = REFUSED_BY_THE_SCHEMA[name]
    with pytest.raises(RequestError, match=words) as refused:
        ask(private)
    assert_one_sentence(refused.value)
    assert str(private.remaining()) == "1"


@pytest.mark.parametrize("question", [QUESTION, PrivateTree(RULES, 3)], ids=["sums", "tree"])
def test_cells_that_come_by_another_way_are_refused_too(private: dm.PrivateTable, question: Any) -> None:
    split = Split(NearestBands(NEAREST, (5,)), (LEAF, LEAF))
    with pytest.raises(RequestError, match="asked of a whole view, not of its cells") as refused:
        private._executor.answer(Query(View(), split, question, (Epsilon(1),)))
    assert_one_sentence(refused.value)
    assert str(private.remaining()) == "1"


# -- prices ------------------------------------------------------------------------------------------------------------

ASK: dict[str, Callable[[dm.PrivateTable], Any]] = {
    "sums": lambda table: table.offset_sums(NEAREST, CENTRES, (5, 100, 1), epsilon="0.3").sums.tolist(),
    "tree": lambda table: table.private_tree(RULES, epsilon="0.3").bits,
    "bands": lambda table: table.histogram(NEAREST, NearestBands(NEAREST, (9,)), epsilon="0.3").counts.tolist(),
}


@pytest.mark.parametrize("name", ASK)
def test_it_costs_its_epsilon_once_and_a_repeated_question_nothing(private: dm.PrivateTable, name: str) -> None:
    first = ASK[name](private)
    assert str(private.remaining()) == "0.7"
    assert ASK[name](private) == first
    assert str(private.remaining()) == "0.7"
    for view in private.partition(NEAREST).values():  # disjoint: as much as the dearest
        ASK[name](view)
    assert str(private.remaining()) == "0.4"
    ASK[name](private.where("x >= 1"))
    with pytest.raises(BudgetError):
        ASK[name](private.where("x >= 2"))
    assert str(private.remaining()) == "0.1"


def test_other_radii_other_rules_and_other_levels_are_other_questions(private: dm.PrivateTable) -> None:
    asked = [
        lambda: private.offset_sums(NEAREST, CENTRES, (5, 100, 1), epsilon="0.1"),
        lambda: private.offset_sums(NEAREST, CENTRES, (5, 101, 1), epsilon="0.1"),
        lambda: private.offset_sums(NEAREST, CENTRES[::-1], (5, 100, 1), epsilon="0.1"),
        lambda: private.private_tree(RULES, epsilon="0.1"),
        lambda: private.private_tree(RULES[::-1], epsilon="0.1"),
        lambda: private.private_tree(RULES, epsilon="0.1", deepest=39),
        lambda: private.private_tree((rule(inside=3), RULES[1]), epsilon="0.1"),
    ]
    for count, ask in enumerate(asked, 1):
        ask()
        ask()
        assert private.remaining() == Epsilon.parse(Decimal(10 - count) / 10)


def test_a_named_request_is_answered_once(private: dm.PrivateTable) -> None:
    bits = [private.private_tree(RULES, epsilon="0.3", request_key="mine").bits for _ in range(2)]
    assert bits[0] == bits[1]
    sums = [private.offset_sums(NEAREST, CENTRES, (5, 9, 1), epsilon="0.3", request_key="ours").sums for _ in range(2)]
    assert sums[0].tolist() == sums[1].tolist()
    assert str(private.remaining()) == "0.4"


def test_persons_with_several_rows_cost_several_times(opened: Opener) -> None:
    schema = Schema("visits", (number("x", 100),), 100, unit=Unit("who", 3))
    rows = {"x": [60.0] * 5 + [10.0] * 2, "who": ["anna"] * 5 + ["bert", "carl"]}
    private = opened(rows, schema, epsilon=30_000)
    line = Nearest(("x",), (99,), (1,), ((50,),))
    found = private.offset_sums(line, ((50,),), (20,), epsilon=5000)
    assert found.sums.tolist() == [[3 * 10 - 2 * 20]]
    assert (str(found.receipt.epsilon), str(found.receipt.cost)) == ("5000", "15000")
    assert str(private.remaining()) == "15000"
    assert str(private.private_tree((CutRule("x", (0,), (0,), (0,), 1),), epsilon=4000).receipt.cost) == "12000"
    assert str(private.remaining()) == "3000"


# -- words and values --------------------------------------------------------------------------------------------------


def test_the_statement_names_the_questions(private: dm.PrivateTable) -> None:
    for ask in ASK.values():
        ask(private)
    assert [spending.what for spending in private.statement().spendings][-3:] == [
        "sums of offsets from 3 centres at epsilon 0.3",
        "private tree by x, y at epsilon 0.3",
        "histogram by a test, part or model, a test, part or model at epsilon 0.3",
    ]


def test_a_preview_says_how_much_noise_there_will_be(private: dm.PrivateTable) -> None:
    sums = private.preview.ask(QUESTION, epsilon="0.5")
    assert str(sums) == (
        "This query costs epsilon 0.5; epsilon 1 remains. Standard deviations of the noise of each sum, in positions: "
        "2.8 to 283."
    )
    grown = private.preview.ask(PrivateTree(RULES, 3), epsilon="0.5")
    assert grown.expected_error == (
        "A node is cut about where it holds more rows than 5 for each level above it, give or take 10."
    )
    ASK["tree"](private)
    assert private.preview.ask(PrivateTree(RULES, 40), epsilon="0.3").cached
    assert str(private.remaining()) == "0.7"


@pytest.mark.parametrize("question", [QUESTION, PrivateTree(RULES, 3)], ids=["sums", "tree"])
def test_questions_come_back_from_their_json_text(question: Any) -> None:
    query = Query(View(), LEAF, question, (Epsilon(5),))
    assert from_wire(to_wire(query), Query) == query
    plan = resolve(query, SCHEMA)
    assert to_wire(plan) == to_wire(resolve(from_wire(to_wire(query), Query), SCHEMA))


def test_labels_follow_the_number_of_centres_and_edges() -> None:
    for count in (1, 2, 5):
        key = nearest(centres=tuple(itertools.islice(itertools.cycle(CENTRES), count)))
        assert key.labels(SCHEMA) == tuple(f"cluster {place}" for place in range(count))
        assert NearestBands(key, tuple(range(count))).labels(SCHEMA) == tuple(
            f"band {place}" for place in range(1, count + 2)
        )
    assert (NEAREST.title, bands(1).title) == ("cluster", "distance")
