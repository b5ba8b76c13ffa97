"""Audit pairs are what they say: complete, neighbouring, explained, and sharp on paper before anything is drawn."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import inspect
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dpmine.audit.catalogue import all_pairs
from dpmine.audit.discovery import everything_to_audit, not_covered
from dpmine.audit.pairs import AuditPair, columns_of
from dpmine.audit.running import QUICK, judge, number_of_tests
from dpmine.audit.sampling import Task, text_of, work
from dpmine.language.queries import Question
from dpmine.mining.estimators import Estimator

PAIRS = all_pairs()
WITH_LAWS = [pair for pair in PAIRS.values() if pair.laws is not None]
GAINS = [name for name in PAIRS if name.startswith("specialisations-by-")]
QUICK_FAILURE = QUICK.false_alarms / number_of_tests(list(PAIRS.values()))


def test_everything_in_the_package_has_an_audit_pair() -> None:
    assert len(everything_to_audit()) >= 30
    assert not_covered() == []


@pytest.mark.parametrize("base", [Estimator, Question])
def test_something_new_without_a_pair_is_found_out(base: type) -> None:
    name = f"New{base.__name__}"
    made = type(name, (base,), {"__module__": "dpmine.mining.made_in_a_test"})
    assert not_covered() == [f"dpmine.mining.made_in_a_test.{name}"]
    del made
    gc.collect()  # classes live in cycles
    assert not_covered() == []


def test_a_pair_that_is_taken_away_is_missed() -> None:
    without = [pair for pair in PAIRS.values() if pair.name not in ("quantile", "median", "quantile-with-gaps")]
    assert not_covered(without) == ["dpmine.questions.quantile.Quantile"]


@pytest.mark.parametrize("name", sorted({name for pair in PAIRS.values() for name in pair.covers}))
def test_what_a_pair_covers_exists(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert inspect.getattr_static(importlib.import_module(module), attribute) is not None


def rows_of(pair: AuditPair, side: int) -> Counter[Any]:
    rows = [dict(row) for row in pair.tables[side]]
    if pair.schema.unit.column is None:
        return Counter(tuple(sorted(row.items())) for row in rows)
    return Counter({row[pair.schema.unit.column] for row in rows})  # persons, however many rows they own


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_the_tables_of_a_pair_are_neighbours(pair: AuditPair) -> None:
    smaller, larger = rows_of(pair, 0), rows_of(pair, 1)
    assert not smaller - larger
    assert sum((larger - smaller).values()) == pair.distance
    columns = columns_of(pair.schema, pair.tables[1])
    assert {len(column) for column in columns.values()} == {len(pair.tables[1]) * pair.copies}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_pair_explains_its_neighbours(pair: AuditPair) -> None:
    assert len(pair.why.split()) >= 8
    assert pair.covers


@pytest.mark.parametrize("pair", WITH_LAWS, ids=lambda pair: pair.name)
def test_exact_laws_of_neighbours_stay_within_the_claim(pair: AuditPair) -> None:
    """On paper: the largest log of a ratio of probabilities is at most the claim, and close to it where a pair is tight."""
    assert pair.laws is not None
    first, second = pair.laws
    assert first.keys() == second.keys()
    assert math.fsum(first.values()) == pytest.approx(1)
    assert math.fsum(second.values()) == pytest.approx(1)
    losses = [
        abs(math.log(first[outcome] / second[outcome])) for outcome in first if min(first[outcome], second[outcome]) > 0
    ]
    assert max(losses) <= pair.claimed + 1e-9
    if pair.tight:
        assert max(losses) >= 0.97 * pair.claimed


def test_choices_reveal_nearly_all_of_epsilon_on_paper() -> None:
    """The trap of two equal candidates, which show half of it, is avoided."""
    quantiles, splits = ("quantile", "quantile-with-gaps"), ("split-by-gini", "split-by-mixed")
    for name in ("label-by-exponential", "label-by-permute-and-flip", *quantiles, *splits, *GAINS):
        first, second = PAIRS[name].laws or ({}, {})
        assert max(abs(math.log(first[outcome] / second[outcome])) for outcome in first) > 0.75


@pytest.mark.parametrize(
    "name",
    [
        "count",
        "histogram",
        "sum",
        "sum-with-gaps",
        "covariance",
        "quantile",
        "quantile-with-gaps",
        "split-by-mixed",
        "keyed-hash-parts",
        "random-forest",
        "sparse-histogram",
        "offset-sums",
        "private-tree",
        "designed-max-by-a-finite-mechanism",
        "designed-mean-by-a-staircase",
        "sums-in-a-box",
        *GAINS[:1],
    ],
)
def test_correct_code_passes(name: str) -> None:
    """Each test may alarm once in about 1e8 times, as in --quick; the outcomes are among those of the exact law."""
    pair = PAIRS[name]
    drawn = work(Task(name, max(pair.runs // 5, 60)))
    finding = judge(pair, None, [drawn], QUICK_FAILURE)
    assert finding.violations == []
    assert finding.charged == pytest.approx(pair.claimed)
    if pair.laws is not None:
        known = {text_of(outcome) for outcome in pair.laws[0]}
        assert set(drawn.judged_on[0]) | set(drawn.judged_on[1]) <= known


def test_two_opened_tables_of_a_pair_answer_every_run_anew() -> None:
    """Identical questions of one analyst would be answered from the cache: 3,000 equal counts of one noise."""
    drawn = work(Task("count", 3000))
    assert len(drawn.judged_on[0]) > 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair",
    [pair for pair in PAIRS.values() if pair.tight and pair.name != "count-small-epsilon"],
    ids=lambda pair: pair.name,
)
def test_tight_pairs_measure_nearly_all_of_the_claim_in_many_runs(pair: AuditPair) -> None:
    """A tenth of a full audit at the rate of one test; what is left to 0.9 there is room for luck."""
    drawn = [work(Task(pair.name, pair.runs, turn)) for turn in range(4)]
    assert judge(dataclasses.replace(pair), None, drawn, 1e-3).measured >= 0.8 * pair.claimed


def test_everything_that_is_audited_has_its_proof() -> None:
    proofs = (Path(__file__).resolve().parents[2] / "docs" / "proofs.md").read_text()
    assert [name for name in everything_to_audit() if f"`{name}`" not in proofs] == []
