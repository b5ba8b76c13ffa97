"""Models as keys: every engine gives every row the label that adding up scores by hand gives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from engine_reference import Reference
from engine_strategies import Asked, Small, model_keys, small_tables
from engines_under_test import SPLIT_KEY, assert_counts, every_engine, expected, over
from hypothesis import strategies as st
from support.twins import few_and_many

from dpmine.codes.aggregates import Engine
from dpmine.codes.rows import LARGEST_SCORE, MOST_TREES
from dpmine.engines.encoding import encode
from dpmine.engines.memory import MemoryEngine
from dpmine.engines.registry import ENGINES
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.keys import AttributeKey, Bins, Group, Groups, Key
from dpmine.language.model_keys import Predicted, ScoreBands, ScoreLeaf, ScoreSplit, ScoreTree
from dpmine.language.resolver import resolve_cells
from dpmine.language.resolving_keys import resolve_key
from dpmine.language.views import LEAF, Cell, Rules, Split, Step

SIZE = 600
SCHEMA = Schema(
    "models",
    (
        Numeric("x", Decimal(0), Decimal(SIZE - 1), Decimal(1), Decimal(0)),
        Nominal("colour", ("red", "green", "blue"), "red", missing="red"),
    ),
    10_000,
)
ROWS = 700
TABLE: dict[str, list[Any]] = {
    "x": [float(number * 7 % SIZE) for number in range(ROWS)],
    "colour": [("red", "green", "blue", None)[number % 4] for number in range(ROWS)],
}
COLOUR = AttributeKey("colour")
BLUE = Groups("colour", (Group("blue", ("blue",)),))
LOW = Bins("x", ("100", "250"))


def by_colour(*scores: tuple[int, ...]) -> ScoreTree:
    return ScoreSplit(COLOUR, tuple(map(ScoreLeaf, scores)))


def classes(count: int) -> tuple[str, ...]:
    return tuple(f"class {number}" for number in range(count))


def one_leaf_a_point(scores: int) -> ScoreTree:
    """As many leaves as grid points, each with another score in front."""
    leaves = tuple(ScoreLeaf(tuple(int(code % scores == place) for place in range(scores))) for code in range(SIZE))
    return ScoreSplit(AttributeKey("x"), leaves)


def deep(levels: int) -> ScoreTree:
    tree: ScoreTree = ScoreLeaf((0, 1))
    for level in range(levels):
        tree = ScoreSplit(Bins("x", (str(14 * (levels - level)),)), (ScoreLeaf((level % 3, 1)), tree))
    return tree


FAR = by_colour((LARGEST_SCORE, -LARGEST_SCORE), (-LARGEST_SCORE, LARGEST_SCORE), (LARGEST_SCORE, LARGEST_SCORE))
TIED = Predicted((by_colour((1, 2, 2), (0, 2, 2), (2, 1, 2)), ScoreLeaf((1, 0, 0))), classes(3))
WIDE = ScoreSplit(
    Bins("x", tuple(str(50 * place) for place in range(1, 12))),
    tuple(ScoreLeaf(tuple(-abs(label - 25 * place) for label in range(300))) for place in range(12)),
)
MANY = 60  # trees: 60 times 10^9 needs more than 32 bits
KEYS: dict[str, Key] = {
    "equal sums go to the first": TIED,
    "one tree of one leaf": Predicted((ScoreLeaf((3, 3)),), classes(2)),
    "all three kinds of splits": Predicted(
        (
            by_colour((1, 0), (-1, 0), (0, 0)),
            ScoreSplit(
                LOW, (ScoreLeaf((0, 2)), ScoreSplit(BLUE, (ScoreLeaf((5, 0)), ScoreLeaf((-5, 0)))), ScoreLeaf((0, 0)))
            ),
        ),
        classes(2),
    ),
    "sums beyond 32 bits": Predicted((FAR,) * MANY, classes(2)),
    "bands beyond 32 bits": ScoreBands(
        (FAR,) * MANY, 1, (-MANY * LARGEST_SCORE, 1 - MANY * LARGEST_SCORE, 2**32, MANY * LARGEST_SCORE)
    ),
    "sums that wrap to the opposite in 32 bits": Predicted((by_colour((10**9, 1), (1, 10**9), (0, 1)),) * 3, classes(2)),
    "more than 256 leaves": Predicted((one_leaf_a_point(5),), classes(5)),
    "more than 256 classes": Predicted((WIDE,), classes(300)),
    "more than 256 bands": ScoreBands(
        (ScoreSplit(AttributeKey("x"), tuple(ScoreLeaf((code,)) for code in range(SIZE))),), 0, tuple(range(300, 599))
    ),
    "the deepest tree": Predicted((deep(40),), classes(2)),
    "an edge belongs to the band above": ScoreBands((by_colour((1,), (2,), (3,)),), 0, (2, 3)),
}


@pytest.fixture(scope="module")
def opened() -> Iterator[Mapping[str, Engine]]:
    """Every engine over the same rows."""
    with ExitStack() as open_ones:
        yield {name: open_ones.enter_context(over(name, Small(SCHEMA, TABLE))) for name in ENGINES}


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference(TABLE, SCHEMA, SPLIT_KEY)


@every_engine()
@pytest.mark.parametrize("name", KEYS)
def test_every_row_has_the_label_of_its_summed_scores(
    opened: Mapping[str, Engine], reference: Reference, name: str, engine: str
) -> None:
    """In a histogram, as a view's step, and as a split of the rule tree; each with a key beside or below it."""
    key = KEYS[name]
    labels = reference.size(key)
    asked: list[tuple[tuple[Step, ...], Rules, tuple[Key, ...]]] = [
        ((), LEAF, (key, COLOUR)),
        ((Cell(key, labels - 1),), LEAF, (COLOUR,)),
        ((), Split(BLUE, (LEAF, Split(key, (LEAF,) * labels))), (COLOUR,)),
    ]
    for steps, rules, keys in asked:
        assert_counts(opened[engine], reference, Asked(steps, rules, (keys,)))


def test_the_examples_use_the_whole_range_of_labels(reference: Reference) -> None:
    """An example in which every row had one label would show nothing."""
    for name, key in KEYS.items():
        seen = {reference.label(key, place) for place in range(ROWS)}
        assert len(seen) > 1 or name == "one tree of one leaf", name
    assert {reference.label(TIED, place) for place in range(3)} == {0, 1}
    assert max(reference.label(KEYS["more than 256 classes"], place) for place in range(ROWS)) > 255


@every_engine("a thousand trees")
def test_the_largest_sum_there_can_be_fits(opened: Mapping[str, Engine], reference: Reference, engine: str) -> None:
    """1,000 trees of 10^9 each; the edges are the very ends."""
    far = ScoreBands((FAR,) * MOST_TREES, 0, (-MOST_TREES * LARGEST_SCORE + 1, 0, MOST_TREES * LARGEST_SCORE))
    won = Predicted((FAR,) * MOST_TREES, classes(2))
    for key in (far, won):
        assert_counts(opened[engine], reference, Asked((), LEAF, ((key,),)))


@every_engine("a thousand trees")
def test_the_largest_sum_of_trees_that_are_leaves_fits(
    opened: Mapping[str, Engine], reference: Reference, engine: str
) -> None:
    most = (ScoreLeaf((LARGEST_SCORE,)),) * (MOST_TREES - 1)
    last = by_colour((LARGEST_SCORE,), (LARGEST_SCORE - 1,), (-LARGEST_SCORE,))
    nearly = ScoreBands((*most, last), 0, (2**31, MOST_TREES * LARGEST_SCORE - 1, MOST_TREES * LARGEST_SCORE))
    assert (expected(reference, (), LEAF, (nearly,)) > 0).tolist() == [[False, True, True, True]]
    assert_counts(opened[engine], reference, Asked((), LEAF, ((nearly,),)))


@every_engine()
def test_several_models_are_counted_at_once_and_one_of_them_twice(
    opened: Mapping[str, Engine], reference: Reference, engine: str
) -> None:
    keys = [KEYS[name] for name in ("equal sums go to the first", "all three kinds of splits", "more than 256 bands")]
    groups = ((COLOUR, keys[0]), (COLOUR, keys[1]), (COLOUR, keys[0]), (keys[2], keys[0]), (keys[1], keys[1]))
    assert_counts(opened[engine], reference, Asked((), LEAF, groups))


@every_engine()
@pytest.mark.parametrize("name", KEYS)
def test_an_empty_table_has_no_rows_in_any_label(name: str, engine: str) -> None:
    key = resolve_key(KEYS[name], SCHEMA)
    cells = resolve_cells((Cell(KEYS[name], 0),), Split(KEYS[name], (LEAF,) * key.size), SCHEMA)
    with over(engine, Small(SCHEMA, {column: [] for column in TABLE})) as made:
        (counts,) = made.counts(cells, [(key,)] if key.size < 100 else [()])
    assert counts.shape == (key.size, key.size) if key.size < 100 else (key.size,)
    assert not counts.any()


any_small_model = small_tables().flatmap(lambda small: st.tuples(st.just(small), model_keys(small.schema)))


@every_engine()
@few_and_many(any_small_model, few=8, many=60)
def test_any_small_model_on_any_small_table(engine: str, drawn: tuple[Small, Key]) -> None:
    small, key = drawn
    with over(engine, small) as made:
        assert_counts(made, Reference(small.table, small.schema, SPLIT_KEY), Asked((), LEAF, ((key,),)))


def test_the_planted_tie_break_is_caught(reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted mistakes: equal sums go to the last class; sums in 32 bits."""
    cells = resolve_cells((), LEAF, SCHEMA)

    def right(name: str) -> bool:
        engine = MemoryEngine(encode(open_source(TABLE), SCHEMA), SPLIT_KEY)
        found = engine.counts(cells, [(resolve_key(KEYS[name], SCHEMA),)])[0]
        return bool((found == expected(reference, (), LEAF, (KEYS[name],))).all())

    assert right("equal sums go to the first")
    assert right("sums that wrap to the opposite in 32 bits")
    true_argmax = np.argmax
    with monkeypatch.context() as patched:
        patched.setattr(np, "argmax", lambda sums, axis: sums.shape[1] - 1 - true_argmax(sums[:, ::-1], axis=axis))
        assert not right("equal sums go to the first")
    with monkeypatch.context() as patched:
        patched.setattr(np, "argmax", lambda sums, axis: true_argmax(sums.astype(np.int32), axis=axis))
        assert not right("sums that wrap to the opposite in 32 bits")
