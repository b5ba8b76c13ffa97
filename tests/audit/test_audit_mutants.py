"""Planted bugs: every one is found, by every pair that must find it, at the false-alarm rate of --quick."""

from __future__ import annotations

import pytest

from dpmine.audit.catalogue import all_pairs
from dpmine.audit.mutants import MUTANTS, Mutant, mutant_named
from dpmine.audit.running import QUICK, judge, number_of_tests
from dpmine.audit.sampling import Task, work
from dpmine.base.errors import RequestError
from dpmine.kernel.samplers.laplace import ExactNoise
from dpmine.kernel.scores import GiniScore

PAIRS = all_pairs()
FAILURE = QUICK.false_alarms / number_of_tests(list(PAIRS.values()))
CASES = [
    pytest.param(mutant, name, id=f"{mutant.name}-{name}", marks=[pytest.mark.slow] if "end-to-end" in mutant.name else [])
    for mutant in MUTANTS
    for name in mutant.caught_by
]


@pytest.mark.parametrize(("mutant", "name"), CASES)
def test_a_planted_bug_is_found(mutant: Mutant, name: str) -> None:
    """It is missed less than once in a million times: bounds lie more than five of their deviations above the claims.

    Nearly always a quarter of the runs shows it, at the same false-alarm rate; else the other runs decide with them.
    """
    runs = round(PAIRS[name].runs * mutant.effort)
    drawn = [work(Task(name, runs // 4, 0, mutant.name))]
    if judge(PAIRS[name], mutant, drawn, FAILURE).passed:
        drawn.append(work(Task(name, runs - runs // 4, 1, mutant.name)))
    assert judge(PAIRS[name], mutant, drawn, FAILURE).violations


def test_known_kinds_of_bugs_are_planted() -> None:
    names = " ".join(mutant.name for mutant in MUTANTS)
    for bug in (
        "halved-noise",
        "sensitivity-off-by-one",
        "missing-clamp",
        "missing-factor-2",
        "noise-shared",
        "field-without-noise",
        "printed-split-point-formula",
        "weighted-permute-and-flip",
        "row-position-subsets",
        "stale-price",
    ):
        assert bug in names


def test_the_bug_is_gone_afterwards() -> None:
    before = ExactNoise.discrete_laplace, GiniScore.sensitivity
    for mutant in MUTANTS:
        with pytest.raises(ZeroDivisionError), mutant.plant():
            raise ZeroDivisionError
    assert before == (ExactNoise.discrete_laplace, GiniScore.sensitivity)
    drawn = work(Task("count", 3000))
    assert judge(PAIRS["count"], None, [drawn], FAILURE).violations == []


def test_a_refusal_is_a_finding() -> None:
    drawn = work(Task("tree-classifier-leaves", 3, 0, "leaves-asked-at-twice-their-price"))
    assert drawn.refused is not None
    finding = judge(PAIRS["tree-classifier-leaves"], mutant_named("halved-noise"), [drawn], FAILURE)
    assert "more than it claimed" in finding.violations[0]


def test_unknown_mutants_are_refused() -> None:
    with pytest.raises(RequestError, match="halved-noise"):
        mutant_named("no such bug")
