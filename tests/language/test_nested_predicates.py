"""Predicates that are nested as deep as they may be are answered by every engine, deeper ones refused before any charge."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import dpmine as dm
from dpmine.base.errors import ExpressionError
from dpmine.engines.registry import ENGINES
from dpmine.language.resolving_predicates import MOST_NESTED

ROWS = {"number": [1, 2, 3] * 10, "letter": ["a", "b", "a"] * 10}
SCHEMA = dm.Schema.from_toml(
    """
    name = "nested"
    rows_at_most = 100
    [attributes.number]
    kind = "numeric"
    low = 0
    high = 9
    step = 1
    missing = 0
    [attributes.letter]
    kind = "nominal"
    categories = ["a", "b"]
    other = "a"
    missing = "a"
    """
)


def nested(levels: int) -> dm.Predicate:
    """Not all of (a letter, not all of (another letter, ...)): `not` goes down to the letters; every other is an `or`."""
    predicate: dm.Predicate = dm.col("number") >= 2
    for turn in range(levels - 1):
        predicate = ~(predicate & (dm.col("letter") == "ab"[turn % 2]))
    return predicate


def expected(levels: int) -> int:
    """The rows for which it holds, by plain Python."""
    holds = [number >= 2 for number in ROWS["number"]]
    for turn in range(levels - 1):
        letter = "ab"[turn % 2]
        holds = [not (held and found == letter) for held, found in zip(holds, ROWS["letter"], strict=True)]
    return sum(holds)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_deepest_predicate_is_answered_and_a_deeper_one_is_refused(engine: str, tmp_path: Path) -> None:
    """At epsilon 1000 noise is 0 but for a chance of 2 e^-1000."""
    pd.DataFrame(ROWS).to_csv(tmp_path / "rows.csv", index=False)
    with dm.open(tmp_path / "rows.csv", schema=SCHEMA, cap=2000, ledger=None, engine=engine) as data:
        private = data.grant("alice", epsilon=2000)
        assert private.where(nested(MOST_NESTED)).count(epsilon=1000).value == expected(MOST_NESTED)
        with pytest.raises(ExpressionError, match="nested at most 60 deep"):
            private.where(nested(MOST_NESTED + 1)).count(epsilon=1)
        assert str(private.remaining()) == "1000"
